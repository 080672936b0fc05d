package proof

import (
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// readLine is a stored line and what it says by itself, without the lines before it. Lines are read on all cores, ahead of
// their replay, which takes them one after the other.
type readLine struct {
	ledger.Line
	number uint64 // where it stands
	stored []byte
	other  bool  // it is of another partition, and was not parsed
	err    error // it cannot be parsed

	key    archive.Key
	to     ledger.State
	then   ledger.Source
	wrong  bool // it names no key, state or source
	id     archive.ID
	remote number // that its bumId, or no bumId, is shortened to
	flags  flags
}

func (l *readLine) parse(only *partition) {
	if l.other = only != nil && only.skipsLine(l.stored); l.other {
		return
	}
	if l.Line, l.err = ledger.ParseLine(l.stored); l.err != nil || l.Key == "" {
		return
	}
	var keyErr, stateErr, sourceErr error
	l.key, keyErr = archive.ParseKey(l.Key)
	if isOfArrival(l.Line) { // its states are those of another machine
		l.wrong = keyErr != nil
		return
	}
	l.to, stateErr = ledger.ParseState(l.State)
	l.then, sourceErr = ledger.ParseSource(l.Source)
	l.wrong = keyErr != nil || stateErr != nil || sourceErr != nil
	if l.ID != "" {
		l.id, _ = archive.ParseID(l.ID)
	}
	if l.remote = noRemote; l.Remote != "" {
		l.remote = shortNumber(archive.RemoteID(l.Remote))
	}
	l.flags = parseFlags(l.Flags)
}

var noRemote = shortNumber("")

// batch is what one worker reads at a time.
type batch struct {
	lines []readLine
	read  chan struct{} // closed once all of them are read
}

const batchLines = 256

// readAhead reads lines on all cores and yields them in their order. only is the partition whose lines are read; nil: all are.
// No goroutine is left when it returns.
func readAhead(lines iter.Seq2[uint64, []byte], only *partition) iter.Seq[*readLine] {
	return func(yield func(*readLine) bool) {
		workers := min(runtime.GOMAXPROCS(0), 8)
		work, order := make(chan *batch, workers), make(chan *batch, 2*workers)
		var stop atomic.Bool
		var running sync.WaitGroup
		defer running.Wait()
		for range workers {
			running.Go(func() {
				for b := range work {
					for i := range b.lines {
						b.lines[i].parse(only)
					}
					close(b.read)
				}
			})
		}
		running.Go(func() {
			defer close(order)
			defer close(work)
			b := newBatch()
			for n, stored := range lines {
				if b.lines = append(b.lines, readLine{number: n, stored: stored}); len(b.lines) == batchLines {
					work <- b
					order <- b
					b = newBatch()
				}
				if stop.Load() {
					return
				}
			}
			work <- b
			order <- b
		})
		for b := range order {
			<-b.read
			for i := range b.lines {
				// After the last line that is wanted the batches are only drained, so that the goroutines end.
				if !stop.Load() && !yield(&b.lines[i]) {
					stop.Store(true)
				}
			}
		}
	}
}

func newBatch() *batch {
	return &batch{lines: make([]readLine, 0, batchLines), read: make(chan struct{})}
}
