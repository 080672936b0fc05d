package main_test

import (
	"vaultd/internal/test/kit"

	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// A disposal that was stopped for being unusual shows with what to do, and goes on by a
// person's decision alone, which is journaled.
func TestResume_I29(t *testing.T) {
	s := newShelf(t)
	for _, folder := range []string{"Müller 4711", "Huber 88"} {
		s.send(folder, noon.Add(-50*time.Hour), archive.RemoteID("bum-"+folder[:1]))
		s.says(folder, noon.Add(-49*time.Hour), archive.RemoteID("bum-"+folder[:1]), archive.Successful)
		s.tell(folder, noon.Add(-49*time.Hour), nil, ledger.PlaceIntended{Dest: "_archived/2026-11/" + folder}, ledger.Placed{DisposeAt: noon.Add(-time.Hour)})
	}
	for _, row := range []struct {
		route, reason string
		code          int
		words         string
	}{
		{"store of vault V-1", "x", exitUsage, "not a pause that waits for a person"},
		{"disposal of nowhere", "x", exitFailed, "nothing of it is due for removal"},
		{"disposal of acme-in", "first month end", 0, "2 archived folders of drop acme-in may be removed now"},
	} {
		out, errs, code := s.say("resume", row.route, "--reason", row.reason)
		if code != row.code || !strings.Contains(out+errs, row.words) {
			t.Errorf("%s: exit %d\n%s%s", row.route, code, out, errs)
		}
	}
	lines := 0
	if err := s.ledger.Lines(1, func(_ uint64, line []byte) error {
		if strings.Contains(string(line), ledger.MarkDisposal) {
			lines++
		}
		kit.Lacks(t, "the reason stands in the journal", string(line), "month end")
		return nil
	}); err != nil || lines != 1 {
		t.Errorf("%d journal lines, %v", lines, err)
	}
}
