package spool

import (
	"cmp"
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

// CountAll counts the packages in the spool, and removes half-made files and
// the packages that keep does not need any more. keep returns the service queue
// of a package. Packages are sent meanwhile; none is made or removed. After an
// error CountAll may be called again: it counts all of them again.
func (s *Spool) CountAll(ctx context.Context, keep func(archive.Key) (queue string, needed bool, err error)) error {
	s.counting.Lock()
	defer s.counting.Unlock()
	used, err := s.sumUp(ctx, keep)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used, s.complete, s.countErr = used, err == nil, err
	return err
}

// sumUp returns the bytes of the packages that keep needs, by service queue.
func (s *Spool) sumUp(ctx context.Context, keep func(archive.Key) (queue string, needed bool, err error)) (map[string]int64, error) {
	used := map[string]int64{}
	packages, err := s.listPackages(ctx)
	for _, p := range packages {
		queue, needed, err := keep(p.key)
		if err = cmp.Or(context.Cause(ctx), err); err != nil {
			return used, err
		}
		if needed {
			used[queue] += s.packageSize(p.name)
			continue
		}
		// After a crash here the next start finds the package again and no
		// entry that needs it, or the package is gone.
		if err := s.names.Unlink(p.name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return used, fmt.Errorf("clear spool: %w", err)
		}
	}
	return used, err
}

// foundPackage is a package that lies in the spool.
type foundPackage struct {
	key  archive.Key
	name string
}

// listPackages returns all packages. It removes half-made files; any other file
// is not vaultd's, and stays.
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
				// After a crash here the next start finds the file again, and removes it.
				if err := s.names.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return nil, fmt.Errorf("clear spool: %w", err)
				}
			default:
				foreign = append(foreign, name)
			}
		}
		if errors.Is(err, io.EOF) {
			s.logForeign(foreign)
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
