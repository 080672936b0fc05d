package boltledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// comes applies events to one arrival and keeps its state.
type comes struct {
	t testing.TB
	l store
	a arrival.Arrival
}

var aDelta = archive.Extract{ID: "4711", Type: archive.DeltaExtract, Made: began, Files: 1}

func newArrival(t testing.TB, l store, n byte) *comes {
	return &comes{t, l, arrival.Arrival{Key: archive.Key{0xa0, 15: n}}}
}

func (c *comes) try(evs ...arrival.Event) error {
	c.t.Helper()
	a, err := c.l.ApplyArrival(c.t.Context(), arrival.Change{Key: c.a.Key, Rev: c.a.Rev, Events: evs, At: archive.Instant{Wall: began.Add(time.Hour)}})
	if err == nil {
		c.a = a
	}
	return err
}

func (c *comes) do(evs ...arrival.Event) {
	c.t.Helper()
	kit.Must(c.t, c.try(evs...))
}

func listedAs(id string) arrival.Listed {
	e := aDelta
	e.ID = archive.ExtractID(id)
	return arrival.Listed{Kind: arrival.Extract, Extract: e}
}

var oneFile = []archive.ExtractFile{{Table: "IA_INVOICE", Name: "a.zip"}}

// hold takes the arrival to its end.
func (c *comes) hold(id string) {
	c.t.Helper()
	c.do(listedAs(id))
	c.do(arrival.FilesListed{Files: oneFile}, arrival.DownloadIntended{File: "a.zip"})
	c.do(arrival.FileHeld{File: "a.zip", Stored: "0001-a.zip", Size: 3, SHA256: sum("a")})
	c.do(arrival.HeldWhole{Again: oneFile, Manifest: sum("m")})
	c.do(arrival.AcknowledgeIntended{})
	c.do(arrival.AcknowledgementTaken{})
}

// An arrival, its line, its balance and its index are there again after the
// ledger was closed, between entries and in one chain with them.
func TestArrivals_I5_SurviveAReopening(t *testing.T) { eachStore(t, arrivalsSurviveAReopening) }

func arrivalsSurviveAReopening(t *testing.T, open opener) {
	l := open()
	d := newDoc(t, l, 1)
	d.do(d.claim())
	one, two := newArrival(t, l, 1), newArrival(t, l, 2)
	one.hold("4711")
	two.do(listedAs("4712"))
	d.do(d.sealed())
	sound(t, l)
	kit.Must(t, l.Close())
	l = open()
	sound(t, l)
	got, ok, err := l.FindArrival(arrival.Extract, "4711")
	kit.Check(t, err == nil && ok && got.State == arrival.Acknowledged && got.Files[0].Downloads == 1,
		"the arrival of 4711 = %+v, %t (%v), want it %s after one download", got, ok, err, arrival.Acknowledged)
	b := l.Balance()
	kit.Check(t, b.Seen == 1 && b.IsBalanced(), "balance of entries = %v, want 1 seen", b)
	var onTheWay []archive.ExtractID
	if err := l.Arrivals(func(a arrival.Arrival) error { onTheWay = append(onTheWay, a.Item); return nil }, arrival.Announced, arrival.Fetching); err != nil || len(onTheWay) != 1 || onTheWay[0] != "4712" {
		t.Errorf("arrivals on their way = %v (%v), want 4712", onTheWay, err)
	}
	seen := 0
	err = l.Lines(1, func(n uint64, line []byte) error {
		if strings.HasSuffix(string(line), `,"kind":"extract"}`) {
			seen++
		}
		return nil
	})
	kit.Check(t, err == nil && seen == int(one.a.Rev+two.a.Rev),
		"%d lines are of arrivals (%v), want %d", seen, err, one.a.Rev+two.a.Rev)
}

// An arrival that needs something is found by its kind, its stage and its time, without reading the others, after a reopening too.
func TestArrivals_I21_ALookReadsWhatIsDue(t *testing.T) { eachStore(t, aLookReadsWhatIsDue) }

