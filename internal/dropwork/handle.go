package dropwork

import (
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
	"vaultd/internal/statedir"
	"vaultd/internal/watch"
)

// Handle is a drop folder that is opened when it is there, closed while it is away, and never worked on while it is another vaultd's.
type Handle struct {
	Settings  Settings
	shared    *Shared
	scanRules watch.Rules

	inUse sync.RWMutex // read: somebody works in folder; write: it is closed for another

	opening sync.Mutex // held while the folder is being opened, which may hang

	mu        sync.Mutex
	folder    *drop.Folder // nil: not open; guarded by mu
	why       error        // why it is not open; guarded by mu
	closed    bool         // for good; guarded by mu
	loggedWhy string       // why it cannot be worked in, as it was logged last; guarded by mu
}

var (
	errNotOpened = errors.New("the drop folder is not open yet; if that lasts, its file server does not answer")
	errReopening = errors.New("the configuration is being reloaded; try again in a moment")
)

// NewHandle returns the handle of a drop folder, which is not open yet.
func NewHandle(settings Settings, shared *Shared) *Handle {
	form := settings.form()
	rules := watch.Rules{Sidecar: form.sidecar(settings), IsJunk: form.isJunk, Opens: shared.Opens}
	return &Handle{Settings: settings, shared: shared, why: errNotOpened, scanRules: rules}
}

// Open opens the drop folder, once. A folder that vaultd worked in before and that has lost its mark is
// the wrong one: that is an error. Open may hang for as long as a file server does.
func (h *Handle) Open() error {
	h.opening.Lock()
	defer h.opening.Unlock()
	return h.openHolding()
}

// openWithoutWaiting is Open for a loop, which must go on: while somebody else opens the folder, it returns
// an error at once.
func (h *Handle) openWithoutWaiting() error {
	if !h.opening.TryLock() {
		return errNotOpened
	}
	defer h.opening.Unlock()
	return h.openHolding()
}

// openHolding is Open for whoever holds opening.
func (h *Handle) openHolding() error {
	if err := h.checkOpened(); err == nil || errors.Is(err, errReopening) {
		return err
	}
	folder, err := h.openFolder()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case err != nil:
		h.why = err
		return err
	case h.closed: // the handle was closed while the folder was being opened
		return errors.Join(errReopening, folder.Close())
	}
	h.folder, h.why = folder, nil
	return nil
}

const (
	lockedPatience = probeEvery + 15*time.Second // for a vaultd that was taken over to let a drop folder go
	lockRetry      = 200 * time.Millisecond
)

// OpenForStart is Open for a start. When another vaultd has locked the folder and this one took the folder over, it waits
// a while: the other one closes the folder when it reads the new mark.
func (h *Handle) OpenForStart() error {
	giveUp := time.NewTimer(lockedPatience)
	defer giveUp.Stop()
	retry := time.NewTicker(lockRetry)
	defer retry.Stop()
	for {
		err := h.Open()
		if _, locked := errors.AsType[*drop.LockedError](err); !locked || h.shared.Takeover.Mark().Epoch < 2 { // nobody was ever taken over
			return err
		}
		select {
		case <-giveUp.C:
			return err
		case <-retry.C:
		}
	}
}

// checkOpened returns why the folder is not open; nil: it is.
func (h *Handle) checkOpened() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return errReopening
	case h.folder == nil:
		return errors.Join(h.why, errNotOpened)
	}
	return nil
}

