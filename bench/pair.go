package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"time"
)

// noisy is how far the ratios of the pairs may lie apart: beyond it the machine was measured, not the program.
const noisy = 1.5

// pair is what both sides of a row measured one after the other.
type pair struct{ A, B sample }

// result is what became of a row.
type result struct {
	row    row
	pairs  []pair
	err    error // why it was not run to its end
	Ratios []figure
	Counts []figure
}

// figure is one ratio or count over all pairs of a row.
type figure struct {
	Name, Want       string
	Median, Min, Max float64
	Verdict          verdict
}

// verdict is what a figure says about its goal; empty where it is only told.
type verdict string

const (
	reached verdict = "holds"
	missed  verdict = "**fails**"
	unsure  verdict = "noisy" // the pairs lie too far apart
)

// line is one run, as it is kept.
type line struct {
	Row, Goal, Side string
	Name            string // of the side
	Pair            int    // 0: the warm-up
	At              time.Time
	sample
}

// runAll runs the rows in order. A row that fails is told and does not end the others; the end of ctx does.
func (b *bench) runAll(ctx context.Context, rows []row, log io.Writer, r *report) error {
	var errs []error
	for _, row := range rows {
		if row.Missing == "" {
			b.log.Info("row", "id", row.ID, "goal", row.Goal)
		}
		res := b.measureWithLimit(ctx, row, log)
		r.results = append(r.results, res)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if res.err != nil {
			errs = append(errs, fmt.Errorf("row %s: %w", row.ID, res.err))
		}
	}
	return errors.Join(errs...)
}

// rowLimit and quickLimit are how long a row may take that has no limit of its own. A data set that it makes counts.
const (
	rowLimit   = 15 * time.Minute
	quickLimit = 4 * time.Minute
)

// measureWithLimit measures a row for no longer than it may take.
func (b *bench) measureWithLimit(ctx context.Context, r row, log io.Writer) result {
	limit := cmp.Or(r.Limit, rowLimit)
	if b.quick {
		limit = min(limit, quickLimit)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not done within %v", limit))
	defer cancel()
	return b.measureRow(ctx, r, log)
}

// measureRow runs both sides in turn, A B A B, after a warm-up that does not count.
func (b *bench) measureRow(ctx context.Context, r row, log io.Writer) (res result) {
	res.row = r
	if r.Missing != "" {
		return res
	}
	if r.End != nil {
		defer func() { res.err = errors.Join(res.err, r.End()) }()
	}
	pairs := r.Pairs
	if pairs == 0 {
		pairs = b.pairs
	}
	for n := 1 - r.Warmup; n <= pairs; n++ {
		p, err := b.runPair(ctx, r, n, log)
		if err != nil {
			res.err = err
			return res
		}
		if n > 0 {
			res.pairs = append(res.pairs, p)
		}
	}
	res.judgeFigures()
	return res
}

func (b *bench) runPair(ctx context.Context, r row, n int, log io.Writer) (p pair, err error) {
	if p.A, err = b.runSide(ctx, r, "A", r.A, n, log); err == nil && r.B.Run != nil {
		p.B, err = b.runSide(ctx, r, "B", r.B, n, log)
	}
	return p, err
}

func (b *bench) runSide(ctx context.Context, r row, letter string, s side, n int, log io.Writer) (sample, error) {
	dir, drop, err := b.makeRunDir(r.ID + "-" + letter)
	if err != nil {
		return sample{}, err
	}
	at := time.Now()
	out, err := s.Run(ctx, dir)
	err = errors.Join(err, drop())
	debug.FreeOSMemory() // what one run leaves behind is no burden of the next
	if err != nil {
		return out, fmt.Errorf("%s: %w", s.Name, err)
	}
	return out, json.NewEncoder(log).Encode(line{Row: r.ID, Goal: r.Goal, Side: letter, Name: s.Name, Pair: max(n, 0), At: at, sample: out})
}

// judgeFigures works out the figures of a row from its pairs.
func (res *result) judgeFigures() {
	for _, c := range res.row.Ratios {
		f := figureOver(res.pairs, func(p pair) float64 { return c.Of(p.A, p.B) })
		f.Name, f.Want = c.Name, c.Want
		switch {
		case c.Holds == nil:
		case res.row.Exact:
			f.Verdict = verdictOf(c.Holds(f.Min) && c.Holds(f.Max))
		case f.Max > noisy*f.Min:
			f.Verdict = unsure
		default:
			f.Verdict = verdictOf(c.Holds(f.Median))
		}
		res.Ratios = append(res.Ratios, f)
	}
	for _, c := range res.row.Counts {
		f := figureOver(res.pairs, func(p pair) float64 { return c.Of(p.A) })
		f.Name, f.Want = c.Name, c.Want
		if c.Holds != nil { // every run must hold it, so both ends do
			f.Verdict = verdictOf(c.Holds(f.Min) && c.Holds(f.Max))
		}
		res.Counts = append(res.Counts, f)
	}
}

func verdictOf(ok bool) verdict {
	if ok {
		return reached
	}
	return missed
}

// figureOver is the median and the span of a figure over the pairs.
func figureOver(pairs []pair, of func(pair) float64) figure {
	values := make([]float64, len(pairs))
	for i, p := range pairs {
		values[i] = of(p)
	}
	if len(values) == 0 {
		return figure{}
	}
	return figure{Median: median(values), Min: slices.Min(values), Max: slices.Max(values)}
}

func median(values []float64) float64 {
	s := slices.Sorted(slices.Values(values)) // what is no number comes first
	if len(s) == 0 || math.IsNaN(s[0]) {
		return math.NaN()
	}
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
