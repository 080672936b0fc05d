package ingest

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// upload.workers is how many uploads may run at once, of all vaults: beyond that only a vault in which none runs may
// begin one.
func TestPool_WidthHoldsForAllQueuesTogether(t *testing.T) {
	t.Parallel()
	p := &pool{width: 4}
	queues := []*worker{newWorker(nil, step{}, p, "A"), newWorker(nil, step{}, p, "B"), newWorker(nil, step{}, p, "C")}
	n := byte(0)
	offer := func(w *worker) {
		n++
		task := &task{entries: []ledger.Entry{{Key: archive.Key{n}}}}
		task.acts = task.entries
		p.bookEntries(w, task)
		p.makeReady(w, task)
	}
	begins := func() (all int) {
		for _, begun := p.giveNextSlot(); begun != nil; _, begun = p.giveNextSlot() {
			all++
		}
		return all
	}
	for range 4 {
		offer(queues[0])
		offer(queues[1])
	}
	if n := begins(); n != 4 {
		t.Errorf("%d tasks of two queues at once, there are 4 slots", n)
	}
	offer(queues[2])
	offer(queues[2])
	if n := begins(); n != 1 {
		t.Errorf("%d tasks of a queue in which nothing is done, one may begin beyond the slots", n)
	}
	if free := p.freeTasks(newWorker(nil, step{}, p, "D")); free != 1 {
		t.Errorf("another queue may take %d tasks, one is its right", free)
	}
}

// A task that began is kept by nobody once it ends: the list of those that wait grows and shrinks in one array, and
// whatever the array still names stays in memory while the queue is idle.
func TestPool_I21_QueueKeepsNoTaskThatBegan(t *testing.T) {
	t.Parallel()
	p := &pool{width: 4}
	w := newWorker(nil, step{}, p, "A")
	for n := range byte(4) {
		es := []ledger.Entry{{Key: archive.Key{n + 1}}}
		task := &task{entries: es, acts: es}
		p.bookEntries(w, task)
		p.makeReady(w, task)
	}
	waiting := w.ready
	for _, begun := p.giveNextSlot(); begun != nil; _, begun = p.giveNextSlot() {
	}
	if len(w.ready) != 0 {
		t.Fatal("vacuous: not all began")
	}
	for i, kept := range waiting {
		if kept != nil {
			t.Errorf("task %d began, and the list still holds it", i)
		}
	}
}

// A worker that found no room is woken when another queue of its step makes room, and does not sleep for a minute.
func TestPool_I25_RoomIsToldToOtherQueues(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{}, "A", "B")
		a, b := r.workerOf(ledger.Upload, "vault A"), r.workerOf(ledger.Upload, "vault B")
		ended := &task{entries: []ledger.Entry{{Key: archive.Key{1}}}}
		a.pool.bookEntries(a, ended)
		a.pool.releaseSlot(a, ended)
		a.pool.committing = maxCommitting // the disk hangs
		if _, err := b.takeDue(t.Context()); err != nil || len(b.wake) != 0 {
			t.Fatal("vacuous", err)
		}
		a.endTask(ended)
		if len(b.wake) != 1 {
			t.Error("the other queue is not woken")
		}
		r.end()
	})
}

// The share of the spool that a folder gives back which was not sealed after all is used at once by another drop.
func TestSeal_I25_SpaceThatIsGivenBackIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{slow: true}, "A", "B")
		var full atomic.Bool
		r.cfg.SpoolSpace = func(string) error {
			if full.Load() {
				return ErrFull
			}
			return nil
		}
		d := r.drops["A"]
		d.Packer = &changing{folders: d.Packer.(*folders), full: &full}
		r.drops["A"] = d
		r.start()
		r.drop("A", 1)
		r.pass(2 * time.Second)
		if !full.Load() {
			t.Fatal("vacuous: nothing is being packed")
		}
		r.drop("B", 1)
		r.pass(20 * time.Second)
		if n := r.stateOf("B", ledger.Discovered); n != 0 {
			t.Error("the other folder waits, though there is space for it")
		}
	})
}

// changing packs nothing: it fills the spool for ten seconds, and then a file has changed.
type changing struct {
	*folders
	full *atomic.Bool
}

func (c *changing) Pack(context.Context, ledger.Entry) (Packed, error) {
	c.full.Store(true)
	time.Sleep(10 * time.Second)
	c.full.Store(false)
	return Packed{}, ErrChanged
}

