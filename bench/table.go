package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// sitting is one use of the bench, as its runs were kept.
type sitting struct {
	machine     machine
	first, last time.Time         // beginnings of runs
	runs        map[string][]line // by row, in order
}

// printTable makes one table of what was measured in several sittings: of each row what was measured when it was last run to its end.
func printTable(_ context.Context, f *flags) error {
	out := f.String("out", defaultOut, "`directory` of runs.jsonl")
	doc := f.String("doc", "", "Markdown `file` whose table is to be replaced by what of this one has a goal")
	if _, err := f.read(); err != nil {
		return err
	}
	file, err := os.Open(filepath.Join(*out, runsFile))
	if err != nil {
		return fmt.Errorf("make table: %w; run vaultbench all first", err)
	}
	defer file.Close() // read-only
	sittings, err := readSittings(file)
	if err != nil {
		return fmt.Errorf("make table of %s: %w", file.Name(), err)
	}
	r := gatherRows(sittings)
	fmt.Fprint(f.stdout, r.asMarkdown())
	if *doc != "" {
		if err := replaceTable(*doc, r.asDocument()); err != nil {
			return err
		}
	}
	if r.hasFailed() {
		return errGoals
	}
	return nil
}

// readSittings reads what the bench kept. A last line that was cut off is none.
func readSittings(from io.Reader) (all []sitting, err error) {
	for d := json.NewDecoder(from); ; {
		var raw json.RawMessage
		if err := d.Decode(&raw); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return all, nil
		} else if err != nil {
			return nil, err
		}
		var kind struct{ Row string }
		if err := json.Unmarshal(raw, &kind); err != nil {
			return nil, err
		}
		if kind.Row == "" {
			s := sitting{runs: map[string][]line{}}
			if err := json.Unmarshal(raw, &s.machine); err != nil {
				return nil, err
			}
			all = append(all, s)
			continue
		}
		if len(all) == 0 {
			return nil, errors.New("it does not begin with a machine")
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return nil, err
		}
		s := &all[len(all)-1]
		if s.first.IsZero() {
			s.first = l.At
		}
		s.last = l.At
		s.runs[l.Row] = append(s.runs[l.Row], l)
	}
}

// gatherRows takes each row from the latest sitting that has all its pairs, among those on the same machine, of the same size and
// the same vaultd as the last. What was missed in an earlier one of them is said beside it: a goal is not reached by trying
// until it is.
func gatherRows(all []sitting) *report {
	r := &report{}
	if len(all) == 0 {
		return r
	}
	r.machine = all[len(all)-1].machine
	used := map[int]bool{}
	for n, row := range all[len(all)-1].asBench().rows() {
		res := result{row: row}
		res.row.Missing = cmp.Or(row.Missing, "not yet")
		for i, s := range slices.Backward(all) {
			if !s.machine.isLike(r.machine) {
				continue
			}
			then, whole := s.resultOf(n)
			switch {
			case !whole:
			case res.pairs == nil:
				res, used[i] = then, true
			default:
				at := s.runs[row.ID][0].At
				recallMisses(res.Ratios, then.Ratios, at)
				recallMisses(res.Counts, then.Counts, at)
			}
		}
		r.results = append(r.results, res)
	}
	for i, s := range all {
		if used[i] {
			r.sittings = append(r.sittings, s.machine)
			if r.at.IsZero() {
				r.at = s.first
			}
			r.until = s.last
		}
	}
	return r
}

// resultOf is that of the n-th row, if it was run to its end.
func (s sitting) resultOf(n int) (res result, whole bool) {
	res.row = s.asBench().rows()[n]
	res.row.Missing = ""
	res.pairs, whole = s.pairsOf(res.row)
	res.judgeFigures()
	return res, whole
}

// recallMisses says of figures that are not missed when they last were.
func recallMisses(taken, earlier []figure, at time.Time) {
	for i, f := range earlier {
		if v := &taken[i].Verdict; f.Verdict == missed && (*v == reached || *v == unsure) {
			*v += verdict("; missed on " + at.UTC().Format("2006-01-02 15:04"))
		}
	}
}

// asBench is one that would measure as this sitting did.
func (s sitting) asBench() *bench {
	return &bench{quick: s.machine.Quick, pairs: s.machine.Pairs, seed: s.machine.Seed}
}

// pairsOf are those of a row, if all of them were run.
func (s sitting) pairsOf(r row) (pairs []pair, whole bool) {
	want := cmp.Or(r.Pairs, s.machine.Pairs)
	pairs = make([]pair, want)
	sides := 0
	for _, l := range s.runs[r.ID] {
		if l.Pair < 1 || l.Pair > want {
			continue
		}
		sides++
		if p := &pairs[l.Pair-1]; l.Side == "A" {
			p.A = l.sample
		} else {
			p.B = l.sample
		}
	}
	if r.B.Run != nil {
		want *= 2
	}
	return pairs, sides == want
}

// isLike reports whether figures of both can stand in one table.
func (m machine) isLike(other machine) bool {
	return m.Cores == other.Cores && m.CPU == other.CPU && m.Kernel == other.Kernel && m.FileSystem == other.FileSystem && m.Go == other.Go &&
		m.Version == other.Version && m.Program == other.Program && m.Quick == other.Quick && m.Seed == other.Seed
}
