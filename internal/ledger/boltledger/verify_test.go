package boltledger_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// A check that continues an earlier one finds nothing in a sound ledger, and
// leaves the same for the next one as a check of the whole. Where an entry that
// was at rest has changed it says so.
func TestCheck_I14_SinceLeavesWhatTheWholeLeaves(t *testing.T) {
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
		kit.Must(t, err)
		latest(t, ds, rs)
		whole := check(t, l, nil)
		kit.Need(t, len(whole.Problems) == 0, "round %d: the check found %v, want nothing", round, whole.Problems)
		changed := round == 0 || slices.ContainsFunc(ds, func(d *doc) bool { rev, ok := resting[d.e.Key]; return ok && rev != d.e.Rev })
		if round > 0 {
			since := check(t, l, &before)
			kit.Need(t, changed == (len(since.Problems) > 0) && (changed || fmt.Sprintf("%+v", since) == fmt.Sprintf("%+v", whole)),
				"round %d: the check from an earlier one leaves\n%+v, want that an entry at rest changed: %v, or\n%+v", round, since, changed, whole)
		}
		if !changed {
			went++
		}
		before = whole.Sound
		clear(resting)
		for _, d := range ds {
			if d.e.State != ledger.None && d.e.IsAtRest() {
				resting[d.e.Key] = d.e.Rev
			}
		}
	}
	kit.Check(t, went >= 20 && len(resting) >= 5,
		"%d checks continued an earlier one, with %d entries at rest, want 20 and 5 at least", went, len(resting))
}

// check checks a ledger, from an earlier check on; nil: the whole.
func check(t *testing.T, l *boltledger.Ledger, since *boltledger.Verified) boltledger.Checked {
	t.Helper()
	return kit.Value(l.Check(t.Context(), since, nil))(t)
}

// A check ends with its context.
func TestVerify_I25_EndsWithItsContext(t *testing.T) {
	dir, _ := filled(t)
	l := open(t, boltledger.Config{Dir: dir})
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	kit.Fails(t, "a check whose context is over", kit.Err(l.Verify(ctx)), enough)
}

// wandered makes a ledger by random events: several entries have one content or one
// number, identities were taken over, and registrations are listed no more. Its
// journal has many blocks.
func wandered(t *testing.T) (dir string) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 1) // the secret decides where the names of objects are
	dir = newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	r := rand.New(rand.NewPCG(3, 1))
	var ds []*doc
	for n := range 60 {
		ds = append(ds, newDoc(t, l, n))
	}
	for range 300 {
		var cs []ledger.Change
		for range 8 {
			d := ds[r.IntN(len(ds))]
			d.at = d.at.Add(time.Duration(r.IntN(90)) * time.Minute)
			cs = append(cs, d.change(d.likely(r)))
		}
		rs := kit.Value(l.Apply(t.Context(), cs...))(t)
		latest(t, ds, rs)
	}
	kit.Must(t, l.Close())
	return dir
}

// listsNoMore reports whether an entry has registrations that the journal alone
// lists.
func listsNoMore(t *testing.T, tx *bbolt.Tx, key []byte) bool {
	t.Helper()
	record := tx.Bucket(openBucket).Get(key)
	if record == nil {
		record = tx.Bucket(doneBucket).Get(key)
	}
	_, folded, _ := cutField(t, payloadOf(t, record), described(t)["Entry"]["Pruned"].number)
	return folded != nil
}

