package present

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
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

// I20: what does not come in for longer than services are usually down is told to a person, and by the health pages. What does not pass by
// itself is told at once.
func TestIncoming_I20_IsTold(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	type row struct {
		since time.Time
		told  bool
	}
	kit.Rows(t, map[string]row{"JustNow": {now.Add(-time.Minute), false}, "Lasts": {now.Add(-transientFault), true}, "ForEver": {time.Time{}, true}}, func(t *testing.T, r row) {
		s := StatusSummary{At: now, Incoming: []IncomingFault{{What: "notices", Since: r.since, Text: "they do not come in", Do: "look"}, {What: "extracts-paused", Since: r.since}}}
		s.Balance.Agrees = true
		c := Clock{Now: now, Location: time.UTC}
		s.AddNeeds(c)
		reasons := strings.Join(s.UnfitReasons(), "\n")
		told := len(s.Needs) == 2 && s.Needs[0].What == "notices" && s.Needs[0].When == "now"
		kit.Check(t, told == r.told, "needs: %+v", s.Needs)
		told = strings.Contains(reasons, "notifications of the business network do not come in") && strings.Contains(reasons, "extracts of")
		kit.Check(t, told == r.told, "unfit: %q", reasons)
	})
}

// I12: a claim names the owner of the folder, and not who dropped it. An act names
// who acted.
func TestShow_I12_ClaimNamesAnOwner(t *testing.T) {
	owner, actor := int64(1001), int64(1002)
	d := Dossier{History: []ledger.Line{{Rev: 1, Event: "claimed", UID: &owner}, {Rev: 2, Event: "recovered", UID: &owner}, {Rev: 3, Event: "held", UID: &actor}}}
	text := string(d.Text(Clock{Location: time.UTC}))
	kit.Holds(t, "history", text, ", a folder of "+UserName(1001), ", by "+UserName(1002))
	kit.Lacks(t, "history", text, "by "+UserName(1001))
}

// I12: a kept folder is said to be there only as of a look after it was put there.
func TestPlace_I12_NothingIsSaidOfAPlaceThatWasNotLookedAt(t *testing.T) {
	put := time.Date(2026, 11, 3, 12, 0, 0, 0, time.UTC)
	e := ledger.Entry{Key: archive.Key{1}, State: ledger.Archived, Source: ledger.Kept, Drop: "acme-in", Dest: "_archived/2026-11/Huber 88"}
	history := []ledger.Line{{Rev: 1, At: "2026-11-03T11:00:00.000Z", Source: "keeping"}, {Rev: 2, At: put.Format(time.RFC3339), Source: "kept"}}
	for name, row := range map[string]struct {
		look  time.Time
		holds string
	}{
		"Never":  {time.Time{}, "not since vaultd put it there"},
		"Before": {put.Add(-time.Minute), "not since vaultd put it there"},
		"Since":  {put.Add(time.Hour), "2026-11-03 13:00:00 UTC; 2 folders of this drop could not be read then"},
	} {
		text := string(Dossier{Entry: e, History: history, Scan: ledger.Scan{KeptScan: row.look, KeptUnread: 2}}.Text(Clock{Location: time.UTC}))
		kit.Holds(t, name, text, row.holds)
	}
	e.Cause.Code = ledger.CauseSourceMissing
	kit.Holds(t, "a missing folder", DescribePlace(e), "not there any more")
}
