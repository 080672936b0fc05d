package intake

import (
	"context"
	"errors"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger/arrival"
)

// takeList asks for the list, announces what is new, and notes what a whole list leaves out.
func (e *Engine) takeList(ctx context.Context) error {
	list, err := e.cfg.Service.List(ctx, "")
	if err != nil {
		// No list proves nothing: nobody is left out, and nothing is given up.
		e.pauseCalls("list", apicall.AsError(err))
		return nil
	}
	e.noteAnswer()
	named := map[archive.ExtractID]bool{}
	for _, x := range list.Extracts {
		named[x.ID] = true
		if err := e.announce(ctx, x); err != nil {
			return err
		}
	}
	e.mu.Lock()
	if e.status.ListedAt = e.now().Wall; list.Whole {
		e.listed = named
	}
	e.mu.Unlock()
	if list.Whole {
		if list.Whole, err = e.addExported(ctx, named); err != nil {
			return err
		}
	}
	if !list.Whole {
		e.cfg.Log.Warn("the list of extracts was not read whole: nothing is called gone")
		return nil
	}
	return e.noteLeftOut(ctx, named)
}

// addExported adds to a list what custody has lost and the service has still:
// it hides what was acknowledged, but from those who ask for it. isWhole is
// false where that list did not come.
func (e *Engine) addExported(ctx context.Context, named map[archive.ExtractID]bool) (isWhole bool, err error) {
	isWanted := false
	err = e.eachExtract(func(a arrival.Arrival) error {
		isWanted = isWanted || !a.LostAt.IsZero() && !named[a.Item]
		return nil
	}, arrival.Fetching)
	if err != nil || !isWanted {
		return true, err
	}
	list, err := e.cfg.Service.List(ctx, archive.ExportedStatus)
	if err != nil {
		e.pauseCalls("list", apicall.AsError(err))
		return false, nil
	}
	for _, x := range list.Extracts {
		named[x.ID] = true
	}
	return list.Whole, nil
}

// findLost notes extracts that were held and that custody has lost, while the
// service may have them still. What is older may have been moved away.
func (e *Engine) findLost(ctx context.Context) error {
	var lost []arrival.Arrival
	err := e.eachExtract(func(a arrival.Arrival) error {
		end := a.EndsAt()
		if end.IsZero() {
			end = a.HeldAt.AddDate(1, 0, 0)
		}
		if a.Manifest.IsZero() || e.now().Wall.After(end) {
			return nil
		}
		isLost, err := e.cfg.Custody.HasLost(a.Item)
		if err != nil {
			e.cfg.Log.Error("an extract in custody cannot be looked at", "extract", a.Item, "err", err)
		}
		if isLost {
			lost = append(lost, a)
		}
		return nil
	}, arrival.Held, arrival.Acknowledged)
	for _, a := range lost {
		if err != nil {
			return err
		}
		e.cfg.Log.Error("custody has lost an extract: it is fetched again while the service has it", "extract", a.Item)
		err = e.note(ctx, a, arrival.CustodyLost{})
	}
	return err
}

// doubtCounts notes what a ledger that was put back may have forgotten: downloads that the service counted.
func (e *Engine) doubtCounts(ctx context.Context) error {
	lost := e.cfg.Ledger.LastAlarm()
	var all []arrival.Arrival
	err := e.eachExtract(func(a arrival.Arrival) error {
		if a.AnnouncedAt.Before(lost) && a.UnknownPastAt.Before(lost) {
			all = append(all, a)
		}
		return nil
	}, arrival.Announced, arrival.Fetching)
	for _, a := range all {
		if err != nil {
			return err
		}
		err = e.note(ctx, a, arrival.PastUnknown{})
	}
	return err
}

