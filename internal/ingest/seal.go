package ingest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/engine"
	"vaultd/internal/ledger"
)

// sealStep settles a claimed folder once more and packs it.
func (c *Engine) sealStep() engine.Step[ledger.Entry, Target] {
	s := c.newStep(ledger.Seal, max(2, runtime.GOMAXPROCS(0)))
	s.Terms = func(queue string) engine.Terms[Target] {
		return engine.Terms[Target]{Target: targetOf(queue), Batch: 1, Ahead: 64}
	}
	s.Admit = c.admitToPack
	s.Start = func(t *task) func(context.Context) { return func(ctx context.Context) { c.seal(ctx, t) } }
	return s
}

// seal packs a claimed folder. Nothing is announced: a crash leaves the folder
// claimed, and the next start packs it.
func (c *Engine) seal(ctx context.Context, t *task) {
	e := t.Jobs[0]
	if !c.begin(ctx, t, e) || !c.hasSpace(ledger.ServiceQueueOf(e)) { // the spool was filled while this one waited
		return
	}
	c.finish(t, t.Jobs, c.sealFolder(ctx, e))
}

// maxWaiting bounds the sealed packages of one service queue that wait for their upload: the
// backlog waits as folders, which cost nothing.
const maxWaiting = 2000

// admitToPack lets through what there is room for: one vault that takes nothing must
// not keep the packages of the others from being made. What is not let through waits
// as it is, and is looked at again when a package leaves.
func (c *Engine) admitToPack(queue string, _ archive.Instant) (func(ledger.Entry) admission, error) {
	d, known := c.drops[dropOf(queue)]
	own := ledger.ServiceQueue(d.Route, string(d.Vault))
	if known {
		n, err := c.countWaiting(own)
		if err != nil || n >= maxWaiting || !c.hasSpace(own) {
			return nil, err
		}
	}
	// A drop may have been given to another vault since some of its folders
	// came. Of that one only the space counts: this is asked while the ledger
	// is read.
	fits := map[string]bool{own: known}
	return func(e ledger.Entry) admission {
		service := ledger.ServiceQueueOf(e)
		room, asked := fits[service]
		if !asked {
			room = c.hasSpace(service)
			fits[service] = room
		}
		return admission{No: !room, Target: targetOf(queue), Most: 1}
	}, nil
}

// countWaiting counts the sealed packages of a service queue that wait for a
// ticket or for their upload, up to maxWaiting. Those that a person must let go
// first are not due, and do not count: they would keep the others from being
// packed.
func (c *Engine) countWaiting(queue string) (n int, err error) {
	for _, s := range []ledger.Step{ledger.Register, ledger.Upload} {
		if n >= maxWaiting {
			break
		}
		// The first one that is not skipped ends the walk.
		_, _, errDue := c.cfg.Index.DueInQueue(s, queue, c.farAway(), 1, func(archive.Key) bool { n++; return n < maxWaiting }, nil)
		err = errors.Join(err, errDue)
	}
	return n, err
}

// farAway is when all that waits for a step is due.
func (c *Engine) farAway() time.Time { return c.cfg.Now().Wall.AddDate(100, 0, 0) }

// hasSpace reports whether the disk has room for one more package of a service queue.
func (c *Engine) hasSpace(queue string) bool {
	err := c.cfg.SpoolSpace(queue)
	switch {
	case errors.Is(err, ErrFull):
		return false
	case err != nil:
		c.openBreaker(SpoolTarget(), ledger.Cause{Code: "no-room", Text: err.Error()}, 0)
		return false
	case c.breakers.Close(SpoolTarget(), c.cfg.Now().Wall):
		c.cfg.Log.Info("packing goes on")
	}
	return true
}

