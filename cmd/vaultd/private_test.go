package main_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

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
		kit.Need(t, code == exitDone, "exit code = %d, want %d\n%s%s", code, exitDone, out, errs)
		info := kit.Value(os.Lstat(dir))(t)
		kit.Want(t, fmt.Sprintf("rights of a directory that had %04o", mode), info.Mode().Perm(), want)
	}
}
