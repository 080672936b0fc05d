package drop

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// Users of the tests below: vaultd's, and that of a clerk. No account needs them.
const (
	vaultdUser = 47_110
	clerk      = 47_111
	clerks     = 47_112 // the group of both
)

// helperMode is the variable with which these tests start themselves as another
// user; its value says what to do there.
const helperMode = "VAULTD_TEST_OPEN"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(helperMode); {
	case mode == "find":
		findInChild()
	case mode != "":
		holdInChild(mode)
	default:
		os.Exit(m.Run())
	}
}

// found is what one search in a child of the test says.
type found struct {
	Open, Err string
}

// findInChild searches each of the arguments in the drop folder that is the first of them.
func findInChild() {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	path := os.Args[1]
	f, err := Open(config(path))
	fail(err)
	root, err := os.OpenRoot(path)
	fail(err)
	all := map[string]found{}
	for _, name := range os.Args[2:] {
		open, err := f.FindOpen(root, name, func(name string) bool { return name == "Thumbs.db" })
		one := found{Open: open}
		if errors.Is(err, ErrNotAsked) {
			one.Err = "not asked"
		} else if err != nil {
			one.Err = err.Error()
		}
		all[name] = one
	}
	fail(errors.Join(f.Close(), json.NewEncoder(os.Stdout).Encode(all)))
}

// holdInChild opens the file that is the first argument, and keeps it until its input ends.
func holdInChild(mode string) {
	flags := map[string]int{"write": os.O_WRONLY, "append": os.O_WRONLY | os.O_APPEND, "both": os.O_RDWR, "map": os.O_RDWR, "read": os.O_RDONLY, "lease": os.O_RDWR}[mode]
	file, err := os.OpenFile(os.Args[1], flags, 0)
	if err == nil && mode == "map" {
		if _, err = unix.Mmap(int(file.Fd()), 0, 4, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			err = file.Close()
		}
	}
	if err == nil && mode == "lease" { // as a file server has it that lets its client keep changes to itself
		_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK)
	}
	fmt.Println(err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	_ = file.Close() // mapped: it is closed
}

// as starts this test again as another user, with the rights in caps and no others.
func as(t *testing.T, mode string, uid uint32, caps []uintptr, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), helperMode+"="+mode)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: clerks}, AmbientCaps: caps}
	return cmd
}

// hold has another user hold a file until the returned function is called.
func hold(t *testing.T, mode string, uid uint32, path string) (release func()) {
	t.Helper()
	cmd := as(t, mode, uid, nil, path)
	in := kit.Value(cmd.StdinPipe())(t)
	out := kit.Value(cmd.StdoutPipe())(t)
	kit.Must(t, cmd.Start())
	kit.Want(t, mode+" of another user", kit.Value(bufio.NewReader(out).ReadString('\n'))(t), "<nil>\n")
	return func() { kit.Must(t, errors.Join(in.Close(), cmd.Wait())) }
}

// find searches as vaultd's user, with the rights in caps.
func find(t *testing.T, path string, caps []uintptr, names ...string) map[string]found {
	t.Helper()
	out := kit.Value(as(t, "find", vaultdUser, caps, append([]string{path}, names...)...).Output())(t)
	var all map[string]found
	kit.Must(t, json.Unmarshal(out, &all))
	return all
}

// clerkShare makes a drop folder of vaultd's user, with files of a clerk in it. Both may reach it.
func clerkShare(t *testing.T, names ...string) string {
	t.Helper()
	if os.Geteuid() != 0 {
		kit.Missing(t, "needs root: files of several users")
	}
	base := kit.Value(os.MkdirTemp("", "open"))(t)
	t.Cleanup(func() { os.RemoveAll(base) })
	path := filepath.Join(base, "in")
	kit.Must(t, errors.Join(os.Mkdir(path, 0o770), os.Chmod(base, 0o755), os.Chown(path, vaultdUser, clerks), os.Chmod(path, 0o770|os.ModeSetgid)))
	put(t, path, names...)
	kit.Must(t, filepath.WalkDir(path, func(p string, _ os.DirEntry, err error) error {
		if p != path {
			err = errors.Join(err, os.Chown(p, clerk, clerks), os.Chmod(p, 0o770))
		}
		return err
	}))
	return path
}

var leaseRight = []uintptr{unix.CAP_LEASE}

