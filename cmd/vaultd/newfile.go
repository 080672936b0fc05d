package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"vaultd/internal/durable"
	"vaultd/internal/sanitize"
)

// newFile is a file that a command writes for the user who gave the command.
type newFile struct {
	path      string
	mode      fs.FileMode
	overwrite bool
	what      string // download, report, index or backup
	skipped   string // the participle for what does not happen when the file exists: downloaded, written, read
	hint      string // what to do when the file exists

	keptCode   int    // a file that write ends with this exit code is kept all the same, under another name; 0: none is
	keptSuffix string // of that name

	inspect func(path string) error // looks at the whole file before it gets its name, unless it is kept under another one; may be nil
}

// fillFile writes a new file and tells where it is.
func (a *app) fillFile(f newFile, write func(io.Writer) error) error {
	path, err := f.writeWhole(write)
	if path != "" {
		fmt.Fprintf(a.stderr, "written to %s\n", sanitize.Text(path))
	}
	return err
}

// writeWhole lets write fill the file, which gets its name once all of it is on the disk. Nothing begins where the name is taken. path is
// empty where no file was kept. After a crash a file "vaultd-WHAT-N.part" may be left beside it; nothing reads it.
func (f newFile) writeWhole(write func(io.Writer) error) (path string, err error) {
	p, err := f.begin()
	if err != nil {
		return "", err
	}
	defer p.discard()
	return p.keep(write(p))
}

// partFile is a new file that has not got its name yet.
type partFile struct {
	*durable.TempFile
	newFile
	dir  *durable.Dir
	part string // its name until then
}

// begin makes the part file, with the rights of the caller. Somebody must call discard in the end.
func (f newFile) begin() (p *partFile, err error) {
	err = asCaller(func() (err error) {
		p, err = f.beginAsCaller()
		return err
	})
	return p, err
}

func (f newFile) beginAsCaller() (*partFile, error) {
	if err := f.checkNames(); err != nil {
		return nil, err
	}
	d, err := durable.Open(filepath.Clean(filepath.Dir(f.path)), nil)
	if err != nil {
		return nil, fail(exitCreate, fmt.Errorf("open the folder for the %s: %w", f.what, err), "")
	}
	part := fmt.Sprintf("vaultd-%s-%d.part", f.what, os.Getpid())
	p, err := d.Create(part, f.mode)
	if err != nil {
		return nil, errors.Join(fail(exitCreate, fmt.Errorf("make the file for the %s: %w", f.what, err), ""), d.Close())
	}
	return &partFile{TempFile: p, newFile: f, dir: d, part: part}, nil
}

// discard removes the part file where keep did not give it its name.
func (p *partFile) discard() {
	p.Discard()
	p.dir.Close() // nothing in it is changed
}

// keep gives the file its name. wrong is what the writing ended with: most of it means that there is no file.
func (p *partFile) keep(wrong error) (path string, err error) {
	f, d := p.newFile, p.dir
	dir, name := filepath.Split(f.path)
	if wrong != nil {
		if code, _ := exitCodeOf(wrong); f.keptCode == 0 || code != f.keptCode {
			return "", wrong
		}
		name += f.keptSuffix
	}
	if err := p.Commit(); err != nil {
		return "", fail(exitIO, fmt.Errorf("write the %s: %w", f.what, err), "")
	}
	if f.inspect != nil && wrong == nil {
		if err := f.inspect(filepath.Join(filepath.Clean(dir), p.part)); err != nil {
			return "", errors.Join(err, d.Unlink(p.part))
		}
	}
	// The bytes are on the disk before the name is: a crash here leaves the part file, and the name is free or still the old file's.
	if f.overwrite {
		err = d.Root().Rename(p.part, name)
	} else {
		err = d.Rename(p.part, d, name) // never replaces a file that came meanwhile
	}
	if err != nil {
		return "", fail(exitCreate, errors.Join(fmt.Errorf("name the %s: %w", f.what, err), d.Unlink(p.part)), "")
	}
	return filepath.Join(dir, name), wrong
}

// checkNames refuses a name that is taken already.
func (f newFile) checkNames() error {
	for _, suffix := range []string{"", f.keptSuffix} {
		if _, err := os.Lstat(f.path + suffix); !errors.Is(err, fs.ErrNotExist) && (!f.overwrite || suffix != "") {
			hint := f.hint
			if suffix != "" {
				hint = "move it away: it is what an earlier command kept"
			}
			return fail(exitCreate, errors.Join(fmt.Errorf("%s is there already; nothing was %s", sanitize.Text(f.path+suffix), f.skipped), err), hint)
		}
	}
	return nil
}
