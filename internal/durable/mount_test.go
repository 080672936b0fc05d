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

// bind mounts the file or folder from at the path to.
func bind(t *testing.T, from, to string) {
	t.Helper()
	kit.Must(t, unix.Mount(from, to, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(to, unix.MNT_DETACH) })
}

// mounted is a folder with a bind mount of the same file system in it, on a folder or on a file.
func mounted(t *testing.T) (base string, rows map[string]string) {
	t.Helper()
	base = t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	for _, dir := range []string{"real/deep", "folder/a b\\c\nd", "file", "below/x/y", "none/x"} {
		kit.Must(t, os.MkdirAll(at(dir), 0o700))
	}
	for _, file := range []string{"real/f", "real/deep/f", "file/f", "none/x/f"} {
		kit.Must(t, os.WriteFile(at(file), []byte("content"), 0o600))
	}
	bind(t, at("real"), at("folder/a b\\c\nd"))
	bind(t, at("real/f"), at("file/f"))
	bind(t, at("real/deep"), at("below/x/y"))
	return base, map[string]string{"folder": "a b\\c\nd", "file": "f", "below": "x/y", "none": ""}
}

// A bind mount of the same file system has the same device: only the number of the mount tells it, or the kernel's table.
func TestFindMount_I19(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	base, rows := mounted(t)
	for name, want := range rows {
		for _, way := range []string{"ByNumber", "ByTable"} {
			d := open(t, filepath.Join(base, name), nil)
			if way == "ByTable" {
				d.openedAs.mount = 0 // as on a kernel that does not tell
			}
			err := d.FindMount()
			found, is := errors.AsType[*MountError](err)
			if want == "" {
				kit.Want(t, fmt.Sprintf("%s %s", name, way), err, nil)
				continue
			}
			kit.Check(t, is && found.Path == want && errors.Is(err, syscall.EXDEV) && errors.Is(err, fs.ErrInvalid),
				"%s %s: %v, want a mount at %q", name, way, err, want)
		}
	}
}

// What is deeper or larger than anybody walks through is answered all the same.
func TestFindMount_I19_VeryDeepOrLarge(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	base := t.TempDir()
	deep := filepath.Join(base, strings.Repeat("x/", maxWalkDepth+5))
	kit.Must(t, os.MkdirAll(deep, 0o700))
	d := open(t, base, nil)
	kit.Want(t, "nothing is mounted", d.FindMount(), nil)
	bind(t, t.TempDir(), deep)
	_, is := errors.AsType[*MountError](d.FindMount())
	kit.Check(t, is, "a mount very deep inside was not found")
}

func TestSub_I19_RefusesMounts(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	base, _ := mounted(t)
	d := open(t, filepath.Join(base, "below/x"), nil)
	kit.Fails(t, "a mount was opened", kit.Err(d.OpenDir("y")), syscall.EXDEV)
	kit.Fails(t, "a mount was looked at", kit.Err(d.Lstat("y")), syscall.EXDEV)
	sub := kit.Value(d.OpenDirOrMount("y"))(t)
	defer sub.Close()
	kit.Want(t, "the top of a mount is no mount inside", sub.FindMount(), nil)
	kit.Fails(t, "a mount on a file was looked at",
		kit.Err(open(t, filepath.Join(base, "file"), nil).Lstat("f")), syscall.EXDEV)
}

func TestOpenRegular_I19_NothingThroughAMount(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	base, _ := mounted(t)
	root := open(t, base, nil).Root()
	for _, name := range []string{"file/f", "below/x/y/f", "folder/a b\\c\nd/deep/f"} {
		f, _, err := OpenRegular(root, name)
		if _, is := errors.AsType[*MountError](err); !is {
			t.Errorf("%q: %v, want is", name, err)
			if f != nil {
				f.Close()
			}
		}
	}
	f, _, err := OpenRegular(root, "none/x/f")
	kit.Must(t, err)
	f.Close()
}

