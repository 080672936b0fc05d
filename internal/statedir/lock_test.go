package statedir

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A planted lock file in the state directory is not opened: what has that content elsewhere is neither written nor cut.
func TestLock_I19_APlantedLockFile(t *testing.T) {
	for name, plant := range map[string]func(precious, lock string) error{"Link": os.Symlink, "HardLink": os.Link, "FIFO": func(_, lock string) error { return unix.Mkfifo(lock, 0o600) }} {
		t.Run(name, func(t *testing.T) {
			dir, other := t.TempDir(), t.TempDir()
			const words = "what is precious to somebody else"
			if err := errors.Join(os.WriteFile(other+"/precious", []byte(words), 0o600), plant(other+"/precious", dir+"/vaultd.lock")); err != nil {
				t.Fatal(err)
			}
			f, err := Lock(dir, daemonRole)
			if err == nil {
				f.Close()
			}
			if err == nil || !strings.Contains(err.Error(), dir+"/vaultd.lock") || !strings.Contains(err.Error(), "remove it") {
				t.Errorf("%v", err)
			}
			if now, err := os.ReadFile(other + "/precious"); err != nil || string(now) != words {
				t.Errorf("written through the link: %q, %v", now, err)
			}
		})
	}
}
