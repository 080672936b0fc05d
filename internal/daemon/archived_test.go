package daemon

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// TestArchived_I3_OnlyTheServicesOwnSuccess: the files of a received document
// are removed once isArchived says so. An upload that the store took is not
// enough.
func TestArchived_I3_OnlyTheServicesOwnSuccess(t *testing.T) {
	withDaemon(t, nil, func(h *testDaemon) {
		isArchived := func(id archive.ID) bool {
			t.Helper()
			is, err := h.d.isArchived(id)
			h.must(err)
			return is
		}
		kit.Want(t, "a document that is not known counts as archived", isArchived(archive.ID{1}), false)
		h.drop("Huber 88", "88", "one", false)
		seen := map[ledger.State]bool{}
		for begun := time.Now(); !seen[ledger.Archived] && time.Since(begun) < time.Hour; time.Sleep(time.Second) {
			_, all := h.entries()
			if len(all) == 0 || all[0].ID.IsZero() {
				continue
			}
			seen[all[0].State] = true
			kit.Want(t, "a document that is "+all[0].State.String()+" counts as archived", isArchived(all[0].ID), all[0].State == ledger.Archived)
		}
		kit.Check(t, seen[ledger.Uploaded] && seen[ledger.Archived],
			"states = %v, want uploaded and archived among them", seen)
	})
}
