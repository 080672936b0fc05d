package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// kept writes what a bench keeps. Each run begins a minute after the one before.
type kept struct {
	strings.Builder
	t  *testing.T
	at time.Time
}

func keep(t *testing.T) *kept {
	return &kept{t: t, at: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
}

func (k *kept) write(v any) { must(k.t, json.NewEncoder(k).Encode(v)) }

func (k *kept) run(row, side string, pair, docs int) {
	k.at = k.at.Add(time.Minute)
	k.write(line{Row: row, Side: side, Pair: pair, At: k.at, sample: sample{Docs: docs, Wall: time.Second, CPU: time.Second}})
}

// both is a pair whose second side comes to 100 documents a second.
func (k *kept) both(row string, pair, docs int) {
	k.run(row, "A", pair, docs)
	k.run(row, "B", pair, 100)
}

func (k *kept) gather() *report {
	sittings, err := readSittings(strings.NewReader(k.String()))
	must(k.t, err)
	return gatherRows(sittings)
}

// A row is told as it was when it was last run to its end, on the same machine and at the same size.
func TestTable_TakesEachRowFromItsLastWholeSitting(t *testing.T) {
	k := keep(t)
	here := machine{Cores: 2, Quick: true, Pairs: 1, Load: 3.79}
	k.write(here)
	k.both("put-S", 0, 1) // a warm-up
	k.both("put-S", 1, 200)
	k.both("tls-S", 1, 300)
	k.write(machine{Cores: 2, Pairs: 1, Load: 9}) // of full size
	k.both("put-S", 1, 1)
	k.write(machine{Cores: 64, Quick: true, Pairs: 1})
	k.both("put-S", 1, 1)
	k.write(machine{Cores: 2, Quick: true, Pairs: 1, Program: "0123456789ab"}) // another program of the same version
	k.both("put-S", 1, 1)
	here.Pairs, here.Load = 2, 0.38
	k.write(here)
	k.both("tls-S", 1, 400)
	k.both("tls-S", 2, 400)
	k.run("put-S", "A", 1, 1) // broken off
	k.WriteString(`{"Row":"put-S","Side":"B","Pa`)

	r := k.gather()
	told := map[string]float64{}
	for _, res := range r.results {
		if res.row.Missing == "" {
			told[res.row.ID] = res.Ratios[0].Median
		}
	}
	kit.Check(t, len(told) == 2 && told["put-S"] == 2 && told["tls-S"] == 4, "told %v", told)
	head := "Measured 2026-11-20 10:01 UTC to 2026-11-20 10:17 UTC, in 2 sittings, load 0.38 to 3.79 before them, 1 to 2 pairs. 2 cores"
	if text := r.asMarkdown(); !strings.HasPrefix(text, head) ||
		!strings.Contains(text, "| not run: not yet |") {
		t.Errorf(`text[:min(len(text), 500)] = %v, want text that begins with %q, text with "| not run: not yet |"`, text[:min(len(text), 500)], head)
	}
	text := r.asDocument()
	if !strings.HasPrefix(text, head) || !strings.Contains(text, "| put-S | G5 | ") || !strings.Contains(text, "\nNot run: ") ||
		strings.Contains(text, "| told |") || strings.Contains(text, "Medians of the runs") {
		t.Errorf("text = %v, want text that begins with %q, text with \"| put-S | G5 | \", text with \"\\nNot run: \", text without \"| told |\", text without \"Medians of the runs\"", text, head)
	}
}

// Running a row again until it holds does not make a goal that was missed unseen.
func TestTable_SaysWhatWasMissedBefore(t *testing.T) {
	k := keep(t)
	here := machine{Cores: 2, Quick: true, Pairs: 1, Program: "0123456789ab"}
	other := here
	other.Program = "ba9876543210"
	for _, sitting := range []struct {
		machine
		put, tls int
	}{{here, 10, 10}, {here, 20, 20}, {other, 30, 30}, {here, 200, 200}} {
		k.write(sitting.machine)
		k.both("put-S", 1, sitting.put)
		k.both("tls-S", 1, sitting.tls)
	}
	k.write(here)
	k.run("put-S", "A", 1, 1) // broken off: that is no miss
	r := k.gather()
	for _, res := range r.results {
		if res.row.Missing != "" {
			continue
		}
		want := map[string]verdict{"put-S": "holds; missed on 2026-11-20 10:05", "tls-S": ""}[res.row.ID] // the last miss; what is told is not missed
		f := res.Ratios[0]
		kit.Check(t, f.Median == 2 && f.Verdict == want, "%s: %v, %q instead of %q", res.row.ID, f.Median, f.Verdict, want)
		f = res.Ratios[1]
		kit.Check(t, res.row.ID != "put-S" || f.Verdict == reached, "never missed: %q", f.Verdict)
	}
	kit.Check(t, !r.hasFailed(), "what holds now counts as failed")
	if text := r.asMarkdown(); !strings.HasPrefix(text, "Measured 2026-11-20 10:13 UTC, load 0.00 before the first run, 1 pairs.") {
		t.Errorf(`text[:min(len(text), 200)] = %v, want text that begins with "Measured 2026-11-20 10:13 UTC, load 0.00 before the first run, 1 pairs."`, text[:min(len(text), 200)])
	}
}
