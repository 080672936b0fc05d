package operator

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/recovery"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
)

// shortIndex is an archive with nothing in its list. Its index gives so many documents and says that there are more.
type shortIndex struct {
	alarming
	read, found int
}

func (s shortIndex) Index(context.Context, archive.VaultID, string, int, string) (vaultapi.Page, error) {
	p := vaultapi.Page{Found: s.found, Cursor: vaultapi.FirstPage, Request: "7c1f"}
	for n := range s.read {
		p.Records = append(p.Records, archive.IndexRecord{Remote: archive.RemoteID(fmt.Sprint("other-", n)), ArchivedAt: s.a.at(-1000)})
	}
	return p, nil
}

func (s shortIndex) ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (archive.IndexResult, archive.RemoteSet, error) {
	return vaultapi.WalkIndex(ctx, s, v, each)
}

// lines are those of the journal, as they are stored, but for those that tell of a comparison.
func (a *alarmed) lines() (all []string) {
	a.t.Helper()
	kit.Must(a.t, a.Lines(1, func(_ uint64, line []byte) error {
		if !strings.Contains(string(line), `"event":"compared"`) {
			all = append(all, string(line))
		}
		return nil
	}))
	return all
}

// I15, I29, I32: an index that is never read to its end keeps safe mode until a person accepts it by its numbers. That is
// journaled, with a reason whose text can be erased, before safe mode ends.
func TestReconcile_I15_I29_I32_AnIncompleteIndexIsAcceptedByAPerson(t *testing.T) {
	a := newAlarmed(t)
	a.Item("1").Apply(a.at(2))
	a.mark(ledger.MarkRestored, 10)
	compare := func(found int, accept ...AcceptedIndex) Compared {
		t.Helper()
		out, err := Reconcile(t.Context(), Comparison{
			Ledger: a.Ledger.Ledger, Archive: shortIndex{alarming{a, false}, 2, found}, Drops: []recovery.Origin{{Name: "acme-in", Vault: "V"}}, Grace: time.Hour, Accept: accept,
			Now: func() archive.Instant { return archive.Instant{Wall: a.at(50)} },
		}, Person{UID: 7, Reason: "the provider says so"})
		kit.Must(a.t, err)
		return out
	}
	before := len(a.lines())
	for name, accept := range map[string][]AcceptedIndex{
		"Nobody": nil, "AnotherVault": {{"W", 2, 900}}, "MoreWasRead": {{"V", 3, 900}}, "LessWasMissing": {{"V", 2, 899}}, "NotTold": {{"V", 2, FoundUnknown}},
	} {
		out := compare(900, accept...)
		if _, safe := a.SafeMode(); !safe || out.Left || out.Complete() || len(a.lines()) != before {
			t.Errorf("%s: comparison = %+v, want safe mode to stay, and no line in the journal", name, out)
		}
		want := "Vault V: the index gave 2 of 900 documents. Nothing is concluded from it; safe mode stays. Run reconcile again; if it lasts, show the provider request 7c1f."
		kit.Check(t, len(out.Why) == 1 && strings.HasPrefix(out.Why[0], want),
			"%s: reasons = %q, want one that begins with %q", name, out.Why, want)
	}
	out := compare(900, AcceptedIndex{"W", 1, 1}, AcceptedIndex{"V", 2, 900})
	if _, safe := a.SafeMode(); safe || !out.Left || !out.Complete() || !out.Vaults[0].Accepted || out.Vaults[0].Index.Complete {
		t.Fatalf("comparison = %+v, want safe mode left, by the accepted index of V", out)
	}
	told := a.lines()[before:]
	if len(told) != 2 || !strings.Contains(told[0], `"event":"index-accepted"`) || !strings.Contains(told[0], `"vault":"V","cause":"2 of 900 documents","uid":7,"reason":"`) ||
		!strings.Contains(told[1], `"event":"reconciled"`) || strings.Contains(strings.Join(told, ""), "provider says") {
		t.Errorf("lines of the journal = %s, want the acceptance with its numbers and the comparison, without the reason", told)
	}
	notes := kit.Value(a.Notes(archive.Key{}))(a.t)
	if len(notes) != 2 || !slices.ContainsFunc(slices.Collect(maps.Values(notes)), func(n ledger.Note) bool { return n.Text == "the provider says so" }) {
		t.Errorf("notes = %+v, want two, one with the reason", notes)
	}
	if out = compare(900); out.Complete() || strings.Contains(out.Why[0], "safe mode") { // it held for that comparison alone
		t.Errorf("reasons = %q, want the index incomplete again: it was accepted for one comparison", out.Why)
	}
}

