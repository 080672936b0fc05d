package boltledger

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// addNotice adds a notification to the commit of its event. One that was kept
// for an entry before is refused.
func (g *groupCommit) addNotice(d *draft, after ledger.Entry, n archive.Notification) error {
	had, known, err := readNotice(g.tx, n.AcknowledgementID)
	switch {
	case err != nil:
		return err
	case known && !had.Entry.IsZero() || slices.ContainsFunc(d.notices, func(o ledger.Notice) bool { return o.ID == n.AcknowledgementID }):
		return &ledger.TakenError{What: ledger.TakenNotification, By: cmp.Or(had.Entry, after.Key)}
	}
	notice := newNotice(n, d.at)
	notice.Entry = after.Key
	d.notices = append(d.notices, notice)
	return nil
}

// newNotice returns the record of a notification, for now about nothing.
func newNotice(n archive.Notification, seen time.Time) ledger.Notice {
	return ledger.Notice{ID: n.AcknowledgementID, Seen: seen.Round(0).UTC(), Raw: n.Raw, Unknown: n.Meaning() == archive.MeansUnfamiliar}
}

func readNotice(tx *bbolt.Tx, id archive.AcknowledgementID) (n ledger.Notice, ok bool, err error) {
	record := tx.Bucket(noticeBucket).Get([]byte(id))
	if record == nil {
		return n, false, nil
	}
	n, err = decodeNotice([]byte(id), record)
	return n, err == nil, err
}

// decodeNotice reads a record that lies under a notification's number.
func decodeNotice(id, record []byte) (ledger.Notice, error) {
	n, err := noticeForm.decode(record)
	if err == nil && string(n.ID) != string(id) {
		err = fmt.Errorf("holds the notification %q", n.ID)
	}
	if err != nil {
		return n, damage("%s %q: %v", noticeBucket, id, err)
	}
	return n, nil
}

// storeNotice stores a notification, and notes whether it waits for an operator.
func (g *groupCommit) storeNotice(n ledger.Notice, asks bool) error {
	index := g.tx.Bucket(indexBucket)
	err := index.Delete(askingName(n.ID))
	if err == nil && asks {
		err = index.Put(askingName(n.ID), nil)
	}
	if err != nil {
		return err
	}
	return putValue(g.tx, noticeBucket, []byte(n.ID), noticeForm.encodeDeflated(&n))
}

func askingName(id archive.AcknowledgementID) []byte { return append([]byte{askingNotice}, id...) }

// KeepNotices keeps notifications that are about no document that was sent,
// each as it came, and makes an arrival of each document that one of them
// announces and that is not known. All of them are one commit, so that a
// hundred of them cost one sync. Those that are kept for a document already
// stay as they are. It returns the arrivals that they are about; a notification
// about none of them is foreign.
func (l *Ledger) KeepNotices(ctx context.Context, at archive.Instant, all []ledger.OtherNotice) (about map[archive.AcknowledgementID]arrival.Arrival, err error) {
	// The committer writes kept before it answers. If the caller stopped
	// waiting, nobody reads it.
	kept := map[archive.AcknowledgementID]arrival.Arrival{}
	// A crash before the commit leaves nothing, and the network lists the
	// notifications again. After it their arrivals are due.
	err = l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		for _, n := range all {
			if refused, err := g.keepNotice(at, n, kept); refused != nil || err != nil {
				return refused, err
			}
		}
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return kept, nil
}

