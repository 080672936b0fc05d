package drop

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path"
	"syscall"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// ClaimedFolder is a folder that lies in .vaultd/claimed/<Key>/<Folder>.
type ClaimedFolder struct {
	Key    archive.Key
	Folder string // its name, byte for byte
	Owner  uint32 // uid
	Inode  Inode
}

// ErrNotFolder says that a name is a link, a file or something else, but not a folder.
var ErrNotFolder = errors.New("not a folder")

// ErrReservedName says that a name differs from one of vaultd's own in case alone.
var ErrReservedName = errors.New("a name that vaultd uses itself")

// ErrUnexpectedItem says that something in .vaultd/claimed, or where vaultd puts folders whose entry has ended, was not made
// by vaultd.
var ErrUnexpectedItem = errors.New("not as vaultd left it")

// ClaimError says in words for an administrator why a folder was not taken. The folder stays where it was. Callers ask with
// errors.Is: fs.ErrPermission, fs.ErrNotExist (gone), [ErrNotFolder], syscall.EBUSY and ETXTBSY (try again), EXDEV (also for a
// mount), EROFS.
type ClaimError struct {
	Drop, Folder string
	Owner        string      // of the folder; empty: unknown
	Mode         fs.FileMode // its permission bits
	Err          error
}

func (e *ClaimError) Error() string {
	about := fmt.Sprintf("drop %s: ", e.Drop)
	who := ""
	if e.Owner != "" {
		who = fmt.Sprintf(" (owner %s, %04o)", e.Owner, e.Mode.Perm())
	}
	mount, isMount := errors.AsType[*durable.MountError](e.Err)
	switch {
	case isMount && mount.Path == ".":
		return about + fmt.Sprintf("%q is a mount: what lies in it belongs to another place. It stays there. Unmount it, or move what is in it into the drop folder itself.", e.Folder)
	case isMount:
		return about + fmt.Sprintf("%q in %q is a mount: what lies in it belongs to another place. The folder stays there. Unmount it, or copy the files themselves into the folder.", mount.Path, e.Folder)
	case errors.Is(e.Err, fs.ErrPermission):
		return about + fmt.Sprintf("no right to take %q%s. It stays there. Set the share's masks (docs/samba.md); existing folders: chmod -R g+rwX.", e.Folder, who)
	case errors.Is(e.Err, syscall.EXDEV):
		return about + fmt.Sprintf("%q lies on another device than the drop folder. It stays there. Move it into the drop folder itself.", e.Folder)
	case errors.Is(e.Err, syscall.EROFS):
		return about + "its file system is read-only. Folders stay there. Mount it with write access."
	case errors.Is(e.Err, syscall.EBUSY), errors.Is(e.Err, syscall.ETXTBSY):
		return about + fmt.Sprintf("%q is in use. It will be tried again.", e.Folder)
	case errors.Is(e.Err, fs.ErrNotExist):
		return about + fmt.Sprintf("%q is gone", e.Folder)
	}
	return about + fmt.Sprintf("take %q: %v", e.Folder, e.Err)
}

func (e *ClaimError) Unwrap() error { return e.Err }

// ClaimFolder takes the folder name out of the drop folder, under a new key made from now. When it returns without an error
// the claim is durable. The error is a [*ClaimError]. One that wraps [durable.ErrSync] leaves the folder claimed.
func (f *Folder) ClaimFolder(name string, now time.Time) (ClaimedFolder, error) {
	if IsReservedName(name) {
		return ClaimedFolder{}, f.newClaimError(name, nil, ErrReservedName)
	}
	return f.claimFrom(f.root, name, now)
}

// ClaimReturned takes back a folder that was returned to rel (as in "_rejected/Huber 88"), as a new claim. Its errors are
// those of [Folder.ClaimFolder].
func (f *Folder) ClaimReturned(rel string, now time.Time) (ClaimedFolder, error) {
	p, err := parsePlace(rel)
	if err != nil || p.kind.isKept() {
		return ClaimedFolder{}, f.newClaimError(rel, nil, errors.New("not the place of a returned folder"))
	}
	dir, err := f.root.OpenDir(string(p.kind))
	if err != nil {
		return ClaimedFolder{}, f.newClaimError(rel, nil, err)
	}
	defer dir.Close()
	return f.claimFrom(dir, p.name, now)
}

func (f *Folder) newClaimError(name string, info fs.FileInfo, err error) error {
	e := &ClaimError{Drop: f.cfg.Name, Folder: name, Err: err}
	if info != nil {
		e.Owner, e.Mode = userName(sysStat(info).Uid), info.Mode()
	}
	return e
}