// A walk that came farther than the one that was accepted is accepted, and no other.
func TestAcceptedIndex_I32_Covers(t *testing.T) {
	for _, row := range []struct {
		accepted, walk [2]int
		want           bool
	}{
		{[2]int{2, 900}, [2]int{2, 900}, true},
		{[2]int{2, 900}, [2]int{3, 901}, true},
		{[2]int{2, 900}, [2]int{3, 900}, true},
		{[2]int{2, 900}, [2]int{2, 901}, false},
		{[2]int{2, 900}, [2]int{1, 899}, false},
		{[2]int{2, 900}, [2]int{2, FoundUnknown}, false},
		{[2]int{2, FoundUnknown}, [2]int{2, 900}, false},
		{[2]int{2, FoundUnknown}, [2]int{3, FoundUnknown}, true},
		{[2]int{2, FoundUnknown}, [2]int{1, FoundUnknown}, false},
		{[2]int{5, 3}, [2]int{5, 3}, true},
		{[2]int{5, 3}, [2]int{5, 4}, false},
	} {
		a := AcceptedIndex{"V", row.accepted[0], row.accepted[1]}
		v := recovery.VaultReport{Vault: "V", Index: archive.IndexResult{Read: row.walk[0], Found: row.walk[1]}}
		kit.Want(t, fmt.Sprintf("%v accepts %v", row.accepted, row.walk), a.coversWalk(v), row.want)
	}
}

// I3: what is far more than the busiest days had waits for a person.
func TestDisposalLimit_I3(t *testing.T) {
	const day = 24 * time.Hour
	type pass struct {
		after time.Duration // since the pass before
		due   int
		stops bool
	}
	kit.Rows(t, map[string][]pass{
		"NothingWasEverDisposedOf": {{0, 200, false}, {0, 1, true}},
		"WrongClock":               {{0, 100, false}, {day, 100, false}, {day, 100, false}, {3650 * day, 3000, true}},
		"KeepBecameDelete":         {{0, 20_000, true}},
		"ManySmallPassesOfADay":    {{0, 150, false}, {time.Hour, 50, false}, {time.Hour, 10, true}},
		"MonthEnds":                {{0, 200, false}, {day, 500, false}, {30 * day, 900, false}, {31 * day, 1000, false}, {31 * day, 10_000, true}},
		"TheMemoryFades":           {{0, 200, false}, {day, 590, false}, {400 * day, 590, true}},
		"ClockSetBack":             {{0, 150, false}, {-400 * day, 150, false}, {0, 500, true}},
	}, func(t *testing.T, passes []pass) {
		dir, now := t.TempDir(), time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
		for i, p := range passes {
			now = now.Add(p.after)
			// Each pass is another process: what counts outlives it.
			b := NewDisposalLimit(dir, func() time.Time { return now }, slog.New(slog.DiscardHandler))
			err := b.Book("acme-in", p.due)
			if stopped, ok := errors.AsType[*ingest.DisposalLimitError](err); ok != p.stops || err != nil && !ok {
				t.Errorf("pass %d: error = %v, want a stop: %t", i, err, p.stops)
			} else if ok && stopped.Due != p.due {
				t.Errorf("pass %d: stopped = %+v, want %d due", i, stopped, p.due)
			}
			err = b.Book("another", 200)
			kit.Check(t, err == nil || i != 0, "another drop: error = %v, want none", err)
		}
	})
}

// TestDisposalLimit_I3_AnApprovalIsUsedUp: an operator approves what is due
// now. The next unusual number needs a decision of its own.
func TestDisposalLimit_I3_AnApprovalIsUsedUp(t *testing.T) {
	l := NewDisposalLimit(t.TempDir(), time.Now, slog.New(slog.DiscardHandler))
	l.AlwaysUsual = 1
	kit.Must(t, l.Approve("acme-in", 5))
	for _, c := range []struct {
		due    int
		isMore bool
	}{{3, false}, {2, false}, {2, true}} {
		err := l.Book("acme-in", c.due)
		_, stopped := errors.AsType[*ingest.DisposalLimitError](err)
		kit.Check(t, stopped == c.isMore, "disposal of %d: error = %v, want one of the limit: %v", c.due, err, c.isMore)
	}
}

