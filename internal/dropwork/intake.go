package dropwork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/spool"
	"vaultd/internal/watch"
)

// adoptClaims gives an entry to every claimed folder that has none: the process ended
// between the claim and the commit.
func (d *Drop) adoptClaims(ctx context.Context) error {
	f, done, err := d.HoldOpen()
	if err != nil {
		return err
	}
	defer done()
	known := func(k archive.Key) bool {
		e, is, err := d.shared.Ledger.Entry(k)
		return is && e.Source == ledger.Claimed && err == nil // a folder that left its claim may have left an empty one
	}
	for c, err := range f.UnknownClaims(known) {
		if errors.Is(err, drop.ErrUnexpectedItem) {
			d.shared.Log.Error("claimed area holds something strange; it stays untouched", "drop", d.Settings.Name, "err", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("look for claimed folders: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, known, err := d.shared.Ledger.Entry(c.Key)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		// The claim may not be on disk yet: the entry must not be there before it. After a crash here the next start adopts the
		// folder in its claim, or finds it in the drop folder and claims it again.
		if err := f.SyncClaim(c); err != nil {
			return fmt.Errorf("adopt a claimed folder: %w", err)
		}
		fingerprint, err := d.takeFingerprint(f, c.Key)
		if err != nil {
			d.shared.Log.Warn("claimed folder cannot be looked at yet", "key", c.Key, "err", err)
		}
		if d.shared.Ledger.LastAlarm().After(c.Key.Time()) {
			// A drop folder that was away when the ledger was compared with the archive may
			// come back with claims of which the ledger has lost what became of them.
			d.enterDoubtedClaim(ctx, f, c, fingerprint)
			continue
		}
		d.enterClaim(ctx, f, c, fingerprint)
	}
	return nil
}

// takeItem claims a settled folder, or a settled single file, and opens its entry. The claim is durable before the
// entry is asked for.
func (d *Drop) takeItem(ctx context.Context, w watch.Item) error {
	if why := d.shared.HeldReason(); why != "" {
		return fmt.Errorf("%w: %s", watch.ErrHeld, why)
	}
	if err := d.CheckUsable(); err != nil {
		d.RequestRescan() // the watcher pauses
		return err
	}
	if err := d.shared.Disk.CheckSpace(); err != nil {
		return err
	}
	// A crash behind the claim leaves a claimed folder without an entry; the next start adopts it.
	err := d.claimItem(ctx, w)
	_, gone := os.Lstat(filepath.Join(d.Settings.Path, w.Name))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrSync) || !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	// A network file system may report the failure of a rename that it has done; nobody
	// else would find the folder before the next start.
	return errors.Join(err, d.adoptClaims(ctx))
}

// claimItem claims a folder or a single file and asks for its entry.
func (d *Drop) claimItem(ctx context.Context, w watch.Item) error {
	f, done, err := d.HoldOpen()
	if err != nil {
		return err
	}
	defer done()
	if err := d.checkClosed(f, w.Name); err != nil {
		return err
	}
	return d.Settings.form().claim(ctx, d, f, w)
}

// claimFolder claims a folder and asks for its entry.
func (d *Drop) claimFolder(ctx context.Context, f *drop.Folder, w watch.Item) error {
	// When this returns, the claim is durable. After a crash here the next start finds the folder in one of the two places.
	c, err := f.ClaimFolder(w.Name, d.shared.Now().Wall)
	d.endOnSyncError(err)
	if err != nil {
		return err
	}
	d.enterClaim(ctx, f, c, archive.Digest(w.Scan.Fingerprint))
	return nil
}

// checkClosed returns a [*watch.OpenError] where a program may still write to a
// file of an item in the drop folder.
func (d *Drop) checkClosed(f *drop.Folder, name string) error {
	root, err := os.OpenRoot(d.Settings.Path)
	if err != nil {
		return err
	}
	defer root.Close() // read-only
	if file := d.findOpen(f, root, name); file != "" {
		return &watch.OpenError{Path: strings.TrimPrefix(strings.TrimPrefix(file, name), "/")}
	}
	return nil
}

// claimFile claims a single file and asks for its entry.
func (d *Drop) claimFile(ctx context.Context, f *drop.Folder, w watch.Item) error {
	// When this returns, the claim is durable. After a crash here the next start finds the file in one of the two places.
	c, hasChanged, err := f.ClaimFile(w.Name, w.Scan.File, d.shared.Now().Wall)
	d.endOnSyncError(err)
	if err != nil {
		return err
	}
	// The file was watched alone; from now on the folder that was made for it is. A zero fingerprint is equal to none, so a file that
	// changed since it settled, or that cannot be looked at, settles again from its next scan on.
	var fingerprint archive.Digest
	if !hasChanged {
		if fingerprint, err = d.takeFingerprint(f, c.Key); err != nil {
			fingerprint = archive.Digest{}
			d.shared.Log.Warn("claimed file cannot be looked at yet", "key", c.Key, "err", err)
		}
	}
	d.enterClaim(ctx, f, c, fingerprint)
	return nil
}

// isPDFComplete asks of a single file whether its writer has come to its end.
func (d *Drop) isPDFComplete(_ context.Context, root *os.Root, w watch.Item) error {
	return packager.CheckFileEnd(root, w.Name)
}

// enterClaim commits the entry of a claimed folder. The folder was watched until now, with fingerprint as
// the last thing seen, but a writer may still hold its files open: it settles once more
// before it is sealed. In safe mode the ledger may have lost what became of the folder.
func (d *Drop) enterClaim(ctx context.Context, f *drop.Folder, c drop.ClaimedFolder, fingerprint archive.Digest) {
	if _, safe := d.shared.Ledger.SafeMode(); safe {
		d.enterDoubtedClaim(ctx, f, c, fingerprint)
		return
	}
	ev := d.claimedEvent(c, fingerprint)
	old, err := d.findCorrected(ctx, f, c)
	if err != nil {
		d.shared.Log.Warn("cannot tell whether a folder was dropped before", "key", c.Key, "err", err)
	}
	var resolved []ledger.Change
	if old != nil {
		ev.Supersedes = old.Key
		resolved = []ledger.Change{{Key: old.Key, Rev: old.Rev, Events: []ledger.Event{ledger.Superseded{By: c.Key}}, At: d.shared.Now()}}
		d.shared.Log.Info("dropped again", "drop", d.Settings.Name, "key", c.Key, "supersedes", old.Key)
	}
	// One commit for the new entry and the one that it corrects: after a crash before it the folder is adopted, and corrects it then.
	d.shared.EnterClaimed(c.Key, ev, resolved...)
}

// enterDoubtedClaim commits the entry of a claimed folder of which the ledger may have lost what became of it. It may have been sent: the
// archive is asked first.
func (d *Drop) enterDoubtedClaim(ctx context.Context, f *drop.Folder, c drop.ClaimedFolder, fingerprint archive.Digest) {
	is := d.Settings.ForRecovery(f)
	remains, err := is.CheckInterruptedDisposal(ctx, c.Key, d.shared.Ledger.Info().Environment)
	if err != nil { // the comparison, or the next start, tries again
		d.shared.Log.Warn("claimed folder got no entry: it cannot be read yet", "key", c.Key, "err", err)
		return
	}
	// After a crash before this commit the next start finds the claimed folder without an entry again.
	d.shared.EnterDoubted(c.Key, append([]ledger.Event{d.claimedEvent(c, fingerprint), ledger.ReconcileRequired{}}, remains...))
}

// claimedEvent is the event that opens the entry of a claimed folder.
func (h *Handle) claimedEvent(c drop.ClaimedFolder, fingerprint archive.Digest) ledger.ClaimedFolder {
	return ledger.ClaimedFolder{
		Route: cmp.Or(h.Settings.Route, ledger.Vault), Vault: h.Settings.Vault, Drop: h.Settings.Name, Folder: c.Folder, Owner: c.Owner,
		Node: ledger.Node(c.Inode), Fingerprint: fingerprint, NotBefore: h.shared.Now().Wall.Add(h.Settings.Settle),
	}
}

// isComplete asks for complete: list whether all that the list names is there.
func (d *Drop) isComplete(_ context.Context, root *os.Root, w watch.Item) error {
	folder, err := root.OpenRoot(w.Name)
	if err != nil {
		return err
	}
	defer folder.Close() // read-only
	missing, err := d.Settings.form().findMissing(d.Settings, folder)
	if _, refused := errors.AsType[*packager.Refusal](err); refused {
		return watch.ErrNoFileList // it may be half written; if it stays so, packing it says what is wrong
	}
	if err != nil || len(missing) == 0 {
		return err
	}
	text := "waits for " + strings.Join(missing[:min(len(missing), 3)], ", ")
	if more := len(missing) - 3; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	if missing[0] != "manifest-sha256.txt" { // there is no list yet
		text += ", named in its list"
	}
	return errors.New(text)
}

// ClaimAgain implements operator.Claimer.
func (h *Handle) ClaimAgain(old ledger.Entry) (ev ledger.ClaimedFolder, key archive.Key, err error) {
	f, done, err := h.HoldOpen()
	if err != nil {
		return ev, key, err
	}
	defer done()
	if err := spool.CheckMinFree(h.shared.StateDir, h.shared.MinFree); err != nil {
		return ev, key, fmt.Errorf("nothing is taken: %w", err)
	}
	// After a crash behind this claim the next start adopts the folder as one that was dropped anew.
	c, err := f.ClaimReturned(old.Dest, h.shared.Now().Wall)
	h.endOnSyncError(err)
	if err != nil {
		return ev, key, err
	}
	fingerprint, err := h.takeFingerprint(f, c.Key)
	if err != nil { // it is scanned again before it is sealed
		h.shared.Log.Warn("claimed folder cannot be looked at yet", "key", c.Key, "err", err)
	}
	ev = h.claimedEvent(c, fingerprint)
	ev.Supersedes = old.Key
	return ev, c.Key, nil
}
