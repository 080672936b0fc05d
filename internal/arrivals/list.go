package arrivals

import (
	"context"
	"errors"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger/arrival"
)

// look adopts what is in custody and asks for the list, where that is due. It
// returns when it is due again.
func (x *extracts) look(ctx context.Context) (next time.Time, err error) {
	if next, open := x.core.Breakers.IsOpen(x.kind, x.now().Wall); open {
		return next, nil
	}
	if !x.now().Wall.Before(x.again) {
		// Before the list: what custody has whole is not announced as unknown,
		// and not downloaded again.
		for _, do := range []func(context.Context) error{x.adoptCustody, x.findLost, x.doubtCounts, x.takeList} {
			if err := do(ctx); err != nil {
				return next, err
			}
		}
	}
	return x.again, x.readRefusals()
}

// noteEach commits of every extract in one of the states what learn says of it;
// nil: nothing.
func (x *extracts) noteEach(ctx context.Context, learn func(arrival.Arrival) arrival.Event, states ...arrival.State) error {
	var about []arrival.Arrival
	var evs []arrival.Event
	err := x.cfg.Ledger.Arrivals(func(a arrival.Arrival) error {
		if a.Kind != arrival.Extract { // another engine has it
			return nil
		}
		if ev := learn(a); ev != nil {
			about, evs = append(about, a), append(evs, ev)
		}
		return nil
	}, states...)
	for i := 0; err == nil && i < len(about); i++ {
		err = x.note(ctx, about[i], evs[i])
	}
	return err
}

// takeList asks for the list, announces what is new, and notes what a whole
// list leaves out.
func (x *extracts) takeList(ctx context.Context) error {
	list, err := x.cfg.Service.List(ctx, "")
	if err != nil {
		// No list proves nothing: nobody is left out, and nothing is given up.
		x.pauseCalls("list", apicall.AsError(err))
		x.again = x.now().Wall.Add(arrival.DelayAfter(x.failures))
		x.failures++
		return nil
	}
	x.noteAnswer()
	x.again, x.failures = x.now().Wall.Add(x.cfg.Every), 0
	named := map[archive.ExtractID]bool{}
	for _, item := range list.Extracts {
		named[item.ID] = true
		if err := x.announce(ctx, item); err != nil {
			return err
		}
	}
	if list.Whole {
		x.mu.Lock()
		x.listed = named
		x.mu.Unlock()
		if list.Whole, err = x.addExported(ctx, named); err != nil {
			return err
		}
	}
	if !list.Whole {
		x.Log.Warn("the list of extracts was not read whole: nothing is called gone")
		return nil
	}
	return x.noteLeftOut(ctx, named)
}

// addExported adds to a list what custody has lost and the service has still:
// it hides what was acknowledged, but from those who ask for it. isWhole is
// false where that list did not come.
func (x *extracts) addExported(ctx context.Context, named map[archive.ExtractID]bool) (isWhole bool, err error) {
	isWanted := false
	err = x.noteEach(ctx, func(a arrival.Arrival) arrival.Event {
		isWanted = isWanted || !a.LostAt.IsZero() && !named[a.Item]
		return nil
	}, arrival.Fetching)
	if err != nil || !isWanted {
		return true, err
	}
	list, err := x.cfg.Service.List(ctx, archive.ExportedStatus)
	if err != nil {
		x.pauseCalls("list", apicall.AsError(err))
		return false, nil
	}
	for _, item := range list.Extracts {
		named[item.ID] = true
	}
	return list.Whole, nil
}

// findLost notes extracts that were held and that custody has lost, while the
// service may have them still. An older one may have been moved away.
func (x *extracts) findLost(ctx context.Context) error {
	return x.noteEach(ctx, func(a arrival.Arrival) arrival.Event {
		end := a.EndsAt()
		if end.IsZero() {
			end = a.HeldAt.AddDate(1, 0, 0)
		}
		if a.Manifest.IsZero() || x.now().Wall.After(end) {
			return nil
		}
		isLost, err := x.cfg.Custody.HasLost(a.Item)
		if err != nil {
			x.Log.Error("an extract in custody cannot be looked at", "extract", a.Item, "err", err)
		}
		if !isLost {
			return nil
		}
		x.Log.Error("custody has lost an extract: it is fetched again while the service has it", "extract", a.Item)
		return arrival.CustodyLost{}
	}, arrival.Held, arrival.Acknowledged)
}