func TestDisposalLimit_I3_DamagedMemoryStopsEarlier(t *testing.T) {
	dir := t.TempDir()
	for _, text := range []string{"", "{", `{"acme-in": null}`, `[1]`, `{"acme-in": {"busiest": "x"}}`} {
		kit.Must(t, os.WriteFile(filepath.Join(dir, disposalsFile), []byte(text), 0o600))
		b := NewDisposalLimit(dir, time.Now, slog.New(slog.DiscardHandler))
		err := b.Book("acme-in", 201)
		kit.Check(t, err != nil, "a file that holds %q lets 201 go, want a stop", text)
		err = b.Book("acme-in", 200)
		kit.Check(t, err == nil, "a file that holds %q: error = %v, want 200 allowed", text, err)
	}
}

// alarmed is a ledger that marks of its own time can be set on.
type alarmed struct {
	*fill.Ledger
	t     *testing.T
	began time.Time
}

func newAlarmed(t *testing.T) *alarmed {
	t.Helper()
	began := time.Now().Add(-100 * time.Hour).Truncate(time.Second).UTC()
	a := &alarmed{fill.New(t, boltledger.Config{}, ledger.Info{Created: began}), t, began}
	a.Vault = "V"
	return a
}

func (a *alarmed) at(hours int) time.Time { return a.began.Add(time.Duration(hours) * time.Hour) }

func (a *alarmed) mark(word string, hours int) {
	a.t.Helper()
	a.Mark(ledger.Mark{Name: word, By: ledger.Operator{UID: 1}, At: a.at(hours)}, "")
}

// I15: entries that stayed in doubt from one loss to the next know nothing since the first one.
func TestLastDoubt_I15_FromTheEarliestSinceTheLatest(t *testing.T) {
	type row struct {
		do                func(a *alarmed)
		from, since, told int // hours; negative: nothing is sure, and never told
	}
	kit.Rows(t, map[string]row{
		"OneRestore": {func(a *alarmed) {
			a.Item("1").Apply(a.at(2))
			a.mark(ledger.MarkRestored, 10)
		}, 2, 10, -1},
		"RestoredTwice": {func(a *alarmed) {
			a.Item("1").Apply(a.at(2))
			a.mark(ledger.MarkRestored, 10)
			a.Item("1").Apply(a.at(10), ledger.ReconcileRequired{})
			a.mark(ledger.MarkRestored, 20)
		}, 2, 20, -1},
		"InDoubtStillAfterTheFirst": {func(a *alarmed) {
			a.Item("1").Apply(a.at(2))
			a.mark(ledger.MarkRestored, 10)
			a.Item("1").Apply(a.at(10), ledger.ReconcileRequired{})
			a.mark(ledger.MarkReconciled, 12)
			a.Item("2").Apply(a.at(15))
			a.mark(ledger.MarkRolledBack, 20)
		}, 2, 20, -1},
		"AllWasClearBetweenThem": {func(a *alarmed) {
			a.Item("1").Apply(a.at(2))
			a.mark(ledger.MarkRestored, 10)
			a.Item("1").Apply(a.at(10), ledger.ReconcileRequired{})
			a.Item("1").Apply(a.at(11), ledger.Reconciled{})
			a.mark(ledger.MarkReconciled, 12)
			a.Item("2").Apply(a.at(15))
			a.mark(ledger.MarkRolledBack, 20)
		}, 15, 20, -1},
		"FoundDamaged": {func(a *alarmed) {
			a.Item("1").Apply(a.at(2), ledger.ReconcileRequired{})
			a.mark(ledger.MarkDamaged, 10)
			a.mark(ledger.MarkReconciled, 12)
		}, -1, 10, 12},
		"ComparedByTheArchivesClock": {func(a *alarmed) {
			a.Item("1").Apply(a.at(2), ledger.ReconcileRequired{})
			a.mark(ledger.MarkRestored, 10)
			a.Mark(ledger.Mark{Name: ledger.MarkReconciled, By: ledger.Operator{UID: 1}, At: a.at(12), ServiceTime: a.at(70)}, "")
		}, 2, 10, 70},
	}, func(t *testing.T, row row) {
		a := newAlarmed(t)
		row.do(a)
		from := time.Time{}
		if row.from >= 0 {
			from = a.at(row.from)
		}
		told := time.Time{}
		if row.told >= 0 {
			told = a.at(row.told)
		}
		d, err := LastDoubt(a.Ledger.Ledger)
		if kit.Must(a.t, err); d == nil || !d.From.Equal(from) || !d.Since.Equal(a.at(row.since)) || !d.Told.Equal(told) {
			t.Errorf("%+v, want from %v since %v told %v", d, from, a.at(row.since), told)
		}
	})
}

