package main

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"
)

// report is what was found, in one use of the bench or in several.
type report struct {
	machine   machine
	at, until time.Time // until: zero in one sitting
	sittings  []machine // as they were before each of them
	results   []result
}

// hasFailed reports whether a goal was not reached, or a row not run to its end.
func (r *report) hasFailed() bool {
	for _, res := range r.results {
		if res.err != nil {
			return true
		}
		for _, f := range append(res.Ratios, res.Counts...) {
			if f.Verdict == missed {
				return true
			}
		}
	}
	return false
}

// asMarkdown is the report as people read it.
func (r *report) asMarkdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s. %s.\n\n", r.describeTime(), r.machine)
	fmt.Fprint(&b, "| row | goal | what | median | span | wanted | |\n|---|---|---|---|---|---|---|\n")
	for _, res := range r.results {
		res.writeResult(&b)
	}
	fmt.Fprint(&b, "\nMedians of the runs themselves. CPU is that of the process that does the work, memory its anonymous resident part.\n\n")
	fmt.Fprint(&b, "| row | side | documents | wall s | CPU s | docs/s | CPU ms/doc | MB in | MB out | MB/s out | syncs/doc | peak MiB |\n")
	fmt.Fprint(&b, "|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, res := range r.results {
		res.writeSide(&b, res.row.A, func(p pair) sample { return p.A })
		if res.row.B.Run != nil {
			res.writeSide(&b, res.row.B, func(p pair) sample { return p.B })
		}
	}
	return b.String()
}

// asDocument is the part of the report that a document shows: what is judged. The rest is in the report itself.
func (r *report) asDocument() string {
	var b strings.Builder
	fmt.Fprintf(&b, "Measured %s. %s.\n\n", r.describeTime(), r.machine)
	fmt.Fprint(&b, "| row | goal | what | median | span | wanted | |\n|---|---|---|---|---|---|---|\n")
	var left []string
	for _, res := range r.results {
		if res.row.Missing != "" {
			left = append(left, fmt.Sprintf("`%s` (%s)", res.row.ID, res.row.Missing))
			continue
		}
		hasNoGoal := func(f figure) bool { return f.Verdict == "" }
		res.Ratios, res.Counts = slices.DeleteFunc(slices.Clone(res.Ratios), hasNoGoal), slices.DeleteFunc(slices.Clone(res.Counts), hasNoGoal)
		res.writeResult(&b)
	}
	if len(left) > 0 {
		fmt.Fprintf(&b, "\nNot run: %s.\n", strings.Join(left, ", "))
	}
	return b.String()
}

// describeTime is the time of the report, and what the machine had to do before, and how many pairs its rows have.
func (r *report) describeTime() string {
	const layout = "2006-01-02 15:04 MST"
	loads := make([]float64, len(r.sittings))
	for i, m := range r.sittings {
		loads[i] = m.Load
	}
	text := r.at.UTC().Format(layout)
	switch len(loads) {
	case 0:
	case 1:
		text += fmt.Sprintf(", load %.2f before the first run", loads[0])
	default:
		text += fmt.Sprintf(" to %s, in %d sittings, load %.2f to %.2f before them", r.until.UTC().Format(layout), len(loads), slices.Min(loads), slices.Max(loads))
	}
	return text + r.describePairs()
}

// describePairs says how many the rows have that compare two sides.
func (r *report) describePairs() string {
	var n []int
	for _, res := range r.results {
		if res.row.B.Run != nil && len(res.pairs) > 0 {
			n = append(n, len(res.pairs))
		}
	}
	switch {
	case len(n) == 0:
		return ""
	case slices.Min(n) == slices.Max(n):
		return fmt.Sprintf(", %d pairs", n[0])
	}
	return fmt.Sprintf(", %d to %d pairs", slices.Min(n), slices.Max(n))
}

func (res *result) writeResult(b *strings.Builder) {
	first := func(what string) {
		fmt.Fprintf(b, "| %s | %s | %s ", res.row.ID, res.row.Goal, what)
	}
	switch {
	case res.row.Missing != "":
		first(res.row.Title)
		fmt.Fprintf(b, "| | | | not run: %s |\n", res.row.Missing)
		return
	case res.err != nil:
		first(res.row.Title)
		fmt.Fprintf(b, "| | | | broken off: %s |\n", escapeCell(fmt.Sprintf("%.200s", res.err))) // what vaultd logged is in the error as well
		return
	}
	for _, f := range res.Ratios {
		first(fmt.Sprintf("%s: %s to %s", f.Name, res.row.A.Name, res.row.B.Name))
		f.writeFigure(b)
	}
	for _, f := range res.Counts {
		first(f.Name)
		f.writeFigure(b)
	}
}

func (f figure) writeFigure(b *strings.Builder) {
	fmt.Fprintf(b, "| %s | %s – %s | %s | %s |\n", formatDigits(f.Median), formatDigits(f.Min), formatDigits(f.Max), f.Want, f.Verdict)
}

// escapeCell is text that breaks no table.
func escapeCell(s string) string {
	return strings.NewReplacer("\n", " ", "|", "\\|").Replace(s)
}

func (res *result) writeSide(b *strings.Builder, s side, of func(pair) sample) {
	if len(res.pairs) == 0 {
		return
	}
	m := func(figure func(sample) float64) string {
		return formatDigits(figureOver(res.pairs, func(p pair) float64 { return figure(of(p)) }).Median)
	}
	const MB = 1e6
	fmt.Fprintf(b, "| %s | %s", res.row.ID, s.Name)
	for _, figure := range []func(sample) float64{
		func(s sample) float64 { return float64(s.Docs) },
		func(s sample) float64 { return s.Wall.Seconds() },
		func(s sample) float64 { return s.CPU.Seconds() },
		sample.rate,
		func(s sample) float64 { return quotient(s.CPU.Seconds()*1000, float64(s.Docs)) },
		func(s sample) float64 { return float64(s.In) / MB },
		func(s sample) float64 { return float64(s.Out) / MB },
		func(s sample) float64 { return quotient(float64(s.Out)/MB, s.Wall.Seconds()) },
		syncsPerDoc,
		peakMiB,
	} {
		fmt.Fprintf(b, " | %s", m(figure))
	}
	fmt.Fprint(b, " |\n")
}

// formatDigits writes a figure with as many digits as it is worth.
func formatDigits(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return "–"
	case v == math.Trunc(v) && a < 1e6:
		return fmt.Sprintf("%.0f", v)
	case a >= 100:
		return fmt.Sprintf("%.0f", v)
	case a >= 10:
		return fmt.Sprintf("%.1f", v)
	case a >= 0.9 && a < 1.1:
		return fmt.Sprintf("%.4f", v)
	default:
		return fmt.Sprintf("%.3g", v)
	}
}

// The table of a document stands between these two lines.
const (
	tableBegin = "<!-- vaultbench: from here on written by vaultbench table -doc -->"
	tableEnd   = "<!-- vaultbench: up to here -->"
)

// replaceTable puts a new table into a document, in the place of the old one.
func replaceTable(path, table string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("replace table: %w", err)
	}
	before, rest, ok := bytes.Cut(text, []byte(tableBegin))
	_, after, ok2 := bytes.Cut(rest, []byte(tableEnd))
	if !ok || !ok2 {
		return fmt.Errorf("replace table: %s has no place for it, which is between %q and %q", path, tableBegin, tableEnd)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s%s\n%s%s%s", before, tableBegin, table, tableEnd, after)
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("replace table: %w", err)
	}
	return nil
}
