package packager

import (
	"errors"
	"fmt"
	"io"
	"time"

	"vaultd/internal/archive"
)

// A file that looks as if its writer had not come to its end makes its folder wait as ErrChanged. That is a hint and no
// verdict, for some programs write such files: it holds for a folder that changed less than Rules.CutOffPatience ago, and says
// nothing about any other. Where a list or a marker tells that all is there nobody needs it.

// tailSize is how much of a file's end is looked at.
const tailSize = 1024

// checkLargeFilesWhole looks at the ends of the large files before anything is packed in vain. The small ones are looked at
// when they are read.
func (d *droppedFolder) checkLargeFilesWhole() error {
	for _, f := range d.files {
		if f.state.size <= maxHeld || !d.isFresh(f) {
			continue
		}
		head, tail, err := d.readEnds(f)
		if err == nil {
			err = d.checkCutOff(f, head, tail)
		}
		if err != nil {
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
	age := l.rules.Now().Sub(time.Unix(f.state.ctime.Unix()))
	return age >= 0 && age < l.rules.CutOffPatience
}

// readEnds reads the start and the end of a file.
func (l *listing) readEnds(f foundFile) (head, tail []byte, err error) {
	file, _, err := l.rules.openFile(l.root, f.disk)
	if err != nil {
		return nil, nil, l.openError(f, err)
	}
	defer func() { file.Close() }() // read-only
	head, tail = make([]byte, 8), make([]byte, tailSize)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read %q: %w", f.disk, withoutPath(err))
	}
	m, err := file.ReadAt(tail, max(0, f.state.size-tailSize))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, nil, fmt.Errorf("read %q: %w", f.disk, withoutPath(err))
	}
	return head[:n], tail[:m], nil
}

// checkCutOff returns ErrChanged for a fresh file whose ends say that it is cut off.
func (l *listing) checkCutOff(f foundFile, head, tail []byte) error {
	if l.isFresh(f) && archive.LooksCutOff(f.path, head, tail) {
		return fmt.Errorf("%q looks cut off, its writer may only pause: %w", f.disk, ErrChanged)
	}
	return nil
}
