package proof

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// stored returns sums as they come back from where they were stored.
func stored(t *testing.T, s Sums) (back Sums) {
	t.Helper()
	text, err := json.Marshal(s)
	kit.Must(t, errors.Join(err, json.Unmarshal(text, &back)))
	return back
}

// whole replays all lines, and returns what that leaves.
func (b *book) whole() (Report, Sums) {
	f := b.forgetting(1)
	r := f.check(b.journal(), maps.Values(b.entries))
	return r, f.Sums()
}

// goOn replays the lines behind sums.
func (b *book) goOn(s Sums) (Report, Sums, []ledger.Entry) {
	f := NewReplay(b, &s)
	at := s.Head
	changed := map[string]bool{}
	for _, stored := range b.lines[at.N:] {
		l, err := ledger.ParseLine(stored)
		at = at.Next(stored)
		f.Line(at, l, err)
		changed[l.Key] = true
	}
	var entries []ledger.Entry
	for _, e := range b.entries {
		if !e.IsAtRest() || changed[e.Key.String()] {
			entries = append(entries, e)
			f.Entry(e)
		}
	}
	r := f.Finish(b.journal().Head, &b.balance)
	return r, f.Sums(), entries
}

// A check that goes on from an earlier one comes to the same report as one of all lines, wherever the earlier one ended, as
// long as no entry that was at rest has changed.
func TestSums_I14_ReportsAsTheWholeDoes(t *testing.T) {
	went := 0
	for seed := range uint64(50) {
		b := newBook(t)
		rnd := rand.New(rand.NewPCG(seed, 3))
		var s Sums
		resting := map[archive.Key]uint32{}
		for round := range 8 {
			switch key := byte(round%5 + 1); {
			case round < 5:
				wander(b, rnd, key)
			default:
				wanderOn(b, rnd, key, 1000*round)
			}
			whole, ws := b.whole()
			kit.Need(t, whole.OK(), "seed %d: findings = %v, want none", seed, whole.Findings)
			changed := round == 0
			for k, rev := range resting {
				changed = changed || b.entries[k].Rev != rev
			}
			if !changed {
				from := stored(t, s)
				r, next, _ := b.goOn(from)
				kit.Need(t, ordered(r, whole.Entries) == ordered(whole, whole.Entries), "seed %d from line %d:\n%s\nthe whole:\n%s", seed, from.Head.N, ordered(r, whole.Entries), ordered(whole, whole.Entries))
				kit.Need(t, fmt.Sprintf("%+v", next) == fmt.Sprintf("%+v", ws), "seed %d: the next sums are\n%+v, of the whole\n%+v", seed, next, ws)
				went++
			}
			s = ws
			clear(resting)
			for k, e := range b.entries {
				if e.IsAtRest() {
					resting[k] = e.Rev
				}
			}
		}
	}
	kit.Check(t, went >= 200, "%d checks continued, want 200 at least", went)
}

// ordered writes a report as if it had held so many entries against their lines.
func ordered(r Report, entries uint64) string {
	r.Entries = entries
	return fmt.Sprintf("%+v", r)
}

