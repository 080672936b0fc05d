package drop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"syscall"

	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// maxInspectDepth bounds how deep an inspection descends. Nothing that was archived lies so deep.
const maxInspectDepth = 32

// inspection compares a folder with what was archived, and remembers the files that matched.
type inspection struct {
	ctx     context.Context
	rel     string                  // path of the folder in errors
	files   map[string]archive.File // by path in NFC
	junk    map[string]bool
	matched map[string]durable.FileID // by path on disk; with any difference a file is not removed
	done    string                    // what was done with it: archived or sent
	depth   int

	collectsAll bool // every difference goes to differences; else the first one ends the inspection
	differences []Difference

	look *Look           // nil: every file is read, and nothing that was not archived is passed over
	met  map[string]bool // of files, those that are there, whatever they hold
}

const unreadable = "may not be read any more"

func newInspection(ctx context.Context, rel string, d Disposal) *inspection {
	in := &inspection{ctx: ctx, rel: rel, done: cmp.Or(d.Done, Archived.doneWord()), files: map[string]archive.File{}, junk: map[string]bool{}, matched: map[string]durable.FileID{}, met: map[string]bool{}}
	for _, file := range d.Files {
		in.files[file.Path] = file
	}
	for _, name := range d.Junk {
		in.junk[name] = true
	}
	return in
}

// reportUnexpected records a difference. It returns nil when all differences are collected, else the error that ends the
// inspection.
func (in *inspection) reportUnexpected(name, what string) error {
	if in.collectsAll {
		in.differences = append(in.differences, Difference{name, what})
		return nil
	}
	return &UnexpectedContentError{Folder: in.rel, Path: name, What: what}
}

// inspectDir compares all that lies in dir, whose path inside the folder is at.
func (in *inspection) inspectDir(dir *durable.Dir, at string) error {
	if in.depth++; in.depth > maxInspectDepth {
		return in.reportUnexpected(at, "is nested too deeply")
	}
	defer func() { in.depth-- }()
	return dir.EachName(func(name string) error {
		full := path.Join(at, name)
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return durable.PrefixMountPath(at, err)
		}
		if !info.IsDir() {
			return in.inspectFile(dir, name, full, info)
		}
		if in.isTolerated(name, true) {
			return nil
		}
		sub, err := dir.OpenDir(name)
		if in.collectsAll && errors.Is(err, fs.ErrPermission) {
			return in.reportUnexpected(full, unreadable)
		}
		if err != nil {
			return durable.PrefixMountPath(at, err)
		}
		defer sub.Close() // read-only
		return in.inspectDir(sub, full)
	})
}

// checkComplete refuses a folder that does not hold every file that was archived. It is for a folder that is recognised by its
// content alone: the folder that was claimed may have lost files since.
func (in *inspection) checkComplete() error {
	there := map[string]bool{}
	for name := range in.matched {
		there[norm.NFC.String(name)] = true
	}
	for name := range in.files {
		if !there[name] {
			return in.reportUnexpected(".", "is another folder than the one that was "+in.done+": "+name+" is missing")
		}
	}
	return nil
}

func (in *inspection) inspectFile(dir *durable.Dir, name, full string, info fs.FileInfo) error {
	if err := in.ctx.Err(); err != nil {
		return err
	}
	want, archived := in.files[norm.NFC.String(full)]
	in.met[norm.NFC.String(full)] = archived
	switch {
	case !info.Mode().IsRegular():
		return in.reportUnexpected(full, "is a link or another thing that was not "+in.done)
	case archived:
		if in.look != nil && info.Size() == want.Size && !in.look.reads(durable.IDOf(info)) {
			return nil
		}
		return in.compareFile(dir, name, full, want)
	case in.junk[full], full == name && IsNoteName(name):
		in.matched[full] = durable.IDOf(info)
		return nil
	case in.isTolerated(name, false):
		return nil
	}
	return in.reportUnexpected(full, "was not "+in.done)
}

