package main_test

import (
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I12, I26: status and why say that a rejected folder is not in its place any more, and
// propose no command for a path that is gone. The exit code stays.
func TestMissing_I12_I26_RejectedFolderIsGone(t *testing.T) {
	s := newShelf(t)
	e := s.tell("Huber 88", noon.Add(-2*time.Hour), nil, ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}}, ledger.PlaceIntended{Dest: "_rejected/Huber 88"}, ledger.Placed{})
	for name, row := range map[string]struct {
		missing     []ledger.MissingFolder
		holds, lack string
	}{
		"There": {nil, "vaultd validate", "no longer in _rejected"},
		"Gone":  {[]ledger.MissingFolder{{Key: e.Key, Since: noon.Add(-time.Hour)}}, "no longer in _rejected since", "vaultd validate"},
	} {
		kit.Must(t, s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon, Missing: row.missing}))
		why, _, _ := s.say("why", "Huber 88")
		kit.Holds(t, name+": why", why, row.holds, "vaultd close")
		kit.Lacks(t, name+": why", why, row.lack)
		status, _, code := s.say("status")
		kit.Want(t, name+": exit code of status", code, exitPerson)
		if row.missing != nil {
			kit.Holds(t, name+": status", status, "Huber 88 (acme-in): no longer in _rejected since 13:32")
		}
	}
}