// claimFrom moves the folder name from a directory into a new claim: mkdir, rename, sync.
func (f *Folder) claimFrom(from *durable.Dir, name string, now time.Time) (ClaimedFolder, error) {
	// The lock keeps the new claim, which is empty at first, from being removed by readClaim.
	f.claiming.RLock()
	defer f.claiming.RUnlock()
	if path.Base(name) != name || name == ".." || name == "." {
		return ClaimedFolder{}, f.newClaimError(name, nil, ErrNotFolder)
	}
	info, err := from.Root().Lstat(name)
	if err != nil {
		return ClaimedFolder{}, f.newClaimError(name, nil, err)
	}
	if !info.IsDir() {
		return ClaimedFolder{}, f.newClaimError(name, info, ErrNotFolder)
	}
	// Mounts are looked for before the rename: a mount would move with the folder, and what lies in it belongs to another
	// place. A mount that appears after this look is found when the folder is packed.
	if err := checkNoMounts(from, name); err != nil {
		return ClaimedFolder{}, f.newClaimError(name, info, err)
	}
	key := archive.NewKey(now)
	// A crash after this mkdir leaves an empty claim. The next start removes it, and the folder is still in its place.
	if err := f.claimed.Mkdir(key.String(), 0o700, -1); err != nil {
		return ClaimedFolder{}, f.newClaimError(name, nil, fmt.Errorf("make %s/%s/%s: %w", vaultdDir, claimedDir, key, maskPermission(err)))
	}
	dir, err := f.openClaimDir(key)
	if err != nil {
		return ClaimedFolder{}, f.newClaimError(name, nil, fmt.Errorf("open %s/%s/%s: %w", vaultdDir, claimedDir, key, maskPermission(err)))
	}
	defer dir.Close()
	// A crash after this rename leaves a claimed folder without a ledger entry. The next start finds it and adopts it under its key.
	if err := moveEntry(from, name, dir, name); err != nil {
		// rmdir removes an empty claim alone, not one whose folder may have arrived without being synced.
		f.removeEmptyClaim(key)
		return ClaimedFolder{}, f.newClaimError(name, info, err)
	}
	// Describe what was really moved: somebody may have put a link or a file in its place since the look.
	c, err := describeClaimed(dir, key, name)
	if err == nil {
		return c, nil
	}
	if errors.Is(err, ErrNotFolder) {
		if back := dir.Rename(name, from, name); back != nil {
			return ClaimedFolder{}, f.newClaimError(name, nil, errors.Join(err, back))
		}
		f.removeEmptyClaim(key)
	}
	return ClaimedFolder{}, f.newClaimError(name, nil, err)
}

// maskPermission hides that an error is one of rights. It is for our own folders: [ClaimError] would tell people to mend theirs.
func maskPermission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return errors.New(err.Error())
	}
	return err
}

// moveEntry renames without replacing. When the rename fails it looks whether the entry arrived all the same: a network file
// system can report a failure, or that the name is taken, for a rename that it has done.
func moveEntry(from *durable.Dir, name string, to *durable.Dir, newname string) error {
	return moveBy((*durable.Dir).Rename, from, name, to, newname)
}

// moveIntoOwn is moveEntry into a folder in which only vaultd makes entries. It can move a file on every file system.
func moveIntoOwn(from *durable.Dir, name string, to *durable.Dir, newname string) error {
	return moveBy((*durable.Dir).RenameIntoOwn, from, name, to, newname)
}

func moveBy(rename func(from *durable.Dir, name string, to *durable.Dir, newname string) error, from *durable.Dir, name string, to *durable.Dir, newname string) error {
	before, err := from.Root().Lstat(name)
	if err != nil {
		return err
	}
	err = rename(from, name, to, newname)
	if err == nil || errors.Is(err, durable.ErrSync) {
		return err
	}
	if after, lookErr := to.Root().Lstat(newname); lookErr != nil || sysStat(after).Ino != sysStat(before).Ino {
		return err
	}
	// Rename failed before its syncs. The new place is synced first, as there.
	if err := to.Sync(); err != nil {
		return err
	}
	return from.Sync()
}

// describeClaimed describes the folder name in the claim dir.
func describeClaimed(dir *durable.Dir, key archive.Key, name string) (ClaimedFolder, error) {
	info, err := dir.Root().Lstat(name)
	if err != nil {
		return ClaimedFolder{}, err
	}
	if !info.IsDir() {
		return ClaimedFolder{}, ErrNotFolder
	}
	return ClaimedFolder{Key: key, Folder: name, Owner: sysStat(info).Uid, Inode: inodeOf(info)}, nil
}

// OpenClaimed opens the claimed folder of key. Its Root confines whoever reads it. The caller closes the Dir. The error wraps
// fs.ErrNotExist when there is none, and is a [*durable.MountError] when something is mounted on the folder.
func (f *Folder) OpenClaimed(key archive.Key) (*durable.Dir, ClaimedFolder, error) {
	dir, err := f.openClaimDir(key)
	if err != nil {
		return nil, ClaimedFolder{}, err
	}
	defer dir.Close()
	c, err := findClaimedFolder(dir, key)
	if err != nil {
		return nil, ClaimedFolder{}, err
	}
	folder, err := dir.OpenDir(c.Folder)
	return folder, c, durable.PrefixMountPath(path.Dir(claimPath(c)), err)
}

