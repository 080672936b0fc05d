package packager

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// A file that looks as if its writer had not come to its end makes its folder
// wait as archive.ErrChanged. That is a hint and no verdict, for some programs write
// such files: it holds for a folder that changed less than Rules.CutOffPatience
// ago. Later, and where a list or a marker says that all is there, the folder
// is packed, and [Endings] says so.

// Endings lists the files of a folder that do not end as usual. A file that a
// list gives a SHA-256 of is none of them.
type Endings struct {
	Short []string // they look cut off
	Odd   []string // PDFs that are whole, with their end where readers do not look first
}

// Remarks describes the files for people, a text each, and at most a few of them.
func (e Endings) Remarks() (all []string) {
	for _, kind := range []struct {
		paths []string
		text  string
	}{{e.Short, "looks cut off"}, {e.Odd, "is a whole PDF without the usual end"}} {
		for i, path := range kind.paths {
			if i == mostRemarks {
				all = append(all, fmt.Sprintf("%d more files: %s", len(kind.paths)-i, kind.text))
				break
			}
			all = append(all, showName(path)+" "+kind.text)
		}
	}
	return all
}

const mostRemarks = 5

// checkLargeEndings looks at the ends of the large files before anything is
// packed in vain. The small ones are looked at when they are read.
func (d *droppedFolder) checkLargeEndings() error {
	for _, f := range d.files {
		if f.state.Size <= maxHeld {
			continue
		}
		if err := d.checkEnding(f, f.path); err != nil {
			return err
		}
	}
	return nil
}

// isFresh reports whether f changed so recently that its writer may only pause.
func (l *listing) isFresh(f foundFile) bool {
	if l.rules.CutOffPatience <= 0 || l.rules.Now == nil || l.rules.Complete != "quiet" {
		return false
	}
	// A ctime in the future comes from another clock and says nothing about the age.
	age := l.rules.Now().Sub(time.Unix(0, f.state.Ctime))
	return age >= 0 && age < l.rules.CutOffPatience
}

// checkEnding notes how f ends, under a name that says what it is, and returns
// archive.ErrChanged for a fresh file that looks cut off.
func (l *listing) checkEnding(f foundFile, name string) error {
	file, info, err := l.rules.openFile(l.root, f.disk)
	if err != nil {
		return l.openError(f, err)
	}
	defer func() { file.Close() }() // read-only
	if durable.IDOf(info) != f.state {
		return changedError(f.disk)
	}
	ending, err := archive.FindEnding(name, file, f.state.Size)
	if err != nil {
		return fmt.Errorf("read %q: %w", f.disk, withoutPath(err))
	}
	return l.noteEnding(f, ending)
}

// checkSmallEnding is checkEnding for a file that was read whole.
func (l *listing) checkSmallEnding(f foundFile, data []byte) error {
	ending, err := archive.FindEnding(f.path, bytes.NewReader(data), int64(len(data)))
	return errors.Join(err, l.noteEnding(f, ending))
}

func (l *listing) noteEnding(f foundFile, ending archive.Ending) error {
	switch {
	case ending == archive.EndsOddly:
		l.endings.Odd = append(l.endings.Odd, f.path)
	case ending == archive.EndsShort && l.isFresh(f):
		return fmt.Errorf("%q looks cut off, its writer may only pause: %w", f.disk, archive.ErrChanged)
	case ending == archive.EndsShort && !l.isVouched(f.path):
		l.endings.Short = append(l.endings.Short, f.path)
	}
	return nil
}

// isVouched reports whether a list gives the SHA-256 of a file: one that differs is refused.
func (l *listing) isVouched(path string) bool {
	for _, w := range l.lists[archive.FoldName(path)] {
		if !w.sha256.IsZero() {
			return true
		}
	}
	return false
}

// ErrCutOff says that a file has no end yet, or no content: its writer may only pause.
var ErrCutOff = errors.New("looks cut off")

// CheckFileEnd returns ErrCutOff for a file that looks cut off, or that has no
// content yet. Any other error says that the file cannot be read.
func CheckFileEnd(root *os.Root, name string) error {
	file, info, err := durable.OpenRegular(root, name)
	if err != nil {
		return err
	}
	defer file.Close() // read-only
	if info.Size() > archive.MaxPackage {
		return nil // it is refused for its size, whatever its end
	}
	ending, err := archive.FindEnding(name, file, info.Size())
	head := make([]byte, endSize)
	n, readErr := file.ReadAt(head, 0)
	if errors.Is(readErr, io.EOF) {
		readErr = nil
	}
	switch err = errors.Join(err, readErr); {
	case err != nil:
		return fmt.Errorf("read %q: %w", name, withoutPath(err))
	case ending == archive.EndsShort || archive.IsBegunPDF(head[:n]):
		return ErrCutOff
	}
	return nil
}
