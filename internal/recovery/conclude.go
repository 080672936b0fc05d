package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// concludeEntries reads the entries once more, after all answers. It clears an entry in doubt where the answers speak for it, and
// reports an entry that is archived here and that the archive does not show. An index that was not read to its end clears no
// entry, and no entry is reported as missing from it.
func (p *comparison) concludeEntries(ctx context.Context) error {
	asked := map[archive.VaultID]int{} // index in the report
	for i, v := range p.report.Vaults {
		asked[v.Vault] = i
	}
	return p.Book.EntriesOldestFirst(func(e ledger.Entry) error {
		if e.Vault == "" { // there is no archive to ask
			return p.concludeUnasked(ctx, e)
		}
		i, ok := asked[e.Vault]
		// What an index leaves out proves something only where it was read to its end.
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
		if ok && !conclusive {
			// The part of the index that was not read may contradict the entry.
			until, why = time.Time{}, "the index of vault "+string(e.Vault)+" was not read to its end; nothing is concluded from it"
		}
		if why != "" {
			p.report.addWaiting(e, until, why)
			return nil
		}
		// The correction of the source and the end of the doubt are one change: a crash never leaves an entry cleared whose
		// folder is looked for in the wrong place.
		p.report.Cleared++
		return p.addChange(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Events: append(p.correctSource(e), ledger.Reconciled{})})
	})
}

// concludeUnasked clears an entry whose service cannot be asked. What may have been delivered since the copy was made is in quarantine and stays
// there; the folders alone tell more, and they have been read. What was never packed is given its identity, so that a person who closes it and
// a clerk who drops it again do not send it twice.
func (p *comparison) concludeUnasked(ctx context.Context, e ledger.Entry) error {
	if !e.NeedsReconcile || p.Doubt == nil {
		return nil
	}
	is, err := p.identifyUnpacked(ctx, e)
	if unread, cannot := errors.AsType[*unreadError](err); cannot {
		if !unread.hasNoDrop {
			p.report.Unread.add(Finding{Key: e.Key, Text: fmt.Sprintf("%s/%s: %v", e.Drop, e.Folder, unread)})
		}
		p.report.addWaiting(e, time.Time{}, fmt.Sprintf("it cannot be read now, and would not be recognised when it is dropped again: %v", unread))
		return nil
	}
	if err != nil {
		return err
	}
	change, after := ledger.Change{Key: e.Key, Rev: e.Rev}, e
	var first *ledger.Entry
	if is != nil {
		change.Document, change.Events, after, first = &is.doc, []ledger.Event{is.sealed}, is.after, is.first
	}
	change.Events = append(change.Events, p.correctSource(e)...)
	if after.MayBeSentByLostPart() {
		// Once the number is listed, a notification that still waits at the service tells what became of the document. Released by a person,
		// it goes under this number again, and a service that has it says so.
		change.Events = append(change.Events, ledger.RegistrationFound{Remote: after.OwnNumber(), ID: after.ID})
	}
	p.report.Cleared++
	// What the entry is, where its folder lies and the end of the doubt are one change, as for an entry whose service was asked. After a crash
	// before the commit it is still in doubt, and the next comparison reads its folder again.
	change.Events = append(change.Events, ledger.Reconciled{})
	return p.addIdentified(ctx, change, first)
}

// isShown reports whether the archive shows the bumId as archived, in a status list, a single answer or an index.
func (p *comparison) isShown(r archive.RemoteID) bool {
	return p.successes.Has(r) || slices.ContainsFunc(p.shown, func(s archive.RemoteSet) bool { return s.Has(r) })
}

// isFreshlyArchived reports whether an entry was archived so recently that the index need not show it yet.
func (p *comparison) isFreshlyArchived(e ledger.Entry) bool {
	return p.Now().Wall.Sub(e.ArchivedAt) < indexLag(p.Grace)+margin
}

// isRetentionOver reports whether the archive may have removed the document
// because its retention is over. If the archive's clock is known, both clocks
// must say so.
func (p *comparison) isRetentionOver(e ledger.Entry) bool {
	// A clock that was set far ahead must not explain a missing document, so the earlier of two clocks counts.
	now := p.Now().Wall
	if told := p.report.Told; !told.IsZero() && told.Before(now) {
		now = told
	}
	return RetentionOf(p.Drops, e).Ended(e.ArchivedAt, now)
}

// RetentionOf returns the retention of the entry's drop. If the drop is not
// configured any more, it returns the longest of the drops that deliver to the
// same vault, if all of them name one.
func RetentionOf(drops []Origin, e ledger.Entry) (longest archive.Retention) {
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

// whyInDoubt says why an entry stays in doubt, and until when. Empty: the archive's answers speak for it.
func (p *comparison) whyInDoubt(e ledger.Entry, asked bool) (until time.Time, why string) {
	facts := p.factsOf(e.Vault)
	since := p.Now().Wall.Add(-facts.visible)
	over, shown := since.Add(p.Grace), since.Add(listLag(p.Grace))
	lost := e.State.IsOpen() && p.isFolderMissing(e)
	switch u := facts.unidentified; {
	case p.unsettled[e.Key]:
		return until, "what the archive told of it could not be booked; the next comparison decides"
	case !asked:
		return until, fmt.Sprintf("vault %s is not configured any more", e.Vault)
	case e.State == ledger.Discovered && !lost:
		return until, "it is not packed yet, so that its identity is not known"
	case e.State == ledger.Discovered:
		// Its folder is gone, so it is quarantined when it is cleared, and nothing of it is sent.
		return until, ""
	case lost && len(e.OpenQuestions()) > 0 && (e.State == ledger.Uploaded || facts.visible < p.Grace):
		return until, "its folder is not here any more; what the archive says of it decides"
	case e.State == ledger.Archived && p.foreign.Has(e.ArchivedRemote):
		return until, "the archive contradicts it"
	case e.State == ledger.Archived && !p.isShown(e.ArchivedRemote) && !p.isRetentionOver(e):
		return until, "the archive does not show it as archived"
	case e.State == ledger.Archived, facts.reaches:
		return until, ""
	case facts.covers:
		return shown, "the archive's list may not show yet what was registered last"
	case facts.visible < p.Grace:
		return over, "the archive's list does not reach back far enough; nothing can be under way any more then"
	case (u.any || u.numbers[p.invoiceNumber(e)]) && !e.RestsOnReceipt(): // that goes into quarantine, where a person decides
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
