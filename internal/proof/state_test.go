package proof

import (
	"bytes"
	"encoding/gob"
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

// stored returns a state as it comes back from where it was stored.
func stored(t *testing.T, s *State) (back State) {
	t.Helper()
	var b bytes.Buffer
	kit.Must(t, errors.Join(gob.NewEncoder(&b).Encode(s), gob.NewDecoder(&b).Decode(&back)))
	return back
}

// since returns the journal behind a state, and the entries that a check from there on reads.
func (b *book) since(n uint64) (j Journal, entries []ledger.Entry) {
	j = b.journal()
	j.Entry = b.entry
	j.ByRemote = func(r archive.RemoteID) (ledger.Entry, bool) {
		for _, e := range b.entries {
			if slices.ContainsFunc(e.Registrations, func(g ledger.Registration) bool { return g.Ticket.Remote == r }) {
				return e, true
			}
		}
		return ledger.Entry{}, false
	}
	changed := map[string]bool{}
	j.Lines = func(yield func(uint64, []byte) bool) {
		for i, line := range b.lines[n:] {
			if !yield(n+uint64(i)+1, line) {
				return
			}
		}
	}
	for _, line := range b.lines[n:] {
		l, _ := ledger.ParseLine(line)
		changed[l.Key] = true
	}
	for _, e := range b.entries {
		if !e.IsAtRest() || changed[e.Key.String()] {
			entries = append(entries, e)
		}
	}
	return j, entries
}

// A check that goes on from an earlier one comes to the same report as one of all lines, wherever the earlier one ended; where
// an entry that was at rest has changed, it says that it cannot go on.
func TestContinue_I14_ReportsAsTheWholeDoes(t *testing.T) {
	went, refused := 0, 0
	for seed := range uint64(50) {
		b := newBook(t)
		rnd := rand.New(rand.NewPCG(seed, 3))
		var s *State
		for round := range 8 {
			switch key := byte(round%5 + 1); {
			case round < 5:
				wander(b, rnd, key)
			default:
				wanderOn(b, rnd, key, 1000*round)
			}
			j := b.journal()
			j.Entry = b.entry
			whole, ws := CheckForLater(j, maps.Values(b.entries))
			kit.Need(t, whole.OK() && ws != nil, "seed %d: findings = %v, want none and a state", seed, whole.Findings)
			if s != nil {
				from := stored(t, s)
				j, entries := b.since(from.Head.N)
				r, next, err := Continue(from, j, slices.Values(entries))
				switch {
				case errors.Is(err, ErrRestChanged):
					refused++
				case err != nil || ordered(r, whole.Entries) != ordered(whole, whole.Entries):
					t.Fatalf("seed %d from line %d (%v):\n%s\nthe whole:\n%s", seed, from.Head.N, err, ordered(r, whole.Entries), ordered(whole, whole.Entries))
				case sortedState(next) != sortedState(ws):
					t.Fatalf("seed %d: the next state is\n%+v, of the whole\n%+v", seed, next, ws)
				default:
					went++
				}
			}
			s = ws
		}
	}
	kit.Check(t, went >= 200 && refused >= 5,
		"%d checks continued and %d could not, want 200 and 5 at least", went, refused)
}

// ordered writes a report in an order that does not tell how it came about.
func ordered(r Report, entries uint64) string {
	r.Entries = entries
	r.Uncertain = sortedUncertain(r.Uncertain)
	return fmt.Sprintf("%+v", r)
}

func sortedUncertain(u Uncertain) Uncertain {
	for _, keys := range []*[]archive.Key{&u.NeedReconcile, &u.Unclear, &u.Double, &u.InDoubt} {
		*keys = slices.Clone(*keys)
		slices.SortFunc(*keys, func(a, b archive.Key) int { return bytes.Compare(a[:], b[:]) })
	}
	u.Orphans = slices.Clone(u.Orphans)
	slices.SortFunc(u.Orphans, func(a, b Orphan) int {
		return bytes.Compare([]byte(a.Key.String()+string(a.Remote)), []byte(b.Key.String()+string(b.Remote)))
	})
	return u
}

func sortedState(s *State) string {
	if s == nil {
		return "none"
	}
	c := *s
	c.Rest = sortedUncertain(s.Rest)
	return fmt.Sprintf("%+v", c)
}

// What is wrong behind the state is found from there on.
func TestContinue_I12_FindsWhatIsWrongSince(t *testing.T) {
	for name, spoil := range map[string]func(b *book){
		"Revision":     func(b *book) { b.spoil(2, func(e *ledger.Entry) { e.Rev++ }) },
		"State":        func(b *book) { b.spoil(2, func(e *ledger.Entry) { e.State = ledger.Quarantined }) },
		"Registration": func(b *book) { b.spoil(2, func(e *ledger.Entry) { e.Registrations[0].Ticket.Remote = "bum-9" }) },
		"OpenBefore":   func(b *book) { b.spoil(1, func(e *ledger.Entry) { e.Posts++ }) },
		"Gone":         func(b *book) { delete(b.entries, archive.Key{1}) },
		"LineGone":     func(b *book) { b.lines = slices.Delete(b.lines, len(b.lines)-2, len(b.lines)-1) },
	} {
		b := newBook(t)
		b.do(1, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: name}, seal(1), ledger.RegisterIntended{}, got("bum-1"))
		j := b.journal()
		j.Entry = b.entry
		_, s := CheckForLater(j, maps.Values(b.entries))
		b.do(2, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: name}, seal(2), ledger.RegisterIntended{}, got("bum-2"))
		spoil(b)
		j, entries := b.since(s.Head.N)
		r, next, err := Continue(stored(t, s), j, slices.Values(entries))
		kit.Check(t, err == nil && !r.OK() && next == nil, "%s: findings = %+v (%v), want some and no state", name, r.Findings, err)
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
func TestContinue_I29_ActsOfPeople(t *testing.T) {
	b := newBook(t)
	b.do(1, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "x"})
	outcomes := []string{ledger.CompareDiffers, ledger.CompareIncomplete, ledger.CompareSame, "", ledger.CompareIncomplete}
	n := uint32(0)
	act := func(m ledger.Mark) {
		n++
		m.By, m.At = ledger.Operator{UID: 7}, b.now
		b.append(ledger.MarkLine(uint64(len(b.lines))+1, n, m))
	}
	var s *State
	for _, count := range []int{3, 900, 1200, 40} {
		for i := range count {
			if act(ledger.Mark{Name: ledger.MarkDisposal}); i%7 == 0 {
				act(ledger.Mark{Name: ledger.MarkCompared, Vault: "V", Cause: ledger.ComparedCause(outcomes[i%len(outcomes)], "all read", i)})
			}
		}
		j := b.journal()
		j.Entry = b.entry
		whole, next := CheckForLater(j, maps.Values(b.entries))
		if s != nil {
			j, entries := b.since(s.Head.N)
			r, _, err := Continue(stored(t, s), j, slices.Values(entries))
			kit.Need(t, err == nil && fmt.Sprint(r.Acts) == fmt.Sprint(whole.Acts),
				"acts = %+v (%v), want\n%+v", r.Acts, err, whole.Acts)
		}
		if latest := whole.Acts.Latest(); whole.Acts.Count != uint64(n) || len(latest) != min(int(n), ActsAtMost) || latest[len(latest)-1].Line != uint64(len(b.lines)) {
			t.Errorf("%d acts of %d, %d listed", whole.Acts.Count, n, len(latest))
		}
		s = next
	}
}

