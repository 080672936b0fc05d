package present

import (
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

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