func aLookReadsWhatIsDue(t *testing.T, open opener) {
	l := open()
	fault := ledger.Cause{Code: "http-503"}
	soon, later := began.Add(2*time.Hour), began.Add(3*time.Hour)
	fresh, waits, refused, held, over, document := newArrival(t, l, 1), newArrival(t, l, 2), newArrival(t, l, 3), newArrival(t, l, 4), newArrival(t, l, 5), newArrival(t, l, 6)
	fresh.do(listedAs("1"))
	waits.do(listedAs("2"), arrival.Postponed{Until: later, Cause: fault})
	refused.do(listedAs("3"), arrival.Postponed{Until: soon, Cause: fault, Refused: arrival.Refused{From: "files.example"}})
	held.do(listedAs("4"), arrival.FilesListed{Files: oneFile}, arrival.DownloadIntended{File: "a.zip"}, arrival.FileHeld{File: "a.zip", Stored: "0001-a.zip", Size: 3, SHA256: sum("a")})
	held.do(arrival.HeldWhole{Again: oneFile, Manifest: sum("m")}, arrival.Postponed{Until: soon, Cause: fault})
	over.hold("5")
	document.do(arrival.DocumentAnnounced{Document: "bum-1", Kind: archive.NetworkInvoice, Notice: "ack-1"})
	look := func(what string, kind arrival.Kind, stage arrival.Stage, now, next time.Time, want ...*comes) {
		t.Helper()
		reads := 0
		got, at, err := l.DueArrivals(kind, stage, now, 10, nil, func(arrival.Arrival) bool { reads++; return false })
		kit.Must(t, err)
		keys := func(got arrival.Arrival, want *comes) bool { return got.Key == want.a.Key && got.Rev == want.a.Rev }
		kit.Check(t, slices.EqualFunc(got, want, keys) && at.Equal(next) && reads == len(want), "%s: %+v of %d read, next %v, want %d, next %v", what, got, reads, at, len(want), next)
	}
	for range 2 {
		look("ToFetch", arrival.Extract, arrival.ToFetch, soon, later, fresh)
		look("ToFetchLater", arrival.Extract, arrival.ToFetch, later, time.Time{}, fresh, waits)
		look("WasRefused", arrival.Extract, arrival.WasRefused, soon, time.Time{}, refused)
		look("NotYetToHandOn", arrival.Extract, arrival.ToHandOn, soon.Add(-1), soon)
		look("ToHandOn", arrival.Extract, arrival.ToHandOn, soon, time.Time{}, held)
		look("NothingToTell", arrival.Extract, arrival.ToTell, later, time.Time{})
		look("OtherKind", arrival.Received, arrival.ToFetch, later, time.Time{}, document)
		sound(t, l)
		kit.Must(t, l.Close())
		l = open()
		for _, c := range []*comes{fresh, waits, refused, held, over, document} {
			c.l = l
		}
	}
	held.do(arrival.HandedOn{})
	look("HandedOn", arrival.Extract, arrival.ToHandOn, later, time.Time{})
	look("ToTell", arrival.Extract, arrival.ToTell, soon, time.Time{}, held)
	held.do(arrival.AcknowledgeIntended{}, arrival.AcknowledgementTaken{})
	look("Acknowledged", arrival.Extract, arrival.ToTell, later, time.Time{})
	waits.do(arrival.Abandoned{By: &ledger.Operator{UID: 7}})
	look("GivenUp", arrival.Extract, arrival.ToFetch, later, time.Time{}, fresh)
	sound(t, l)
}

// A change that cannot be made is refused alone, and leaves nothing.
func TestArrivals_RefusedAlone(t *testing.T) { eachStore(t, arrivalsRefusedAlone) }

func arrivalsRefusedAlone(t *testing.T, open opener) {
	l := open()
	one := newArrival(t, l, 1)
	one.do(listedAs("4711"))
	before := l.Head()
	stale := *one
	stale.a.Rev = 0
	var old *ledger.StaleError
	err := stale.try(listedAs("4711"))
	kit.Check(t, errors.As(err, &old), "another revision: %v, want it stale", err)
	var taken *ledger.TakenError
	err = newArrival(t, l, 2).try(listedAs("4711"))
	kit.Check(t, errors.As(err, &taken) && taken.By == one.a.Key, "a second arrival for one extract: %v, want it taken by %s", err, one.a.Key)
	// All or none: the first event is allowed, the second is not.
	kit.Fails(t, "held without its file",
		one.try(arrival.FilesListed{Files: oneFile}, arrival.HeldWhole{Manifest: sum("m")}), ledger.ErrIllegal)
	kit.Want(t, "head after refusals", l.Head(), before)
	one.do(arrival.FilesListed{Files: oneFile})
	sound(t, l)
}

// The reason that an operator gave is stored apart from the line, and its
// digest is in the line.
func TestArrivals_I29_Reason(t *testing.T) { eachStore(t, arrivalsReason) }

