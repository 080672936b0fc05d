package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/watch"
)

// room is one drop folder at work: its watcher, its claims, and the adapter through
// which the conductor packs and moves.
type room struct {
	d       *Daemon
	cfg     Drop
	look    watch.Rules
	watcher *watch.Watcher
	clerk   *clerk

	inUse sync.RWMutex // read: somebody works in folder; write: it is closed for another

	mu     sync.Mutex
	folder *drop.Folder // nil: not open; guarded by mu
	why    error        // why it is not open; guarded by mu
}

var errNotOpened = errors.New("the drop folder was not opened yet")

func (d *Daemon) newRoom(cfg Drop) (*room, error) {
	r := &room{d: d, cfg: cfg, why: errNotOpened, look: watch.Rules{Sidecar: cfg.Rules.Sidecar, Junk: packager.Junk}}
	r.clerk = newClerk(r)
	r.cfg.Rules.Vault = cfg.Vault
	r.cfg.Rules.Fault = d.cfg.FileFault
	if faults := r.cfg.Rules.Check(); len(faults) > 0 {
		return nil, fmt.Errorf("drop %s: %s %s", cfg.Name, faults[0].Field, faults[0].Text)
	}
	var err error
	r.watcher, err = watch.New(watch.Config{
		Path: cfg.Path, Settle: cfg.Settle, Rescan: cfg.Rescan, Mode: cfg.Mode,
		Complete: watch.Complete(r.cfg.Rules.Complete), Rules: r.look, Reserved: drop.Reserved,
		IsComplete: r.isComplete, Check: r.check, Changed: r.clerk.poke, Events: d.cfg.Events,
	})
	if err != nil {
		return nil, fmt.Errorf("drop %s: %w", cfg.Name, err)
	}
	// Only what no waiting can mend ends the start: one bad drop must not keep the
	// others from working. run opens it later, and says meanwhile why it is paused.
	err = r.open()
	_, locked := errors.AsType[*drop.LockedError](err)
	_, foreign := errors.AsType[*drop.ForeignError](err)
	if locked || foreign || errors.Is(err, drop.ErrGroup) {
		return nil, err
	}
	return r, nil
}

// open opens the drop folder, once. One that worked before and has lost its mark is
// the wrong one.
func (r *room) open() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folder != nil {
		return nil
	}
	known, err := r.known()
	if err != nil {
		return err
	}
	info := r.d.ledger.Info()
	folder, err := drop.Open(drop.Config{Path: r.cfg.Path, Name: r.cfg.Name, Group: r.cfg.Group,
		LedgerID: info.ID, Environment: info.Environment, Epoch: 1, Bound: known, Fault: r.d.cfg.FileFault})
	if err != nil {
		r.why = err
		return err
	}
	if err := r.remember(); err != nil {
		return errors.Join(err, folder.Close())
	}
	r.folder, r.why = folder, nil
	return nil
}

func (r *room) marker() string {
	return filepath.Join(r.d.cfg.StateDir, "drops", archive.Sum([]byte(r.cfg.Path)).String()[:16])
}

// known reports whether this ledger worked in this drop folder before.
func (r *room) known() (bool, error) {
	_, err := os.Lstat(r.marker())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// remember notes that this ledger works in this drop folder.
func (r *room) remember() error {
	if err := os.MkdirAll(filepath.Dir(r.marker()), 0o700); err != nil {
		return fmt.Errorf("remember drop folder: %w", err)
	}
	dir, err := durable.Open(filepath.Dir(r.marker()), nil)
	if err != nil {
		return fmt.Errorf("remember drop folder: %w", err)
	}
	defer dir.Close() // synced by WriteFile
	return dir.WriteFile(filepath.Base(r.marker()), []byte(r.cfg.Path+"\n"), 0o600)
}

func (r *room) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folder == nil {
		return nil
	}
	return r.folder.Close()
}

// current returns the open folder, or why it cannot be worked in.
func (r *room) current() (*drop.Folder, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folder == nil {
		return nil, r.why
	}
	return r.folder, nil
}

// hold returns the open folder and keeps it open until done is called.
func (r *room) hold() (f *drop.Folder, done func(), err error) {
	r.inUse.RLock()
	if f, err = r.current(); err != nil {
		r.inUse.RUnlock()
		return nil, nil, err
	}
	return f, r.inUse.RUnlock, nil
}

