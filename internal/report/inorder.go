package report

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"vaultd/internal/ledger"
)

// readBatch is what one worker reads at a time.
type readBatch[T any] struct {
	entries []ledger.Entry
	read    []T   // of the entries, up to the first that could not be read
	err     error // why it could not
	done    chan struct{}
}

const batchEntries = 32

func newReadBatch[T any]() *readBatch[T] {
	return &readBatch[T]{entries: make([]ledger.Entry, 0, batchEntries), done: make(chan struct{})}
}

func (b *readBatch[T]) readAll(read func(ledger.Entry) (T, error)) {
	defer close(b.done)
	b.read = make([]T, 0, len(b.entries))
	for _, e := range b.entries {
		one, err := read(e)
		if err != nil {
			b.err = err
			return
		}
		b.read = append(b.read, one)
	}
}

// inOrder calls read with every entry that walk visits, on all cores, and then use with what that gave, in the order of the entries and one
// after the other. It returns the first error in that order. A few hundred entries are read ahead of use. No goroutine is left when
// it returns.
func inOrder[T any](walk func(func(ledger.Entry) error) error, read func(ledger.Entry) (T, error), use func(T) error) (err error) {
	workers := min(runtime.GOMAXPROCS(0), 8)
	work, order := make(chan *readBatch[T], workers), make(chan *readBatch[T], workers)
	var stop atomic.Bool
	var walked error // of walk; it is read once order is closed
	var running sync.WaitGroup
	defer running.Wait()
	for range workers {
		running.Go(func() {
			for b := range work {
				b.readAll(read)
			}
		})
	}
	running.Go(func() {
		defer close(order)
		defer close(work)
		b := newReadBatch[T]()
		walked = walk(func(e ledger.Entry) error {
			if b.entries = append(b.entries, e); len(b.entries) == batchEntries {
				work <- b
				order <- b
				b = newReadBatch[T]()
			}
			if stop.Load() {
				return errStop
			}
			return nil
		})
		work <- b
		order <- b
	})
	for b := range order {
		<-b.done
		// After the first error the batches are only drained, so that the goroutines end.
		for i := 0; i < len(b.read) && err == nil; i++ {
			err = use(b.read[i])
		}
		if err == nil {
			err = b.err
		}
		stop.Store(err != nil)
	}
	if err == nil && !errors.Is(walked, errStop) {
		err = walked
	}
	return err
}
