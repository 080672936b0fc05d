package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// walls is a side whose runs take what is given, one after the other.
func walls(order *strings.Builder, name string, seconds ...float64) side {
	return side{name, func(_ context.Context, dir string) (sample, error) {
		entries, err := os.ReadDir(dir)
		if err != nil || len(entries) > 0 {
			return sample{}, errors.Join(errors.New("the directory is not fresh"), err)
		}
		order.WriteString(name)
		s := sample{Wall: time.Duration(seconds[0] * float64(time.Second)), Docs: 10, Syncs: uint64(seconds[0])}
		seconds = seconds[1:]
		return s, os.WriteFile(dir+"/left", nil, 0o600)
	}}
}

func TestMeasure_MedianOfTheRatiosOfThePairs(t *testing.T) {
	var order strings.Builder
	var log bytes.Buffer
	b := quickBench(t)
	b.pairs = 3
	r := row{ID: "x", Goal: "G0", Warmup: 1,
		A: walls(&order, "a", 100, 2, 4, 6), B: walls(&order, "b", 1, 2, 5, 5), // ratios 1, 0.8, 1.2; of the medians it would be 0.8
		Ratios: []ratio{{"wall", wallRatio, "<= 1", atMost(1)}, {"wall again", wallRatio, "<= 0.9", atMost(0.9)}},
		Counts: []count{{"syncs", func(s sample) float64 { return float64(s.Syncs) }, "<= 5", atMost(5)}, {"documents", func(s sample) float64 { return float64(s.Docs) }, "told", nil}}}
	res := b.measureRow(t.Context(), r, &log)
	kit.Need(t, res.err == nil && order.String() == "abababab" && len(res.pairs) == 3,
		"%v: ran %s, %d pairs", res.err, &order, len(res.pairs))
	want := []figure{{"wall", "<= 1", 1, 0.8, 1.2, reached}, {"wall again", "<= 0.9", 1, 0.8, 1.2, missed}}
	for i, f := range res.Ratios {
		kit.Check(t, f == want[i], "ratio %+v instead of %+v", f, want[i])
	}
	if f := res.Counts[0]; f != (figure{"syncs", "<= 5", 4, 2, 6, missed}) { // one run of three breaks it
		t.Errorf("count %+v", f)
	}
	if f := res.Counts[1]; f.Verdict != "" {
		t.Errorf("a count that is only told has the verdict %q", f.Verdict)
	}
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	var last line
	must(t, json.Unmarshal([]byte(lines[len(lines)-1]), &last))
	kit.Check(t, len(lines) == 8 && last.Side == "B" && last.Pair == 3 && last.Wall == 5*time.Second,
		"%d lines, the last %+v", len(lines), last)
	left, err := os.ReadDir(b.work)
	kit.Check(t, err == nil && len(left) == 0, "left behind: %v %v", left, err)
}

func TestMeasure_NoisyHasNoVerdict(t *testing.T) {
	var order strings.Builder
	b := quickBench(t)
	b.pairs = 2
	r := row{ID: "x", A: walls(&order, "a", 1, 1.6), B: walls(&order, "b", 1, 1), Ratios: []ratio{{"wall", wallRatio, "<= 9", atMost(9)}},
		Counts: []count{{"documents", func(s sample) float64 { return float64(s.Docs) }, "10", atMost(10)}}}
	res := b.measureRow(t.Context(), r, &bytes.Buffer{})
	kit.Check(t, res.Ratios[0].Verdict == unsure && res.Counts[0].Verdict == reached,
		"ratio %q, count %q", res.Ratios[0].Verdict, res.Counts[0].Verdict)
}

// Where nothing was counted nothing holds.
func TestMeasure_AMissingFigureReachesNothing(t *testing.T) {
	var order strings.Builder
	r := row{ID: "x", A: walls(&order, "a", 1), B: walls(&order, "b", 0), Ratios: []ratio{{"wall", wallRatio, "<= 9", atMost(9)}, {"wall", wallRatio, ">= 0", atLeast(0)}},
		Counts: []count{{"nothing", figureOfRow("nothing"), "<= 9", atMost(9)}, {"nothing", figureOfRow("nothing"), ">= 0", atLeast(0)}}}
	res := quickBench(t).measureRow(t.Context(), r, &bytes.Buffer{})
	for _, f := range append(res.Ratios, res.Counts...) {
		kit.Check(t, f.Verdict == missed && formatDigits(f.Median) == "–",
			`%+v, want f.Verdict = %v, formatDigits(f.Median) = "–"`, f, missed)
	}
	s := sample{}
	s.noteFigure("nothing", quotient(1, 0))
	_, err := json.Marshal(s)
	kit.Check(t, err == nil, "error: %v", err)
}

// A ratio that does not depend on the machine is never noisy.
func TestMeasure_ExactRatios(t *testing.T) {
	var order strings.Builder
	b := quickBench(t)
	b.pairs = 2
	r := row{ID: "x", Exact: true, A: walls(&order, "a", 1, 2), B: walls(&order, "b", 1, 1), Ratios: []ratio{{"wall", wallRatio, "<= 1", atMost(1)}}}
	res := b.measureRow(t.Context(), r, &bytes.Buffer{})
	kit.Check(t, res.Ratios[0].Verdict == missed, "%+v, want res.Ratios[0].Verdict = %v", res.Ratios[0], missed)
}