// announce commits an extract that is new, before anything is asked about it.
func (e *Engine) announce(ctx context.Context, x archive.Extract) error {
	a, known, err := e.cfg.Ledger.FindArrival(arrival.Extract, x.ID)
	if err != nil {
		return err
	}
	if known {
		if a.Gone && a.State.IsOpen() {
			err = e.note(ctx, a, arrival.ListedAgain{})
		}
		return err
	}
	// A ledger that was put back may have lost downloads of what was made before: their number is not known.
	lost := e.cfg.Ledger.LastAlarm()
	ev := arrival.Listed{Kind: arrival.Extract, Extract: x, UnknownPast: !lost.IsZero() && !x.Made.After(lost)}
	return e.note(ctx, arrival.Arrival{Key: archive.NewKey(e.now().Wall)}, ev)
}

// noteLeftOut notes the extracts that are not held and that a whole list leaves out. Somebody else acknowledged them, or they are gone: they
// are asked for by their numbers all the same.
func (e *Engine) noteLeftOut(ctx context.Context, named map[archive.ExtractID]bool) error {
	var gone []arrival.Arrival
	err := e.eachExtract(func(a arrival.Arrival) error {
		if !named[a.Item] && !a.Gone {
			gone = append(gone, a)
		}
		return nil
	}, arrival.Announced, arrival.Fetching)
	for _, a := range gone {
		if err != nil {
			return err
		}
		err = e.note(ctx, a, arrival.LeftOut{})
	}
	return err
}

// note commits what was learnt of an arrival. If somebody else changed it
// meanwhile, the next look learns it again.
func (e *Engine) note(ctx context.Context, a arrival.Arrival, ev arrival.Event) error {
	_, err := e.apply(ctx, a, ev)
	if errors.Is(err, errStale) {
		return nil
	}
	return err
}

// adoptCustody makes arrivals of what custody holds whole and the ledger does not: it was put back, or made anew. Every byte is compared
// with its digest before.
func (e *Engine) adoptCustody(ctx context.Context) error {
	for m, err := range e.cfg.Custody.Manifests() {
		if err != nil {
			e.cfg.Log.Error("a manifest of the custody cannot be used", "err", err)
			continue
		}
		a, known, err := e.cfg.Ledger.FindArrival(arrival.Extract, m.Extract.ID)
		if err != nil {
			return err
		}
		// A manifest whose commit a crash prevented belongs to an arrival that goes on by itself.
		if lost := e.cfg.Ledger.LastAlarm(); known && a.LostAt.IsZero() && (a.Manifest != archive.Digest{} || !lost.After(a.AnnouncedAt)) {
			continue
		}
		if !known {
			a = arrival.Arrival{Key: archive.NewKey(e.now().Wall)}
		}
		if err := e.adopt(ctx, a, m); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (e *Engine) adopt(ctx context.Context, a arrival.Arrival, m custody.Manifest) error {
	h, err := e.cfg.Custody.Begin(m.Extract)
	if err == nil {
		defer h.Close() // it wrote nothing: the manifest is there
		err = e.cfg.Custody.Verify(ctx, m)
	}
	var digest archive.Digest
	if err == nil {
		_, digest, err = h.Seal(m.Files, m.Definition, m.HeldAt)
	}
	if errors.Is(err, custody.ErrUnknownPlace) {
		return err
	}
	if err != nil {
		// It is not adopted, and so nothing of it is acknowledged. It is downloaded where the service still has it.
		e.cfg.Log.Error("custody is not adopted: look at it, or restore it from a copy", "extract", m.Extract.ID, "err", err)
		return nil
	}
	ev := arrival.Adopted{Kind: arrival.Extract, Extract: m.Extract, Manifest: digest, HeldAt: m.HeldAt}
	for _, f := range m.Files {
		ev.Files = append(ev.Files, arrival.File{Name: f.Name, Table: f.Table, Stored: f.Stored, Size: f.Size, SHA256: f.SHA256, Beside: f.Beside != ""})
	}
	return e.note(ctx, a, ev)
}
