package present

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// I26: a pause, a drop folder that is away, an old folder, a contradiction and a balance that does not agree are told within a
// minute; what ends by itself in a moment is not.
func TestUnfitReasons_I26(t *testing.T) {
	for name, row := range map[string]struct {
		spoil func(*StatusSummary)
		want  string
	}{
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
		"DropAway":     {func(s *StatusSummary) { s.Drops = []DropStatus{{Name: "acme-in", IsPaused: true}} }, "drop acme-in paused"},
		"NoRight":      {func(s *StatusSummary) { s.NotTaken = []NotTaken{{Drop: "acme-in", Reason: "no right", Count: 3}} }, "drop acme-in: 3 not taken (no right)"},
		"Overdue":      {func(s *StatusSummary) { s.Attention.Overdue.Count = 2 }, "2 folders open for longer than 48 h"},
		"Contradicted": {func(s *StatusSummary) { s.Attention.Contradicted.Count = 1 }, "1 folder contradicted by the archive"},
		"Disagreement": {func(s *StatusSummary) { s.Balance.Agrees = false }, "the balance does not agree"},
		"SafeMode":     {func(s *StatusSummary) { s.Safe = &SafeMode{Word: "restored"} }, "safe mode (restored): nothing is taken, sent or removed before vaultd reconcile"},
		"Damage":       {func(s *StatusSummary) { s.Damage = "page 7" }, "the ledger cannot be read: page 7"},
		"Full":         {func(s *StatusSummary) { s.Disk.NothingNew = true }, "the disk of state_dir has less than min_free: nothing new is taken"},
		"Stalled":      {func(s *StatusSummary) { s.StalledDrops = []string{"drop acme-in stands still"} }, "drop acme-in stands still"},
	} {
		t.Run(name, func(t *testing.T) {
			s := StatusSummary{Balance: Balance{Agrees: true}, Open: OpenCounts{Limit: (48 * time.Hour).Seconds()}}
			row.spoil(&s)
			kit.Want(t, "the reasons", strings.Join(s.UnfitReasons(Clock{noon, time.UTC}), "; "), row.want)
		})
	}
}
