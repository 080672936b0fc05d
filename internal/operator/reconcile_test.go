package operator

import (
	"context"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/recovery"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
)

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
			Ledger: a.Ledger.Ledger, Archive: alarming{a, found}, Drops: []recovery.Drop{{Name: "acme-in", Vault: "V"}}, Grace: time.Hour,
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
			Ledger: a.Ledger.Ledger, Archive: alarming{a, false}, Drops: []recovery.Drop{{Name: name, Route: ledger.PDF}}, Grace: time.Hour,
			Now: func() archive.Instant { return archive.Instant{Wall: a.at(50)} },
		}, Person{UID: 7}))(a.t)
		named := len(out.Why) == 1 && strings.HasPrefix(out.Why[0], "scans/scan.pdf: its drop folder is away. Dropped again, it would not be recognised")
		if _, safe := a.SafeMode(); safe != held || named != held || out.Waits != 1 {
			t.Errorf("drop %s: safe mode %t, %d wait, reasons %q, want %t, 1, and the missing drop named: %t", name, safe, out.Waits, out.Why, held, held)
		}
	}
}
