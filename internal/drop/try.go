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

// The files that TryWrite makes in .vaultd.
const (
	testFilePrefix = "doctor-"
	testFileSuffix = ".tmp"
	testFileOld    = time.Hour // an older file was left by a test that died
)

// ErrNeverUsed says that no vaultd has worked in a drop folder yet.
var ErrNeverUsed = errors.New("no vaultd has worked in this drop folder yet")

// TryWrite writes a file into .vaultd of the drop folder at path, syncs it,
// reads it back and removes it. What this process cannot do there, it cannot do
// with a document either. If there is no .vaultd yet it does nothing and
// returns [ErrNeverUsed]: a .vaultd that another user makes would keep vaultd
// from working there. A crash in between leaves the file; a later test removes
// it.
func TryWrite(path string) (err error) {
	dir, err := openVaultdDir(path)
	if err != nil {
		return err
	}
	if dir == nil {
		return ErrNeverUsed
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := removeOldTestFiles(dir, time.Now()); err != nil {
		return err
	}
	if _, err := adaptToMount(dir); err != nil {
		return err
	}
	name, want := testFilePrefix+rand.Text()+testFileSuffix, "vaultd doctor tries whether it can write here\n"
	err = dir.WriteFile(name, []byte(want), 0o600)
	if err == nil {
		err = checkReadBack(dir, name, want)
	}
	// A crash before this unlink leaves the file. A test removes it when it is more than an hour old.
	if rmErr := dir.Unlink(name); rmErr != nil && !errors.Is(rmErr, fs.ErrNotExist) {
		err = errors.Join(err, fmt.Errorf("remove the test file again: %w", rmErr))
	}
	return err
}

func checkReadBack(dir *durable.Dir, name, want string) error {
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

// removeOldTestFiles removes the files of tests that died.
func removeOldTestFiles(dir *durable.Dir, now time.Time) error {
	return dir.EachName(func(name string) error {
		// A leading point: the test died while it wrote the file under its temporary name.
		if !strings.HasPrefix(strings.TrimPrefix(name, "."), testFilePrefix) || !strings.HasSuffix(name, testFileSuffix) {
			return nil
		}
		info, err := dir.Root().Lstat(name)
		if err != nil || now.Sub(info.ModTime()) <= testFileOld {
			return nil // gone, or of a test that still runs
		}
		switch {
		case info.Mode().IsRegular():
			err = dir.Unlink(name)
		case info.IsDir():
			err = dir.Rmdir(name)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}
