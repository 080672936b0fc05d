package boltledger

import (
	"context"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// KeepReceivedNotices keeps notifications about received documents, each as it came, and makes an arrival of each document that one of
// them announces and that is not known. All of them are one commit, so that a hundred of them cost one sync. Those that are kept for a
// document already stay as they are. It returns the arrivals that they are about; a notification about none of them is not kept.
func (l *Ledger) KeepReceivedNotices(ctx context.Context, at archive.Instant, all []ledger.ReceivedNotice) (about map[archive.AcknowledgementID]arrival.Arrival, err error) {
	// The committer writes kept before it answers. If the caller stopped
	// waiting, nobody reads it.
	kept := map[archive.AcknowledgementID]arrival.Arrival{}
	// A crash before the commit leaves nothing, and the network lists the notifications again. After it their arrivals are due.
	err = l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		for _, n := range all {
			if refused, err := g.keepReceivedNotice(at, n, kept); refused != nil || err != nil {
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

// keepReceivedNotice keeps one notification, and adds the arrival that it is about to kept.
func (g *groupCommit) keepReceivedNotice(at archive.Instant, r ledger.ReceivedNotice, kept map[archive.AcknowledgementID]arrival.Arrival) (refused, err error) {
	n := r.Notification
	a, known, err := g.findReceived(n.Document)
	if err != nil || !known && r.Key.IsZero() {
		return nil, err
	}
	if !known {
		announced := arrival.DocumentAnnounced{Document: n.Document, Kind: n.Kind, Notice: n.AcknowledgementID}
		refused, err := g.applyArrival(arrival.Change{Key: r.Key, Events: []arrival.Event{announced}, At: at}, &a)
		if refused != nil || err != nil {
			return refused, err
		}
	}
	kept[n.AcknowledgementID] = a
	had, isKept, err := readNotice(g.tx, n.AcknowledgementID)
	if err != nil || isKept && !had.IsForeign() {
		return nil, err
	}
	// The document that it announces is received; another word about a document
	// that came in calls an operator.
	if err := g.noteAsking(n.AcknowledgementID, n.AsksPerson() && a.Notice != n.AcknowledgementID); err != nil {
		return nil, err
	}
	return nil, g.storeNotices([]ledger.Notice{{ID: n.AcknowledgementID, Arrival: a.Key, Seen: at.Wall.Round(0).UTC(), Raw: n.Raw, Unknown: n.Meaning() == archive.MeansUnfamiliar}})
}

// NoteListIsUnfiltered keeps whether the network was seen to list what is about sent documents where it is asked for received ones. It returns when that is durable.
func (l *Ledger) NoteListIsUnfiltered(ctx context.Context, isUnfiltered bool) error {
	return l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		// A crash before the commit forgets what was seen, and nothing was concluded from that list.
		if !isUnfiltered {
			return nil, g.tx.Bucket(metaBucket).Delete(unfilteredKey)
		}
		return nil, g.tx.Bucket(metaBucket).Put(unfilteredKey, []byte{1})
	})
}

// IsListUnfiltered reports what NoteListIsUnfiltered kept.
func (l *Ledger) IsListUnfiltered() (isUnfiltered bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		isUnfiltered = tx.Bucket(metaBucket).Get(unfilteredKey) != nil
		return nil
	})
	return isUnfiltered, err
}

// findReceived returns the arrival of a received document, as the commit has it so far.
func (g *groupCommit) findReceived(document archive.RemoteID) (a arrival.Arrival, known bool, err error) {
	key := g.tx.Bucket(arrivalIndexBucket).Get(itemName(arrival.Received, archive.ExtractID(document)))
	if key == nil {
		return a, false, nil
	}
	return readArrival(g.tx, archive.Key(key))
}
