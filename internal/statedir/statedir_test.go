package statedir

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// TestOpenFolder_I27_ForItsUserAlone: packages, marks and received documents
// are for vaultd's user alone, whatever the umask is.
func TestOpenFolder_I27_ForItsUserAlone(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	dir := t.TempDir()
	for _, name := range []string{SpoolFolder, DropsFolder, ReceivedFolder} {
		folder := kit.Value(OpenFolder(dir, name, nil))(t)
		kit.Must(t, folder.Close())
		info := kit.Value(os.Lstat(filepath.Join(dir, name)))(t)
		kit.Want(t, "mode of "+name, info.Mode(), fs.ModeDir|0o700)
	}
}
