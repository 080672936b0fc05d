package daemon

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// backlog gives the ledger so many folders that wait to be packed.
func backlog(t *testing.T, l *boltledger.Ledger, n int) {
	t.Helper()
	for done := 0; done < n; {
		var cs []ledger.Change
		for ; done < n && len(cs) < 500; done++ {
			now := time.Now()
			cs = append(cs, ledger.Change{Key: archive.NewKey(now), At: archive.Instant{Wall: now}, Events: []ledger.Event{
				ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "acme", Folder: "Huber 88", NotBefore: now.Add(time.Hour)}}})
		}
		rs, err := l.Apply(t.Context(), cs...)
		kit.Need(t, err == nil && rs[0].Err == nil, "not committed: %v, %v", err, rs)
	}
}

// What a start does before it is ready does not grow with what waits: whoever reads an
// entry, or looks at a package, must allocate for it.
func TestOpen_I21_DoesNotReadTheBacklog(t *testing.T) {
	d, cfg := idle(t)
	again := func() {
		err := d.Close()
		if err == nil {
			d, err = Open(cfg)
		}
		kit.Must(t, err)
	}
	few := testing.AllocsPerRun(2, again)
	const n = 5000
	backlog(t, d.Ledger(), n)
	for range n / 2 {
		kit.Must(t, os.WriteFile(filepath.Join(cfg.StateDir, "spool", archive.NewKey(time.Now()).String()+".zip"), nil, 0o600))
	}
	if many := testing.AllocsPerRun(2, again); many > few+n {
		t.Errorf("a start makes %.0f allocations with %d folders that wait, want at most %.0f, which are %.0f without any and one for each", many, n, few+n, few)
	}
	kit.Must(t, d.Close())
}
