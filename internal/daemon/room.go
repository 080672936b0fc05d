package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/packager"
	"vaultd/internal/statedir"
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
	told   string       // why it cannot be worked in, as it was logged last; guarded by mu
}

var errNotOpened = errors.New("the drop folder is not open yet; if that lasts, its file server does not answer")

func (d *Daemon) newRoom(cfg Drop) (*room, error) {
	r := &room{d: d, cfg: cfg, why: errNotOpened, look: watch.Rules{Sidecar: cfg.Rules.Sidecar, IsJunk: packager.IsJunkName}}
	r.clerk = newClerk(r)
	r.probe = r.newProbe()
	r.cfg.Rules.Vault = cfg.Vault
	r.cfg.Rules.CutOffPatience, r.cfg.Rules.Now = 10*cfg.Settle, func() time.Time { return d.cfg.Now().Wall }
	if faults := r.cfg.Rules.FindFaults(); len(faults) > 0 {
		return nil, fmt.Errorf("drop %s: %s %s", cfg.Name, faults[0].Field, faults[0].Text)
	}
	var err error
	r.watcher, err = watch.New(watch.Config{
		Path: cfg.Path, Settle: cfg.Settle, Rescan: cfg.Rescan, Mode: cfg.Mode,
		Complete: watch.Completeness(r.cfg.Rules.Complete), Rules: r.look, IsReserved: drop.IsOwnName,
		IsComplete: r.isComplete, CheckDropFolder: r.check, OnChange: r.clerk.poke, OpenEvents: d.cfg.Events, FirstSeen: d.scans.seen(cfg),
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
		LedgerID: m.LedgerID, Environment: m.Environment, Epoch: m.Epoch, HasWorkedHere: known, Hook: r.d.cfg.FileFault})
	r.d.takenOver(err)
	if err != nil {
		return nil, err
	}
	if err := r.remember(); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

func (r *room) marker() string { return markerOf(r.d.cfg.StateDir, r.cfg.Path) }

func markerOf(stateDir, path string) string {
	return filepath.Join(stateDir, statedir.DropsFolder, archive.Sum([]byte(path)).String()[:16])
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
	// One that is there stays as it is: its time of change says when vaultd last looked.
	if there, err := os.ReadFile(r.marker()); err == nil && string(there) == r.cfg.Path+"\n" {
		return nil
	}
	dir, err := statedir.OpenFolder(r.d.cfg.StateDir, statedir.DropsFolder, nil)
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
	err = f.CheckStillOurs()
	done()
	if _, foreign := errors.AsType[*drop.ForeignError](err); foreign {
		return r.yield(err)
	}
	if errors.Is(err, drop.ErrUnavailable) {
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

// tellPause logs why the drop folder cannot be worked in, once for each reason, and that it can be again: err is nil then.
func (r *room) tellPause(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	before := r.told
	r.told = text
	r.mu.Unlock()
	log := r.d.cfg.Log.With("drop", r.cfg.Name)
	readOnly, is := errors.AsType[*drop.ReadOnlyError](err)
	switch {
	case text == before:
	case err == nil:
		log.Info("drop works again")
	case is:
		log.Error("drop paused", "err", err, "do", readOnly.Advice())
	default:
		log.Error("drop paused", "err", err)
	}
}

// run watches the drop folder until ctx ends, opening it first where it was away.
func (r *room) run(ctx context.Context) error {
	select {
	case <-r.d.recalled: // whatever is claimed may put a rejected folder right
	case <-ctx.Done():
		return nil
	}
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
		r.tellPause(err)
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
