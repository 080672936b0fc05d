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

// ErrReservedName says that a name is one that vaultd uses itself, but for capital letters.
var ErrReservedName = errors.New("a name that vaultd uses itself")

// ErrUnexpectedItem says that something in .vaultd/claimed, or where folders that have ended lie, is not as vaultd leaves it.
var ErrUnexpectedItem = errors.New("not as vaultd left it")

// ClaimError says why a folder was not taken, in words for an administrator. It stays where it was. Ask with errors.Is:
// fs.ErrPermission, fs.ErrNotExist (gone), [ErrNotFolder], syscall.EBUSY and ETXTBSY (not yet), EXDEV (a mount as well), EROFS.
type ClaimError struct {
	Drop, Folder string
	Owner        string      // of the folder; empty: not known
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

// ClaimFolder takes the folder name out of the drop folder, under a new key made from now. When it returns without an error the claim
// is durable. The error is a [*ClaimError]; one that wraps durable.ErrSync leaves the folder claimed.
func (f *Folder) ClaimFolder(name string, now time.Time) (ClaimedFolder, error) {
	if IsReservedName(name) {
		return ClaimedFolder{}, f.refused(name, nil, ErrReservedName)
	}
	return f.claim(f.root, name, now)
}

// ClaimReturned takes back a folder that was returned to rel (as in "_rejected/Huber 88"), as a new claim. Errors are Claim's.
func (f *Folder) ClaimReturned(rel string, now time.Time) (ClaimedFolder, error) {
	p, err := parsePlace(rel)
	if err != nil || p.kind == Archived {
		return ClaimedFolder{}, f.refused(rel, nil, errors.New("not the place of a returned folder"))
	}
	dir, err := f.root.OpenDir(string(p.kind))
	if err != nil {
		return ClaimedFolder{}, f.refused(rel, nil, err)
	}
	defer dir.Close()
	return f.claim(dir, p.name, now)
}

func (f *Folder) refused(name string, info fs.FileInfo, err error) error {
	e := &ClaimError{Drop: f.cfg.Name, Folder: name, Err: err}
	if info != nil {
		e.Owner, e.Mode = userName(stat(info).Uid), info.Mode()
	}
	return e
}

func (f *Folder) claim(from *durable.Dir, name string, now time.Time) (ClaimedFolder, error) {
	f.claiming.RLock()
	defer f.claiming.RUnlock()
	if path.Base(name) != name || name == ".." || name == "." {
		return ClaimedFolder{}, f.refused(name, nil, ErrNotFolder)
	}
	info, err := from.Root().Lstat(name)
	if err != nil {
		return ClaimedFolder{}, f.refused(name, nil, err)
	}
	if !info.IsDir() {
		return ClaimedFolder{}, f.refused(name, info, ErrNotFolder)
	}
	// Before the folder is moved: a mount in it would move with it, and what lies there is not ours. A mount that comes after this
	// look is found when the folder is packed.
	if err := withoutMounts(from, name); err != nil {
		return ClaimedFolder{}, f.refused(name, info, err)
	}
	key := archive.NewKey(now)
	if err := f.claimed.Mkdir(key.String(), 0o700, -1); err != nil {
		return ClaimedFolder{}, f.refused(name, nil, fmt.Errorf("make %s/%s/%s: %w", vaultdDir, claimedDir, key, hideRights(err)))
	}
	dir, err := f.keyDir(key)
	if err != nil {
		return ClaimedFolder{}, f.refused(name, nil, fmt.Errorf("open %s/%s/%s: %w", vaultdDir, claimedDir, key, hideRights(err)))
	}
	defer dir.Close()
	if err := moved(from, name, dir, name); err != nil {
		// Only an empty claim goes, not one whose folder is in it but not surely on disk.
		_ = f.claimed.Rmdir(key.String())
		return ClaimedFolder{}, f.refused(name, info, err)
	}
	return f.secured(from, dir, key, name)
}

// hideRights keeps a lack of rights on our own folders from being told as one on people's.
func hideRights(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return errors.New(err.Error())
	}
	return err
}

// moved renames without replacing, and where the rename fails looks at the other end: a network file system can report a
// failure, or that the name is taken, for what it has done itself.
func moved(from *durable.Dir, name string, to *durable.Dir, newname string) error {
	before, err := from.Root().Lstat(name)
	if err != nil {
		return err
	}
	err = from.Rename(name, to, newname)
	if err == nil || errors.Is(err, durable.ErrSync) {
		return err
	}
	if after, lookErr := to.Root().Lstat(newname); lookErr != nil || stat(after).Ino != stat(before).Ino {
		return err
	}
	if err := to.Sync(); err != nil {
		return err
	}
	return from.Sync()
}

// secured looks at what was really taken: between look and rename somebody may have put a link or a file in its place.
func (f *Folder) secured(from, dir *durable.Dir, key archive.Key, name string) (ClaimedFolder, error) {
	c, err := f.describe(dir, key, name)
	if err == nil {
		return c, nil
	}
	if !errors.Is(err, ErrNotFolder) {
		return ClaimedFolder{}, f.refused(name, nil, err)
	}
	if back := dir.Rename(name, from, name); back != nil {
		return ClaimedFolder{}, f.refused(name, nil, errors.Join(err, back))
	}
	_ = f.claimed.Rmdir(key.String()) // empty; what stays is cleared at the next start
	return ClaimedFolder{}, f.refused(name, nil, err)
}

