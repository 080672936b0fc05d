// Package drop takes folders, or single files, out of a drop folder and puts them where they belong afterwards: it claims, returns,
// keeps and disposes. A single file is claimed as a folder that was made for it, and goes back to people in that folder. It is the
// only package that renames or removes what people gave us. It also writes what they read there.
//
// It never follows a link and never replaces anything that people made. It never leaves the drop folder, except to the
// configured place that disposed folders are moved to. It never enters a mount in the drop folder and never moves a folder
// that has one. It cannot remove a tree: it removes files one by one and folders by rmdir. Before it removes the first file of a
// folder, it compared each one with what was archived, by size and digest; only junk that the entry lists and vaultd's own notes
// go without. It keeps no record of its own: the ledger chooses and commits each destination before anything moves.
//
// [Folder.PutFolder] is the way in for what is to be archived and does not come from people: it writes a folder out of sight and shows it
// whole.
//
// After a crash at any point the same call with the same arguments finishes the work: a folder lies in its old place or in
// its new one, and is recognised by its inode. [Folder.AllClaims] finds a claimed folder without a ledger entry. When a
// rename may not have reached the disk the error wraps [durable.ErrSync], and the process should stop.
package drop

import (
	"cmp"
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
	markFile   = "drop.json"
	statusFile = "_STATUS.txt"

	templateDir = "_template"
)

// The modes of what vaultd makes for people. New files in its folders get their group.
const (
	sharedDirMode = fs.ModeSetgid | 0o770         // what comes back: people take it from there, also a colleague's
	placesMode    = fs.ModeSticky | sharedDirMode // _archived and _delivered: nobody but vaultd removes or renames its folders in them
	readDirMode   = fs.ModeSetgid | 0o750         // months and _template: people read and copy
	sharedMode    = 0o660
	readMode      = 0o640 // notes, receipts, _STATUS.txt and _template
)

// Config says which drop folder to open, and for whom.
type Config struct {
	Path  string
	Name  string // the drop's name in messages
	Group string // of what vaultd makes for people, a name or a number; empty: the drop folder's own

	TakesFiles bool // single files are claimed here, by ClaimFile; else folders
	Keeps      Kind // of what is done with here: Archived or Delivered; empty: Archived

	AcceptsMountModes bool // the modes of the mount are what its owner wants; see [MountModes]

	LedgerID      string // a drop folder of another ledger is refused
	Environment   string // test or production; a drop folder of the other one is refused
	Epoch         uint64 // of the ledger; a drop folder that a later epoch worked on is refused
	ReceiptKeys   []string
	HasWorkedHere bool // this ledger worked here before, so a folder that lacks its mark is the wrong one

	Hook durable.Hook // nil, or a counter; more in tests only
}

// Folder is an open drop folder. Only one process at a time has it open. Its methods may be called from several goroutines,
// but not two at a time for the same claimed folder.
type Folder struct {
	cfg      Config
	gid      int // of what vaultd makes for people
	openedAs fs.FileInfo
	root     *durable.Dir
	vaultd   *durable.Dir // .vaultd
	claimed  *durable.Dir // .vaultd/claimed
	lock     *os.File

	modes     MountModes
	hasLeases bool // the kernel tells which files are open

	claiming sync.RWMutex // read: a claim is between its mkdir and its rename; write: empty claims are removed
	putting  sync.Mutex   // held while a folder is put into the drop folder

	mu        sync.Mutex
	usedNames map[string]*usedNames // guarded by mu: by destination directory
}

// ErrUnavailable says that the drop folder is not where it was: it vanished, was replaced, or is not mounted. What was in it
// is not gone, and nothing must be concluded from what lies there now.
var ErrUnavailable = errors.New("the drop folder is not there")

// ErrGroupUnusable says that the configured group cannot be given to what vaultd makes.
var ErrGroupUnusable = errors.New("group")

// Inode identifies a folder on its file system. Device numbers change with reboots, so folders are compared by Ino on the
// device that the drop folder has now; Dev is for people.
type Inode struct{ Dev, Ino uint64 }

// Open opens the drop folder, locks it and writes the mark where it is new. The error is a [*LockedError], a
// [*ForeignError], a [*ReadOnlyError], wraps [ErrUnavailable], or tells a fault of rights or configuration.
func Open(cfg Config) (*Folder, error) {
	cfg.Keeps = cmp.Or(cfg.Keeps, Archived)
	f := &Folder{cfg: cfg, usedNames: map[string]*usedNames{}}
	err := f.openAndLock()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open drop %s: %w", cfg.Name, err), f.Close())
	}
	return f, nil
}

