package recovery

import (
	"cmp"
	"context"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// openArchivedRecord opens an entry for an archived document that has none. Without the entry, the same invoice would be archived
// twice when somebody drops it again.
func (p *comparison) openArchivedRecord(ctx context.Context, v Origin, rc archive.Receipt, rec archive.IndexRecord, r *VaultReport) error {
	return p.takeIn(ctx, v, rec, r, "archived while the ledger was not there", "in the archive", ledger.Recovered{
		Folder: cmp.Or(rec.Document.Number, string(rc.Remote)), ID: rc.ID, State: ledger.Archived, SuccessRecord: rc.Record, SeenAt: rec.ArchivedAt, ArchivedAt: rec.ArchivedAt,
		Cause: ledger.Cause{Code: "found-in-archive", Text: "The ledger was lost or older when this was archived. It was found in the archive's index; its folder is not here."},
	}, ledger.Reconciled{})
}

// openEntryInProgress opens an entry for a document that is being archived and
// has none. The entry begins as uploaded: its content is at the archive, and
// only the last answer is missing. The engine asks about it until the archive
// says what became of it.
func (p *comparison) openEntryInProgress(ctx context.Context, v Origin, rc archive.Receipt, r *VaultReport) error {
	rec := archive.IndexRecord{Remote: rc.Remote}
	if p.Doubt == nil || rc.ID.IsZero() {
		p.reportStrange(r, rec, "being archived, and no entry is known that it could be of")
		return nil
	}
	return p.takeIn(ctx, v, rec, r, "sent while the ledger was not there, and being archived", "being archived", ledger.Recovered{
		Folder: string(rc.Remote), ID: rc.ID, State: ledger.Uploaded,
		Cause: ledger.Cause{Code: "found-in-archive", Text: "The ledger was lost or older when this was sent. It was found in the archive's list; its folder is not here."},
	})
}

// takeIn opens an entry for a document of the archive whose folder is not here.
// It does not while the document may be of a folder that cannot be read now.
func (p *comparison) takeIn(ctx context.Context, v Origin, rec archive.IndexRecord, r *VaultReport, how, where string, ev ledger.Recovered, more ...ledger.Event) error {
	if p.factsOf(v.Vault).unreadable {
		p.report.Withheld++
		p.reportStrange(r, rec, where+", not in this ledger; it may be of a folder that cannot be looked at now")
		return nil
	}
	// The key is new in each comparison. After a crash before the commit
	// nothing remains of it; after the commit the entry is found by its bumId,
	// and no second one is opened.
	key := archive.NewKey(p.Now().Wall)
	if !ev.SeenAt.IsZero() {
		key = archive.NewKey(ev.SeenAt)
	}
	r.TakenIn.add(Finding{Key: key, Remote: rec.Remote, Number: rec.Document.Number, Text: how})
	ev.Route, ev.Vault, ev.Drop, ev.Source, ev.Remote = ledger.Vault, v.Vault, v.Name, ledger.Gone, rec.Remote
	return p.addChange(ctx, ledger.Change{Key: key, Events: append([]ledger.Event{ev}, more...)})
}
