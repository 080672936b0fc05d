package kit

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// OwnMounts runs the test once more in a process with mounts of its own, which
// only that process sees and which end with it. There it returns true. In the
// first process it returns false when the other one has passed; a machine that
// allows such mounts neither to root nor in a user namespace is Missing them.
func OwnMounts(t testing.TB) bool {
	t.Helper()
	const inside = "VAULTD_TEST_MOUNTS"
	if os.Getenv(inside) != "" {
		Must(t, unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
		return true
	}
	for _, user := range []bool{false, true} {
		cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=3m")
		cmd.Env = append(os.Environ(), inside+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if user {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		switch exit, ran := errors.AsType[*exec.ExitError](err); {
		case ran && exit.Exited(), err == nil && !strings.Contains(string(out), "--- PASS: "+t.Name()):
			t.Fatalf("%s", out)
		case err == nil:
			return false
		}
	}
	Missing(t, "the right to mount, as root or in a user namespace")
	return false
}

// NeedBindfs ends a test that calls [Bindfs] where that is impossible.
func NeedBindfs(t testing.TB) {
	t.Helper()
	const what = "a mount that decides the modes of its files: "
	if _, err := exec.LookPath("bindfs"); err != nil {
		Missing(t, what+"apt-get install bindfs")
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		Missing(t, what+"/dev/fuse")
	}
}

// Bindfs mounts the folder at path over itself by bindfs, a FUSE file system
// whose options decide modes and owners. The test has its own mounts.
func Bindfs(t testing.TB, path string, options ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "bindfs", append(options, "-o", "nonempty", path, path)...).CombinedOutput()
	if err != nil {
		t.Fatalf("bindfs: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) }) // bindfs ends with its last file
}
