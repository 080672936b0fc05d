package boltledger

import "testing"

// TestOpen_I5_EveryCommitIsSynced: a commit that is not synced looks like any other until
// the power fails.
func TestOpen_I5_EveryCommitIsSynced(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	if l.db.NoSync || l.db.NoGrowSync || l.db.NoFreelistSync {
		t.Errorf("bbolt is told not to sync: commits %v, growth %v, free pages %v", l.db.NoSync, l.db.NoGrowSync, l.db.NoFreelistSync)
	}
}
