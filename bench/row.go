package main

import (
	"context"
	"math"
	"time"
)

// sample is what one run of one side measured.
type sample struct {
	Wall, CPU      time.Duration // CPU: user and system time of the process that does the work, not of servers
	Docs           int
	In, Out        int64  // bytes read from folders, bytes of ZIPs sent
	Commits, Syncs uint64 // of the ledger
	PeakAnon       int64  // bytes
	More           map[string]float64
}

// noteFigure keeps a figure that only this row has. What is no number is not kept.
func (s *sample) noteFigure(name string, v float64) {
	if math.IsNaN(v) {
		return
	}
	if s.More == nil {
		s.More = map[string]float64{}
	}
	s.More[name] = v
}

// side is one of the two things that a row compares.
type side struct {
	Name string
	// Run does the work once. dir is fresh, empty, and removed afterwards.
	Run func(ctx context.Context, dir string) (sample, error)
}

// row is one measurement: two sides that run in turn, A B A B …, or one side alone of which something is counted.
type row struct {
	ID, Goal, Title string       // "whole-tiny", "G2", …
	A, B            side         // B.Run nil: a counted row without a partner
	Warmup, Pairs   int          // pairs that are thrown away, and pairs that count; Pairs 0: as many as the bench says
	End             func() error // after the last run, also of a row that fails; nil: nothing is left to end
	Ratios          []ratio
	Counts          []count
	Exact           bool          // its ratios do not depend on the machine: every pair must hold them, noisy or not
	Limit           time.Duration // of all its runs; 0: that of the bench
	Missing         string        // not empty: the row is not run, and why
}

// ratio compares the sides of one pair. Its verdict is on the median of all pairs.
type ratio struct {
	Name  string
	Of    func(a, b sample) float64
	Want  string             // in words, for the table
	Holds func(float64) bool // nil: told, not judged
}

// count is something that does not depend on the machine. Every run of A must hold it.
type count struct {
	Name  string
	Of    func(sample) float64
	Want  string
	Holds func(float64) bool // nil: told, not judged
}

func atMost(limit float64) func(float64) bool  { return func(v float64) bool { return v <= limit } }
func atLeast(limit float64) func(float64) bool { return func(v float64) bool { return v >= limit } }

// The ratios that most rows have.
func wallRatio(a, b sample) float64 { return quotient(a.Wall.Seconds(), b.Wall.Seconds()) }
func cpuRatio(a, b sample) float64  { return quotient(a.CPU.Seconds(), b.CPU.Seconds()) }
func rateRatio(a, b sample) float64 { return quotient(a.rate(), b.rate()) }
func sizeRatio(a, b sample) float64 { return quotient(float64(a.Out), float64(b.Out)) }

// The counts that most rows have.
func syncsPerDoc(s sample) float64   { return quotient(float64(s.Syncs), float64(s.Docs)) }
func commitsPerDoc(s sample) float64 { return quotient(float64(s.Commits), float64(s.Docs)) }
func peakMiB(s sample) float64       { return float64(s.PeakAnon) / (1 << 20) }

// figureNamed is a figure that only this row has. One that is missing is no number, so that nothing holds of it.
func (s sample) figureNamed(name string) float64 {
	if v, ok := s.More[name]; ok {
		return v
	}
	return math.NaN()
}

// figureOfRow is the count of a figure that only this row has.
func figureOfRow(name string) func(sample) float64 {
	return func(s sample) float64 { return s.figureNamed(name) }
}

// rate is documents a second.
func (s sample) rate() float64 { return quotient(float64(s.Docs), s.Wall.Seconds()) }

// quotient is no number where there is nothing to divide by, so that nothing holds of it.
func quotient(a, b float64) float64 {
	if b == 0 {
		return math.NaN()
	}
	return a / b
}