func (c *Engine) sealFolder(ctx context.Context, e ledger.Entry) []ledger.Change {
	d, err := c.availableDrop(e)
	if err != nil {
		return c.dropFaultChanges(e, err)
	}
	// A writer may hold files open across the claim: the folder is read twice, and both readings must agree.
	look, err := d.Packer.Fingerprint(e)
	if err != nil {
		return c.sealFaultChanges(d, e, err)
	}
	if look != e.Fingerprint {
		return []ledger.Change{c.newChange(e, ledger.StillChanging{Fingerprint: look, NotBefore: c.cfg.Now().Wall.Add(settleTime(d.Settle, e.Attempt))})}
	}
	// Nothing has changed since this folder was found to be the same invoice as another one: it need not be packed to see that.
	if first, waits, err := c.stillWaits(e); err != nil {
		return c.sealFaultChanges(d, e, err)
	} else if waits {
		return c.waitForFirst(e, first)
	}
	// The package is written and renamed into the spool. A crash before the seal is committed leaves it there; the next start
	// packs the folder again, to the same bytes.
	packed, err := d.Packer.Pack(ctx, e)
	if err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return c.sealFaultChanges(d, e, err)
	}
	return wayOf(e).seal(c, d, e, packed)
}

// settleTime doubles how long a taken folder that changed again must be quiet: its writer holds it open, and pauses for
// longer than settle. It is bounded, so that a writer that never ends is looked at now and then.
func settleTime(settle time.Duration, attempts uint16) time.Duration {
	return max(settle, min(settle<<min(attempts+1, 10), 10*time.Minute))
}

func (c *Engine) sealFaultChanges(d Drop, e ledger.Entry, err error) []ledger.Change {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return c.endUnsealed(e, ledger.Refused{Cause: refused.Cause}, refused.Known)
	}
	if mounted, ok := errors.AsType[*MountedError](err); ok {
		return []ledger.Change{c.newChange(e, ledger.SentToQuarantine{Cause: mounted.cause()})}
	}
	if open, ok := errors.AsType[*OpenError](err); ok { // never by time alone: what its program has yet to write would be missing
		return []ledger.Change{c.newChange(e, ledger.Postponed{NotBefore: c.cfg.Now().Wall.Add(settleTime(d.Settle, e.Attempt)),
			Cause: ledger.Cause{Code: CauseStillOpen, Text: open.Error()}})}
	}
	if errors.Is(err, ErrFull) { // it waits as it is, and is looked at again when a package leaves
		return nil
	}
	if errors.Is(err, archive.ErrChanged) {
		return []ledger.Change{c.newChange(e, ledger.StillChanging{NotBefore: c.cfg.Now().Wall.Add(settleTime(d.Settle, e.Attempt))})}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return []ledger.Change{c.newChange(e, ledger.Postponed{NotBefore: c.retryAt(e), Cause: ledger.Cause{Code: CauseClaimedMissing, Text: err.Error()}})}
	}
	return []ledger.Change{c.newChange(e, c.postpone(e, localFaultCause(err)))}
}

// dropFaultChanges pauses the drop: no document is to blame for it.
func (c *Engine) dropFaultChanges(e ledger.Entry, err error) []ledger.Change {
	return []ledger.Change{c.newChange(e, c.postpone(e, c.pauseDrop(e, err)))}
}

func (c *Engine) pauseDrop(e ledger.Entry, err error) ledger.Cause {
	cause := ledger.Cause{Code: "drop-unavailable", Text: err.Error()}
	if c.breakers.Open(DropTarget(e.Drop), cause, false, 0, c.cfg.Now().Wall) {
		c.cfg.Log.Error("drop paused", "drop", e.Drop, "err", err)
	}
	return cause
}

// sealDerived lets the packed folder on, unless its identity is another entry's:
// it may get a later one where another document's sidecar names that.
func (c *Engine) sealDerived(d Drop, e ledger.Entry, p Packed) []ledger.Change {
	derived := p.Sealed.ID
	for n, id := range derived.Derivations() {
		p.Sealed.ID = id
		first, known, err := c.holderOf(id, e.Key)
		if err != nil {
			return c.sealFaultChanges(d, e, err)
		}
		if !known {
			return c.sealUnlessSucceeded(d, e, p, derived, nil)
		}
		// Only one entry of an identity proceeds at a time. The ledger compares
		// once more when the seal is committed.
		verdict := ledger.CompareIdentity(first, p.Sealed, e.Route, string(d.Vault))
		isOther := ledger.IsIDChosenByOther(first, p.Sealed, e.Route, string(d.Vault))
		switch {
		case verdict == ledger.Proceed && isOther: // the document may have got a later one while this one was in use
			return c.sealUnlessSucceeded(d, e, p, derived, &first)
		case verdict == ledger.Proceed, verdict == ledger.Conflict && isSentAgainByDecision(e, first, p.Sealed):
			return c.sealEntry(d, e, p, &first)
		case verdict != ledger.Conflict || n == archive.MaxDerivation || !isOther:
			return c.endByVerdict(d, e, p, first, verdict)
		}
		c.cfg.Log.Warn("the sidecar of another document names the clientUUID that is derived from this one, which gets the next", "key", e.Key, "id", id, "other", first.Key)
	}
	return nil // unreachable: the last one ends the loop
}