func arrivalsReason(t *testing.T, open opener) {
	l := open()
	one := newArrival(t, l, 1)
	one.do(listedAs("4711"))
	note := ledger.Note{Salt: [16]byte{1}, Text: "nobody needs it"}
	ev := arrival.Abandoned{By: &ledger.Operator{UID: 7, Reason: note.Digest()}, Cause: ledger.Cause{Code: "closed"}}
	a, err := l.ApplyArrival(t.Context(), arrival.Change{Key: one.a.Key, Rev: one.a.Rev, Events: []arrival.Event{ev}, Note: &note, At: archive.Instant{Wall: began}})
	kit.Need(t, err == nil && a.State == arrival.GivenUp, "state = %v (%v), want %v", a.State, err, arrival.GivenUp)
	notes, err := l.Notes(one.a.Key)
	kit.Want(t, "the error", err, nil)
	kit.Want(t, "notes", notes, map[uint32]ledger.Note{a.Rev: note})
	sound(t, l)
}

// A commit that failed leaves the arrival as it was or as it is now, never
// between.
func TestArrivals_I5_CommitFails(t *testing.T) {
	for op, want := range map[string]uint32{"commit": 1, "committed": 2} {
		dir := newLedger(t)
		fail := false
		l := kit.Value(boltledger.Open(boltledger.Config{Dir: dir, Fault: func(at string) error {
			if fail && at == op {
				return errors.New("the disk is gone")
			}
			return nil
		}}))(t)
		one := newArrival(t, l, 1)
		one.do(listedAs("4711"))
		fail = true
		kit.Fails(t, op+": a commit that failed returned no error", one.try(arrival.FilesListed{Files: oneFile}))
		_ = l.Close()
		l = open(t, boltledger.Config{Dir: dir})
		a, ok, err := l.Arrival(one.a.Key)
		kit.Check(t, err == nil && ok && a.Rev == want, "%s: revision = %d, %t (%v), want %d", op, a.Rev, ok, err, want)
		sound(t, l)
	}
}

// One record or key is altered or taken away, and the check says so; from a
// checkpoint on too.
func TestArrivals_I14_VerifyFindsDamage(t *testing.T) {
	for what, harm := range map[string]func(tx *bbolt.Tx, a arrival.Arrival) error{
		"the record is gone": func(tx *bbolt.Tx, a arrival.Arrival) error { return tx.Bucket(arrivalBucket).Delete(a.Key[:]) },
		"a bit of it is flipped": func(tx *bbolt.Tx, a arrival.Arrival) error {
			return tx.Bucket(arrivalBucket).Put(a.Key[:], flipped(tx.Bucket(arrivalBucket).Get(a.Key[:])))
		},
		"a count went back": func(tx *bbolt.Tx, a arrival.Arrival) error {
			return setField(t, tx, arrivalBucket, a.Key[:], "Arrival.Rev", number(uint64(a.Rev-1)))
		},
		"its state is another one": func(tx *bbolt.Tx, a arrival.Arrival) error {
			return setField(t, tx, arrivalBucket, a.Key[:], "Arrival.State", number(uint64(arrival.Held)))
		},
		"its number leads elsewhere": func(tx *bbolt.Tx, a arrival.Arrival) error {
			return tx.Bucket(indexBucket).Put(fmt.Appendf(nil, "i%s\x00%s", a.Kind, a.Item), bytes.Repeat([]byte{1}, 16))
		},
		"it is not found by its state": func(tx *bbolt.Tx, a arrival.Arrival) error {
			return tx.Bucket(indexBucket).Delete(append([]byte{'s', byte(a.State)}, a.Key[:]...))
		},
		"another one would never be fetched": func(tx *bbolt.Tx, _ arrival.Arrival) error {
			return tx.Bucket(dueBucket).Delete(dueToFetch(archive.Key{0xa0, 15: 2}))
		},
		"it would be fetched again": func(tx *bbolt.Tx, a arrival.Arrival) error {
			return tx.Bucket(dueBucket).Put(dueToFetch(a.Key), nil)
		},
		"the balance of arrivals counts one more": func(tx *bbolt.Tx, _ arrival.Arrival) error {
			return setField(t, tx, metaBucket, summaryKey, "Summary.Arrivals.States", oneMore)
		},
		"a key of the index is strange": func(tx *bbolt.Tx, _ arrival.Arrival) error {
			return tx.Bucket(indexBucket).Put([]byte("x"), nil)
		},
	} {
		t.Run(what, func(t *testing.T) {
			dir := newLedger(t)
			l := open(t, boltledger.Config{Dir: dir})
			one := newArrival(t, l, 1)
			one.hold("4711")
			verified := check(t, l, nil).Sound
			newArrival(t, l, 2).do(listedAs("4712"))
			found := check(t, l, &verified).Problems
			kit.Need(t, len(found) == 0, "the check from a checkpoint on found %v, want nothing", found)
			kit.Must(t, l.Close())
			edit(t, dir, func(tx *bbolt.Tx) error { return harm(tx, one.a) })
			l = open(t, boltledger.Config{Dir: dir})
			for _, since := range []*boltledger.Verified{nil, &verified} {
				found := check(t, l, since).Problems
				kit.Check(t, len(found) != 0, "the check (from a checkpoint on: %v) found nothing, want a problem", since != nil)
			}
		})
	}
}

