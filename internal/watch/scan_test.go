package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

var rules = Rules{Sidecar: "metadata.json"}

// write makes files, with their folders, below base; a name that ends in a slash is a folder.
func write(t *testing.T, base string, names ...string) {
	t.Helper()
	for _, name := range names {
		path := filepath.Join(base, name)
		os.MkdirAll(filepath.Dir(path), 0o770)
		var err error
		if strings.HasSuffix(name, "/") {
			err = os.MkdirAll(path, 0o770)
		} else {
			err = os.WriteFile(path, []byte(name), 0o660)
		}
		kit.Must(t, err)
	}
}

func look(t *testing.T, base, name string) Scan {
	t.Helper()
	root := kit.Value(os.OpenRoot(base))(t)
	defer root.Close()
	l := kit.Value(rules.ScanFolder(root, name))(t)
	return l
}

func TestLook_FingerprintSeesEveryChange(t *testing.T) {
	old := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC)
	kit.Rows(t, map[string]func(dir string) error{
		"Grows":               func(d string) error { return os.WriteFile(d+"/sub/b.pdf", []byte("longer than it was"), 0o660) },
		"SameSizeOldMtime":    func(d string) error { return os.Chtimes(d+"/a.pdf", old, old) },
		"NewFile":             func(d string) error { return os.WriteFile(d+"/sub/c.pdf", nil, 0o660) },
		"Renamed":             func(d string) error { return os.Rename(d+"/a.pdf", d+"/z.pdf") },
		"SwappedByLink":       func(d string) error { return errors.Join(os.Remove(d+"/a.pdf"), os.Symlink("sub/b.pdf", d+"/a.pdf")) },
		"HardLinked":          func(d string) error { return os.Link(d+"/a.pdf", filepath.Dir(d)+"/elsewhere") },
		"EmptyFolderAppeared": func(d string) error { return os.Mkdir(d+"/sub/deep", 0o770) },
		"OwnRights":           func(d string) error { return os.Chmod(d, 0o700) },
		"NothingButJunk":      func(d string) error { return os.WriteFile(d+"/sub/Thumbs.db", nil, 0o660) },
	}, func(t *testing.T, change func(dir string) error) {
		base := t.TempDir()
		write(t, base, "f/metadata.json", "f/a.pdf", "f/sub/b.pdf")
		os.Chtimes(base+"/f/a.pdf", old, old)
		before := look(t, base, "f")
		again := look(t, base, "f")
		kit.Need(t, again.Fingerprint == before.Fingerprint, "two looks at the same differ")
		kit.Must(t, change(base+"/f"))
		kit.Check(t, look(t, base, "f").Fingerprint != before.Fingerprint, "change not seen")
	})
}

func TestLook_FingerprintSurvivesTheClaim(t *testing.T) {
	base := t.TempDir()
	write(t, base, "f/metadata.json", "f/sub/b.pdf", "claimed/")
	before := look(t, base, "f")
	kit.Must(t, os.Rename(base+"/f", base+"/claimed/f"))
	kit.Want(t, "rename alone changed the fingerprint", look(t, base+"/claimed", "f").Fingerprint, before.Fingerprint)
	kit.Check(t, look(t, base+"/claimed/f", ".").Fingerprint == before.Fingerprint,
		"the folder itself as root has another fingerprint")
}

func TestLook_Facts(t *testing.T) {
	base := t.TempDir()
	write(t, base, "f/METADATA.json", "f/a.pdf", "f/Thumbs.db", "f/sub/x.PART", "f/.DONE", "f/sub/metadata.json")
	os.Symlink("/etc", base+"/f/link")
	syscall.Mkfifo(base+"/f/fifo", 0o600)
	l := look(t, base, "f")
	if l.Sidecar != "METADATA.json" || !l.HasMarker || l.Temporary != "sub/x.PART" || l.Junk != 1 || l.Files != 7 || l.Problem != nil || l.IsTruncated {
		t.Errorf(`%+v, want l.Sidecar = "METADATA.json", l.HasMarker, l.Temporary = "sub/x.PART", l.Junk = 1, l.Files = 7, l.Problem = nil, not l.IsTruncated`, l)
	}
	write(t, base, "inner/sub/metadata.json", "inner/~$brief.docx")
	l = look(t, base, "inner")
	kit.Check(t, l.Sidecar == "" && l.Temporary == "~$brief.docx", "sidecar of a sub-folder counted, or lock file missed: %+v", l)
}