// keepNotice keeps one notification, and adds the arrival that it is about to kept.
func (g *groupCommit) keepNotice(at archive.Instant, o ledger.OtherNotice, kept map[archive.AcknowledgementID]arrival.Arrival) (refused, err error) {
	n := o.Notification
	a, isReceived, err := findArrival(g.tx, itemName(arrival.Received, archive.ExtractID(n.Document)))
	if err != nil {
		return nil, err
	}
	if !isReceived && !o.Key.IsZero() {
		announced := arrival.DocumentAnnounced{Document: n.Document, Kind: n.Kind, Notice: n.AcknowledgementID}
		refused, err := g.applyArrival(arrival.Change{Key: o.Key, Events: []arrival.Event{announced}, At: at}, &a)
		if refused != nil || err != nil {
			return refused, err
		}
		isReceived = true
	}
	if isReceived {
		kept[n.AcknowledgementID] = a
	}
	had, isKept, err := readNotice(g.tx, n.AcknowledgementID)
	if err != nil || isKept && !(isReceived && had.IsForeign()) {
		return nil, err
	}
	notice := newNotice(n, at.Wall)
	notice.Arrival = a.Key
	// The document that it announces is received; another word about a document
	// that came in calls an operator.
	return nil, g.storeNotice(notice, n.AsksPerson() && a.Notice != n.AcknowledgementID)
}

// HeldNotices returns those of the notifications that are kept, by their numbers.
func (l *Ledger) HeldNotices(ids []archive.AcknowledgementID) (held map[archive.AcknowledgementID]ledger.Notice, err error) {
	held = map[archive.AcknowledgementID]ledger.Notice{}
	err = l.view(func(tx *bbolt.Tx) error {
		for _, id := range ids {
			switch n, ok, err := readNotice(tx, id); {
			case err != nil:
				return err
			case ok:
				held[id] = n
			}
		}
		return nil
	})
	return held, err
}

// Notices calls fn with each notice that is kept, in the order of their numbers at the network. It reads in parts: one that is added
// meanwhile may be left out.
func (l *Ledger) Notices(fn func(ledger.Notice) error) error {
	r := reading[ledger.Notice]{what: "notices", buckets: [][]byte{noticeBucket}, decode: func(_ *bbolt.Tx, _, k, v []byte) (ledger.Notice, error) { return decodeNotice(k, v) }}
	return r.each(l, fn)
}

// mostAsking bounds the notices that are shown as waiting for an operator.
const mostAsking = 1000

// AskingNotices returns the kept notices upon which an operator must act and
// that are about no document that was sent, see
// [archive.Notification.AsksPerson]: of a sent one its entry says so. They stay
// until they are closed.
func (l *Ledger) AskingNotices() (ids []archive.AcknowledgementID, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		c := tx.Bucket(indexBucket).Cursor()
		for k, _ := c.Seek(askingName("")); bytes.HasPrefix(k, askingName("")) && len(ids) < mostAsking; k, _ = c.Next() {
			ids = append(ids, archive.AcknowledgementID(k[1:]))
		}
		return nil
	})
	return ids, err
}

// CloseNotice ends that a notice waits for an operator, with a line of the
// journal about the document that it names. The error wraps [ledger.ErrIllegal]
// where it does not wait.
func (l *Ledger) CloseNotice(ctx context.Context, id archive.AcknowledgementID, about archive.RemoteID, by ledger.Operator, note *ledger.Note, at time.Time) error {
	// One commit: after a crash the act is in the journal and the notice is closed, or neither.
	return l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		if g.tx.Bucket(indexBucket).Get(askingName(id)) == nil {
			return fmt.Errorf("close the notification %q: it does not wait for a person: %w", id, ledger.ErrIllegal), nil
		}
		refused, err = markRequest{mark: ledger.Mark{Name: ledger.MarkNoticeClosed, Remote: about, By: by, At: at}, note: note}.apply(g)
		if refused != nil || err != nil {
			return refused, err
		}
		return nil, g.tx.Bucket(indexBucket).Delete(askingName(id))
	})
}

// NoteListIsUnfiltered keeps whether the network was seen to list what is about
// sent documents where it is asked for received ones. It returns when that is
// durable.
func (l *Ledger) NoteListIsUnfiltered(ctx context.Context, isUnfiltered bool) error {
	return l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		// A crash before the commit forgets what was seen, and nothing was
		// concluded from that list.
		g.Unfiltered = isUnfiltered
		return nil, nil
	})
}

// IsListUnfiltered reports what NoteListIsUnfiltered kept.
func (l *Ledger) IsListUnfiltered() bool { return l.committed().Unfiltered }
