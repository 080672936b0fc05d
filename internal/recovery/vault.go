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

// compareVault asks one vault: first its list, which knows identities, then its index, which knows everything.
func (p *comparison) compareVault(ctx context.Context, v Drop) (VaultReport, error) {
	r := VaultReport{Vault: v.Vault}
	w, err := p.Service.ReadStatusList(ctx, v.Vault)
	if err != nil {
		return r, err
	}
	if !w.Date.IsZero() {
		p.report.Told = w.Date
	}
	p.visible[v.Vault] = p.visibleFor(w.Date)
	r.Listed, r.Reaches = len(w.Receipts), p.listReaches(v.Vault, w.Receipts, w.Whole)
	p.reaches[v.Vault], p.covers[v.Vault] = r.Reaches, p.listCovers(v.Vault, w.Receipts, w.Whole)
	for _, rc := range w.Receipts {
		if err := p.takeReceipt(ctx, v, rc, nil, &r); err != nil {
			return r, err
		}
	}
	if err := p.commitChanges(ctx); err != nil { // the index is held against what the list told
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

// visibleFor returns for how long the archive, whose clock reads date, could show what the ledger does not know: by this
// machine's clock since the ledger was put back, and by the archive's since the first comparison, before which nothing
// counts. A zero date leaves this machine's alone.
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

// listReaches reports whether the list shows every registration made since the ledger's last line: it goes back
// behind that line, or it is not full and shows the newest registration that was there before; of a ledger that
// was made anew, that of a folder with its receipt. A list
// that lags behind, or that was not understood wholly, shows nothing by what it leaves out.
func (p *comparison) listReaches(v archive.VaultID, list []archive.Receipt, whole bool) bool {
	return p.listCovers(v, list, whole) && p.visible[v] >= listLag(p.Grace)
}

// listCovers is reach, for a list that does not lag behind.
func (p *comparison) listCovers(v archive.VaultID, list []archive.Receipt, whole bool) bool {
	if p.Doubt == nil || !whole {
		return false
	}
	oldest, dated, there := time.Time{}, len(list) > 0, false
	for _, rc := range list {
		dated = dated && !rc.Updated.IsZero()
		if oldest.IsZero() || rc.Updated.Before(oldest) {
			oldest = rc.Updated
		}
		there = there || rc.Remote == p.newest[v].remote || p.Doubt.From.IsZero() && p.isOfKeptFolder(rc.Remote)
	}
	if dated && !p.Doubt.From.IsZero() && oldest.Before(p.Doubt.From.Add(-p.newest[v].ahead-margin)) {
		return true
	}
	return len(list) < listed && (there || p.newest[v].remote == "" && !p.Doubt.From.IsZero())
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

// compareIndex holds the ledger against the index.
func (p *comparison) compareIndex(ctx context.Context, v Drop, r *VaultReport) error {
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

// compareKnown leaves those records of which something must be asked: no entry bears their number, or one that is in
// doubt does. An entry that bears the number and does not count it as archived is told.
func (p *comparison) compareKnown(recs []archive.IndexRecord, r *VaultReport) (unknown []archive.IndexRecord, err error) {
	all := len(recs)
	recs = slices.DeleteFunc(recs, p.isAtRest)
	r.Indexed += all
	r.Compared += all - len(recs)
	numbers := make([]archive.RemoteID, len(recs))
	for i, rec := range recs {
		numbers[i] = rec.Remote
	}
	es, err := p.Book.FindEntriesByRemote(numbers)
	if err != nil {
		return nil, err
	}
	for i, rec := range recs {
		e := es[i]
		if e.Key.IsZero() {
			unknown = append(unknown, rec)
			continue
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

// identifyUnknown finds out whose the records are that no entry bears the number of. Those from long before the
// doubt began were never ours: the ledger knew everything then.
func (p *comparison) identifyUnknown(ctx context.Context, v Drop, recs []archive.IndexRecord, r *VaultReport) error {
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
	told, err := AskEach(ctx, p.Service, v.Vault, numbers) // an absent one has no clientUUID
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
		case rc.Status != archive.Successful: // the index is the later word: it shows what is archived
			rc.Status, rc.Record, rc.Updated = archive.Successful, rec.Raw, rec.ArchivedAt
		}
		if err := p.takeReceipt(ctx, v, rc, &rec, r); err != nil {
			return err
		}
	}
	return p.commitChanges(ctx)
}

// longBefore is how long after its registration a document may come into the index.
const longBefore = 7 * 24 * time.Hour

// isKnown reports whether an entry bears the record's number.
func (p *comparison) isKnown(rec archive.IndexRecord) bool {
	_, ok, err := p.Book.FindByRemote(rec.Remote)
	return ok && err == nil
}

// reportStrange names a document that the ledger does not know, once.
func (p *comparison) reportStrange(r *VaultReport, rec archive.IndexRecord, text string) {
	if isNew := p.reported.Add(rec.Remote); isNew || rec.Remote == "" {
		r.Strange.add(Finding{Remote: rec.Remote, Number: rec.Document.Number, Text: text})
	}
}

// noteUnidentified notes a document that may be anybody's.
func (p *comparison) noteUnidentified(v archive.VaultID, rec archive.IndexRecord, r *VaultReport, why string) {
	u := p.anonymous[v]
	if u.numbers == nil {
		u.numbers = map[string]bool{}
	}
	u.numbers[rec.Document.Number] = true
	u.any = u.any || rec.Document.Number == ""
	p.anonymous[v] = u
	p.reportStrange(r, rec, "in the archive, not in this ledger; "+why)
}

// takeReceipt takes in one registration that the archive told of; rec is its record in the index, if that is where
// it was found.
func (p *comparison) takeReceipt(ctx context.Context, v Drop, rc archive.Receipt, rec *archive.IndexRecord, r *VaultReport) error {
	if rc.Status == archive.Successful {
		p.successes.Add(rc.Remote)
	}
	if key, ok, err := p.Book.FindByRemote(rc.Remote); err != nil || ok {
		return errors.Join(err, p.compareRegistration(key, rc, r))
	}
	if key, ok := p.unpacked[rc.ID]; ok { // it stays in doubt until it is packed, and is told then
		if p.reported.Add(rc.Remote) {
			r.Found.add(Finding{Key: key, Remote: rc.Remote, Text: "registered while the ledger was not there; its folder is told once it is packed"})
		}
		return nil
	}
	e, ok, err := p.findOwner(rc.ID)
	if err == nil && p.hasPendingChange(e.Key, rc) {
		if err := p.commitChanges(ctx); err != nil {
			return err
		}
		return p.takeReceipt(ctx, v, rc, rec, r) // it knows more now
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
		return p.addChange(ctx, ledger.Change{Key: e.Key, Rev: e.Rev, Events: []ledger.Event{
			ledger.RegistrationFound{Remote: rc.Remote, ID: rc.ID, ServiceTime: rc.Date}, ledger.StatusSeen{Receipt: rc, Grace: p.Grace, NotBefore: p.Now().Wall},
		}})
	case !content: // an orphan: nobody ever had an address for it, or it got nothing
		return nil
	case ok:
		p.reportStrange(r, archive.IndexRecord{Remote: rc.Remote}, "a registration of entry "+e.Key.String()+" holds content, and the ledger does not know it")
		return nil
	case rc.Status == archive.InProgress:
		return p.openEntryInProgress(ctx, v, rc, r)
	case rec == nil || p.Doubt == nil: // the index has its metadata
		return nil
	}
	return p.openArchivedRecord(ctx, v, rc, *rec, r)
}

// compareRegistration holds the archive's word about a registration that the ledger knows against what that says, be it
// the one that was archived or another one.
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
		p.foreign.Add(rc.Remote)
		r.Missing.add(Finding{Key: e.Key, Remote: rc.Remote, Text: "archived here; the archive says that this bumId is of another clientUUID"})
	case (rc.Status == archive.Failed || rc.Status == archive.WaitingForPackage) && !p.isRetentionOver(e):
		p.foreign.Add(rc.Remote)
		r.Missing.add(Finding{Key: e.Key, Remote: rc.Remote, Text: fmt.Sprintf("archived here; the archive says %s now", rc.Status)})
	}
	return nil
}
