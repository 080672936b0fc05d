package campaign

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// launch is set for a child that is to put itself under the filter and become the program.
const launch = "CAMPAIGN_LAUNCH"

func TestMain(m *testing.M) {
	if os.Getenv(launch) != "" {
		fmt.Fprintln(os.Stderr, "launch:", become(os.Args[1:]))
		os.Exit(1)
	}
	if dir := os.Getenv(deedsIn); dir != "" {
		if err := deeds(dir); err != nil {
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
