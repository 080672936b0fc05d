package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// meet says whether two paths lead to one place.
func meet(t *testing.T, a, b string) bool {
	t.Helper()
	var at [2][]Position
	for i, path := range []string{a, b} {
		var err error
		if at[i], err = FindPositions(path); err != nil {
			t.Fatal(err)
		}
	}
	return slices.ContainsFunc(at[0], func(p Position) bool { return slices.Contains(at[1], p) })
}

// I19: where a place lies is told whatever links and mounts lead there, also before it exists.
func TestPositions_I19_LinksAndMounts(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	for _, err := range []error{
		os.MkdirAll(in("a/sub"), 0o700), os.MkdirAll(in("b"), 0o700), os.Mkdir(in("same"), 0o700), os.Mkdir(in("sub"), 0o700),
		os.Symlink(in("a"), in("link")), os.Symlink("link", in("link2")), os.Symlink("a/later", in("early")), os.Symlink("round", in("round")),
	} {
		kit.Must(t, err)
	}
	bind(t, in("a"), in("same"))
	bind(t, in("a/sub"), in("sub"))
	for _, row := range []struct {
		a, b string
		same bool
	}{
		{"a", "a", true}, {"a", "b", false}, {"a", "a/sub", false}, {"missing", "missing2", false}, {"a/missing", "b/missing", false},
		{"a", "link", true}, {"a/sub", "link2/sub", true}, {"a/missing/more", "link2/missing/more", true},
		{"a/later", "early", true}, {"a/later/x", "early/x", true}, {"a/later", "early/x", false},
		{"a", "same", true}, {"link2", "same", true}, {"a/missing", "same/missing", true}, {"a/sub", "sub", true}, {"a/sub/missing", "sub/missing", true},
		{"link2/sub", "sub", true}, {"sub", "same", false}, {"sub", "same/sub", true},
	} {
		kit.Want(t, fmt.Sprintf("%s and %s", row.a, row.b), meet(t, in(row.a), in(row.b)), row.same)
	}
	_, err := FindPositions(in("round/x"))
	kit.Check(t, err != nil && !errors.Is(err, unix.ENOENT), "a link to itself: %v", err)
}

func TestPositionIn(t *testing.T) {
	const table = "20 1 8:1 / / rw - ext4 /dev/sda1 rw\n31 20 8:1 /exports/all\\040files /srv/a\\040b rw - ext4 /dev/sda1 rw\n"
	for _, row := range []struct {
		mount             uint64
		real, below, want string
	}{
		{20, "/srv/x", "/y", "/srv/x/y"}, {31, "/srv/a b", "/", "/exports/all files"}, {31, "/srv/a b/c", "/d", "/exports/all files/c/d"},
		{31, "/srv/other", "/", ""}, {32, "/srv/a b", "/", ""},
	} {
		p, ok := parsePositionInTable(strings.NewReader(table), row.mount, row.real, row.below)
		kit.Check(t, ok == (row.want != "") && (!ok || p == (Position{"file system 8:1", row.want})),
			"%+v: %+v %v", row, p, ok)
	}
	_, ok := parsePositionInTable(strings.NewReader("20\n"), 20, "/", "/")
	kit.Check(t, !ok, "a broken line is read")
}

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
