package campaign

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"vaultd/internal/catalog"
)

// point is a trapped call in words.
type point struct {
	notice
	call string // as trapped names it
	path string // what it is done to, absolute, or as the kernel names what is no file
	to   string // of a rename
	name string // of the kind of point: "rename claimed > archived"; empty: of no interest
}

// watcher lets the calls of one process pass, counts them, and kills before the one that it was told to.
type watcher struct {
	*listener
	pid   int
	dir   string // of the campaign
	fatal func(p point, all int) bool
	power *power // nil: the power stays on
	over  chan struct{}

	mu     sync.Mutex
	seen   map[string]int // guarded by mu
	all    int            // points but those of the catalog; guarded by mu
	killed string         // the point before which it died; guarded by mu
}

func (w *watcher) run() {
	defer close(w.over)
	defer w.close()
	for {
		n, ok := w.receive()
		if !ok {
			return
		}
		if p := w.point(n); !w.strikes(p) {
			w.pass(n, w.power.before(p))
		}
	}
}

// strikes counts the point and kills where it is fatal; a call that is not answered never happens.
func (w *watcher) strikes(p point) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.killed != "" {
		return true
	}
	if p.name == "" {
		return false
	}
	w.seen[p.name]++
	if w.place(p.path) != catalogPlace { // its many small writes would leave few deaths for what documents need
		w.all++
	}
	if w.fatal == nil || !w.fatal(p, w.all) {
		return false
	}
	w.killed = fmt.Sprintf("%s #%d", p.name, w.seen[p.name])
	_ = unix.Kill(w.pid, unix.SIGKILL) // it cannot be gone: one of its threads waits for an answer
	return true
}

// result returns what was seen, once nobody is left.
func (w *watcher) result() (seen map[string]int, killed string) {
	<-w.over
	return w.seen, w.killed
}

func (w *watcher) point(n notice) point {
	p := point{notice: n, call: trapped[int(n.nr)]}
	switch n.nr {
	case unix.SYS_RENAMEAT, unix.SYS_RENAMEAT2:
		p.path, p.to = w.at(n, 0), w.at(n, 2)
	case unix.SYS_UNLINKAT, unix.SYS_MKDIRAT, unix.SYS_OPENAT:
		p.path = w.at(n, 0)
	case unix.SYS_COPY_FILE_RANGE:
		p.path = w.fd(n, n.args[2])
	default: // sendfile too: what it is written to comes first
		p.path = w.fd(n, n.args[0])
	}
	p.name = w.name(p)
	return p
}

func (w *watcher) fd(n notice, arg uint64) string {
	path, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", n.tid, int32(arg)))
	return path
}

// at resolves a directory's descriptor and a name, the i-th argument and the next.
func (w *watcher) at(n notice, i int) string {
	name := w.text(n, n.args[i+1])
	if filepath.IsAbs(name) {
		return name
	}
	if int32(n.args[i]) == unix.AT_FDCWD {
		dir, _ := os.Readlink(fmt.Sprintf("/proc/%d/cwd", n.tid))
		return filepath.Join(dir, name)
	}
	return filepath.Join(w.fd(n, n.args[i]), name)
}

func (w *watcher) text(n notice, address uint64) string {
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", n.tid))
	if err != nil {
		return ""
	}
	defer mem.Close()
	b := make([]byte, 4096)
	got, _ := mem.ReadAt(b, int64(address)) // the page after it need not be there
	text, _, _ := bytes.Cut(b[:got], []byte{0})
	return string(text)
}

func (w *watcher) name(p point) string {
	place, to := w.place(p.path), w.place(p.to)
	switch {
	case place == "":
		return ""
	case p.call == "rename":
		return fmt.Sprintf("rename %s > %s", place, to)
	}
	return p.call + " " + place
}

// catalogPlace is the place of the catalog and what SQLite keeps beside it.
const catalogPlace = "catalog"

// place says in a word where a path lies; empty: where nobody cares.
func (w *watcher) place(path string) string {
	if strings.HasPrefix(path, "socket:") {
		return "connection"
	}
	rel, err := filepath.Rel(w.dir, strings.TrimSuffix(path, " (deleted)"))
	if path == "" || err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	part := strings.Split(rel, "/")
	switch {
	case part[0] == "state" && len(part) > 1 && part[1] == "spool":
		return "spool"
	case part[0] == "state" && len(part) > 1 && (part[1] == "ledger.db" || strings.HasPrefix(part[1], "ledger.head.")):
		return part[1]
	case part[0] == "state" && len(part) > 1 && strings.HasPrefix(part[1], catalog.FileName):
		return catalogPlace
	case part[0] == "state" || part[0] == "moved":
		return part[0]
	case part[0] != "drops" || len(part) < 3:
		return map[bool]string{true: "drop"}[part[0] == "drops"]
	case part[2] == ".vaultd" && len(part) > 3 && part[3] == "claimed":
		return "claimed"
	case strings.HasPrefix(part[2], "_") || strings.HasPrefix(part[2], "."):
		return strings.TrimSuffix(strings.Trim(part[2], "._"), ".txt.tmp")
	}
	return "drop"
}

