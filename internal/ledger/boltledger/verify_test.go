package boltledger_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// A check that continues an earlier one finds nothing in a sound ledger, and
// leaves the same for the next one as a check of the whole, as long as no entry
// that was at rest has changed.
func TestVerifySince_I14_LeavesWhatTheWholeLeaves(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	r := rand.New(rand.NewPCG(5, 1))
	var ds []*doc
	before, resting, went := boltledger.Verified{}, map[archive.Key]uint32{}, 0
	for round := range 60 {
		for range 2 {
			ds = append(ds, newDoc(t, l, len(ds)))
		}
		var cs []ledger.Change
		for range 8 {
			d := ds[max(0, len(ds)-1-r.IntN(12))] // the others come to rest
			d.at = d.at.Add(time.Duration(r.IntN(90)) * time.Minute)
			cs = append(cs, d.change(d.likely(r)))
		}
		rs, err := l.Apply(t.Context(), cs...)
		if err != nil {
			t.Fatal(err)
		}
		latest(t, ds, rs)
		found, whole, err := l.VerifyWhole(t.Context(), 0, nil)
		if err != nil || len(found) > 0 {
			t.Fatalf("round %d: the check found %v (%v), want nothing", round, found, err)
		}
		changed := round == 0 || slices.ContainsFunc(ds, func(d *doc) bool { rev, ok := resting[d.e.Key]; return ok && rev != d.e.Rev })
		if !changed {
			went++
			found, since, err := l.VerifySince(t.Context(), before, nil)
			if err != nil || len(found) > 0 || fmt.Sprintf("%+v", since) != fmt.Sprintf("%+v", whole) {
				t.Fatalf("round %d: the check from an earlier one found %v (%v) and leaves\n%+v, want nothing and\n%+v", round, found, err, since, whole)
			}
		}
		before = whole
		clear(resting)
		for _, d := range ds {
			if d.e.State != ledger.None && d.e.IsAtRest() {
				resting[d.e.Key] = d.e.Rev
			}
		}
	}
	if went < 20 || len(resting) < 5 {
		t.Errorf("%d checks continued an earlier one, with %d entries at rest, want 20 and 5 at least", went, len(resting))
	}
}

// A check ends with its context, and leaves none of its workers behind.
func TestVerify_I25_EndsWithItsContext(t *testing.T) {
	dir, _ := filled(t)
	l := open(t, boltledger.Config{Dir: dir})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := l.Verify(ctx); !errors.Is(err, enough) {
		t.Errorf("a check whose context is over: %v, want %v", err, enough)
	}
}
