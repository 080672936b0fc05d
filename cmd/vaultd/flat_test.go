// This test is inside the package: it counts what one look at the figures costs.
package main

import (
	"bytes"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// pile gives a ledger so many folders that wait, one in ten of them rejected.
func pile(t *testing.T, l *boltledger.Ledger, n int) {
	t.Helper()
	for done := 0; done < n; {
		var cs []ledger.Change
		for ; done < n && len(cs) < 500; done++ {
			now := time.Now()
			c := ledger.Change{Key: archive.NewKey(now), At: archive.Instant{Wall: now}, Events: []ledger.Event{
				ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V-1", Drop: "acme", Folder: "Huber 88", NotBefore: now.Add(time.Hour)}}}
			if done%10 == 0 {
				c.Events = append(c.Events, ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}})
			}
			cs = append(cs, c)
		}
		rs, err := l.Apply(t.Context(), cs...)
		if err != nil || rs[0].Err != nil {
			t.Fatalf("err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
		}
	}
}

// What is told every few seconds is counted from the ledger's indexes: ten thousand open
// entries make it read none of them. Whoever reads an entry must allocate for it.
func TestHealthMonitor_I21_ReadsNoEntries(t *testing.T) {
	var log bytes.Buffer
	h, d := resting(t, &log)
	defer d.Close()
	p := newHealthMonitor(h)
	look := func() { p.gatherFacts() }
	look()
	l := d.Ledger()
	pile(t, l, 10)
	look() // what is new in the journal is read once
	few := testing.AllocsPerRun(3, look)
	const n = 10_000
	pile(t, l, n)
	look()
	many := testing.AllocsPerRun(3, look)
	kit.Check(t, many <= few+100, "%.0f allocations with 10 open entries, %.0f with %d", few, many, n)
	if g := p.gatherFacts(); g.NeedsPerson["rejected"] != n/10+1 || g.Balance.OpenEntries() != n*9/10+9 || g.OldestOpen.IsZero() {
		t.Errorf(`%v %v %s, want g.NeedsPerson["rejected"] = %v, g.Balance.OpenEntries() = %v, not g.OldestOpen.IsZero()`, g.NeedsPerson, g.Balance, g.OldestOpen, n/10+1, n*9/10+9)
	}
}