func (f *Folder) describe(dir *durable.Dir, key archive.Key, name string) (ClaimedFolder, error) {
	info, err := dir.Root().Lstat(name)
	if err != nil {
		return ClaimedFolder{}, err
	}
	if !info.IsDir() {
		return ClaimedFolder{}, ErrNotFolder
	}
	st := stat(info)
	return ClaimedFolder{Key: key, Folder: name, Owner: st.Uid, Inode: Inode{Dev: uint64(st.Dev), Ino: st.Ino}}, nil
}

// OpenClaimed opens the claimed folder of key. Its Root confines whoever reads it; the caller closes the Dir.
// The error wraps fs.ErrNotExist when there is none; it is a [*durable.MountError] when something is mounted on the folder.
func (f *Folder) OpenClaimed(key archive.Key) (*durable.Dir, ClaimedFolder, error) {
	dir, err := f.keyDir(key)
	if err != nil {
		return nil, ClaimedFolder{}, err
	}
	defer dir.Close()
	c, err := f.content(dir, key)
	if err != nil {
		return nil, ClaimedFolder{}, err
	}
	folder, err := dir.OpenDir(c.Folder)
	return folder, c, below(path.Dir(claimPath(c)), err)
}

// OpenReturned opens the folder that lies at rel (as in "_rejected/Huber 88") if it still is the one that was returned there.
// The error wraps fs.ErrNotExist when it is gone or another lies there; it is a [*durable.MountError] when something is mounted on it.
// Any other error says that nobody can tell.
func (f *Folder) OpenReturned(rel string, node Inode) (*durable.Dir, error) {
	p, err := parsePlace(rel)
	if err != nil {
		return nil, err
	}
	to, err := f.walk(p.dir(), false)
	if err != nil {
		return nil, err
	}
	defer to.Close()
	folder, err := to.OpenDir(p.name)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("open %q: %w", rel, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	info, err := folder.Stat()
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	if !f.is(info, node) {
		return nil, errors.Join(fmt.Errorf("open %q: another folder lies there: %w", rel, fs.ErrNotExist), folder.Close())
	}
	return folder, nil
}

// content finds the one folder in a claim. fs.ErrNotExist: the claim is empty.
func (f *Folder) content(dir *durable.Dir, key archive.Key) (ClaimedFolder, error) {
	list, err := dir.Root().Open(".")
	if err != nil {
		return ClaimedFolder{}, err
	}
	defer list.Close()
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
	c, err := f.describe(dir, key, names[0])
	if errors.Is(err, ErrNotFolder) {
		return c, fmt.Errorf("%s/%q is no folder: %w", where, names[0], ErrUnexpectedItem)
	}
	return c, err
}

// AllClaims gives every claimed folder, in no order, for those that the ledger does not know. Claims that a crash left empty are cleared
// on the way. What is not a claim comes as an error that wraps [ErrUnexpectedItem] and stays untouched; any other error ends the iteration.
func (f *Folder) AllClaims() iter.Seq2[ClaimedFolder, error] {
	return f.UnknownClaims(func(archive.Key) bool { return false })
}

// UnknownClaims does what Claims does, but opens no claim that is known: there may be half a million.
func (f *Folder) UnknownClaims(known func(archive.Key) bool) iter.Seq2[ClaimedFolder, error] {
	return func(yield func(ClaimedFolder, error) bool) {
		list, err := f.claimed.Root().Open(".")
		if err != nil {
			yield(ClaimedFolder{}, err)
			return
		}
		defer list.Close()
		for {
			names, err := list.Readdirnames(256)
			for _, name := range names {
				if key, err := archive.ParseKey(name); err == nil && key.String() == name && known(key) {
					continue
				}
				c, err := f.found(name)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if !yield(c, err) || err != nil && !errors.Is(err, ErrUnexpectedItem) {
					return
				}
			}
			if errors.Is(err, io.EOF) || err == nil && len(names) == 0 {
				return
			}
			if err != nil {
				yield(ClaimedFolder{}, err)
				return
			}
		}
	}
}

// SyncClaim makes a claim durable that was found: who made it may have died before its syncs, and an entry must not be
// written for a folder that a power cut would still put back. An error wraps durable.ErrSync as those of Claim do.
func (f *Folder) SyncClaim(c ClaimedFolder) error {
	dir, err := f.keyDir(c.Key)
	if err != nil {
		return err
	}
	defer dir.Close()
	return errors.Join(dir.Sync(), f.claimed.Sync(), f.root.Sync())
}

func (f *Folder) found(name string) (ClaimedFolder, error) {
	key, err := archive.ParseKey(name)
	if err != nil || key.String() != name {
		return ClaimedFolder{}, fmt.Errorf("%s/%s/%q: %w", vaultdDir, claimedDir, name, ErrUnexpectedItem)
	}
	f.claiming.Lock() // no claim of ours is between its mkdir and its rename
	defer f.claiming.Unlock()
	dir, err := f.keyDir(key)
	if _, mount := errors.AsType[*durable.MountError](err); mount || errors.Is(err, syscall.ENOTDIR) {
		return ClaimedFolder{}, fmt.Errorf("%s/%s/%s: %w", vaultdDir, claimedDir, name, ErrUnexpectedItem)
	}
	if err != nil {
		return ClaimedFolder{}, err
	}
	defer dir.Close()
	c, err := f.content(dir, key)
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	if rmErr := f.claimed.Rmdir(name); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
		return c, rmErr
	}
	return c, err
}
