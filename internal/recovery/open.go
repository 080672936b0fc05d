package recovery

import (
	"cmp"
	"context"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// openArchivedRecord makes an entry for a document that is archived and has none: whoever drops the same invoice again must
// not have it archived twice.
func (p *comparison) openArchivedRecord(ctx context.Context, v Drop, rc archive.Receipt, rec archive.IndexRecord, r *VaultReport) error {
	if p.unreadable[v.Vault] {
		p.report.Withheld++
		p.reportStrange(r, rec, "in the archive, not in this ledger; it may be of a folder that cannot be looked at now")
		return nil
	}
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

// openEntryInProgress makes an entry for a document that is being archived and has none: what becomes of it is asked until the
// archive says it, long after this comparison.
func (p *comparison) openEntryInProgress(ctx context.Context, v Drop, rc archive.Receipt, r *VaultReport) error {
	switch {
	case p.Doubt == nil || rc.ID.IsZero():
		p.reportStrange(r, archive.IndexRecord{Remote: rc.Remote}, "being archived, and no entry is known that it could be of")
		return nil
	case p.unreadable[v.Vault]:
		p.report.Withheld++
		p.reportStrange(r, archive.IndexRecord{Remote: rc.Remote}, "being archived, and not in this ledger; it may be of a folder that cannot be looked at now")
		return nil
	}
	key := archive.NewKey(p.Now().Wall)
	r.TakenIn.add(Finding{Key: key, Remote: rc.Remote, Text: "sent while the ledger was not there, and being archived"})
	return p.addChange(ctx, ledger.Change{Key: key, Events: []ledger.Event{ledger.Recovered{
		Route: ledger.Vault, Vault: v.Vault, Drop: v.Name, Folder: string(rc.Remote), ID: rc.ID, Remote: rc.Remote, State: ledger.Uploaded, Source: ledger.Gone,
		Cause: ledger.Cause{Code: "found-in-archive", Text: "The ledger was lost or older when this was sent. It was found in the archive's list; its folder is not here."},
	}}})
}