// alarming is an empty archive; while it is asked, something else is found.
type alarming struct {
	a     *alarmed
	found bool
}

func (s alarming) Status(context.Context, archive.VaultID, archive.RemoteID) (archive.Receipt, error) {
	return archive.Receipt{}, nil
}

func (s alarming) ReadStatusList(context.Context, archive.VaultID) (archive.StatusList, error) {
	if s.found {
		s.a.mark(ledger.MarkRolledBack, 20)
	}
	return archive.StatusList{Whole: true, Date: s.a.at(70)}, nil
}

func (s alarming) Index(context.Context, archive.VaultID, string, int, string) (vaultapi.Page, error) {
	return vaultapi.Page{}, nil
}

func (s alarming) ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (archive.IndexResult, archive.RemoteSet, error) {
	return vaultapi.WalkIndex(ctx, s, v, each)
}

func (alarming) CheckIndex(context.Context, archive.VaultID) error { return nil }

// I15: a comparison that began before something else was found does not end safe mode.
func TestReconcile_I15_NotAfterSomethingElseWasFoundMeanwhile(t *testing.T) {
	for _, found := range []bool{true, false} {
		a := newAlarmed(t)
		a.mark(ledger.MarkRestored, 10)
		out := kit.Value(Reconcile(t.Context(), Comparison{
			Ledger: a.Ledger.Ledger, Archive: alarming{a, found}, Drops: []recovery.Origin{{Name: "acme-in", Vault: "V"}}, Grace: time.Hour,
			Now: func() archive.Instant { return archive.Instant{Wall: a.at(50)} },
		}, Person{UID: 7}))(a.t)
		if _, safe := a.SafeMode(); out.Left == found || safe != found || len(out.Why) > 0 != found {
			t.Errorf("found %t: left %t, safe mode %t, reasons %q, want left exactly where nothing was found", found, out.Left, safe, out.Why)
		}
		var last ledger.Line
		kit.Must(a.t, a.Lines(1, func(_ uint64, line []byte) (err error) { last, err = ledger.ParseLine(line); return err }))
		if told, _ := time.Parse(time.RFC3339Nano, last.Time); !found && !told.Equal(a.at(70)) { // from it the archive's clock counts
			t.Errorf("%+v, want the archive's time", last)
		}
	}
}

// I2, I15: while a PDF that was under way cannot be looked at, the comparison names it, and safe mode stays: dropped again, nobody would recognise it.
func TestReconcile_I15_NotWhileAPDFCannotBeRead(t *testing.T) {
	for name, held := range map[string]bool{"scans": true, "not configured": false} {
		a := newAlarmed(t)
		a.Add(fill.Item{Name: "scan.pdf", Route: ledger.PDF, Drop: "scans"}).Apply(a.at(2), ledger.ReconcileRequired{})
		a.mark(ledger.MarkRestored, 10)
		out := kit.Value(Reconcile(t.Context(), Comparison{
			Ledger: a.Ledger.Ledger, Archive: alarming{a, false}, Drops: []recovery.Origin{{Name: name, Route: ledger.PDF}}, Grace: time.Hour,
			Now: func() archive.Instant { return archive.Instant{Wall: a.at(50)} },
		}, Person{UID: 7}))(a.t)
		named := len(out.Why) == 1 && strings.HasPrefix(out.Why[0], "scans/scan.pdf: its drop folder is away. Dropped again, it would not be recognised")
		if _, safe := a.SafeMode(); safe != held || named != held || out.Waits != 1 {
			t.Errorf("drop %s: safe mode %t, %d wait, reasons %q, want %t, 1, and the missing drop named: %t", name, safe, out.Waits, out.Why, held, held)
		}
	}
}
