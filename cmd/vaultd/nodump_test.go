// This test is inside the package: only main keeps the memory of its process
// out of core files, and a test cannot call main.
package main

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

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
	out := kit.Value(cmd.CombinedOutput())(t)
	kit.Holds(t, "the other process", string(out), "dumpable 0 core 0 0 errors <nil> <nil> <nil>")
}