func TestLook_I21_Bounded(t *testing.T) {
	base := t.TempDir()
	write(t, base, "deep/"+strings.Repeat("d/", 40)+"x", "deep/metadata.json")
	if l := look(t, base, "deep"); !l.IsTruncated || l.Problem != nil || l.Files != 1 {
		t.Errorf("deep: %+v", l)
	}
	write(t, base, "many/")
	for i := range 300 {
		write(t, base, fmt.Sprintf("many/%03d", i))
	}
	write(t, base, "many/metadata.json")
	root, _ := os.OpenRoot(base)
	defer root.Close()
	few := Rules{Sidecar: "metadata.json", maxEntries: 10}.withDefaults()
	l, err := few.ScanFolder(root, "many")
	kit.Check(t, err == nil && l.IsTruncated && l.Files <= 10 && l.Sidecar != "", "many: %+v, %v", l, err)
}

func TestLook_I19_NoFolderNoLook(t *testing.T) {
	base := t.TempDir()
	write(t, base, "f/metadata.json", "file")
	os.Symlink("f", base+"/link")
	root, _ := os.OpenRoot(base)
	defer root.Close()
	for name, want := range map[string]error{"link": syscall.ENOTDIR, "file": syscall.ENOTDIR, "missing": fs.ErrNotExist} {
		kit.Fails(t, name, kit.Err(rules.ScanFolder(root, name)), want)
	}
}

// asNobody runs do with the rights of an ordinary user, on this thread alone.
func asNobody(t *testing.T, do func()) {
	t.Helper()
	if os.Getuid() != 0 {
		do()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(65534); err != nil {
		kit.Missing(t, "the right to drop rights: "+err.Error())
	}
	defer unix.Setfsuid(0)
	do()
}

func TestLook_UnreadableSubfolderIsAProblem(t *testing.T) {
	base := t.TempDir()
	os.Chmod(base, 0o755)
	write(t, base, "f/metadata.json", "f/secret/x.pdf", "closed/metadata.json")
	os.Chmod(base+"/f", 0o755)
	os.Chmod(base+"/f/secret", 0)
	os.Chmod(base+"/closed", 0)
	defer os.Chmod(base+"/f/secret", 0o700)
	defer os.Chmod(base+"/closed", 0o700)
	root, _ := os.OpenRoot(base)
	defer root.Close()
	asNobody(t, func() {
		l, err := rules.ScanFolder(root, "f")
		kit.Check(t, err == nil && errors.Is(l.Problem, fs.ErrPermission) && l.Sidecar != "",
			"sub-folder: %+v, %v", l, err)
		kit.Fails(t, "folder", kit.Err(rules.ScanFolder(root, "closed")), fs.ErrPermission)
	})
}

// The daemon is stopped or reloaded while a large drop folder is being listed.
func TestWatcher_I32_StoppedInTheMiddleOfAListing(t *testing.T) {
	kit.Waits(t, 1, "the kernel dates files by a real clock")
	dir := t.TempDir()
	const all = 3000
	for i := range all {
		kit.Must(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.pdf", i)), nil, 0o660))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := 0
	w, err := New(Config{Path: dir, Settle: time.Second, Rescan: time.Hour, Mode: Poll, Complete: Quiet, Rules: Rules{Sidecar: "metadata.json", IsJunk: func(string) bool { return false }},
		OnChange: func() {}, IsComplete: nil, IsReserved: func(string) bool {
			if asked++; asked == all+10 { // in the second listing
				cancel()
			}
			return false
		}})
	kit.Must(t, err)
	go func() {
		for w.Snapshot().LastRescan.IsZero() {
			time.Sleep(10 * time.Millisecond)
		}
		kit.Want(t, "not taken", w.Snapshot().NotTaken[0].Count, all)
		w.RequestRescan()
	}()
	began := time.Now()
	_ = w.Run(ctx, func(context.Context, Item) error { return nil })
	s := w.Snapshot()
	if len(s.NotTaken) == 0 || s.NotTaken[0].Count != all {
		t.Errorf("after the end the watcher says that it read the whole drop folder at %s (began %s), and that %+v lie there", s.LastRescan, began, s.NotTaken[0].Count)
	}
}