// I6: workers that decide at the same moment how much to register count each other's tickets. Each vault may have one
// ticket beyond what the network link can carry.
func TestRegister_I6_VaultsCountEachOthersTickets(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // they come in turn then, whatever else the machine does
	synctest.Test(t, func(t *testing.T) {
		vaults := []archive.VaultID{"A", "B", "C", "D", "E", "F"}
		r := build(t, &service{}, vaults...)
		r.learn(20 * time.Second)
		sizes := make([]int64, r.cfg.Routes[ledger.Vault].BatchSize)
		for i := range sizes {
			sizes[i] = 20_000
		}
		can := r.cfg.Planner.Plan(string(ledger.Vault), sizes, nil, r.s.now())
		for _, v := range vaults {
			packaged(t, r, v, len(sizes))
		}
		intents := &registerIntents{Ledger: r.cfg.Ledger}
		r.cfg.Ledger = intents
		found := &foundTogether{Index: r.cfg.Index}
		found.looks.Add(len(vaults))
		r.cfg.Index = found
		r.cfg.Now = func() archive.Instant {
			for range 1000 {
				runtime.Gosched() // so that the others get as far
			}
			return r.s.now()
		}
		var wg sync.WaitGroup
		for _, v := range vaults {
			w := r.workerOf(ledger.Register, "vault "+string(v))
			w.linger = 0
			wg.Go(func() {
				if _, err := w.takeDue(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := int(intents.n.Load()); can < 2 || n < can || n > can+len(vaults)-1 {
			t.Errorf("%d tickets at once, the link carries %d and each vault may have one", n, can)
		}
		if err := r.ledger.Close(); err != nil {
			t.Error(err)
		}
	})
}

// foundTogether lets the first look of each of several workers end at the same moment.
type foundTogether struct {
	Index
	looks  sync.WaitGroup
	looked sync.Map // queue → true
}

func (f *foundTogether) DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
	es, at, err := f.Index.DueInQueue(s, queue, now, limit, busy, skip)
	if _, again := f.looked.LoadOrStore(queue, true); !again {
		f.looks.Done()
		f.looks.Wait()
	}
	return es, at, err
}

// I25: a wall clock that is set back while a batch fills does not keep it waiting.
func TestRegister_I25_ClockSetBackWhileABatchFills(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{slow: true})
		packaged(t, r, "V", 1)
		set := time.Duration(0)
		r.cfg.Now = func() archive.Instant {
			at := r.s.now()
			at.Wall = at.Wall.Add(set)
			return at
		}
		w := r.workerOf(ledger.Register, "vault V")
		next, err := w.takeDue(t.Context())
		if wait := time.Until(next); err != nil || wait != r.cfg.Routes[ledger.Vault].BatchWait || !r.Idle() {
			t.Fatal("vacuous", wait, err)
		}
		set = -time.Hour
		time.Sleep(r.cfg.Routes[ledger.Vault].BatchWait)
		if _, err := w.takeDue(t.Context()); err != nil || r.Idle() {
			t.Error("it waits on", err)
		}
		r.end()
	})
}

// registerIntents counts the documents whose registration is intended. It commits none of that, so that nothing goes on.
type registerIntents struct {
	Ledger
	n atomic.Int32
}

func (i *registerIntents) Submit(cs []ledger.Change, _ func([]ledger.Result)) {
	for _, c := range cs {
		if _, is := c.Events[0].(ledger.RegisterIntended); is {
			i.n.Add(1)
		}
	}
}

// packaged commits n entries of a vault that wait for their ticket.
func packaged(t *testing.T, r *running, v archive.VaultID, n int) {
	t.Helper()
	for i := range n {
		e := ledger.Entry{Key: archive.NewKey(time.Now()), Vault: v, Folder: fmt.Sprint(v, i)}
		p, err := r.drops[string(v)].Packer.Pack(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan []ledger.Result, 1)
		r.ledger.Submit([]ledger.Change{{Key: e.Key, At: r.s.now(), Document: &p.Document, Events: []ledger.Event{
			ledger.ClaimedFolder{Route: ledger.Vault, Vault: v, Drop: string(v), Folder: e.Folder, Fingerprint: archive.Digest{1}}, p.Sealed}}},
			func(rs []ledger.Result) { done <- rs })
		rs := <-done
		if rs[0].Err != nil {
			t.Fatal(rs[0].Err)
		}
		r.backlog.update(rs[0].Entry)
	}
}

// G10: a worker whose queue is empty does not run, however many queues there have been. It runs again at once when there
// is something to do.
func TestWorker_G10_EmptyQueuesCostNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{}, "A", "B")
		runs := func() (all []string) {
			r.mu.Lock()
			defer r.mu.Unlock()
			for s, workers := range r.workers {
				for queue, w := range workers {
					if w.running.Load() {
						all = append(all, s.String()+" "+queue)
					}
				}
			}
			return all
		}
		for n := range 3 {
			r.dropNamed("A", fmt.Sprint("round ", n), 3)
			r.pass(3 * time.Second)
			if n := r.stateOf("A", ledger.Discovered); n != 0 || len(runs()) == 0 {
				t.Errorf("%d folders are not packed, %v run", n, runs())
			}
			r.pass(2 * time.Hour)
			if got := r.stateOf("A", ledger.Archived); got != 3*(n+1) {
				t.Errorf("%d of %d are archived", got, 3*(n+1))
			}
			if all := runs(); len(all) != 0 {
				t.Errorf("nothing waits, and %v run", all)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if n := len(r.workers[ledger.Seal]); n != 1 {
			t.Errorf("%d workers to seal, for one queue that ever was", n)
		}
	})
}
