// The test of this file is inside the package because it compares the two ways
// in which the check looks names up, on chosen numbers of cores. Both ways are
// the package's own matter, and go with the second one.

package boltledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// crowd makes a ledger in which several entries have one content or one number,
// identities were taken over, and registrations are listed no more.
func crowd(t *testing.T) (dir string) {
	t.Helper()
	l := newLedger(t, Config{})
	sealed := map[int]ledger.Sealed{}
	for n := range 40 {
		cs := life(n)
		s, before := cs[1].Events[0].(ledger.Sealed), life(max(n-1, 0))[0].Key
		switch n % 5 {
		case 1:
			s.Content, s.SameContent = sealed[n-1].Content, before
		case 2:
			if s.Number = (archive.NumberDigest{1, byte(n / 10)}); n%10 == 7 {
				s.SameNumber = life(n - 5)[0].Key
			}
		case 3: // rejected, and dropped again as the next one
			refused := cs[2]
			refused.Events = []ledger.Event{ledger.Refused{}}
			cs = append(cs[:2], refused)
		case 4:
			s.ID, s.Content, s.Supersedes = sealed[n-1].ID, sealed[n-1].Content, before
		}
		sealed[n], cs[1].Events = s, []ledger.Event{s}
		for i := range 12 * max(0, 1-n%5) { // registrations of which it lists the last eight
			lapsed := cs[2]
			lapsed.Events = []ledger.Event{ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: archive.Ticket{
				Remote: archive.RemoteID(fmt.Sprintf("lapsed-%d-%d", n, i)), URL: archive.PresignedURL(fmt.Sprintf("https://store.example/%d/%d", n, i)), Sent: lapsed.At,
			}}, ledger.WindowClosed{}}
			cs = slices.Insert(cs, 2, lapsed)
		}
		for i := range cs[1:] {
			cs[i+1].Rev = cs[i].Rev + uint32(len(cs[i].Events))
		}
		for _, c := range cs {
			apply(t, l, c)
		}
	}
	dir = filepath.Dir(l.db.Path())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// bucketNames are the buckets that the check reads; meta is read by the start.
var bucketNames = strings.Fields("open done doc due journal totals counts find scan arrivals arrivalindex notices")

// damageAtRandom spoils a few records: some against their checksum, others so
// that they look correct.
func damageAtRandom(rng *rand.Rand) func(tx *bbolt.Tx) error {
	return func(tx *bbolt.Tx) (err error) {
		for range 1 + rng.IntN(5) {
			name := bucketNames[rng.IntN(len(bucketNames))]
			b := tx.Bucket([]byte(name))
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

// spoil changes what a record says and keeps its checksum right. It returns nil
// for a bucket without such records.
func spoil(rng *rand.Rand, bucket string, v []byte) []byte {
	switch bucket {
	case "open", "done":
		e, err := entryForm.decode(v)
		if err != nil {
			return nil
		}
		spoilEntry(rng, &e)
		return entryForm.encode(&e)
	case "journal":
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
	case "find":
		const pairSize = 24
		if len(v) < pairSize { // a name under a separate key
			return nil
		}
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

// On one core with every name looked up, and on many cores with most names
// compared at once, the same problems are found in the same order and in the
// same words, whatever is damaged.
func TestVerify_I14_TheSameOnAnyNumberOfCores(t *testing.T) {
	source := crowd(t)
	seeds := uint64(60)
	if kit.Sampled(t, "ledgers that are damaged at random") {
		seeds = 15
	}
	found, clean := 0, 0
	for seed := range seeds {
		dir := damaged(t, source, damageAtRandom(rand.New(rand.NewPCG(seed, 7))))
		l, err := Open(Config{Dir: dir})
		if err != nil {
			continue
		}
		check := func(workers, stretch int, everyName bool) []ledger.Problem {
			c := newChecker(t.Context(), l)
			c.workers, c.stretch, c.everyName = workers, stretch, everyName
			found, err := c.checkAll()
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		slow := check(1, 0, true)
		for range 3 {
			kit.Want(t, fmt.Sprintf("problems of seed %d on many cores", seed), check(7, 1+int(seed%5), false), slow)
		}
		if found += len(slow); len(slow) == 0 {
			clean++
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if found < int(seeds) {
		t.Errorf("%d problems in %d ledgers, %d of them without any, want one each at least", found, seeds, clean)
	}
}

// damaged returns a copy of a ledger after fn on its file.
func damaged(t *testing.T, source string, fn func(tx *bbolt.Tx) error) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
		t.Fatal(err)
	}
	db, err := bbolt.Open(filepath.Join(dir, "ledger.db"), 0o600, nil)
	if err == nil {
		err = errors.Join(db.Update(fn), db.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
