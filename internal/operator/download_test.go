package operator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// tray is an archive that gives one package. Before it does, it looks into the journal.
type tray struct {
	t      *testing.T
	ledger *fill.Ledger
	err    error
	meet   func() // in the middle of a download; nil: nothing happens
	asks   int
}

func (s *tray) Download(_ context.Context, v archive.VaultID, r archive.RemoteID, w io.Writer) (int64, archive.Digest, error) {
	s.asks++
	if last := lastLine(s.t, s.ledger.Ledger); last.Event != ledger.MarkFetchIntended || last.Vault != string(v) || last.Remote != string(r) || last.UID == nil || *last.UID != 7 {
		s.t.Errorf("the journal ends with %+v when the archive is asked, want the intent for %s of vault %s by 7", last, r, v)
	}
	if s.meet != nil {
		s.meet()
	}
	n, err := io.WriteString(w, "PK")
	return int64(n), archive.Sum([]byte("PK")), errors.Join(err, s.err)
}

func lastLine(t *testing.T, l *boltledger.Ledger) (last ledger.Line) {
	t.Helper()
	kit.Must(t, l.Lines(l.Head().N, func(_ uint64, line []byte) (err error) {
		last, err = ledger.ParseLine(line)
		return err
	}))
	return last
}

// downloading makes a ledger, and a way to downloads of it at a time that stands still.
func downloading(t *testing.T, budget uint64) (Downloads, *tray) {
	t.Helper()
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	l := fill.New(t, boltledger.Config{}, ledger.Info{Created: at})
	from := &tray{t: t, ledger: l}
	return Downloads{Ledger: l.Ledger, Archive: from, Budget: budget, Now: func() time.Time { return at }}, from
}

func (d Downloads) get(ctx context.Context, remote string, outcome string) (Fetched, error) {
	return d.Fetch(ctx, "V", archive.RemoteID(remote), Person{UID: 7}, io.Discard, func(Fetched) string { return outcome })
}

// I29: each download is a line before the archive is asked and one after it, whatever came of it and whoever went away.
func TestFetch_I29_ALineBeforeAndOneAfter(t *testing.T) {
	d, from := downloading(t, 9)
	for _, outcome := range []string{ledger.FetchSame, ledger.FetchRepacked, ledger.FetchDiffers, ledger.FetchNotCompared} {
		kit.Value(d.get(t.Context(), "b1", outcome))(t)
		if last := lastLine(t, d.Ledger); last.Event != ledger.MarkFetched || last.Cause != outcome || last.Size != 2 || last.Remote != "b1" || *last.UID != 7 {
			t.Errorf("the journal ends with %+v, want the download of b1 by 7 as %s, with 2 bytes", last, outcome)
		}
	}
	ctx, leave := context.WithCancel(t.Context())
	from.err, from.meet = errors.New("broken off"), leave
	kit.Fails(t, "error", kit.Err(d.get(ctx, "b1", ledger.FetchSame)), from.err)
	last := lastLine(t, d.Ledger)
	kit.Check(t, last.Event == ledger.MarkFetched && last.Cause == ledger.FetchFailed, "the journal ends with %+v, want a download that failed", last)
	if _, err := d.get(ctx, "b1", ledger.FetchSame); !errors.Is(err, context.Canceled) || from.asks != 5 {
		t.Errorf("with an ended context: error = %v after %d calls, want %v after 5", err, from.asks, context.Canceled)
	}
}

