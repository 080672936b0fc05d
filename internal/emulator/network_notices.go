package emulator

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"
)

// creditNodeWord is how the specification spells the documentType of credit notes in notifications.
const creditNodeWord = "CreditNode"

// documentTypes are the types of documents that notifications are about, as the query names them.
var documentTypes = []string{invoiceKind, creditNodeWord, "Order", "OrderCancellation", "OrderChange", "Catalogue"}

const maxNoticePage = 5000 // notifications of one page

// noticeQuery is what a list of notifications is asked for.
type noticeQuery struct {
	page, pageSize int
	documentType   string // empty: all
	onlyReceived   bool   // announcements of received documents alone
}

// parseNoticeQuery reads the query of a list; problem is what is wrong with it.
func (c *call) parseNoticeQuery() (q noticeQuery, problem *networkProblem) {
	values, err := url.ParseQuery(c.URL.RawQuery)
	if err != nil {
		return q, &networkProblem{wrongField, "", "the query is not readable"}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if len(values[name]) > 1 {
			return q, &networkProblem{wrongField, name, "the parameter occurs twice"}
		}
	}
	var errPage, errSize error
	q.page, errPage = strconv.Atoi(values.Get("page"))
	q.pageSize, errSize = strconv.Atoi(values.Get("pageSize"))
	q.documentType = values.Get("documentType")
	announced, reading := values.Get("type"), c.reading.Network
	q.onlyReceived = announced != "" && (reading.Received == "type" || reading.Received == "filter")
	switch {
	case errPage != nil || q.page < 1:
		return q, &networkProblem{wrongField, "page", "the parameter must be a number from 1"}
	case errSize != nil || q.pageSize < 1 || q.pageSize > maxNoticePage:
		return q, &networkProblem{wrongField, "pageSize", "the parameter must be a number from 1 to 5000"}
	case announced != "" && reading.Received == "code-only":
		return q, &networkProblem{wrongField, "type", "the parameter is unknown"}
	case q.onlyReceived && announced != "DocumentsReceived":
		return q, &networkProblem{wrongField, "type", "the parameter has an unknown value"}
	case q.documentType == reading.CreditNoteWord:
		q.documentType = creditNodeWord
	case values.Has("documentType") && !slices.Contains(documentTypes, q.documentType):
		return q, &networkProblem{wrongField, "documentType", "the parameter is no type of documents"}
	}
	return q, nil
}

// wants reports whether a list has a notification.
func (q noticeQuery) wants(c *call, n *NetworkNotice) bool {
	told := n.DocumentType
	if told == creditNoteKind {
		told = creditNodeWord
	}
	if q.documentType != "" && q.documentType != told {
		return false
	}
	if c.reading.Network.Received == "filter" {
		return n.Announces || !q.onlyReceived
	}
	return c.reading.Network.Received != "type" || n.Announces == q.onlyReceived
}