// isSentAgainByDecision reports whether a person has decided that an entry goes, flagged, though first was closed in doubt.
func isSentAgainByDecision(e, first ledger.Entry, s ledger.Sealed) bool {
	return e.DuplicateConfirmed && first.IsSentAgainInDoubt() && first.Content == s.Content
}

// sealNextGeneration seals an entry under the first generation of its identity that no other entry holds.
func (c *Engine) sealNextGeneration(d Drop, e ledger.Entry, p Packed) []ledger.Change {
	first := p.Sealed.ID
	for n := 1; ; n++ {
		_, taken, err := c.holderOf(p.Sealed.ID, e.Key)
		switch {
		case err != nil:
			return c.sealFaultChanges(d, e, err)
		case !taken: // the ledger looks once more when the seal is committed
			return c.sealEntry(d, e, p, nil)
		case n > archive.MaxGeneration:
			return c.endUsedUp(d, e, p)
		}
		p.Sealed.ID = first.Generation(n)
	}
}

// sealForNetwork seals an entry under the first generation of its identity whose number the network cannot know. A number under which a
// document was sent is used up, also where that was not delivered.
func (c *Engine) sealForNetwork(d Drop, e ledger.Entry, p Packed) []ledger.Change {
	first := p.Sealed.ID
	var before *ledger.Entry
	for n := 1; ; n++ {
		holder, taken, err := c.holderOf(p.Sealed.ID, e.Key)
		switch {
		case err != nil:
			return c.sealFaultChanges(d, e, err)
		case !taken: // the ledger looks once more when the seal is committed
			return c.sealEntry(d, e, p, before)
		}
		verdict := ledger.CompareIdentity(holder, p.Sealed, e.Route, string(d.Vault))
		isOther := ledger.IsIDChosenByOther(holder, p.Sealed, e.Route, string(d.Vault))
		switch {
		case verdict == ledger.Proceed && len(holder.Registrations) == 0:
			return c.sealEntry(d, e, p, &holder)
		case verdict != ledger.Proceed && !isOther && !(verdict == ledger.Conflict && isSentAgainByDecision(e, holder, p.Sealed)):
			return c.endByVerdict(d, e, p, holder, verdict)
		case n > archive.MaxGeneration:
			return c.endUsedUp(d, e, p)
		case !isOther:
			before = &holder
		}
		p.Sealed.ID = first.Generation(n)
	}
}

// endByVerdict ends or postpones a packed folder whose identity another entry has.
func (c *Engine) endByVerdict(d Drop, e ledger.Entry, p Packed, first ledger.Entry, verdict ledger.Verdict) []ledger.Change {
	// Nothing is committed yet. A crash after this finds the entry as it was, and the next start packs the folder again.
	if err := d.Packer.RemovePackage(e); err != nil {
		return c.sealFaultChanges(d, e, err)
	}
	switch verdict {
	case ledger.Same:
		return c.endUnsealed(e, ledger.FoundDuplicate{First: first.Key}, ledger.Document{AsRead: p.AsRead, FileOwners: p.Document.FileOwners})
	case ledger.WaitFor:
		return c.waitForFirst(e, first)
	}
	return c.endUnsealed(e, ledger.Refused{Cause: conflictCause(first, p.Sealed)}, ledger.Document{AsRead: p.AsRead, Files: p.Document.Files, FileOwners: p.Document.FileOwners})
}

