package boltledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Many gathers bind names, some of them again and again: every word leads to all that took
// it, the last one first, whatever is being merged; and no gather does much more than its
// own share of that.
func TestRuns_LeadAsAListWould(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "x"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	r := rand.New(rand.NewPCG(1, 2))
	took := map[uint64][]archive.Key{} // the latest last
	var x nameIndex
	n, most, merging := uint64(0), 0, 0
	err = db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(findBucket); return err })
	for round := 0; round < 600 && err == nil; round++ {
		err = db.Update(func(tx *bbolt.Tx) error {
			b := tx.Bucket(findBucket)
			ps := someNames(r, took, &n)
			before := pairsIn(&x)
			if err := errors.Join(x.addRun(b, 0, slices.Clone(ps)), x.mergeSome(b, len(ps))); err != nil {
				return err
			}
			if after := pairsIn(&x); after != before+uint64(len(ps)) || !x.isSound() {
				t.Fatalf("round %d: %d pairs after %d and %d, %+v", round, after, before, len(ps), x)
			}
			most = max(most, len(x.runs))
			if slices.ContainsFunc(x.runs, func(r run) bool { return r.done > 0 }) {
				merging++
			}
			for range 20 {
				leads(t, &x, b, took)
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	if n < 30_000 || merging < 50 || most > 40 {
		t.Errorf("%d names, %d rounds in the middle of a merge, at most %d runs", n, merging, most)
	}
}

// someNames binds new names, and some of the old ones to other entries.
func someNames(r *rand.Rand, took map[uint64][]archive.Key, n *uint64) (ps []pair) {
	for range 1 + r.IntN(200)*r.IntN(2) {
		*n++
		word := hashOf(binary.BigEndian.AppendUint64([]byte{byID}, *n))
		if r.IntN(10) == 0 { // bound before, most likely
			word = hashOf(binary.BigEndian.AppendUint64([]byte{byID}, r.Uint64N(*n)))
		}
		if slices.ContainsFunc(ps, func(p pair) bool { return p.hash == word }) {
			continue
		}
		var key archive.Key
		binary.BigEndian.PutUint64(key[:], *n)
		ps, took[word] = append(ps, pair{word, key}), append(took[word], key)
	}
	return ps
}

func pairsIn(x *nameIndex) (n uint64) {
	for _, r := range x.runs {
		if !r.making {
			n += r.pairs
		}
	}
	return n
}

// leads holds one word, chosen by the map, against what the runs say of it.
func leads(t *testing.T, x *nameIndex, b *bbolt.Bucket, took map[uint64][]archive.Key) {
	t.Helper()
	for word, want := range took {
		var got []archive.Key
		if err := x.visitKeys(b, word, func(k archive.Key) (bool, error) { got = append(got, k); return false, nil }); err != nil {
			t.Fatal(err)
		}
		slices.Reverse(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%x leads to %v, want %v", word, got, want)
		}
		return
	}
}

// A gather merges in proportion to what it bound, however much there is to be merged.
func TestRuns_G7_MergesAFewChunksAtATime(t *testing.T) {
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "x"), 0o600, &bbolt.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	err = db.Update(func(tx *bbolt.Tx) error {
		b, err := tx.CreateBucket(findBucket)
		if err != nil {
			return err
		}
		var x nameIndex
		n := uint64(0)
		for range fanIn { // four large ones at once
			var ps []pair
			for range 100_000 {
				n++
				ps = append(ps, pair{hash: hashOf(binary.BigEndian.AppendUint64([]byte{byID}, n))})
			}
			if err := x.addRun(b, 5, ps); err != nil {
				return err
			}
		}
		gathers := 0
		for ; len(x.runs) > 1; gathers++ {
			made := uint64(0)
			if at := x.nextMerge(); at >= 0 {
				made = x.runs[at].done
			}
			if err := x.mergeSome(b, 100); err != nil {
				return err
			}
			if at := x.nextMerge(); at >= 0 && x.runs[at].done > made+3 {
				t.Fatalf("%d chunks in one gather", x.runs[at].done-made)
			}
		}
		if gathers < 100 || x.runs[0].pairs != 400_000 || x.runs[0].level != 6 {
			t.Errorf("%d gathers, %+v", gathers, x.runs)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Two names with one word are told apart by the entries: neither hides the other.
func TestFind_I8_NamesOfOneWordAreToldApart(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	a, b := newDoc(t, l, 1).archived(), newDoc(t, l, 2).archived()
	l.Close()
	edit(t, dir, func(tx *bbolt.Tx) error { // as if names of b had the words of those of a, and were bound later
		x, err := readNameIndex(tx)
		var ps []pair
		for _, name := range entryNames(a.e) {
			ps = append(ps, pair{hashOf(name), b.e.Key}, pair{hashOf(name), archive.Key{9}})
		}
		return errors.Join(err, x.addRun(tx.Bucket(findBucket), 0, ps), putValue(tx, metaBucket, runsKey, indexForm.encode(&x)))
	})
	l = open(t, Config{Dir: dir})
	for _, d := range []*doc{a, b} {
		for _, name := range entryNames(d.e) {
			if k, ok, err := l.lookUpName(name); k != d.e.Key || !ok || err != nil {
				t.Errorf("%q leads to %v %v %v", name, k, ok, err)
			}
		}
	}
	c := newDoc(t, l, 3)
	c.do(c.claim())
	same := c.sealed()
	same.ID = a.e.ID
	var taken *ledger.TakenError
	if err := c.try(same); !errors.As(err, &taken) || taken.By != a.e.Key {
		t.Errorf("the identity was given away: %v", err)
	}
	if _, ok, err := l.FindByRemote("bum-none"); ok || err != nil {
		t.Errorf("a number that nobody has is found: %v", err)
	}
	es, err := l.FindEntriesByRemote([]archive.RemoteID{b.e.ArchivedRemote, "bum-none", a.e.ArchivedRemote, "", b.e.ArchivedRemote})
	if err != nil || !reflect.DeepEqual(es, []ledger.Entry{b.e, {}, a.e, {}, b.e}) {
		t.Errorf("%+v: %v", es, err)
	}
}

// Numbers that an entry lists no more stay its own, for its own identity alone.
func TestFind_I8_NumbersThatAreListedNoMore(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	d, other := newDoc(t, l, 1), newDoc(t, l, 2)
	d.do(d.claim(), d.sealed())
	var all []archive.RemoteID
	for n := range 14 {
		ticket := func() ledger.TicketReceived {
			g := d.ticket()
			g.Ticket.Remote = archive.RemoteID(fmt.Sprintf("bum-%d", len(all)))
			all = append(all, g.Ticket.Remote)
			return g
		}
		if n == 10 { // so many at once that the first of them are never stored as listed
			var evs []ledger.Event
			for range 12 {
				evs = append(evs, ledger.RegisterIntended{}, ticket(), ledger.WindowClosed{})
			}
			d.do(evs...)
		}
		d.do(ledger.RegisterIntended{}, ticket(), ledger.WindowClosed{})
	}
	again := func() {
		d.do(ledger.RegisterIntended{})
		g := d.ticket()
		g.Ticket.Remote = all[0]
		d.do(g, ledger.WindowClosed{})
	}
	for range 2 {
		if d.e.Pruned.Total() < 10 {
			t.Fatal("vacuous")
		}
		es, err := l.FindEntriesByRemote(all)
		if err != nil || slices.ContainsFunc(es, func(e ledger.Entry) bool { return e.Key != d.e.Key || e.Rev != d.e.Rev }) {
			t.Errorf("%+v: %v", es, err)
		}
		for _, r := range all {
			if k, ok, err := l.FindByRemote(r); k != d.e.Key || !ok || err != nil {
				t.Errorf("%s: %v %v %v", r, k, ok, err)
			}
		}
		sound(t, l)
		again() // given again, it is listed again, and then it is not
		sound(t, l)
		l.Close()
		l = open(t, Config{Dir: dir})
		d.l, other.l = l, l
	}
	other.do(other.claim(), other.sealed(), ledger.RegisterIntended{})
	crossed := other.ticket()
	crossed.Ticket.Remote = all[3]
	var taken *ledger.TakenError
	if err := other.try(crossed); !errors.As(err, &taken) || taken.What != "bumId" || taken.By != d.e.Key {
		t.Errorf("the number was given away: %v", err)
	}
}