// A fault behind the sums is found from there on.
func TestSums_I12_FindsWhatIsWrongSince(t *testing.T) {
	for name, spoil := range map[string]func(b *book){
		"Revision":     func(b *book) { b.spoil(2, func(e *ledger.Entry) { e.Rev++ }) },
		"State":        func(b *book) { b.spoil(2, func(e *ledger.Entry) { e.State = ledger.Quarantined }) },
		"Registration": func(b *book) { b.spoil(2, func(e *ledger.Entry) { e.Registrations[0].Ticket.Remote = "bum-9" }) },
		"OpenBefore":   func(b *book) { b.spoil(1, func(e *ledger.Entry) { e.State = ledger.Quarantined }) },
		"Gone":         func(b *book) { delete(b.entries, archive.Key{1}) },
		"LineGone":     func(b *book) { b.drop(len(b.lines) - 1) },
		"LeadsNowhere": func(b *book) { b.edit(len(b.lines), func(l *ledger.Line) { l.State = "archived" }) },
		"TakenBack":    func(b *book) { b.edit(len(b.lines)-1, func(l *ledger.Line) { l.Flags = "in-doubt" }) },
	} {
		b := newBook(t)
		b.do(1, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: name}, seal(1), ledger.RegisterIntended{}, got("bum-1"))
		_, s := b.whole()
		b.do(1, ledger.UploadIntended{}, ledger.UploadNotSent{})
		b.do(2, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: name}, seal(2), ledger.RegisterIntended{}, got("bum-2"))
		spoil(b)
		r, _, _ := b.goOn(stored(t, s))
		kit.Check(t, !r.OK(), "%s: findings = %+v, want some", name, r.Findings)
	}
}

func (b *book) spoil(key byte, how func(e *ledger.Entry)) {
	e := b.entries[archive.Key{key}]
	e.Registrations = slices.Clone(e.Registrations)
	how(&e)
	b.entries[archive.Key{key}] = e
}

// I29: what people did is counted and listed alike by a check that goes on and by one of all lines, however many acts there are, and so is
// what their comparisons found.
func TestSums_I29_ActsOfPeople(t *testing.T) {
	b := newBook(t)
	b.do(1, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "x"})
	outcomes := []string{ledger.CompareDiffers, ledger.CompareIncomplete, ledger.CompareSame, "", ledger.CompareIncomplete}
	n := uint32(0)
	act := func(m ledger.Mark) {
		n++
		m.By, m.At = ledger.Operator{UID: 7}, b.now
		b.append(ledger.MarkLine(uint64(len(b.lines))+1, n, m))
	}
	var s Sums
	for _, count := range []int{3, 900, 1200, 40} {
		for i := range count {
			if act(ledger.Mark{Name: ledger.MarkDisposal}); i%7 == 0 {
				act(ledger.Mark{Name: ledger.MarkCompared, Vault: "V", Cause: ledger.ComparedCause(outcomes[i%len(outcomes)], "all read", i)})
			}
		}
		whole, next := b.whole()
		if s.Head.N > 0 {
			r, _, _ := b.goOn(stored(t, s))
			kit.Need(t, fmt.Sprint(r.Acts) == fmt.Sprint(whole.Acts), "acts = %+v, want\n%+v", r.Acts, whole.Acts)
		}
		if latest := whole.Acts.Latest(); whole.Acts.Count != uint64(n) || len(latest) != min(int(n), ActsAtMost) || latest[len(latest)-1].Line != uint64(len(b.lines)) {
			t.Errorf("%d acts of %d, %d listed", whole.Acts.Count, n, len(latest))
		}
		s = next
	}
}

// A comparison of a document whose entry is at rest changes what is counted of it.
func TestSums_I4_CountsADownloadOfAnEntryAtRest(t *testing.T) {
	b := newBook(t)
	b.do(1, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "x"}, seal(1), ledger.RegisterIntended{}, got("bum-1"), ledger.UploadIntended{},
		accepted(1), says("bum-1", archive.Successful), ledger.PlaceIntended{Dest: "there"}, ledger.Placed{})
	_, s := b.whole()
	for _, outcome := range []string{ledger.FetchDiffers, ledger.FetchSame} {
		b.fetch(ledger.MarkFetchIntended, "bum-1", "")
		b.fetch(ledger.MarkFetched, "bum-1", outcome)
		r, next, entries := b.goOn(stored(t, s))
		want := Sample{Archived: 1, Compared: 1}
		if outcome == ledger.FetchDiffers {
			want.Differ = 1
		}
		kit.Need(t, r.Sample == want && len(entries) == 0, "%s: sample = %+v, want %+v", outcome, r.Sample, want)
		s = next
	}
}
