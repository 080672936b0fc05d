package boltledger

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// filled makes a ledger with entries in several states and closes it.
func filled(t testing.TB) (dir string, keys []archive.Key) {
	dir = newLedger(t)
	l := open(t, Config{Dir: dir})
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
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return dir, keys
}

func edit(t *testing.T, dir string, fn func(tx *bbolt.Tx) error) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(dir, fileName), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Update(fn), db.Close()); err != nil {
		t.Fatal(err)
	}
}

func flipped(v []byte) []byte {
	v = bytes.Clone(v)
	v[len(v)/2] ^= 4
	return v
}

// One record of each bucket is altered, added or taken away. Opening or Verify says so.
func TestVerify_I14_FindsDamage(t *testing.T) {
	flipFirst := func(bucket []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			k, v := tx.Bucket(bucket).Cursor().First()
			return tx.Bucket(bucket).Put(bytes.Clone(k), flipped(v))
		}
	}
	dropFirst := func(bucket []byte) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(bucket).Cursor().First()
			return tx.Bucket(bucket).Delete(bytes.Clone(k))
		}
	}
	rewrite := func(bucket []byte, change func(e *ledger.Entry)) func(*bbolt.Tx) error {
		return func(tx *bbolt.Tx) error {
			k, v := tx.Bucket(bucket).Cursor().First()
			e, err := decodeEntry(v)
			change(&e)
			return errors.Join(err, tx.Bucket(bucket).Put(bytes.Clone(k), entryForm.encode(&e)))
		}
	}
	rows := map[string]func(*bbolt.Tx) error{
		"OpenFlipped": flipFirst(openBucket), "DoneFlipped": flipFirst(doneBucket), "DocFlipped": flipFirst(docBucket),
		"JournalFlipped": flipFirst(journalBucket), "TotalsFlipped": flipFirst(totalsBucket), "FindFlipped": flipFirst(findBucket),
		"OpenLost": dropFirst(openBucket), "DoneLost": dropFirst(doneBucket), "DocLost": dropFirst(docBucket), "DueLost": dropFirst(dueBucket),
		"JournalLost": dropFirst(journalBucket), "TotalsLost": dropFirst(totalsBucket), "FindLost": dropFirst(findBucket),
		"CountsLost": dropFirst(countsBucket), "CountOfAnother": func(tx *bbolt.Tx) error { return addToCount(tx, []byte("aaaaaaaa?drop"), 1) },
		"CountTooHigh": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(countsBucket).Cursor().First()
			return addToCount(tx, k, 1)
		},
		"DownloadAtNoTime": func(tx *bbolt.Tx) error { return addToCount(tx, append(fetchKey(began), 0), 1) },
		"Info": func(tx *bbolt.Tx) error {
			return putValue(tx, metaBucket, infoKey, flipped(tx.Bucket(metaBucket).Get(infoKey)))
		},
		"Secret": func(tx *bbolt.Tx) error {
			return putValue(tx, metaBucket, secretKey, flipped(tx.Bucket(metaBucket).Get(secretKey)))
		},
		"DictionaryLost":      func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(dictionaryKey) },
		"DictionaryOfAnother": func(tx *bbolt.Tx) error { return putValue(tx, metaBucket, dictionaryKey, []byte(dictionary[1:])) },
		"SecretLost":          func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(secretKey) },
		"SecretEmpty": func(tx *bbolt.Tx) error {
			return putValue(tx, metaBucket, secretKey, secretForm.encode(&secret{}))
		},
		"ObjectOfAnother": rewrite(doneBucket, func(e *ledger.Entry) { e.Registrations[0].Ticket.Object[0]++ }),
		"Schema":          func(tx *bbolt.Tx) error { return putValue(tx, metaBucket, schemaKey, []byte("one")) },
		"Balance": func(tx *bbolt.Tx) error {
			s, _ := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
			s.seen, s.counts[0].entries = s.seen+1, s.counts[0].entries+1
			return putValue(tx, metaBucket, summaryKey, summaryForm.encode(&s))
		},
		"Head": func(tx *bbolt.Tx) error {
			s, _ := summaryForm.decode(tx.Bucket(metaBucket).Get(summaryKey))
			s.head.Hash[0]++
			return putValue(tx, metaBucket, summaryKey, summaryForm.encode(&s))
		},
		"WellFormedState":    rewrite(openBucket, func(e *ledger.Entry) { e.State = ledger.Quarantined }),
		"WellFormedAmount":   rewrite(doneBucket, func(e *ledger.Entry) { e.Package.Size++ }),
		"WellFormedRevision": rewrite(openBucket, func(e *ledger.Entry) { e.Rev++ }),
		"WellFormedDueTime":  rewrite(openBucket, func(e *ledger.Entry) { e.NotBefore = e.NotBefore.Add(1) }),
		"WellFormedBumId":    rewrite(doneBucket, func(e *ledger.Entry) { e.Registrations[0].Ticket.Remote += "x" }),
		"WellFormedOtherKey": rewrite(openBucket, func(e *ledger.Entry) { e.Key[15]++ }),
		"DueInvented": func(tx *bbolt.Tx) error {
			return putValue(tx, dueBucket, append(dueKeyPrefix(ledger.Seal, "drop acme", began), make([]byte, 16)...), nil)
		},
		"DueWithValue": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(dueBucket).Cursor().First()
			return putValue(tx, dueBucket, bytes.Clone(k), []byte{0})
		},
		"FindInvented": func(tx *bbolt.Tx) error { return putValue(tx, findBucket, remoteName("bum-x"), make([]byte, 17)) },
		"NumberLeadsAstray": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(doneBucket).Cursor().First()
			return putValue(tx, findBucket, remoteName("bum-x"), append(bytes.Clone(k), 0))
		},
		"RunsLost": func(tx *bbolt.Tx) error { return tx.Bucket(metaBucket).Delete(runsKey) },
		"RunLost": func(tx *bbolt.Tx) error {
			x, err := readNameIndex(tx)
			x.runs = x.runs[1:]
			return errors.Join(err, putValue(tx, metaBucket, runsKey, indexForm.encode(&x)))
		},
		"RunMiscounted": func(tx *bbolt.Tx) error {
			x, err := readNameIndex(tx)
			x.runs[0].pairs++
			return errors.Join(err, putValue(tx, metaBucket, runsKey, indexForm.encode(&x)))
		},
		"PairLeadsAstray": func(tx *bbolt.Tx) error {
			k, v := tx.Bucket(findBucket).Cursor().First()
			v = bytes.Clone(v)
			v[8+15]++
			return putValue(tx, findBucket, bytes.Clone(k), v)
		},
		"PairAdded": func(tx *bbolt.Tx) error {
			k, v := tx.Bucket(findBucket).Cursor().First()
			return putValue(tx, findBucket, bytes.Clone(k), append(bytes.Clone(v), v[len(v)-pairSize:]...))
		},
		"DocInvented": func(tx *bbolt.Tx) error {
			d := goldenDocument()
			return putValue(tx, docBucket, make([]byte, 16), documentForm.encode(&d))
		},
		"InBothBuckets": func(tx *bbolt.Tx) error {
			k, v := tx.Bucket(doneBucket).Cursor().First()
			return putValue(tx, openBucket, bytes.Clone(k), bytes.Clone(v))
		},
		"LineRewritten": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(journalBucket).Cursor().First()
			k, v := tx.Bucket(journalBucket).Cursor().Seek(append(k[:7:7], k[7]+1))
			b, err := blockForm.decode(v)
			b.lines[0] = bytes.Replace(b.lines[0], []byte("discovered"), []byte("rejected"), 1)
			return errors.Join(err, putValue(tx, journalBucket, bytes.Clone(k), blockForm.encode(&b)))
		},
		"BucketGone": func(tx *bbolt.Tx) error { return tx.DeleteBucket(findBucket) },
	}
	source, _ := filled(t)
	for name, row := range rows {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			edit(t, dir, row)
			l, err := Open(Config{Dir: dir})
			var d *ledger.DamageError
			if errors.As(err, &d) {
				t.Log(err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			ps, err := l.Verify(t.Context())
			if len(ps) == 0 || err != nil {
				t.Errorf("nothing found (%v)", err)
			}
			t.Log(ps)
		})
	}
}