func (f *Folder) openAndLock() (err error) {
	if f.root, err = durable.Open(f.cfg.Path, f.cfg.Hook); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	} else if err != nil {
		return err
	}
	if f.openedAs, err = f.root.Stat(); err != nil {
		return err
	}
	// Checked first: on a read-only file system the steps below fail with errors that do not name the cause.
	if err := f.checkWritable(); err != nil {
		return err
	}
	if owner := sysStat(f.openedAs).Uid; f.openedAs.Mode()&fs.ModeSticky != 0 && os.Geteuid() != 0 && int(owner) != os.Geteuid() {
		return fmt.Errorf("%q has the sticky bit and belongs to %s, so nobody else can take folders out of it: give it to the user vaultd runs as", f.cfg.Path, userName(owner))
	}
	if f.gid, err = f.findGroup(); err != nil {
		return err
	}
	// A folder that lost its .vaultd is most likely the empty mount point of a file system that is not mounted.
	if _, err := f.root.Root().Lstat(vaultdDir); f.cfg.HasWorkedHere && errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %q has no %s any more; is its file system mounted?", ErrUnavailable, f.cfg.Path, vaultdDir)
	}
	if f.vaultd, err = f.openOwnDir(f.root, vaultdDir); err != nil {
		return err
	}
	// The lock and the mark come before .vaultd/claimed: nothing is made in a folder that is in use or another ledger's.
	if err := f.lockAndCheckMark(); err != nil {
		return err
	}
	if f.claimed, err = f.openPrivateDir(f.vaultd, claimedDir); err != nil {
		return err
	}
	if err := f.checkSameDevice(f.claimed, vaultdDir+"/"+claimedDir); err != nil {
		return err
	}
	if err := f.removeUnfinished(); err != nil {
		return err
	}
	f.hasLeases = hasTrueLeases(f.vaultd)
	return f.makePlaces()
}

