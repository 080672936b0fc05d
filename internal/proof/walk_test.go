package proof

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// attempts are events that may or may not be legal where an entry stands; r is a
// fresh number of the service, old one that the entry may have.
func attempts(r, old archive.RemoteID) []ledger.Event {
	evs := []ledger.Event{
		ledger.StillChanging{}, ledger.Postponed{}, ledger.Resealed{Package: seal(1).Package, Seal: seal(1).Seal}, ledger.Refused{}, ledger.FoundDuplicate{First: archive.Key{250}},
		ledger.SentToQuarantine{}, ledger.RegisterIntended{}, ledger.RegisterUnanswered{}, ledger.RegisterNotTaken{}, ledger.BatchRefused{Part: 1},
		ledger.RegisterRefused{}, ledger.AnswerMixedUp{}, got(r), got(old), ledger.UploadIntended{}, ledger.UploadNotSent{}, ledger.UploadUnanswered{},
		ledger.UploadRefused{}, accepted(1), ledger.WindowClosed{}, ledger.Held{}, ledger.Unheld{}, ledger.Closed{}, ledger.Released{},
		ledger.Superseded{By: archive.Key{250}}, ledger.Retried{As: archive.Key{250}}, ledger.PlaceIntended{Dest: "there"}, ledger.Placed{DisposeAt: noon}, ledger.DisposeIntended{},
		ledger.Disposed{}, ledger.Disposed{Dest: "/there"}, ledger.DisposalStopped{},
	}
	for w := archive.Unfamiliar; w <= archive.Absent; w++ {
		evs = append(evs, says(old, w), says(old, w))
	}
	return evs
}

// TestCheck_NoFalseAlarm: whatever the one door lets through, in an order in which
// acts are announced, folds without a finding.
func TestCheck_NoFalseAlarm(t *testing.T) {
	states := map[ledger.State]int{}
	for seed := range uint64(60) {
		b := newBook(t)
		rnd := rand.New(rand.NewPCG(seed, 2))
		for key := byte(1); key <= 4; key++ {
			wander(b, rnd, key)
			states[b.entries[archive.Key{key}].State]++
		}
		entries := slices.Collect(maps.Values(b.entries))
		r := Check(b.journal(), slices.Values(entries))
		if !r.OK() {
			for _, l := range b.lines {
				t.Logf("%s", l)
			}
			t.Fatalf("seed %d: %v", seed, r.Findings)
		}
		for _, least := range []int{leastItems, 2, 1} {
			forgetful := b.forgetting(least).check(b.journal(), slices.Values(entries))
			kit.Need(t, reflect.DeepEqual(forgetful, r), "seed %d: forgetting more than %d: %+v, without: %+v", seed, least, forgetful, r)
		}
	}
	kit.Check(t, len(states) >= 8 && states[ledger.Archived] >= 20, "the walks ended in few states only: %v", states)
}

// wander tries random events on one entry.
func wander(b *book, rnd *rand.Rand, key byte) {
	b.do(key, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: name(key)})
	if rnd.IntN(10) > 0 {
		b.do(key, seal(key))
	}
	wanderOn(b, rnd, key, 0)
}

// wanderOn tries random events on an entry that there is; numbers is the first of the service's numbers that is free.
func wanderOn(b *book, rnd *rand.Rand, key byte, numbers int) {
	intent := false
	for range rnd.IntN(400) {
		e := b.entries[archive.Key{key}]
		fresh := archive.RemoteID(fmt.Sprintf("%d-%d", key, numbers))
		old := fresh
		if n := len(e.Registrations); n > 0 {
			last := e.Registrations[rnd.IntN(n)]
			if old = last.Ticket.Remote; last.Generation != e.Generation && e.State == ledger.Registering {
				old = fresh // a number belongs to one identity for ever
			}
		}
		evs := attempts(fresh, old)
		ev := evs[rnd.IntN(len(evs))]
		switch ev.(type) {
		case ledger.Refused, ledger.FoundDuplicate, ledger.SentToQuarantine, ledger.RegisterRefused, ledger.Closed, ledger.AnswerMixedUp:
			if rnd.IntN(20) > 0 {
				continue // else every walk ends early
			}
		}
		if _, err := ledger.Transition(e, ev, archive.Instant{Wall: b.now}); err != nil || outcomes[ev.JournalName()] && !intent {
			continue
		}
		b.do(key, ev)
		b.now = b.now.Add(time.Hour)
		numbers++
		switch {
		case intents[ev.JournalName()]:
			intent = true
		case outcomes[ev.JournalName()]:
			intent = false
		}
	}
}

