package recovery

import (
	"cmp"
	"context"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// openArchivedRecord opens an entry for an archived document that has none. Without the entry, the same invoice would be archived
// twice when somebody drops it again.
func (p *comparison) openArchivedRecord(ctx context.Context, v Drop, rc archive.Receipt, rec archive.IndexRecord, r *VaultReport) error {
	if p.factsOf(v.Vault).unreadable {
		p.report.Withheld++
		p.reportStrange(r, rec, "in the archive, not in this ledger; it may be of a folder that cannot be looked at now")
		return nil
	}
	// The key is new in each comparison. After a crash before the commit nothing remains of it; after the commit the entry is
	// found by its bumId, and no second one is opened.
	key := archive.NewKey(rec.ArchivedAt)
	r.TakenIn.add(Finding{Key: key, Remote: rc.Remote, Number: rec.Document.Number, Text: "archived while the ledger was not there"})
	return p.addChange(ctx, ledger.Change{Key: key, Events: []ledger.Event{
		ledger.Recovered{
			Route: ledger.Vault, Vault: v.Vault, Drop: v.Name, Folder: cmp.Or(rec.Document.Number, string(rc.Remote)),
			ID: rc.ID, Remote: rc.Remote, SuccessRecord: rc.Record,
			State: ledger.Archived, Source: ledger.Gone, SeenAt: rec.ArchivedAt, ArchivedAt: rec.ArchivedAt,
			Cause: ledger.Cause{Code: "found-in-archive", Text: "The ledger was lost or older when this was archived. It was found in the archive's index; its folder is not here."},
		},
		ledger.Reconciled{},
	}})
}

// openEntryInProgress opens an entry for a document that is being archived and has none. The engine asks about it until the
// archive says what became of it.
func (p *comparison) openEntryInProgress(ctx context.Context, v Drop, rc archive.Receipt, r *VaultReport) error {
	switch {
	case p.Doubt == nil || rc.ID.IsZero():
		p.reportStrange(r, archive.IndexRecord{Remote: rc.Remote}, "being archived, and no entry is known that it could be of")
		return nil
	case p.factsOf(v.Vault).unreadable:
		p.report.Withheld++
		p.reportStrange(r, archive.IndexRecord{Remote: rc.Remote}, "being archived, and not in this ledger; it may be of a folder that cannot be looked at now")
		return nil
	}
	// The entry begins as uploaded: its content is at the archive, and only the last answer is missing.
	key := archive.NewKey(p.Now().Wall)
	r.TakenIn.add(Finding{Key: key, Remote: rc.Remote, Text: "sent while the ledger was not there, and being archived"})
	return p.addChange(ctx, ledger.Change{Key: key, Events: []ledger.Event{ledger.Recovered{
		Route: ledger.Vault, Vault: v.Vault, Drop: v.Name, Folder: string(rc.Remote), ID: rc.ID, Remote: rc.Remote, State: ledger.Uploaded, Source: ledger.Gone,
		Cause: ledger.Cause{Code: "found-in-archive", Text: "The ledger was lost or older when this was sent. It was found in the archive's list; its folder is not here."},
	}}})
}
