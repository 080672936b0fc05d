package ingest

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// asked counts the intents to upload that are handed to the ledger.
type asked struct {
	Ledger
	mu      sync.Mutex
	intents map[archive.Key]int // guarded by mu
	first   func()              // called with the first of them; nil: nothing
}

func (a *asked) Submit(cs []ledger.Change, then func([]ledger.Result)) {
	a.mu.Lock()
	for _, c := range cs {
		if _, is := c.Events[0].(ledger.UploadIntended); is {
			if a.intents[c.Key]++; a.first != nil {
				a.first()
				a.first = nil
			}
		}
	}
	a.mu.Unlock()
	a.Ledger.Submit(cs, then)
}

// registered commits n entries that hold a ticket of that time, and counts their intents.
func registered(t *testing.T, r *running, n int, sent archive.Instant) *asked {
	t.Helper()
	for i := range n {
		e := ledger.Entry{Key: archive.NewKey(time.Now()), Vault: "V", Folder: "f" + string(rune('A'+i))}
		p, err := r.drops["V"].Packer.Pack(t.Context(), e)
		if err != nil {
			t.Fatal(err)
		}
		ticket := archive.Ticket{Remote: numbered(1000 + i), URL: addressed(1000 + i), Sent: sent}
		done := make(chan []ledger.Result, 1)
		r.ledger.Submit([]ledger.Change{{Key: e.Key, At: r.s.now(), Document: &p.Document, Events: []ledger.Event{
			ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V", Drop: "V", Folder: e.Folder, Fingerprint: archive.Digest{1}},
			p.Sealed, ledger.RegisterIntended{}, ledger.TicketReceived{Ticket: ticket}}}}, func(rs []ledger.Result) { done <- rs })
		if rs := <-done; rs[0].Err != nil {
			t.Fatal(rs[0].Err)
		}
	}
	a := &asked{Ledger: r.cfg.Ledger, intents: map[archive.Key]int{}}
	r.cfg.Ledger = a
	return a
}

// end waits for what a test began by itself, without Run.
func (r *running) end() {
	synctest.Wait()
	r.tasks.Wait()
	if err := r.ledger.Close(); err != nil {
		r.t.Error(err)
	}
}

// I24, I2: a breaker that opens while a worker takes what is due holds at once, and what is tried
// when it is probed is one document, sent once.
func TestWorker_I24_APauseInTheMiddleOfARound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		var mu sync.Mutex
		under, twice := map[archive.RemoteID]int{}, false
		r := build(t, &service{hangs: func(_ context.Context, id archive.RemoteID) error {
			mu.Lock()
			under[id]++
			twice = twice || under[id] > 1
			mu.Unlock()
			<-hold
			return nil
		}})
		a := registered(t, r, 10, r.s.now())
		up := r.workerOf(ledger.Upload, "vault V")
		up.usualTime = time.Millisecond // so that many may wait for a slot
		a.first = func() { r.openBreaker(UploadTarget("V"), ledger.Cause{Code: "test"}, time.Hour) }
		look := func() {
			if _, err := up.takeDue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if up.pool.freeTasks(up) < 10 {
			t.Fatal("vacuous: one look does not take all of them")
		}
		look()
		synctest.Wait()
		if len(a.intents) != 1 {
			t.Errorf("%d uploads intended, of which one was before the pause", len(a.intents))
		}
		time.Sleep(2 * time.Hour)
		look()
		synctest.Wait()
		for k, n := range a.intents {
			if n != 1 || len(a.intents) > 2 {
				t.Errorf("%v was intended %d times, %d documents", k, n, len(a.intents))
			}
		}
		close(hold)
		r.end()
		if twice {
			t.Error("two uploads of one document at once")
		}
	})
}

// I2: what is under way is not taken again, whoever offers it.
func TestPool_I2_NothingIsTakenTwice(t *testing.T) {
	t.Parallel()
	p, e := &pool{width: 4}, ledger.Entry{Key: archive.Key{1}}
	w, first := newWorker(nil, step{}, p, "A"), &task{entries: []ledger.Entry{e}}
	if !p.bookEntries(w, first) || p.bookEntries(w, &task{entries: []ledger.Entry{{Key: archive.Key{2}}, e}}) {
		t.Error("taken twice")
	}
	if w.isBusy(archive.Key{2}) || w.waiting != 1 || p.waiting != 1 {
		t.Error("what was refused is taken")
	}
	p.releaseSlot(w, first)
	p.releaseEntries(w, first)
	if !p.bookEntries(w, &task{entries: []ledger.Entry{e}}) {
		t.Error("busy for ever")
	}
}