// doubtCounts notes what a ledger that was put back may have forgotten:
// downloads that the service counted.
func (x *extracts) doubtCounts(ctx context.Context) error {
	lost := x.cfg.Ledger.LastAlarm()
	return x.noteEach(ctx, func(a arrival.Arrival) arrival.Event {
		if a.AnnouncedAt.Before(lost) && a.UnknownPastAt.Before(lost) {
			return arrival.PastUnknown{}
		}
		return nil
	}, arrival.Announced, arrival.Fetching)
}

// announce commits an extract that is new, before anything is asked about it.
func (x *extracts) announce(ctx context.Context, item archive.Extract) error {
	a, known, err := x.cfg.Ledger.FindArrival(arrival.Extract, item.ID)
	if err != nil {
		return err
	}
	if known {
		if a.Gone && a.State.IsOpen() {
			err = x.note(ctx, a, arrival.ListedAgain{})
		}
		return err
	}
	// A ledger that was put back may have lost downloads of what was made
	// before: their number is not known.
	lost := x.cfg.Ledger.LastAlarm()
	ev := arrival.Listed{Kind: arrival.Extract, Extract: item, UnknownPast: !lost.IsZero() && !item.Made.After(lost)}
	return x.note(ctx, arrival.Arrival{Key: archive.NewKey(x.now().Wall)}, ev)
}

// noteLeftOut notes the extracts that are not held and that a whole list leaves
// out. Somebody else acknowledged them, or they are gone: they are asked for by
// their numbers all the same.
func (x *extracts) noteLeftOut(ctx context.Context, named map[archive.ExtractID]bool) error {
	return x.noteEach(ctx, func(a arrival.Arrival) arrival.Event {
		if !named[a.Item] && !a.Gone {
			return arrival.LeftOut{}
		}
		return nil
	}, arrival.Announced, arrival.Fetching)
}

// note commits what was learnt of an arrival. If somebody else changed it
// meanwhile, the next look learns it again.
func (x *extracts) note(ctx context.Context, a arrival.Arrival, ev arrival.Event) error {
	_, err := x.apply(ctx, a, ev)
	if errors.Is(err, errStale) {
		return nil
	}
	return err
}

// adoptCustody makes arrivals of what custody holds whole and the ledger does
// not: it was put back, or made anew. Every byte is compared with its digest
// before.
func (x *extracts) adoptCustody(ctx context.Context) error {
	for m, err := range x.cfg.Custody.Manifests() {
		if err != nil {
			x.Log.Error("a manifest of the custody cannot be used", "err", err)
			continue
		}
		a, known, err := x.cfg.Ledger.FindArrival(arrival.Extract, m.Extract.ID)
		if err != nil {
			return err
		}
		// A manifest whose commit a crash prevented belongs to an arrival that
		// goes on by itself.
		if lost := x.cfg.Ledger.LastAlarm(); known && a.LostAt.IsZero() && (a.Manifest != archive.Digest{} || !lost.After(a.AnnouncedAt)) {
			continue
		}
		if !known {
			a = arrival.Arrival{Key: archive.NewKey(x.now().Wall)}
		}
		if err := x.adopt(ctx, a, m); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (x *extracts) adopt(ctx context.Context, a arrival.Arrival, m custody.Manifest) error {
	h, err := x.cfg.Custody.Begin(m.Extract)
	if err == nil {
		defer h.Close() // it wrote nothing: the manifest is there
		err = x.cfg.Custody.Verify(ctx, m)
	}
	var digest archive.Digest
	if err == nil {
		_, digest, err = h.Seal(m.Files, m.Definition, m.HeldAt)
	}
	if errors.Is(err, custody.ErrUnknownPlace) {
		return err
	}
	if err != nil {
		// It is not adopted, and so nothing of it is acknowledged. It is
		// downloaded where the service still has it.
		x.Log.Error("custody is not adopted: look at it, or restore it from a copy", "extract", m.Extract.ID, "err", err)
		return nil
	}
	ev := arrival.Adopted{Kind: arrival.Extract, Extract: m.Extract, Manifest: digest, HeldAt: m.HeldAt}
	for _, f := range m.Files {
		ev.Files = append(ev.Files, arrival.File{Name: f.Name, Table: f.Table, Stored: f.Stored, Size: f.Size, SHA256: f.SHA256, Beside: f.Beside != ""})
	}
	return x.note(ctx, a, ev)
}
