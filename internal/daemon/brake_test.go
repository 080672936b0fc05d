package daemon

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
)

// I3: what is far more than the busiest days had waits for a person.
func TestBrake_I3(t *testing.T) {
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
				b := newBrake(dir, func() time.Time { return now }, slog.New(slog.DiscardHandler))
				err := b.take("acme-in", p.due)
				if stopped, ok := errors.AsType[*ingest.DisposalLimitError](err); ok != p.stops || err != nil && !ok {
					t.Errorf("pass %d: %v", i, err)
				} else if ok && stopped.Due != p.due {
					t.Errorf("pass %d: %+v", i, stopped)
				}
				if err := b.take("another", 200); err != nil && i == 0 {
					t.Errorf("another drop: %v", err)
				}
			}
		})
	}
}

func TestBrake_I3_DamagedMemoryStopsEarlier(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{", `{"acme-in": null}`, `[1]`, `{"acme-in": {"busiest": "x"}}`} {
		if err := os.WriteFile(filepath.Join(dir, brakeFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		b := newBrake(dir, time.Now, slog.New(slog.DiscardHandler))
		if err := b.take("acme-in", 201); err == nil {
			t.Errorf("%q let all go", text)
		}
		if err := b.take("acme-in", 200); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// I3, I29: what the brake stopped goes on by a person's decision, which is journaled.
func TestApproveDisposal_I29(t *testing.T) {
	inHouse(t, func(d *Drop) { d.Disposes, d.Grace = true, 24*time.Hour }, func(h *house) {
		h.d.brake.floor = 1
		for _, n := range []string{"1", "2", "3"} {
			h.drop("Huber "+n, "INV-"+n, "content "+n, false)
		}
		h.pass()
		if _, err := h.d.Humans().ApproveDisposal(t.Context(), "acme-in", Person{UID: 1000, Reason: "too early"}); !errors.Is(err, ErrNothingDue) {
			t.Errorf("nothing is due yet: %v", err)
		}
		time.Sleep(25 * time.Hour)
		synctest.Wait()
		p := h.d.State().Pauses
		if len(p) != 1 || p[0].Target.String() != "disposal of acme-in" || !p[0].Next.IsZero() || h.sources()[ledger.Kept] < 2 {
			t.Fatalf("%+v, %v", p, h.sources())
		}
		stopped := h.sources()[ledger.Kept] // the first may have been due alone, and gone
		n, err := h.d.Humans().ApproveDisposal(t.Context(), "acme-in", Person{UID: 1000, Reason: "it is right"})
		if err != nil || n != stopped {
			t.Fatal(n, err)
		}
		h.pass()
		if len(h.d.State().Pauses) != 0 || h.sources()[ledger.Gone] != 3 {
			t.Errorf("%v, %v", h.d.State().Pauses, h.sources())
		}
		journaled := 0
		h.must(h.d.Ledger().Lines(1, func(_ uint64, line []byte) error {
			if s := string(line); strings.Contains(s, ledger.MarkDisposal) && strings.Contains(s, `"uid":1000`) && !strings.Contains(s, "it is right") {
				journaled++
			}
			return nil
		}))
		if journaled != 1 {
			t.Errorf("%d journal lines about the approval", journaled)
		}
	})
}

func (h *house) sources() map[ledger.Source]int {
	h.t.Helper()
	n := map[ledger.Source]int{}
	h.must(h.d.Ledger().Entries(archive.Key{}, false, func(e ledger.Entry) error { n[e.Source]++; return nil }))
	return n
}
