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

// UnexpectedContentError says that a folder holds something that was not archived, or not in this form. Nothing more of the
// folder is removed.
type UnexpectedContentError struct {
	Folder string // relative to the drop folder
	Path   string // inside it
	What   string // what is the matter, in words
}

func (e *UnexpectedContentError) Error() string {
	return fmt.Sprintf("%q is not removed: %q in it %s", e.Folder, e.Path, e.What)
}

// Disposal says what a kept folder may hold and what happens to it.
type Disposal struct {
	Files []archive.File // all that was archived, and the sidecar and the like, which were not; Path in NFC
	Junk  []string       // listed when the folder was packed; paths as on disk
	To    string         // the folder that it is moved into, an absolute path; empty: it is deleted
	Done  string         // what was done with it, as a word in what people read; empty: archived

}

// DisposeFolder deletes the kept folder at rel (as in "_archived/2026-11/Müller 4711"), or moves it to d.To and returns its
// new path. The ledger has committed the intent before.
//
// First the folder goes back into its claim, where people cannot reach it by its path. There all that lies in it is compared
// with d. A file that is not listed, or has another size or digest, ends the disposal with an [*UnexpectedContentError] before
// anything is touched, and the folder goes back to rel. A file that is missing is no fault. But a folder with another inode
// than the one that was claimed (the drop folder was put back from a backup) must hold all of d.Files.
//
// A mount in the folder is a [*durable.MountError] with a path relative to the drop folder: nothing more of the folder is moved
// or removed. When the mount was there before, the folder stays where it is kept. When it came later, the folder stays in its
// claim, where people cannot reach the mount. The next call looks again. The error may also hold an [*UnexpectedContentError].
//
// After a crash the same call goes on in the claim. A folder that is gone counts as deleted. A folder that should have been
// moved and is not found at its destination is [ErrFolderLost].
func (f *Folder) DisposeFolder(ctx context.Context, c ClaimedFolder, rel string, d Disposal) (movedTo string, err error) {
	p, err := parsePlace(rel)
	if err != nil {
		return "", err
	}
	if !p.kind.isKept() {
		return "", fmt.Errorf("%q is not kept: only archived and delivered folders are disposed of", rel)
	}
	if err := f.CheckStillOurs(); err != nil {
		return "", err
	}
	claim, info, err := f.moveIntoClaim(c, p)
	if errors.Is(err, fs.ErrNotExist) {
		f.removeEmptyClaim(c.Key)
		return f.confirmDisposed(c, p, d)
	}
	if err != nil {
		return "", err
	}
	defer claim.Close()
	if movedTo, err = f.disposeInClaim(newInspection(ctx, rel, d), claim, info, c, p, d.To); err != nil {
		return "", f.returnToKept(claim, c, p, durable.PrefixMountPath(claimPath(c), err))
	}
	f.removeEmptyClaim(c.Key)
	return movedTo, nil
}

// moveIntoClaim moves the kept folder into its claim, unless it is there since a crash, and describes what lies in the claim
// then. The error wraps fs.ErrNotExist when the folder is in neither place.
func (f *Folder) moveIntoClaim(c ClaimedFolder, p place) (*durable.Dir, fs.FileInfo, error) {
	// The lock keeps the empty claim from being removed by readClaim until the folder is in it.
	f.claiming.RLock()
	defer f.claiming.RUnlock()
	// A crash after this mkdir leaves an empty claim, which the next start removes.
	if err := f.claimed.Mkdir(c.Key.String(), 0o700, -1); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, err
	}
	claim, err := f.openClaimDir(c.Key)
	if err != nil {
		return nil, nil, err
	}
	info, err := claim.Root().Lstat(c.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		info, err = f.fetchKept(claim, c, p)
	}
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s/%s/%s: %w", vaultdDir, claimedDir, c.Key, ErrUnexpectedItem)
	}
	if err != nil {
		return nil, nil, errors.Join(err, claim.Close())
	}
	return claim, info, nil
}

// fetchKept moves the folder from where it is kept into its claim, and describes what was moved.
func (f *Folder) fetchKept(claim *durable.Dir, c ClaimedFolder, p place) (fs.FileInfo, error) {
	parent, err := f.openPath(p.parents())
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	entry, err := parent.Root().Lstat(p.name)
	if errors.Is(err, fs.ErrNotExist) {
		// It was disposed of before a crash, or people took it away. Sync: that may not have reached the disk, and the caller records
		// it now.
		return nil, errors.Join(err, parent.Sync())
	}
	if err != nil {
		return nil, err
	}
	other := &UnexpectedContentError{Folder: p.rel(), Path: ".", What: "is another folder than the one that was " + p.kind.doneWord()}
	if !entry.IsDir() {
		return nil, other
	}
	if err := checkNoMounts(parent, p.name); err != nil {
		return nil, durable.PrefixMountPath(p.rel(), err)
	}
	// A crash after this rename leaves the folder in its claim, where the next call goes on.
	if err := moveEntry(parent, p.name, claim, c.Folder); err != nil {
		return nil, err
	}
	info, err := claim.Root().Lstat(c.Folder)
	if err == nil && !info.IsDir() {
		// Somebody exchanged the folder between the look and the rename: what was moved goes back.
		return nil, errors.Join(other, claim.Rename(c.Folder, parent, p.name))
	}
	return info, err
}

