package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/term"

	"vaultd/internal/expected"
	"vaultd/internal/sanitize"
)

// readExpected reads the list of what was expected, with the rights of whoever asks, as the daemon takes it; nil: there is none.
func (a *app) readExpected(f auditFlags, loc *time.Location) ([]byte, error) {
	if f.expected == "" {
		return nil, nil
	}
	o := expected.Options{Location: loc}
	var err error
	if o.Columns, err = expected.ParseColumns(f.columns); err != nil {
		return nil, usageError{err}
	}
	switch f.decimal {
	case "comma":
		o.Decimal = ','
	case "point":
		o.Decimal = '.'
	}
	name, file, err := a.openExpected(f.expected)
	if err != nil {
		return nil, err
	}
	defer file.Close() // it is only read
	list, err := expected.Read(name, file, o)
	if wrong, ok := errors.AsType[*expected.ColumnsError](err); ok {
		return nil, fail(exitData, err, wrong.Advice())
	}
	if wrong, ok := errors.AsType[*expected.DataError](err); ok {
		return nil, fail(exitData, err, wrong.Advice)
	}
	if err != nil {
		return nil, fail(exitIO, err, "")
	}
	var b bytes.Buffer
	err = list.Encode(&b)
	return b.Bytes(), err
}

// openExpected opens a list, which "-" says comes from standard input. It waits for nobody: a pipe that has a name has no end while
// nobody writes to it.
func (a *app) openExpected(path string) (name string, list io.ReadCloser, err error) {
	if path == "-" {
		if f, ok := a.stdin.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
			return "", nil, fail(exitUsage, errors.New("the list of what was expected is to come from standard input, and that is a terminal"), readFromPipe)
		}
		return "standard input", io.NopCloser(a.stdin), nil
	}
	const wrong = "open the list of what was expected: %w"
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", nil, fail(exitData, fmt.Errorf(wrong, err), "")
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is %s, no regular file", sanitize.Text(path), kindOfFile(info.Mode()))
	}
	if err != nil {
		return "", nil, errors.Join(fail(exitData, fmt.Errorf(wrong, err), readFromPipe), f.Close())
	}
	return sanitize.Text(filepath.Base(path)), f, nil
}

const readFromPipe = "name a file; what another program writes comes by a pipe: PROGRAM | vaultd audit --expected - -o FILE"

func kindOfFile(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "a folder"
	case m&fs.ModeNamedPipe != 0:
		return "a pipe"
	case m&fs.ModeDevice != 0:
		return "a device"
	}
	return "something else"
}
