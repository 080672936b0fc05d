package boltledger

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// BenchmarkFlat plays the lives of a hundred documents at a time on ledgers that hold more
// and more already, in turns, and reports what the median hundred took on each, and how
// much was written for it.
func BenchmarkFlat(b *testing.B) {
	sizes := []int{10_000, 100_000, 1_000_000}
	var ls []*Ledger
	for _, n := range sizes {
		dir := newLedger(b)
		fillDone(b, dir, n)
		ls = append(ls, open(b, Config{Dir: dir}))
	}
	took := make([][]time.Duration, len(sizes))
	b.ResetTimer() // opening wrote nothing
	for n := range b.N {
		for i, l := range ls {
			took[i] = append(took[i], hundred(b, l, n))
		}
	}
	b.StopTimer()
	for i, n := range sizes {
		slices.Sort(took[i])
		p50, p99 := took[i][len(took[i])/2], took[i][len(took[i])*99/100]
		b.ReportMetric(float64(p50.Microseconds())/1000, "p50ms@"+strconv.Itoa(n))
		b.ReportMetric(float64(p99.Microseconds())/1000, "p99ms@"+strconv.Itoa(n))
		stats := ls[i].db.Stats()
		written := stats.TxStats
		b.ReportMetric(float64(written.GetPageAlloc())/1024/float64(b.N), "KB@"+strconv.Itoa(n))
	}
}

// G7: what is written for a document does not grow with what the ledger holds. Time is for the benchmark.
func TestFlat_G7_WhatACommitWrites(t *testing.T) {
	const rounds = 10
	written := func(n int) float64 {
		dir := newLedger(t)
		fillDone(t, dir, n)
		l := open(t, Config{Dir: dir})
		before := l.db.Stats()
		for round := range rounds {
			hundred(t, l, round)
		}
		after := l.db.Stats()
		return float64(after.TxStats.GetPageAlloc()-before.TxStats.GetPageAlloc()) / (100 * rounds)
	}
	small, large := written(1000), written(20_000)
	t.Logf("%.0f bytes a document with a thousand of them, %.0f with twenty thousand", small, large)
	if large > 1.25*small {
		t.Errorf("%.0f bytes a document with a thousand of them, %.0f with twenty thousand", small, large)
	}
}

// hundred lives the lives of a hundred documents, each step of them one commit.
func hundred(b testing.TB, l *Ledger, round int) time.Duration {
	ds := make([]*doc, 100)
	for i := range ds {
		ds[i] = newDoc(b, l, 100_000_000+100*round+i)
		ds[i].own.Salt[2], ds[i].own.Salt[3] = byte(i), byte(round)
	}
	steps := []func(d *doc) []ledger.Event{
		func(d *doc) []ledger.Event { return []ledger.Event{d.claim()} },
		func(d *doc) []ledger.Event { return []ledger.Event{d.sealed()} },
		func(*doc) []ledger.Event { return []ledger.Event{ledger.RegisterIntended{}} },
		func(d *doc) []ledger.Event { return []ledger.Event{d.ticket(), ledger.UploadIntended{}} },
		func(d *doc) []ledger.Event { return []ledger.Event{d.accepted()} },
		func(d *doc) []ledger.Event { return []ledger.Event{d.success()} },
		func(*doc) []ledger.Event { return []ledger.Event{ledger.PlaceIntended{Dest: "_archived/x"}} },
		func(*doc) []ledger.Event { return []ledger.Event{ledger.Placed{}} },
	}
	var took time.Duration
	for _, step := range steps {
		cs := make([]ledger.Change, len(ds))
		for i, d := range ds {
			cs[i] = d.change(step(d)...)
		}
		began := time.Now()
		rs, err := l.Apply(b.Context(), cs...)
		took += time.Since(began)
		if err != nil {
			b.Fatal(err)
		}
		for i, r := range rs {
			if r.Err != nil {
				b.Fatal(r.Err)
			}
			ds[i].e = r.Entry
		}
	}
	return took
}

// fillDone puts n archived entries into a ledger with their names, and nothing else: what
// else there is of them grows at its end alone.
func fillDone(b testing.TB, dir string, n int) {
	db, err := bbolt.Open(pathIn(dir, fileName), 0o600, &bbolt.Options{NoSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: mapSize})
	if err != nil {
		b.Fatal(err)
	}
	for at := 0; at < n; at += 1000 {
		err := db.Update(func(tx *bbolt.Tx) error {
			var es []ledger.Entry
			for i := at; i < at+1000; i++ {
				e := archivedEntry(i)
				es = append(es, e)
				if err := putValue(tx, doneBucket, e.Key[:], encodeEntry(e, doneBucket)); err != nil {
					return err
				}
			}
			return fillNames(tx, es)
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
}

func archivedEntry(n int) ledger.Entry {
	e := goldenEntry()
	e.Rev, e.State, e.Source, e.Generation, e.Hold, e.NeedsReconcile, e.Contradicted = 9, ledger.Archived, ledger.Kept, 0, false, false, false
	e.Key = archive.Key{}
	binary.BigEndian.PutUint64(e.Key[:8], uint64(n))
	e.Content = sum(fmt.Sprint("content", n))
	e.FirstID = archive.DeriveID("V1", e.Content, e.Metadata)
	e.ID = e.FirstID
	e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: archive.RemoteID(e.FirstID.String() + "-bum"), Object: archive.ObjectDigest(e.FirstID)}, Fate: ledger.Succeeded}}
	e.DisposeAt, e.Pruned, e.NotBefore = time.Time{}, ledger.RegistrationsPruned{}, time.Time{}
	return e
}

// fillNames lays down the names of entries as their commits would have, a hundred
// entries to each.
func fillNames(tx *bbolt.Tx, es []ledger.Entry) error {
	x, err := readNameIndex(tx)
	if err != nil {
		return err
	}
	for some := range slices.Chunk(es, 100) {
		var ps []pair
		for _, e := range some {
			for _, name := range entryNames(e) {
				ps = append(ps, pair{hashOf(name), e.Key})
			}
		}
		n := len(ps)
		if err := x.addRun(tx.Bucket(findBucket), 0, ps); err != nil {
			return err
		}
		if err := x.mergeSome(tx.Bucket(findBucket), n); err != nil {
			return err
		}
	}
	return putValue(tx, metaBucket, runsKey, indexForm.encode(&x))
}