// damagedAtRandom deletes a record, flips a bit of it, moves it to another key, or
// changes one field of it and leaves it well formed. It returns in words what it did.
func damagedAtRandom(t *testing.T, r *rand.Rand, tx *bbolt.Tx) string {
	t.Helper()
	bucket := [][]byte{openBucket, doneBucket, docBucket, dueBucket, journalBucket, namesBucket}[r.IntN(6)]
	b := tx.Bucket(bucket)
	var keys [][]byte
	err := b.ForEach(func(k, v []byte) error {
		if !bytes.Equal(bucket, namesBucket) || !listsNoMore(t, tx, v[:16]) {
			keys = append(keys, bytes.Clone(k))
		}
		return nil
	})
	k := keys[r.IntN(len(keys))]
	v := bytes.Clone(b.Get(k))
	fields := map[string][]string{
		"open": {"State", "Rev", "Key"}, "done": {"State", "Rev", "Key", "Registrations.Ticket.Remote", "Registrations.Ticket.Object"}, "journal": {"Prev"},
	}[string(bucket)]
	message := map[string]string{"open": "Entry", "done": "Entry", "journal": "Block"}[string(bucket)]
	how := ""
	switch i := r.IntN(4); {
	case i == 0:
		how, err = "deleted", errors.Join(err, b.Delete(k))
	case i == 1 && len(v) > 0:
		v[r.IntN(len(v))] ^= 1 << r.IntN(8)
		how, err = "flipped", b.Put(k, v)
	case i == 2 || len(fields) == 0:
		err = b.Delete(k)
		k[len(k)-1] ^= 1 << r.IntN(3)
		how, err = "under another key", errors.Join(err, b.Put(k, v))
	default:
		how = "with another " + fields[r.IntN(len(fields))]
		err = setField(t, tx, bucket, k, message+"."+strings.TrimPrefix(how, "with another "), func(old []byte) []byte {
			if len(old) > 9 {
				return another(old)
			}
			return oneMore(append(old, make([]byte, max(0, 1-len(old)))...))
		})
	}
	kit.Must(t, err)
	return fmt.Sprintf("%s %x %s", bucket, k, how)
}

// Whatever record is damaged, the check finds it.
func TestVerify_I14_FindsDamageOfAnyRecord(t *testing.T) {
	source := wandered(t)
	seeds := uint64(200)
	if kit.Sampled(t, "ledgers that are damaged at random") {
		seeds = 20
	}
	for seed := range seeds {
		dir, what := copyLedger(t, source, fileName, headName), ""
		edit(t, dir, func(tx *bbolt.Tx) error {
			what = damagedAtRandom(t, rand.New(rand.NewPCG(seed, 7)), tx)
			return nil
		})
		l, err := boltledger.Open(boltledger.Config{Dir: dir})
		if err != nil {
			continue // found by the start
		}
		found, err := l.Verify(t.Context())
		kit.Check(t, err == nil && len(found) != 0,
			"seed %d, %s: the check found %v (%v), want a problem", seed, what, found, err)
		kit.Must(t, l.Close())
	}
}

// A line that was changed is found wherever its block is.
func TestVerify_I14_ChangedLineOfAnyBlock(t *testing.T) {
	source := newLedger(t)
	l := open(t, boltledger.Config{Dir: source})
	d := newDoc(t, l, 1)
	d.do(d.claim())
	for range 150 {
		d.do(ledger.Held{})
		d.do(ledger.Unheld{})
	}
	kit.Must(t, l.Close())
	first, end := uint64(2), uint64(300)
	if kit.Sampled(t, "blocks that are changed") {
		first, end = 250, 260 // a part has about as many
	}
	for n := first; n < end; n++ {
		changed := withBlock(t, source, n, func(b []byte) []byte {
			return sealed(codecPlain, bytes.Replace(payloadOf(t, b), []byte(`"at":"2026`), []byte(`"at":"2027`), 1))
		})
		f := kit.Value(os.Open(pathIn(changed, fileName)))(t)
		ps, err := verifyCopy(t.Context(), f)
		kit.Must(t, f.Close())
		kit.Check(t, err == nil && slices.ContainsFunc(ps, func(p ledger.Problem) bool { return strings.Contains(p.What, "does not follow") }),
			"line %d was changed: the check found %v (%v), want a block that does not follow", n, ps, err)
	}
}
