package ingest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// sealStep settles a claimed folder once more and packs it.
func (c *Conductor) sealStep() step {
	return step{
		name: ledger.Seal, width: max(2, runtime.GOMAXPROCS(0)), batch: 1, lane: dropLane, limit: c.roomToPack,
		intend: func(ledger.Entry, archive.Instant) ([]ledger.Event, bool, error) { return nil, true, nil },
		do: func(ctx context.Context, es []ledger.Entry) []ledger.Change {
			return c.seal(ctx, es[0])
		},
	}
}

// roomToPack lets nothing be packed while there is no room: the backlog waits as it
// is, and is looked at again when a package leaves.
func (c *Conductor) roomToPack(ready []ledger.Entry) (int, error) {
	err := c.cfg.Room()
	if errors.Is(err, ErrFull) {
		return 0, nil
	}
	if err != nil {
		c.pause(spoolRoute, ledger.Cause{Code: "no-room", Text: err.Error()}, 0)
		return 0, nil
	}
	if c.routes.opens(spoolRoute) {
		c.cfg.Log.Info("packing goes on")
	}
	return len(ready), nil
}

func (c *Conductor) seal(ctx context.Context, e ledger.Entry) []ledger.Change {
	d, err := c.drop(e)
	if err != nil {
		return c.dropFault(e, err)
	}
	look, err := d.Packer.Look(e)
	if err != nil {
		return c.sealFault(d, e, err)
	}
	if look != e.Look {
		return []ledger.Change{c.change(e, ledger.StillChanging{Look: look, NotBefore: c.cfg.Now().Wall.Add(d.Settle)})}
	}
	if first, waits, err := c.stillWaits(e); err != nil {
		return c.sealFault(d, e, err)
	} else if waits {
		return c.wait(e, first)
	}
	packed, err := d.Packer.Pack(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return c.sealFault(d, e, err)
	}
	return c.identify(d, e, packed)
}

func (c *Conductor) sealFault(d Drop, e ledger.Entry, err error) []ledger.Change {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return []ledger.Change{c.change(e, ledger.Refused{Cause: refused.Cause})}
	}
	if errors.Is(err, ErrChanged) {
		return []ledger.Change{c.change(e, ledger.StillChanging{NotBefore: c.cfg.Now().Wall.Add(d.Settle)})}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return []ledger.Change{c.change(e, ledger.Postponed{NotBefore: c.retryAt(e, 0), Cause: ledger.Cause{Code: "source-missing",
			Text: fmt.Sprintf("the claimed folder, or a file in it, is missing: %v; put it back from a backup, or close this entry", err)}})}
	}
	return []ledger.Change{c.change(e, c.later(e, localFault(err)))}
}

// dropFault pauses the drop: no document is to blame for it.
func (c *Conductor) dropFault(e ledger.Entry, err error) []ledger.Change {
	return []ledger.Change{c.change(e, c.later(e, c.pauseDrop(e, err)))}
}

func (c *Conductor) pauseDrop(e ledger.Entry, err error) ledger.Cause {
	cause := ledger.Cause{Code: "drop-unavailable", Text: err.Error()}
	if c.routes.trip("drop "+e.Drop, cause, 0, c.cfg.Now().Wall) {
		c.cfg.Log.Error("drop paused", "drop", e.Drop, "err", err)
	}
	return cause
}

// identify lets the packed folder on, unless its identity is another entry's.
func (c *Conductor) identify(d Drop, e ledger.Entry, p Packed) []ledger.Change {
	first, known, err := c.holder(p.Sealed.ID, e.Key)
	if err != nil {
		return c.sealFault(d, e, err)
	}
	if !known {
		return c.admit(d, e, p, nil)
	}
	verdict := ledger.Identify(first, p.Sealed, string(d.Vault))
	if verdict == ledger.Proceed {
		return c.admit(d, e, p, &first)
	}
	if err := d.Packer.Drop(e); err != nil {
		return c.sealFault(d, e, err)
	}
	switch verdict {
	case ledger.Same:
		return []ledger.Change{c.change(e, ledger.FoundDuplicate{First: first.Key})}
	case ledger.WaitFor:
		return c.wait(e, first)
	}
	return []ledger.Change{c.change(e, ledger.Refused{Cause: conflict(first, p.Sealed)})}
}

