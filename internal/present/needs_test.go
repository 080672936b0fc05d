package present

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// I26: a pause, a drop folder that is away, an old folder, a contradiction and a balance that does not agree are told within a
// minute; what ends by itself in a moment is not.
func TestUnfitReasons_I26(t *testing.T) {
	type row struct {
		spoil func(*StatusSummary)
		want  string
	}
	kit.Rows(t, map[string]row{
		"Calm": {func(*StatusSummary) {}, ""},
		"PauseBegins": {func(s *StatusSummary) {
			s.Pauses = []PausedTarget{{Route: "vault ACME", Since: noon.Add(-29 * time.Second)}}
		}, ""},
		"PauseLasts": {func(s *StatusSummary) {
			s.Pauses = []PausedTarget{{Route: "vault ACME", Code: "http-403", Since: noon.Add(-time.Minute)}}
		}, "vault ACME paused since 13:31 (http-403)"},
		"CredentialsRefused": {func(s *StatusSummary) {
			s.Pauses = []PausedTarget{{Route: "vault ACME", Code: "http-401", Since: noon, NeedsPerson: true}}
		}, "vault ACME paused since 13:32 (http-401)"},
		"DropAway":     {func(s *StatusSummary) { s.Drops = []DropStatus{{Name: "acme-in", Paused: "it is not there"}} }, "drop acme-in paused"},
		"NoRight":      {func(s *StatusSummary) { s.NotTaken = []NotTaken{{Drop: "acme-in", Reason: "no right", Count: 3}} }, "drop acme-in: 3 not taken (no right)"},
		"Overdue":      {func(s *StatusSummary) { s.Attention.Of("overdue").Count = 2 }, "2 documents are open for longer than 48 h"},
		"Contradicted": {func(s *StatusSummary) { s.Attention.Of("contradicted").Count = 1 }, "1 document is contradicted by the service"},
		"Disagreement": {func(s *StatusSummary) { s.Balance.Agrees = false }, "the balance does not agree"},
		"SafeMode":     {func(s *StatusSummary) { s.Safe = &SafeMode{Word: "restored"} }, "safe mode (restored): nothing is taken, sent or removed before vaultd reconcile"},
		"Damage":       {func(s *StatusSummary) { s.Damage = "page 7" }, "the ledger cannot be read: page 7"},
		"Full":         {func(s *StatusSummary) { s.Disk.NothingNew = true }, "the disk of state_dir has less than min_free: nothing new is taken"},
		"Stalled":      {func(s *StatusSummary) { s.StalledDrops = []string{"drop acme-in stands still"} }, "drop acme-in stands still"},
	}, func(t *testing.T, row row) {
		s := StatusSummary{At: noon, Attention: EntryCounts{}, Balance: Balance{Agrees: true}, Open: OpenCounts{Limit: (48 * time.Hour).Seconds()}}
		row.spoil(&s)
		s.AddNeeds(Clock{noon, time.UTC})
		kit.Want(t, "the reasons", strings.Join(s.UnfitReasons(), "; "), row.want)
	})
}

// I12, I26: looks at the kept folders that never come to their end are a need.
func TestNeeds_I12_I26_LooksThatNeverEnd(t *testing.T) {
	type row struct {
		spoil func(s *StatusSummary, d *DropScan)
		needs int
	}
	kit.Rows(t, map[string]row{
		"Late":          {func(*StatusSummary, *DropScan) {}, 1},
		"InTime":        {func(_ *StatusSummary, d *DropScan) { d.Scan.KeptSince = noon.Add(-71 * time.Hour) }, 0},
		"NoneYet":       {func(_ *StatusSummary, d *DropScan) { d.Scan.KeptSince = time.Time{} }, 0},
		"NothingKept":   {func(s *StatusSummary, _ *DropScan) { s.Balance.States = nil }, 0},
		"OnlyDelivered": {func(s *StatusSummary, _ *DropScan) { s.Balance.States = map[string]uint64{"delivered": 1} }, 1},
		"SafeMode":      {func(s *StatusSummary, _ *DropScan) { s.Safe = &SafeMode{} }, 0},
		"Off":           {func(s *StatusSummary, _ *DropScan) { s.Running = false }, 0},
		"NoDropAnyMore": {func(_ *StatusSummary, d *DropScan) { d.Configured = false }, 0},
	}, func(t *testing.T, row row) {
		s := StatusSummary{Running: true, At: noon, Attention: EntryCounts{}, Balance: Balance{Agrees: true, States: map[string]uint64{"archived": 1}}}
		d := DropScan{Name: "acme-in", Configured: true, Scan: ledger.Scan{KeptSince: noon.Add(-73 * time.Hour)}}
		row.spoil(&s, &d)
		c := Clock{noon, time.UTC}
		s.AddScans([]DropScan{d}, c)
		s.AddNeeds(c)
		kit.Want(t, "needs about the check", s.CountNeeds()["check"], row.needs)
	})
}

// The full disk of a drop folder is a need and makes vaultd unfit: people get no
// results there, and _STATUS.txt cannot say so.
func TestNeeds_I26_DiskOfADropIsFull(t *testing.T) {
	full := StatusSummary{Running: true, Drops: []DropStatus{{Name: "acme", Free: 4096}, {Name: "beta", Free: 5e9}}}
	full.Balance.Agrees = true
	var needs []string
	full.AddNeeds(Clock{Now: time.Now(), Location: time.UTC})
	for _, n := range full.Needs {
		needs = append(needs, n.What+": "+n.Text)
	}
	kit.Holds(t, "needs", strings.Join(needs, "\n"), "drop-full: the disk of drop acme has ")
	kit.Lacks(t, "needs", strings.Join(needs, "\n"), "beta")
	kit.Holds(t, "reasons", strings.Join(full.UnfitReasons(), "\n"), "drop acme: its disk is full")
}
