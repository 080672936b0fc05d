package notices

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"slices"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// Arrivals is where received documents live.
type Arrivals interface {
	Arrival(key archive.Key) (a arrival.Arrival, ok bool, err error)
	FindArrival(kind arrival.Kind, item archive.ExtractID) (arrival.Arrival, bool, error)
	IsListUnfiltered() bool
	NoteListIsUnfiltered(ctx context.Context, isUnfiltered bool) error
}

// listed is what the network lists of one kind of document.
type listed struct {
	all    []archive.Notification             // about which something is left to do here
	done   map[archive.AcknowledgementID]bool // that are kept, and may be acknowledged; the network may list one in both lists
	byType map[archive.AcknowledgementID]bool // those that announce a document because of the list that they stand in
	other  int                                // that say something else than was kept under their number

	otherReceived int // likewise, in the list of received documents
}

// list lists the notifications of a kind. With TrustsType the list of received
// documents is asked for as well, and whatever it has announces one, unless it
// was seen to have others. Else only the code of a notification tells.
func (p *Poller) list(ctx context.Context, kind archive.NetworkKind, r *Round) (l listed, err error) {
	l.byType, l.done = map[archive.AcknowledgementID]bool{}, map[archive.AcknowledgementID]bool{}
	var received archive.NotificationList
	var failed error // of the question for received documents: what became of sent ones is asked for all the same
	if p.cfg.TrustsType && !p.ignoresType {
		received, failed = p.cfg.Service.ListReceived(ctx, kind, func(page []archive.Notification) ([]archive.Notification, error) {
			return p.siftReceived(page, &l)
		})
		if failed != nil && isNotOffered(failed) {
			failed = nil
		}
	}
	list, err := p.cfg.Service.List(ctx, kind, func(page []archive.Notification) ([]archive.Notification, error) { return p.sift(page, &l) })
	r.HasMore = r.HasMore || list.HasMore
	if err == nil {
		p.tellIncomplete(kind, list, max(list.Unreadable+l.other, received.Unreadable+l.otherReceived))
	}
	l.all = list.Notifications
	isTaken := map[archive.AcknowledgementID]bool{}
	for _, n := range l.all {
		isTaken[n.AcknowledgementID] = true
	}
	for _, n := range received.Notifications { // also those that were kept as foreign before
		if l.byType[n.AcknowledgementID] = p.trustsType; p.trustsType && !isTaken[n.AcknowledgementID] {
			l.all = append(l.all, n)
		}
	}
	return l, errors.Join(err, failed)
}

// sift returns those notifications of a page about which something is left to do: they are not kept yet, or were foreign and are not any
// more. What is kept takes no memory, however much of it nobody acknowledges.
func (p *Poller) sift(page []archive.Notification, l *listed) (left []archive.Notification, err error) {
	kept, err := p.cfg.Ledger.HeldNotices(idsOf(page))
	if err != nil {
		return nil, err
	}
	for _, n := range page {
		had, isKept := kept[n.AcknowledgementID]
		switch {
		case !isKept:
			left = append(left, n)
		case !p.saysWhatWasKept(n, had):
			l.other++ // nobody can say which of the two is right
		case !had.IsForeign():
			if err := p.noteKept(had, l); err != nil {
				return nil, err
			}
		default:
			isForeign, err := p.isForeign(n)
			if err != nil {
				return nil, err
			}
			if !isForeign {
				left = append(left, n)
			}
		}
	}
	return left, nil
}

// siftReceived leaves out what is kept for a document. A second notification that announces one may stand in no other list: it may be
// acknowledged once the document's own is.
func (p *Poller) siftReceived(page []archive.Notification, l *listed) (left []archive.Notification, err error) {
	kept, err := p.cfg.Ledger.HeldNotices(idsOf(page))
	if err != nil {
		return nil, err
	}
	for _, n := range page {
		had, isKept := kept[n.AcknowledgementID]
		switch {
		case !isKept || had.IsForeign():
			left = append(left, n)
		case !p.saysWhatWasKept(n, had):
			l.otherReceived++
		default:
			if err := p.noteKept(had, l); err != nil {
				return nil, err
			}
		}
	}
	return left, nil
}

