package operator

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/ingest"
	"vaultd/internal/test/kit"
)

// I3: what is far more than the busiest days had waits for a person.
func TestDisposalLimit_I3(t *testing.T) {
	const day = 24 * time.Hour
	type pass struct {
		after time.Duration // since the pass before
		due   int
		stops bool
	}
	for name, passes := range map[string][]pass{
		"NothingWasEverDisposedOf": {{0, 200, false}, {0, 1, true}},
		"WrongClock":               {{0, 100, false}, {day, 100, false}, {day, 100, false}, {3650 * day, 3000, true}},
		"KeepBecameDelete":         {{0, 20_000, true}},
		"ManySmallPassesOfADay":    {{0, 150, false}, {time.Hour, 50, false}, {time.Hour, 10, true}},
		"MonthEnds":                {{0, 200, false}, {day, 500, false}, {30 * day, 900, false}, {31 * day, 1000, false}, {31 * day, 10_000, true}},
		"TheMemoryFades":           {{0, 200, false}, {day, 590, false}, {400 * day, 590, true}},
		"ClockSetBack":             {{0, 150, false}, {-400 * day, 150, false}, {0, 500, true}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, now := t.TempDir(), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
			for i, p := range passes {
				now = now.Add(p.after)
				// Each pass is another process: what counts outlives it.
				b := NewDisposalLimit(dir, func() time.Time { return now }, slog.New(slog.DiscardHandler))
				err := b.Book("acme-in", p.due)
				if stopped, ok := errors.AsType[*ingest.DisposalLimitError](err); ok != p.stops || err != nil && !ok {
					t.Errorf("pass %d: error = %v, want a stop: %t", i, err, p.stops)
				} else if ok && stopped.Due != p.due {
					t.Errorf("pass %d: stopped = %+v, want %d due", i, stopped, p.due)
				}
				err = b.Book("another", 200)
				kit.Check(t, err == nil || i != 0, "another drop: error = %v, want none", err)
			}
		})
	}
}

// TestDisposalLimit_I3_AnApprovalIsUsedUp: an operator approves what is due
// now. The next unusual number needs a decision of its own.
func TestDisposalLimit_I3_AnApprovalIsUsedUp(t *testing.T) {
	l := NewDisposalLimit(t.TempDir(), time.Now, slog.New(slog.DiscardHandler))
	l.AlwaysUsual = 1
	kit.Must(t, l.Approve("acme-in", 5))
	for _, c := range []struct {
		due    int
		isMore bool
	}{{3, false}, {2, false}, {2, true}} {
		err := l.Book("acme-in", c.due)
		_, stopped := errors.AsType[*ingest.DisposalLimitError](err)
		kit.Check(t, stopped == c.isMore, "disposal of %d: error = %v, want one of the limit: %v", c.due, err, c.isMore)
	}
}

func TestDisposalLimit_I3_DamagedMemoryStopsEarlier(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{", `{"acme-in": null}`, `[1]`, `{"acme-in": {"busiest": "x"}}`} {
		kit.Must(t, os.WriteFile(filepath.Join(dir, disposalsFile), []byte(text), 0o600))
		b := NewDisposalLimit(dir, time.Now, slog.New(slog.DiscardHandler))
		err := b.Book("acme-in", 201)
		kit.Check(t, err != nil, "a file that holds %q lets 201 go, want a stop", text)
		err = b.Book("acme-in", 200)
		kit.Check(t, err == nil, "a file that holds %q: error = %v, want 200 allowed", text, err)
	}
}
