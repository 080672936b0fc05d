package books

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// TestOpen_I27_ForItsUserAlone: the file of booked invoices is for vaultd's user
// alone, whatever the umask is.
func TestOpen_I27_ForItsUserAlone(t *testing.T) {
	w := newWorld(t)
	defer unix.Umask(unix.Umask(0))
	w.open(testSettings())
	all := kit.Value(filepath.Glob(filepath.Join(w.dir, FileName+"*")))(t)
	kit.Need(t, len(all) != 0, "no file in %s, want %s", w.dir, FileName)
	for _, path := range all {
		info := kit.Value(os.Lstat(path))(t)
		kit.Want(t, "rights of "+filepath.Base(path), info.Mode().Perm(), fs.FileMode(0o600))
	}
}
