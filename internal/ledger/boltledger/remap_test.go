package boltledger

import (
	"bytes"
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// outgrowMapping commits documents each of which makes the file larger than its mapping. Each commit then waits until no
// transaction reads, and lets no new one begin meanwhile.
func outgrowMapping(ctx context.Context, t *testing.T, l *Ledger, first int) {
	for n := range 9 {
		d := newDoc(t, l, first+n)
		d.own.Metadata = bytes.Repeat([]byte("m"), 64<<10<<n)
		for _, ev := range []ledger.Event{d.claim(), d.sealed()} {
			rs, err := l.Apply(ctx, d.change(ev))
			if err != nil {
				t.Errorf("document %d: %v", n, err)
				return
			}
			d.e = rs[0].Entry
		}
	}
}

// endsInTime fails the test where fn waits for somebody who waits for it.
func endsInTime(t *testing.T, fn func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); fn() }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("they wait for each other")
	}
}

// openSmall opens a ledger with a mapping that is too small. The caller closes it: one whose transactions wait for each other cannot be.
func openSmall(t *testing.T) *Ledger {
	t.Helper()
	l, err := Open(Config{Dir: newLedger(t), mapped: 1})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func closeSound(t *testing.T, l *Ledger) {
	t.Helper()
	sound(t, l)
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A check opens several transactions of one moment. A commit that makes the file larger than its mapping comes in between.
func TestVerify_I25_TheFileOutgrowsItsMapping(t *testing.T) {
	l := openSmall(t)
	endsInTime(t, func() {
		grown := make(chan struct{})
		go func() { defer close(grown); outgrowMapping(t.Context(), t, l, 1) }()
		c := &checker{ledger: l, ctx: t.Context(), workers: 500}
		for moments := 0; ; moments++ {
			err := c.atOneMoment(func(txs []*bbolt.Tx) error {
				for _, tx := range txs {
					if tx.ID() != txs[0].ID() {
						t.Error("two moments at once")
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
				return
			}
			select {
			case <-grown:
				t.Log(moments, "moments")
				return
			default:
			}
		}
	})
	closeSound(t, l)
}

// growing is the context of a check. The first time that the check asks it, within its transactions, a commit begins that makes the file
// larger than its mapping; from then on no new transaction can begin before those of the check have ended.
type growing struct {
	context.Context
	once *sync.Once
	grow func()
}

func (g growing) Err() error {
	g.once.Do(func() {
		go g.grow()
		for stacks := make([]byte, 1<<20); !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("bbolt.(*DB).mmap(")); {
			runtime.Gosched()
		}
	})
	return g.Context.Err()
}

// A check from an earlier one on holds its transactions to its end. It opens no other ones, and does not wait within them for what runs beside it.
func TestVerifySince_I25_TheFileOutgrowsItsMapping(t *testing.T) {
	l := openSmall(t)
	newDoc(t, l, 1).archived()
	_, v, err := l.VerifyWhole(t.Context(), 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	newDoc(t, l, 2).archived()
	read := 0
	endsInTime(t, func() {
		grown := make(chan struct{})
		ctx := growing{t.Context(), &sync.Once{}, func() { defer close(grown); outgrowMapping(t.Context(), t, l, 3) }}
		found, _, err := l.VerifySince(ctx, v, func(ledger.Head, ledger.Balance) {
			err := l.Lines(1, func(uint64, []byte) error { read++; return nil })
			if err != nil {
				t.Error(err)
			}
		})
		if err != nil || len(found) > 0 {
			t.Error(found, err)
		}
		<-grown
	})
	if read == 0 {
		t.Error("nothing ran beside the check")
	}
	closeSound(t, l)
}