// dueToFetch is the key of the due index of an extract that waits for nothing.
func dueToFetch(key archive.Key) []byte {
	return append([]byte("\x41\x07extract\x00\x00\x00\x00\x00\x00\x00\x00"), key[:]...)
}

// Every arrival is seen once, the newest first, also where they are more than
// one part.
func TestArrivalsNewestFirst_EachOnce(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	const many = 600
	var all []ledger.OtherNotice
	for n := range many {
		ack := archive.AcknowledgementID(fmt.Sprint("ack-", n))
		all = append(all, ledger.OtherNotice{Notification: archive.Notification{AcknowledgementID: ack, Document: archive.RemoteID(fmt.Sprint("bum-", n)), Kind: archive.NetworkInvoice, Raw: []byte(ack)}, Key: archive.Key{1, byte(n >> 8), byte(n)}})
	}
	kit.Value(l.KeepNotices(t.Context(), archive.Instant{Wall: began}, all))(t)
	next := many
	err := l.ArrivalsNewestFirst(func(a arrival.Arrival) error {
		if next--; a.Item != archive.ExtractID(fmt.Sprint("bum-", next)) {
			return fmt.Errorf("%s in the place of %d", a.Item, next)
		}
		return nil
	})
	kit.Check(t, err == nil && next == 0, "%d arrivals are missing (%v), want none", next, err)
	reads := 0 // of all that wait, a look reads no more than it asks for
	some, _, err := l.DueArrivals(arrival.Received, arrival.ToFetch, began, 10, nil, func(arrival.Arrival) bool { reads++; return false })
	kit.Check(t, err == nil && len(some) == 10 && reads == 10, "a look for ten of %d read %d and returned %d (%v)", many, reads, len(some), err)
}

// I30, I5: a notification and the arrival that it announces are one commit,
// once for each document, and are there after a reopening.
func TestKeepNotices_I30_OneArrivalForOneDocument(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	of := func(ack, document string, key archive.Key) ledger.OtherNotice {
		n := archive.Notification{AcknowledgementID: archive.AcknowledgementID(ack), Document: archive.RemoteID(document), Kind: archive.NetworkInvoice, Raw: []byte(ack)}
		return ledger.OtherNotice{Notification: n, Key: key}
	}
	at := archive.Instant{Wall: began.Add(time.Hour)}
	// It was foreign until something was received.
	foreign, err := l.KeepNotices(t.Context(), archive.Instant{Wall: began}, []ledger.OtherNotice{of("a1", "bum-1", archive.Key{}), of("a9", "bum-9", archive.Key{})})
	kit.Check(t, err == nil && len(foreign) == 0, "arrivals of foreign notifications = %v (%v), want none", foreign, err)
	before := l.Head()
	about, err := l.KeepNotices(t.Context(), at, []ledger.OtherNotice{
		of("a1", "bum-1", archive.Key{1}), of("a2", "bum-1", archive.Key{2}), of("a3", "bum-3", archive.Key{3}), of("a9", "bum-9", archive.Key{}),
	})
	if err != nil || len(about) != 3 || about["a1"].Key != (archive.Key{1}) || about["a2"].Key != (archive.Key{1}) || about["a3"].Key != (archive.Key{3}) {
		t.Fatalf("arrivals of the notifications = %v (%v), want the first key of each document", about, err)
	}
	kit.Want(t, "lines of two arrivals", l.Head().N-before.N, 2)
	// The same again, with other keys, leaves it as it is.
	before = l.Head()
	if about, err = l.KeepNotices(t.Context(), at, []ledger.OtherNotice{of("a1", "bum-1", archive.Key{4}), of("a3", "bum-3", archive.Key{})}); err != nil || len(about) != 2 || l.Head() != before {
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
			number, known, err := l.FindReceived(id)
			kit.Check(t, err == nil && number == want && known == (want != ""), "the number of %v = %q, %v (%v), want %q", id, number, known, err, want)
		}
		sound(t, l)
		kit.Must(t, l.Close())
		l = open(t, boltledger.Config{Dir: dir})
	}
	// An extract of the same number is another thing.
	newArrival(t, l, 9).do(listedAs("bum-1"))
	sound(t, l)
}
