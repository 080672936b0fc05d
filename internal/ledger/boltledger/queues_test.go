package boltledger

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"vaultd/internal/ledger"
)

// Each queue has its own queue: what waits in one does not stand before another.
func TestDueInQueue_I23_QueueByQueue(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	var all []*doc
	for n := range 40 {
		d := newDoc(t, l, n)
		claim := d.claim().(ledger.ClaimedFolder)
		claim.Drop, claim.Vault = []string{"a", "acme", "b"}[n%3], "V1"
		d.do(claim)
		all = append(all, d)
	}
	queues, err := l.Queues(ledger.Seal)
	if err != nil || !reflect.DeepEqual(queues, []string{"drop a", "drop b", "drop acme"}) {
		t.Fatalf("%q %v", queues, err)
	}
	if none, err := l.Queues(ledger.Upload); err != nil || len(none) != 0 {
		t.Errorf("%q %v", none, err)
	}
	now := began.Add(time.Minute + 20*time.Second) // documents 0 to 20 are due
	seen := 0
	for i, queue := range []string{"drop a", "drop acme", "drop b"} {
		ready, next, err := l.DueInQueue(ledger.Seal, queue, now, 100, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		for j, e := range ready {
			if e.Key != all[3*j+i].e.Key {
				t.Errorf("%s: the %dth is %s", queue, j, e.Folder)
			}
		}
		seen += len(ready)
		if want := began.Add(time.Minute + time.Duration(21+i)*time.Second); !next.Equal(want) {
			t.Errorf("%s: next at %s, want %s", queue, next, want)
		}
	}
	ready, next, err := l.Due(ledger.Seal, now, 100, nil)
	if err != nil || seen != 21 || len(ready) != 21 || !next.Equal(began.Add(time.Minute+21*time.Second)) {
		t.Errorf("%d and %d ready, next %s, %v", seen, len(ready), next, err)
	}
	if !slices.IsSortedFunc(ready, func(a, b ledger.Entry) int { return a.NotBefore.Compare(b.NotBefore) }) {
		t.Error("all queues together are out of order")
	}
	few, _, _ := l.DueInQueue(ledger.Seal, "drop a", now, 2, nil, func(e ledger.Entry) bool { return e.Key == all[0].e.Key })
	if len(few) != 2 || few[0].Key != all[3].e.Key {
		t.Errorf("%d of the queue, without its first", len(few))
	}
	sound(t, l)
}

func TestQueues_ALongNameIsAQueueToo(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	d := newDoc(t, l, 1)
	claim := d.claim().(ledger.ClaimedFolder)
	claim.Drop = fmt.Sprintf("%0300d", 7)
	d.do(claim)
	queues, err := l.Queues(ledger.Seal)
	if err != nil || len(queues) != 1 || queues[0] != ledger.QueueOf(d.e) {
		t.Fatalf("%q %v", queues, err)
	}
	if ready, _, err := l.DueInQueue(ledger.Seal, queues[0], began.Add(time.Hour), 1, nil, nil); err != nil || len(ready) != 1 {
		t.Errorf("%d %v", len(ready), err)
	}
	sound(t, l)
}