// wait lets e wait for the end of another entry of the same invoice.
func (c *Conductor) wait(e, first ledger.Entry) []ledger.Change {
	return []ledger.Change{c.change(e, ledger.Postponed{NotBefore: c.waitFor(e), After: first.Key, Cause: ledger.Cause{Code: "same-invoice-under-way",
		Text: fmt.Sprintf("the same invoice is on its way as %q (%s); this folder waits for its end", first.Folder, first.State)}})}
}

// stillWaits reports whether the entry that e was found to wait for has not ended yet.
// Nothing in e's folder has changed since, so there is no need to pack it again to see.
func (c *Conductor) stillWaits(e ledger.Entry) (first ledger.Entry, waits bool, err error) {
	if e.After.IsZero() {
		return first, false, nil
	}
	first, known, err := c.cfg.Ledger.Entry(e.After)
	return first, known && !first.State.Final(), err
}

// waitFor spaces the looks at an entry that another one waits for.
func (c *Conductor) waitFor(e ledger.Entry) time.Time {
	return c.cfg.Now().Wall.Add(backoff(int(e.Attempt), c.cfg.PollMin, c.cfg.PollMax))
}

func conflict(first ledger.Entry, ev ledger.Sealed) ledger.Cause {
	if first.InDoubt || first.Contradicted {
		return ledger.Cause{Code: "closed-in-doubt", Text: fmt.Sprintf(
			"the same invoice was dropped as %q, and it may be archived though it was not booked so. To send it again by decision, write a clientUUID of your own into metadata.json.", first.Folder)}
	}
	return ledger.Cause{Code: "clientuuid-taken", Text: fmt.Sprintf(
		"the clientUUID %s stands for another invoice, dropped as %q. Remove clientUUID from metadata.json, or write a new one.", ev.ID, first.Folder)}
}

// admit seals the entry; first, if any, is the rejected one whose identity it takes over.
func (c *Conductor) admit(d Drop, e ledger.Entry, p Packed, first *ledger.Entry) []ledger.Change {
	var more []ledger.Change
	if first != nil {
		p.Sealed.Supersedes = first.Key
		if !first.Resolved {
			more = append(more, c.change(*first, ledger.Superseded{By: e.Key}))
		}
	}
	evs := []ledger.Event{p.Sealed}
	if other, ok, err := c.sameContent(p.Sealed, e.Key); err != nil {
		return c.sealFault(d, e, err)
	} else if ok {
		p.Sealed.SameContent = other
		evs[0] = p.Sealed
		c.cfg.Log.Warn("same files as another invoice, with other metadata", "key", e.Key, "other", other, "held", d.HoldSame)
		if d.HoldSame {
			evs = append(evs, ledger.Held{By: ledger.Human{Reason: archive.Sum([]byte("same_content: hold"))}})
		}
	}
	sealed := c.change(e, evs...)
	sealed.Document = &p.Document
	return append([]ledger.Change{sealed}, more...)
}

// holder returns the entry that an identity belongs to, if it is another than k.
func (c *Conductor) holder(id archive.ID, k archive.Key) (ledger.Entry, bool, error) {
	key, ok, err := c.cfg.Index.ByID(id)
	if err != nil || !ok || key == k {
		return ledger.Entry{}, false, err
	}
	return c.cfg.Ledger.Entry(key)
}

// sameContent returns another entry with the same files that was not rejected.
func (c *Conductor) sameContent(ev ledger.Sealed, k archive.Key) (archive.Key, bool, error) {
	key, ok, err := c.cfg.Index.ByContent(ev.Content)
	if err != nil || !ok || key == k {
		return archive.Key{}, false, err
	}
	other, ok, err := c.cfg.Ledger.Entry(key)
	return key, ok && other.State != ledger.Rejected && other.ID != ev.ID, err
}
