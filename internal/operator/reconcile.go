package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/recovery"
)

// Compared is what a comparison of the ledger with the archive came to.
type Compared struct {
	recovery.Report
	Safe bool     // the ledger was in safe mode when the comparison began
	Left bool     // the comparison ended safe mode
	Why  []string // why the ledger is still in safe mode
}

// Comparison is what [Reconcile] works on.
type Comparison struct {
	Ledger  Ledger
	Verify  func(context.Context) ([]ledger.Problem, error) // checks all of the ledger
	Archive recovery.Service
	Drops   []recovery.Origin // every configured drop; Folder is nil where the drop folder is away
	Away    []string          // why drop folders are away; safe mode stays while there are any
	Accept  []AcceptedIndex   // the incomplete indexes that the person accepts as complete
	Grace   time.Duration
	Now     func() archive.Instant
}

// Reconcile holds the ledger against the archive. In safe mode it first gives an entry to
// every claimed folder that has none, and it ends safe mode once everything was read and
// every drop folder was there. Its error is the first that kept something from being
// read; then safe mode stays.
func Reconcile(ctx context.Context, c Comparison, p Person) (Compared, error) {
	if c.Archive == nil {
		return Compared{}, errors.New("no service to compare with")
	}
	safe, is := c.Ledger.SafeMode()
	out := Compared{Safe: is, Why: c.Away}
	doubt, err := LastDoubt(c.Ledger)
	if err == nil && safe.Mark == ledger.MarkDamaged {
		var found []ledger.Problem
		if found, err = c.Verify(ctx); len(found) > 0 { // what it says of its own entries cannot be trusted
			doubt, out.Why = nil, append(out.Why, fmt.Sprintf("the ledger is damaged (%s: %s): restore a backup, or rebuild it", found[0].Where, found[0].What))
		}
	}
	if err != nil {
		return out, err
	}
	// It commits what it learns about each entry by itself. After a crash here the ledger knows a part, and the next comparison learns the rest.
	out.Report, err = recovery.Reconcile(ctx, recovery.Config{
		Book: c.Ledger, Committer: c.Ledger, Service: c.Archive, Drops: c.Drops, Grace: c.Grace, Now: c.Now,
		Environment: c.Ledger.Info().Environment, ReceiptKeys: c.Ledger.Info().ReceiptKeys, Doubt: doubt, Adopt: is && doubt != nil, Accept: c.acceptIndex(p),
	})
	if err != nil {
		return out, fmt.Errorf("compare with the archive: %w", err)
	}
	if err := c.journalComparison(ctx, out.Report, p); err != nil {
		return out, err
	}
	if out.Unpacked > 0 { // dropped once more, such an invoice would pass for a new one
		out.Why = append(out.Why, present.FormatCount(out.Unpacked, "folder that had been taken is", "folders that had been taken are")+" not packed yet; see vaultd list, and compare again in a minute")
	}
	for i, f := range out.Unread.Named {
		if i == 3 {
			out.Why = append(out.Why, fmt.Sprintf("and %d more that cannot be read now", out.Unread.Count-i))
			break
		}
		out.Why = append(out.Why, f.Text+". Dropped again, it would not be recognised: put that right, or take it away, then compare again")
	}
	if out.Withheld > 0 {
		out.Why = append(out.Why, present.FormatCount(out.Withheld, "document in the archive may be of a folder", "documents in the archive may be of folders")+" that cannot be read now; see why, then compare again")
	}
	out.Why = append(out.Why, out.Incomplete(c.Accept)...)
	if now, _ := c.Ledger.SafeMode(); is && now != safe {
		out.Why = append(out.Why, "something else was found meanwhile ("+now.Mark+"); compare again")
	}
	if !is || len(out.Why) > 0 {
		return out, nil
	}
	by, note := p.Sign()
	// After a crash before this commit the ledger is still in safe mode, and a person compares again.
	err = c.Ledger.CommitMark(context.WithoutCancel(ctx), ledger.Mark{ // all was read; that is committed
		Name: ledger.MarkReconciled, By: by, At: c.Now().Wall, ServiceTime: out.Told, Cause: "after " + safe.Mark,
	}, note)
	out.Left = err == nil
	return out, err
}

// journalComparison puts into the journal what a person's comparison came to, one line for each vault. The audit rests on it. What vaultd
// compares by itself after a restore is told by the end of safe mode.
func (c Comparison) journalComparison(ctx context.Context, r recovery.Report, p Person) error {
	if p.UID == ledger.VaultdUID {
		return nil
	}
	for _, v := range r.Vaults {
		// The reason stands with the acts that need one, not here. What was read was read: the line is not given up half-way.
		// After a crash between two vaults the audit tells the earlier comparison of the second one; a person compares again.
		err := c.Ledger.CommitMark(context.WithoutCancel(ctx), ledger.Mark{
			Name: ledger.MarkCompared, Vault: v.Vault, By: ledger.Operator{UID: p.UID}, At: c.Now().Wall, ServiceTime: r.Told,
			Cause: ledger.ComparedCause(v.Outcome(), v.DescribeIndex(), v.Differences()),
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// LastDoubt says of which time the ledger knows nothing; nil where no entry is in doubt
// and it is not in safe mode. It reads the journal's marks: what happened once stays
// true for the entries that are still in doubt, long after safe mode ended.
func LastDoubt(l Ledger) (*recovery.Doubt, error) {
	s, safe := l.SafeMode()
	if safe && s.KnownUntil.IsZero() {
		return &recovery.Doubt{Since: s.Since}, nil // nothing is sure, whatever happened before
	}
	inDoubt, errEnough := safe, errors.New("enough")
	err := l.OpenEntries(func(e ledger.Entry) error {
		if inDoubt = inDoubt || e.NeedsReconcile; inDoubt {
			return errEnough
		}
		return nil
	})
	if !inDoubt || err != nil && !errors.Is(err, errEnough) {
		return nil, err
	}
	var all doubts
	err = l.Lines(1, func(_ uint64, line []byte) error { return all.addLine(line) })
	return all.last, err
}

// doubts follows a journal: what is unknown since the last moment at which no entry was
// in doubt and the ledger not in safe mode.
type doubts struct {
	last    *recovery.Doubt
	safe    bool
	doubted map[string]bool // keys
	before  time.Time       // of the line before
}

func (d *doubts) addLine(line []byte) error {
	x, err := ledger.ParseLine(line)
	if err != nil {
		return err
	}
	at, err := time.Parse(time.RFC3339Nano, x.At)
	if err != nil {
		return err
	}
	switch {
	case x.Key != "" && slices.Contains(strings.Fields(x.Flags), "needs-reconcile"):
		if d.doubted == nil {
			d.doubted = map[string]bool{}
		}
		d.doubted[x.Key] = true
	case x.Key != "":
		delete(d.doubted, x.Key)
	case x.Event == ledger.MarkReconciled:
		if d.safe = false; d.last != nil && d.last.Told.IsZero() {
			if d.last.Told, err = time.Parse(time.RFC3339Nano, x.Time); err != nil {
				d.last.Told = at // the archive did not say, or nobody listened then
			}
		}
	case (ledger.Mark{Name: x.Event}).EntersSafeMode():
		from := d.before
		if x.Event == ledger.MarkRebuilt || x.Event == ledger.MarkDamaged {
			from = time.Time{} // nothing is sure
		}
		if (d.safe || len(d.doubted) > 0) && d.last != nil && d.last.From.Before(from) {
			from = d.last.From
		}
		d.last, d.safe = &recovery.Doubt{From: from, Since: at}, true
	}
	d.before = at
	return nil
}
