package boltledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// filled makes a ledger with entries in several states and closes it.
func filled(t testing.TB) (dir string, keys []archive.Key) {
	dir = newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	for n := 1; n <= 12; n++ {
		d := newDoc(t, l, n)
		switch n % 3 {
		case 0:
			d.archived()
		case 1:
			d.do(d.claim())
		default:
			d.do(d.claim(), d.sealed(), ledger.RegisterIntended{}, d.ticket())
		}
		keys = append(keys, d.e.Key)
	}
	kit.Must(t, l.Close())
	return dir, keys
}

// errUnchanged ends an edit that only looks.
var errUnchanged = errors.New("nothing is to be changed")

// edit runs fn in a write transaction on the file of a ledger that is closed.
func edit(t testing.TB, dir string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(pathIn(dir, fileName), 0o600, nil)
	kit.Must(t, err)
	err = db.Update(fn)
	if errors.Is(err, errUnchanged) {
		err = nil
	}
	kit.Must(t, errors.Join(err, db.Close()))
}

// dropFirst deletes the first record of a bucket.
func dropFirst(bucket []byte) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		k, _ := first(tx, bucket)
		return tx.Bucket(bucket).Delete(k)
	}
}

// damages are changes of a ledger made by filled: each one alters, adds or
// removes one record.
func damages(t *testing.T) map[string]func(*bbolt.Tx) error {
	flipFirst := func(bucket []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			k, v := first(tx, bucket)
			return tx.Bucket(bucket).Put(k, flipped(v))
		}
	}
	alterFirst := func(bucket []byte, field string, value func([]byte) []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			k, _ := first(tx, bucket)
			return setField(t, tx, bucket, k, field, value)
		}
	}
	alterMeta := func(key, field string, value func([]byte) []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return setField(t, tx, metaBucket, []byte(key), field, value) }
	}
	put := func(bucket, key, value []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put(key, value) }
	}
	return map[string]func(*bbolt.Tx) error{
		"OpenFlipped": flipFirst(openBucket), "DoneFlipped": flipFirst(doneBucket), "DocFlipped": flipFirst(docBucket),
		"JournalFlipped": flipFirst(journalBucket), "NameFlipped": flipFirst(namesBucket),
		"OpenLost": dropFirst(openBucket), "DoneLost": dropFirst(doneBucket), "DocLost": dropFirst(docBucket), "DueLost": dropFirst(dueBucket),
		"JournalLost": dropFirst(journalBucket), "NameLost": dropFirst(namesBucket),
		"SummaryFlipped": func(tx *bbolt.Tx) error {
			return put(metaBucket, []byte("summary"), flipped(tx.Bucket(metaBucket).Get([]byte("summary"))))(tx)
		},
		"SummaryLost":      func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete([]byte("summary")) },
		"BucketGone":       func(tx *bbolt.Tx) error { return tx.DeleteBucket(namesBucket) },
		"SchemaIsNoNumber": put(metaBucket, []byte("schema"), []byte("one")),

		// The rows below leave each record well formed.
		"LastSuccess":      alterMeta("summary", "Summary.Success", number(1<<62)),
		"DownloadAtNoTime": put(fetchesBucket, []byte("1234567\x00"), []byte{}),
		"SecretEmpty":      alterMeta("summary", "Summary.Secret.Key", func([]byte) []byte { return nil }),
		"TimeOfTheEnd":     alterMeta("summary", "Summary.At", oneMore),
		"BalanceSeen":      alterMeta("summary", "Summary.Balance.Seen", oneMore),
		"BalanceOfAState":  alterMeta("summary", "Summary.Balance.States", oneMore),
		"HeadHash":         alterMeta("summary", "Summary.Head.Hash", another),
		"EntryState":       alterFirst(openBucket, "Entry.State", number(uint64(ledger.Quarantined))),
		"EntryRevision":    alterFirst(openBucket, "Entry.Rev", oneMore),
		"EntryDueTime":     alterFirst(openBucket, "Entry.NotBefore", oneMore),
		"EntryBumId":       alterFirst(doneBucket, "Entry.Registrations.Ticket.Remote", another),
		"EntryObject":      alterFirst(doneBucket, "Entry.Registrations.Ticket.Object", another),
		"EntryOtherKey":    alterFirst(openBucket, "Entry.Key", another),
		"DueInvented":      put(dueBucket, append([]byte("\x01\x09drop acme12345678"), make([]byte, 16)...), nil),
		"DueWithValue": func(tx *bbolt.Tx) error {
			k, _ := first(tx, dueBucket)
			return tx.Bucket(dueBucket).Put(k, []byte{0})
		},
		"AskingInvented": put(indexBucket, []byte("nack-1"), nil),
		"NameInvented":   put(namesBucket, []byte("rbum-x"), make([]byte, 17)),
		"NameMoved": func(tx *bbolt.Tx) error {
			k, v := first(tx, namesBucket)
			return errors.Join(tx.Bucket(namesBucket).Delete(k), tx.Bucket(namesBucket).Put(another(k), v))
		},
		"NamesMiscounted": alterMeta("summary", "Summary.Names", oneMore),
		"NameLeadsAstray": func(tx *bbolt.Tx) error {
			k, v := first(tx, namesBucket)
			v[15]++
			return tx.Bucket(namesBucket).Put(k, v)
		},
		"NameOfAnother": func(tx *bbolt.Tx) error { // counted, and of an entry that is found by its own names
			k, _ := first(tx, doneBucket)
			return errors.Join(
				tx.Bucket(namesBucket).Put([]byte("rDIGESTOFBUM-\xff\xff\xff\xff"), append(k, 0)),
				alterMeta("summary", "Summary.Names", oneMore)(tx),
			)
		},
		"NameTakenTwice": func(tx *bbolt.Tx) error {
			k, v := first(tx, namesBucket)
			return tx.Bucket(namesBucket).Put(another(k), v)
		},
		"DocInvented": func(tx *bbolt.Tx) error {
			_, v := first(tx, docBucket)
			return tx.Bucket(docBucket).Put(make([]byte, 16), v)
		},
		"InBothBuckets": func(tx *bbolt.Tx) error {
			k, v := first(tx, doneBucket)
			return tx.Bucket(openBucket).Put(k, v)
		},
		"LineRewritten": func(tx *bbolt.Tx) error { // of the second block: the first one is older than any entry
			k, _ := first(tx, journalBucket)
			k, _ = tx.Bucket(journalBucket).Cursor().Seek(append(k[:7:7], k[7]+1))
			return setField(t, tx, journalBucket, k, "Block.Lines", func(old []byte) []byte {
				line, _ := protowire.ConsumeBytes(old)
				return text(bytes.Replace(line, []byte("discovered"), []byte("rejected"), 1))(nil)
			})
		},
	}
}

