package boltledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// maxChangesPerCommit bounds the changes of one commit, and with them the pages that it holds
// in memory. What is queued beyond it goes into the next commit.
const maxChangesPerCommit = 512

// request is one Submit.
type request struct {
	changes []ledger.Change
	do      func(*groupCommit) (refused, err error) // about the ledger as a whole; may be nil
	then    func([]ledger.Result, error)            // the error is the ledger's own
}

// Submit queues changes and returns at once: it waits neither for the disk nor for room
// in the queue. The queue has no bound of its own; callers bound it by the work that they
// have under way. Changes are made in the order of their submission, those of one call in
// one commit, each of them as a whole or not at all.
//
// then, unless nil, runs after the durable commit on the committer's goroutine, with
// one result per change; it must not block and must not call Close. After a failed
// commit every result holds that failure. After Close it runs at once, on the
// caller's goroutine, with [ledger.ErrClosed].
func (l *Ledger) Submit(cs []ledger.Change, then func([]ledger.Result)) {
	// Nothing is durable yet: a crash from here to the commit loses the change, and the next start finds the step still due.
	l.enqueue(request{changes: cs, then: func(rs []ledger.Result, _ error) {
		if then != nil {
			then(rs)
		}
	}})
}

// Listen adds a commit listener: fn gets the results of each durable commit, whoever submitted the changes, on the committer's goroutine. It
// must not block and must not call Close. What was committed before a crash and not heard is not told again: a listener that needs
// it reads the entries at its start. No call begins after remove returned, but one may still be running.
func (l *Ledger) Listen(fn func([]ledger.Result)) (remove func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listeners = append(slices.Clip(l.listeners), &fn) // a copy: the committer may be reading the old list
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.listeners = slices.DeleteFunc(slices.Clone(l.listeners), func(other *func([]ledger.Result)) bool { return other == &fn })
	}
}

func (l *Ledger) enqueue(r request) {
	l.mu.Lock()
	// Under the lock, so that no request is queued after the committer looked for the last time.
	closed := l.closing
	if !closed {
		l.queue = append(l.queue, r)
	}
	l.mu.Unlock()
	if closed {
		r.answerError(ledger.ErrClosed)
		return
	}
	l.wakeCommitter()
}

// Apply submits changes and waits for them. The error is the context's or the
// ledger's own; each change has a result of its own. A change whose
// caller stopped waiting may still be made.
func (l *Ledger) Apply(ctx context.Context, cs ...ledger.Change) ([]ledger.Result, error) {
	return l.await(ctx, request{changes: cs})
}

// askCommitter has the committer do something about the ledger as a whole, and
// waits for it. What it asked for may still be done when it stopped waiting.
func (l *Ledger) askCommitter(ctx context.Context, do func(*groupCommit) (refused, err error)) error {
	rs, err := l.await(ctx, request{do: do})
	if err == nil {
		err = rs[0].Err
	}
	return err
}

func (l *Ledger) await(ctx context.Context, r request) ([]ledger.Result, error) {
	type outcome struct {
		results []ledger.Result
		err     error
	}
	// Room for one answer: the committer never waits for a caller that stopped waiting.
	answer := make(chan outcome, 1)
	r.then = func(rs []ledger.Result, err error) { answer <- outcome{rs, err} }
	l.enqueue(r)
	select {
	case o := <-answer:
		return o.results, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for the ledger: %w", context.Cause(ctx))
	}
}

func (r request) answerError(err error) {
	rs := make([]ledger.Result, len(r.changes))
	for i, c := range r.changes {
		rs[i] = ledger.Result{Key: c.Key, Err: err}
	}
	r.then(rs, err)
}

func (l *Ledger) wakeCommitter() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// runCommitter is the committer. It ends after Close, once the queue is empty.
// Between commits it syncs an outside head that is not synced yet, a second
// after the last sync; at rest nothing happens until there is work.
func (l *Ledger) runCommitter() {
	defer close(l.stopped)
	for {
		rs, early, closing := l.takeFromQueue()
		if len(rs) > 0 {
			// Taken before the commit: a slow disk then counts as part of the interval and costs no further delay.
			l.lastCommitBegan = time.Now()
			l.commitAndAnswer(rs)
		}
		left, dirty := l.head.untilSync()
		switch {
		case dirty && left <= 0:
			// A power cut before this sync leaves an older head. That is no
			// harm: the ledger is then ahead of it, which the start accepts.
			if err := l.head.syncFile(); err != nil {
				_ = l.stopWith(fmt.Errorf("sync outside head: %w", err))
			}
		case len(rs) > 0:
		case closing:
			return
		case early > 0:
			l.waitForMore(early)
		case dirty:
			l.waitForMore(left)
		default:
			<-l.wake
		}
	}
}

// waitForMore waits until d is over, or something was queued: the next commit
// may be full then.
func (l *Ledger) waitForMore(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-l.wake:
	case <-t.C:
	}
}

