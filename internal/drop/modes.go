package drop

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"vaultd/internal/durable"
)

// MountModes says whether the modes of a file system come from its mount, as
// with CIFS, ntfs-3g and some FUSE: chmod then fails or is ignored, and each folder has
// the mode and the group that the mount's options say.
type MountModes struct {
	Decide bool        // chmod fails or is ignored
	Mode   fs.FileMode // of a new folder
	Gid    int         // its group
}

// triedMode is the mode that tryModes asks for: mounts are given other ones.
const triedMode fs.FileMode = 0o710

// newMountModes compares the mode that a new folder was to have with the one
// that it has, and chmodErr with the errors of a file system that lacks chmod.
func newMountModes(asked, seen fs.FileMode, gid int, chmodErr error) MountModes {
	return MountModes{Decide: durable.IsUnsupportedMode(chmodErr) || chmodErr == nil && seen.Perm() != asked.Perm(), Mode: seen.Perm(), Gid: gid}
}

// Check returns a [*ModesError] where the mode and the group that the mount
// gives to vaultd's own folders keep vaultd from working. dropGid is the drop's
// group, and accepted says that the configuration has "modes: mount" for the
// drop. An administrator may let the group of the drop write; for the whole
// machine, or for another group, it is always refused.
func (m MountModes) Check(path string, mode fs.FileMode, gid, dropGid int, accepted bool) error {
	fault := &ModesError{Path: path, Mode: mode.Perm(), Gid: gid}
	switch {
	case mode.Perm()&0o022 == 0:
		return nil
	case mode.Perm()&0o002 != 0:
		fault.Why = "everybody on this machine could change what vaultd took. No setting of vaultd allows that"
	case gid != dropGid:
		fault.Why = fmt.Sprintf("group %s, which is not the drop's group %s, could change what vaultd took. No setting of vaultd allows that", groupName(gid), groupName(dropGid))
	case !accepted:
		fault.Why, fault.MayAccept = fmt.Sprintf("group %s could change what vaultd took", groupName(gid)), true
	default:
		return nil
	}
	return fault
}

// ModesError says that a mount gives vaultd's own folders a mode with which
// others could change what is in them.
type ModesError struct {
	Path      string // of the drop folder
	Mode      fs.FileMode
	Gid       int
	Why       string
	MayAccept bool // the drop's "modes: mount" allows it
}

func (e *ModesError) Error() string {
	return fmt.Sprintf("the mount of %q decides the modes there (%04o, group %s), and chmod has no effect: %s", e.Path, e.Mode, groupName(e.Gid), e.Why)
}

// Advice says what an administrator should do.
func (e *ModesError) Advice() string {
	user := "vaultd"
	if uid := os.Geteuid(); uid != 0 {
		user = userName(uint32(uid))
	}
	text := fmt.Sprintf("mount it with uid=%s,gid=GROUP,dir_mode=0750,file_mode=0640,nosuid,nodev (CIFS), or uid=NUMBER,gid=NUMBER,dmask=0027,fmask=0137,nosuid,nodev (ntfs-3g); the group is that of people who may read", user)
	if e.MayAccept {
		text += fmt.Sprintf(`. If all of group %s may change what vaultd took: write "modes: mount" for this drop`, groupName(e.Gid))
	}
	return text + ". See docs/network-drives.md"
}

// tryModes makes an empty folder in dir, looks at its mode and removes it. A
// crash in between leaves the folder, which a later [TryWrite] removes.
func tryModes(dir *durable.Dir, prefix string) (m MountModes, err error) {
	name := prefix + testFilePrefix + rand.Text() + testFileSuffix
	chmodErr := dir.Mkdir(name, triedMode, -1)
	info, err := dir.Root().Lstat(name)
	if err != nil {
		return m, errors.Join(chmodErr, err)
	}
	m = newMountModes(triedMode, info.Mode(), int(sysStat(info).Gid), chmodErr)
	if m.Decide {
		chmodErr = nil
	}
	return m, errors.Join(chmodErr, dir.Rmdir(name))
}

// adaptToMount tries whether the modes in dir come from its mount. If so,
// errors of chmod and chown are ignored in dir from then on. A failed try
// leaves it open: the disk may be full. Modes then count as vaultd's own, with
// which less is allowed.
func adaptToMount(dir *durable.Dir) (MountModes, error) {
	m, err := tryModes(dir, "")
	if errors.Is(err, durable.ErrSync) {
		return m, err
	}
	if err != nil || !m.Decide {
		return MountModes{}, nil
	}
	dir.IgnoreModeErrors()
	return m, nil
}

// checkPrivate refuses a folder of vaultd's own that others may write to.
func (f *Folder) checkPrivate(d *durable.Dir, name string) error {
	info, err := d.Stat()
	if err != nil {
		return err
	}
	if f.modes.Decide {
		return f.modes.Check(f.cfg.Path, info.Mode(), int(sysStat(info).Gid), f.gid, f.cfg.AcceptsMountModes)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by others (%04o): chmod 700 it", name, info.Mode().Perm())
	}
	return nil
}

// TryModes tries whether the modes in the drop folder of cfg come from its
// mount, and returns a [*ModesError] where they keep vaultd from working. It
// makes an empty folder and removes it: in .vaultd where that is, else in the
// drop folder itself. Any other error says why the try failed.
func TryModes(cfg Config) (m MountModes, err error) {
	f := &Folder{cfg: cfg}
	if f.root, err = durable.Open(cfg.Path, nil); err != nil {
		return m, err
	}
	defer f.root.Close() // what was made is removed
	if f.openedAs, err = f.root.Stat(); err != nil {
		return m, err
	}
	if f.gid, err = f.findGroup(); err != nil {
		return m, err
	}
	dir, prefix := f.root, "."
	if own, err := f.root.OpenDir(vaultdDir); err == nil {
		defer own.Close() // as above
		dir, prefix = own, ""
	}
	if m, err = tryModes(dir, prefix); err != nil || !m.Decide {
		return m, err
	}
	return m, m.Check(cfg.Path, m.Mode, m.Gid, f.gid, cfg.AcceptsMountModes)
}