// TestCheck_I21_ForgetsWhatRests: where entries can be looked up, only what was on its way
// at the same time is remembered; a stored entry that its lines do not tell of is found all the same.
func TestCheck_I21_ForgetsWhatRests(t *testing.T) {
	b := newBook(t)
	for key := byte(1); key <= 100; key++ {
		r := archive.RemoteID(fmt.Sprint("bum-", key))
		b.do(key, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: name(key)}, seal(key), ledger.RegisterIntended{}, got(r), ledger.UploadIntended{},
			accepted(key), says(r, archive.Successful), ledger.PlaceIntended{Dest: "there"}, ledger.Placed{})
	}
	b.do(101, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: name(101)})
	f := b.forgetting(5)
	f.showLines(b.journal().Lines)
	kit.Check(t, len(f.items) <= 10, "%d entries are remembered at the end of the journal, want ten at most", len(f.items))
	f.forgetCompared()
	kit.Check(t, len(f.items) == 0 && len(f.bindings) == 0 && f.OK(),
		"%d entries and %d registrations are remembered: %v", len(f.items), len(f.bindings), f.Findings)
	for what, spoil := range map[string]func(e *ledger.Entry){
		"Posts":   func(e *ledger.Entry) { e.Posts++ },
		"State":   func(e *ledger.Entry) { e.State = ledger.Delivered },
		"Rev":     func(e *ledger.Entry) { e.Rev++ },
		"Success": func(e *ledger.Entry) { e.ArchivedRemote = "bum-7" },
	} {
		whole := b.entries[archive.Key{50}]
		broken := whole
		spoil(&broken)
		b.entries[archive.Key{50}] = broken
		r := b.forgetting(5).check(b.journal(), maps.Values(b.entries))
		kit.Check(t, !r.OK() && r.Findings[0].Key == whole.Key, "%s: findings = %v, want one of %s", what, r.Findings, whole.Key)
		b.entries[archive.Key{50}] = whole
	}
	delete(b.entries, archive.Key{50})
	r := b.forgetting(5).check(b.journal(), maps.Values(b.entries))
	kit.Check(t, !r.OK(), "an entry is gone: no finding, want one")
}

// TestCheck_MemoryPerEntry: a million entries are checked in some hundreds of
// megabytes, so each may take some hundred bytes.
func TestCheck_MemoryPerEntry(t *testing.T) {
	const n = 5_000
	var e ledger.Entry
	var head ledger.Head
	lines := func(yield func(uint64, []byte) bool) {
		write := func(l []byte) bool { head = head.Next(l); return yield(head.N, l) }
		write(ledger.FirstLine("ledger-1", "test", noon).Encode())
		for i := range n {
			var key archive.Key
			key[0], key[1], key[2] = byte(i>>16), byte(i>>8), byte(i)
			e = ledger.Entry{Key: key}
			for _, ev := range []ledger.Event{ledger.ClaimedFolder{}, ledger.Sealed{ID: archive.ID(key), Package: seal(1).Package},
				ledger.RegisterIntended{}, got(archive.RemoteID(key.String())), ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal(1).Package.SHA256}} {
				e, _ = ledger.Transition(e, ev, archive.Instant{Wall: noon})
				if !write(ledger.NewLine(head.N+1, e, ev, archive.Instant{Wall: noon}).Encode()) {
					return
				}
			}
		}
	}
	before := heap()
	f := NewReplay(nil, nil)
	f.showLines(lines)
	used := (heap() - before) / n
	t.Logf("%d bytes an entry with one registration", used)
	kit.Check(t, len(f.items) == n && used <= 400, "%d entries, %d bytes for each", len(f.items), used)
	runtime.KeepAlive(f)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCheck_I8_NumberOfARegistrationNoLongerListed: whose a number is stays known when its entry lists it no more, whichever
// of the two had it first, and though both are settled.
func TestCheck_I8_NumberOfARegistrationNoLongerListed(t *testing.T) {
	listed := func(b *book, key byte) {
		b.claim(key)
		b.upload(key, "b1")
		b.archive(key, "b1")
	}
	folded := func(b *book, key byte) {
		b.claim(key)
		b.do(key, ledger.RegisterIntended{}, got("b1"), ledger.WindowClosed{})
		for n := range 12 {
			b.do(key, ledger.RegisterIntended{}, got(archive.RemoteID(fmt.Sprint("own-", key, n))), ledger.WindowClosed{})
		}
		b.upload(key, "own")
		b.archive(key, "own")
		kit.Need(b.t, b.entries[archive.Key{key}].Pruned.Total() != 0, "pruned registrations of %d = 0, want some", key)
	}
	for name, two := range map[string][2]func(*book, byte){"TheFirst": {folded, listed}, "TheSecond": {listed, folded}, "Both": {folded, folded}} {
		b := newBook(t)
		two[0](b, 1)
		r := b.forgetting(1).check(b.journal(), maps.Values(b.entries))
		kit.Check(t, r.OK(), "%s: before the second: %v", name, r.Findings)
		two[1](b, 2)
		b.do(3, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "three"}) // and something more to remember
		b.do(4, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "four"})
		for _, least := range []int{leastItems, 2, 1} {
			r := b.forgetting(least).check(b.journal(), maps.Values(b.entries))
			kit.Check(t, !r.OK() && r.Findings[0].Promise == "I8", "%s: forgetting more than %d: %v", name, least, r.Findings)
		}
	}
}
