package boltledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// damageAtRandom spoils a few records: some so that their checksum tells, others so that they look as if they were right.
func damageAtRandom(rng *rand.Rand) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) (err error) {
		for range 1 + rng.IntN(5) {
			name := buckets[1+rng.IntN(len(buckets)-1)] // meta is looked at when the ledger is opened
			b := tx.Bucket(name)
			k, v := pick(rng, b)
			if k == nil {
				continue
			}
			switch rng.IntN(5) {
			case 0:
				err = errors.Join(err, b.Delete(k))
			case 1:
				if len(v) > 0 {
					v[rng.IntN(len(v))] ^= 1 << rng.IntN(8)
				}
				err = errors.Join(err, b.Put(k, v))
			case 2:
				k[len(k)-1] ^= 1 << rng.IntN(3)
				err = errors.Join(err, b.Put(k, v))
			default:
				if v = spoil(rng, name, v); v != nil {
					err = errors.Join(err, b.Put(k, v))
				}
			}
		}
		return err
	}
}

// pick returns copies of one record of a bucket.
func pick(rng *rand.Rand, b *bbolt.Bucket) (k, v []byte) {
	n := b.Stats().KeyN
	if n == 0 {
		return nil, nil
	}
	cur := b.Cursor()
	k, v = cur.First()
	for range rng.IntN(n) {
		k, v = cur.Next()
	}
	return bytes.Clone(k), bytes.Clone(v)
}

// spoil changes what a record says and keeps its checksum right; nil: it has no such form.
func spoil(rng *rand.Rand, bucket, v []byte) []byte {
	switch {
	case bytes.Equal(bucket, openBucket), bytes.Equal(bucket, doneBucket):
		e, err := decodeEntry(v)
		if err != nil {
			return nil
		}
		spoilEntry(rng, &e)
		return entryForm.encode(&e)
	case bytes.Equal(bucket, journalBucket):
		b, err := blockForm.decode(v)
		if err != nil {
			return nil
		}
		switch i := rng.IntN(len(b.lines)); rng.IntN(4) {
		case 0:
			b.lines[i] = bytes.Replace(b.lines[i], []byte(`"n":`), []byte(`"n":9`), 1)
		case 1:
			b.lines = slices.Delete(b.lines, i, i+1)
			b.count--
		case 2:
			b.prev[0]++
		default:
			b.lines[i][len(b.lines[i])/2] ^= 1
		}
		return blockForm.encode(&b)
	case bytes.Equal(bucket, findBucket) && len(v) >= pairSize:
		i := rng.IntN(len(v) / pairSize)
		switch rng.IntN(4) {
		case 0: // another one's
			copy(v[i*pairSize+8:], v[:pairSize][8:])
		case 1: // twice
			v = slices.Insert(v, i*pairSize, bytes.Clone(v[i*pairSize:(i+1)*pairSize])...)
		case 2: // gone
			v = slices.Delete(v, i*pairSize, (i+1)*pairSize)
		default: // another name's
			v[i*pairSize+5]++
		}
		return v
	}
	return nil
}

func spoilEntry(rng *rand.Rand, e *ledger.Entry) {
	switch rng.IntN(9) {
	case 0:
		e.FirstID[3]++
	case 1:
		e.Content[0]++
	case 2:
		e.Number[0]++
	case 3:
		e.SameNumber[15]++
	case 4:
		e.State = ledger.Rejected
	case 5:
		e.Rev++
	case 6:
		e.Generation++
	default:
		if len(e.Registrations) > 0 {
			r := e.Registrations[0]
			if rng.IntN(2) == 0 {
				r.Ticket.Object[0]++
			}
			if rng.IntN(2) == 0 {
				r.Generation++
			}
			e.Registrations = append(e.Registrations, r)
		}
	}
}

// On one core with every name looked up, and on many cores with most names compared at once, the same problems are found in
// the same order and in the same words, whatever is damaged.
func TestVerify_I14_TheSameOnAnyNumberOfCores(t *testing.T) {
	source := wandered(t)
	found, clean := 0, 0
	for seed := range uint64(60) {
		dir := copyLedger(t, source, fileName, headName)
		edit(t, dir, damageAtRandom(rand.New(rand.NewPCG(seed, 7))))
		l, err := Open(Config{Dir: dir})
		if err != nil {
			continue
		}
		slow, err := (&checker{ledger: l, ctx: t.Context(), workers: 1, everyName: true, fetches: fetchCounts{}}).checkAll()
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			fast, err := (&checker{ledger: l, ctx: t.Context(), workers: 7, stretch: 1 + int(seed%5), fetches: fetchCounts{}}).checkAll()
			if err != nil || !slices.Equal(fast, slow) {
				t.Errorf("seed %d (%v):\nmany cores %v\none core   %v", seed, err, fast, slow)
			}
		}
		if found += len(slow); len(slow) == 0 {
			clean++
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if t.Logf("%d problems; %d ledgers without any", found, clean); found < 60 {
		t.Error("the test is vacuous")
	}
}

// wandered makes a ledger by random events: several entries have one content, one number or one bumId, identities were taken
// over, and registrations are listed no more.
func wandered(t *testing.T) (dir string) {
	dir = newLedger(t)
	l := open(t, Config{Dir: dir})
	r := rand.New(rand.NewPCG(3, 1))
	var ds []*doc
	for n := range 60 {
		ds = append(ds, newDoc(t, l, n))
	}
	for range 120 {
		var cs []ledger.Change
		for range 20 {
			d := ds[r.IntN(len(ds))]
			d.at = d.at.Add(time.Duration(r.IntN(90)) * time.Minute)
			cs = append(cs, d.change(d.likely(r)))
		}
		rs, err := l.Apply(t.Context(), cs...)
		if err != nil {
			t.Fatal(err)
		}
		latest(t, ds, rs)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// A check since an earlier one finds nothing in a sound ledger, and leaves the same for the next one as a check of the whole,
// as long as no entry that was at rest has changed.
func TestVerifySince_I14_LeavesWhatTheWholeLeaves(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	r := rand.New(rand.NewPCG(5, 1))
	var ds []*doc
	before, resting, went := Verified{}, map[archive.Key]uint32{}, 0
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
			t.Fatal(found, err)
		}
		changed := round == 0 || slices.ContainsFunc(ds, func(d *doc) bool { rev, ok := resting[d.e.Key]; return ok && rev != d.e.Rev })
		if !changed {
			went++
			found, since, err := l.VerifySince(t.Context(), before, nil)
			if err != nil || len(found) > 0 || fmt.Sprintf("%+v", since) != fmt.Sprintf("%+v", whole) {
				t.Fatalf("round %d: %v %v\nsince %+v\nwhole %+v", round, found, err, since, whole)
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
	if t.Logf("%d went on, %d of %d at rest", went, len(resting), len(ds)); went < 20 || len(resting) < 5 {
		t.Error("the test is vacuous")
	}
}

// A check of many workers ends with its context, and leaves none of them behind.
func TestVerify_I25_EndsWithItsContext(t *testing.T) {
	dir, _ := filled(t)
	l := open(t, Config{Dir: dir})
	defer l.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := fmt.Errorf("enough")
	cancel(enough)
	if _, err := (&checker{ledger: l, ctx: ctx, workers: 5, fetches: fetchCounts{}}).checkAll(); !errors.Is(err, enough) {
		t.Error(err)
	}
}
