package boltledger_test

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// dueOf is DueInQueue for all queues together.
func dueOf(t testing.TB, l store, s ledger.Step, now time.Time, limit int, skip func(ledger.Entry) bool) (ready []ledger.Entry, next time.Time) {
	t.Helper()
	queues := kit.Value(l.Queues(s))(t)
	for _, queue := range queues {
		some, at, err := l.DueInQueue(s, queue, now, limit, nil, skip)
		kit.Must(t, err)
		ready = append(ready, some...)
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	slices.SortStableFunc(ready, func(a, b ledger.Entry) int {
		_, at, _ := ledger.Due(a)
		_, other, _ := ledger.Due(b)
		return at.Compare(other)
	})
	return ready[:min(len(ready), limit)], next
}

func TestDue_InOrderOfTimeWithTheNextOne(t *testing.T) { eachStore(t, dueInOrderOfTimeWithTheNextOne) }

func dueInOrderOfTimeWithTheNextOne(t *testing.T, open opener) {
	l := open()
	var keys []archive.Key
	for n := range 10 {
		d := newDoc(t, l, n)
		at := began.Add(time.Duration(10-n) * time.Hour) // the last claimed is due first
		if n == 9 {
			at = time.Time{}
		}
		d.do(ledger.ClaimedFolder{Vault: "V1", NotBefore: at})
		keys = append([]archive.Key{d.e.Key}, keys...)
	}
	noon := began.Add(5 * time.Hour)

	for name, row := range map[string]struct {
		now   time.Time
		limit int
		skip  func(ledger.Entry) bool
		want  []archive.Key
		next  time.Time
	}{
		"All":      {began.Add(20 * time.Hour), 100, nil, keys, time.Time{}},
		"UntilNow": {noon, 100, nil, keys[:5], noon.Add(time.Hour)}, // what is due at now is ready
		"Limited":  {noon, 2, nil, keys[:2], noon.Add(time.Hour)},
		"Skipping": {noon, 2, func(e ledger.Entry) bool { return e.Key == keys[0] || e.Key == keys[2] }, []archive.Key{keys[1], keys[3]}, noon.Add(time.Hour)},
		"Before":   {began, 100, nil, keys[:1], began.Add(2 * time.Hour)},
	} {
		es, next := dueOf(t, l, ledger.Seal, row.now, row.limit, row.skip)
		var got []archive.Key
		for _, e := range es {
			got = append(got, e.Key)
		}
		kit.Check(t, slices.Equal(got, row.want) && next.Equal(row.next),
			"%s: %v next %v, want %v next %v", name, got, next, row.want, row.next)
	}
	es, next := dueOf(t, l, ledger.Register, noon, 10, nil)
	kit.Check(t, len(es) == 0 && next.IsZero(), "due to %s = %v, next %v, want nothing", ledger.Register, es, next)
}

// Entries that wait in one queue hold up no entry of another one.
func TestDueInQueue_I23_QueueByQueue(t *testing.T) { eachStore(t, dueInQueueQueueByQueue) }

func dueInQueueQueueByQueue(t *testing.T, open opener) {
	l := open()
	var all []*doc
	for n := range 40 {
		d := newDoc(t, l, n)
		claim := d.claim().(ledger.ClaimedFolder)
		claim.Drop, claim.Vault = []string{"a", "acme", "b"}[n%3], "V1"
		d.do(claim)
		all = append(all, d)
	}
	queues, err := l.Queues(ledger.Seal)
	kit.Need(t, err == nil && reflect.DeepEqual(queues, []string{"drop a", "drop b", "drop acme"}),
		"queues = %q (%v), want the three in the order of their names' lengths", queues, err)
	kit.Len(t, fmt.Sprintf("queues of %s", ledger.Upload), kit.Value(l.Queues(ledger.Upload))(t), 0)
	now := began.Add(time.Minute + 20*time.Second) // documents 0 to 20 are due
	seen := 0
	for i, queue := range []string{"drop a", "drop acme", "drop b"} {
		ready, next, err := l.DueInQueue(ledger.Seal, queue, now, 100, nil, nil)
		kit.Must(t, err)
		for j, e := range ready {
			if e.Key != all[3*j+i].e.Key {
				t.Errorf("%s: the %dth is %s, want %s", queue, j, e.Folder, all[3*j+i].e.Folder)
			}
		}
		seen += len(ready)
		want := began.Add(time.Minute + time.Duration(21+i)*time.Second)
		kit.Check(t, next.Equal(want), "%s: next at %s, want %s", queue, next, want)
	}
	kit.Want(t, "entries that are due", seen, 21)
	few, _, _ := l.DueInQueue(ledger.Seal, "drop a", now, 2, nil, func(e ledger.Entry) bool { return e.Key == all[0].e.Key })
	if len(few) != 2 || few[0].Key != all[3].e.Key {
		t.Errorf("a queue without its first: %v, want 2 entries from %s on", few, all[3].e.Key)
	}
	sound(t, l)
}

func TestQueues_ALongNameIsAQueueToo(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	d := newDoc(t, l, 1)
	claim := d.claim().(ledger.ClaimedFolder)
	claim.Drop = fmt.Sprintf("%0300d", 7)
	d.do(claim)
	queues, err := l.Queues(ledger.Seal)
	if err != nil || len(queues) != 1 || queues[0] != ledger.QueueOf(d.e) {
		t.Fatalf("queues = %q (%v), want %q", queues, err, ledger.QueueOf(d.e))
	}
	ready, _, err := l.DueInQueue(ledger.Seal, queues[0], began.Add(time.Hour), 1, nil, nil)
	kit.Check(t, err == nil && len(ready) == 1, "%d entries are due (%v), want 1", len(ready), err)
	sound(t, l)
}
