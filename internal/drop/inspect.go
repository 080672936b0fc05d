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

// deepest bounds how far an inspection descends; nothing that was archived lies so deep.
const deepest = 32

// inspection compares a folder with what was archived, and remembers the files it found right.
type inspection struct {
	ctx   context.Context
	rel   string
	files map[string]archive.File
	junk  map[string]bool
	right map[string]identity // by path on disk
	all   bool                // every file must be there
	any   bool                // whatever is there will do
	depth int

	collect bool // all that is not what was archived goes to differs; else the first ends the inspection
	differs []Difference
}

const unreadable = "may not be read any more"

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
	if in.collect {
		in.differs = append(in.differs, Difference{name, what})
		return nil
	}
	return &UnexpectedContentError{Folder: in.rel, Path: name, What: what}
}

// within names a mount by its path inside the folder; other errors stay what they are.
func within(full string, err error) error {
	if _, is := errors.AsType[*durable.MountError](err); is {
		return &durable.MountError{Path: full}
	}
	return err
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
		info, err := dir.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return within(full, err)
		}
		if info.IsDir() {
			sub, err := dir.OpenDir(name)
			if in.collect && errors.Is(err, fs.ErrPermission) {
				return in.stray(full, unreadable)
			}
			if err != nil {
				return within(full, err)
			}
			defer sub.Close()
			return in.folder(sub, full)
		}
		return in.file(dir, name, full, info)
	})
}

// whole refuses a folder that is not the one that was claimed and does not hold all that was archived.
func (in *inspection) whole() error {
	if !in.all {
		return nil
	}
	there := map[string]bool{}
	for name := range in.right {
		there[norm.NFC.String(name)] = true
	}
	for name := range in.files {
		if !there[name] {
			return in.stray(".", "is another folder than the one that was archived: "+name+" is missing")
		}
	}
	return nil
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
	if in.collect && errors.Is(err, fs.ErrPermission) {
		return in.stray(full, unreadable)
	}
	if err != nil {
		return within(full, err)
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
		info, err := dir.Lstat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return within(full, err)
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
		info, err := dir.Lstat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return within(path.Join(at, name), err)
		}
		if err == nil && identityOf(info) != in.right[path.Join(at, name)] {
			return in.stray(path.Join(at, name), "changed while the folder was being removed")
		}
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
	sub, err := parent.OpenDir(name)
	if err != nil {
		return within(full, err)
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
