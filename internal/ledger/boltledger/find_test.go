package boltledger

import (
	"errors"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Two folders with one identity are sealed in the same gather: one of them gets it.
func TestIdentity_I2_TakenInOneGather(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	a, b := newDoc(t, l, 1), newDoc(t, l, 2)
	a.do(a.claim())
	b.do(b.claim())
	same := b.sealed()
	same.ID = a.sealed().ID
	rs, _ := l.Apply(t.Context(), a.change(a.sealed()), b.change(same))
	var taken *ledger.TakenError
	if rs[0].Err != nil || !errors.As(rs[1].Err, &taken) || taken.What != "clientUUID" || taken.By != a.e.Key {
		t.Fatal(rs[0].Err, rs[1].Err)
	}
	a.e = rs[0].Entry
	a.do(ledger.Refused{Cause: ledger.Cause{Code: "x"}})
	same.Supersedes = a.e.Key
	rs, _ = l.Apply(t.Context(), b.change(same), a.change(ledger.Superseded{By: b.e.Key}))
	if rs[0].Err != nil || rs[1].Err != nil {
		t.Fatal(rs)
	}
	if k, _, _ := l.ByID(same.ID); k != b.e.Key {
		t.Error("the identity was not handed over")
	}
	sound(t, l)
}

// A bumId that the service gives twice belongs to the clientUUID that had it first.
func TestRemote_I8_BelongsToOneIdentityForEver(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	a, b := newDoc(t, l, 1), newDoc(t, l, 2)
	for _, d := range []*doc{a, b} {
		d.do(d.claim())
		d.do(d.sealed(), ledger.RegisterIntended{})
	}
	crossed := b.ticket()
	crossed.Ticket.Remote = a.ticket().Ticket.Remote
	rs, _ := l.Apply(t.Context(), a.change(a.ticket()), b.change(crossed))
	var taken *ledger.TakenError
	if rs[0].Err != nil || !errors.As(rs[1].Err, &taken) || taken.What != "bumId" || taken.By != a.e.Key {
		t.Fatal(rs[0].Err, rs[1].Err)
	}
	a.e = rs[0].Entry
	a.do(ledger.WindowClosed{}, ledger.RegisterIntended{})
	again := a.ticket()
	again.Ticket.Remote = crossed.Ticket.Remote
	a.do(again) // the same number for the same clientUUID is fine

	a.do(ledger.WindowClosed{}, ledger.RegisterIntended{})
	a.do(ledger.RegisterRefused{}) // the next generation: another clientUUID
	if a.e.Generation != 1 {
		t.Fatal("no new generation")
	}
	a.do(ledger.RegisterIntended{})
	if err := a.try(again); !errors.As(err, &taken) || taken.By != a.e.Key {
		t.Errorf("the number of the first generation for the second: %v", err)
	}
	for n := range 2 {
		if k, ok, _ := l.ByID(identity(a.e, uint8(n))); !ok || k != a.e.Key {
			t.Errorf("generation %d is not bound", n)
		}
	}
	sound(t, l)
}

// A rejected document goes the same way again as its successor: the same identity,
// then the same next generation, which the first one had used up.
func TestIdentity_I2_SuccessorTakesGenerationsOver(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	var before *doc
	for n := range 3 {
		d := newDoc(t, l, 1)
		d.at = d.at.Add(time.Duration(n) * time.Hour)
		d.e.Key = archive.NewKey(d.at)
		d.do(d.claim())
		s := d.sealed()
		if before != nil {
			s.Supersedes = before.e.Key
		}
		d.do(s, ledger.RegisterIntended{}, ledger.RegisterUnanswered{})
		if n != 1 { // the second one never comes to its next generation
			d.do(ledger.RegisterIntended{}, ledger.RegisterRefused{}, ledger.RegisterIntended{})
			if d.e.Generation != 1 {
				t.Fatal("no new generation")
			}
			if k, _, _ := l.ByID(d.e.ID); k != d.e.Key {
				t.Errorf("round %d: generation 1 leads elsewhere", n)
			}
		}
		d.do(ledger.GotStuck{}, ledger.Closed{})
		before = d
		sound(t, l)
	}
}

func TestContent_FirstUntilRejectedWithoutDoubt(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	doubted := newDoc(t, l, 1)
	for n := 1; n <= 3; n++ {
		d := newDoc(t, l, n)
		if n == 1 {
			d = doubted
		}
		d.do(d.claim())
		s := d.sealed()
		s.Content = sum("the same files")
		d.do(s)
		if k, ok, err := l.ByContent(s.Content); !ok || err != nil || k != doubted.e.Key {
			t.Errorf("document %d: content leads to %s, want %s", n, k, doubted.e.Key)
		}
		if n == 2 {
			doubted.do(ledger.GotStuck{}, ledger.Closed{}) // rejected, but in doubt
		}
	}
	first, second := newDoc(t, l, 10), newDoc(t, l, 11)
	for _, d := range []*doc{first, second} {
		d.do(d.claim())
		s := d.sealed()
		s.Content = sum("others")
		d.do(s, ledger.Refused{})
		if k, _, _ := l.ByContent(s.Content); k != d.e.Key {
			t.Error("a rejection without doubt still stands for the content")
		}
	}
	sound(t, l)
}

// I8: a number that two documents have was given to one of them by mistake. The check finds it though both are at rest,
// and whether both still list it or not.
func TestVerify_I8_OneNumberOfTwoDocuments(t *testing.T) {
	for name, row := range map[string]struct {
		spoil func(d *draft, r archive.RemoteID)
		wrong bool
	}{
		"Nothing": {func(*draft, archive.RemoteID) {}, false},
		"Listed":  {func(d *draft, r archive.RemoteID) { d.entry.Registrations[0].Ticket.Remote = r }, true},
		"Folded": {func(d *draft, _ archive.RemoteID) {
			d.entry.Registrations, d.entry.Folded = nil, ledger.Folded{Unsent: 1}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLedger(t)
			l := open(t, Config{Dir: dir})
			a, b := newDoc(t, l, 1).archived(), newDoc(t, l, 2)
			number := a.e.Registrations[0].Ticket.Remote
			b.do(b.claim())
			b.do(b.sealed(), ledger.RegisterIntended{})
			err := l.update(func(tx *bbolt.Tx) error { // as if nobody had looked whose it is
				g := l.begin(tx)
				d, err := g.draft(b.change(b.ticket()))
				if err != nil {
					return err
				}
				if row.spoil(&d, number); row.wrong {
					d.binds = []bind{{remoteName(number), holder{key: b.e.Key}}}
				}
				if err := g.accept(d); err != nil {
					return err
				}
				_, err = g.finish()
				return err
			})
			if err = errors.Join(err, l.Close()); err != nil {
				t.Fatal(err)
			}
			l = open(t, Config{Dir: dir})
			if found(t, l, "(I8)") != row.wrong {
				ps, err := l.Verify(t.Context())
				t.Errorf("found %v (%v)", ps, err)
			}
		})
	}
}
