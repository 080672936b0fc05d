package boltledger_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

func fetchOf(at time.Time) ledger.Mark {
	return ledger.Mark{Vault: "V", Remote: "bum-1", By: ledger.Operator{UID: 7}, At: at}
}

// I29: the budget holds for 39 downloads of one commit, which waited for another
// one. Each has a line before anything is downloaded.
func TestIntendFetch_I29_ManyAtOnceDoNotOverspend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queued := make(chan struct{})
		l := open(t, boltledger.Config{Dir: newLedger(t), Fault: func(string) error { <-queued; return nil }})
		const askers, budget = 40, 7
		var allowed atomic.Uint64
		var all sync.WaitGroup
		for range askers {
			all.Go(func() {
				used, err := l.IntendFetch(t.Context(), fetchOf(began), nil, budget)
				spent, over := errors.AsType[*ledger.BudgetError](err)
				switch {
				case err == nil && used > 0 && used <= budget:
					allowed.Add(1)
				case over && spent.Used == budget && spent.Allowed == budget:
				default:
					t.Errorf("%d downloads are used (%v), want one of %d, or the budget spent", used, err, budget)
				}
			})
		}
		synctest.Wait()
		close(queued)
		all.Wait()
		announced := 0
		err := l.Lines(2, func(_ uint64, line []byte) error {
			if strings.Contains(string(line), `"event":"fetch-intended"`) && strings.Contains(string(line), `"vault":"V","bumId":"bum-1","uid":7`) {
				announced++
			}
			return nil
		})
		if err != nil || allowed.Load() != budget || announced != budget {
			t.Errorf("%d downloads allowed and %d announced (%v), want %d", allowed.Load(), announced, err, budget)
		}
		sound(t, l)
	})
}

// A month begins where the time zone says, whatever time the clock tells next, and a restart forgets nothing of it.
func TestIntendFetch_MonthsOfTheTimeZone(t *testing.T) {
	berlin := kit.Value(time.LoadLocation("Europe/Berlin"))(t)
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir, Location: berlin})
	november := time.Date(2026, 11, 30, 22, 59, 59, 999_999_999, time.UTC)
	december := november.Add(1) // midnight in Berlin
	spend := func(at time.Time, budget, used uint64) {
		t.Helper()
		got, err := l.IntendFetch(t.Context(), fetchOf(at), nil, budget)
		if spent, over := errors.AsType[*ledger.BudgetError](err); over {
			got = spent.Used + 1
		} else if err != nil {
			t.Fatal(err)
		}
		kit.Check(t, got == used, "at %v %d downloads are used (%v), want %d", at, got, err, used)
	}
	spend(november, 2, 1)
	spend(november, 2, 2)
	spend(november, 2, 3) // refused
	spend(december, 2, 1)
	spend(november, 2, 3) // the clock was set back: that month is spent
	spend(december.AddDate(1, 0, 0), 2, 1)
	spend(december, 0, 2) // forbidden
	sound(t, l)
	kit.Must(t, l.Close())
	l = open(t, boltledger.Config{Dir: dir, Location: berlin})
	spend(november, 2, 3)
	if n, err := l.CountFetches(december); n != 1 || err != nil {
		t.Errorf("%d downloads in December (%v), want 1", n, err)
	}
	kit.Must(t, l.Close())
	l = open(t, boltledger.Config{Dir: dir}) // UTC: November is an hour longer
	spend(november, 3, 4)
	if n, err := l.CountFetches(december); n != 3 || err != nil {
		t.Errorf("%d downloads in November of UTC (%v), want 3", n, err)
	}
	sound(t, l)
}

// The check finds that a download was forgotten, and no other mark gets around the
// budget.
func TestIntendFetch_NoWayAround(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	mark := func(word, outcome string) error {
		m := fetchOf(began)
		m.Name, m.Cause = word, outcome
		return l.CommitMark(t.Context(), m, nil)
	}
	kit.Fails(t, "a download beside the budget", mark(ledger.MarkFetchIntended, ""), ledger.ErrIllegal)
	kit.Fails(t, "a download of nothing",
		kit.Err(l.IntendFetch(t.Context(), ledger.Mark{Vault: "V", At: began}, nil, 9)), ledger.ErrIllegal)
	kit.Fails(t, "an unknown outcome", mark(ledger.MarkFetched, "fine"), ledger.ErrIllegal)
	kit.Want(t, "last line", l.Head().N, 1)
	for range 3 {
		kit.Value(l.IntendFetch(t.Context(), fetchOf(began), nil, 9))(t)
	}
	for _, outcome := range ledger.FetchOutcomes() {
		kit.Want(t, "the error of mark", mark(ledger.MarkFetched, outcome), nil)
	}
	sound(t, l)
	kit.Must(t, l.Close())
	edit(t, dir, dropFirst(fetchesBucket))
	if l = open(t, boltledger.Config{Dir: dir}); !found(t, l, "the downloads that are counted are not those that the journal announces") {
		t.Error("the check found no lost download, want it found")
	}
}

