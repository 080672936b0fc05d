package spool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
)

// CountAll counts what lies in the spool, and removes half-made files and the packages that keep does not need any more. keep returns the
// service queue of a package. Packages are made, sent and removed meanwhile. After an error CountAll may be called again: it counts anew.
//
// It takes the packages in the order of their keys, so that RemovePackage can tell whether one is counted already.
func (s *Spool) CountAll(ctx context.Context, keep func(archive.Key) (queue string, needed bool, err error)) (err error) {
	s.resetCount()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.complete, s.countErr = err == nil, err; s.complete {
			clear(s.early)
		}
	}()
	packages, err := s.listPackages(ctx)
	for _, p := range packages {
		if err == nil {
			err = context.Cause(ctx)
		}
		if err == nil {
			err = s.countPackage(p, keep)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// resetCount begins the count: nothing is booked, not even of what is being made.
func (s *Spool) resetCount() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.counted, s.complete = map[string]int64{}, archive.Key{}, false
	clear(s.early)
	for k := range s.making {
		s.making[k] = 0
	}
}

// foundPackage is a package that lies in the spool.
type foundPackage struct {
	key  archive.Key
	name string
}

// listPackages returns all packages in the order of their keys. It removes half-made files, unless they are being made; any other
// file is not vaultd's, and stays.
func (s *Spool) listPackages(ctx context.Context) (packages []foundPackage, err error) {
	f, err := s.names.Root().Open(".")
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	defer f.Close() // read-only
	var foreign []string
	for ctx.Err() == nil {
		names, err := f.Readdirnames(1024)
		for _, name := range names {
			info, lookErr := s.names.Lstat(name)
			k, isPackage := parsePackageName(name)
			switch {
			case errors.Is(lookErr, fs.ErrNotExist): // gone meanwhile
			case lookErr != nil || !info.Mode().IsRegular():
				foreign = append(foreign, name)
			case isPackage:
				packages = append(packages, foundPackage{k, name})
			case isHalfMade(name):
				if err := s.removeHalfMade(name); err != nil {
					return nil, err
				}
			default:
				foreign = append(foreign, name)
			}
		}
		if errors.Is(err, io.EOF) {
			s.logForeign(foreign)
			slices.SortFunc(packages, func(a, b foundPackage) int { return bytes.Compare(a.key[:], b.key[:]) })
			return packages, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read spool: %w", err)
		}
	}
	return nil, context.Cause(ctx)
}

// parsePackageName returns the key of a package by its name; ok is false for any other file.
func parsePackageName(name string) (k archive.Key, ok bool) {
	k, err := archive.ParseKey(strings.TrimSuffix(name, path.Ext(name)))
	isOfRoute := func(r ledger.Route) bool { return name == PackageName(r, k) }
	return k, err == nil && slices.ContainsFunc(ledger.Routes(), isOfRoute)
}

// downloadName is the name that a download has in the spool before the name is removed.
func downloadName(n uint64) string {
	return downloadPrefix + strconv.FormatUint(n, 10) + downloadSuffix
}

const downloadPrefix, downloadSuffix = "fetch-", ".tmp"

// isHalfMade reports whether vaultd gives such a name to what is not whole yet: a package that is being packed, or a download.
func isHalfMade(name string) bool {
	if number, begins := strings.CutPrefix(name, downloadPrefix); begins {
		n, err := strconv.ParseUint(strings.TrimSuffix(number, downloadSuffix), 10, 64)
		return err == nil && downloadName(n) == name
	}
	stem := strings.TrimSuffix(strings.TrimPrefix(name, "."), ".tmp")
	_, isPackage := parsePackageName(stem)
	return isPackage && durable.TemporaryName(stem) == name
}

// mostForeign bounds how many foreign files are named in the log.
const mostForeign = 10

// logForeign logs once in a run which files in the spool are not vaultd's.
func (s *Spool) logForeign(names []string) {
	if len(names) == 0 || s.foreignLogged || s.log == nil {
		return
	}
	s.foreignLogged = true
	slices.Sort(names)
	s.log.Warn("the spool holds files that are not vaultd's; they stay, and take room from the packages: move them elsewhere",
		"spool", s.dir, "count", len(names), "names", names[:min(len(names), mostForeign)])
}

// removeHalfMade removes a half-made file. The temporary file of a package is named after it.
func (s *Spool) removeHalfMade(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.making {
		if strings.Contains(name, k.String()) {
			return nil
		}
	}
	// After a crash here the next start finds the file again, and removes it.
	if err := s.names.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear spool: %w", err)
	}
	return nil
}

// countPackage books one package, or removes it. A package that is being made, or was made since the count
// began, is booked by who makes it.
func (s *Spool) countPackage(p foundPackage, keep func(archive.Key) (queue string, needed bool, err error)) error {
	queue, needed, err := keep(p.key)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, isBeingMade := s.making[p.key]
	bookedByMaker := isBeingMade || s.early[p.key]
	switch s.counted = p.key; {
	case bookedByMaker:
		return nil
	case needed:
		s.used[queue] += s.packageSize(p.name)
		return nil
	}
	// After a crash here the next start finds the package again and no entry that needs it, or the package is gone.
	if err := s.names.Unlink(p.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clear spool: %w", err)
	}
	return nil
}
