package drop

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"
	"unsafe"

	"golang.org/x/sys/unix"

	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// refusingStatx runs do on a thread for which the kernel answers each statx with errno, as under the filter of an old container
// runtime. The thread ends with it, and so does the filter.
func refusingStatx(t *testing.T, errno syscall.Errno, do func() error) {
	t.Helper()
	var filterErr, err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // for good
		code := []unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the call
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: 1, K: unix.SYS_STATX},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(errno)},
			{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
		}
		program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
		if filterErr = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); filterErr != nil {
			return
		}
		if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); e != 0 {
			filterErr = e
			return
		}
		var st unix.Statx_t
		if got := unix.Statx(unix.AT_FDCWD, "/", 0, unix.STATX_BASIC_STATS, &st); !errors.Is(got, errno) {
			err = fmt.Errorf("statx is not refused: %w", got)
			return
		}
		err = do()
	}()
	<-done
	switch {
	case filterErr != nil:
		kit.Missing(t, "the right to filter system calls: "+filterErr.Error())
	case err != nil:
		t.Error(err)
	}
}

// reopen opens the drop folder as a daemon does that was started where the caller is.
func (y *yard) reopen() error {
	err := y.f.Close()
	if err == nil {
		y.f, err = Open(Config{Path: y.path, Name: "acme", LedgerID: "L", Environment: "test"})
	}
	return err
}

var invoices = watch.Rules{Sidecar: "metadata.json"}

// Where statx is refused everything looks as it does with it, and a folder without a mount is claimed. Any other error is told.
func TestStatx_I19_I24_Refused(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS, syscall.EIO} {
		t.Run(unix.ErrnoName(errno), func(t *testing.T) {
			y := newYard(t)
			kit.Must(y.t, os.Symlink("rechnung.pdf", filepath.Join(y.path, "Huber 88/link")))
			dir := kit.Value(os.Open(filepath.Join(y.path, "Huber 88")))(y.t)
			defer dir.Close()
			look := func() (seen []syscall.Stat_t, _ error) {
				for _, name := range []string{"", "rechnung.pdf", "Anlagen", "link", "none"} {
					s, err := durable.Lstat(dir, name)
					if name == "" {
						s, err = durable.Fstat(dir)
					}
					if name == "none" && errors.Is(err, os.ErrNotExist) {
						continue
					}
					if err != nil {
						return nil, err
					}
					st := *s.Sys().(*syscall.Stat_t)
					st.Atim, st.Blksize = syscall.Timespec{}, 0
					seen = append(seen, st)
				}
				return seen, nil
			}
			want := kit.Value(look())(y.t)
			wantTaken := kit.Value(invoices.ScanFolder(y.f.root.Root(), "Huber 88"))(y.t)
			refusingStatx(t, errno, func() error {
				got, err := look()
				taken, takeErr := invoices.ScanFolder(y.f.root.Root(), "Huber 88")
				if errno == syscall.EIO {
					kit.Check(t, errors.Is(err, errno) && errors.Is(takeErr, errno),
						"an error of the disk: %v, %v", err, takeErr)
					return nil
				}
				if err := errors.Join(err, takeErr); err != nil {
					return err
				}
				for i, st := range got {
					kit.Want(t, "the state", st, want[i])
				}
				kit.Check(t, taken == wantTaken && taken.Files == 4 && taken.Problem == nil,
					"%+v, want %+v", taken, wantTaken)
				if err := y.reopen(); err != nil {
					return err
				}
				_, err = y.f.ClaimFolder("Huber 88", time.Now())
				return err
			})
		})
	}
}

// Where statx is refused the kernel's table tells a mount of the same file system to whoever claims, and the device one of another to
// whoever looks.
func TestStatx_I19_RefusedWithAMount(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	for name, mount := range map[string]func(y *yard) (done func()){
		"OnAFolder": func(y *yard) func() { return y.bind("Huber 88", false) },
		"OnAFile":   func(y *yard) func() { return y.bind("Huber 88", true) },
		"OtherFileSystem": func(y *yard) func() {
			at := filepath.Join(y.path, "Huber 88/Anlagen")
			kit.Must(y.t, unix.Mount("tmpfs", at, "tmpfs", 0, "size=64k"))
			return func() { kit.Must(y.t, unix.Unmount(at, unix.MNT_DETACH)) }
		},
	} {
		for _, errno := range []syscall.Errno{syscall.EPERM, syscall.ENOSYS} {
			t.Run(name+"/"+unix.ErrnoName(errno), func(t *testing.T) {
				y := newYard(t)
				done := mount(y)
				refusingStatx(t, errno, func() error {
					if err := y.reopen(); err != nil {
						return err
					}
					look, err := invoices.ScanFolder(y.f.root.Root(), "Huber 88")
					told := errors.Is(look.Problem, syscall.EXDEV)
					kit.Check(t, err == nil && told == (name == "OtherFileSystem"), "looked at: %v, %v", look.Problem, err)
					_, err = y.f.ClaimFolder("Huber 88", time.Now())
					y.found("claim", err)
					return nil
				})
				y.lies("Huber 88")
				done()
				refusingStatx(t, errno, func() error {
					_, err := y.f.ClaimFolder("Huber 88", time.Now())
					return err
				})
			})
		}
	}
}

// A place that is taken for one leads to the four folders of ours and no further.
func FuzzPlace_I19(f *testing.F) {
	for _, s := range []string{"_rejected/Huber 88", "_archived/2026-11/Müller", "_archived/../x", "_rejected/..", "_rejected//x", "/_rejected/x", "_duplicates/.", "_rejected/a/b", "_archived/2026-13/x", "_rejected/a\x00b", "_delivered/2026-11/scan7.pdf", "_delivered/scan7.pdf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, rel string) {
		p, err := parsePlace(rel)
		if err != nil {
			return
		}
		if p.rel() != rel || path.Clean(rel) != rel || path.IsAbs(rel) || p.name == ".." || p.name == "." || p.name == "" || strings.ContainsAny(p.name, "/\x00") {
			t.Errorf("%q is taken for %+v", rel, p)
		}
		first, _, _ := strings.Cut(rel, "/")
		kit.Check(t, first == "_archived" || first == "_delivered" || first == "_rejected" || first == "_duplicates", "%q leads elsewhere", rel)
	})
}

// A second place of the same name is one name, fits a file system, and differs from the first.
func FuzzNumbered(f *testing.F) {
	f.Add("Müller 4711", uint8(2))
	f.Add(strings.Repeat("ü", 200), uint8(9))
	f.Add("a.b.c", uint8(1))
	f.Add("\xff\xfe", uint8(3))
	f.Fuzz(func(t *testing.T, name string, n uint8) {
		if name == "" || len(name) > 255 || strings.ContainsAny(name, "/\x00") {
			return
		}
		got := withNumber(name, int(n)+2)
		if len(got) > 255 || got == "" || got == name || strings.ContainsAny(got, "/\x00") || utf8.ValidString(name) && !utf8.ValidString(got) || got == withNumber(name, int(n)+3) {
			t.Errorf("%q: %q", name, got)
		}
	})
}
