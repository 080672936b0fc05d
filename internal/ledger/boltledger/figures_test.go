package boltledger

import (
	"bytes"
	"errors"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// flipAll spoils every record of a bucket.
func flipAll(bucket []byte) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) (err error) {
		var keys [][]byte
		_ = tx.Bucket(bucket).ForEach(func(k, _ []byte) error { keys = append(keys, bytes.Clone(k)); return nil })
		for _, k := range keys {
			err = errors.Join(err, tx.Bucket(bucket).Put(k, flipped(tx.Bucket(bucket).Get(k))))
		}
		return err
	}
}

func hasToken(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A total or a count that cannot be read ends no commit. The commit tells of it, the check finds it, and it is counted anew.
func TestCommit_I23_AFigureThatCannotBeRead(t *testing.T) {
	source, _ := filled(t)
	for name, bucket := range map[string][]byte{"Totals": totalsBucket, "Counts": countsBucket} {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			edit(t, dir, flipAll(bucket))
			l := open(t, Config{Dir: dir})
			for n := 13; n <= 15; n++ {
				newDoc(t, l, n).archived()
			}
			if !hasToken(l.FigureDamage()) {
				t.Error("nobody was told")
			}
			ps, err := l.Verify(t.Context())
			if err != nil || len(ps) == 0 || !AreOfFigures(ps) {
				t.Fatalf("%v %v", ps, err)
			}
			if err := l.RecountFigures(t.Context()); err != nil {
				t.Fatal(err)
			}
			sound(t, l)
			newDoc(t, l, 16).archived()
			if hasToken(l.FigureDamage()) {
				t.Error("still told")
			}
			sound(t, l)
		})
	}
}

// A count from which more is taken than is in it stays wrong, also when what should be in it becomes zero.
func TestCommit_I26_ACountThatWasTooLowIsTold(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	d := newDoc(t, l, 1)
	d.do(d.claim(), ledger.SentToQuarantine{Cause: ledger.Cause{Code: "c", Text: "t"}})
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, func(tx *bbolt.Tx) error {
		return eachPair(tx, countsBucket, func(k, _ []byte) error { return tx.Bucket(countsBucket).Delete(k) })
	})
	d.l = open(t, Config{Dir: dir})
	d.do(ledger.Closed{By: ledger.Operator{UID: 7}})
	if !found(t, d.l, "was too low: more was taken away than had been counted") {
		t.Error("the check did not tell that a count was too low")
	}
	if err := d.l.RecountFigures(t.Context()); err != nil {
		t.Fatal(err)
	}
	sound(t, d.l)
}

// A download is refused while the count of its month cannot be read, and the ledger goes on. Counted anew it is what the journal tells,
// with those of the commit in which it is counted.
func TestIntendFetch_I29_ACountThatCannotBeRead(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	for range 3 {
		if _, err := l.IntendFetch(t.Context(), fetchOf(began), nil, 9); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	edit(t, dir, flipAll(countsBucket))
	l = open(t, Config{Dir: dir})
	_, err := l.IntendFetch(t.Context(), fetchOf(began), nil, 9)
	if _, damaged := errors.AsType[*ledger.DamageError](err); !damaged {
		t.Errorf("the download is not refused for the damage: %v", err)
	}
	newDoc(t, l, 1).archived()
	ps, err := l.Verify(t.Context())
	if err != nil || len(ps) == 0 || !AreOfFigures(ps) {
		t.Errorf("%v %v", ps, err)
	}
	if err := l.RecountFigures(t.Context()); err != nil {
		t.Fatal(err)
	}
	if used, err := l.IntendFetch(t.Context(), fetchOf(began), nil, 9); err != nil || used != 4 {
		t.Errorf("%d used, %v", used, err)
	}
	sound(t, l)
	// One commit announces a download and counts anew.
	all, err := l.commitTogether(t, markRequest{mark: announced(), budget: 9}.apply, recountFigures)
	if err != nil || all[0][0].Err != nil || all[1][0].Err != nil {
		t.Fatal(all, err)
	}
	if used, err := l.CountFetches(began); err != nil || used != 5 {
		t.Errorf("%d used, %v", used, err)
	}
	sound(t, l)
}

func announced() ledger.Mark {
	m := fetchOf(began)
	m.Name = ledger.MarkFetchIntended
	return m
}

// commitTogether commits what is about the ledger as a whole, in one transaction.
func (l *Ledger) commitTogether(t *testing.T, dos ...func(*groupCommit) (refused, err error)) ([][]ledger.Result, error) {
	t.Helper()
	var rs []request
	for _, do := range dos {
		rs = append(rs, request{do: do})
	}
	return l.commitRequests(rs) // the committer is idle
}

// Figures are not counted anew from entries that cannot be read: they would pass for right.
func TestRecountFigures_I12_NotFromDamage(t *testing.T) {
	source, _ := filled(t)
	for name, bucket := range map[string][]byte{"Entry": doneBucket, "Line": journalBucket} {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			edit(t, dir, func(tx *bbolt.Tx) error {
				k, v := tx.Bucket(bucket).Cursor().First()
				return errors.Join(tx.Bucket(bucket).Put(bytes.Clone(k), flipped(v)), flipAll(totalsBucket)(tx))
			})
			l := open(t, Config{Dir: dir})
			before := dumped(t, l)
			err := l.RecountFigures(t.Context())
			if _, damaged := errors.AsType[*ledger.DamageError](err); !damaged || dumped(t, l) != before {
				t.Errorf("counted from damage: %v", err)
			}
			if ps, err := l.Verify(t.Context()); err != nil || AreOfFigures(ps) {
				t.Error(ps, err)
			}
			newDoc(t, l, 20).archived()
		})
	}
}
