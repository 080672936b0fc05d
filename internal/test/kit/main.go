package kit

import (
	"flag"
	"os"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

// memory is a file system whose syncs are free.
const memory = "/dev/shm"

// MainOfManyFiles runs the tests of a package that opens very many files, and
// returns the exit code. The files are in memory where there is room and TMPDIR
// is unset, and memory is collected late. The go command notes each
// file that a test opens to know when a result may be used again: here that
// takes minutes and gigabytes, so it is switched off and the tests always run.
func MainOfManyFiles(m *testing.M) int {
	var st unix.Statfs_t
	if os.Getenv("TMPDIR") == "" && unix.Statfs(memory, &st) == nil && st.Bavail*uint64(st.Bsize) > 2e9 && unix.Access(memory, unix.W_OK) == nil {
		os.Setenv("TMPDIR", memory)
	}
	debug.SetGCPercent(400)
	flag.Parse()
	if err := flag.Set("test.testlogfile", ""); err != nil {
		panic(err)
	}
	return m.Run()
}
