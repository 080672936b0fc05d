package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// shelf holds the folders of a data set between the runs. vaultd takes what is dropped: the folders are renamed into a
// drop folder for a run, and back after it, without what vaultd wrote into them.
type shelf struct {
	dir   string
	names []string // of the folders
	bytes int64    // of the files in them, sidecars included
}

// The data sets by what they are for.
const (
	setNormal = "S"
	setTiny   = "T"
	setLarge  = "L"
)

func (b *bench) shelf(ctx context.Context, name string) (*shelf, error) {
	return wholeShelf(func() (dir string, docs int, err error) {
		made, err := b.dataSet(ctx, name)
		return made.Dir, made.Docs, err
	})
}

// wholeShelf opens a data set. One that misses folders is made anew: a bench was killed while they were lent.
func wholeShelf(get func() (dir string, docs int, err error)) (*shelf, error) {
	for again := false; ; again = true {
		dir, docs, err := get()
		if err != nil {
			return nil, err
		}
		s, err := openShelf(dir)
		if err != nil || len(s.names) == docs {
			return s, err
		}
		if again {
			return nil, fmt.Errorf("data set %s has %d folders instead of %d", dir, len(s.names), docs)
		}
		if err := os.Remove(dir + ".whole"); err != nil {
			return nil, fmt.Errorf("make data set anew: %w", err)
		}
	}
}

func openShelf(dir string) (*shelf, error) {
	s := &shelf{dir: dir}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.Type().IsRegular():
			info, err := d.Info()
			if err != nil {
				return err
			}
			s.bytes += info.Size()
		case d.IsDir() && filepath.Dir(path) == dir: // in lexical order, which BinarySearch relies on
			s.names = append(s.names, d.Name())
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read data set: %w", err)
	}
	return s, nil
}

// moveToDrop renames all folders into a drop folder on the same file system, which it makes.
func (s *shelf) moveToDrop(drop string) error {
	if err := os.MkdirAll(drop, 0o770); err != nil {
		return fmt.Errorf("make drop folder: %w", err)
	}
	for _, name := range s.names {
		if err := os.Rename(filepath.Join(s.dir, name), filepath.Join(drop, name)); err != nil {
			return fmt.Errorf("drop folder: %w", err)
		}
	}
	return nil
}

// takeBack puts every folder back, wherever vaultd has left it. Its error says which are missing.
func (s *shelf) takeBack(drop string) error {
	var errs []error
	for _, pattern := range []string{"*", "_archived/*/*", "_rejected/*", "_duplicates/*", ".vaultd/claimed/*/*"} {
		found, err := filepath.Glob(filepath.Join(drop, pattern))
		errs = append(errs, err)
		for _, path := range found {
			name := filepath.Base(path)
			if _, ours := slices.BinarySearch(s.names, name); ours {
				errs = append(errs, withoutNotes(path), os.Rename(path, filepath.Join(s.dir, name)))
			}
		}
	}
	for _, name := range s.names {
		_, err := os.Lstat(filepath.Join(s.dir, name))
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("take folders back: %w", err)
	}
	return nil
}

// withoutNotes removes what vaultd wrote into a folder for people.
func withoutNotes(folder string) error {
	entries, err := os.ReadDir(folder)
	for _, e := range entries {
		if name := e.Name(); strings.HasPrefix(name, "_RECEIPT.") || name == "_REASON.txt" {
			err = errors.Join(err, os.Remove(filepath.Join(folder, name)))
		}
	}
	return err
}

// countLeft counts the folders of the shelf that still lie in a drop folder, not taken.
func (s *shelf) countLeft(drop string) (int, error) {
	dir, err := os.Open(drop)
	if err != nil {
		return 0, err
	}
	names, err := dir.Readdirnames(-1)
	n := 0
	for _, name := range names {
		if _, ours := slices.BinarySearch(s.names, name); ours {
			n++
		}
	}
	return n, errors.Join(err, dir.Close())
}
