package ingest_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// underWay counts the uploads of each vault that have not ended.
type underWay struct {
	mu sync.Mutex
	n  map[archive.VaultID]int // guarded by mu
}

func (u *underWay) add(v archive.VaultID, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.n[v] += n; u.n[v] == 0 {
		delete(u.n, v)
	}
}

func (u *underWay) counts() map[archive.VaultID]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.n)
}

// upload.workers is how many uploads may be under way at once, of all vaults. Beyond
// that, a vault of which none is under way may always begin one.
func TestPool_WidthHoldsForAllQueuesTogether(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		s, u, hold := &service{slow: true}, &underWay{n: map[archive.VaultID]int{}}, atomic.Bool{}
		s.hangs = func(ctx context.Context, id archive.RemoteID) error {
			if !hold.Load() {
				time.Sleep(time.Millisecond)
				return nil
			}
			u.add(s.of(id), 1)
			defer u.add(s.of(id), -1)
			<-ctx.Done()
			return ctx.Err()
		}
		vaults := []archive.VaultID{"A", "B", "C"}
		r := run(t, s, vaults...)
		for _, v := range vaults { // speeds are learned: each alone may use all four slots
			r.dropNamed(v, "before", 60)
			r.pass(time.Minute)
		}
		hold.Store(true)
		want := map[archive.VaultID]int{}
		for i, v := range vaults {
			r.dropAndPass(v, 10, 10*time.Second)
			want[v] = map[bool]int{true: 4, false: 1}[i == 0]
			kit.Want(t, "uploads at once", u.counts(), want)
		}
	})
}

// remembering keeps weak pointers to what it gave the engine of entries that are sent.
type remembering struct {
	ingest.Ledger
	mu   sync.Mutex
	gave []weak.Pointer[ledger.Registration] // guarded by mu
}

func (l *remembering) Submit(cs []ledger.Change, then func([]ledger.Result)) {
	l.Ledger.Submit(cs, func(rs []ledger.Result) {
		l.mu.Lock()
		for i := range rs {
			if e := &rs[i].Entry; e.State == ledger.Sending {
				l.gave = append(l.gave, weak.Make(&e.Registrations[0]))
			}
		}
		l.mu.Unlock()
		then(rs)
	})
}

// I21: an idle engine keeps no entry in memory that waited for its upload before.
func TestPool_I21_QueueKeepsNoTaskThatBegan(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{})
		l := &remembering{Ledger: r.cfg.Ledger}
		r.cfg.Ledger = l
		r.start()
		r.dropAndPass("V", 100, time.Hour)
		kit.Want(t, "states", r.states(), states{ledger.Archived: 100})
		runtime.GC()
		l.mu.Lock()
		defer l.mu.Unlock()
		kept := 0
		for _, p := range l.gave {
			if p.Value() != nil {
				kept++
			}
		}
		kit.Want(t, "entries kept in memory", kept, 0)
		kit.Want(t, "entries that were sent", len(l.gave), 100)
	})
}

// I25: a folder took all space of the spool for a while, and is not sealed after all.
// The space is used at once by another drop.
func TestSeal_I25_SpaceThatIsGivenBackIsUsed(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{slow: true}, "A", "B")
		var full atomic.Bool
		r.cfg.SpoolSpace = func(string) error {
			if full.Load() {
				return ingest.ErrFull
			}
			return nil
		}
		r.configured("A").Packer = &changing{folders: r.folders("A"), full: &full}
		r.start()
		r.dropAndPass("A", 1, 2*time.Second)
		kit.Want(t, "the spool is full", full.Load(), true)
		r.dropAndPass("B", 1, 20*time.Second)
		kit.Want(t, "folders of the other drop that wait", r.statesOf("B")[ledger.Discovered], 0)
	})
}

// changing packs nothing: it fills the spool for ten seconds, and then a file has changed.
type changing struct {
	*folders
	full *atomic.Bool
}

func (c *changing) Pack(context.Context, ledger.Entry) (ingest.Packed, error) {
	c.full.Store(true)
	time.Sleep(10 * time.Second)
	c.full.Store(false)
	return ingest.Packed{}, archive.ErrChanged
}