// I23: however many quick uploads wait in one vault's queue, another vault's have their share.
func TestStore_I23_QuickOnesLeaveOthersTheirShare(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &service{slow: true}
		var mu sync.Mutex
		under, most := 0, 0
		s.hangs = func(_ context.Context, id archive.RemoteID) error {
			if s.of(id) == "QUICK" {
				time.Sleep(40 * time.Millisecond)
				return nil
			}
			mu.Lock()
			under++
			most = max(most, under)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			under--
			mu.Unlock()
			return nil
		}
		r := build(t, s, "QUICK", "B")
		row := r.cfg.Routes[ledger.Vault]
		row.Workers = 8
		r.cfg.Routes[ledger.Vault] = row
		r.cfg.Planner.Workers, r.pools[ledger.Upload].width = 8, 8
		r.start()
		r.drop("QUICK", 1800)
		r.pass(3 * time.Second)
		r.drop("B", 20)
		r.pass(7 * time.Second)
		if r.stateOf("QUICK", ledger.Uploaded) == 1800 {
			t.Fatal("vacuous: the flood is over")
		}
		mu.Lock()
		if most < 4 {
			t.Errorf("at most %d of the other vault at once, its share is 4", most)
		}
		mu.Unlock()
		r.pass(time.Minute)
	})
}

// learn lets the planner see an upload of the usual size that took so long.
func (r *running) learn(took time.Duration) {
	u, end := r.cfg.Planner.BeginUpload(archive.Ticket{Sent: r.s.now()}, 20_000, r.s.now()), r.s.now()
	end.Boot += took
	r.cfg.Planner.EndUpload(u, end, true)
}

// I6: of uploads whose turns come at the same moment, each is held against those before it. Where two would
// keep each other from ending in time, one goes.
func TestUpload_I6_OfSeveralAtOnceEachCounts(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		took   time.Duration
		atOnce int32
	}{"SlowLine": {200 * time.Second, 1}, "QuickLine": {time.Second, 2}} { // two are what a limiter begins with
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var under, most atomic.Int32
				s := &service{slow: true, hangs: func(context.Context, archive.RemoteID) error {
					n := under.Add(1)
					defer under.Add(-1)
					most.Store(max(n, most.Load()))
					time.Sleep(row.took)
					return nil
				}}
				r := build(t, s)
				registered(t, r, 4, r.s.now())
				r.learn(row.took)
				r.start()
				r.pass(row.took / 2)
				if n := most.Load(); n != row.atOnce {
					t.Errorf("%d uploads at once, want %d", n, row.atOnce)
				}
				r.pass(2 * time.Hour)
				if n := r.states(); n[ledger.Uploaded] != 4 {
					t.Error(n)
				}
			})
		})
	}
}

// I11: whether a ticket is over is decided once for all that are told so together: none of
// them is booked as being sent while nothing is sent.
func TestUpload_I11_OverIsOverForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{slow: true})
		sent := r.s.now()
		sent.Boot, sent.Wall = sent.Boot-12*time.Minute, sent.Wall.Add(-12*time.Minute)
		registered(t, r, 20, sent) // three minutes are left of each
		r.learn(3 * time.Minute)
		up, at := r.workerOf(ledger.Upload, "vault V"), r.s.now()
		ready, _, err := up.findDue(at, 64, &earliest{})
		if err != nil || len(ready) != 20 || r.mayStartUpload(ready[0], nil, at) {
			t.Fatal("vacuous", len(ready), err)
		}
		how := up.handling(ready[0], at)
		es, _ := up.splitByHandling(how, ready, at)
		for range 60 {
			r.learn(0) // what ends meanwhile shows that the line is quick
		}
		if len(es) != 20 || !r.mayStartUpload(es[0], nil, at) {
			t.Fatal("vacuous", len(es))
		}
		up.intendTask(t.Context(), &task{handling: how, entries: es}, at)
		synctest.Wait()
		if n := r.states(); n[ledger.Packaged] != 20 {
			t.Error(n)
		}
		r.end()
	})
}

// A person's act may be told from a commit: Wake reads nothing there, and what the ledger
// holds is counted anew before the next registration.
func TestWake_ReadsNothingItself(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		looks := &counting{Index: r.cfg.Index, seen: map[string]int{}}
		r.cfg.Index = looks
		registered(t, r, 3, r.s.now())
		r.Wake()
		if len(looks.seen) != 0 || r.backlog.countSealed("vault V") != 0 {
			t.Error("it was read", looks.seen)
		}
		if _, err := r.workerOf(ledger.Register, "vault V").takeDue(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := r.backlog.countSealed("vault V"); n != 3 {
			t.Errorf("%d of 3 packages are known", n)
		}
		r.end()
	})
}

// What is booked while the ledger is read is newer than what was read; what was not found
// there has left.
func TestBacklog_BookedWhileRead(t *testing.T) {
	t.Parallel()
	entry := func(n byte, s ledger.State) ledger.Entry {
		return ledger.Entry{Key: archive.Key{n}, Vault: "V", State: s}
	}
	var b backlog
	b.clear()
	left, sent, came, granted := entry(1, ledger.Packaged), entry(2, ledger.Registered), entry(3, ledger.Packaged), entry(4, ledger.Packaged)
	for _, e := range []ledger.Entry{left, sent, granted} {
		b.update(e)
	}
	b.grant(granted)
	b.beginRead()
	uploaded := sent
	uploaded.State = ledger.Uploaded
	b.update(uploaded)
	b.update(came)
	b.endRead([]ledger.Entry{sent, granted, entry(5, ledger.Registered)})
	own, _ := b.grantedSizes("vault V", func(string) bool { return true })
	if b.n["vault V"] != 3 || own != 2 || b.packs[left.Key].queue != "" || b.packs[sent.Key].queue != "" {
		t.Errorf("%d packages, %d tickets: %v", b.n["vault V"], own, b.packs)
	}
	b.update(sent)
	b.endRead(nil)
	if b.n["vault V"] != 0 {
		t.Error("what was booked before is kept", b.packs)
	}
}

