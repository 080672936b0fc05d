package boltledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// I8: a number or an object that two documents have was given to one of them by
// mistake. The check finds it though both are at rest, and whether both still
// list it or not.
func TestVerify_I8_OneNumberOfTwoDocuments(t *testing.T) {
	for name, row := range map[string]struct {
		spoil func(t *testing.T, tx *bbolt.Tx, a, b ledger.Entry) error
		wrong bool
	}{
		"Nothing": {func(*testing.T, *bbolt.Tx, ledger.Entry, ledger.Entry) error { return nil }, false},
		"Listed": {func(t *testing.T, tx *bbolt.Tx, a, b ledger.Entry) error {
			return errors.Join(
				rebind(t, tx, 'r', a.Key, b.Key),
				setField(t, tx, openBucket, b.Key[:], "Entry.Registrations.Ticket.Remote", text(a.ArchivedRemote)),
			)
		}, true},
		"Object": {func(t *testing.T, tx *bbolt.Tx, a, b ledger.Entry) error {
			return errors.Join(
				rebind(t, tx, 'o', a.Key, b.Key),
				setField(t, tx, openBucket, b.Key[:], "Entry.Registrations.Ticket.Object", text(a.Registrations[0].Ticket.Object[:])),
			)
		}, true},
		"NotListed": {func(t *testing.T, tx *bbolt.Tx, a, b ledger.Entry) error {
			return errors.Join(
				rebind(t, tx, 'r', a.Key, b.Key),
				setField(t, tx, openBucket, b.Key[:], "Entry.Registrations", func([]byte) []byte { return nil }),
				setField(t, tx, openBucket, b.Key[:], "Entry.Pruned.Unsent", number(1)),
			)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLedger(t)
			l := open(t, boltledger.Config{Dir: dir})
			a, b := newDoc(t, l, 1).archived(), newDoc(t, l, 2)
			b.do(b.claim())
			b.do(b.sealed(), ledger.RegisterIntended{}, b.ticket())
			kit.Must(t, l.Close())
			edit(t, dir, func(tx *bbolt.Tx) error { return row.spoil(t, tx, a.e, b.e) })
			l = open(t, boltledger.Config{Dir: dir})
			if found(t, l, "(I8)") != row.wrong {
				ps, err := l.Verify(t.Context())
				t.Errorf("the check found %v (%v), want a problem of I8: %v", ps, err, row.wrong)
			}
		})
	}
}

// lastTaken returns the record of the name of one kind that leads to an entry.
func lastTaken(t *testing.T, tx *bbolt.Tx, kind byte, of archive.Key) (k, v []byte) {
	t.Helper()
	kit.Must(t, tx.Bucket(namesBucket).ForEach(func(name, to []byte) error {
		if name[0] == kind && bytes.Equal(to[:16], of[:]) {
			k, v = bytes.Clone(name), bytes.Clone(to)
		}
		return nil
	}))
	kit.Need(t, k != nil, "entry %s has taken no name (%q), want one", of, kind)
	return k, v
}

// rebind has b take the name of one kind that a has, in the place of its own.
func rebind(t *testing.T, tx *bbolt.Tx, kind byte, a, b archive.Key) error {
	t.Helper()
	k, _ := lastTaken(t, tx, kind, a)
	own, to := lastTaken(t, tx, kind, b)
	return errors.Join(tx.Bucket(namesBucket).Delete(own), tx.Bucket(namesBucket).Put(another(k), to))
}

// Many commits bind names, some of them again: each name leads to the entry
// that took it last, after a restart too.
func TestFind_I2_NamesLeadToTheLastThatTookThem(t *testing.T) { eachStore(t, leadsToTheLast) }

func leadsToTheLast(t *testing.T, open opener) {
	commits := 300
	if kit.Sampled(t, "commits that bind names") {
		commits = 100
	}
	l := open()
	r := rand.New(rand.NewPCG(1, 2))
	var all []ledger.Sealed // by the number of the name
	var holder []ledger.Entry
	n := 0
	for commit := range commits {
		var cs []ledger.Change
		var took []int
		for range 34 {
			d := newDoc(t, l, n)
			s := d.sealed()
			n++
			if i := r.IntN(n); n%10 == 0 && i < len(all) && holder[i].State == ledger.Packaged && !slices.Contains(took, i) {
				before := holder[i] // rejected, and dropped again
				cs = append(cs, ledger.Change{Key: before.Key, Rev: before.Rev, Events: []ledger.Event{ledger.Refused{}}, At: archive.Instant{Wall: began}})
				s.ID, s.Content, s.Supersedes = all[i].ID, all[i].Content, before.Key
				took = append(took, i)
			} else {
				all, holder = append(all, s), append(holder, ledger.Entry{})
				took = append(took, len(all)-1)
			}
			cs = append(cs, d.change(d.claim(), s))
		}
		made := applied(t, l, cs...)
		made = slices.DeleteFunc(made, func(r ledger.Result) bool { return r.Entry.State == ledger.Rejected })
		for i, of := range took {
			holder[of] = made[i].Entry
		}
		if commit%70 == 50 {
			kit.Must(t, l.Close())
			l = open()
		}
		for range 20 {
			leads(t, l, holder[r.IntN(len(holder))])
		}
	}
	sound(t, l)
}

// leads fails the test unless each name of an entry leads to it.
func leads(t testing.TB, l store, e ledger.Entry) {
	t.Helper()
	names := map[string]func() (archive.Key, bool, error){
		"identity": func() (archive.Key, bool, error) { return l.FindByID(e.ID) },
		"content":  func() (archive.Key, bool, error) { return l.FindByContent(e.Content) },
	}
	if e.ArchivedRemote != "" {
		names["number"] = func() (archive.Key, bool, error) { return l.FindByRemote(e.ArchivedRemote) }
	}
	for name, find := range names {
		k, ok, err := find()
		kit.Check(t, k == e.Key && ok && err == nil, "%s of %s leads to %v, %v (%v), want the entry", name, e.Key, k, ok, err)
	}
}

// Numbers that an entry no longer lists stay its own, for its own identity
// alone.
func TestFind_I8_NumbersThatAreListedNoMore(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
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
		n := d.e.Pruned.Total()
		kit.Need(t, n >= 10, "%d registrations are listed no more, want 10 at least", n)
		for _, r := range all {
			k, ok, err := l.FindByRemote(r)
			kit.Check(t, k == d.e.Key && ok && err == nil, "number %s leads to %v, %v (%v), want %s", r, k, ok, err, d.e.Key)
		}
		sound(t, l)
		again() // given again, it is listed again, and then it is not
		sound(t, l)
		l.Close()
		l = open(t, boltledger.Config{Dir: dir})
		d.l, other.l = l, l
	}
	other.do(other.claim(), other.sealed(), ledger.RegisterIntended{})
	crossed := other.ticket()
	crossed.Ticket.Remote = all[3]
	var taken *ledger.TakenError
	err := other.try(crossed)
	kit.Check(t, errors.As(err, &taken) && taken.What == "bumId" && taken.By == d.e.Key, "a number that is taken: %v, want it taken by %s", err, d.e.Key)
}
