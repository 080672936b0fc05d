package boltledger_test

import (
	"fmt"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// Every arrival is seen once, the newest first, also where they are more than
// one part.
func TestArrivalsNewestFirst_EachOnce(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	const many = 600
	var all []boltledger.ReceivedNotice
	for n := range many {
		ack := archive.AcknowledgementID(fmt.Sprint("ack-", n))
		all = append(all, boltledger.ReceivedNotice{Notification: archive.Notification{AcknowledgementID: ack, Document: archive.RemoteID(fmt.Sprint("bum-", n)), Kind: archive.NetworkInvoice, Raw: []byte(ack)}, Key: archive.Key{1, byte(n >> 8), byte(n)}})
	}
	kit.Value(l.KeepReceivedNotices(t.Context(), archive.Instant{Wall: began}, all))(t)
	next := many
	err := l.ArrivalsNewestFirst(func(a arrival.Arrival) error {
		if next--; a.Item != archive.ExtractID(fmt.Sprint("bum-", next)) {
			return fmt.Errorf("%s in the place of %d", a.Item, next)
		}
		return nil
	})
	kit.Check(t, err == nil && next == 0, "%d arrivals are missing (%v), want none", next, err)
}

// I30, I5: a notification and the arrival that it announces are one commit,
// once for each document, and are there after a reopening.
func TestKeepReceivedNotices_I30_OneArrivalForOneDocument(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	of := func(ack, document string, key archive.Key) boltledger.ReceivedNotice {
		n := archive.Notification{AcknowledgementID: archive.AcknowledgementID(ack), Document: archive.RemoteID(document), Kind: archive.NetworkInvoice, Raw: []byte(ack)}
		return boltledger.ReceivedNotice{Notification: n, Key: key}
	}
	at := archive.Instant{Wall: began.Add(time.Hour)}
	// It was foreign while nothing was received.
	kit.Must(t, l.KeepForeignNotices(t.Context(), began, []archive.Notification{of("a1", "bum-1", archive.Key{}).Notification, of("a9", "bum-9", archive.Key{}).Notification}))
	before := l.Head()
	about, err := l.KeepReceivedNotices(t.Context(), at, []boltledger.ReceivedNotice{
		of("a1", "bum-1", archive.Key{1}), of("a2", "bum-1", archive.Key{2}), of("a3", "bum-3", archive.Key{3}), of("a9", "bum-9", archive.Key{}),
	})
	if err != nil || len(about) != 3 || about["a1"].Key != (archive.Key{1}) || about["a2"].Key != (archive.Key{1}) || about["a3"].Key != (archive.Key{3}) {
		t.Fatalf("arrivals of the notifications = %v (%v), want the first key of each document", about, err)
	}
	kit.Want(t, "lines of two arrivals", l.Head().N-before.N, 2)
	// The same again, with other keys, changes nothing.
	before = l.Head()
	if about, err = l.KeepReceivedNotices(t.Context(), at, []boltledger.ReceivedNotice{of("a1", "bum-1", archive.Key{4}), of("a3", "bum-3", archive.Key{})}); err != nil || len(about) != 2 || l.Head() != before {
		t.Errorf("arrivals of the same notifications = %v (%v), want both, and no new line", about, err)
	}
	for range 2 {
		held, err := l.HeldNotices([]archive.AcknowledgementID{"a1", "a2", "a3", "a9"})
		if err != nil || held["a1"].Arrival != (archive.Key{1}) || held["a2"].Arrival != (archive.Key{1}) || held["a3"].IsForeign() || !held["a9"].IsForeign() {
			t.Errorf("held notices = %+v (%v), want three of known documents, and a9 foreign", held, err)
		}
		a, known, err := l.FindArrival(arrival.Received, "bum-1")
		kit.Check(t, err == nil && known && a.State == arrival.Announced && a.Notice == "a1" && a.Type == "Invoice",
			"the arrival of bum-1 = %+v, %v (%v), want it announced by a1", a, known, err)
		for id, want := range map[archive.ID]archive.RemoteID{archive.DeriveReceivedID("bum-3"): "bum-3", archive.DeriveReceivedID("bum-9"): "", archive.DeriveSentID("bum-3"): ""} {
			if number, known, err := l.FindReceived(id); err != nil || number != want || known != (want != "") {
				t.Errorf("the number of %v = %q, %v (%v), want %q", id, number, known, err, want)
			}
		}
		sound(t, l)
		kit.Must(t, l.Close())
		l = open(t, boltledger.Config{Dir: dir})
	}
	// An extract of the same number is another thing.
	newArrival(t, l, 9).do(listedAs("bum-1"))
	sound(t, l)
}
