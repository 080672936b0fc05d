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
	"vaultd/internal/recovery"
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
	probe   *probe

	inUse sync.RWMutex // read: somebody works in folder; write: it is closed for another

	opening sync.Mutex // held while the folder is being opened, which may hang

	mu     sync.Mutex
	folder *drop.Folder // nil: not open; guarded by mu
	why    error        // why it is not open; guarded by mu
	closed bool         // for good; guarded by mu
}

var errNotOpened = errors.New("the drop folder is not open yet; if that lasts, its file server does not answer")

func (d *Daemon) newRoom(cfg Drop) (*room, error) {
	r := &room{d: d, cfg: cfg, why: errNotOpened, look: watch.Rules{Sidecar: cfg.Rules.Sidecar, Junk: packager.Junk}}
	r.clerk = newClerk(r)
	r.probe = r.newProbe()
	r.cfg.Rules.Vault = cfg.Vault
	r.cfg.Rules.Fault = d.cfg.FileFault
	r.cfg.Rules.Patience, r.cfg.Rules.Now = 10*cfg.Settle, func() time.Time { return d.cfg.Now().Wall }
	if faults := r.cfg.Rules.Check(); len(faults) > 0 {
		return nil, fmt.Errorf("drop %s: %s %s", cfg.Name, faults[0].Field, faults[0].Text)
	}
	var err error
	r.watcher, err = watch.New(watch.Config{
		Path: cfg.Path, Settle: cfg.Settle, Rescan: cfg.Rescan, Mode: cfg.Mode,
		Complete: watch.Complete(r.cfg.Rules.Complete), Rules: r.look, Reserved: drop.Own,
		IsComplete: r.isComplete, Check: r.check, Changed: r.clerk.poke, Events: d.cfg.Events,
	})
	if err != nil {
		return nil, fmt.Errorf("drop %s: %w", cfg.Name, err)
	}
	return r, nil
}

// open opens the drop folder, once. One that worked before and has lost its mark is
// the wrong one. It may hang for as long as a file server does.
func (r *room) open() error {
	r.opening.Lock()
	defer r.opening.Unlock()
	return r.openNow()
}

// tryOpen is open for a loop, which must come round: where the folder is just being
// opened, it does not wait for that.
func (r *room) tryOpen() error {
	if !r.opening.TryLock() {
		return errNotOpened
	}
	defer r.opening.Unlock()
	return r.openNow()
}

// openNow is open for whoever holds opening.
func (r *room) openNow() error {
	if err := r.opened(); err == nil || errors.Is(err, errReopening) {
		return err
	}
	folder, err := r.openFolder()
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err != nil:
		r.why = err
		return err
	case r.closed: // nobody waited for it
		return errors.Join(errReopening, folder.Close())
	}
	r.folder, r.why = folder, nil
	return nil
}

// opened returns why the folder is not open; nil: it is.
func (r *room) opened() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return errReopening
	case r.folder == nil:
		return errors.Join(r.why, errNotOpened)
	}
	return nil
}

func (r *room) openFolder() (*drop.Folder, error) {
	known, err := r.known()
	if err != nil {
		return nil, err
	}
	// The mark is looked at before the lock: whoever took the folder over needs that.
	m := r.d.mark()
	err = drop.CheckMark(r.cfg.Path, m)
	if _, foreign := errors.AsType[*drop.ForeignError](err); foreign {
		r.d.takenOver(err)
		return nil, fmt.Errorf("open drop %s: %w", r.cfg.Name, err)
	}
	folder, err := drop.Open(drop.Config{Path: r.cfg.Path, Name: r.cfg.Name, Group: r.cfg.Group,
		LedgerID: m.LedgerID, Environment: m.Environment, Epoch: m.Epoch, Bound: known, Fault: r.d.cfg.FileFault})
	r.d.takenOver(err)
	if err != nil {
		return nil, err
	}
	if err := r.remember(); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
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
	r.closed = true
	if r.folder == nil {
		return nil
	}
	err := r.folder.Close()
	r.folder, r.why = nil, errReopening
	return err
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
	if _, foreign := errors.AsType[*drop.ForeignError](err); foreign {
		return r.yield(err)
	}
	if errors.Is(err, drop.ErrAway) {
		return r.reopen(err)
	}
	return err
}

