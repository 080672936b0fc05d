package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
)

// allocations counts what a command allocates at noon. check looks at its
// output.
func (s *shelf) allocations(check func(out string), args ...string) float64 {
	s.t.Helper()
	return testing.AllocsPerRun(3, func() {
		out, errs, code := s.run(noon, args...)
		kit.Need(s.t, code == exitDone || code == exitPerson, "%v: exit %d: %s", args, code, errs)
		check(out)
	})
}

// statusOf reads what status says with --json.
func statusOf(t *testing.T, out string) (st present.StatusSummary) {
	t.Helper()
	kit.Must(t, json.Unmarshal([]byte(out), &st))
	return st
}

// status names a few of those that need a person, and reads no more of them than it names. Whoever reads an entry must allocate for it.
func TestStatus_I21_ReadsWhatItNames(t *testing.T) {
	s := newShelf(t)
	waiting := 0
	pile := func(n int) {
		for range n / 20 { // a new start reads the last block of the journal
			var cs []ledger.Change
			for i := range 20 {
				c := ledger.Change{Key: archive.NewKey(noon), At: archive.Instant{Wall: noon}, Events: []ledger.Event{
					ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: "Huber 88", NotBefore: noon.Add(time.Hour)}}}
				if i%10 == 0 {
					c.Events = append(c.Events, ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}})
				} else {
					waiting++
				}
				cs = append(cs, c)
			}
			rs, err := s.ledger.Apply(t.Context(), cs...)
			kit.Need(t, err == nil && rs[0].Err == nil, "err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
		}
	}
	check := func(out string) {
		st := statusOf(t, out)
		i := slices.IndexFunc(st.Needs, func(n present.Need) bool { return n.What == "rejected" })
		if i < 0 || len(st.Needs[i].Names) != min(present.NamedAtMost, st.Needs[i].Count) || st.Open.Total != waiting || waiting != 9*st.Needs[i].Count || st.Drops[0].Open != waiting {
			t.Fatalf("%d wait: %+v %+v", waiting, st.Needs, st.Open)
		}
	}
	pile(60)
	s.makeCatalog()
	few := s.allocations(check, "status", "--json")
	pile(5_000)
	s.makeCatalog()
	many := s.allocations(check, "status", "--json")
	kit.Check(t, many <= few+1000, "%.0f allocations with 60 entries, %.0f with 5,000 more", few, many)
}

// status costs the same however much was archived, today above all: thousands of archived documents make it read none of them, and
// no line of the journal.
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
			kit.Need(t, err == nil && rs[0].Err == nil,
				"err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
		}
	}
	check := func(out string) {
		st := statusOf(t, out)
		if len(st.Drops) == 0 || st.Drops[0].Today != archived || len(st.Billing) == 0 || int(st.Billing[0].Documents) != archived {
			t.Fatalf("%+v %+v, want %d", st.Drops, st.Billing, archived)
		}
	}
	addArchived(2)
	s.makeCatalog()
	few := s.allocations(check, "status", "--json")
	addArchived(60)
	s.makeCatalog()
	many := s.allocations(check, "status", "--json")
	kit.Check(t, many <= few+500, "%.0f allocations with 200 archived, %.0f with 6,200", few, many)
}

// stopAfter ends a context at so many writes.
type stopAfter struct {
	bytes.Buffer
	writes int
	stop   context.CancelFunc
}

func (s *stopAfter) Write(b []byte) (int, error) {
	if s.writes--; s.writes == 0 {
		s.stop()
	}
	return s.Buffer.Write(b)
}

// The status comes at its interval until the user stops it, which counts as
// success, also where something needs attention.
func TestStatusWatch_PagesUntilStopped(t *testing.T) {
	s := filled(t)
	kit.Must(t, s.ledger.Close())
	path := writeConfig(t, smallConfig+"state_dir: "+s.cfg.StateDir+"\n")
	for name, args := range map[string][]string{"Text": {"--watch=3s"}, "JSON": {"--watch", "--json"}} {
		kit.Bubble(t, name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			out, errs, began := &stopAfter{writes: 3, stop: cancel}, &bytes.Buffer{}, time.Now()
			code := program.Run(ctx, append([]string{"status", "--config", path}, args...), strings.NewReader(""), out, errs, os.LookupEnv)
			took, wanted := time.Since(began), 2*5*time.Second
			if name == "Text" {
				wanted = 6 * time.Second
			}
			kit.Check(t, code == exitDone && errs.Len() <= 0 && took == wanted,
				"exit %d after %v: %s", code, took, errs)
			text := out.String()
			kit.Check(t, name != "Text" || strings.Count(text, "BALANCE ") == 3 && !strings.Contains(text, "\x1b"),
				"not three pages:\n%s", text)
			lines := strings.Split(strings.TrimSpace(text), "\n")
			kit.Check(t, name != "JSON" || len(lines) == 3 && json.Valid([]byte(lines[2])), "not three lines:\n%s", text)
		})
	}
	for _, wrong := range []string{"--watch=10ms", "--watch=often"} {
		_, errs, code := runHere("status", "--config", path, wrong)
		kit.Check(t, code == exitUsage, "%s: exit %d: %s", wrong, code, errs)
	}
	_, errs, code := runHere("status", "--config", path+"-away", "--watch")
	kit.Check(t, code == exitConfig, "without a configuration: exit %d: %s", code, errs)
}

// While a daemon runs the pages are the daemon's; they continue over its
// restart, and Ctrl-C ends with 0.
func TestStatusWatch_BesideDaemon(t *testing.T) {
	_, s := served(t, emulator.Config{}, fast)
	d := s.begin()
	w := s.start("status", "--watch=1s", "--json")
	lines := func(what string) int { return strings.Count(w.out.String(), what) }
	kit.Await(t, "a page", func() bool { return lines(`"running":true`) > 0 })
	d.stop(t)
	kit.Await(t, "a page without it", func() bool { return lines(`"running":false`) > 0 })
	s.begin()
	was := lines(`"running":true`)
	kit.Await(t, "another page", func() bool { return lines(`"running":true`) > was })
	kit.Want(t, "Ctrl-C: exit", w.stop(t), exitDone)
}

// I6, I26: a clock that is off by an hour archives all the same, and somebody is told.
func TestStatus_I26_ClockOffByAnHour(t *testing.T) {
	t.Parallel()
	type row struct {
		ahead time.Duration
		want  string
		clock string
	}
	kit.Rows(t, map[string]row{
		"Behind": {time.Hour, "behind the archive service's", "min behind"},
		"Ahead":  {-time.Hour, "ahead of the archive service's", "ahead of"},
		"Right":  {0, "", ""},
	}, func(t *testing.T, row row) {
		emu, s := served(t, emulator.Config{ArchiveMax: 100 * time.Millisecond, Clock: func() time.Time { return time.Now().Add(row.ahead) }}, fast)
		s.fill(3, 4)
		s.must(0, "run", "--once", "--wait")
		onceEach(t, emu, 3)
		out, code := s.vaultd("status")
		if told := strings.Contains(out, "the clock of this machine was"); told != (row.want != "") || !strings.Contains(out, row.want) || !strings.Contains(out, row.clock+" the service's\n") {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}
