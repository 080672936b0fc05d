package main_test

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

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
			for _, one := range []present.Action{present.Close, present.Release, present.Hold, present.Unhold, present.Retry} {
				folder := life + " " + mark + " " + one.Name
				live(s, folder)
				if evs != nil {
					s.tell(folder, noon, nil, evs...)
				}
				before, _, err := s.ledger.Entry(s.keys[folder])
				kit.Must(t, err)
				_, illegal := ledger.Transition(before, one.Event(ledger.Operator{}), archive.Instant{Wall: noon})
				_, errs, code := s.say(one.Name, folder, "--reason", "asked the provider")
				after, _, _ := s.ledger.Entry(before.Key)
				// An allowed act goes as far as it can here: without a secret the archive cannot be asked, and the drop folder is not there.
				isAllowed := code == exitDone || one.Name == "release" && code == exitRights || one.Name == "retry" && strings.Contains(errs, "is not there")
				kit.Check(t, isAllowed == (illegal == nil) && (illegal == nil || after.Rev == before.Rev),
					"%s: exit %d %s; the ledger says %v", folder, code, errs, illegal)
				if illegal != nil {
					refused++
				} else {
					allowed++
				}
			}
		}
	}
	kit.Check(t, allowed >= 60 && refused >= 60, "%d allowed, %d refused", allowed, refused)
}

// Closing what the archive contradicts ends the alarm, and the flag stays.
func TestClose_I13_I26_ContradictionIsSettled(t *testing.T) {
	s := newShelf(t)
	lives()["Contradicted"](s, "Müller 4711")
	needs := func() int {
		return len(s.summary().Needs)
	}
	n := needs()
	kit.Need(t, n == 1, "%d needs before", n)
	out, errs, code := s.say("close", "Müller 4711", "--reason", "provider: ticket 4711")
	e, _, _ := s.ledger.Entry(s.keys["Müller 4711"])
	if code != 0 || e.State != ledger.Archived || !e.Contradicted || !e.Resolved || needs() != 0 || !strings.Contains(out, "flagged for ever") {
		t.Errorf("exit %d, %d needs, %+v\n%s%s", code, needs(), e, out, errs)
	}
	_, errs, code = s.say("close", "Müller 4711", "--reason", "again")
	kit.Check(t, code == exitFailed && strings.Contains(errs, "resolved already"), "exit %d %s", code, errs)
	s.tell("Kern 6", noon, nil, ledger.SentToQuarantine{}, ledger.ReconcileRequired{})
	if _, errs, _ := s.say("close", "Kern 6", "--reason", "x"); strings.Contains(errs, "nothing to close") || !strings.Contains(errs, "vaultd reconcile") {
		t.Errorf(`errs = %v, want errs without "nothing to close", errs with "vaultd reconcile"`, errs)
	}
}