// findClaimedFolder finds the one folder in a claim. The error wraps fs.ErrNotExist when the claim is empty.
func findClaimedFolder(dir *durable.Dir, key archive.Key) (ClaimedFolder, error) {
	list, err := dir.Root().Open(".")
	if err != nil {
		return ClaimedFolder{}, err
	}
	defer list.Close() // read-only
	names, err := list.Readdirnames(2)
	where := vaultdDir + "/" + claimedDir + "/" + key.String()
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(names) == 0:
		return ClaimedFolder{}, &fs.PathError{Op: "find claimed folder", Path: where, Err: fs.ErrNotExist}
	case err != nil:
		return ClaimedFolder{}, err
	case len(names) > 1:
		return ClaimedFolder{}, fmt.Errorf("%s holds more than one folder: %w", where, ErrUnexpectedItem)
	}
	c, err := describeClaimed(dir, key, names[0])
	if errors.Is(err, ErrNotFolder) {
		return c, fmt.Errorf("%s/%q is no folder: %w", where, names[0], ErrUnexpectedItem)
	}
	return c, err
}

// AllClaims returns every claimed folder, in no order. It removes the empty claims that a crash left. Something that is no
// claim comes as an error that wraps [ErrUnexpectedItem] and stays untouched. Any other error ends the iteration.
func (f *Folder) AllClaims() iter.Seq2[ClaimedFolder, error] {
	return f.UnknownClaims(func(archive.Key) bool { return false })
}

// UnknownClaims is AllClaims without the claims that the caller knows. It does not open those: there may be half a million.
func (f *Folder) UnknownClaims(isKnown func(archive.Key) bool) iter.Seq2[ClaimedFolder, error] {
	return func(yield func(ClaimedFolder, error) bool) {
		err := f.claimed.EachName(func(name string) error {
			key, err := archive.ParseKey(name)
			isKey := err == nil && key.String() == name
			if isKey && isKnown(key) {
				return nil
			}
			var c ClaimedFolder
			if isKey {
				c, err = f.readClaim(key)
			} else {
				err = fmt.Errorf("%s/%s/%q: %w", vaultdDir, claimedDir, name, ErrUnexpectedItem)
			}
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil && !errors.Is(err, ErrUnexpectedItem):
				return err
			case !yield(c, err):
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(ClaimedFolder{}, err)
		}
	}
}

// SyncClaim makes a claim durable that [Folder.UnknownClaims] returned. Whoever made it may have died before its syncs, and the
// ledger must not record a folder that a power loss would put back. An error wraps [durable.ErrSync] as those of
// [Folder.ClaimFolder] do.
func (f *Folder) SyncClaim(c ClaimedFolder) error {
	dir, err := f.openClaimDir(c.Key)
	if err != nil {
		return err
	}
	defer dir.Close()
	if f.cfg.TakesFiles {
		// The file was moved into the folder that was made for it: that folder is its new place.
		if err := syncFolder(dir, c.Folder); err != nil {
			return err
		}
	}
	return errors.Join(dir.Sync(), f.claimed.Sync(), f.root.Sync())
}

// syncFolder makes the entries of the folder name in parent durable.
func syncFolder(parent *durable.Dir, name string) error {
	folder, err := parent.OpenDir(name)
	if err != nil {
		return err
	}
	defer folder.Close() // synced
	return folder.Sync()
}

// readClaim describes the folder in the claim of key, and removes the claim when it is empty.
func (f *Folder) readClaim(key archive.Key) (ClaimedFolder, error) {
	// With this lock no claim of ours is between its mkdir and its rename, so an empty one may be removed.
	f.claiming.Lock()
	defer f.claiming.Unlock()
	dir, err := f.openClaimDir(key)
	if _, mount := errors.AsType[*durable.MountError](err); mount || errors.Is(err, syscall.ENOTDIR) {
		return ClaimedFolder{}, fmt.Errorf("%s/%s/%s: %w", vaultdDir, claimedDir, key, ErrUnexpectedItem)
	}
	if err != nil {
		return ClaimedFolder{}, err
	}
	defer dir.Close()
	c, err := findClaimedFolder(dir, key)
	if err == nil && f.cfg.TakesFiles {
		c, err = finishFileClaim(dir, c)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	// The claim is empty: a crash came between its mkdir and its rename, or after its folder left it. Nothing is lost with it.
	if rmErr := f.claimed.Rmdir(key.String()); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
		return c, rmErr
	}
	return c, err
}
