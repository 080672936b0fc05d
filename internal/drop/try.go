package drop

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"vaultd/internal/durable"
)

// Names of the files that TryWrite makes in .vaultd.
const (
	tryPrefix = "doctor-"
	trySuffix = ".tmp"
	tryOld    = time.Hour // after it a file of such a name was left by a death, and not by a test under way
)

// ErrNeverUsed says that no vaultd has worked in a drop folder yet.
var ErrNeverUsed = errors.New("no vaultd has worked in this drop folder yet")

// TryWrite writes a file into .vaultd of the drop folder at path, syncs it, reads it back and removes it: what this process
// could not do there, it could not do with a document. Where there is no .vaultd yet it does nothing and returns ErrNeverUsed:
// a .vaultd that another user made would keep vaultd from working there. After a death in between, a file stays until the next test.
func TryWrite(path string) (err error) {
	root, err := durable.Open(path, nil)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	dir, err := root.OpenDir(vaultdDir)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNeverUsed
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := sweepTries(dir, time.Now()); err != nil {
		return err
	}
	return tryIn(dir)
}

func tryIn(dir *durable.Dir) error {
	name, want := tryPrefix+rand.Text()+trySuffix, []byte("vaultd doctor tries whether it can write here\n")
	err := dir.WriteFile(name, want, 0o600)
	if err == nil {
		err = readBack(dir, name, string(want))
	}
	// A death before this leaves the file; the next test removes it once it is an hour old.
	if gone := dir.Unlink(name); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, fmt.Errorf("remove the test file again: %w", gone))
	}
	return err
}

func readBack(dir *durable.Dir, name, want string) error {
	f, _, err := durable.OpenRegular(dir.Root(), name)
	if err != nil {
		return err
	}
	got, err := io.ReadAll(io.LimitReader(f, int64(len(want))+1))
	if err == nil && string(got) != want {
		err = errors.New("what is read is not what was written")
	}
	return errors.Join(err, f.Close())
}

// sweepTries removes what a test left that died.
func sweepTries(dir *durable.Dir, now time.Time) error {
	names, err := fs.ReadDir(dir.Root().FS(), ".")
	if err != nil {
		return err
	}
	for _, n := range names {
		if info, err := n.Info(); err == nil && strings.HasPrefix(strings.TrimPrefix(n.Name(), "."), tryPrefix) && strings.HasSuffix(n.Name(), trySuffix) &&
			info.Mode().IsRegular() && now.Sub(info.ModTime()) > tryOld {
			if err := dir.Unlink(n.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}
