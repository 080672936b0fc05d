package recovery

import (
	"context"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// concludeEntries looks at all entries once more, with what the archive said: those in doubt are cleared where it spoke
// for them, and those that are archived here must be so there. An index that was not read to its end clears no entry and
// misses none.
func (p *comparison) concludeEntries(ctx context.Context) error {
	asked := map[archive.VaultID]int{} // place in the report
	for i, v := range p.report.Vaults {
		asked[v.Vault] = i
	}
	return p.forEachUnresolved(func(e ledger.Entry) error {
		i, ok := asked[e.Vault]
		conclusive := ok && p.report.Vaults[i].IsConclusive()
		if e.State == ledger.Archived && conclusive && !p.isShown(e.ArchivedRemote) && !p.isFreshlyArchived(e) {
			if v := &p.report.Vaults[i]; p.isRetentionOver(e) {
				v.Ended++
			} else {
				v.Missing.add(Finding{Key: e.Key, Remote: e.ArchivedRemote, Text: "archived here, not in the archive's index"})
			}
		}
		if ok {
			p.report.Vaults[i].addDoubleOrUncounted(e, p.uncounted)
		}
		if !e.NeedsReconcile || p.Doubt == nil {
			return nil
		}
		until, why := p.whyInDoubt(e, ok)
		if ok && !conclusive { // what was not read may speak against it
			until, why = time.Time{}, "the index of vault "+string(e.Vault)+" was not read to its end; nothing is concluded from it"
		}
		if why != "" {
			p.report.addWaiting(e, until, why)
			return nil
		}
		p.report.Cleared++
		return p.addChange(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Events: append(p.correctSource(e), ledger.Reconciled{})})
	})
}

// isShown reports whether the archive shows the bumId as archived, in a list or in an index.
func (p *comparison) isShown(r archive.RemoteID) bool {
	return p.successes.Has(r) || slices.ContainsFunc(p.shown, func(s archive.RemoteSet) bool { return s.Has(r) })
}

// isFreshlyArchived reports whether something may be archived for so short a time that the index need not show it.
func (p *comparison) isFreshlyArchived(e ledger.Entry) bool {
	return p.Now().Wall.Sub(e.ArchivedAt) < indexLag(p.Grace)+margin
}

// isRetentionOver reports whether the archive may have removed what it archived, because the retention is over. Both clocks must say
// so where the archive's is known: one that was set far ahead must not explain what is missing.
func (p *comparison) isRetentionOver(e ledger.Entry) bool {
	now := p.Now().Wall
	if told := p.report.Told; !told.IsZero() && told.Before(now) {
		now = told
	}
	return RetentionOf(p.Drops, e).Ended(e.ArchivedAt, now)
}

// RetentionOf gives the retention of the entry's drop. Where that is not configured any more, it is the longest of the
// drops that deliver to the same vault, if all of them tell one.
func RetentionOf(drops []Drop, e ledger.Entry) (longest archive.Retention) {
	known := true
	for _, d := range drops {
		if d.Name == e.Drop {
			return d.Retention
		}
		if d.Vault == e.Vault {
			longest, known = max(longest, d.Retention), known && d.Retention > 0
		}
	}
	if !known {
		return 0
	}
	return longest
}

// whyInDoubt says why nobody can speak for an entry yet, and until when; empty: the archive has spoken.
func (p *comparison) whyInDoubt(e ledger.Entry, asked bool) (until time.Time, why string) {
	since := p.Now().Wall.Add(-p.visible[e.Vault])
	over, shown := since.Add(p.Grace), since.Add(listLag(p.Grace))
	lost := e.State.IsOpen() && p.isFolderMissing(e)
	switch u := p.anonymous[e.Vault]; {
	case p.unsettled[e.Key]:
		return until, "what the archive told of it could not be booked; the next comparison decides"
	case !asked:
		return until, fmt.Sprintf("vault %s is not configured any more", e.Vault)
	case e.State == ledger.Discovered && !lost:
		return until, "it is not packed yet, so that its identity is not known"
	case e.State == ledger.Discovered: // nothing of it can be sent
		return until, ""
	case lost && len(e.OpenQuestions()) > 0 && (e.State == ledger.Uploaded || p.visible[e.Vault] < p.Grace):
		return until, "its folder is not here any more; what the archive says of it decides"
	case e.State == ledger.Archived && p.foreign.Has(e.ArchivedRemote):
		return until, "the archive contradicts it"
	case e.State == ledger.Archived && !p.isShown(e.ArchivedRemote) && !p.isRetentionOver(e):
		return until, "the archive does not show it as archived"
	case e.State == ledger.Archived, p.reaches[e.Vault]:
		return until, ""
	case p.covers[e.Vault]:
		return shown, "the archive's list may not show yet what was registered last"
	case p.visible[e.Vault] < p.Grace:
		return over, "the archive's list does not reach back far enough; nothing can be under way any more then"
	case u.any || u.numbers[p.invoiceNumber(e)]:
		return until, "a document of this number is in the archive, and nobody can tell whose it is"
	}
	return until, ""
}

// invoiceNumber is the invoice's number; empty where it is not known.
func (p *comparison) invoiceNumber(e ledger.Entry) string {
	d, ok, err := p.Committer.Document(e.Key)
	if err != nil || !ok {
		return ""
	}
	m, err := archive.ParseMetadata(d.Metadata)
	if err != nil {
		return ""
	}
	return m.Number
}