// endUsedUp refuses a packed folder whose identity and all its generations
// other entries have.
func (c *Engine) endUsedUp(d Drop, e ledger.Entry, p Packed) []ledger.Change {
	// A crash before the commit is as in endByVerdict.
	if err := d.Packer.RemovePackage(e); err != nil {
		return c.sealFaultChanges(d, e, err)
	}
	cause := ledger.Cause{Code: "identities-used-up", Text: fmt.Sprintf("The same was sent %d times before, and there is no further number for it. Ask IT.", archive.MaxGeneration+1)}
	return c.endUnsealed(e, ledger.Refused{Cause: cause}, ledger.Document{AsRead: p.AsRead, Files: p.Document.Files, FileOwners: p.Document.FileOwners})
}

// sealUnlessSucceeded admits an identity that is free. A ledger that lost
// something may know the same invoice by a later one alone: by that it was
// archived. In any other, the identity before a later one is taken too, and
// the look-ups of all later ones are left out. first is the identity that the packager
// gave, and holder the rejected entry that has the free one; it may be nil.
func (c *Engine) sealUnlessSucceeded(d Drop, e ledger.Entry, p Packed, first archive.ID, holder *ledger.Entry) []ledger.Change {
	if holder == nil && c.cfg.Index.LastAlarm().IsZero() {
		return c.sealEntry(d, e, p, holder)
	}
	for id := range first.Later(p.Sealed.IDFromSidecar) {
		later, known, err := c.holderOf(id, e.Key)
		switch {
		case err != nil:
			return c.sealFaultChanges(d, e, err)
		case !known || ledger.IsIDChosenByOther(later, p.Sealed, e.Route, string(d.Vault)):
			continue
		case holder != nil && ledger.CompareIdentity(later, p.Sealed, e.Route, string(d.Vault)) == ledger.Proceed:
			continue // nothing came of it
		}
		// As above: the folder is still claimed, and a crash before the outcome is committed packs it again.
		if err := d.Packer.RemovePackage(e); err != nil {
			return c.sealFaultChanges(d, e, err)
		}
		switch {
		case p.Sealed.IDFromSidecar: // the sidecar's word alone does not make it the same invoice
			return c.endUnsealed(e, ledger.Refused{Cause: conflictCause(later, p.Sealed)}, ledger.Document{AsRead: p.AsRead, Files: p.Document.Files, FileOwners: p.Document.FileOwners})
		case later.State == ledger.Archived || later.State == ledger.Delivered:
			return c.endUnsealed(e, ledger.FoundDuplicate{First: later.Key}, ledger.Document{AsRead: p.AsRead, FileOwners: p.Document.FileOwners})
		case !later.State.IsFinal():
			return c.waitForFirst(e, later)
		}
		return c.endUnsealed(e, ledger.Refused{Cause: conflictCause(later, p.Sealed)}, ledger.Document{AsRead: p.AsRead, Files: p.Document.Files, FileOwners: p.Document.FileOwners})
	}
	return c.sealEntry(d, e, p, holder)
}

// endUnsealed ends an entry that was never sealed, with what is known of its
// content. Both are one commit: after a crash before it the folder is packed and
// judged again.
func (c *Engine) endUnsealed(e ledger.Entry, end ledger.Event, known ledger.Document) []ledger.Change {
	change := c.newChange(e, end)
	if (!known.AsRead.IsZero() || len(known.Files)+len(known.FileOwners) > 0) && !e.WasSealed() {
		change.Document = &known
	}
	return []ledger.Change{change}
}

// waitForFirst lets e wait for the end of another entry of the same invoice.
func (c *Engine) waitForFirst(e, first ledger.Entry) []ledger.Change {
	return []ledger.Change{c.newChange(e, ledger.Postponed{NotBefore: c.nextWaitAt(e), WaitsFor: first.Key, Cause: ledger.Cause{Code: CauseUnderWay, Text: fmt.Sprintf("%q (%s)", first.Folder, first.State)}})}
}

// stillWaits reports whether the entry that e was found to wait for has not ended yet.
// Nothing in e's folder has changed since, so there is no need to pack it again to see.
func (c *Engine) stillWaits(e ledger.Entry) (first ledger.Entry, waits bool, err error) {
	if e.WaitsFor.IsZero() {
		return first, false, nil
	}
	first, known, err := c.cfg.Ledger.Entry(e.WaitsFor)
	return first, known && !first.State.IsFinal(), err
}