// takeFromQueue removes from the queue what the next commit holds. It takes nothing as long as
// the commit interval lasts, unless the commit would be full or is the last one.
func (l *Ledger) takeFromQueue() (rs []request, early time.Duration, closing bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n, changes := 0, 0
	for n < len(l.queue) && (n == 0 || changes+len(l.queue[n].changes) <= maxChangesPerCommit) {
		changes += len(l.queue[n].changes)
		n++
	}
	// A full commit does not wait, and neither does the last one before Close.
	full := n < len(l.queue) || changes >= maxChangesPerCommit
	if early = l.commitInterval - time.Since(l.lastCommitBegan); n > 0 && early > 0 && !full && !l.closing {
		return nil, early, false
	}
	rs = l.queue[:n:n]
	l.queue = l.queue[n:]
	if len(l.queue) == 0 {
		l.queue = nil // lets go of the array behind rs
	}
	return rs, 0, l.closing
}

// commitAndAnswer commits the requests, writes the outside head, and calls back. After the
// ledger failed once, it only answers with that error.
func (l *Ledger) commitAndAnswer(rs []request) {
	err := l.Err()
	var all [][]ledger.Result
	if err == nil {
		// After an error nobody knows what is on disk. The process must end; the next start reads what was really written.
		if all, err = l.commitRequests(rs); err != nil {
			err = l.stopWith(err)
		}
	}
	if err != nil {
		for _, r := range rs {
			r.answerError(err)
		}
		return
	}
	// The commit is durable even where its head cannot be written. But a disk that refuses this
	// write must not be trusted with the next commit.
	// Before the answers: whoever acts on a committed intent can rely on a head that knows it, also after the process dies.
	unnoted := l.head.writeRecord(l.state.Head)
	l.mu.Lock()
	listeners := l.listeners
	l.mu.Unlock()
	// The listeners come before the callers: whoever waited for a commit finds that they have heard of it.
	for _, listen := range listeners {
		for _, results := range all {
			(*listen)(results)
		}
	}
	// From here on the callers act. A crash before this line means: committed, and nobody acted; the step is still due.
	for i, r := range rs {
		r.then(all[i], nil)
	}
	if unnoted != nil {
		_ = l.stopWith(fmt.Errorf("write outside head: %w", unnoted))
	}
}

// stopWith stops the ledger for good and returns why it stopped.
func (l *Ledger) stopWith(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err == nil {
		l.err = fmt.Errorf("ledger stopped: %w", err)
		close(l.failed)
	}
	return l.err
}

// commitRequests makes the changes of all requests in one transaction. After an
// error of the commit itself they may be on disk or not.
func (l *Ledger) commitRequests(rs []request) ([][]ledger.Result, error) {
	tx, err := l.db.Begin(true)
	if err != nil {
		return nil, fmt.Errorf("begin: %w", err)
	}
	// Every error below leaves the file as the last commit left it.
	defer func() { _ = tx.Rollback() }() // does nothing after the commit
	g := &groupCommit{tx: tx, ledger: l, summary: l.state, entries: map[archive.Key]*changedEntry{}}
	all, made, err := g.applyRequests(rs)
	// All changes were refused: there is nothing to commit, and the transaction is rolled back.
	if err != nil || made == 0 && !g.touched {
		return all, err
	}
	committed, err := g.writeAll()
	if err != nil {
		return nil, err
	}
	// Entries, journal lines, indexes and totals are one transaction: a crash leaves all of them or none.
	if err := l.commitDurably(tx); err != nil {
		return nil, err
	}
	// Memory follows the disk: readers must never see what a crash could take back.
	l.mu.Lock()
	l.state = g.summary
	l.mu.Unlock()
	l.commits.Add(1)
	l.changes.Add(made)
	for _, results := range all {
		for i, r := range results {
			// The entry as it was read back from its record, which is what a restart would find.
			if r.Err == nil && committed[r.Key].Rev == r.Entry.Rev {
				results[i].Entry = committed[r.Key]
			}
		}
	}
	return all, nil
}

// commitDurably is the durable commit.
func (l *Ledger) commitDurably(tx *bbolt.Tx) error {
	if err := l.fault("commit"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	// bbolt writes and syncs the pages, then the meta page, and syncs again. A crash before the second sync leaves the file at
	// the commit before; a crash after it leaves this commit, although no caller was told.
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if err := l.fault("committed"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// applyRequests makes the changes in order and says what became of each.
func (g *groupCommit) applyRequests(rs []request) (all [][]ledger.Result, made uint64, err error) {
	all = make([][]ledger.Result, len(rs))
	for i, r := range rs {
		if r.do != nil {
			// A refusal concerns this request alone. An error concerns the disk, and ends the whole commit.
			refused, err := r.do(g)
			if err != nil {
				return nil, 0, err
			}
			all[i] = []ledger.Result{{Err: refused}}
			g.touched = g.touched || refused == nil
			continue
		}
		all[i] = make([]ledger.Result, len(r.changes))
		for j, c := range r.changes {
			d, why := g.draftChange(c)
			all[i][j] = ledger.Result{Key: c.Key, Entry: d.entry, Err: why}
			// A refused change wrote nothing. The others of this commit are made all the same.
			if why != nil {
				all[i][j].Entry = ledger.Entry{}
				continue
			}
			if err := g.acceptDraft(d); err != nil {
				return nil, 0, err
			}
			made++
		}
	}
	return all, made, nil
}
