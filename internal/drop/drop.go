// Package drop takes folders out of a drop folder and puts them where they belong afterwards: claim, return, keep, dispose.
// It is the only room that renames or removes what people gave us, and it writes what they read there.
//
// It never follows a link, never leaves the drop folder (but for the configured place that disposed folders are moved to),
// never goes through a mount in it, never moves a folder with one, never replaces anything that people made, and has no way to
// remove a tree: files go one by one, each after its identity and digest were compared with what was archived, folders by rmdir. It keeps no record of its own; the ledger chooses and commits each
// destination before anything moves.
//
// After a crash at any point, the same call with the same arguments finishes what was begun: a folder lies in its old place
// or in its new one, and is recognised by its inode. A claimed folder without a ledger entry is found by [Folder.AllClaims]. A rename that may
// not have reached the disk is reported as durable.ErrSync, and the process should stop.
package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// Names that vaultd owns in a drop folder.
const (
	vaultdDir  = ".vaultd"
	claimedDir = "claimed"
	lockFile   = "lock"
	guardFile  = "drop.json"
	statusFile = "_STATUS.txt"

	templateDir = "_template"
)

// forPeople is the mode of the folders that vaultd makes for people: their group may do everything, new files keep the group.
const forPeople = fs.ModeSetgid | 0o770

// Config says which drop folder to open, and for whom.
type Config struct {
	Path  string
	Name  string // the drop's name in messages
	Group string // of what vaultd makes for people, a name or a number; empty: the drop folder's own

	LedgerID      string // another ledger's drop folder is refused
	Environment   string // test or production: the other one's is refused
	Epoch         uint64 // of the ledger; a folder that a later epoch worked on is refused
	HasWorkedHere bool   // this ledger worked here before, so a folder without its mark is the wrong one

	Hook durable.Hook // nil, or a count; more in tests only
}

// Folder is an open drop folder. One process at a time has it. Its methods may be called from several goroutines, but not
// two at a time for the same claimed folder.
type Folder struct {
	cfg     Config
	gid     int
	self    fs.FileInfo
	root    *durable.Dir
	vaultd  *durable.Dir
	claimed *durable.Dir
	lock    *os.File

	claiming sync.RWMutex // read: a claim is under way; write: empty claims are cleared

	mu    sync.Mutex
	taken map[string]*takenNames // guarded by mu: by destination directory
}

// ErrUnavailable says that the drop folder is not where it was: vanished, replaced by another, or not mounted. What was in it is
// not gone; nothing must be concluded from what lies there now.
var ErrUnavailable = errors.New("the drop folder is not there")

// ErrGroupUnusable says that the configured group cannot be given to what vaultd makes.
var ErrGroupUnusable = errors.New("group")

// Inode is a folder's identity on its file system. Device numbers change with reboots, so folders are compared by Ino on
// the device that the drop folder has now; Dev is for people.
type Inode struct{ Dev, Ino uint64 }

// Open opens the drop folder, marks it as ours when it is new, and locks it. Errors: [*LockedError], [*ForeignError], [*ReadOnlyError],
// those that wrap [ErrUnavailable], and faults of rights and configuration in words.
func Open(cfg Config) (*Folder, error) {
	f := &Folder{cfg: cfg, taken: map[string]*takenNames{}}
	err := f.open()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open drop %s: %w", cfg.Name, err), f.Close())
	}
	return f, nil
}

func (f *Folder) open() (err error) {
	if f.root, err = durable.Open(f.cfg.Path, f.cfg.Hook); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	} else if err != nil {
		return err
	}
	if f.self, err = f.root.Stat(); err != nil {
		return err
	}
	if err := f.writable(); err != nil { // before what would fail for it in other words
		return err
	}
	if owner := stat(f.self).Uid; f.self.Mode()&fs.ModeSticky != 0 && os.Geteuid() != 0 && int(owner) != os.Geteuid() {
		return fmt.Errorf("%q has the sticky bit and belongs to %s, so nobody else can take folders out of it: give it to the user vaultd runs as", f.cfg.Path, userName(owner))
	}
	if f.gid, err = f.group(); err != nil {
		return err
	}
	if _, err := f.root.Root().Lstat(vaultdDir); f.cfg.HasWorkedHere && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %q has no %s any more; is its file system mounted?", ErrUnavailable, f.cfg.Path, vaultdDir)
	}
	if f.vaultd, err = f.private(f.root, vaultdDir); err != nil {
		return err
	}
	if err := f.takeLock(); err != nil {
		return err
	}
	if f.claimed, err = f.private(f.vaultd, claimedDir); err != nil {
		return err
	}
	return f.sameDevice(f.claimed, vaultdDir+"/"+claimedDir)
}

// Close releases the lock. What is claimed stays claimed.
func (f *Folder) Close() error {
	var errs []error
	for _, d := range []*durable.Dir{f.claimed, f.vaultd, f.root} {
		if d != nil {
			errs = append(errs, d.Close())
		}
	}
	if f.lock != nil {
		errs = append(errs, f.lock.Close())
	}
	return errors.Join(errs...)
}

// CheckStillOurs tells whether the path still leads to the folder that was opened, still bears our mark, and can be written to. The error
// wraps ErrUnavailable, or is a *ForeignError or a *ReadOnlyError.
func (f *Folder) CheckStillOurs() error {
	now, err := os.Stat(f.cfg.Path)
	if err != nil {
		return fmt.Errorf("drop %s: %w: %w", f.cfg.Name, ErrUnavailable, err)
	}
	if !os.SameFile(now, f.self) {
		return fmt.Errorf("drop %s: %w: another folder lies at %q", f.cfg.Name, ErrUnavailable, f.cfg.Path)
	}
	held, err := f.vaultd.Stat()
	if err != nil {
		return fmt.Errorf("drop %s: %w: %w", f.cfg.Name, ErrUnavailable, err)
	}
	if there, err := f.root.Root().Lstat(vaultdDir); err != nil || !os.SameFile(there, held) {
		return fmt.Errorf("drop %s: %w: %s in %q was moved or replaced", f.cfg.Name, ErrUnavailable, vaultdDir, f.cfg.Path)
	}
	g, err := f.readGuard()
	if err != nil {
		return fmt.Errorf("drop %s: %w: %w", f.cfg.Name, ErrUnavailable, err)
	}
	if err := f.compare(g); err != nil {
		return err
	}
	return f.writable()
}