func (h *Handle) openFolder() (*drop.Folder, error) {
	known, err := h.isKnown()
	if err != nil {
		return nil, err
	}
	// The mark is read before the lock is taken: another vaultd that took the folder over may hold the lock, and its mark says so.
	m := h.shared.Takeover.Mark()
	err = drop.CheckMark(h.Settings.Path, m)
	if _, foreign := errors.AsType[*drop.ForeignError](err); foreign {
		h.shared.Takeover.NoteForeignMark(err)
		return nil, fmt.Errorf("open drop %s: %w", h.Settings.Name, err)
	}
	// After a crash here the mark is the former one, the new one, or missing. The next start writes a missing one, because the marker
	// does not exist yet.
	folder, err := drop.Open(drop.Config{Path: h.Settings.Path, Name: h.Settings.Name, Group: h.Settings.Group, AcceptsMountModes: h.Settings.AcceptsMountModes, TakesFiles: h.Settings.form().takesFiles(), Keeps: h.Settings.form().keeps(),
		LedgerID: m.LedgerID, Environment: m.Environment, Epoch: m.Epoch, ReceiptKeys: m.ReceiptKeys, HasWorkedHere: known, Hook: h.shared.FileFault})
	h.shared.Takeover.NoteForeignMark(err)
	if err != nil {
		return nil, err
	}
	// The marker comes after the mark in the drop folder: a folder that is known and bears no mark is another one.
	if err := h.writeMarker(); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

func (h *Handle) markerPath() string { return markerPathOf(h.shared.StateDir, h.Settings.Path) }

func markerPathOf(stateDir, path string) string {
	return filepath.Join(stateDir, statedir.DropsFolder, archive.Sum([]byte(path)).String()[:16])
}

// isKnown reports whether this ledger worked in this drop folder before.
func (h *Handle) isKnown() (bool, error) {
	_, err := os.Lstat(h.markerPath())
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// writeMarker notes that this ledger works in this drop folder.
func (h *Handle) writeMarker() error {
	// A marker that is there is not written again: its time of change says when vaultd last scanned the folder.
	if there, err := os.ReadFile(h.markerPath()); err == nil && string(there) == h.Settings.Path+"\n" {
		return nil
	}
	dir, err := statedir.OpenFolder(h.shared.StateDir, statedir.DropsFolder, nil)
	if err != nil {
		return fmt.Errorf("remember drop folder: %w", err)
	}
	defer dir.Close() // synced by WriteFile
	// A crash before this leaves the folder unknown: the next start opens it as one that was never worked in, and marks it.
	return dir.WriteFile(filepath.Base(h.markerPath()), []byte(h.Settings.Path+"\n"), 0o600)
}

// Close closes the drop folder for good.
func (h *Handle) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.folder == nil {
		return nil
	}
	err := h.folder.Close()
	h.folder, h.why = nil, errReopening
	return err
}

// Current returns the open folder, or why it cannot be worked in.
func (h *Handle) Current() (*drop.Folder, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.folder == nil {
		return nil, h.why
	}
	return h.folder, nil
}

// HoldOpen returns the open folder and keeps it open until done is called.
func (h *Handle) HoldOpen() (f *drop.Folder, done func(), err error) {
	h.inUse.RLock()
	if f, err = h.Current(); err != nil {
		h.inUse.RUnlock()
		return nil, nil, err
	}
	return f, h.inUse.RUnlock, nil
}

// CheckUsable reads the mark of the folder and returns why the folder cannot be
// worked in now. It is called before each claim and each other piece of work;
// whoever only shows the state uses the last result of the probe. It opens a
// folder that was away again when it is back: the folder may be mounted again,
// on another device, and its mark says whose it is.
func (h *Handle) CheckUsable() error {
	f, done, err := h.HoldOpen()
	if errors.Is(err, errNotOpened) || errors.Is(err, errReopening) {
		return err
	}
	if err != nil {
		return h.reopenFolder(err)
	}
	err = f.CheckStillOurs()
	done()
	if _, foreign := errors.AsType[*drop.ForeignError](err); foreign {
		return h.leaveToOwner(err)
	}
	if errors.Is(err, drop.ErrUnavailable) {
		return h.reopenFolder(err)
	}
	return err
}

// reopenFolder opens the drop folder again after lost, the error of a folder that was away. It does nothing while
// somebody still works in it, or opens it.
func (h *Handle) reopenFolder(lost error) error {
	if !h.opening.TryLock() {
		return lost
	}
	defer h.opening.Unlock()
	if !h.closeForNow(lost) {
		return lost
	}
	if err := h.openHolding(); err != nil {
		return err
	}
	h.shared.Log.Info("drop folder is back", "drop", h.Settings.Name)
	return nil
}

// closeForNow closes the handle of a folder that cannot be worked in: it would keep a file
// system from being unmounted, and the lock from whoever opens the folder anew.
func (h *Handle) closeForNow(why error) bool {
	if !h.inUse.TryLock() {
		return false
	}
	defer h.inUse.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.folder != nil {
		if err := h.folder.Close(); err != nil {
			h.shared.Log.Warn("lost drop folder not closed", "drop", h.Settings.Name, "err", err)
		}
		h.folder, h.why = nil, why
	}
	return true
}

// leaveToOwner leaves the drop folder to whoever it belongs to now.
func (h *Handle) leaveToOwner(foreign error) error {
	h.shared.Takeover.NoteForeignMark(foreign)
	if h.closeForNow(foreign) {
		h.shared.Log.Error("the drop folder belongs to another vaultd now; nothing more is taken or sent here", "drop", h.Settings.Name, "err", foreign)
		h.shared.OnChange(h.Settings.Name)
	}
	return foreign
}

// advisedError is an error that says what an administrator should do.
type advisedError interface {
	error
	Advice() string
}

// logPause logs why the drop folder cannot be worked in, once for each reason, and that it can be again: err is nil then.
func (h *Handle) logPause(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	h.mu.Lock()
	before := h.loggedWhy
	h.loggedWhy = text
	h.mu.Unlock()
	log := h.shared.Log.With("drop", h.Settings.Name)
	advised, is := errors.AsType[advisedError](err)
	switch {
	case text == before:
	case err == nil:
		log.Info("drop works again")
	case is:
		log.Error("drop paused", "err", err, "do", advised.Advice())
	default:
		log.Error("drop paused", "err", err)
	}
}

// endOnSyncError ends the process where nobody knows what is on disk: to try again on what
// the kernel has in memory would only look like a success.
func (h *Handle) endOnSyncError(err error) {
	if errors.Is(err, durable.ErrSync) {
		h.shared.EndProcess(fmt.Errorf("drop %s: %w", h.Settings.Name, err))
	}
}

// takeFingerprint scans the claimed folder of k and returns its fingerprint.
func (h *Handle) takeFingerprint(f *drop.Folder, k archive.Key) (archive.Digest, error) {
	dir, _, err := f.OpenClaimed(k)
	if err != nil {
		return archive.Digest{}, err
	}
	defer dir.Close() // read-only
	scan, err := h.scanRules.ScanFolder(dir.Root(), ".")
	return archive.Digest(scan.Fingerprint), err
}

// findOpen returns the path of a file in the folder or single file name in root
// to which a program may still write; empty: none is known.
func (h *Handle) findOpen(f *drop.Folder, root *os.Root, name string) string {
	file, err := f.FindOpen(root, name, h.scanRules.IsJunk)
	if errors.Is(err, drop.ErrNotAsked) {
		// What this does not know either is taken once it did not change for the settle time.
		return h.scanRules.Opens.FindOpen(root, name, h.scanRules.IsJunk)
	}
	return file
}

// IsAway reports whether the drop folder was found to be away, and waits to be opened. While
// it is being opened nobody can tell, and an open that hangs is no wait.
func (h *Handle) IsAway() bool {
	if !h.opening.TryLock() {
		return false
	}
	defer h.opening.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.folder == nil && h.why != nil
}