// check is asked before every rescan and every piece of work. A folder that was lost
// may be back, mounted again and so on another device: then its mark tells.
func (r *room) check() error {
	f, done, err := r.hold()
	if errors.Is(err, errNotOpened) || errors.Is(err, errReopening) {
		return err
	}
	if err != nil {
		return r.reopen(err)
	}
	err = f.Check()
	done()
	if errors.Is(err, drop.ErrAway) {
		return r.reopen(err)
	}
	return err
}

// reopen opens the drop folder again after lost, the error that says it was away. The
// old handle goes first: it would keep a file system from being unmounted, and the lock
// from whoever opens the folder anew. While somebody still works in it nothing is done.
func (r *room) reopen(lost error) error {
	if !r.inUse.TryLock() {
		return lost
	}
	defer r.inUse.Unlock()
	r.mu.Lock()
	if r.folder != nil {
		if err := r.folder.Close(); err != nil {
			r.d.cfg.Log.Warn("lost drop folder not closed", "drop", r.cfg.Name, "err", err)
		}
		r.folder, r.why = nil, lost
	}
	r.mu.Unlock()
	if err := r.open(); err != nil {
		return err
	}
	r.d.cfg.Log.Info("drop folder is back", "drop", r.cfg.Name)
	return nil
}

func (r *room) unavailable() error { return r.check() }

// run watches the drop folder until ctx ends, opening it first where it was away.
func (r *room) run(ctx context.Context) error {
	for {
		err := r.open()
		if err == nil {
			err = r.adopt(ctx)
		}
		if err == nil {
			break
		}
		r.d.cfg.Log.Error("drop paused", "drop", r.cfg.Name, "err", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(r.cfg.Rescan, time.Minute)):
		}
	}
	err := r.watcher.Run(ctx, r.take)
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// adopt gives an entry to every claimed folder that has none: the process ended
// between the claim and the commit.
func (r *room) adopt(ctx context.Context) error {
	f, done, err := r.hold()
	if err != nil {
		return err
	}
	defer done()
	for c, err := range f.Claims() {
		if errors.Is(err, drop.ErrStrange) {
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
		if !known {
			r.enter(f, c)
		}
	}
	return nil
}

// take claims a settled folder and opens its entry. The claim is durable before the
// entry is asked for; if we die in between, the next start adopts it.
func (r *room) take(ctx context.Context, w watch.Folder) error {
	left := free(r.d.spool.dir)
	tight := left >= 0 && left < r.d.spool.minFree
	if r.clerk.disk(tight, r.d.cfg.Now().Wall); tight {
		return fmt.Errorf("not taken while the state disk has less than min_free: %s left", megabytes(left))
	}
	err := r.claim(w.Name)
	_, gone := os.Lstat(filepath.Join(r.cfg.Path, w.Name))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrSync) || !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	// A network file system may report the failure of a rename that it has done; nobody
	// else would find the folder before the next start.
	return errors.Join(err, r.adopt(ctx))
}

func (r *room) claim(name string) error {
	f, done, err := r.hold()
	if err != nil {
		return err
	}
	defer done()
	c, err := f.Claim(name, r.d.cfg.Now().Wall)
	r.distrust(err)
	if err != nil {
		return err
	}
	r.enter(f, c)
	return nil
}

// enter commits the entry of a claimed folder. It was observed until now, but a
// writer may still hold its files open: it settles once more before it is sealed.
func (r *room) enter(f *drop.Folder, c drop.Claimed) {
	look, err := r.lookAt(f, c.Key)
	if err != nil {
		r.d.cfg.Log.Warn("claimed folder cannot be looked at yet", "key", c.Key, "err", err)
	}
	old, err := r.corrects(f, c)
	if err != nil {
		r.d.cfg.Log.Warn("cannot tell whether a folder was dropped before", "key", c.Key, "err", err)
	}
	ev := ledger.ClaimedFolder{
		Route: ledger.Vault, Vault: r.cfg.Vault, Drop: r.cfg.Name, Folder: c.Folder, Owner: c.Owner,
		Node: ledger.Node(c.Node), Look: look, NotBefore: r.d.cfg.Now().Wall.Add(r.cfg.Settle),
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
	look, err := r.look.Take(dir.Root(), ".")
	return archive.Digest(look.Fingerprint), err
}

// isComplete asks for complete: list whether all that the list names is there.
func (r *room) isComplete(_ context.Context, root *os.Root, w watch.Folder) error {
	folder, err := root.OpenRoot(w.Name)
	if err != nil {
		return err
	}
	defer folder.Close() // read-only
	missing, err := packager.Complete(folder, r.cfg.Rules)
	if _, refused := errors.AsType[*packager.Refusal](err); refused {
		return nil // nothing to wait for: packing it says what is wrong
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