// own are the names directly in a drop folder that are vaultd's.
var own = []string{vaultdDir, string(Archived), string(Rejected), string(Duplicates), templateDir, statusFile, durable.TemporaryName(statusFile)}

// IsOwnName tells the names directly in a drop folder that vaultd made itself.
func IsOwnName(name string) bool { return slices.Contains(own, name) }

// IsReservedName tells the names directly in a drop folder that nobody else may use: vaultd's own, compared without case. A
// folder of such a name is not taken.
func IsReservedName(name string) bool {
	return slices.ContainsFunc(own, func(r string) bool { return strings.EqualFold(r, name) })
}

// WriteStatusFile replaces _STATUS.txt. It is made anew all the time, so it is not synced.
func (f *Folder) WriteStatusFile(text string) error {
	root, temp := f.root.Root(), durable.TemporaryName(statusFile)
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(forNotepad(text))
	err = errors.Join(err, durable.SetGroup(file, f.gid), file.Chmod(0o660), file.Close())
	if err == nil {
		err = root.Rename(temp, statusFile)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return nil
}

// group finds the group for what is made for people, and whether we may give things to it.
func (f *Folder) group() (int, error) {
	st := stat(f.self)
	gid := int(st.Gid)
	if f.cfg.Group != "" {
		n, err := strconv.Atoi(f.cfg.Group)
		if err != nil {
			g, err := user.LookupGroup(f.cfg.Group)
			if err != nil {
				return 0, fmt.Errorf("%w: %q is not known on this machine", ErrGroupUnusable, f.cfg.Group)
			}
			n, _ = strconv.Atoi(g.Gid) // on Linux always a number
		}
		gid = n
	}
	mine, err := os.Getgroups()
	if err != nil {
		return 0, err
	}
	if os.Geteuid() != 0 && gid != os.Getegid() && !slices.Contains(mine, gid) {
		return 0, fmt.Errorf("%w: user %s is not a member of group %s of %s, so people could not use what it makes for them", ErrGroupUnusable,
			userName(uint32(os.Geteuid())), groupName(gid), f.cfg.Path)
	}
	return gid, nil
}

// private opens a folder that is nobody's business but ours, making it if need be. One that somebody else made is refused:
// its owner could exchange what we claimed.
func (f *Folder) private(parent *durable.Dir, name string) (*durable.Dir, error) {
	d, err := parent.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) { // one that is there opens on a full disk as well
		if err := parent.Mkdir(name, 0o700, -1); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		d, err = parent.OpenDir(name)
	}
	if err != nil {
		return nil, err
	}
	info, err := d.Stat()
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	owner := stat(info).Uid
	if owner != 0 && int(owner) != os.Geteuid() && owner != stat(f.self).Uid {
		return nil, errors.Join(fmt.Errorf("%s was made by user %s, not by vaultd: move it away", name, userName(owner)), d.Close())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, errors.Join(fmt.Errorf("%s can be written by others (%04o): chmod 700 it", name, info.Mode().Perm()), d.Close())
	}
	return d, nil
}

func (f *Folder) sameDevice(d *durable.Dir, name string) error {
	info, err := d.Stat()
	if err != nil {
		return err
	}
	if stat(info).Dev != stat(f.self).Dev {
		return fmt.Errorf("%s lies on another device than the drop folder: %w", name, syscall.EXDEV)
	}
	return nil
}

// withoutMounts tells whether nothing is mounted on the folder name in parent or anywhere in it. The error is a [*durable.MountError]
// where something is, with its path inside the folder.
func withoutMounts(parent *durable.Dir, name string) error {
	dir, err := parent.OpenDir(name)
	if _, is := errors.AsType[*durable.MountError](err); is {
		return &durable.MountError{Path: "."}
	}
	if err != nil {
		return err
	}
	return errors.Join(dir.FindMount(), dir.Close())
}

// below gives the path of a [*durable.MountError] from where at begins; other errors stay what they are.
func below(at string, err error) error {
	if mount, is := errors.AsType[*durable.MountError](err); is {
		return &durable.MountError{Path: path.Join(at, mount.Path)}
	}
	return err
}

// claimPath is where a claimed folder lies, relative to the drop folder.
func claimPath(c ClaimedFolder) string {
	return path.Join(vaultdDir, claimedDir, c.Key.String(), c.Folder)
}

// is tells whether info describes the folder that was claimed as node.
func (f *Folder) is(info fs.FileInfo, node Inode) bool {
	st := stat(info)
	return info.IsDir() && st.Ino == node.Ino && st.Dev == stat(f.self).Dev
}

// stat gives the Linux form of a FileInfo from the file system; there is no other.
func stat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

func groupName(gid int) string {
	id := strconv.Itoa(gid)
	if g, err := user.LookupGroupId(id); err == nil {
		return g.Name
	}
	return id
}

func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// keyDir opens .vaultd/claimed/<key>, which holds the claimed folder.
func (f *Folder) keyDir(key archive.Key) (*durable.Dir, error) {
	dir, err := f.claimed.OpenDir(key.String())
	return dir, below(path.Join(vaultdDir, claimedDir), err)
}