// reopen opens the drop folder again after lost, the error that says it was away. While
// somebody still works in it, or opens it, nothing is done.
func (r *room) reopen(lost error) error {
	if !r.opening.TryLock() {
		return lost
	}
	defer r.opening.Unlock()
	if !r.letGo(lost) {
		return lost
	}
	if err := r.openNow(); err != nil {
		return err
	}
	r.d.cfg.Log.Info("drop folder is back", "drop", r.cfg.Name)
	return nil
}

// letGo closes the handle of a folder that cannot be worked in: it would keep a file
// system from being unmounted, and the lock from whoever opens the folder anew.
func (r *room) letGo(why error) bool {
	if !r.inUse.TryLock() {
		return false
	}
	defer r.inUse.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.folder != nil {
		if err := r.folder.Close(); err != nil {
			r.d.cfg.Log.Warn("lost drop folder not closed", "drop", r.cfg.Name, "err", err)
		}
		r.folder, r.why = nil, why
	}
	return true
}

// yield leaves the drop folder to whoever it belongs to now.
func (r *room) yield(foreign error) error {
	r.d.takenOver(foreign)
	if r.letGo(foreign) {
		r.d.cfg.Log.Error("the drop folder belongs to another vaultd now; nothing more is taken or sent here", "drop", r.cfg.Name, "err", foreign)
		r.clerk.poke()
	}
	return foreign
}

// run watches the drop folder until ctx ends, opening it first where it was away.
func (r *room) run(ctx context.Context) error {
	for {
		err := r.tryOpen()
		if err == nil {
			err = r.adopt(ctx)
		}
		if err == nil {
			break
		}
		if errors.Is(err, durable.ErrSync) {
			return err
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
	alarm := sync.OnceValues(r.d.lastAlarm)
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
		if known {
			continue
		}
		if err := f.Secure(c); err != nil {
			return fmt.Errorf("adopt a claimed folder: %w", err)
		}
		last, err := alarm()
		if err != nil {
			return err
		}
		// A drop folder that was away when the ledger was compared with the archive may
		// come back with claims of which the ledger has lost what became of them.
		r.enter(ctx, f, c, c.Key.Time().Before(last))
	}
	return nil
}

// take claims a settled folder and opens its entry. The claim is durable before the
// entry is asked for; if we die in between, the next start adopts it.
func (r *room) take(ctx context.Context, w watch.Folder) error {
	if why := r.d.held(); why != "" {
		return fmt.Errorf("%w: %s", watch.ErrHeld, why)
	}
	if err := r.d.disk.room(); err != nil {
		return err
	}
	err := r.claim(ctx, w.Name)
	_, gone := os.Lstat(filepath.Join(r.cfg.Path, w.Name))
	if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, durable.ErrSync) || !errors.Is(gone, fs.ErrNotExist) {
		return err
	}
	// A network file system may report the failure of a rename that it has done; nobody
	// else would find the folder before the next start.
	return errors.Join(err, r.adopt(ctx))
}

func (r *room) claim(ctx context.Context, name string) error {
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
	r.enter(ctx, f, c, false)
	return nil
}

// enter commits the entry of a claimed folder. It was observed until now, but a
// writer may still hold its files open: it settles once more before it is sealed.
// In safe mode, and where it is doubtful, the ledger may have lost what became of it.
func (r *room) enter(ctx context.Context, f *drop.Folder, c drop.Claimed, doubtful bool) {
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
	if _, safe := r.d.ledger.Safe(); safe || doubtful {
		is := recovery.Drop{Name: r.cfg.Name, Vault: r.cfg.Vault, Rules: r.cfg.Rules, Folder: f}
		remains, err := is.Remains(ctx, c.Key, r.d.ledger.Info().Environment)
		if err != nil { // the comparison, or the next start, tries again
			r.d.cfg.Log.Warn("claimed folder got no entry: it cannot be read yet", "key", c.Key, "err", err)
			return
		}
		r.d.doubted(c.Key, append([]ledger.Event{ev, ledger.Doubted{}}, remains...))
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
		return watch.ErrUntold // it may be half written; if it stays so, packing it says what is wrong
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
