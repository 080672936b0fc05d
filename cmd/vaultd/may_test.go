package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
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
	v := newShelf(t).view
	legal := func(e ledger.Entry, one present.Action) bool {
		_, err := ledger.Transition(e, one.Event(ledger.Operator{UID: 7}), archive.Instant{Wall: noon})
		return err == nil
	}
	n := 0
	for e := range mixes {
		n++
		where := fmt.Sprintf("%s/%s %s", e.State, e.Source, strings.Join(present.ExplainFlags(e), ", "))
		var offered []present.Action
		for _, o := range v.situationOf(e).Options(present.Dossier{Entry: e}) {
			offered = append(offered, commandsIn(o.Command, e)...)
		}
		for _, one := range offered {
			if !legal(e, one) {
				t.Fatalf("%s: why offers %s", where, one.Name)
			}
		}
		settles := slices.ContainsFunc(offered, func(one present.Action) bool {
			return one.Name == "close" || one.Name == "release" || one.Name == "retry"
		})
		if e.NeedsPerson() && !settles && !e.NeedsReconcile && legal(e, present.Close) {
			t.Fatalf("%s: somebody is called, may close it, and is not told so", where)
		}
		for _, one := range allActs() {
			err := one.Check(e)
			if err == nil != legal(e, one) {
				t.Fatalf("%s: %s: %v", where, one.Name, err)
			}
			if err == nil {
				continue
			}
			text := refuseAction(e, one, err).Error()
			for _, instead := range commandsIn(text, e) {
				if !legal(e, instead) {
					t.Fatalf("%s: instead of %s, %s is named: %s", where, one.Name, instead.Name, text)
				}
			}
		}
	}
	if n < 5000 {
		t.Fatalf("only %d mixes", n)
	}
}

// lives are ways to stand in the ledger, by what they come to. Each begins with a folder that was claimed.
func lives() map[string]func(s *shelf, folder string) {
	refused := ledger.Refused{Cause: ledger.Cause{Code: "x"}}
	back := []ledger.Event{ledger.PlaceIntended{Dest: "_rejected/y"}, ledger.Placed{}}
	archived := func(s *shelf, folder string) {
		s.send(folder, noon.Add(-5*time.Hour), archive.RemoteID("bum-"+folder))
		s.says(folder, noon.Add(-4*time.Hour), archive.RemoteID("bum-"+folder), archive.Successful)
	}
	return map[string]func(s *shelf, folder string){
		"Discovered": func(s *shelf, f string) { s.tell(f, noon, nil, ledger.StillChanging{}) },
		"Packaged":   func(s *shelf, f string) { seal, doc := sealed(f, 1); s.tell(f, noon, doc, seal) },
		"Registering": func(s *shelf, f string) {
			seal, doc := sealed(f, 1)
			s.tell(f, noon, doc, seal, ledger.RegisterIntended{})
		},
		"PostedInVain": func(s *shelf, f string) {
			seal, doc := sealed(f, 1)
			s.tell(f, noon, doc, seal, ledger.RegisterIntended{}, ledger.RegisterUnanswered{})
		},
		"Uploaded": func(s *shelf, f string) { s.send(f, noon, archive.RemoteID("bum-"+f)) },
		"Unclear":  func(s *shelf, f string) { s.unclear(f, 1) },
		"Archived": archived,
		"Rejected": func(s *shelf, f string) { s.tell(f, noon, nil, refused) },
		"Returned": func(s *shelf, f string) { s.tell(f, noon, nil, append([]ledger.Event{refused}, back...)...) },
		"Quarantined": func(s *shelf, f string) {
			s.tell(f, noon, nil, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "x"}})
		},
		"Contradicted": func(s *shelf, f string) {
			archived(s, f)
			s.says(f, noon, archive.RemoteID("bum-"+f), archive.Failed)
		},
		"ClosedInDoubt": func(s *shelf, f string) { s.unclear(f, 0); s.tell(f, noon, nil, ledger.Closed{}) },
	}
}

// The verdict of each command on a real entry is that of the ledger's transition, and what it refuses changes nothing.
func TestActs_I29_VerdictIsTheLedgers(t *testing.T) {
	s := newShelf(t)
	marks := map[string][]ledger.Event{"": nil, "held": {ledger.Held{}}, "doubted": {ledger.ReconcileRequired{}}, "both": {ledger.ReconcileRequired{}, ledger.Held{}}}
	allowed, refused := 0, 0
	for life, live := range lives() {
		for mark, evs := range marks {
			for _, one := range []act{closeAct(), releaseAct(), holdAct(), unholdAct(), {Action: present.Retry}} {
				folder := life + " " + mark + " " + one.Name
				live(s, folder)
				if evs != nil {
					s.tell(folder, noon, nil, evs...)
				}
				before, _, err := s.ledger.Entry(s.keys[folder])
				if err != nil {
					t.Fatal(err)
				}
				one.asksArchive = false // the verdict alone: what the archive is asked has tests of its own
				_, illegal := ledger.Transition(before, one.Event(ledger.Operator{}), archive.Instant{Wall: noon})
				_, errs, code := say(t, false, func(a *app) error {
					if one.Name == "retry" { // what comes after the verdict is the folder's
						_, err := a.findReturned(t.Context(), s.view, folder)
						return err
					}
					return a.runDecision(t.Context(), s.view, one, folder, "asked the provider")
				})
				after, _, _ := s.ledger.Entry(before.Key)
				if (code == exitDone) != (illegal == nil) || illegal != nil && after.Rev != before.Rev {
					t.Errorf("%s: exit %d %s; the ledger says %v", folder, code, errs, illegal)
				}
				if illegal != nil {
					refused++
				} else {
					allowed++
				}
			}
		}
	}
	if allowed < 60 || refused < 60 {
		t.Errorf("%d allowed, %d refused", allowed, refused)
	}
}

// Closing what the archive contradicts ends the alarm, and the flag stays.
func TestClose_I13_I26_ContradictionIsSettled(t *testing.T) {
	s := newShelf(t)
	lives()["Contradicted"](s, "Müller 4711")
	needs := func() int {
		got, err := s.collectStatus()
		if err != nil {
			t.Fatal(err)
		}
		return len(got.Needs)
	}
	if n := needs(); n != 1 {
		t.Fatalf("%d needs before", n)
	}
	out, errs, code := say(t, false, func(a *app) error {
		return a.runDecision(t.Context(), s.view, closeAct(), "Müller 4711", "provider: ticket 4711")
	})
	e, _, _ := s.ledger.Entry(s.keys["Müller 4711"])
	if code != 0 || e.State != ledger.Archived || !e.Contradicted || !e.Resolved || needs() != 0 || !strings.Contains(out, "flagged for ever") {
		t.Errorf("exit %d, %d needs, %+v\n%s%s", code, needs(), e, out, errs)
	}
	if _, errs, code := say(t, false, func(a *app) error { return a.runDecision(t.Context(), s.view, closeAct(), "Müller 4711", "again") }); code != exitFailed || !strings.Contains(errs, "resolved already") {
		t.Errorf("exit %d %s", code, errs)
	}
	s.tell("Kern 6", noon, nil, ledger.SentToQuarantine{}, ledger.ReconcileRequired{})
	if _, errs, _ := say(t, false, func(a *app) error { return a.runDecision(t.Context(), s.view, closeAct(), "Kern 6", "x") }); strings.Contains(errs, "nothing to close") || !strings.Contains(errs, "vaultd reconcile") {
		t.Error(errs)
	}
}
