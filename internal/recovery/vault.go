package recovery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// compareVault compares one vault: first its status list, which tells identities, then its index, which shows all documents.
func (p *comparison) compareVault(ctx context.Context, v Origin) (VaultReport, error) {
	r := VaultReport{Vault: v.Vault}
	w, err := p.Service.ReadStatusList(ctx, v.Vault)
	if err != nil {
		return r, err
	}
	if !w.Date.IsZero() {
		p.report.Told = w.Date
	}
	facts := p.factsOf(v.Vault)
	facts.visible = p.visibleFor(w.Date)
	p.judgeList(facts, w.Receipts, w.Whole)
	r.Listed, r.Reaches = len(w.Receipts), facts.reaches
	for _, rc := range w.Receipts {
		if err := p.takeReceipt(ctx, v, rc, nil, &r); err != nil {
			return r, err
		}
	}
	// This commit comes before the index is read: the index is compared with what the list has told.
	if err := p.commitChanges(ctx); err != nil {
		return r, err
	}
	if err := p.compareIndex(ctx, v, &r); err != nil || r.Index.Complete || p.Accept == nil {
		return r, err
	}
	// The acceptance is journaled before anything is concluded from this index. After a crash in between, the next
	// comparison concludes nothing until a person accepts its walk anew.
	r.Accepted, err = p.Accept(ctx, r)
	return r, err
}

// visibleFor returns for how long the archive could show what the ledger does not know. It takes the lesser of two clocks:
// this machine's since the ledger was put back, and the archive's, which reads date now, since the first comparison. Before the
// first comparison no time counts. With a zero date this machine's clock alone counts.
func (p *comparison) visibleFor(date time.Time) time.Duration {
	if p.Doubt == nil || p.Doubt.Told.IsZero() {
		return 0
	}
	ours := p.Now().Wall.Sub(p.Doubt.Since)
	if date.IsZero() {
		return ours
	}
	return archive.ReliableElapsed(ours, date.Sub(p.Doubt.Told))
}

// judgeList notes what the status list of a vault shows. A list that covers everything also reaches it once a registration
// has had the time to appear in it.
func (p *comparison) judgeList(facts *vaultFacts, list []archive.Receipt, whole bool) {
	facts.covers = p.listCovers(facts.newest, list, whole)
	facts.reaches = facts.covers && facts.visible >= listLag(p.Grace)
}

// listCovers reports whether the status list shows every registration since the last line of the ledger, unless the list lags
// behind. It does where it goes back behind that line, or where it is not full and shows the newest registration from before.
// Of a ledger that was made anew, the registration of a folder with its receipt counts as that one. A list that was not read
// completely covers nothing.
func (p *comparison) listCovers(before newest, list []archive.Receipt, whole bool) bool {
	if p.Doubt == nil || !whole {
		return false
	}
	// A list whose records all bear a time tells itself how far it goes back.
	oldest, dated, there := time.Time{}, len(list) > 0, false
	for _, rc := range list {
		dated = dated && !rc.Updated.IsZero()
		if oldest.IsZero() || rc.Updated.Before(oldest) {
			oldest = rc.Updated
		}
		there = there || rc.Remote == before.remote || p.Doubt.From.IsZero() && p.isOfKeptFolder(rc.Remote)
	}
	if dated && !p.Doubt.From.IsZero() && oldest.Before(p.Doubt.From.Add(-before.ahead-margin)) {
		return true
	}
	return len(list) < listed && (there || before.remote == "" && !p.Doubt.From.IsZero())
}

// isOfKeptFolder reports whether the number is that of an archived folder, from before the doubt began.
func (p *comparison) isOfKeptFolder(r archive.RemoteID) bool {
	key, ok, err := p.Book.FindByRemote(r)
	if err != nil || !ok {
		return false
	}
	e, ok, err := p.Book.Entry(key)
	return err == nil && ok && e.ArchivedRemote == r && e.Dest != "" && e.ArchivedAt.Before(p.Doubt.Since)
}

// compareIndex compares the ledger with the index of a vault.
func (p *comparison) compareIndex(ctx context.Context, v Origin, r *VaultReport) error {
	result, shown, err := p.Service.ReadIndex(ctx, v.Vault, func(recs []archive.IndexRecord) error {
		unknown, err := p.compareKnown(recs, r)
		if err != nil {
			return err
		}
		return p.identifyUnknown(ctx, v, unknown, r)
	})
	if err != nil {
		return err
	}
	r.Index, p.shown = result, append(p.shown, shown)
	return nil
}

