package drop

import (
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

// StrayError says that a folder holds something that was not archived, or not so: nothing more of it is removed.
type StrayError struct {
	Folder string // relative to the drop folder
	Path   string // inside it
	What   string // what is the matter, in words
}

func (e *StrayError) Error() string {
	return fmt.Sprintf("%q is not removed: %q in it %s", e.Folder, e.Path, e.What)
}

// Disposal says what a kept folder may hold and what becomes of it.
type Disposal struct {
	Files []archive.File // all that was archived, and the sidecar and the like that were not; Path in NFC
	Junk  []string       // listed when the folder was packed; paths as on disk
	To    string         // folder that it is moved into, an absolute path; empty: it is deleted
}

// Dispose removes the kept folder at rel (as in "_archived/2026-11/Müller 4711"), or moves it to d.To and gives the path
// where it lies then. First everything in it is compared with d: a file that is not listed, or whose size or digest differs, stops it as
// a [*StrayError] before anything is touched. Files that are missing already are fine. The ledger has committed the intent.
//
// Called again after a crash it goes on. A folder that is gone counts as deleted; one that should have been moved and is not found
// at its destination is [ErrLost].
func (f *Folder) Dispose(ctx context.Context, c Claimed, rel string, d Disposal) (movedTo string, err error) {
	p, err := parsePlace(rel)
	if err != nil {
		return "", err
	}
	if p.kind != Archived {
		return "", fmt.Errorf("%q was not archived: only archived folders are disposed of", rel)
	}
	if err := f.Check(); err != nil {
		return "", err
	}
	parent, err := f.walk(p.dir(), false)
	if errors.Is(err, fs.ErrNotExist) {
		return f.disposed(c, p, d)
	}
	if err != nil {
		return "", err
	}
	defer parent.Close()
	info, err := parent.Root().Lstat(p.name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := parent.Sync(); err != nil {
			return "", err
		}
		return f.disposed(c, p, d)
	case err != nil:
		return "", err
	case !f.is(info, c.Node):
		return "", &StrayError{Folder: rel, Path: ".", What: "is another folder than the one that was archived"}
	}
	dir, err := parent.Sub(p.name)
	if err != nil {
		return "", err
	}
	defer dir.Close()
	in := newInspection(ctx, rel, d)
	if err := in.folder(dir, ""); err != nil {
		return "", err
	}
	if d.To != "" {
		return f.moveOut(parent, c, p, d.To)
	}
	return "", in.remove(parent, dir, p.name)
}

// disposed answers for a folder that does not lie where it was kept.
func (f *Folder) disposed(c Claimed, p place, d Disposal) (string, error) {
	if d.To == "" {
		return "", nil
	}
	to, err := durable.Open(d.To, f.cfg.Fault)
	if err != nil {
		return "", fmt.Errorf("open %q: %w", d.To, err)
	}
	defer to.Close()
	for _, name := range outNames(c, p) {
		if info, err := to.Root().Lstat(name); err == nil && f.is(info, c.Node) {
			return path.Join(d.To, name), to.Sync()
		}
	}
	return "", fmt.Errorf("move %q to %q: %w", p.name, d.To, ErrLost)
}

// outNames are the names a folder may get where it is moved to; the second is unique, so that there is no need to record which.
func outNames(c Claimed, p place) []string {
	return []string{p.name, suffixed(p.name, " ("+c.Key.String()+")")}
}

func (f *Folder) moveOut(parent *durable.Dir, c Claimed, p place, target string) (string, error) {
	to, err := durable.Open(target, f.cfg.Fault)
	if err != nil {
		return "", fmt.Errorf("open %q: %w", target, err)
	}
	defer to.Close()
	for _, name := range outNames(c, p) {
		err = moved(parent, p.name, to, name)
		if err == nil {
			return path.Join(target, name), nil
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	if errors.Is(err, syscall.EXDEV) {
		return "", fmt.Errorf("move %q to %q: it is another file system, where a folder cannot be moved in one step; choose a folder beside the drop folder: %w", p.name, target, err)
	}
	return "", fmt.Errorf("move %q to %q: %w", p.name, target, err)
}

// deepest bounds how far an inspection descends; nothing that was archived lies so deep.
const deepest = 32

// inspection compares a folder with what was archived, and remembers the files it found right.
type inspection struct {
	ctx   context.Context
	rel   string
	files map[string]archive.File
	junk  map[string]bool
	right map[string]identity // by path on disk
	depth int
}

// identity tells one state of a file from any other. ctime cannot be set back.
type identity struct {
	dev, ino     uint64
	size         int64
	mtime, ctime syscall.Timespec
}

func identityOf(info fs.FileInfo) identity {
	st := stat(info)
	return identity{uint64(st.Dev), st.Ino, st.Size, st.Mtim, st.Ctim}
}

func newInspection(ctx context.Context, rel string, d Disposal) *inspection {
	in := &inspection{ctx: ctx, rel: rel, files: map[string]archive.File{}, junk: map[string]bool{}, right: map[string]identity{}}
	for _, file := range d.Files {
		in.files[file.Path] = file
	}
	for _, name := range d.Junk {
		in.junk[name] = true
	}
	return in
}

func (in *inspection) stray(name, what string) error {
	return &StrayError{Folder: in.rel, Path: name, What: what}
}

// each calls do for every name in dir, reading them in chunks.
func each(dir *durable.Dir, do func(name string) error) error {
	list, err := dir.Root().Open(".")
	if err != nil {
		return err
	}
	defer list.Close() // read-only: its close has nothing to tell
	for {
		names, err := list.Readdirnames(256)
		for _, name := range names {
			if err := do(name); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) || err == nil && len(names) == 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// folder inspects all in dir, whose path inside the folder is at.
func (in *inspection) folder(dir *durable.Dir, at string) error {
	if in.depth++; in.depth > deepest {
		return in.stray(at, "is nested too deeply")
	}
	defer func() { in.depth-- }()
	return each(dir, func(name string) error {
		full := path.Join(at, name)
		info, err := dir.Root().Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if info.IsDir() {
			sub, err := dir.Sub(name)
			if err != nil {
				return err
			}
			defer sub.Close()
			return in.folder(sub, full)
		}
		return in.file(dir, name, full, info)
	})
}

func (in *inspection) file(dir *durable.Dir, name, full string, info fs.FileInfo) error {
	if err := in.ctx.Err(); err != nil {
		return err
	}
	want, archived := in.files[norm.NFC.String(full)]
	switch {
	case !info.Mode().IsRegular():
		return in.stray(full, "is a link or another thing that was not archived")
	case archived:
		return in.compare(dir, name, full, want)
	case in.junk[full], full == name && isNote(name):
		in.right[full] = identityOf(info)
		return nil
	}
	return in.stray(full, "was not archived")
}

func (in *inspection) compare(dir *durable.Dir, name, full string, want archive.File) error {
	file, info, err := durable.OpenRegular(dir.Root(), name)
	if err != nil {
		return err
	}
	defer file.Close() // read-only: its close has nothing to tell
	if info.Size() != want.Size {
		return in.stray(full, "has another size than when it was archived")
	}
	sum, err := digest(in.ctx, file)
	if err != nil {
		return fmt.Errorf("read %q: %w", full, err)
	}
	after, err := file.Stat()
	if err != nil {
		return err
	}
	if sum != want.SHA256 || identityOf(after) != identityOf(info) {
		return in.stray(full, "has another content than when it was archived")
	}
	in.right[full] = identityOf(info)
	return nil
}

func digest(ctx context.Context, file *os.File) (archive.Digest, error) {
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

// remove takes away what was found right, then the folder name in parent, which dir holds open.
func (in *inspection) remove(parent, dir *durable.Dir, name string) error {
	if err := in.empty(dir, ""); err != nil {
		return err
	}
	if err := in.rmdir(parent, name, "."); err != nil {
		return err
	}
	return parent.Sync()
}

// empty removes the files of dir if they are all still as they were found, then its folders from the bottom up.
func (in *inspection) empty(dir *durable.Dir, at string) error {
	var files, folders []string // no more than were found right: the first other one ends it
	err := each(dir, func(name string) error {
		full := path.Join(at, name)
		info, err := dir.Root().Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case info.IsDir():
			folders = append(folders, name)
			return nil
		}
		if found, ok := in.right[full]; !ok || found != identityOf(info) {
			return in.stray(full, "changed while the folder was being removed")
		}
		files = append(files, name)
		return nil
	})
	if err != nil {
		return err
	}
	for _, name := range files {
		if err := dir.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for _, name := range folders {
		if err := in.prune(dir, name, path.Join(at, name)); err != nil {
			return err
		}
	}
	return nil
}

func (in *inspection) prune(parent *durable.Dir, name, full string) error {
	sub, err := parent.Sub(name)
	if err != nil {
		return err
	}
	if err := errors.Join(in.empty(sub, full), sub.Close()); err != nil {
		return err
	}
	return in.rmdir(parent, name, full)
}

func (in *inspection) rmdir(parent *durable.Dir, name, full string) error {
	err := parent.Rmdir(name)
	if errors.Is(err, syscall.ENOTEMPTY) || errors.Is(err, fs.ErrExist) {
		return in.stray(full, "holds something that came while the folder was being removed")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
