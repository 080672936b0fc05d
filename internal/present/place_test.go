package present

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

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
		text := string(Dossier{Entry: e, History: history, Scan: ledger.Scan{KeptLook: row.look, KeptUnread: 2}}.Text(Clock{Location: time.UTC}))
		kit.Holds(t, name, text, row.holds)
	}
	e.Cause.Code = ledger.CauseSourceMissing
	kit.Holds(t, "a missing folder", DescribePlace(e), "not there any more")
}