// I6: the workers of six vaults decide at the same moment how much to register, after
// an act that the engine did not see. They count each other's tickets: each vault may
// have one ticket beyond what the network link can carry.
func TestRegister_I6_VaultsCountEachOthersTickets(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // they come in turn then, whatever else the machine does
	synctest.Test(t, func(t *testing.T) {
		vaults := []archive.VaultID{"A", "B", "C", "D", "E", "F"}
		var asked atomic.Int32
		release := make(chan struct{})
		s := &registering{service: &service{}, answer: func(_ int32, _ archive.VaultID, frozen []archive.RegisterRequest) (a archive.RegisterResult, mine bool, err error) {
			asked.Add(int32(len(frozen)))
			<-release
			return a, false, nil
		}}
		r := build(t, s.service, vaults...)
		row := r.cfg.Routes[ledger.Vault]
		row.Client = s
		r.cfg.Routes[ledger.Vault] = row
		r.learn(20 * time.Second)
		sizes := make([]int64, row.BatchSize)
		for i := range sizes {
			sizes[i] = 20_000
		}
		can := r.cfg.Planner.Plan(string(ledger.Vault), sizes, nil, r.s.now())
		r.start()
		r.pass(time.Minute)
		for _, v := range vaults {
			for range sizes {
				r.commitPackaged(v)
			}
		}
		r.Wake()
		synctest.Wait()
		if n := int(asked.Load()); can < 2 || n < can || n > can+len(vaults)-1 {
			t.Errorf("%d tickets at once, want %d that the link carries and at most one more for each other vault", n, can)
		}
		close(release)
	})
}

// learn lets the planner see an upload of the usual size that took so long.
func (r *running) learn(took time.Duration) {
	u, end := r.cfg.Planner.BeginUpload(archive.Ticket{Sent: r.s.now()}, 20_000, r.s.now()), r.s.now()
	end.Boot += took
	r.cfg.Planner.EndUpload(u, end, true)
}

// commitPackaged commits an entry that waits for its ticket, and then the events.
func (r *running) commitPackaged(v archive.VaultID, more ...ledger.Event) {
	r.t.Helper()
	e := ledger.Entry{Key: archive.NewKey(time.Now()), Vault: v}
	e.Folder = e.Key.String()
	p := kit.Value(r.folders(string(v)).Pack(r.t.Context(), e))(r.t)
	evs := []ledger.Event{ledger.ClaimedFolder{Route: ledger.Vault, Vault: v, Drop: string(v), Folder: e.Folder, Fingerprint: archive.Digest{1}}, p.Sealed}
	r.apply(ledger.Change{Key: e.Key, Document: &p.Document, Events: append(evs, more...)})
}

// I25: the wall clock is set back by an hour while a batch fills. The batch is
// registered when it would have been.
func TestRegister_I25_ClockSetBackWhileABatchFills(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := run(t, &service{slow: true})
		r.dropAndPass("V", 1, 2*time.Second)
		kit.Want(t, "states while the batch fills", r.states(), states{ledger.Packaged: 1})
		r.s.setWall(-time.Hour)
		r.pass(2 * time.Second)
		posts, _ := r.s.counts()
		kit.Want(t, "registrations", posts, 1)
	})
}

// G10: empty queues cost nothing, however many there have been. Their workers continue
// at once when there is something to do.
func TestWorker_G10_EmptyQueuesCostNothing(t *testing.T) {
	kit.ParallelBubble(t, func(t *testing.T) {
		r := build(t, &service{}, "A", "B")
		looks := &counting{Index: r.cfg.Index, seen: map[string]int{}}
		r.cfg.Index = looks
		r.start()
		for n := range 3 {
			r.dropNamed("A", fmt.Sprint("round ", n), 3)
			r.pass(3 * time.Second)
			kit.Want(t, "folders that are not packed", r.statesOf("A")[ledger.Discovered], 0)
			r.pass(time.Hour)
			kit.Want(t, "states", r.states(), states{ledger.Archived: 3 * (n + 1)})
			looks.reset()
			r.pass(time.Hour)
			kit.Want(t, "searches in an hour in which nothing waits", looks.reset(), 0)
		}
	})
}
