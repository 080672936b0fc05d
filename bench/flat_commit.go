package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

const (
	commitDocs   = 100 // documents in each commit
	commitRounds = 50  // of the nine changes of a document
)

// commitRows ask the same of the ledger alone: what a commit costs that takes one change each of a hundred documents.
func (b *bench) commitRows() []row {
	small := b.scaleForQuick(smallLedger)
	var rows []row
	for _, docs := range []int{b.scaleForQuick(100_000), b.scaleForQuick(largeLedger)} {
		rows = append(rows, row{ID: "commit-" + short(docs), Goal: "G7",
			Title: fmt.Sprintf("commits of %d changes on a ledger of %s and on one of %s", commitDocs, short(docs), short(small)),
			A:     side{short(docs) + " documents", b.commits(docs)}, B: side{short(small) + " documents", b.commits(small)}, Warmup: 1,
			Ratios: []ratio{
				{"p50 of a commit", func(a, b sample) float64 { return quotient(a.figureNamed("p50_ms"), b.figureNamed("p50_ms")) }, "<= 1.25", atMost(1.25)},
				{"CPU a document", func(a, b sample) float64 { return quotient(cpuPerDoc(a), cpuPerDoc(b)) }, "<= 1.25", atMost(1.25)},
				{"p99 of a commit", func(a, b sample) float64 { return quotient(a.figureNamed("p99_ms"), b.figureNamed("p99_ms")) }, "told", nil},
			},
			Counts: []count{
				{"p50 of a commit, ms", figureOfRow("p50_ms"), "told", nil},
				{"p99 of a commit, ms", figureOfRow("p99_ms"), "told", nil},
			}})
	}
	return rows
}

func (b *bench) commits(docs int) func(context.Context, string) (sample, error) {
	return func(ctx context.Context, dir string) (s sample, err error) {
		state, err := b.workingLedger(ctx, docs, 0, dir)
		if err != nil {
			return s, err
		}
		l, err := boltledger.Open(boltledger.Config{Dir: state})
		if err != nil {
			return s, err
		}
		defer func() { err = errors.Join(err, l.Close()) }()
		seed := [32]byte{} // never again: the ledger would know the documents
		for i := range seed {
			seed[i] = byte(rand.Uint32())
		}
		fresh := &lives{at: time.Now().Add(-time.Hour), rng: rand.NewChaCha8(seed)}
		var took []float64
		began, cpu := time.Now(), ownCPU()
		for range commitRounds {
			some, err := commitLives(ctx, l, fresh)
			if err != nil {
				return s, err
			}
			took = append(took, some...)
		}
		s = sample{Wall: time.Since(began), CPU: ownCPU() - cpu, Docs: commitDocs * commitRounds}
		slices.Sort(took)
		s.noteFigure("p50_ms", took[len(took)/2])
		s.noteFigure("p99_ms", took[len(took)*99/100])
		return s, nil
	}
}

// commitLives takes a hundred documents through their lives, all of them one change further with each commit, and
// returns how many milliseconds each commit took.
func commitLives(ctx context.Context, l *boltledger.Ledger, fresh *lives) (took []float64, err error) {
	docs, revs := make([]*life, commitDocs), make([]uint32, commitDocs)
	for i := range docs {
		docs[i] = fresh.next()
	}
	for n := range docs[0].changes {
		cs := make([]ledger.Change, commitDocs)
		for i, d := range docs {
			cs[i] = d.change(n, revs[i])
		}
		at := time.Now()
		results, err := l.Apply(ctx, cs...)
		took = append(took, float64(time.Since(at).Microseconds())/1000)
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			if r.Err != nil {
				return nil, r.Err
			}
			revs[i] = r.Entry.Rev
		}
	}
	return took, nil
}