// compareKnown compares the records whose bumId an entry has, and tells an entry that does not count it as archived. It returns
// the other records, and those of entries in doubt: about them the archive must be asked.
func (p *comparison) compareKnown(recs []archive.IndexRecord, r *VaultReport) (unknown []archive.IndexRecord, err error) {
	r.Indexed += len(recs)
	for _, rec := range recs {
		key, known, err := p.Book.FindByRemote(rec.Remote)
		if err != nil {
			return nil, err
		}
		if !known || rec.Remote == "" {
			unknown = append(unknown, rec)
			continue
		}
		e, _, err := p.Book.Entry(key)
		if err != nil {
			return nil, err
		}
		if err := p.compareMetadata(e, rec, r); err != nil {
			return nil, err
		}
		if p.Doubt != nil && e.NeedsReconcile {
			unknown = append(unknown, rec)
			continue
		}
		p.noteContent(e, archive.Receipt{Remote: rec.Remote, Status: archive.Successful, Record: rec.Raw, Updated: rec.ArchivedAt})
	}
	return unknown, nil
}

// identifyUnknown asks whose the records are that no entry has the bumId of. A record from long before the doubt is reported
// and not asked about: the ledger was complete then, so the document is not ours.
func (p *comparison) identifyUnknown(ctx context.Context, v Origin, recs []archive.IndexRecord, r *VaultReport) error {
	var ask []archive.IndexRecord
	var numbers []archive.RemoteID
	for _, rec := range recs {
		switch {
		case p.Doubt == nil:
			p.reportStrange(r, rec, "in the archive, not in this ledger")
		case rec.Remote == "":
			p.noteUnidentified(v.Vault, rec, r, "the index does not tell its bumId")
		case !p.Doubt.From.IsZero() && !rec.ArchivedAt.IsZero() && rec.ArchivedAt.Before(p.Doubt.From.Add(-longBefore)) && !p.isKnown(rec):
			p.reportStrange(r, rec, "archived long before this ledger's last line, and never by it")
		default:
			ask, numbers = append(ask, rec), append(numbers, rec.Remote)
		}
	}
	// The index tells no clientUUID, so each registration is asked about alone. An absent one has no clientUUID.
	told, err := AskEach(ctx, p.Service, v.Vault, numbers)
	if err != nil {
		return err
	}
	for i, rec := range ask {
		rc := told[i]
		switch {
		case rc.ID.IsZero() && p.isKnown(rec): // its receipt has the number, and the index shows it
			continue
		case rc.ID.IsZero():
			p.noteUnidentified(v.Vault, rec, r, "the archive does not tell its clientUUID")
			continue
		case rc.Status != archive.Successful:
			// The index shows archived documents only, and archived is final: this answer is out of date.
			rc.Status, rc.Record, rc.Updated = archive.Successful, rec.Raw, rec.ArchivedAt
		}
		if err := p.takeReceipt(ctx, v, rc, &rec, r); err != nil {
			return err
		}
	}
	return p.commitChanges(ctx)
}

// longBefore is how long after its registration a document may appear in the index.
const longBefore = 7 * 24 * time.Hour

// isKnown reports whether an entry has the bumId of the record.
func (p *comparison) isKnown(rec archive.IndexRecord) bool {
	_, ok, err := p.Book.FindByRemote(rec.Remote)
	return ok && err == nil
}

// reportStrange reports a document that the ledger does not know, once.
func (p *comparison) reportStrange(r *VaultReport, rec archive.IndexRecord, text string) {
	if isNew := p.reported.Add(rec.Remote); isNew || rec.Remote == "" {
		r.Strange.add(Finding{Remote: rec.Remote, Number: rec.Document.Number, Text: text})
	}
}

// noteUnidentified reports a document that may belong to any entry with the same invoice number, and keeps that number.
func (p *comparison) noteUnidentified(v archive.VaultID, rec archive.IndexRecord, r *VaultReport, why string) {
	u := &p.factsOf(v).unidentified
	if u.numbers == nil {
		u.numbers = map[string]bool{}
	}
	u.numbers[rec.Document.Number] = true
	u.any = u.any || rec.Document.Number == ""
	p.reportStrange(r, rec, "in the archive, not in this ledger; "+why)
}