// disposeInClaim compares the folder in its claim with what was archived, then moves or removes it. info describes the folder.
func (f *Folder) disposeInClaim(in *inspection, claim *durable.Dir, info fs.FileInfo, c ClaimedFolder, p place, target string) (string, error) {
	dir, err := claim.OpenDir(c.Folder)
	if _, is := errors.AsType[*durable.MountError](err); is {
		return "", &durable.MountError{Path: "."}
	}
	if err != nil {
		return "", err
	}
	defer dir.Close()
	if err := in.inspectDir(dir, ""); err != nil {
		return "", err
	}
	if !f.isFolder(info, c.Inode) {
		if err := in.checkComplete(); err != nil {
			return "", err
		}
	}
	if target != "" {
		return f.moveToTarget(claim, c, p, target)
	}
	return "", in.removeFolder(claim, dir, c.Folder)
}

// returnToKept puts a folder that cannot be disposed of back to where it was kept, or beside it when another folder took its
// name. When that fails the folder stays in its claim, where the next call finds it. It returns cause and its own errors.
func (f *Folder) returnToKept(claim *durable.Dir, c ClaimedFolder, p place, cause error) error {
	if errors.Is(cause, durable.ErrSync) {
		// The process stops: nothing more is moved.
		return cause
	}
	// A folder with a mount stays in its claim: through the mount people could delete what lies elsewhere.
	if err := checkNoMounts(claim, c.Folder); err != nil && !errors.Is(err, fs.ErrNotExist) {
		if _, known := errors.AsType[*durable.MountError](cause); known {
			return cause
		}
		return errors.Join(cause, durable.PrefixMountPath(claimPath(c), err))
	}
	parent, err := f.makePath(p.parents())
	if err != nil {
		return errors.Join(cause, err)
	}
	defer parent.Close()
	names := destinationNames(c, p)
	unexpected, isFinal := errors.AsType[*UnexpectedContentError](cause)
	if !isFinal {
		// The disposal is tried again, and looks under the first name alone.
		names = names[:1]
	}
	for _, name := range names {
		// A crash after this rename leaves the folder where it was kept. The next call begins anew.
		err = moveEntry(claim, c.Folder, parent, name)
		if err == nil && isFinal {
			unexpected.Folder = place{p.kind, p.month, name}.rel()
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return cause // the folder stays in its claim
	case err == nil, errors.Is(err, fs.ErrNotExist): // moved now, or it was out already
		f.removeEmptyClaim(c.Key)
		return cause
	}
	return errors.Join(cause, err)
}

// confirmDisposed is for a folder that lies neither where it was kept nor in its claim: it was disposed of before a crash.
func (f *Folder) confirmDisposed(c ClaimedFolder, p place, d Disposal) (string, error) {
	if d.To == "" {
		return "", nil
	}
	to, err := durable.Open(d.To, f.cfg.Hook)
	if err != nil {
		return "", fmt.Errorf("open %q: %w", d.To, err)
	}
	defer to.Close()
	for _, name := range destinationNames(c, p) {
		if info, err := to.Root().Lstat(name); err == nil && f.isFolder(info, c.Inode) {
			// The rename may not have reached the disk before the crash. It must be durable before the caller records it.
			return path.Join(d.To, name), to.Sync()
		}
	}
	return "", fmt.Errorf("move %q to %q: %w", p.name, d.To, ErrFolderLost)
}

// destinationNames are the names that a folder may get where it is moved to. The second one is unique, so after a crash the
// folder is found without a record of its name.
func destinationNames(c ClaimedFolder, p place) []string {
	return []string{p.name, appendSuffix(p.name, " ("+c.Key.String()+")")}
}

// moveToTarget moves the folder out of the drop folder, into target.
func (f *Folder) moveToTarget(claim *durable.Dir, c ClaimedFolder, p place, target string) (string, error) {
	to, err := durable.Open(target, f.cfg.Hook)
	if err != nil {
		return "", fmt.Errorf("open %q: %w", target, err)
	}
	defer to.Close()
	for _, name := range destinationNames(c, p) {
		// A crash after this rename: the next call finds the claim empty and the folder under one of these names.
		err = moveEntry(claim, c.Folder, to, name)
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
