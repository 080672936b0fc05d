package ingest

import (
	"errors"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

func (e *MountedError) cause() ledger.Cause { return ledger.Cause{Code: CauseMounted, Text: e.Text} }

// folderRoute names the pause of one ended entry whose folder cannot be moved or removed.
func folderRoute(k archive.Key) string { return folderPrefix + k.String() }

// sourceFault postpones what was to be done with the source of an ended entry.
//
// A final state never changes, so a mount in the folder cannot quarantine the entry any more. The folder stays where it is, a pause of
// its own tells people, and it is tried again by itself. The entry keeps its cause: that is what people read in a returned folder.
func (c *Conductor) sourceFault(e ledger.Entry, err error) []ledger.Change {
	mounted, ok := errors.AsType[*MountedError](err)
	if !ok {
		return []ledger.Change{c.change(e, c.later(e, localFault(err)))}
	}
	if c.routes.trip(folderRoute(e.Key), mounted.cause(), 0, c.cfg.Now().Wall) {
		c.cfg.Log.Error("something is mounted in a folder; it stays where it is until that is gone", "key", e.Key, "drop", e.Drop, "err", mounted)
	}
	return []ledger.Change{c.change(e, ledger.Postponed{NotBefore: c.retryAt(e)})}
}

// folderWaits reports whether the folder of an entry is still to be moved or removed.
func (c *Conductor) folderWaits(key string) bool {
	k, err := archive.ParseKey(key)
	if err != nil {
		return false
	}
	e, known, err := c.cfg.Ledger.Entry(k)
	step, _, due := ledger.Due(e)
	return err != nil || known && due && (step == ledger.Place || step == ledger.Dispose)
}

// sourceMoved ends the pause of an entry whose folder could be moved or removed after all.
func (c *Conductor) sourceMoved(e ledger.Entry) {
	if c.routes.opens(folderRoute(e.Key), c.cfg.Now().Wall) {
		c.cfg.Log.Info("nothing is mounted in the folder any more", "key", e.Key, "drop", e.Drop)
	}
}
