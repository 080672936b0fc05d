package networkapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// Limits of one list.
const (
	maxPages = 10_000
	// maxBarrenPages is how many pages one after the other may bring nothing new. Pages shift while other programs acknowledge, so
	// one may repeat another; a list that only repeats itself does not end.
	maxBarrenPages = 3
	// maxCollected limits the records that one list holds, in bytes. What is beyond it comes in a later list, which leaves out what was
	// kept of this one.
	maxCollected = 2 << 20
)

// receivedType restricts a list to notifications of received documents. Assumption: the specification shows this parameter in a
// quick start only, so a list without it must be understood as well.
const (
	typeParameter = "type"
	receivedType  = "DocumentsReceived"
)

// Query says which notifications are listed.
type Query struct {
	Kind     archive.NetworkKind // empty: of all kinds of documents
	Received bool                // only those that the network gives as received documents
	// Sift is called with the notifications of each page that no page before had, and returns those that the list is to hold; nil: all of
	// them. What it leaves out takes no memory, so that a backlog of any length hides nothing behind it. Its error ends the list.
	Sift func(page []archive.Notification) ([]archive.Notification, error)
}

// Notifications lists the notifications that are not acknowledged: all pages, one after the other. One that stands on several pages
// is listed once. Nothing is acknowledged while the pages are read: that would shift them.
//
// The list is Whole only where its last page came and each record of it could be read. It is not whole beside an error, and what it
// holds then is still what the network told. A list that is not whole proves nothing about what it leaves out; nor does a whole
// one, because another program may acknowledge while it is read.
func (c *Client) Notifications(ctx context.Context, q Query) (archive.NotificationList, error) {
	const op = "list the notifications"
	l := newListing(q.Sift)
	barren := 0
	for page := 1; page <= maxPages; page++ {
		// This is a GET of one page, and changes nothing. If the process dies in it, the next start lists from page 1 on.
		ans, err := c.api.Do(ctx, apicall.Request{Op: op, Path: splitPath(notificationsPath), Query: pageQuery(q, page, c.pageSize), Limit: notificationAnswer, Header: acceptJSON})
		if err != nil {
			return l.list(), err
		}
		p, err := readPage(ans.Body)
		if err != nil {
			err := ans.Unreadable(op, err)
			ans.Release()
			return l.list(), err
		}
		isNew, err := l.addPage(p)
		ans.Release()
		if barren++; isNew {
			barren = 0
		}
		hasMore := p.more && l.collected > maxCollected
		if err != nil || !p.more || hasMore || barren == maxBarrenPages {
			list := l.list()
			list.Whole, list.HasMore = err == nil && !p.more && p.tellsMore && list.Unreadable == 0, hasMore
			return list, err
		}
	}
	return l.list(), nil
}

// List lists the notifications about one kind of document, see [Client.Notifications] and [Query].
func (c *Client) List(ctx context.Context, kind archive.NetworkKind, sift func([]archive.Notification) ([]archive.Notification, error)) (archive.NotificationList, error) {
	return c.Notifications(ctx, Query{Kind: kind, Sift: sift})
}

// HasNotifications asks for the first page of all notifications, with one of them at most, and reports whether one waits. It tries
// whether the account may list them: the network gives a notification again until it is acknowledged, so this changes nothing. A page
// that does not say whether it is the last is an error, because no list of such pages would ever be whole.
func (c *Client) HasNotifications(ctx context.Context) (bool, error) {
	const op = "ask for one notification"
	// This is a GET, and changes nothing. A crash in it loses an answer that is asked for again.
	ans, err := c.api.Do(ctx, apicall.Request{Op: op, Path: splitPath(notificationsPath), Query: pageQuery(Query{}, 1, smallestPage), Limit: notificationAnswer, Header: acceptJSON})
	if err != nil {
		return false, err
	}
	defer ans.Release()
	p, err := readPage(ans.Body)
	if err == nil && !p.tellsMore {
		err = errors.New("the page does not say whether further ones follow")
	}
	if err != nil {
		return false, ans.Unreadable(op, err)
	}
	return p.more || len(p.records) > 0, nil
}

