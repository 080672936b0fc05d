package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// TestInit_I27_TightensTheStateDirectory: what is in state_dir is for vaultd's
// user alone. A group may keep the right to reach the socket.
func TestInit_I27_TightensTheStateDirectory(t *testing.T) {
	t.Parallel()
	for mode, want := range map[fs.FileMode]fs.FileMode{0o755: 0o700, 0o750: 0o700, 0o711: 0o700, 0o710: 0o710, 0o700: 0o700} {
		dir := filepath.Join(t.TempDir(), "state")
		kit.Must(t, os.Mkdir(dir, 0o700))
		kit.Must(t, os.Chmod(dir, mode))
		out, errs, code := runHere("init", "--config", writeConfig(t, smallConfig+"state_dir: "+dir+"\n"))
		if code != exitDone {
			t.Fatalf("exit code = %d, want %d\n%s%s", code, exitDone, out, errs)
		}
		info, err := os.Lstat(dir)
		kit.Must(t, err)
		kit.Want(t, fmt.Sprintf("rights of a directory that had %04o", mode), info.Mode().Perm(), want)
	}
}

// TestProcess_I27_NotDumpable: secrets in memory are kept out of core files and
// away from other processes of the same user. It asks a process of its own:
// what is set there cannot be undone.
func TestProcess_I27_NotDumpable(t *testing.T) {
	const other = "VAULTD_TEST_NO_DUMP"
	if os.Getenv(other) != "" {
		err := leaveNoDump()
		var core unix.Rlimit
		limitErr := unix.Getrlimit(unix.RLIMIT_CORE, &core)
		dumpable, prctlErr := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Println("dumpable", dumpable, "core", core.Cur, core.Max, "errors", err, limitErr, prctlErr)
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProcess_I27_NotDumpable$", "-test.v")
	cmd.Env = append(os.Environ(), other+"=1")
	out, err := cmd.CombinedOutput()
	kit.Must(t, err)
	kit.Holds(t, "the other process", string(out), "dumpable 0 core 0 0 errors <nil> <nil> <nil>")
}
