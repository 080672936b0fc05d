package boltledger

import (
	"errors"
	"fmt"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// numbered claims a document and gives it the number; its seal is returned.
func numbered(d *doc, number byte) ledger.Sealed {
	d.t.Helper()
	d.do(d.claim())
	s := d.sealed()
	s.Number = archive.NumberDigest{number}
	return s
}

// sealNumber seals a document under a number, as the ledger says which other one has it, and returns that one.
func sealNumber(d *doc, s ledger.Sealed) archive.Key {
	d.t.Helper()
	after, err := ledger.Transition(d.e, s, archive.Instant{Wall: d.at})
	if err == nil {
		s.SameNumber, _, err = d.l.FindSameNumber(after)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	d.do(s)
	return d.e.SameNumber
}

// Two documents with one invoice number that are sealed at once cannot miss each other, and of many each names the first.
func TestSameNumber_TwoSealedAtOnceCannotMissEachOther(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	first, second := newDoc(t, l, 1), newDoc(t, l, 2)
	a, b := numbered(first, 1), numbered(second, 1)
	rs, err := l.Apply(t.Context(), first.change(a), second.change(b)) // neither was there when the other one looked
	if err != nil || rs[0].Err != nil {
		t.Fatal(rs, err)
	}
	taken, ok := errors.AsType[*ledger.TakenError](rs[1].Err)
	if !ok || taken.What != ledger.TakenNumber || taken.By != first.e.Key {
		t.Fatal("the second one was sealed without a word of the first: ", rs[1].Err)
	}
	first.e = rs[0].Entry
	if got := sealNumber(second, b); got != first.e.Key {
		t.Errorf("the second one names %s", got)
	}
	for n := 3; n < 300; n++ {
		if n == 150 { // what is found rests on what is stored
			l.Close()
			l = open(t, Config{Dir: dir})
		}
		d := newDoc(t, l, n)
		if got := sealNumber(d, numbered(d, 1)); got != first.e.Key {
			t.Fatalf("document %d names %s", n, got)
		}
	}
	other := newDoc(t, l, 300)
	if got := sealNumber(other, numbered(other, 2)); !got.IsZero() {
		t.Errorf("another number names %s", got)
	}
	sound(t, l)
}

// What was certainly rejected does not count, what was rejected in doubt does; and when the first is gone, those that
// named it still name each other.
func TestSameNumber_CertainlyRejectedDoesNotCount(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	first, second, third := newDoc(t, l, 1), newDoc(t, l, 2), newDoc(t, l, 3)
	sealNumber(first, numbered(first, 1))
	sealNumber(second, numbered(second, 1))
	first.do(ledger.Refused{})
	if got := sealNumber(third, numbered(third, 1)); got != second.e.Key {
		t.Errorf("the third one names %s, not the second", got)
	}
	second.do(ledger.Refused{})
	third.do(ledger.SentToQuarantine{}, ledger.Closed{}) // it may be in the archive
	fourth := newDoc(t, l, 4)
	if got := sealNumber(fourth, numbered(fourth, 1)); got != third.e.Key {
		t.Errorf("the fourth one names %s, not the one in doubt", got)
	}
	fourth.do(ledger.Refused{})
	fifth := newDoc(t, l, 5)
	s := numbered(fifth, 1)
	s.Supersedes = third.e.Key
	if after, err := ledger.Transition(fifth.e, s, archive.Instant{}); err != nil {
		t.Fatal(err)
	} else if _, ok, err := l.FindSameNumber(after); ok || err != nil {
		t.Error("what is dropped again names the one that it repeats", err)
	}
	sound(t, l)
}

// Of two with the same files one is named once: for its files. It is not missed either where both are sealed at once.
func TestSameNumber_SameFilesAreToldOnce(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	first, second := newDoc(t, l, 1), newDoc(t, l, 2)
	a, b := numbered(first, 1), numbered(second, 1)
	b.Content = a.Content
	rs, err := l.Apply(t.Context(), first.change(a), second.change(b))
	if err != nil || rs[0].Err != nil {
		t.Fatal(rs, err)
	}
	if taken, ok := errors.AsType[*ledger.TakenError](rs[1].Err); !ok || taken.What != ledger.TakenFiles || taken.By != first.e.Key {
		t.Fatal("the second one was sealed without a word of the first: ", rs[1].Err)
	}
	b.SameContent = first.e.Key
	if got := sealNumber(second, b); !got.IsZero() {
		t.Errorf("named for its number, too: %s", got)
	}
	sound(t, l)
}

// An entry that is opened from a receipt names the other one, too.
func TestSameNumber_AfterARebuild(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	var docs []*doc
	for n := 1; n <= 2; n++ {
		d := newDoc(t, l, n)
		s := d.sealed()
		c := d.change(ledger.Recovered{Vault: "V1", State: ledger.Archived, Source: ledger.Gone, ID: s.ID, Content: s.Content, Metadata: s.Metadata, Package: s.Package,
			Seal: s.Seal, Number: archive.NumberDigest{1}, Remote: archive.RemoteID(fmt.Sprint("bum-", n)), SuccessRecord: []byte("{}"), ArchivedAt: began})
		c.Document = &d.own
		rs, err := l.Apply(t.Context(), c)
		if err != nil || rs[0].Err != nil {
			t.Fatal(rs, err)
		}
		d.e = rs[0].Entry
		docs = append(docs, d)
	}
	if docs[1].e.SameNumber != docs[0].e.Key || !docs[0].e.SameNumber.IsZero() {
		t.Errorf("%s names %s", docs[1].e.Key, docs[1].e.SameNumber)
	}
	sound(t, l)
}

// The check finds a pair that is none, and a number that leads nowhere.
func TestVerify_I14_InvoiceNumbers(t *testing.T) {
	for name, spoil := range map[string]func(e *ledger.Entry){
		"OtherNumber":  func(e *ledger.Entry) { e.Number[1]++ },
		"NoSuchEntry":  func(e *ledger.Entry) { e.SameNumber[15]++ },
		"ForgotNumber": func(e *ledger.Entry) { e.Number = archive.NumberDigest{} },
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, Config{Dir: newLedger(t)})
			first, second := newDoc(t, l, 1), newDoc(t, l, 2)
			sealNumber(first, numbered(first, 1))
			sealNumber(second, numbered(second, 1))
			err := l.db.Update(func(tx *bbolt.Tx) error {
				e := second.e
				spoil(&e)
				return putValue(tx, openBucket, e.Key[:], encodeEntry(e, openBucket))
			})
			if err != nil {
				t.Fatal(err)
			}
			if ps, err := l.Verify(t.Context()); err != nil || len(ps) == 0 {
				t.Error("nothing found", err)
			}
		})
	}
}
