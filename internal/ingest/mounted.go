package ingest

import (
	"errors"
	"path"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

func (e *MountedError) cause() ledger.Cause { return ledger.Cause{Code: CauseMounted, Text: e.Text} }

// sourceFaultChanges postpones what was to be done with the source of an ended entry.
//
// A final state never changes, so a mount in the folder cannot quarantine the entry any more. The folder stays where it is, a pause of
// its own tells people, and it is tried again by itself. The entry keeps its cause: that is what people read in a returned folder.
// A mount on a place where many folders lie is one pause for all of them. It does not pause the drop: folders are still packed, and those
// that go elsewhere are moved.
func (c *Engine) sourceFaultChanges(e ledger.Entry, err error) []ledger.Change {
	mounted, ok := errors.AsType[*MountedError](err)
	if !ok {
		c.endMountPauses(e)
		if e.Attempt%10 == 0 { // of a rejected folder nothing else tells of it
			c.cfg.Log.Warn("a folder cannot be moved to where it belongs yet; it is tried again", "key", e.Key, "drop", e.Drop, "err", err)
		}
		return []ledger.Change{c.newChange(e, c.postpone(e, localFaultCause(err)))}
	}
	// Nothing was moved. The entry stays as it is, and is tried again.
	now := c.cfg.Now().Wall
	switch {
	case mounted.Place == "":
		if c.breakers.Open(FolderTarget(e.Key), mounted.cause(), false, 0, now) {
			c.cfg.Log.Error("something is mounted in a folder; it stays where it is until that is gone", "key", e.Key, "drop", e.Drop, "err", mounted)
		}
	default:
		c.breakers.Close(FolderTarget(e.Key), now)
		if c.breakers.Open(PlaceTarget(mounted.Place, e.Drop), mounted.cause(), false, 0, now) {
			c.cfg.Log.Error("something is mounted where folders are kept; they stay where they are until that is gone", "drop", e.Drop, "place", mounted.Place, "err", mounted)
		}
	}
	return []ledger.Change{c.newChange(e, ledger.Postponed{NotBefore: c.retryAt(e)})}
}

// endMountPauses ends the pauses for a mount that an entry waited for and met another fault instead: what they say is not known to be true any more.
func (c *Engine) endMountPauses(e ledger.Entry) {
	now := c.cfg.Now().Wall
	c.breakers.Close(FolderTarget(e.Key), now)
	for _, p := range c.breakers.List() {
		if p.Target.Purpose == ToMove && p.Target.Drop == e.Drop {
			c.breakers.Close(p.Target, now)
		}
	}
}

// folderWaits reports whether the folder of an entry is still to be moved or removed.
func (c *Engine) folderWaits(k archive.Key) bool {
	e, known, err := c.cfg.Ledger.Entry(k)
	step, _, due := ledger.Due(e)
	return err != nil || known && due && (step == ledger.Place || step == ledger.Dispose)
}

// noteSourceMoved ends the pause of an entry whose folder could be moved or removed after all.
func (c *Engine) noteSourceMoved(e ledger.Entry) {
	if c.breakers.Close(FolderTarget(e.Key), c.cfg.Now().Wall) {
		c.cfg.Log.Info("nothing is mounted in the folder any more", "key", e.Key, "drop", e.Drop)
	}
	for place := path.Dir(e.Dest); place != "." && place != "/"; place = path.Dir(place) {
		if c.breakers.Close(PlaceTarget(place, e.Drop), c.cfg.Now().Wall) {
			c.cfg.Log.Info("nothing is mounted where folders are kept any more", "drop", e.Drop, "place", place)
		}
	}
}