// listNotices answers with one page of the notifications that nobody acknowledged. A page is cut from what waits now, so that an
// acknowledgement shifts all pages after it.
func (s *Server) listNotices(c *call) reply {
	q, problem := c.parseNoticeQuery()
	if problem != nil {
		return c.refuseProblems([]networkProblem{*problem})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*NetworkNotice
	for _, n := range s.state.network.listed(c.now) {
		if q.wants(c, n) {
			all = append(all, n)
		}
	}
	page, hasMore, err := s.cutPage(c, all, q)
	if err != nil {
		return reply{}
	}
	items := []any{}
	for _, n := range page {
		c.record.BumIDs = append(c.record.BumIDs, n.BumID)
		items = append(items, s.noticeAnswer(c, n))
	}
	return jsonReply(map[string]any{"hasMoreItems": hasMore, "notifications": items})
}

// cutPage cuts a page from the notifications and applies the faults that only this answer can have. The caller holds mu.
func (s *Server) cutPage(c *call, all []*NetworkNotice, q noticeQuery) (page []*NetworkNotice, hasMore bool, err error) {
	number := q.page
	if c.fault.Kind == RepeatPage {
		number = max(number-1, 1)
	}
	from := min((number-1)*q.pageSize, len(all))
	to := min(from+q.pageSize, len(all))
	page, hasMore = slices.Clone(all[from:to]), to < len(all)
	switch c.fault.Kind {
	case RepeatPage:
		hasMore = hasMore || number < q.page
	case EmptyPage:
		return nil, true, nil
	case ShortPage:
		return page[:min(1, len(page))], hasMore || len(page) > 1, nil
	case HideNotices:
		return nil, false, nil
	case ShowOldOnes:
		if old := s.state.network.lastAcknowledged; old != nil && q.wants(c, old) {
			page = append(page, old)
		}
	case WrongMore:
		return page, !hasMore, nil
	case SwapNotices:
		slices.Reverse(page)
	case RepeatNotice:
		if len(page) == 0 {
			return page, hasMore, nil
		}
		again := *page[s.rng.Uint64()%uint64(len(page))]
		again.AcknowledgementID, again.At = s.newUUID(), c.now
		if err := s.commitLines(journalLine{Time: c.now, Kind: kindNetworkNotices, Network: &networkLine{Notices: []NetworkNotice{again}}}); err != nil {
			return nil, false, err
		}
		page = append(page, s.state.network.byAck[again.AcknowledgementID])
	}
	return page, hasMore, nil
}

// noticeAnswer is a notification as a list tells it. The caller holds mu.
func (s *Server) noticeAnswer(c *call, n *NetworkNotice) map[string]any {
	documentType, responseCode, actionCode := n.DocumentType, n.ResponseCode, n.ActionCode
	if documentType == creditNoteKind {
		documentType = c.reading.Network.CreditNoteWord
	}
	if n.Announces && responseCode == "" {
		responseCode, actionCode = "TechnicalInformation", "Received"
		if c.reading.Network.Received == "type" || c.reading.Network.Received == "filter" {
			responseCode, actionCode = "TechnicalAccept", "Delivered"
		}
	}
	created := strconv.FormatInt(n.At.Unix(), 10)
	if c.reading.Network.Times == "milliseconds" {
		created = strconv.FormatInt(n.At.UnixMilli(), 10)
	}
	links := []any{map[string]any{"rel": "notification", "href": c.linkBase() + "/v1.1/notifications/" + n.AcknowledgementID, "method": "DELETE"}}
	if n.DocumentType == invoiceKind || n.DocumentType == creditNoteKind {
		links = append(links, map[string]any{"rel": "businessDocument", "href": c.linkBase() + s.cfg.documentPath(n.DocumentType) + "/" + cmp.Or(n.LinksTo, n.BumID), "method": "GET"})
	}
	answer := map[string]any{"bumid": n.BumID, "documentType": documentType, "acknowledgementId": n.AcknowledgementID,
		"responseCode": responseCode, "responseType": responseType, "actionCode": actionCode, "actionType": actionType, "notificationCreated": created}
	var properties []NoticeProperty
	for _, p := range n.Properties {
		named := c.reading.Network.Validation
		if p.Name == validationFileReference && named != "property" {
			links = append(links, map[string]any{"rel": "validationFile", "href": c.linkBase() + "/files/" + p.Value, "method": "GET"})
		}
		if p.Name != validationFileReference || named != "link" {
			properties = append(properties, p)
		}
	}
	if len(properties) > 0 {
		answer["additionalActionProperties"] = properties
	}
	if text := n.Description; text != "" {
		answer["description"] = text
	} else if text := descriptionOf(actionCode); text != "" {
		answer["description"] = text
	}
	answer["links"] = links
	return answer
}

const (
	responseType = "BCN:responsecode-v1"
	actionType   = "BCN:actioncode-v1"
)

// acknowledgeNotice hides a notification. It is a violation where that loses something: a received document that was not sent whole, or the
// word about a document that is nobody's here.
func (s *Server) acknowledgeNotice(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.state.network.byAck[c.PathValue("id")]
	if n == nil || n.listedFrom().After(c.now) || n.IsAcknowledged && c.reading.Network.RepeatedDelete == "404" {
		return c.refusal(http.StatusNotFound, "NOT_FOUND", "no notification with this id")
	}
	c.record.BumIDs = []string{n.BumID}
	if n.IsAcknowledged {
		return reply{status: http.StatusOK}
	}
	d := s.state.network.documents[n.BumID]
	switch {
	case d == nil:
		s.recordViolationLocked(c, "notification %s was acknowledged, and its document %s is not the client's", n.AcknowledgementID, n.BumID)
	case d.isReceived && !d.wasSent:
		s.recordViolationLocked(c, "notification %s was acknowledged before its document %s was sent", n.AcknowledgementID, n.BumID)
	case d.isReceived:
		if i := slices.IndexFunc(d.files, func(f *NetworkFile) bool { return !f.WasSent }); i >= 0 {
			s.recordViolationLocked(c, "notification %s was acknowledged before file %s of its document %s was sent", n.AcknowledgementID, d.files[i].ID, n.BumID)
		}
	}
	if err := s.commitLines(journalLine{Time: c.now, Kind: kindNetworkAcknowledged, Network: &networkLine{Acknowledged: n.AcknowledgementID}}); err != nil {
		return reply{}
	}
	return reply{status: http.StatusOK}
}

// noticeFields are the fields that a client may post in a notification.
var noticeFields = []string{"bumid", "documentType", "acknowledgementId", "responseCode", "responseType", "actionCode", "actionType",
	"additionalActionProperties", "notificationCreated", "description"}

// clientPairs are the pairs of codes that a client may post about a document that it received.
var clientPairs = []string{"TechnicalAccept DeliveryConfirmed", "TechnicalReject Undelivered", "BusinessAccept DocumentAccepted", "BusinessReject DocumentRejected"}

var epochPattern = regexp.MustCompile(`^[0-9]{9,10}([0-9]{3})?$`)

// takeNotice takes a notification that the client posts about a document that it received. It is not idempotent: each is kept, with the
// account that posted it.
func (s *Server) takeNotice(c *call) reply {
	if t, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err != nil || t != "application/json" {
		rep := c.networkRefusal("Error.004.0004", "Content-Type must be application/json")
		rep.status = http.StatusUnsupportedMediaType
		return rep
	}
	body, tooLong, err := readBody(c.Request, maxSlotBody)
	if err != nil {
		return reply{} // the client went away in the middle: there is nobody to answer
	}
	var have map[string]json.RawMessage
	if tooLong || !utf8.Valid(body) || json.Unmarshal(body, &have) != nil || have == nil || hasTwins(body) {
		return c.networkRefusal("Error.004.0004", "the body is not one JSON object")
	}
	n, problem := parsePostedNotice(have)
	if problem != nil {
		return c.refuseProblems([]networkProblem{*problem})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.record.BumIDs = []string{n.BumID}
	d := s.state.network.documents[n.BumID]
	switch {
	case d == nil:
		return c.networkRefusal("Error.003.0001", "no document with this bumId")
	case !d.isReceived:
		return c.refusal(http.StatusForbidden, "AccessDenied", "User is not authorized to access this resource")
	case n.DocumentType != d.kind && have["documentType"] != nil:
		return c.refuseProblems([]networkProblem{{wrongField, "documentType", "the document is of another type"}})
	}
	n.DocumentType, n.At, n.By = d.kind, c.now, c.account
	// A kill after this line and before the answer leaves a notification that the client may post again.
	if err := s.commitLines(journalLine{Time: c.now, Kind: kindNetworkNotified, BumID: n.BumID, Network: &networkLine{Notices: []NetworkNotice{n}}}); err != nil {
		return reply{}
	}
	return reply{status: http.StatusCreated}
}

// parsePostedNotice reads a notification that a client posts. It may have no field that is not listed.
func parsePostedNotice(have map[string]json.RawMessage) (n NetworkNotice, problem *networkProblem) {
	texts := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if !slices.Contains(noticeFields, name) {
			return n, &networkProblem{wrongField, name, "the field is unknown"}
		}
		if name == "additionalActionProperties" {
			if err := parseProperties(have[name], &n.Properties); err != nil {
				return n, &networkProblem{wrongField, name, "the field must be an array of objects with name and value"}
			}
			continue
		}
		text, ok := asString(have[name])
		if !ok {
			return n, &networkProblem{wrongField, name, "the field must be a text"}
		}
		texts[name] = text
	}
	n = NetworkNotice{AcknowledgementID: texts["acknowledgementId"], BumID: texts["bumid"], DocumentType: texts["documentType"], ResponseCode: texts["responseCode"],
		ActionCode: texts["actionCode"], Description: texts["description"], Properties: n.Properties}
	if have["actionCode"] == nil {
		n.ActionCode = "Delivered"
	}
	if n.DocumentType == creditNodeWord {
		n.DocumentType = creditNoteKind
	}
	return n, problemOfNotice(n, texts)
}

// problemOfNotice returns what is wrong with the values of a posted notification, or nil.
func problemOfNotice(n NetworkNotice, texts map[string]string) *networkProblem {
	isOther := func(name, only string) bool { text, told := texts[name]; return told && text != only }
	switch {
	case !bumIDPattern.MatchString(n.BumID):
		return &networkProblem{"Error.004.0003", "bumid", "the format of the bumId is invalid"}
	case texts["documentType"] != "" && !slices.Contains([]string{invoiceKind, creditNodeWord, "Order", "Catalogue"}, texts["documentType"]):
		return &networkProblem{wrongField, "documentType", "the field is no type of documents"}
	case n.AcknowledgementID != "" && !isUUID(n.AcknowledgementID):
		return &networkProblem{wrongField, "acknowledgementId", "the field must be a UUID"}
	case isOther("responseType", responseType) || isOther("actionType", actionType):
		return &networkProblem{wrongField, "responseType", "the type of the codes is unknown"}
	case !epochPattern.MatchString(texts["notificationCreated"]):
		return &networkProblem{wrongField, "notificationCreated", "the field must be a time in seconds or milliseconds since 1970"}
	case !slices.Contains(clientPairs, n.ResponseCode+" "+n.ActionCode):
		return &networkProblem{wrongField, "actionCode", "a client may not post this pair of codes"}
	}
	return nil
}

func parseProperties(raw json.RawMessage, to *[]NoticeProperty) error {
	var items []map[string]string
	if err := json.Unmarshal(raw, &items); err != nil {
		return err
	}
	for _, item := range items {
		name, hasName := item["name"]
		value, hasValue := item["value"]
		if !hasName || !hasValue || len(item) != 2 {
			return errors.New("not a name and a value")
		}
		*to = append(*to, NoticeProperty{name, value})
	}
	return nil
}
