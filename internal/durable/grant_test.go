package durable

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// I27: under a sandbox that forbids every call which sets setgid, folders for people are still made, and still hand down
// their group where the share does.
func TestMkdir_I27_SetgidForbidden(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o007))
	for name, row := range map[string]struct{ share, want fs.FileMode }{
		"ShareHandsDownItsGroup": {fs.ModeSetgid | fs.ModeSticky | 0o770, fs.ModeSetgid | 0o770},
		"StickyFolder":           {fs.ModeSetgid | fs.ModeSticky | 0o770, fs.ModeSetgid | fs.ModeSticky | 0o770},
		"PlainShare":             {0o770, 0o770},
	} {
		t.Run(name, func(t *testing.T) {
			base := t.TempDir()
			kit.Must(t, os.Chmod(base, row.share))
			forbid := func(op, name string, do func() error) error {
				info, err := os.Lstat(filepath.Join(base, name))
				kit.Check(t, op != "chmod" || err != nil || info.Mode().Perm() != 0o700 || row.share&fs.ModeSetgid == 0,
					"made without what the share hands down")
				if op == "chmod" && !tried[t.Name()] {
					tried[t.Name()] = true
					return unix.EPERM
				}
				return do()
			}
			d, err := Open(base, forbid)
			kit.Must(t, err)
			defer d.Close()
			kit.Must(t, d.Mkdir("_archived", row.want|fs.ModeSetgid, os.Getgid()))
			info, err := os.Stat(filepath.Join(base, "_archived"))
			if err != nil || info.Mode()&^fs.ModeDir != row.want {
				t.Errorf("%v %v, want %v", info.Mode(), err, row.want)
			}
			if err := d.SetModeAndGroup("_archived", row.want, os.Getgid()); err != nil { // again, as after a crash
				t.Error(err)
			}
			kit.Fails(t, "err", d.SetModeAndGroup("missing", row.want, -1), fs.ErrNotExist)
		})
	}
}

// tried says where the one call that sets setgid was refused already.
var tried = map[string]bool{}
