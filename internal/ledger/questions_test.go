package ledger

import (
	"slices"
	"testing"

	"vaultd/internal/archive"
)

// TestQuestions_I13_OldRegistrationsAreAskedAboutForEver: a registration that may hold
// content stays a question while a later one is on its way and after it was archived:
// the only way to learn of a double.
func TestQuestions_I13_OldRegistrationsAreAskedAboutForEver(t *testing.T) {
	for _, old := range []Fate{Maybe, Stored} {
		for _, s := range []State{Packaged, Registering, Registered, Sending, Uploaded, Unclear, Archived, Quarantined, Rejected} {
			e := usual(s)
			orphan(old)(&e)
			if !slices.Contains(e.Questions(), archive.RemoteID("old")) {
				t.Errorf("%s: nobody asks any more about an old registration of fate %d", s, old)
			}
		}
	}
}

// TestSucceeded_I2_TheSecondOneIsFlagged: two successes are two documents in the archive.
func TestSucceeded_I2_TheSecondOneIsFlagged(t *testing.T) {
	e := usual(Archived)
	orphan(Maybe)(&e)
	e.Double = false
	if again := must(t, e, 0, answer(archive.Successful, e.Archived)); again.Double {
		t.Error("the same success twice is called a double")
	}
	if second := must(t, e, 0, answer(archive.Successful, "old")); !second.Double {
		t.Error("a second registration was archived, and nothing says so")
	}
}
