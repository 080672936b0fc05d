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

// newFile is a file that a command writes for whoever asks.
type newFile struct {
	path   string
	force  bool   // overwrite it
	what   string // download, report or index
	spared string // what does not happen where it is there already
	hint   string // what to do then
	kept   int    // the exit code with which it is kept all the same
	suffix string // of its name then
}

// fillFile lets write fill a file, which gets its name once it is whole. Nothing is begun where the name is taken.
func (a *app) fillFile(f newFile, write func(io.Writer) error) error {
	for _, suffix := range []string{"", f.suffix} {
		if _, err := os.Lstat(f.path + suffix); !errors.Is(err, fs.ErrNotExist) && (!f.force || suffix != "") {
			hint := f.hint
			if suffix != "" {
				hint = "move it away: it is what an earlier command kept"
			}
			return fail(exitCreate, errors.Join(fmt.Errorf("%s is there already; nothing was %s", sanitize.Text(f.path+suffix), f.spared), err), hint)
		}
	}
	dir, name := filepath.Split(f.path)
	d, err := durable.Open(filepath.Clean(dir), nil)
	if err != nil {
		return fail(exitCreate, fmt.Errorf("open the folder for the %s: %w", f.what, err), "")
	}
	defer d.Close()
	part := fmt.Sprintf("vaultd-%s-%d.part", f.what, os.Getpid())
	p, err := d.Create(part, 0o640)
	if err != nil {
		return fail(exitCreate, fmt.Errorf("make the file for the %s: %w", f.what, err), "")
	}
	defer p.Discard()
	wrong := write(p)
	if wrong != nil {
		if code, _ := judge(wrong); code != f.kept {
			return wrong
		}
		name += f.suffix
	}
	if err := p.Commit(); err != nil {
		return fail(exitIO, fmt.Errorf("write the %s: %w", f.what, err), "")
	}
	if f.force {
		err = d.Root().Rename(part, name)
	} else {
		err = d.Rename(part, d, name)
	}
	if err != nil {
		return fail(exitCreate, errors.Join(fmt.Errorf("name the %s: %w", f.what, err), d.Unlink(part)), "")
	}
	fmt.Fprintf(a.stderr, "written to %s\n", sanitize.Text(filepath.Join(dir, name)))
	return wrong
}