// removeUnfinished removes the files for people that a crash left before they
// had their names. Nobody writes one now: the folder was locked just before.
func (f *Folder) removeUnfinished() error {
	return f.vaultd.EachName(func(name string) error {
		if !durable.IsUnfinished(name) {
			return nil
		}
		if err := f.vaultd.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
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
		errs = append(errs, durable.CloseLock(f.lock))
	}
	return errors.Join(errs...)
}

// CheckStillOurs reports whether the path still leads to the folder that was opened, which bears our mark and can be written
// to. The error wraps [ErrUnavailable], or is a [*ForeignError] or a [*ReadOnlyError].
func (f *Folder) CheckStillOurs() error {
	now, err := os.Stat(f.cfg.Path)
	if err != nil {
		return fmt.Errorf("drop %s: %w: %w", f.cfg.Name, ErrUnavailable, err)
	}
	if !os.SameFile(now, f.openedAs) {
		return fmt.Errorf("drop %s: %w: another folder lies at %q", f.cfg.Name, ErrUnavailable, f.cfg.Path)
	}
	held, err := f.vaultd.Stat()
	if err != nil {
		return fmt.Errorf("drop %s: %w: %w", f.cfg.Name, ErrUnavailable, err)
	}
	if there, err := f.root.Root().Lstat(vaultdDir); err != nil || !os.SameFile(there, held) {
		return fmt.Errorf("drop %s: %w: %s in %q was moved or replaced", f.cfg.Name, ErrUnavailable, vaultdDir, f.cfg.Path)
	}
	mark, err := readMark(f.vaultd)
	if err != nil {
		return fmt.Errorf("drop %s: %w: %w", f.cfg.Name, ErrUnavailable, err)
	}
	if err := compareMarks(f.cfg.Path, mark, f.ourMark()); err != nil {
		return err
	}
	return f.checkWritable()
}

// ownNames are the names directly in a drop folder that are vaultd's.
var ownNames = []string{vaultdDir, string(Archived), string(Delivered), string(Rejected), string(Duplicates), templateDir, statusFile}

// IsOwnName reports whether vaultd itself makes something of this name directly in a drop folder.
func IsOwnName(name string) bool { return slices.Contains(ownNames, name) }

// ReservedNames returns the names directly in a drop folder that are vaultd's own.
func ReservedNames() []string { return slices.Clone(ownNames) }

// IsReservedName reports whether a name directly in a drop folder is vaultd's own. Case does not count: a folder of such a
// name is not taken.
func IsReservedName(name string) bool {
	return slices.ContainsFunc(ownNames, func(r string) bool { return strings.EqualFold(r, name) })
}

// WriteStatusFile replaces _STATUS.txt. It syncs nothing, because the file is written again all the time.
func (f *Folder) WriteStatusFile(text string) error {
	file, err := f.createShared(f.root, statusFile, readMode, encodeForNotepad(text))
	if err != nil {
		return err
	}
	// A power loss may leave an old or an empty file. The next write replaces it.
	return file.CommitWithoutSync()
}

// createShared begins a file for people, in .vaultd, where nobody is in its
// way. The caller commits it.
func (f *Folder) createShared(dir *durable.Dir, name string, mode fs.FileMode, data []byte) (*durable.TempFile, error) {
	file, err := dir.CreateIn(f.vaultd, name, mode)
	if err != nil {
		return nil, err
	}
	// .vaultd has the group of the drop folder and hands it down: a sandbox may forbid to set it.
	err = file.SetGroup(f.gid)
	if err == nil && len(data) > 0 {
		_, err = file.Write(data)
	}
	if err != nil {
		file.Discard()
		return nil, err
	}
	return file, nil
}

// findGroup returns the group of what is made for people, after it checked that vaultd may set it.
func (f *Folder) findGroup() (int, error) {
	gid := int(sysStat(f.openedAs).Gid)
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

// openPrivateDir opens a folder in .vaultd that only vaultd may write to, and
// makes it where it is missing.
func (f *Folder) openPrivateDir(parent *durable.Dir, name string) (*durable.Dir, error) {
	d, err := f.openOwnDir(parent, name)
	if err != nil {
		return nil, err
	}
	if err := f.checkPrivate(d, vaultdDir+"/"+name); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// openOwnDir opens a folder of vaultd's own, and makes it where it is missing.
// A folder that another user made is refused: its owner could exchange what
// vaultd claimed.
func (f *Folder) openOwnDir(parent *durable.Dir, name string) (*durable.Dir, error) {
	// Open first: a folder that is there opens on a full disk as well.
	d, err := parent.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		// A crash after this mkdir leaves an empty folder of ours; the next start opens it.
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
	owner := sysStat(info).Uid
	if owner != 0 && int(owner) != os.Geteuid() && owner != sysStat(f.openedAs).Uid {
		return nil, errors.Join(fmt.Errorf("%s was made by user %s, not by vaultd: move it away", name, userName(owner)), d.Close())
	}
	return d, nil
}

func (f *Folder) checkSameDevice(d *durable.Dir, name string) error {
	info, err := d.Stat()
	if err != nil {
		return err
	}
	if sysStat(info).Dev != sysStat(f.openedAs).Dev {
		return fmt.Errorf("%s lies on another device than the drop folder: %w", name, syscall.EXDEV)
	}
	return nil
}

// checkNoMounts returns a [*durable.MountError] when something is mounted on the folder name in parent or anywhere in it. The
// path of the error is relative to that folder.
func checkNoMounts(parent *durable.Dir, name string) error {
	dir, err := parent.OpenDir(name)
	if _, is := errors.AsType[*durable.MountError](err); is {
		return &durable.MountError{Path: "."}
	}
	if err != nil {
		return err
	}
	return errors.Join(dir.FindMount(), dir.Close())
}

// claimPath is the path of a claimed folder relative to the drop folder.
func claimPath(c ClaimedFolder) string {
	return path.Join(vaultdDir, claimedDir, c.Key.String(), c.Folder)
}

// isFolder reports whether info describes the folder that was claimed with that inode.
func (f *Folder) isFolder(info fs.FileInfo, inode Inode) bool {
	st := sysStat(info)
	return info.IsDir() && st.Ino == inode.Ino && st.Dev == sysStat(f.openedAs).Dev
}

// sysStat returns the Linux form of a FileInfo, which every FileInfo from the file system has.
func sysStat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

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

// openClaimDir opens .vaultd/claimed/<key>, which holds the claimed folder.
func (f *Folder) openClaimDir(key archive.Key) (*durable.Dir, error) {
	dir, err := f.claimed.OpenDir(key.String())
	return dir, durable.PrefixMountPath(path.Join(vaultdDir, claimedDir), err)
}