// takeReceipt finds the entry of one registration that the archive told of, and tells it, or opens an entry. rec is its record
// in the index; nil: it was found in the status list.
func (p *comparison) takeReceipt(ctx context.Context, v Origin, rc archive.Receipt, rec *archive.IndexRecord, r *VaultReport) error {
	if rc.Status == archive.Successful {
		p.successes.Add(rc.Remote)
	}
	if key, ok, err := p.Book.FindByRemote(rc.Remote); err != nil || ok {
		return errors.Join(err, p.compareRegistration(key, rc, r))
	}
	if key, ok := p.unpacked[rc.ID]; ok {
		// The folder of this document is not packed yet. Its entry stays in doubt; the comparison after the packing tells it.
		if p.reported.Add(rc.Remote) {
			r.Found.add(Finding{Key: key, Remote: rc.Remote, Text: "registered while the ledger was not there; its folder is told once it is packed"})
		}
		return nil
	}
	e, ok, err := p.findOwner(rc.ID)
	if err == nil && p.hasPendingChange(e.Key, rc) {
		// The pending change may open the entry that this receipt belongs to. Once it is committed, the look-ups find it.
		if err := p.commitChanges(ctx); err != nil {
			return err
		}
		return p.takeReceipt(ctx, v, rc, rec, r)
	}
	content := rc.Status == archive.Successful || rc.Status == archive.InProgress
	switch {
	case err != nil:
		return err
	case ok && p.Doubt != nil && e.State != ledger.Discovered && e.State != ledger.Duplicate:
		r.Found.add(Finding{Key: e.Key, Remote: rc.Remote, Text: "registered while the ledger was not there; the archive says " + rc.Status.String()})
		if rec != nil {
			if err := p.compareMetadata(e, *rec, r); err != nil {
				return err
			}
		}
		// One change: the registration never stands in the ledger without the status that it was found with.
		return p.addChange(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{
			ledger.RegistrationFound{Remote: rc.Remote, ID: rc.ID, ServiceTime: rc.Date}, ledger.StatusSeen{Receipt: rc, Grace: p.Grace, NotBefore: p.Now().Wall},
		}})
	case !content: // an orphan: it never got content
		return nil
	case ok:
		p.reportStrange(r, archive.IndexRecord{Remote: rc.Remote}, "a registration of entry "+e.Key.String()+" holds content, and the ledger does not know it")
		return nil
	case rc.Status == archive.InProgress:
		return p.openEntryInProgress(ctx, v, rc, r)
	case rec == nil || p.Doubt == nil:
		// The index shows the document later, with its metadata; the entry is opened then.
		return nil
	}
	return p.openArchivedRecord(ctx, v, rc, *rec, r)
}

// compareRegistration compares the archive's answer about a registration with the entry that has it.
func (p *comparison) compareRegistration(key archive.Key, rc archive.Receipt, r *VaultReport) error {
	e, ok, err := p.Book.Entry(key)
	if err != nil || !ok {
		return err
	}
	_, ours := e.GenerationOf(rc.ID)
	foreign := !rc.ID.IsZero() && !e.ID.IsZero() && !ours
	switch {
	case e.State != ledger.Archived || e.ArchivedRemote != rc.Remote:
		if foreign && e.IsNews(rc) {
			p.reportStrange(r, archive.IndexRecord{Remote: rc.Remote}, "given to entry "+e.Key.String()+"; the archive says that it is of another clientUUID, and holds content of it")
		} else if !foreign {
			p.noteContent(e, rc)
		}
	case foreign:
		// The entry keeps its state: archived is final. The contradiction is reported, and an entry in doubt stays in doubt.
		p.foreign.Add(rc.Remote)
		r.Missing.add(Finding{Key: e.Key, Remote: rc.Remote, Text: "archived here; the archive says that this bumId is of another clientUUID"})
	case (rc.Status == archive.Failed || rc.Status == archive.WaitingForPackage) && !p.isRetentionOver(e):
		p.foreign.Add(rc.Remote)
		r.Missing.add(Finding{Key: e.Key, Remote: rc.Remote, Text: fmt.Sprintf("archived here; the archive says %s now", rc.Status)})
	}
	return nil
}