// Why a person downloads stands beside the line that announces it, where it can be erased; the line has its digest, and no name.
func TestFetch_I29_ReasonBesideTheJournal(t *testing.T) {
	d, _ := downloading(t, 9)
	const reason = "on the pages, by the user anna"
	kit.Value(d.Fetch(t.Context(), "V", "b1", Person{UID: 7, Reason: reason}, io.Discard, func(Fetched) string { return ledger.FetchSame }))(t)
	notes, err := d.Ledger.Notes(archive.Key{})
	kit.Need(t, err == nil && len(notes) == 1, "notes = %v (error %v), want one", notes, err)
	digests := 0
	err = d.Ledger.Lines(1, func(_ uint64, stored []byte) error {
		line, err := ledger.ParseLine(stored)
		kit.Lacks(t, "the text", string(stored), "anna")
		if line.Reason != "" && line.Reason == notes[line.Rev].Digest().String() && notes[line.Rev].Text == reason && line.Event == ledger.MarkFetchIntended {
			digests++
		}
		return err
	})
	kit.Check(t, err == nil && digests == 1, "digests = %d (error %v), want 1", digests, err)
}

// The budget is checked before the archive is asked; a download that never ended counts too.
func TestFetch_BudgetBeforeTheCall(t *testing.T) {
	d, from := downloading(t, 2)
	if _, err := d.Ledger.IntendFetch(t.Context(), ledger.Mark{Vault: "V", Remote: "b1", By: ledger.Operator{UID: 7}, At: d.Now()}, nil, d.Budget); err != nil { // and the power fails
		t.Fatal(err)
	}
	if got, err := d.get(t.Context(), "b1", ledger.FetchSame); err != nil || got.Used != 2 {
		t.Fatalf("fetched = %+v (error %v), want 2 of the budget used", got, err)
	}
	_, err := d.get(t.Context(), "b1", ledger.FetchSame)
	spent, over := errors.AsType[*ledger.BudgetError](err)
	kit.Check(t, over && spent.Used == 2 && from.asks == 1, "error = %v, the archive was asked %d times, want the budget spent, 1", err, from.asks)
	month := d.Now().AddDate(0, 1, 0)
	d.Now = func() time.Time { return month }
	kit.Want(t, "next month: fetched", kit.Value(d.get(t.Context(), "b1", ledger.FetchSame))(t).Used, 1)
	d.Budget = 0
	kit.Want(t, "calls", from.asks, 2)
	_, err = d.get(t.Context(), "b1", ledger.FetchSame)
	kit.Check(t, err != nil && from.asks == 2, "without a budget: error = %v after %d calls, want one after 2", err, from.asks)
}

// I4: who compares a part each time has compared all of it one day: nothing is downloaded again while others never were.
func TestSample_I4_OldestUnverifiedFirst(t *testing.T) {
	d, from := downloading(t, 100)
	var keys []archive.Key
	remote := func(i int) string { return fmt.Sprintf("b%d", i) }
	for i := range 6 {
		it := from.ledger.Add(fill.Item{Name: fmt.Sprint(i), Vault: "V", Remote: archive.RemoteID(remote(i))})
		it.Archive(d.Now().Add(time.Duration(i)*time.Second), time.Minute)
		keys = append(keys, it.Key)
	}
	next := func(n int, want ...int) Sampled {
		t.Helper()
		s := kit.Value(d.Sample(t.Context(), n))(t)
		var have []int
		for _, k := range s.Next {
			have = append(have, slices.Index(keys, k))
		}
		kit.Want(t, fmt.Sprintf("next %d", n), have, want)
		return s
	}
	next(2, 0, 1)
	next(9, 0, 1, 2, 3, 4, 5)
	for _, one := range []struct {
		i       int
		outcome string
	}{{3, ledger.FetchSame}, {0, ledger.FetchFailed}, {2, ledger.FetchFailed}, {1, ledger.FetchDiffers}, {0, ledger.FetchFailed}} {
		kit.Value(d.get(t.Context(), remote(one.i), one.outcome))(t)
	}
	next(1, 4)
	next(3, 4, 5, 2)                 // the one that failed longest ago
	s := next(100, 4, 5, 2, 0, 3, 1) // and at the end what was compared, the longest ago first
	kit.Want(t, "the counts", s.Counts, (proof.Sample{Archived: 6, Compared: 2, Differ: 1}))
}
