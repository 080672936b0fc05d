package packager

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
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
	if l.isFresh(f) && isCutOff(f.path, head, tail) {
		return fmt.Errorf("%q looks cut off, its writer may only pause: %w", f.disk, ErrChanged)
	}
	return nil
}

// isCutOff reports whether a PDF has no trailer, a ZIP no directory, or an XML ends inside a tag or in text.
func isCutOff(name string, head, tail []byte) bool {
	tail = tail[max(0, len(tail)-tailSize):]
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return !bytes.Contains(tail, []byte("%%EOF"))
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return !bytes.Contains(tail, []byte("PK\x05\x06"))
	case strings.EqualFold(path.Ext(name), ".xml") && bytes.HasPrefix(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), []byte("<")):
		return !bytes.HasSuffix(bytes.TrimRight(tail, " \t\r\n\x00"), []byte(">"))
	}
	return false
}
