// This test is inside the package: it tries every mix of state and flags, which
// no real ledger can hold.
package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// allActs are the acts of people on one entry.
func allActs() []present.Action {
	return []present.Action{present.Close, present.Release, present.Hold, present.Unhold, present.Retry}
}

// mixes gives every mix of state, source and flags, with and without a registration.
func mixes(yield func(ledger.Entry) bool) {
	registered := []ledger.Registration{{Ticket: archive.Ticket{Remote: "bum-1"}, Fate: ledger.MaybeStored}}
	for _, s := range ledger.States() {
		for src := ledger.Claimed; src <= ledger.Gone; src++ {
			for flags := range 1 << 7 {
				on := func(bit int) bool { return flags&(1<<bit) != 0 }
				e := ledger.Entry{
					Key: archive.Key{1}, Rev: 3, State: s, Source: src, Drop: "acme-in", Folder: "Huber 88", Dest: "_rejected/Huber 88",
					Hold: on(0), InDoubt: on(1), PossibleDouble: on(2), Contradicted: on(3), Resolved: on(4), NeedsReconcile: on(5),
				}
				if on(6) {
					e.Posts, e.Answers, e.Registrations = 1, 1, slices.Clone(registered)
				}
				if !yield(e) {
					return
				}
			}
		}
	}
}

// commandsIn gives the acts whose command lines for e stand in a text.
func commandsIn(text string, e ledger.Entry) []present.Action {
	var all []present.Action
	for _, one := range allActs() {
		if strings.Contains(text, "vaultd "+one.Name+" "+e.Key.String()) {
			all = append(all, one)
		}
	}
	return all
}

// What is offered and what is named instead is allowed, in every mix; and whoever is called is offered something.
func TestWhy_I13_OffersWhatTheLedgerAllows(t *testing.T) {
	v := beside(t, daemon.State{})
	legal := func(e ledger.Entry, one present.Action) bool {
		_, err := ledger.Transition(e, one.Event(ledger.Operator{UID: 7}), archive.Instant{Wall: v.Now})
		return err == nil
	}
	n := 0
	for e := range mixes {
		n++
		where := fmt.Sprintf("%s/%s %s", e.State, e.Source, strings.Join(present.ExplainFlags(e), ", "))
		var offered []present.Action
		for _, o := range (present.Situation{Clock: v.Clock, AlertAfter: v.cfg.Status.AlertAfter, UnclearGrace: v.cfg.Status.UnclearGrace}).Options(present.Dossier{Entry: e}) {
			offered = append(offered, commandsIn(o.Command, e)...)
		}
		for _, one := range offered {
			kit.Need(t, legal(e, one), "%s: why offers %s", where, one.Name)
		}
		settles := slices.ContainsFunc(offered, func(one present.Action) bool {
			return one.Name == "close" || one.Name == "release" || one.Name == "retry"
		})
		kit.Need(t, !e.NeedsPerson() || settles || e.NeedsReconcile || !legal(e, present.Close),
			"%s: somebody is called, may close it, and is not told so", where)
		for _, one := range allActs() {
			err := one.Check(e)
			if err == nil != legal(e, one) {
				t.Fatalf("%s: %s: %v, want err == nil = %v", where, one.Name, err, legal(e, one))
			}
			if err == nil {
				continue
			}
			text := refuseAction(e, one, err).Error()
			for _, instead := range commandsIn(text, e) {
				kit.Need(t, legal(e, instead),
					"%s: instead of %s, %s is named: %s", where, one.Name, instead.Name, text)
			}
		}
	}
	kit.Need(t, n >= 5000, "only %d mixes", n)
}