// launch is set for a child that is to put itself under the filter and become the program.
const launch = "CAMPAIGN_LAUNCH"

func TestMain(m *testing.M) {
	if os.Getenv(launch) != "" {
		fmt.Fprintln(os.Stderr, "launch:", become(os.Args[1:]))
		os.Exit(1)
	}
	if dir := os.Getenv(deedsIn); dir != "" {
		if err := deedsOf[os.Getenv(deedsName)](dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// trapped are the calls that change the disk or talk to somebody; openat is one where it makes or empties a file.
var trapped = map[int]string{
	unix.SYS_FSYNC: "sync", unix.SYS_FDATASYNC: "sync", unix.SYS_PWRITE64: "write", unix.SYS_WRITE: "write",
	unix.SYS_FTRUNCATE: "truncate", unix.SYS_RENAMEAT: "rename", unix.SYS_RENAMEAT2: "rename", unix.SYS_UNLINKAT: "unlink",
	unix.SYS_MKDIRAT: "mkdir", unix.SYS_OPENAT: "create", unix.SYS_SENDFILE: "write", unix.SYS_COPY_FILE_RANGE: "write",
	unix.SYS_CONNECT: "connect",
}

var auditArch = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// filter is the program for the kernel: whatever is trapped waits for the listener.
func filter() []unix.SockFilter {
	const load, equal, anyBit, end = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K,
		unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const nr, arch, flags = 0, 4, 16 + 2*8 // offsets in what the kernel shows the filter
	n := uint8(len(trapped))
	f := []unix.SockFilter{{Code: load, K: arch}, {Code: equal, Jf: n + 1, K: auditArch[runtime.GOARCH]}, {Code: load, K: nr}}
	f = append(f, unix.SockFilter{Code: equal, Jt: n, K: unix.SYS_OPENAT})
	for call := range trapped {
		if call != unix.SYS_OPENAT {
			f = append(f, unix.SockFilter{Code: equal, Jt: n + 5 - uint8(len(f)), K: uint32(call)})
		}
	}
	return append(f, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW},
		unix.SockFilter{Code: load, K: flags}, unix.SockFilter{Code: anyBit, Jf: 1, K: unix.O_CREAT | unix.O_TRUNC},
		unix.SockFilter{Code: end, K: unix.SECCOMP_RET_USER_NOTIF}, unix.SockFilter{Code: end, K: unix.SECCOMP_RET_ALLOW})
}

// become puts the process under the filter, sends the listener through descriptor 3 and becomes args. It returns only
// an error.
func become(args []string) error {
	runtime.LockOSThread() // the filter is one thread's, and the thread that becomes the program keeps it
	code := filter()
	program := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER,
		unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return fmt.Errorf("seccomp: %w", errno)
	}
	if err := unix.Sendmsg(3, []byte{0}, unix.UnixRights(int(fd)), nil, 0); err != nil {
		return err
	}
	unix.CloseOnExec(3)
	env := os.Environ()
	for i, v := range env {
		if strings.HasPrefix(v, launch+"=") {
			env = append(env[:i], env[i+1:]...)
			break
		}
	}
	return unix.Exec(args[0], args, env)
}

// notice is what the kernel tells of a call that waits, answer what it is told.
type notice struct {
	id     uint64
	tid, _ uint32
	nr     int32
	arch   uint32
	_      uint64
	args   [6]uint64
}

type answer struct {
	id    uint64
	value int64
	errno int32
	flags uint32
}

// listener receives the calls of one process.
type listener struct{ fd int }

// startTrapped starts cmd under the filter. Where the kernel or a sandbox does not allow that, it says so.
func startTrapped(cmd *exec.Cmd) (*listener, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "listener"), os.NewFile(uintptr(pair[1]), "launch")
	defer ours.Close()
	cmd.Args = append([]string{os.Args[0]}, cmd.Args...)
	cmd.Path, cmd.ExtraFiles, cmd.Env = os.Args[0], []*os.File{theirs}, append(cmd.Environ(), launch+"=1")
	if err := errors.Join(cmd.Start(), theirs.Close()); err != nil {
		return nil, err
	}
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), rights)
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF // it said why on its standard error
	}
	if err != nil {
		return nil, err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	return &listener{fds[0]}, nil
}

// receive waits for the next call; false: nobody is left who could make one.
func (l *listener) receive() (n notice, ok bool) {
	for {
		p := []unix.PollFd{{Fd: int32(l.fd), Events: unix.POLLIN}}
		if _, err := unix.Poll(p, -1); errors.Is(err, unix.EINTR) {
			continue
		}
		if p[0].Revents&unix.POLLIN == 0 {
			return n, false
		}
		n = notice{}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(&n))); errno == 0 {
			return n, true
		}
	}
}

// pass lets the call happen; done tells the caller that it has happened already.
func (l *listener) pass(n notice, done bool) {
	a := answer{id: n.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
	if done {
		a.flags = 0
	}
	// Who asked may be dead by now.
	_, _, _ = unix.Syscall(unix.SYS_IOCTL, uintptr(l.fd), unix.SECCOMP_IOCTL_NOTIF_SEND, uintptr(unsafe.Pointer(&a)))
}

func (l *listener) close() { _ = unix.Close(l.fd) }
