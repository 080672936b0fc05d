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

// cutOff is ErrChanged for a folder with a file that looks as if its writer had not come to its end. It is a hint and no
// verdict, for some programs write such files: it makes a folder wait that changed less than Rules.Patience ago, and says
// nothing about any other. Where a list or a marker tells that all is there nobody needs it.
func (d *folder) cutOff() error {
	if d.rules.Patience <= 0 || d.rules.Now == nil || d.rules.Complete != "quiet" {
		return nil
	}
	now := d.rules.Now()
	for _, f := range d.files {
		// A file from the future has a clock of its own: it tells nothing.
		if age := now.Sub(time.Unix(f.stamp.ctime.Unix())); age < 0 || age >= d.rules.Patience {
			continue
		}
		open, err := d.endsOpen(f)
		if err != nil {
			return err
		}
		if open {
			return fmt.Errorf("%q looks cut off, its writer may only pause: %w", f.disk, ErrChanged)
		}
	}
	return nil
}

// hinted is how much of a file's end is looked at.
const hinted = 1024

// endsOpen reports whether a PDF has no trailer, a ZIP no directory, or an XML ends inside a tag or in text.
func (d *folder) endsOpen(f found) (bool, error) {
	file, _, err := d.rules.Open(d.root, f.disk)
	if err != nil {
		return false, d.openError(f, err)
	}
	defer func() { file.Close() }() // read-only: its close has nothing to tell
	head, tail := make([]byte, 8), make([]byte, hinted)
	n, err := file.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read %q: %w", f.disk, cause(err))
	}
	m, err := file.ReadAt(tail, max(0, f.stamp.size-hinted))
	if err != nil && !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("read %q: %w", f.disk, cause(err))
	}
	head, tail = head[:n], tail[:m]
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		return !bytes.Contains(tail, []byte("%%EOF")), nil
	case bytes.HasPrefix(head, []byte("PK\x03\x04")):
		return !bytes.Contains(tail, []byte("PK\x05\x06")), nil
	case strings.EqualFold(path.Ext(f.path), ".xml") && bytes.HasPrefix(bytes.TrimPrefix(head, []byte("\xef\xbb\xbf")), []byte("<")):
		return !bytes.HasSuffix(bytes.TrimRight(tail, " \t\r\n\x00"), []byte(">")), nil
	}
	return false, nil
}