// Without any right to mount: the decision alone, with a mount that a test plays.
func TestMount_I19_Played(t *testing.T) {
	base := t.TempDir()
	kit.Must(t, os.MkdirAll(filepath.Join(base, "a/b/c"), 0o700))
	d := open(t, base, func(op, name string, do func() error) error {
		if op == "mount" && name == "c" {
			return &MountError{Path: name}
		}
		return do()
	})
	found, is := errors.AsType[*MountError](d.FindMount())
	kit.Check(t, is && found.Path == "a/b/c", `%v, want is, found.Path = "a/b/c"`, found)
	a := kit.Value(d.OpenDir("a"))(t)
	defer a.Close()
	b := kit.Value(a.OpenDir("b"))(t)
	defer b.Close()
	kit.Fails(t, "opened", kit.Err(b.OpenDir("c")), syscall.EXDEV)
	kit.Fails(t, "looked at", kit.Err(b.Lstat("c")), syscall.EXDEV)
}

func TestMountBelow_ReadsTheTable(t *testing.T) {
	const table = "22 28 0:20 / /srv/drop/.vaultd/claimed/K/Huber\\04088/An\\134lage rw - ext4 /dev/sda1 rw\n" +
		"23 28 0:21 / /srv/dropped rw,nosuid shared:7 - proc proc rw\n"
	for here, want := range map[string]string{
		"/srv/drop/.vaultd/claimed/K/Huber 88": `An\lage`, `/srv/drop/.vaultd/claimed/K/Huber 88/An\lage`: ".", "/": `srv/drop/.vaultd/claimed/K/Huber 88/An\lage`,
		"/srv/dro": "", "/srv/dropped": ".", "/srv/drop/x": "",
	} {
		rel, found, err := findMountBelow(strings.NewReader(table), here)
		kit.Check(t, err == nil && rel == want && found == (want != ""),
			"%q: %q %v %v, want %q", here, rel, found, err, want)
	}
	_, _, err := findMountBelow(strings.NewReader("nonsense\n"), "/x")
	kit.Check(t, err != nil, "a table that makes no sense tells that nothing is mounted")
}

// FileStat says of a file what package os does.
func TestSeen_AsPackageOS(t *testing.T) {
	base := t.TempDir()
	kit.Must(t, errors.Join(os.WriteFile(filepath.Join(base, "f"), []byte("12345"), 0o640), os.Symlink("f", filepath.Join(base, "link")),
		os.Mkdir(filepath.Join(base, "dir"), 0o750), os.Chmod(filepath.Join(base, "dir"), 0o750|os.ModeSetgid), syscall.Mkfifo(filepath.Join(base, "fifo"), 0o600)))
	d := open(t, base, nil)
	for _, name := range []string{"f", "link", "dir", "fifo"} {
		want := kit.Value(os.Lstat(filepath.Join(base, name)))(t)
		for way, got := range map[string]func() (FileStat, error){
			"statx": func() (FileStat, error) { return d.Lstat(name) },
			"stat": func() (FileStat, error) {
				var st unix.Statx_t
				err := statWithoutStatx(int(d.file.Fd()), name, unix.AT_SYMLINK_NOFOLLOW, &st)
				return fileStatOf(name, &st), err
			},
		} {
			s := kit.Value(got())(t)
			is, was := s.stat, *want.Sys().(*syscall.Stat_t)
			is.Blksize, was.Blksize, is.Atim, was.Atim = 0, 0, syscall.Timespec{}, syscall.Timespec{}
			if s.Mode() != want.Mode() || s.Size() != want.Size() || !s.ModTime().Equal(want.ModTime()) || s.IsDir() != want.IsDir() || s.Name() != name || is != was {
				t.Errorf("%s of %s: %+v, want %+v", way, name, is, was)
			}
		}
	}
}

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
			d := kit.Value(Open(base, forbid))(t)
			defer d.Close()
			kit.Must(t, d.Mkdir("_archived", row.want|fs.ModeSetgid, os.Getgid()))
			info, err := os.Stat(filepath.Join(base, "_archived"))
			kit.Check(t, err == nil && info.Mode()&^fs.ModeDir == row.want, "%v %v, want %v", info.Mode(), err, row.want)
			if err := d.SetModeAndGroup("_archived", row.want, os.Getgid()); err != nil { // again, as after a crash
				t.Error(err)
			}
			kit.Fails(t, "err", d.SetModeAndGroup("missing", row.want, -1), fs.ErrNotExist)
		})
	}
}

// tried says where the one call that sets setgid was refused already.
var tried = map[string]bool{}