// Bits flip anywhere in the file. Either somebody notices, or nothing was lost: free
// space, or the older of the two meta pages. Nothing ends the process.
func TestOpen_I15_AnyFlippedBitIsSeenOrHarmless(t *testing.T) {
	source, _ := filled(t)
	seen, harmless, from := 0, 0, 0
	for from < flips { // in a child, so that one that dies of what it reads is told, and the next one goes on behind it
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
				t.Errorf("flip %d changed the ledger, and nobody noticed", n)
			default:
				harmless++
			}
		}
		if err != nil {
			t.Errorf("flip %d ended its process", from)
			from++
		}
	}
	t.Logf("%d seen, %d harmless", seen, harmless)
	if seen < 20 || harmless == 0 {
		t.Error("the test is vacuous")
	}
}

const flips = 300

// flipsFrom tries the flips from one on in a process of its own.
func flipsFrom(t *testing.T, source string, from int) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFlipsInAProcess$", "-test.v")
	cmd.Env = append(os.Environ(), "VAULTD_FLIP_SOURCE="+source, fmt.Sprint("VAULTD_FLIP_FROM=", from))
	out, err := cmd.Output()
	return string(out), err
}

// TestFlipsInAProcess is the child of the test above and does nothing by itself.
func TestFlipsInAProcess(t *testing.T) {
	source := os.Getenv("VAULTD_FLIP_SOURCE")
	if source == "" {
		t.Skip("a helper of another test")
	}
	var from int
	fmt.Sscan(os.Getenv("VAULTD_FLIP_FROM"), &from)
	whole, err := os.ReadFile(filepath.Join(source, fileName))
	if err != nil {
		t.Fatal(err)
	}
	p, _ := newestMeta(bytes.NewReader(whole), int64(len(whole)))
	whole = whole[:p.count*p.size]
	want := dump(t, copyLedger(t, source, fileName, headName))
	rng := rand.New(rand.NewPCG(1, 2))
	dir := copyLedger(t, source, headName)
	for n := range flips {
		bad := bytes.Clone(whole)
		bad[rng.IntN(len(bad))] ^= 1 << rng.IntN(8)
		if n < from {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, fileName), bad, 0o600); err != nil {
			t.Fatal(err)
		}
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
	l, err := Open(Config{Dir: dir})
	if err != nil {
		return true
	}
	defer l.Close()
	ps, err := l.Verify(t.Context())
	return len(ps) > 0 || err != nil
}

// dump renders all buckets.
func dump(t *testing.T, dir string) string {
	t.Helper()
	l := open(t, Config{Dir: dir})
	defer l.Close()
	return dumped(t, l)
}

func dumped(t *testing.T, l *Ledger) string {
	t.Helper()
	var b strings.Builder
	err := l.view(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			if err := tx.Bucket(name).ForEach(func(k, v []byte) error { fmt.Fprintf(&b, "%s %x %x\n", name, k, v); return nil }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
