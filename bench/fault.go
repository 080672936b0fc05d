package main

import (
	"context"
	"time"
)

// usualFaults are what the goal speaks of: the store turns away one upload in twenty and drops one connection in a
// hundred, before the upload or after it.
const usualFaults = "store:503:0.05,store:reset:0.005,store:reset-done:0.005"

// bulk is the part of a set by which the rate of faulty runs is judged. The last few documents wait for their third or
// fourth try, which is patience and not speed; how long the whole takes is told beside it.
const bulk = 0.95

// faultRows ask what faults of the service cost.
func (b *bench) faultRows() []row {
	var rows []row
	for _, set := range []string{setNormal, setTiny} {
		rows = append(rows, row{ID: "fault-" + set, Goal: "G13", Title: "one upload in twenty gets a 503, one in a hundred a reset, set " + set,
			A: side{"with faults", b.faulty(set, usualFaults)}, B: side{"without", b.faulty(set, "")}, Warmup: 1,
			Ratios: []ratio{
				{"documents a second, of the first 95 %", func(a, b sample) float64 { return quotient(a.figureNamed("bulk_rate"), b.figureNamed("bulk_rate")) }, ">= 0.90", atLeast(0.90)},
				{"documents a second, to the last one", rateRatio, "told", nil},
				{"CPU", cpuRatio, "told", nil},
			},
			Counts: []count{
				{"answers spoilt", figureOfRow("faulted"), ">= 1", atLeast(1)},
				{"documents sent twice under two numbers", figureOfRow("duplicates"), "0", atMost(0)},
			}})
	}
	expired := func(faults string) func(context.Context, string) (sample, error) {
		return b.faultyRun(setTiny, runOptions{service: fakeOptions{TLS: true, Faults: faults}, setup: setup{BatchWait: fullBatches}})
	}
	return append(rows, row{ID: "expired", Goal: "G13", Title: "the addresses of one batch in ten are over when they come",
		A: side{"with faults", expired("batch:expired:0.1")}, B: side{"without", expired("")}, Exact: true,
		Ratios: []ratio{{"further calls a spoilt batch, that is calls beyond those", func(a, b sample) float64 {
			return quotient(a.figureNamed("posts")-b.figureNamed("posts"), a.figureNamed("faulted"))
		}, "<= 1", atMost(1)}},
		Counts: []count{
			{"batches spoilt", figureOfRow("faulted"), ">= 1", atLeast(1)},
			{"calls", figureOfRow("posts"), "told", nil},
			{"documents registered again, in batches of 50, a spoilt batch", func(s sample) float64 {
				return quotient((s.figureNamed("registered")-float64(s.Docs))/bareBatch, s.figureNamed("faulted"))
			}, "<= 1", atMost(1)},
		}})
}

// fullBatches is how long a call waits for more documents where calls are counted: so long that it is full.
const fullBatches = 2 * time.Second

func (b *bench) faulty(set, faults string) func(context.Context, string) (sample, error) {
	return b.faultyRun(set, runOptions{service: fakeOptions{TLS: true, Faults: faults}})
}

func (b *bench) faultyRun(set string, o runOptions) func(context.Context, string) (sample, error) {
	o.untilStored = true
	return func(ctx context.Context, dir string) (sample, error) {
		o.stored = func(ctx context.Context, w work) error {
			docs := int(bulk * float64(w.docs))
			if err := w.awaitStored(ctx, docs); err != nil {
				return err
			}
			w.told.noteFigure("bulk_rate", quotient(float64(docs), time.Since(w.began).Seconds()))
			return w.awaitStored(ctx, w.docs)
		}
		return b.run(ctx, dir, set, o)
	}
}
