package drop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"syscall"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// UnexpectedContentError says that a folder holds something that was not archived, or not so: nothing more of it is removed.
type UnexpectedContentError struct {
	Folder string // relative to the drop folder
	Path   string // inside it
	What   string // what is the matter, in words
}

func (e *UnexpectedContentError) Error() string {
	return fmt.Sprintf("%q is not removed: %q in it %s", e.Folder, e.Path, e.What)
}

// Disposal says what a kept folder may hold and what becomes of it.
type Disposal struct {
	Files []archive.File // all that was archived, and the sidecar and the like that were not; Path in NFC
	Junk  []string       // listed when the folder was packed; paths as on disk
	To    string         // folder that it is moved into, an absolute path; empty: it is deleted
}

// DisposeFolder removes the kept folder at rel (as in "_archived/2026-11/Müller 4711"), or moves it to d.To and gives the path
// where it lies then. The ledger has committed the intent.
//
// First the folder goes back into its claim, where nobody can exchange anything in it by its path any more. There everything in
// it is compared with d: a file that is not listed, or whose size or digest differs, stops it as a [*UnexpectedContentError] before anything
// is touched, and the folder goes back to rel. Files that are missing already are fine, but not where the folder has another
// inode than the one that was claimed (a drop folder that was put back from a backup): that one must hold all of them.
//
// A mount in the folder is a [*durable.MountError], its path relative to the drop folder: then nothing more of it is moved or removed. One that was there before stays where it
// is kept; one that came later stays in its claim, where nobody reaches the mount. The next call looks again. Such an error may come
// together with a [*UnexpectedContentError]: what is strange in the folder is known then, and the folder is in its claim.
//
// Called again after a crash it goes on in the claim. A folder that is gone counts as deleted; one that should have been moved
// and is not found at its destination is [ErrFolderLost].
func (f *Folder) DisposeFolder(ctx context.Context, c ClaimedFolder, rel string, d Disposal) (movedTo string, err error) {
	p, err := parsePlace(rel)
	if err != nil {
		return "", err
	}
	if p.kind != Archived {
		return "", fmt.Errorf("%q was not archived: only archived folders are disposed of", rel)
	}
	if err := f.CheckStillOurs(); err != nil {
		return "", err
	}
	claim, info, err := f.takeBack(c, p)
	if errors.Is(err, fs.ErrNotExist) {
		f.clear(c)
		return f.disposed(c, p, d)
	}
	if err != nil {
		return "", err
	}
	defer claim.Close()
	in := newInspection(ctx, rel, d)
	in.all = !f.is(info, c.Inode)
	if movedTo, err = f.dispose(in, claim, c, p, d.To); err != nil {
		return "", f.giveBack(claim, c, p, below(claimPath(c), err))
	}
	f.clear(c)
	return movedTo, nil
}

// takeBack brings the kept folder into its claim, unless it is there since a crash. The error wraps fs.ErrNotExist when it is
// in neither place.
func (f *Folder) takeBack(c ClaimedFolder, p place) (*durable.Dir, fs.FileInfo, error) {
	f.claiming.RLock() // empty claims stay until it is in
	defer f.claiming.RUnlock()
	if err := f.claimed.Mkdir(c.Key.String(), 0o700, -1); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, err
	}
	claim, err := f.keyDir(c.Key)
	if err != nil {
		return nil, nil, err
	}
	info, err := claim.Root().Lstat(c.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = f.fetch(claim, c, p)
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s/%s/%s: %w", vaultdDir, claimedDir, c.Key, ErrUnexpectedItem)
	}
	if err != nil {
		return nil, nil, errors.Join(err, claim.Close())
	}
	return claim, info, nil
}