// A ledger that was put back since is not one to go on with.
func TestContinue_I15_NotWhereTheLedgerWasPutBack(t *testing.T) {
	b := newBook(t)
	b.do(1, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "x"})
	j := b.journal()
	j.Entry = b.entry
	_, s := CheckForLater(j, maps.Values(b.entries))
	b.mark(ledger.MarkRolledBack)
	j, entries := b.since(s.Head.N)
	_, _, err := Continue(*s, j, slices.Values(entries))
	kit.Check(t, errors.Is(err, ErrPutBack), "err = %v, want error %v", err, ErrPutBack)
	j = b.journal()
	j.Entry = b.entry
	if _, s = CheckForLater(j, maps.Values(b.entries)); s != nil {
		t.Errorf("a ledger in safe mode leaves %+v, want no state", s)
	}
}

// A comparison of a document whose entry is at rest changes what is counted of it.
func TestContinue_I4_CountsADownloadOfAnEntryAtRest(t *testing.T) {
	b := newBook(t)
	b.do(1, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "x"}, seal(1), ledger.RegisterIntended{}, got("bum-1"), ledger.UploadIntended{},
		accepted(1), says("bum-1", archive.Successful), ledger.PlaceIntended{Dest: "there"}, ledger.Placed{})
	j := b.journal()
	j.Entry = b.entry
	_, s := CheckForLater(j, maps.Values(b.entries))
	kit.Need(t, s != nil && len(s.Open) == 0, "state = %+v, want one without open entries", s)
	for _, outcome := range []string{ledger.FetchDiffers, ledger.FetchSame} {
		b.fetch(ledger.MarkFetchIntended, "bum-1", "")
		b.fetch(ledger.MarkFetched, "bum-1", outcome)
		j, entries := b.since(s.Head.N)
		r, next, err := Continue(stored(t, s), j, slices.Values(entries))
		want := Sample{Archived: 1, Compared: 1}
		if outcome == ledger.FetchDiffers {
			want.Differ = 1
		}
		kit.Need(t, err == nil && r.Sample == want && len(entries) == 0,
			"%s: sample = %+v (%v), want %+v", outcome, r.Sample, err, want)
		s = next
	}
}