// A row that takes too long is a line of the table, and the others are run.
func TestRunAll_ARowHasItsLimit(t *testing.T) {
	hangs := side{"a", func(ctx context.Context, _ string) (sample, error) {
		<-ctx.Done()
		return sample{}, context.Cause(ctx)
	}}
	var order strings.Builder
	r := &report{}
	rows := []row{{ID: "hangs", A: hangs, Limit: time.Millisecond}, {ID: "next", A: walls(&order, "a", 1)}}
	err := quickBench(t).runAll(t.Context(), rows, &bytes.Buffer{}, r)
	kit.Check(t, err != nil && len(r.results) == 2 && r.results[1].err == nil, "%v: %d results", err, len(r.results))
	kit.Holds(t, `text`, r.asMarkdown(), "broken off: a: not done within 1ms")
}

func TestReport_SaysWhatWasNotRun(t *testing.T) {
	b := quickBench(t)
	fails := side{"a", func(context.Context, string) (sample, error) { return sample{}, errors.New("no | such\nthing") }}
	r := &report{}
	rows := []row{{ID: "peer", Title: "against a peer", Missing: "zip is not installed"}, {ID: "broken", Title: "broken", A: fails}}
	err := b.runAll(t.Context(), rows, &bytes.Buffer{}, r)
	kit.Check(t, err != nil, "a row that broke off is no error")
	text := r.asMarkdown()
	kit.Holds(t, "text", text, "| peer |  | against a peer | | | | not run: zip is not installed |", `broken off: a: no \| such thing |`)
	kit.Check(t, r.hasFailed(), "the report does not count a row that broke off")
}

func TestReport_ReplacesTheTableAndNothingElse(t *testing.T) {
	path := t.TempDir() + "/doc.md"
	must(t, os.WriteFile(path, []byte("before\n"+tableBegin+"\nold\n"+tableEnd+"\nafter\n"), 0o600))
	for _, table := range []string{"one\n", "two\n"} {
		must(t, replaceTable(path, table))
		got, err := os.ReadFile(path)
		want := "before\n" + tableBegin + "\n" + table + tableEnd + "\nafter\n"
		kit.Check(t, err == nil && string(got) == want, "%v: %q instead of %q", err, got, want)
	}
	must(t, os.WriteFile(path, []byte("no place"), 0o600))
	if err := replaceTable(path, "x"); err == nil {
		t.Error("a document without a place for it was changed")
	}
}

func TestRows_NamesAreTheirOwn(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range quickBench(t).rows() {
		kit.Check(t, !seen[r.ID] && r.ID != "" && r.Goal != "" && r.Title != "" && (r.A.Run != nil || r.Missing != ""),
			"row %q: goal %q, title %q, or its name is another's", r.ID, r.Goal, r.Title)
		seen[r.ID] = true
	}
	_, err := chosen(quickBench(t).rows(), "G99")
	kit.Check(t, err != nil, "a goal that does not exist was found")
}

// What is judged has as many pairs as were asked for, but for what would take longer than a row may.
func TestRows_JudgedOnesHaveAllPairs(t *testing.T) {
	b := &bench{pairs: 5}
	costly := []string{"flat-", "index-1M", "ask-status-daemon", "ask-find-daemon", "books-1M"} // how their names begin
	for _, r := range b.rows() {
		judged := func(r ratio) bool { return r.Holds != nil }
		if slices.ContainsFunc(r.Ratios, judged) && r.Pairs != 0 && r.Pairs < b.pairs && !slices.ContainsFunc(costly, func(name string) bool { return strings.HasPrefix(r.ID, name) }) {
			t.Errorf("%s: %d pairs", r.ID, r.Pairs)
		}
	}
}

// Few of the others' pairs are enough to leave a few milliseconds noisy.
func TestRows_RestartsHaveFivePairs(t *testing.T) {
	for _, row := range []struct {
		bench
		want int
	}{{bench{pairs: 3}, 5}, {bench{pairs: 7}, 7}, {bench{pairs: 3, quick: true}, 3}} {
		for _, r := range row.restartRows() {
			kit.Check(t, r.Pairs == row.want, "%s: %d pairs instead of %d", r.ID, r.Pairs, row.want)
		}
	}
}

func TestDocs_HaveAPlaceForTheTableAndARowForEachGoal(t *testing.T) {
	text, err := os.ReadFile("README.md")
	must(t, err)
	kit.Check(t, bytes.Contains(text, []byte(tableBegin)) && bytes.Contains(text, []byte(tableEnd)),
		"no place for the table")
	for _, goal := range []string{"G1", "G2", "G3", "G4", "G5", "G6", "G7", "G8", "G9", "G10", "G11", "G12", "G13"} {
		kit.Check(t, bytes.Contains(text, []byte("| **"+goal+"** |")), "no row for %s", goal)
		_, err := chosen(quickBench(t).rows(), goal)
		kit.Check(t, err == nil, "%s is not measured: %v", goal, err)
	}
}

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