// I17: a file that another user still has open for writing, in whatever way, is
// found with the rights of the unit; one that is read, or closed, is not.
func TestFindOpen_I17_WritersOfAnotherUser(t *testing.T) {
	path := clerkShare(t, "scan.pdf", "Huber 88/metadata.json", "Huber 88/sub/r.pdf", "quiet.pdf", "Huber 89/Thumbs.db")
	for _, row := range []struct {
		mode, file, name, want string
	}{
		{"write", "scan.pdf", "scan.pdf", "scan.pdf"},
		{"append", "scan.pdf", "scan.pdf", "scan.pdf"},
		{"both", "Huber 88/sub/r.pdf", "Huber 88", "Huber 88/sub/r.pdf"},
		{"map", "Huber 88/sub/r.pdf", "Huber 88", "Huber 88/sub/r.pdf"}, // its descriptor is closed
		{"lease", "scan.pdf", "scan.pdf", "scan.pdf"},
		{"read", "scan.pdf", "scan.pdf", ""},
		{"both", "Huber 89/Thumbs.db", "Huber 89", ""}, // what a system leaves behind is no content
	} {
		t.Run(row.mode+" "+row.file, func(t *testing.T) {
			release := hold(t, row.mode, clerk, filepath.Join(path, row.file))
			kit.Want(t, "while it is held", find(t, path, leaseRight, row.name, "quiet.pdf"), map[string]found{row.name: {Open: row.want}, "quiet.pdf": {}})
			release()
			kit.Want(t, "afterwards", find(t, path, leaseRight, row.name), map[string]found{row.name: {}})
		})
	}
}

// I27: without its one capability vaultd claims nothing of the files of other
// users, and still knows of its own.
func TestFindOpen_I27_WithoutTheRight(t *testing.T) {
	path := clerkShare(t, "scan.pdf", "own.pdf")
	kit.Must(t, os.Chown(filepath.Join(path, "own.pdf"), vaultdUser, clerks))
	defer hold(t, "write", clerk, filepath.Join(path, "scan.pdf"))()
	defer hold(t, "write", vaultdUser, filepath.Join(path, "own.pdf"))()
	kit.Want(t, "without CAP_LEASE", find(t, path, nil, "scan.pdf", "own.pdf"), map[string]found{"scan.pdf": {Err: "not asked"}, "own.pdf": {Open: "own.pdf"}})
	kit.Want(t, "with CAP_LEASE", find(t, path, leaseRight, "scan.pdf", "own.pdf"), map[string]found{"scan.pdf": {Open: "scan.pdf"}, "own.pdf": {Open: "own.pdf"}})
}

// If the kernel's answers are not true, none is believed: neither "open" nor "closed".
func TestFindOpen_UnbelievedLeases(t *testing.T) {
	path, f := opened(t)
	f.hasLeases = false
	put(t, path, "scan.pdf")
	writer := kit.Value(os.OpenFile(filepath.Join(path, "scan.pdf"), os.O_WRONLY, 0))(t)
	defer writer.Close()
	got, err := f.FindOpen(f.root.Root(), "scan.pdf", func(string) bool { return false })
	kit.Check(t, got == "" && errors.Is(err, ErrNotAsked), "got %q, %v, want no file and ErrNotAsked", got, err)
}

// The test for true leases leaves nothing behind, and a lease that a writer
// waits for ends no process: its signal is harmless.
func TestFindOpen_LeavesNothingAndSurvivesTheSignal(t *testing.T) {
	path := share(t)
	kit.Want(t, "leases are true on "+path, open(t, config(path)).hasLeases, true)
	names := kit.Value(os.ReadDir(filepath.Join(path, vaultdDir)))(t)
	kit.Check(t, !slices.ContainsFunc(names, func(e os.DirEntry) bool { return strings.HasPrefix(e.Name(), testFilePrefix) }),
		"a test file is left: %v", names)
	put(t, path, "scan.pdf")
	file, err := os.Open(filepath.Join(path, "scan.pdf"))
	kit.Must(t, err)
	defer file.Close()
	_, err = unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	kit.Must(t, err)
	_, err = os.OpenFile(filepath.Join(path, "scan.pdf"), os.O_WRONLY|unix.O_NONBLOCK, 0) // breaks the lease: SIGIO
	kit.Fails(t, "a writer beside the lease", err, unix.EAGAIN)
	kit.Must(t, tryReadLease(file))
}