// pageQuery returns the parameters of one page of size items.
func pageQuery(q Query, page, size int) url.Values {
	v := url.Values{"page": {strconv.Itoa(page)}, "pageSize": {strconv.Itoa(size)}}
	if q.Kind != "" {
		v.Set("documentType", q.Kind.NotificationWord())
	}
	if q.Received {
		v.Set(typeParameter, receivedType)
	}
	return v
}

// listing is a list while its pages are read.
type listing struct {
	sift      func([]archive.Notification) ([]archive.Notification, error)
	order     []archive.AcknowledgementID
	first     map[archive.AcknowledgementID]archive.Notification
	split     map[archive.AcknowledgementID]bool // numbers of which two records say different things
	seen      map[uint64]bool                    // numbers that a page had, shortened: they only tell whether a page has anything new
	seed      maphash.Seed                       // of seen
	faulty    map[archive.Digest]bool            // records that could not be read
	collected int                                // bytes of all records that are held
}

func newListing(sift func([]archive.Notification) ([]archive.Notification, error)) *listing {
	if sift == nil {
		sift = func(page []archive.Notification) ([]archive.Notification, error) { return page, nil }
	}
	return &listing{sift: sift, first: map[archive.AcknowledgementID]archive.Notification{}, split: map[archive.AcknowledgementID]bool{}, seen: map[uint64]bool{},
		seed: maphash.MakeSeed(), faulty: map[archive.Digest]bool{}}
}

// addPage adds the records of one page, and reports whether one of them is new.
func (l *listing) addPage(p page) (isNew bool, err error) {
	var fresh []archive.Notification
	onPage := map[archive.AcknowledgementID]archive.Notification{}
	for _, raw := range p.records {
		n, err := readNotification(raw)
		if err != nil {
			isNew = l.addUnreadable(raw) || isNew
			continue
		}
		id := n.AcknowledgementID
		had, isHeld := l.first[id]
		if !isHeld {
			had, isHeld = onPage[id]
		}
		switch {
		case !isHeld:
			onPage[id] = n
			fresh = append(fresh, n)
			number := maphash.String(l.seed, string(id))
			isNew, l.seen[number] = isNew || !l.seen[number], true
		case !had.SaysTheSame(n) && !l.split[id]:
			// Nobody can say which of the two is right, so neither is applied, and neither is acknowledged.
			l.split[id] = true
			l.addUnreadable(had.Raw)
			l.addUnreadable(raw)
		}
	}
	held, err := l.sift(slices.DeleteFunc(fresh, func(n archive.Notification) bool { return l.split[n.AcknowledgementID] }))
	for _, n := range held {
		l.first[n.AcknowledgementID] = n
		l.order = append(l.order, n.AcknowledgementID)
		l.collected += len(n.Raw)
	}
	return isNew, err
}

// addUnreadable counts a record that could not be read, once, and reports whether it is new.
func (l *listing) addUnreadable(raw []byte) bool {
	digest := archive.Sum(raw)
	isNew := !l.faulty[digest]
	l.faulty[digest] = true
	return isNew
}

// list returns what was collected, as a list that is not whole.
func (l *listing) list() archive.NotificationList {
	list := archive.NotificationList{Unreadable: len(l.faulty)}
	for _, id := range l.order {
		if !l.split[id] {
			list.Notifications = append(list.Notifications, l.first[id])
		}
	}
	return list
}

// page is one page of a list.
type page struct {
	records   []json.RawMessage
	more      bool // further pages follow
	tellsMore bool // the page says whether further pages follow
}

