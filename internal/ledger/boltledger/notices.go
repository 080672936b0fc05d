package boltledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// keepNotice keeps the record of a notification in the commit of its event. One that was kept for an entry before is refused.
func (g *groupCommit) keepNotice(d *draft, after ledger.Entry, n archive.Notification) error {
	had, known, err := readNotice(g.tx, n.AcknowledgementID)
	switch {
	case err != nil:
		return err
	case known && !had.Entry.IsZero() || slices.ContainsFunc(d.notices, func(o ledger.Notice) bool { return o.ID == n.AcknowledgementID }):
		return &ledger.TakenError{What: ledger.TakenNotification, By: cmp.Or(had.Entry, after.Key)}
	}
	d.notices = append(d.notices, ledger.Notice{ID: n.AcknowledgementID, Entry: after.Key, Seen: d.at, Raw: n.Raw, Unknown: n.Meaning() == archive.MeansUnfamiliar})
	return nil
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

func (g *groupCommit) storeNotices(all []ledger.Notice) error {
	for _, n := range all {
		if err := putValue(g.tx, noticeBucket, []byte(n.ID), noticeForm.encodeDeflated(len(n.Raw)+usualRecord, &n)); err != nil {
			return err
		}
		if !n.Entry.IsZero() { // the entry says it
			if err := g.noteAsking(n.ID, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// KeepForeignNotices keeps notifications about documents that are not of this ledger. Those that are kept already stay as they are. All of
// them are one commit.
func (l *Ledger) KeepForeignNotices(ctx context.Context, seen time.Time, all []archive.Notification) error {
	return l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		var fresh []ledger.Notice
		for _, n := range all {
			_, known, err := readNotice(g.tx, n.AcknowledgementID)
			if err != nil {
				return nil, err
			}
			if !known {
				fresh = append(fresh, ledger.Notice{ID: n.AcknowledgementID, Seen: seen.Round(0).UTC(), Raw: n.Raw, Unknown: n.Meaning() == archive.MeansUnfamiliar})
				if err := g.noteAsking(n.AcknowledgementID, n.AsksPerson()); err != nil {
					return nil, err
				}
			}
		}
		return nil, g.storeNotices(fresh)
	})
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
	return r.inParts(l.view, oneByOne(fn))
}