// nextWaitAt spaces the looks at an entry that another one waits for.
func (c *Engine) nextWaitAt(e ledger.Entry) time.Time {
	return c.cfg.Now().Wall.Add(engine.Backoff(int(e.Attempt), c.cfg.PollMin, c.cfg.PollMax))
}

// conflictCause says which entry has the identity of a packed folder.
func conflictCause(first ledger.Entry, ev ledger.Sealed) ledger.Cause {
	if first.InDoubt || first.Contradicted {
		return ledger.Cause{Code: ledger.CauseClosedInDoubt, Text: strconv.Quote(first.Folder)}
	}
	return ledger.Cause{Code: CauseIdentityTaken, Text: fmt.Sprintf("%s, dropped as %q", ev.ID, first.Folder)}
}

// sealEntry seals the entry; first, if any, is the rejected one whose identity it takes over.
func (c *Engine) sealEntry(d Drop, e ledger.Entry, p Packed, first *ledger.Entry) []ledger.Change {
	if p.Sealed.LooksCutOff && d.Holds.CutOff && e.CutOff != ledger.CutOffTaken && !e.NeedsReconcile {
		return c.holdCutOff(d, e, p)
	}
	var more []ledger.Change
	if first != nil {
		p.Sealed.Supersedes = first.Key
		// A clientUUID that a sidecar chooses proves nothing: the content does.
		isSame := first.Content == p.Sealed.Content || first.Number == p.Sealed.Number && !first.Number.IsZero()
		if !first.Resolved && first.State == ledger.Rejected && isSame {
			more = append(more, c.newChange(*first, ledger.Superseded{By: e.Key}))
		}
	}
	// What is held stands in the same commit as the seal: it is never registered in between.
	hold, err := c.compareWithOthers(d, e, &p.Sealed)
	if err != nil {
		return c.sealFaultChanges(d, e, err)
	}
	evs := []ledger.Event{p.Sealed}
	var note *ledger.Note
	if hold != "" {
		note = newNote(hold)
		evs = append(evs, ledger.Held{By: ledger.Operator{UID: ledger.VaultdUID, Reason: note.Digest()}})
	}
	// The entry, its document and the note of a hold are one commit. A crash before it leaves a package in the spool that the
	// next start makes again.
	sealed := c.newChange(e, evs...)
	sealed.Document, sealed.Note = &p.Document, note
	return append([]ledger.Change{sealed}, more...)
}

func newNote(text string) *ledger.Note {
	note := &ledger.Note{Text: text}
	rand.Read(note.Salt[:]) // never fails: the runtime stops the process instead
	return note
}

// holdCutOff holds a claimed folder with a file that looks cut off. Its package
// is given up: its writer may still come to the end, so the folder is packed
// when an operator lets it go on.
func (c *Engine) holdCutOff(d Drop, e ledger.Entry, p Packed) []ledger.Change {
	// Nothing is committed yet. A crash after this finds the entry as it was,
	// and the next start packs the folder again.
	if err := d.Packer.RemovePackage(e); err != nil {
		return c.sealFaultChanges(d, e, err)
	}
	c.cfg.Log.Warn("a file looks cut off", "key", e.Key, "held", true)
	note := newNote(heldCutOff)
	held := c.newChange(e, ledger.Held{By: ledger.Operator{UID: ledger.VaultdUID, Reason: note.Digest()},
		CutOff: ledger.Cause{Code: ledger.CauseLooksCutOff, Text: strings.Join(p.Document.Remarks, "; ")}})
	held.Note = note
	return []ledger.Change{held}
}

// holderOf returns the entry that an identity belongs to, if it is another than k.
func (c *Engine) holderOf(id archive.ID, k archive.Key) (ledger.Entry, bool, error) {
	key, ok, err := c.cfg.Index.FindByID(id)
	if err != nil || !ok || key == k {
		return ledger.Entry{}, false, err
	}
	return c.cfg.Ledger.Entry(key)
}