// readPage reads one page of a list. A bare array does not say whether it is the end.
func readPage(body []byte) (page, error) {
	if trimmed := bytes.TrimSpace(body); len(trimmed) > 0 && trimmed[0] == '[' {
		records, err := apicall.ReadRecords(trimmed)
		return page{records: records}, err
	}
	f, err := apicall.ReadFields(body, "hasMoreItems", "notifications")
	if err != nil {
		return page{}, err
	}
	list, told := f["notifications"]
	if !told {
		return page{}, apicall.ErrUnknownForm
	}
	var p page
	if err := json.Unmarshal(list, &p.records); err != nil {
		return page{}, fmt.Errorf("the list of notifications: %w", apicall.ErrUnknownForm)
	}
	switch f.Text("hasMoreItems") {
	case "true":
		p.more, p.tellsMore = true, true
	case "false":
		p.tellsMore = true
	}
	return p, nil
}

// Limits of one notification.
const (
	MaxDescription = 4 << 10 // bytes of its description
	maxPairs       = 100     // of its properties, and of its links
)

// ReadNotification reads a notification that was kept as it came, see [ReadNotification].
func (c *Client) ReadNotification(raw []byte) (archive.Notification, error) {
	return readNotification(raw)
}

// ReadNotification reads a notification as it came. It is what a list tells of it.
func ReadNotification(raw []byte) (archive.Notification, error) { return readNotification(raw) }

// readNotification reads one record of a list.
func readNotification(raw json.RawMessage) (archive.Notification, error) {
	f, err := apicall.ReadFields(raw, "bumid", "bumId", "documentType", "acknowledgementId", "acknowledgementID", "responseCode", "actionCode",
		"additionalActionProperties", "notificationCreated", "description", "links")
	if err != nil {
		return archive.Notification{}, err
	}
	ack, err := f.Either("acknowledgementId", "acknowledgementID")
	if err != nil {
		return archive.Notification{}, err
	}
	document, err := f.Either("bumid", "bumId")
	if err != nil {
		return archive.Notification{}, err
	}
	n := archive.Notification{DocumentType: f.Word("documentType"), Response: f.Word("responseCode"), Action: f.Word("actionCode"),
		Properties: readNamedValues(f["additionalActionProperties"]), Created: readEpoch(f.Text("notificationCreated")), Description: f.Text("description"),
		Links: readLinks(f["links"], "notification"), Raw: bytes.Clone(raw)}
	if n.AcknowledgementID, err = archive.ParseAcknowledgementID(apicall.ReadText(ack)); err != nil {
		return archive.Notification{}, err
	}
	if n.Document, err = archive.ParseRemoteID(apicall.ReadText(document)); err != nil {
		return archive.Notification{}, err
	}
	if len(n.Description) > MaxDescription || len(n.Properties) > maxPairs || len(n.Links) > maxPairs {
		return archive.Notification{}, errors.New("the notification is longer than one may be")
	}
	n.Kind = archive.ParseNetworkKind(n.DocumentType)
	if n.DocumentType == "" {
		n.Kind = archive.NetworkInvoice // the default of the specification
	}
	if note := n.CreditNote(); note != "" { // it is about the invoice, or the note, and it is the note that may be fetched
		n.Document, n.Kind = note, archive.NetworkCreditNote
	}
	return n, nil
}

// mostSeconds is the first number that is too large for a Unix time in seconds: it is 3000 years away. The same number of
// milliseconds was in 1973.
const mostSeconds = 1e11

// readEpoch reads a Unix time, in seconds, or in milliseconds or finer where the number is too large for seconds; also a time as
// people write it. Assumption: the specification only says Unix time. Any other text gives the zero time.
func readEpoch(text string) time.Time {
	text = strings.TrimSpace(text)
	if len(text) > 40 {
		return time.Time{}
	}
	if strings.Trim(text, "0123456789.eE+") != "" {
		return apicall.ParseTime(text)
	}
	seconds, err := strconv.ParseFloat(text, 64) // a time, and no amount
	if err != nil {
		return time.Time{}
	}
	for _, unit := range []float64{1, 1e3, 1e6, 1e9} {
		if s := seconds / unit; s > 0 && s < mostSeconds {
			return time.UnixMilli(int64(s * 1e3)).UTC()
		}
	}
	return time.Time{}
}
