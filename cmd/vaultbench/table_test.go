package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// A row is told as it was when it was last run to its end, on the same machine and at the same size.
func TestTable_TakesEachRowFromItsLastWholeSitting(t *testing.T) {
	var kept strings.Builder
	write := func(v any) { must(t, json.NewEncoder(&kept).Encode(v)) }
	at := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	run := func(row, side string, pair, docs int) {
		at = at.Add(time.Minute)
		write(line{Row: row, Side: side, Pair: pair, At: at, sample: sample{Docs: docs, Wall: time.Second, CPU: time.Second}})
	}
	both := func(row string, pair, docs int) {
		run(row, "A", pair, docs)
		run(row, "B", pair, 100)
	}
	here := machine{Cores: 2, Quick: true, Pairs: 1}
	write(here)
	both("put-S", 0, 1) // a warm-up
	both("put-S", 1, 200)
	both("tls-S", 1, 300)
	write(machine{Cores: 2, Pairs: 1}) // of full size
	both("put-S", 1, 1)
	write(machine{Cores: 64, Quick: true, Pairs: 1})
	both("put-S", 1, 1)
	write(here)
	both("tls-S", 1, 400)
	run("put-S", "A", 1, 1) // broken off
	kept.WriteString(`{"Row":"put-S","Side":"B","Pa`)

	sittings, err := readSittings(strings.NewReader(kept.String()))
	must(t, err)
	r := gather(sittings)
	told := map[string]float64{}
	for _, res := range r.results {
		if res.row.Missing == "" {
			told[res.row.ID] = res.Ratios[0].Median
		}
	}
	if len(told) != 2 || told["put-S"] != 2 || told["tls-S"] != 4 {
		t.Errorf("told %v", told)
	}
	if text := r.markdown(); r.sittings != 2 || !strings.Contains(text, "Measured 2026-11-20 10:01 UTC to 2026-11-20 10:13 UTC, in 2 sittings") ||
		!strings.Contains(text, "| not run: not yet |") {
		t.Error(text[:min(len(text), 500)])
	}
}
