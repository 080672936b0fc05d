package daemon

import (
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
	"vaultd/internal/recovery"
	"vaultd/internal/watch"
)

// adopt gives an entry to every claimed folder that has none: the process ended
// between the claim and the commit.
func (r *room) adopt(ctx context.Context) error {
	f, done, err := r.hold()
	if err != nil {
		return err
	}
	defer done()
	known := func(k archive.Key) bool {
		e, is, err := r.d.ledger.Entry(k)
		return is && e.Source == ledger.Claimed && err == nil // what has left may have left its claim empty
	}
	for c, err := range f.UnknownClaims(known) {
		if errors.Is(err, drop.ErrUnexpectedItem) {
			r.d.cfg.Log.Error("claimed area holds something strange; it stays untouched", "drop", r.cfg.Name, "err", err)
			continue
		}
		if err != nil {
			return fmt.Errorf("look for claimed folders: %w", err)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, known, err := r.d.ledger.Entry(c.Key)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		if err := f.SyncClaim(c); err != nil {
			return fmt.Errorf("adopt a claimed folder: %w", err)
		}
		// A drop folder that was away when the ledger was compared with the archive may
		// come back with claims of which the ledger has lost what became of them.
		look, err := r.lookAt(f, c.Key)
		if err != nil {
			r.d.cfg.Log.Warn("claimed folder cannot be looked at yet", "key", c.Key, "err", err)
		}
		r.enter(ctx, f, c, look, r.d.ledger.LastAlarm().After(c.Key.Time()))
	}
	return nil
}

// take claims a settled folder and opens its entry. The claim is durable before the
// entry is asked for; if we die in between, the next start adopts it.
func (r *room) take(ctx context.Context, w watch.Folder) error {
	if why := r.d.held(); why != "" {
		return fmt.Errorf("%w: %s", watch.ErrHeld, why)
	}
	if err := r.d.disk.CheckSpace(); err != nil {
		return err
	}
	err := r.claim(ctx, w)
	_, gone := os.Lstat(filepath.Join(r.cfg.Path, w.Name))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrSync) || !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	// A network file system may report the failure of a rename that it has done; nobody
	// else would find the folder before the next start.
	return errors.Join(err, r.adopt(ctx))
}

func (r *room) claim(ctx context.Context, w watch.Folder) error {
	f, done, err := r.hold()
	if err != nil {
		return err
	}
	defer done()
	c, err := f.ClaimFolder(w.Name, r.d.cfg.Now().Wall)
	r.distrust(err)
	if err != nil {
		return err
	}
	r.enter(ctx, f, c, archive.Digest(w.Scan.Fingerprint), false)
	return nil
}

// enter commits the entry of a claimed folder. It was observed until now, with look as
// the last thing seen, but a writer may still hold its files open: it settles once more
// before it is sealed.
// In safe mode, and where it is doubtful, the ledger may have lost what became of it.
func (r *room) enter(ctx context.Context, f *drop.Folder, c drop.ClaimedFolder, look archive.Digest, doubtful bool) {
	old, err := r.corrects(f, c)
	if err != nil {
		r.d.cfg.Log.Warn("cannot tell whether a folder was dropped before", "key", c.Key, "err", err)
	}
	ev := ledger.ClaimedFolder{
		Route: ledger.Vault, Vault: r.cfg.Vault, Drop: r.cfg.Name, Folder: c.Folder, Owner: c.Owner,
		Node: ledger.Node(c.Inode), Look: look, NotBefore: r.d.cfg.Now().Wall.Add(r.cfg.Settle),
	}
	if _, safe := r.d.ledger.SafeMode(); safe || doubtful {
		is := recovery.Drop{Name: r.cfg.Name, Vault: r.cfg.Vault, Rules: r.cfg.Rules, Folder: f}
		remains, err := is.CheckInterruptedDisposal(ctx, c.Key, r.d.ledger.Info().Environment)
		if err != nil { // the comparison, or the next start, tries again
			r.d.cfg.Log.Warn("claimed folder got no entry: it cannot be read yet", "key", c.Key, "err", err)
			return
		}
		r.d.doubted(c.Key, append([]ledger.Event{ev, ledger.ReconcileRequired{}}, remains...))
		return
	}
	var resolved []ledger.Change
	if old != nil {
		ev.Supersedes = old.Key
		resolved = []ledger.Change{{Key: old.Key, Rev: old.Rev, Events: []ledger.Event{ledger.Superseded{By: c.Key}}, At: r.d.cfg.Now()}}
		r.d.cfg.Log.Info("dropped again", "drop", r.cfg.Name, "key", c.Key, "supersedes", old.Key)
	}
	r.d.conductor.Claimed(c.Key, ev, resolved...)
}

func (r *room) lookAt(f *drop.Folder, k archive.Key) (archive.Digest, error) {
	dir, _, err := f.OpenClaimed(k)
	if err != nil {
		return archive.Digest{}, err
	}
	defer dir.Close() // read-only
	look, err := r.look.ScanFolder(dir.Root(), ".")
	return archive.Digest(look.Fingerprint), err
}

// isComplete asks for complete: list whether all that the list names is there.
func (r *room) isComplete(_ context.Context, root *os.Root, w watch.Folder) error {
	folder, err := root.OpenRoot(w.Name)
	if err != nil {
		return err
	}
	defer folder.Close() // read-only
	missing, err := packager.FindMissingFiles(folder, r.cfg.Rules)
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