// lagging looks once into a ledger that is older than the end of what it finds there: a look may begin before an
// outcome is committed, and come to the entry after that.
type lagging struct {
	Index
	found []ledger.Entry
	times int
}

func (l *lagging) DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error) {
	es, at, err := l.Index.DueInQueue(s, queue, now, limit, busy, skip)
	if s != ledger.Seal {
		return es, at, err
	}
	if l.times++; len(es) > 0 && l.found == nil {
		l.found, l.times = es, 0
	}
	if l.found == nil || l.times != 1 {
		return es, at, err
	}
	time.Sleep(time.Minute)
	return slices.DeleteFunc(l.found, func(e ledger.Entry) bool { return busy(e.Key) }), at, err
}

// I11: what was found in a look that is older than the end of its work is not done again.
func TestWorker_I11_ALookThatIsOld(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{slow: true})
		var errs strings.Builder
		r.cfg.Log = slog.New(slog.NewTextHandler(&errs, &slog.HandlerOptions{Level: slog.LevelError}))
		old := &lagging{Index: r.cfg.Index}
		r.cfg.Index = old
		f := r.drops["V"].Packer.(*folders)
		f.takes = time.Second
		r.start()
		r.drop("V", 1)
		r.pass(5 * time.Minute)
		if n := r.states(); n[ledger.Uploaded] != 1 || old.times < 1 {
			t.Fatal(n, old.times)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.packed != 1 || errs.Len() > 0 {
			t.Errorf("packed %d times: %s", f.packed, errs.String())
		}
	})
}

// I23: what a person holds keeps no other folder of its vault from being packed, however much of it there is; and it
// counts alike whether it was followed or read.
func TestBacklog_I23_HeldCountsForNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := run(t, &service{slow: true})
		d := r.drops["V"]
		d.Holds.SameContent = true
		r.drops["V"] = d
		f := d.Packer.(*folders)
		f.same = true
		const held = maxWaiting + 10
		r.dropNamed("V", "first", 1)
		r.pass(time.Minute)
		r.drop("V", held)
		r.pass(10 * time.Minute)
		f.mu.Lock()
		f.same = false
		f.mu.Unlock()
		if n := r.states(); n[ledger.Packaged] != held {
			t.Fatal("vacuous", n)
		}
		followed := r.backlog.countSealed("vault V")
		r.Wake()
		r.dropNamed("V", "good", 10)
		r.pass(10 * time.Minute)
		if n := r.states(); n[ledger.Uploaded] != 11 {
			t.Error(n)
		}
		if read := r.backlog.countSealed("vault V"); followed != 0 || read != 0 {
			t.Errorf("%d followed, %d read", followed, read)
		}
	})
}

// A package that is missing is not made again while there is no room for it, or none is known.
func TestReseal_WaitsForRoom(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := build(t, &service{})
		registered(t, r, 1, r.s.now())
		f := r.drops["V"].Packer.(*folders)
		clear(f.sealed)
		r.cfg.SpoolSpace = func(string) error { return ErrFull }
		es, _, err := r.workerOf(ledger.Upload, "vault V").findDue(r.s.now(), 1, &earliest{})
		if err != nil || len(es) != 1 {
			t.Fatal(es, err)
		}
		changes := r.packAgain(t.Context(), r.drops["V"], es[0])
		if ev, is := changes[0].Events[0].(ledger.UploadNotSent); !is || !ev.NotBefore.After(time.Now()) || len(f.sealed) != 0 {
			t.Errorf("%+v, %d packed", changes, len(f.sealed))
		}
		r.end()
	})
}

// What an older list says opens no route: only an answer does.
func TestAsk_AnOldListOpensNothing(t *testing.T) {
	t.Parallel()
	r := build(t, &service{})
	defer r.ledger.Close()
	r.openBreaker(AskTarget("V"), ledger.Cause{Code: "test"}, 0)
	known := func() map[archive.RemoteID]archive.Receipt {
		return map[archive.RemoteID]archive.Receipt{"old": {Remote: "old"}}
	}
	r.updateAskBreaker("V", &questions{heard: known()})
	failed := &questions{heard: known()}
	failed.record("new", archive.Receipt{}, errors.New("no answer"))
	r.updateAskBreaker("V", failed)
	if r.breakers.isClosed(AskTarget("V")) {
		t.Error("opened by what was heard before")
	}
	failed.record("newer", archive.Receipt{Remote: "newer"}, nil)
	r.updateAskBreaker("V", failed)
	if !r.breakers.isClosed(AskTarget("V")) {
		t.Error("an answer does not open it")
	}
}
