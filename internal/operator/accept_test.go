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
	"vaultd/internal/recovery"
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
			Ledger: a.Ledger.Ledger, Archive: shortIndex{alarming{a, false}, 2, found}, Drops: []recovery.Drop{{Name: "acme-in", Vault: "V"}}, Grace: time.Hour, Accept: accept,
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