// Opening refuses each damage, or the check finds it.
func TestVerify_I14_FindsDamage(t *testing.T) {
	source, _ := filled(t)
	for name, damage := range damages(t) {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			edit(t, dir, damage)
			l, err := boltledger.Open(boltledger.Config{Dir: dir})
			var d *ledger.DamageError
			if errors.As(err, &d) {
				t.Log(err)
				return
			}
			kit.Must(t, err)
			defer l.Close()
			ps, err := l.Verify(t.Context())
			kit.Check(t, len(ps) != 0 && err == nil, "the check found %v (%v), want a problem", ps, err)
			t.Log(ps)
		})
	}
}

// Bits flip anywhere in the file. Either opening or the check notices it, or
// every record is as it was: the bit is in free space, or in the older of the
// two meta pages. Some flips end the process, which is a child for that.
func TestOpen_I15_AnyFlippedBitIsSeenOrHarmless(t *testing.T) {
	source, _ := filled(t)
	seen, harmless, ended, from := 0, 0, 0, 0
	for from < flips { // a child that dies of what it reads is reported, and the next one continues behind it
		out, err := flipsFrom(t, source, from)
		for line := range strings.Lines(out) {
			var n, changed int
			var was string
			if _, err := fmt.Sscanf(line, "flip %d %s %d", &n, &was, &changed); err != nil {
				continue
			}
			from = n + 1
			switch {
			case was == "noticed":
				seen++
			case changed != 0:
				t.Errorf("flip %d changed a record, want it noticed", n)
			default:
				harmless++
			}
		}
		if err != nil {
			ended++
			from++
		}
	}
	kit.Check(t, seen >= 20 && harmless != 0 && ended <= 5,
		"%d flips were noticed, %d harmless, and %d ended their process, want 20 and 1 at least, and 5 at most", seen, harmless, ended)
}

const flips = 300

// flipsFrom tries the flips from one on in a child process.
func flipsFrom(t *testing.T, source string, from int) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlipsInAProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "VAULTD_FLIP_SOURCE="+source, fmt.Sprint("VAULTD_FLIP_FROM=", from))
	out, err := cmd.Output()
	return string(out), err
}

// TestFlipsInAProcess is the child of the test above, which alone starts it.
func TestFlipsInAProcess(t *testing.T) {
	source := os.Getenv("VAULTD_FLIP_SOURCE")
	if source == "" {
		t.Skip("a helper of another test")
	}
	var from int
	fmt.Sscan(os.Getenv("VAULTD_FLIP_FROM"), &from)
	whole := kit.Value(os.ReadFile(pathIn(source, fileName)))(t)
	whole = whole[:usedBytes(t, source)]
	want := dump(t, copyLedger(t, source, fileName, headName))
	rng := rand.New(rand.NewPCG(1, 2))
	dir := copyLedger(t, source, headName)
	for n := range flips {
		bad := bytes.Clone(whole)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		if n < from {
			continue
		}
		kit.Must(t, os.WriteFile(pathIn(dir, fileName), bad, 0o600))
		if noticed(t, dir) {
			fmt.Println("flip", n, "noticed", 0)
			continue
		}
		changed := 0
		if dump(t, dir) != want {
			changed = 1
		}
		fmt.Println("flip", n, "unnoticed", changed)
	}
}

func noticed(t *testing.T, dir string) bool {
	l, err := boltledger.Open(boltledger.Config{Dir: dir})
	if err != nil {
		return true
	}
	defer l.Close()
	ps, err := l.Verify(t.Context())
	return len(ps) > 0 || err != nil
}

// dump returns every record of a ledger that is closed. It changes nothing.
func dump(t testing.TB, dir string) string {
	t.Helper()
	db, err := bbolt.Open(pathIn(dir, fileName), 0o600, &bbolt.Options{ReadOnly: true})
	kit.Must(t, err)
	var b strings.Builder
	err = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
			return bucket.ForEach(func(k, v []byte) error { fmt.Fprintf(&b, "%s %x %x\n", name, k, v); return nil })
		})
	})
	kit.Must(t, errors.Join(err, db.Close()))
	return b.String()
}