// fetch moves the folder from where it is kept into its claim, and says what was really moved.
func (f *Folder) fetch(claim *durable.Dir, c ClaimedFolder, p place) (fs.FileInfo, error) {
	parent, err := f.walk(p.dir(), false)
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	seen, err := parent.Root().Lstat(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(err, parent.Sync())
	}
	if err != nil {
		return nil, err
	}
	other := &UnexpectedContentError{Folder: p.rel(), Path: ".", What: "is another folder than the one that was archived"}
	if !seen.IsDir() {
		return nil, other
	}
	if err := withoutMounts(parent, p.name); err != nil {
		return nil, below(p.rel(), err)
	}
	if err := moved(parent, p.name, claim, c.Folder); err != nil {
		return nil, err
	}
	info, err := claim.Root().Lstat(c.Folder)
	if err == nil && !info.IsDir() { // exchanged between look and rename
		return nil, errors.Join(other, claim.Rename(c.Folder, parent, p.name))
	}
	return info, err
}

// dispose does it with the folder in its claim.
func (f *Folder) dispose(in *inspection, claim *durable.Dir, c ClaimedFolder, p place, target string) (string, error) {
	dir, err := claim.OpenDir(c.Folder)
	if _, is := errors.AsType[*durable.MountError](err); is {
		return "", &durable.MountError{Path: "."}
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := in.folder(dir, ""); err != nil {
		return "", err
	}
	if err := in.whole(); err != nil {
		return "", err
	}
	if target != "" {
		return f.moveOut(claim, c, p, target)
	}
	return "", in.remove(claim, dir, c.Folder)
}

// giveBack puts a folder that cannot be disposed of back to where it was kept, or beside it when its name was taken meanwhile.
// Where that does not work it stays in its claim, where the next try finds it.
func (f *Folder) giveBack(claim *durable.Dir, c ClaimedFolder, p place, cause error) error {
	if errors.Is(cause, durable.ErrSync) {
		return cause
	}
	// With a mount in it the folder stays in its claim: people could delete, through the mount, what lies elsewhere.
	if err := withoutMounts(claim, c.Folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if _, known := errors.AsType[*durable.MountError](cause); known {
			return cause
		}
		return errors.Join(cause, below(claimPath(c), err))
	}
	parent, err := f.walk(p.dir(), true)
	if err != nil {
		return errors.Join(cause, err)
	}
	defer parent.Close()
	names := outNames(c, p)
	stray, final := errors.AsType[*UnexpectedContentError](cause)
	if !final {
		names = names[:1] // it is tried again: what lies elsewhere would not be found
	}
	for _, name := range names {
		err = moved(claim, c.Folder, parent, name)
		if err == nil && final {
			stray.Folder = place{p.kind, p.month, name}.rel()
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if errors.Is(err, fs.ErrNotExist) { // it is out already
		err = nil
	}
	if err == nil {
		f.clear(c)
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil // it stays in its claim
	}
	return errors.Join(cause, err)
}

// disposed answers for a folder that does not lie where it was kept.
func (f *Folder) disposed(c ClaimedFolder, p place, d Disposal) (string, error) {
	if d.To == "" {
		return "", nil
	}
	to, err := durable.Open(d.To, f.cfg.Hook)
	if err != nil {
		return "", fmt.Errorf("open %q: %w", d.To, err)
	}
	defer to.Close()
	for _, name := range outNames(c, p) {
		if info, err := to.Root().Lstat(name); err == nil && f.is(info, c.Inode) {
			return path.Join(d.To, name), to.Sync()
		}
	}
	return "", fmt.Errorf("move %q to %q: %w", p.name, d.To, ErrFolderLost)
}

// outNames are the names a folder may get where it is moved to; the second is unique, so that there is no need to record which.
func outNames(c ClaimedFolder, p place) []string {
	return []string{p.name, suffixed(p.name, " ("+c.Key.String()+")")}
}

func (f *Folder) moveOut(claim *durable.Dir, c ClaimedFolder, p place, target string) (string, error) {
	to, err := durable.Open(target, f.cfg.Hook)
	if err != nil {
		return "", fmt.Errorf("open %q: %w", target, err)
	}
	defer to.Close()
	for _, name := range outNames(c, p) {
		err = moved(claim, c.Folder, to, name)
		if err == nil {
			return path.Join(target, name), nil
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if errors.Is(err, syscall.EXDEV) {
		return "", fmt.Errorf("move %q to %q: it is another file system, where a folder cannot be moved in one step; choose a folder beside the drop folder: %w", p.name, target, err)
	}
	return "", fmt.Errorf("move %q to %q: %w", p.name, target, err)
}