// checkTrust looks, before anything is concluded from the list of received documents, for the proof that the network ignores the question for them: the
// list has a notification about a sent document. Then it says nothing any more: who believed it would take what is about documents of other programs, and
// delete it at the network. What was seen is kept until the list is not to be believed any more, because the proof goes as it is acknowledged.
func (p *Poller) checkTrust(ctx context.Context) (err error) {
	p.trustsType = false
	if p.cfg.Arrivals == nil {
		return nil
	}
	p.ignoresType = p.cfg.Arrivals.IsListUnfiltered()
	if !p.cfg.TrustsType && p.ignoresType {
		p.ignoresType = false
		return p.cfg.Arrivals.NoteListIsUnfiltered(ctx, false)
	}
	if !p.cfg.TrustsType || p.ignoresType {
		return nil
	}
	proof, isRead := p.lookForSent(ctx)
	if proof == "" {
		p.trustsType = isRead
		return nil
	}
	p.cfg.Log.Error("the list of received documents has notifications about sent ones: the network ignores the question, so network.announced_by: type is not followed", "notification", proof)
	p.ignoresType = true
	// Before anything is concluded: after a crash the next round sees the proof again, or this.
	return p.cfg.Arrivals.NoteListIsUnfiltered(ctx, true)
}

// lookForSent reads the lists of received documents of all kinds: the proof may stand in one of them alone. isRead is false where one was not read; this round then
// believes neither, and its own question for that list tells why.
func (p *Poller) lookForSent(ctx context.Context) (proof archive.AcknowledgementID, isRead bool) {
	isRead = true
	for _, kind := range kinds {
		_, err := p.cfg.Service.ListReceived(ctx, kind, func(page []archive.Notification) ([]archive.Notification, error) {
			for _, n := range page {
				_, isSent, err := p.findDocument(n.Document)
				if err != nil {
					return nil, err
				}
				if isSent || n.IsAboutSent() {
					proof = n.AcknowledgementID
				}
			}
			return nil, nil
		})
		isRead = isRead && err == nil
	}
	return proof, isRead
}

func idsOf(all []archive.Notification) (ids []archive.AcknowledgementID) {
	for _, n := range all {
		ids = append(ids, n.AcknowledgementID)
	}
	return ids
}

// saysWhatWasKept reports whether a notification tells the same event as what was kept under its number.
func (p *Poller) saysWhatWasKept(n archive.Notification, had ledger.Notice) bool {
	if bytes.Equal(n.Raw, had.Raw) {
		return true
	}
	before, err := p.cfg.Service.ReadNotification(had.Raw)
	return err == nil && before.SaysTheSame(n)
}

// isForeign reports whether a notification is about no document of this ledger, and announces none by its codes.
func (p *Poller) isForeign(n archive.Notification) (bool, error) {
	_, found, err := p.findDocument(n.Document)
	if found || err != nil || p.cfg.Arrivals == nil {
		return !found, err
	}
	_, found, err = p.cfg.Arrivals.FindArrival(arrival.Received, archive.ExtractID(n.Document))
	return !found && (n.Kind == "" || !n.Announces()), err
}

// isNotOffered reports whether the network does not know the question for
// received documents. Then the codes alone tell of them.
func isNotOffered(err error) bool {
	return slices.Contains([]int{http.StatusBadRequest, http.StatusUnprocessableEntity}, apicall.AsError(err).Status)
}

// announces reports whether a notification about a document that is not ours says that the document came in.
func (l listed) announces(n archive.Notification) bool {
	return n.Kind != "" && (n.Announces() || l.byType[n.AcknowledgementID])
}

// keepOthers keeps notifications about documents that were not sent from here, and returns those that may be acknowledged: they are about a
// document whose own notification was. The others of received documents are acknowledged when that is, and foreign ones never.
func (p *Poller) keepOthers(ctx context.Context, others []archive.Notification, l listed) (done []archive.AcknowledgementID, err error) {
	if len(others) == 0 {
		return nil, nil
	}
	var all []ledger.OtherNotice
	for _, n := range others {
		one := ledger.OtherNotice{Notification: n}
		if p.cfg.Arrivals != nil && l.announces(n) {
			one.Key = archive.NewKey(p.cfg.Now().Wall)
		}
		all = append(all, one)
	}
	// One commit: after a crash the notifications are listed again, or they and
	// their arrivals are there.
	about, err := p.cfg.Ledger.KeepNotices(ctx, p.cfg.Now(), all)
	for _, n := range others {
		if about[n.AcknowledgementID].State == arrival.Acknowledged && p.cfg.Arrivals != nil {
			done = append(done, n.AcknowledgementID)
		}
	}
	return done, err
}

// noteKept notes of a notification that is kept for a document whether it may be acknowledged: one about a received document waits until that is done.
func (p *Poller) noteKept(had ledger.Notice, l *listed) error {
	isDone, err := !had.Entry.IsZero(), error(nil)
	if !isDone {
		isDone, err = p.isReceiptDone(had)
	}
	if isDone {
		l.done[had.ID] = true
	}
	return err
}

// isReceiptDone reports whether a notification about a received document may be acknowledged.
func (p *Poller) isReceiptDone(n ledger.Notice) (bool, error) {
	if p.cfg.Arrivals == nil {
		return false, nil
	}
	a, known, err := p.cfg.Arrivals.Arrival(n.Arrival)
	return known && a.State == arrival.Acknowledged, err
}
