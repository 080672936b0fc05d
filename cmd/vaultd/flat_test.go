package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
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
			t.Fatal(err, rs[0].Err)
		}
	}
}

// What is told every few seconds is counted from the ledger's indexes: ten thousand open
// entries make it read none of them. Whoever reads an entry must allocate for it.
func TestHealthMonitor_I21_ReadsNoEntries(t *testing.T) {
	var log bytes.Buffer
	h := resting(t, &log)
	defer h.currentGeneration().d.Close()
	p := newHealthMonitor(h)
	look := func() { p.gatherFacts() }
	look()
	l := h.currentGeneration().d.Ledger()
	pile(t, l, 10)
	look() // what is new in the journal is read once
	few := testing.AllocsPerRun(3, look)
	const n = 10_000
	pile(t, l, n)
	look()
	if many := testing.AllocsPerRun(3, look); many > few+100 {
		t.Errorf("%.0f allocations with 10 open entries, %.0f with %d", few, many, n)
	}
	if g := p.gatherFacts(); g.NeedsPerson["rejected"] != n/10+1 || g.Balance.OpenEntries() != n*9/10+9 || g.OldestOpen.IsZero() {
		t.Errorf("%v %v %s", g.NeedsPerson, g.Balance, g.OldestOpen)
	}
}

// status names a few of those that need a person, and reads no more of them than it names.
func TestStatus_I21_ReadsWhatItNames(t *testing.T) {
	var log bytes.Buffer
	h := resting(t, &log)
	defer h.currentGeneration().d.Close()
	l := h.currentGeneration().d.Ledger()
	v := view{Clock: present.Clock{Now: time.Now(), Location: time.UTC}, cfg: h.currentGeneration().cfg, ledger: l}
	count := func() {
		counts := newEntryCounts(v)
		for _, fn := range []func(*boltledger.Ledger) error{counts.countAttention, counts.nameLatest, counts.countOpen, counts.findLastSuccess} {
			if err := fn(l); err != nil {
				t.Fatal(err)
			}
		}
		if d := counts.drops["acme"]; len(counts.Rejected.Entries) != min(present.NamedAtMost, counts.Rejected.Count) || d.open != counts.byVault["V-1"] || d.open != 9*counts.Rejected.Count {
			t.Errorf("%+v %+v %v", counts.Rejected, d, counts.byVault)
		}
	}
	pile(t, l, 60)
	few := testing.AllocsPerRun(3, count)
	pile(t, l, 5_000)
	if many := testing.AllocsPerRun(3, count); many > few+100 {
		t.Errorf("%.0f allocations with 60 entries, %.0f with 5,000 more", few, many)
	}
}

// status costs the same however much was archived, today above all, and whatever the time zone is now: thousands of archived
// documents make it read none of them, and no line of the journal.
func TestStatus_G15_CostsTheSameWhateverWasArchived(t *testing.T) {
	s := newShelf(t)
	archived := 0
	addArchived := func(n int) {
		t.Helper()
		for range n {
			var cs []ledger.Change
			for range 100 {
				at := noon.Add(-time.Duration(archived%3600) * time.Second)
				cs = append(cs, ledger.Change{Key: archive.NewKey(at), At: archive.Instant{Wall: at}, Events: []ledger.Event{
					ledger.Recovered{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: "Huber 88", ID: archive.ID{1, 13: byte(archived >> 16), 14: byte(archived >> 8), 15: byte(archived)},
						Remote: archive.RemoteID(fmt.Sprint("R", archived)), SuccessRecord: []byte("{}"), State: ledger.Archived, Source: ledger.Gone, SeenAt: at, ArchivedAt: at},
					ledger.Reconciled{}}})
				archived++
			}
			rs, err := s.ledger.Apply(t.Context(), cs...)
			if err != nil || rs[0].Err != nil {
				t.Fatal(err, rs[0].Err)
			}
		}
	}
	look := func() {
		st, err := s.collectStatus()
		if err != nil || len(st.Drops) == 0 || st.Drops[0].Today != archived || len(st.Billing) == 0 || int(st.Billing[0].Documents) != archived {
			t.Fatalf("%v: %+v %+v, want %d", err, st.Drops, st.Billing, archived)
		}
	}
	addArchived(2)
	few := testing.AllocsPerRun(3, look)
	addArchived(60)
	if many := testing.AllocsPerRun(3, look); many > few+500 {
		t.Errorf("%.0f allocations with 200 archived, %.0f with 6,200", few, many)
	}
	// Opened in another time zone, with the status as a command takes it.
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.ledger.Close(); err != nil {
		t.Fatal(err)
	}
	cfg := s.cfg
	cfg.Location = tokyo
	most := testing.AllocsPerRun(1, func() {
		l := s.open(cfg)
		v := view{Clock: present.Clock{Now: noon, Location: tokyo}, cfg: cfg, ledger: l}
		if st, err := v.collectStatus(); err != nil || st.Drops[0].Today != archived {
			t.Fatalf("%v: %+v, want %d", err, st.Drops, archived)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	})
	if most > few+4000 { // reading the archived ones costs more than one for each of them; the race detector adds some
		t.Errorf("%.0f allocations to open it in another time zone and to tell the status, %.0f to tell it with 200", most, few)
	}
}

// A running daemon knows how full its spool is, and status looks at none of the packages then; until they are counted, and
// without a daemon, it adds them up itself.
func TestStatus_G15_SpoolIsTheDaemons(t *testing.T) {
	s := newShelf(t)
	dir := filepath.Join(s.cfg.StateDir, "spool")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.zip"), make([]byte, 300), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		state func() daemon.State
		want  int64
	}{
		"NoDaemon":      {nil, 300},
		"Counted":       {func() daemon.State { return daemon.State{Spool: daemon.SpoolState{Used: 7, IsCounted: true}} }, 7},
		"NotCountedYet": {func() daemon.State { return daemon.State{Spool: daemon.SpoolState{Used: 7}} }, 300},
	} {
		v := s.view
		v.state = row.state
		if st, err := v.collectStatus(); err != nil || st.Disk.SpoolUsed != row.want {
			t.Errorf("%s: %d bytes (%v), want %d", name, st.Disk.SpoolUsed, err, row.want)
		}
	}
}
