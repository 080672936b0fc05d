package statedir

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// A planted lock file in the state directory is not opened: what has that content elsewhere is neither written nor cut.
func TestLock_I19_APlantedLockFile(t *testing.T) {
	type row func(precious, lock string) error
	kit.Rows(t, map[string]row{"Link": os.Symlink, "HardLink": os.Link, "FIFO": func(_, lock string) error { return unix.Mkfifo(lock, 0o600) }}, func(t *testing.T, plant row) {
		dir, other := t.TempDir(), t.TempDir()
		const words = "what is precious to somebody else"
		kit.Must(t, errors.Join(os.WriteFile(other+"/precious", []byte(words), 0o600), plant(other+"/precious", dir+"/vaultd.lock")))
		f, err := Lock(dir, daemonRole)
		if err == nil {
			f.Close()
		}
		kit.Check(t, err != nil && strings.Contains(err.Error(), dir+"/vaultd.lock") && strings.Contains(err.Error(), "remove it"),
			`%v, want an error, err with %q, err with "remove it"`, err, dir+"/vaultd.lock")
		kit.Want(t, "written through the link", string(kit.Value(os.ReadFile(other+"/precious"))(t)), words)
	})
}

func unheard(string) {}

// A command takes the lock of a daemon that died, and has not written its own name into it yet. The next daemon waits for it, as for any
// command: what the file names is over.
func TestLockForDaemon_I16_TheNameOfADeadDaemon(t *testing.T) {
	dir := t.TempDir()
	held, err := Lock(dir, daemonRole) // its name stays in the file
	kit.Must(t, err)
	time.AfterFunc(2*retryInterval, func() { held.Close() })
	f, err := LockForDaemon(t.Context(), dir, unheard)
	kit.Must(t, err)
	defer f.Close()
	_, err = LockForDaemon(t.Context(), dir, unheard)
	kit.Check(t, err != nil && strings.Contains(err.Error(), daemonRole), "a second daemon: %v", err)
}

// I16, I26: a daemon waits for a command that has the ledger open, and says so
// once: a command may check a large ledger for long, and a start that failed
// meanwhile would be one of ten. A command that takes longer is named.
func TestLockForDaemon_I16_I26_WaitsForALongCommand(t *testing.T) {
	for held, isAwaited := range map[time.Duration]bool{50 * time.Minute: true, DaemonPatience + time.Minute: false} {
		synctest.Test(t, func(t *testing.T) {
			dir, began, said := t.TempDir(), time.Now(), []string{}
			first := kit.Value(Lock(dir, commandRole))(t)
			time.AfterFunc(held, func() { first.Close() })
			got, err := LockForDaemon(t.Context(), dir, func(by string) { said = append(said, by) })
			inUse, _ := errors.AsType[*InUseError](err)
			kit.Check(t, (err == nil) == isAwaited && (inUse != nil) != isAwaited, "a command holds it for %s: %v after %s, want a daemon that waited: %t", held, err, time.Since(began), isAwaited)
			kit.Check(t, len(said) == 1 && strings.HasPrefix(said[0], commandRole+", process "), "said %q, want the command named once", said)
			if err == nil {
				got.Close()
			}
			time.Sleep(held) // the command ends
		})
	}
	synctest.Test(t, func(t *testing.T) { // a stop ends the wait
		dir, began := t.TempDir(), time.Now()
		defer kit.Value(Lock(dir, commandRole))(t).Close()
		ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		_, err := LockForDaemon(ctx, dir, unheard)
		kit.Check(t, err != nil && time.Since(began) == 10*time.Second, "stopped after 10 s: %v after %s, want an error at once", err, time.Since(began))
	})
}

// TestLock_I16_NamesTheHolderAlone: the file keeps nothing of a longer name of a
// former holder.
func TestLock_I16_NamesTheHolderAlone(t *testing.T) {
	dir := t.TempDir()
	former := kit.Value(Lock(dir, strings.Repeat("x", 100)))(t)
	kit.Must(t, former.Close())
	held, err := Lock(dir, daemonRole)
	kit.Must(t, err)
	defer held.Close()
	_, err = Lock(dir, commandRole)
	inUse, ok := errors.AsType[*InUseError](err)
	kit.Need(t, ok, "error = %v, want an InUseError", err)
	host := kit.Value(os.Hostname())(t)
	begin := fmt.Sprintf("%s, process %d on %s since ", daemonRole, os.Getpid(), host)
	since, ok := strings.CutPrefix(inUse.By, begin)
	_, err = time.Parse(time.RFC3339, since)
	kit.Check(t, ok && err == nil, "holder = %q, want %q and a time", inUse.By, begin)
}

// A command waits for another one that has the ledger open for a moment, and not for a daemon.
func TestOpenLedger_WaitsForACommand(t *testing.T) {
	for role, isAwaited := range map[string]bool{commandRole: true, daemonRole: false} {
		synctest.Test(t, func(t *testing.T) {
			dir := t.TempDir()
			held := kit.Value(Lock(dir, role))(t)
			time.AfterFunc(time.Second, func() { held.Close() })
			began := time.Now()
			got, err := lockForCommand(dir)
			kit.Check(t, (err == nil) == isAwaited && (isAwaited || time.Since(began) <= 200*time.Millisecond),
				"%s: %v after %v", role, err, time.Since(began))
			if err == nil {
				got.Close()
			}
			time.Sleep(2 * time.Second)
		})
	}
}

// TestOpenFolder_I27_ForItsUserAlone: packages, marks and received documents
// are for vaultd's user alone, whatever the umask is.
func TestOpenFolder_I27_ForItsUserAlone(t *testing.T) {
	defer unix.Umask(unix.Umask(0))
	dir := t.TempDir()
	for _, name := range []string{SpoolFolder, DropsFolder, ReceivedFolder} {
		kit.Must(t, kit.Value(OpenFolder(dir, name, nil))(t).Close())
		kit.Want(t, "mode of "+name, kit.Value(os.Lstat(filepath.Join(dir, name)))(t).Mode(), fs.ModeDir|0o700)
	}
}