// A check that continues an earlier one finds that a download was forgotten
// before it or after it, and that one is counted in another month.
func TestCheck_I29_SinceCountsEachDownload(t *testing.T) {
	source := newLedger(t)
	l := open(t, boltledger.Config{Dir: source})
	announce := func() { kit.Value(l.IntendFetch(t.Context(), fetchOf(began), nil, 9))(t) }
	announce()
	before := check(t, l, nil).Sound
	announce()
	kit.Must(t, l.Close())
	for name, damage := range map[string]func(*bbolt.Tx) error{
		"None":      nil,
		"ForgotOld": dropFirst(fetchesBucket),
		"ForgotNew": func(tx *bbolt.Tx) error {
			k, _ := tx.Bucket(fetchesBucket).Cursor().Last()
			return tx.Bucket(fetchesBucket).Delete(bytes.Clone(k))
		},
		"OtherMonth": func(tx *bbolt.Tx) error {
			b := tx.Bucket(fetchesBucket)
			k, _ := b.Cursor().First()
			other := bytes.Clone(k)
			other[2]++
			return errors.Join(b.Delete(bytes.Clone(k)), b.Put(other, nil))
		},
		"TooMany": func(tx *bbolt.Tx) error { return tx.Bucket(fetchesBucket).Put(bytes.Repeat([]byte{200}, 16), nil) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, want := copyLedger(t, source, fileName, headName), []ledger.Problem(nil)
			if damage != nil {
				edit(t, dir, damage)
				want = []ledger.Problem{{Where: "fetches", What: "the downloads that are counted are not those that the journal announces"}}
			}
			kit.Want(t, "problems", check(t, open(t, boltledger.Config{Dir: dir}), &before).Problems, want)
		})
	}
}

// A download is refused while its month cannot be counted, and the ledger
// continues.
func TestIntendFetch_I29_AMonthThatCannotBeCounted(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	kit.Value(l.IntendFetch(t.Context(), fetchOf(began), nil, 9))(t)
	kit.Must(t, l.Close())
	edit(t, dir, func(tx *bbolt.Tx) error {
		k, _ := tx.Bucket(fetchesBucket).Cursor().First()
		return tx.Bucket(fetchesBucket).Put(append(bytes.Clone(k), 0), nil)
	})
	l = open(t, boltledger.Config{Dir: dir})
	_, err := l.IntendFetch(t.Context(), fetchOf(began), nil, 9)
	_, damaged := errors.AsType[*ledger.DamageError](err)
	kit.Check(t, damaged, "a download whose month cannot be counted: %v, want damage", err)
	newDoc(t, l, 1).archived()
	kit.Check(t, found(t, l, "a key of 17 bytes"), "the check found no wrong key, want it found")
}

// A ledger whose files are lost while it is open is noticed, and put back from
// what is open: whole, with its head, and without replacing anything. After it
// nothing is committed any more, and the next start knows everything.
func TestPutBack_I5_I15_FromTheOpenFile(t *testing.T) {
	gone := func(name string) func(dir string) error {
		return func(dir string) error { return os.Remove(pathIn(dir, name)) }
	}
	for name, row := range map[string]struct {
		lose  func(dir string) error
		wrong string // why it is not put back; empty: it is
		keep  int64
	}{
		"Deleted":     {lose: gone(fileName)},
		"HeadDeleted": {lose: gone(headName)},
		"BothDeleted": {lose: func(dir string) error { return errors.Join(gone(fileName)(dir), gone(headName)(dir)) }},
		"MovedAway":   {lose: func(dir string) error { return os.Rename(pathIn(dir, fileName), pathIn(dir, "old.db")) }},
		"NoRoom":      {gone(fileName), "no room", math.MaxInt64 / 2},
		"Replaced": {func(dir string) error {
			return errors.Join(gone(fileName)(dir), os.WriteFile(pathIn(dir, fileName), []byte("another"), 0o600))
		}, "another file is in the place of ledger.db", 0},
		"HeadReplaced": {func(dir string) error {
			return errors.Join(gone(headName)(dir), os.WriteFile(pathIn(dir, headName), []byte("another"), 0o600))
		}, "another file is in the place of ledger.head.1", 0},
		"OtherFolder": {func(dir string) error { return errors.Join(os.Rename(dir, dir+".old"), os.Mkdir(dir, 0o700)) }, "another folder", 0},
		"NoFolder":    {func(dir string) error { return os.Rename(dir, dir+".old") }, "no such file", 0},
		"NotWhole": {func(dir string) error {
			return errors.Join(spoilFile(pathIn(dir, fileName), `"event":"created"`, `"event":"Created"`), gone(fileName)(dir))
		}, "damaged", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newLedger(t)
			l := open(t, boltledger.Config{Dir: dir})
			newDoc(t, l, 1).archived()
			kit.Must(t, l.CheckPlace())
			kit.Must(t, row.lose(dir))
			_, isLost := errors.AsType[*ledger.LostError](l.CheckPlace())
			kit.Want(t, "lost", isLost, true)
			var head ledger.Head
			err := l.PutBack(t.Context(), row.keep, func(ctx context.Context, f *os.File) ([]ledger.Problem, error) {
				newDoc(t, l, 2).archived() // what was under way ends while the ledger is checked
				head = l.Head()
				return verifyCopy(ctx, f)
			})
			if row.wrong != "" {
				kit.Need(t, err != nil, "put back, want %q", row.wrong)
				kit.Holds(t, "put back", err.Error(), row.wrong)
				kit.Must(t, l.Err())
				kit.Want(t, "files left behind", copies(t, dir, ".*"), nil)
				return
			}
			kit.Must(t, err)
			<-l.Failed()
			kit.Fails(t, "a commit after the copy", kit.Err(l.Apply(t.Context(), ledger.Change{})))
			l.Close()
			l = open(t, boltledger.Config{Dir: dir})
			kit.Want(t, "head of the copy", l.Head(), head)
			sound(t, l)
			kit.Want(t, "files left behind", copies(t, dir, ".*"), nil)
		})
	}
}

// spoilFile changes a text in a file that others have open.
func spoilFile(name, old, text string) error {
	b, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	spoilt := bytes.ReplaceAll(b, []byte(old), []byte(text))
	if bytes.Equal(spoilt, b) {
		return errors.New("nothing to spoil")
	}
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(spoilt, 0)
	return errors.Join(err, f.Close())
}