// compareFile compares size and digest of a file with what was archived.
func (in *inspection) compareFile(dir *durable.Dir, name, full string, want archive.File) error {
	file, info, err := durable.OpenRegular(dir.Root(), name)
	if in.collectsAll && errors.Is(err, fs.ErrPermission) {
		return in.reportUnexpected(full, unreadable)
	}
	if err != nil {
		return durable.PrefixMountPath(path.Dir(full), err)
	}
	defer file.Close() // read-only
	if info.Size() != want.Size {
		return in.reportUnexpected(full, "has another size than when it was "+in.done)
	}
	sum, err := digestFile(in.ctx, file)
	if err != nil {
		return fmt.Errorf("read %q: %w", full, err)
	}
	// The identity is read again: a file that changed while it was read has a digest that proves nothing.
	after, err := file.Stat()
	if err != nil {
		return err
	}
	if sum != want.SHA256 || durable.IDOf(after) != durable.IDOf(info) {
		return in.reportUnexpected(full, "has another content than when it was "+in.done)
	}
	in.matched[full] = durable.IDOf(info)
	return nil
}

func digestFile(ctx context.Context, file *os.File) (archive.Digest, error) {
	h := sha256.New()
	buf := make([]byte, 128<<10)
	for {
		if err := ctx.Err(); err != nil {
			return archive.Digest{}, err
		}
		n, err := file.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return archive.Digest(h.Sum(nil)), nil
		}
		if err != nil {
			return archive.Digest{}, err
		}
	}
}

// removeFolder removes all that matched, then the folder name in parent. dir is that folder, open.
func (in *inspection) removeFolder(parent, dir *durable.Dir, name string) error {
	if err := in.removeContents(dir, ""); err != nil {
		return err
	}
	if err := in.removeDir(parent, name, "."); err != nil {
		return err
	}
	// One sync for all removals. A power loss before it may bring the folder back into its claim; the next call removes it again.
	return parent.Sync()
}

// removeContents removes the files of dir, then its folders from the bottom up. Before the first removal it checks that every
// file is still as it was inspected.
func (in *inspection) removeContents(dir *durable.Dir, at string) error {
	// These lists are no longer than the inspected folder: the first unknown file ends the loop.
	var files, folders []string
	err := dir.EachName(func(name string) error {
		full := path.Join(at, name)
		info, err := dir.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return durable.PrefixMountPath(at, err)
		case info.IsDir():
			folders = append(folders, name)
			return nil
		}
		if found, ok := in.matched[full]; !ok || found != durable.IDOf(info) {
			return in.reportUnexpected(full, "changed while the folder was being removed")
		}
		files = append(files, name)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range files {
		// Look once more just before the unlink: the loop over many files takes time.
		info, err := dir.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return durable.PrefixMountPath(at, err)
		}
		if err == nil && durable.IDOf(info) != in.matched[path.Join(at, name)] {
			return in.reportUnexpected(path.Join(at, name), "changed while the folder was being removed")
		}
		// A crash between two unlinks leaves a part of the folder in its claim. The next call inspects what is left and goes on:
		// missing files are no difference for the folder that was claimed.
		if err := dir.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range folders {
		if err := in.removeSubfolder(dir, name, path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

func (in *inspection) removeSubfolder(parent *durable.Dir, name, full string) error {
	sub, err := parent.OpenDir(name)
	if err != nil {
		return durable.PrefixMountPath(path.Dir(full), err)
	}
	if err := errors.Join(in.removeContents(sub, full), sub.Close()); err != nil {
		return err
	}
	return in.removeDir(parent, name, full)
}

// removeDir removes an empty folder. rmdir itself is the check that nothing new lies in it.
func (in *inspection) removeDir(parent *durable.Dir, name, full string) error {
	err := parent.Rmdir(name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return in.reportUnexpected(full, "holds something that came while the folder was being removed")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed before a crash
	}
	return err
}