// I13: that a document bears the number of another one, or a date that it can
// hardly be of, and that an operator has looked at it, is in every line since,
// and in the entry.
func TestCheck_I13_UnusualDocumentsStayFlagged(t *testing.T) {
	for name, row := range map[string]struct {
		promise string
		spoil   func(b *book)
	}{
		"Nothing":         {"", func(*book) {}},
		"FlagTakenBack":   {"I13", func(b *book) { b.edit(b.line(2, "uploaded"), func(l *ledger.Line) { l.Flags = "same-number" }) }},
		"NumberForgotten": {"I12", func(b *book) { b.change(2, func(e *ledger.Entry) { e.SameNumber = archive.Key{} }) }},
		"DateForgotten":   {"I12", func(b *book) { b.change(2, func(e *ledger.Entry) { e.StrangeDate = false }) }},
		"NobodyLooked":    {"I12", func(b *book) { b.change(2, func(e *ledger.Entry) { e.Reviewed = false }) }},
	} {
		b := newBook(t)
		b.claim(1)
		s := seal(2)
		s.SameNumber, s.StrangeDate = archive.Key{1}, true
		b.do(2, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "folder"}, s)
		b.upload(2, "b2")
		b.archive(2, "b2")
		b.do(2, ledger.Closed{})
		row.spoil(b)
		r := Check(b.journal(), maps.Values(b.entries))
		kit.Check(t, (row.promise != "" || r.OK()) && (row.promise == "" || !r.OK() && r.Findings[0].Promise == row.promise),
			"%s: findings = %v, want one of %q", name, r.Findings, row.promise)
	}
}

// A receipt says the same after it was read and written again.
func FuzzReceipt(f *testing.F) {
	f.Add([]byte(`{"format":"` + receiptFormat + `"}`))
	f.Add([]byte(`{"format":"` + receiptFormat + `","files":[{"path":"a","size":-1}],"record":"\u0000"}`))
	f.Add([]byte(`{"format":"x"} {}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := ParseReceipt(b)
		if err != nil {
			return
		}
		once := r.Encode()
		again, err := ParseReceipt(once)
		if err != nil || !bytes.Equal(again.Encode(), once) {
			t.Errorf("%q became %q: %v", once, again.Encode(), err)
		}
	})
}

// A journal of which one byte is not as it was written does not pass.
func FuzzChain_I14(f *testing.F) {
	f.Add(uint16(3), byte(1))
	f.Add(uint16(70), byte(0x20))
	f.Add(uint16(200), byte(0xff))
	f.Fuzz(func(t *testing.T, at uint16, with byte) {
		if with == 0 {
			return
		}
		lines := [][]byte{
			[]byte(`{"n":1,"at":"2026-11-20T10:00:00.000Z","event":"created","ledger":"L-1","environment":"test"}`),
			[]byte(`{"n":2,"at":"2026-11-20T10:00:01.000Z","event":"claimed","key":"06gzjdqx1hf98hs4xds9252kmc","rev":1,"state":"discovered","source":"claimed","vault":"V"}`),
		}
		var head ledger.Head
		for _, l := range lines {
			head = head.Next(l)
		}
		whole := bytes.Join(lines, []byte("\n"))
		bad := bytes.Clone(whole)
		bad[int(at)%len(bad)] ^= with
		var got ledger.Head
		for l := range bytes.SplitSeq(bad, []byte("\n")) {
			got = got.Next(l)
		}
		kit.Check(t, got != head, "%q has the head of %q", bad, whole)
		Check(Journal{Lines: numbered(bytes.Split(bad, []byte("\n")))}, func(func(ledger.Entry) bool) {})
	})
}
