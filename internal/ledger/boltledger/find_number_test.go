package boltledger_test

import (
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// numbered claims a document and gives it the number; its seal is returned.
func numbered(d *doc, number byte) ledger.Sealed {
	d.t.Helper()
	d.do(d.claim())
	s := d.sealed()
	s.Number = archive.NumberDigest{number}
	return s
}

// sealNumber seals a document under a number, as the ledger says which other
// one has it, and returns that one.
func sealNumber(d *doc, s ledger.Sealed) archive.Key {
	d.t.Helper()
	after, err := ledger.Transition(d.e, s, archive.Instant{Wall: d.at})
	if err == nil {
		s.SameNumber, _, err = d.l.FindSameNumber(after)
	}
	kit.Must(d.t, err)
	d.do(s)
	return d.e.SameNumber
}

// Two documents with one invoice number that are sealed at once cannot miss
// each other, and of many each names the first.
func TestSameNumber_TwoSealedAtOnceCannotMissEachOther(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	first, second := newDoc(t, l, 1), newDoc(t, l, 2)
	a, b := numbered(first, 1), numbered(second, 1)
	rs, err := l.Apply(t.Context(), first.change(a), second.change(b)) // neither was there when the other one looked
	kit.Need(t, err == nil && rs[0].Err == nil, "%v (%v), want the first one sealed", rs, err)
	taken, ok := errors.AsType[*ledger.TakenError](rs[1].Err)
	if !ok || taken.What != ledger.TakenNumber || taken.By != first.e.Key {
		t.Fatalf("the second one: %v, want its number taken by the first", rs[1].Err)
	}
	first.e = rs[0].Entry
	kit.Want(t, "the one that the second one names", sealNumber(second, b), first.e.Key)
	for n := 3; n < 300; n++ {
		if n == 150 { // numbers are found after a restart too
			l.Close()
			l = open(t, boltledger.Config{Dir: dir})
		}
		d := newDoc(t, l, n)
		got := sealNumber(d, numbered(d, 1))
		kit.Need(t, got == first.e.Key, "document %d names %s, want the first one, %s", n, got, first.e.Key)
	}
	other := newDoc(t, l, 300)
	kit.Want(t, "the one that another number names", sealNumber(other, numbered(other, 2)), archive.Key{})
	sound(t, l)
}

// A document that was certainly rejected does not count, one that was rejected
// with an unknown outcome does. When the first is gone, those that named it
// still name each other.
func TestSameNumber_CertainlyRejectedDoesNotCount(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	first, second, third := newDoc(t, l, 1), newDoc(t, l, 2), newDoc(t, l, 3)
	sealNumber(first, numbered(first, 1))
	sealNumber(second, numbered(second, 1))
	first.do(ledger.Refused{})
	kit.Want(t, "the one that the third one names", sealNumber(third, numbered(third, 1)), second.e.Key)
	second.do(ledger.Refused{})
	third.do(ledger.SentToQuarantine{}, ledger.Closed{}) // it may be in the archive
	fourth := newDoc(t, l, 4)
	kit.Want(t, "the one that the fourth one names", sealNumber(fourth, numbered(fourth, 1)), third.e.Key)
	fourth.do(ledger.Refused{})
	fifth := newDoc(t, l, 5)
	s := numbered(fifth, 1)
	s.Supersedes = third.e.Key
	if after, err := ledger.Transition(fifth.e, s, archive.Instant{}); err != nil {
		t.Fatal(err)
	} else if k, ok, err := l.FindSameNumber(after); ok || err != nil {
		t.Errorf("a document that is dropped again names %v, %v (%v), want none", k, ok, err)
	}
	sound(t, l)
}

// I12: of two documents with the same number and the same files the second names the
// first for both. It cannot miss it where both are sealed at once.
func TestSameNumber_I12_WithTheSameFiles(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	first, second := newDoc(t, l, 1), newDoc(t, l, 2)
	a, b := numbered(first, 1), numbered(second, 1)
	b.Content = a.Content
	rs, err := l.Apply(t.Context(), first.change(a), second.change(b))
	kit.Need(t, err == nil && rs[0].Err == nil, "%v (%v), want the first one sealed", rs, err)
	if taken, ok := errors.AsType[*ledger.TakenError](rs[1].Err); !ok || taken.What != ledger.TakenFiles || taken.By != first.e.Key {
		t.Fatalf("the second one: %v, want its files taken by the first", rs[1].Err)
	}
	b.SameContent = first.e.Key
	kit.Want(t, "the one that the second one names for its number", sealNumber(second, b), first.e.Key)
	sound(t, l)
}

// An entry that is opened from a receipt names the other one, too.
func TestSameNumber_AfterARebuild(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	var docs []*doc
	for n := 1; n <= 2; n++ {
		d := newDoc(t, l, n)
		s := d.sealed()
		c := d.change(ledger.Recovered{Vault: "V1", State: ledger.Archived, Source: ledger.Gone, ID: s.ID, Content: s.Content, Metadata: s.Metadata, Package: s.Package,
			Seal: s.Seal, Number: archive.NumberDigest{1}, Remote: archive.RemoteID(fmt.Sprint("bum-", n)), SuccessRecord: []byte("{}"), ArchivedAt: began})
		c.Document = &d.own
		d.e = applied(t, l, c)[0].Entry
		docs = append(docs, d)
	}
	kit.Want(t, "the one that the first one names", docs[0].e.SameNumber, archive.Key{})
	kit.Want(t, "the one that the second one names", docs[1].e.SameNumber, docs[0].e.Key)
	sound(t, l)
}

// The check finds a pair of numbers that differ, and a number that leads to no
// entry.
func TestVerify_I14_InvoiceNumbers(t *testing.T) {
	for name, row := range map[string]struct {
		field string
		value func([]byte) []byte
	}{
		"OtherNumber":  {"Entry.number", another},
		"NoSuchEntry":  {"Entry.same_number", another},
		"ForgotNumber": {"Entry.number", func([]byte) []byte { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLedger(t)
			l := open(t, boltledger.Config{Dir: dir})
			first, second := newDoc(t, l, 1), newDoc(t, l, 2)
			sealNumber(first, numbered(first, 1))
			sealNumber(second, numbered(second, 1))
			kit.Must(t, l.Close())
			edit(t, dir, func(tx *bbolt.Tx) error {
				return setField(t, tx, openBucket, second.e.Key[:], row.field, row.value)
			})
			ps, err := open(t, boltledger.Config{Dir: dir}).Verify(t.Context())
			kit.Check(t, err == nil && len(ps) != 0, "the check found %v (%v), want a problem", ps, err)
		})
	}
}
