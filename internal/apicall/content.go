package apicall

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"sync/atomic"
)

// errAnsweredEarly says that a store answered 2xx before the whole content of an upload had left. So the answer does not accept
// this content.
var errAnsweredEarly = errors.New("the store said yes before it could have the whole content, so it has said nothing about it")

// errStorePage says that an upload was answered with a web page.
var errStorePage = errors.New("answered with a web page, as a proxy does and no object store; whether the package arrived is not known")

// contentError says that the content of an upload is not the announced one, or cannot be read to its end. Its last bytes were not
// sent and the connection was closed, so no store got a whole body. A store may have kept the part that it got.
type contentError struct{ Err error }

// Error implements error.
func (e *contentError) Error() string {
	return "the content was not sent to its end: " + e.Err.Error()
}

// Unwrap returns what is wrong with the content.
func (e *contentError) Unwrap() error { return e.Err }

// content is the body of one upload on one hop: one file, and what stands before and after it. It hashes what the transport reads
// of the file. The file's last piece is handed out only if the file ends there and its digest is the announced one.
//
// The transport reads in a goroutine of its own, which may go on after the answer came. What other goroutines read is atomic.
type content struct {
	from   io.ReadCloser
	size   int64
	want   [sha256.Size]byte
	before []byte // what is still to be handed out before the file
	after  []byte // what is still to be handed out after it

	gate *gate // that it waits at before its first byte; may be nil

	sum   hash.Hash // as read, err: of the goroutine that reads
	read  int64
	err   error
	sent  [sha256.Size]byte // digest of all that was read; others read it once whole is set
	whole atomic.Bool
	fault atomic.Pointer[contentError]
}

// newContent returns the content that from yields. If size is 0 there is no
// last piece, so the content is checked at once.
func newContent(from io.ReadCloser, size int64, want [sha256.Size]byte) (*content, error) {
	return newFramedContent(nil, from, size, want, nil)
}

// newFramedContent returns the content that from yields, between before and after.
func newFramedContent(before []byte, from io.ReadCloser, size int64, want [sha256.Size]byte, after []byte) (*content, error) {
	c := &content{from: from, size: size, want: want, before: before, after: after, sum: sha256.New()}
	if size > 0 {
		return c, nil
	}
	if err := c.checkWhole(); err != nil {
		return nil, errors.Join(&contentError{err}, from.Close())
	}
	c.whole.Store(len(before)+len(after) == 0)
	return c, nil
}

// Read implements io.Reader.
func (c *content) Read(p []byte) (n int, err error) {
	switch {
	case c.err != nil:
		return 0, c.err
	case len(p) == 0:
		return 0, nil
	case len(c.before) > 0:
		n = copy(p, c.before)
		c.before = c.before[n:]
	case c.read < c.size:
		n, err = c.readFile(p)
	case len(c.after) > 0:
		n = copy(p, c.after)
		c.after = c.after[n:]
	default:
		return 0, io.EOF
	}
	if err == nil && len(c.before) == 0 && c.read == c.size && len(c.after) == 0 {
		c.whole.Store(true) // before the last piece leaves: a store can answer as soon as it has it
	}
	return n, err
}

// readFile reads the next piece of the file.
func (c *content) readFile(p []byte) (int, error) {
	if c.err = c.gate.pass(); c.err != nil {
		return 0, c.err
	}
	n, err := c.from.Read(p[:min(int64(len(p)), c.size-c.read)])
	c.sum.Write(p[:n])
	c.read += int64(n)
	switch {
	case c.read == c.size:
		err = c.checkWhole()
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("it has %d bytes, announced are %d", c.read, c.size)
	}
	if err != nil {
		return 0, c.withholdEnd(err)
	}
	return n, nil
}

// checkWhole reports what is wrong with the content once all its bytes were read.
func (c *content) checkWhole() error {
	switch n, err := io.ReadFull(c.from, make([]byte, 1)); {
	case n > 0:
		return fmt.Errorf("it has more than the announced %d bytes", c.size)
	case !errors.Is(err, io.EOF):
		return err
	}
	if c.sum.Sum(c.sent[:0]); c.sent != c.want {
		return fmt.Errorf("its SHA-256 is %x, announced is %x", c.sent, c.want)
	}
	return nil
}

// withholdEnd ends the content before its last piece. A read error after the transport closed the content is no fault of it.
func (c *content) withholdEnd(err error) error {
	c.err = err
	if !errors.Is(err, fs.ErrClosed) {
		fault := &contentError{err}
		c.err = fault
		c.fault.Store(fault)
	}
	return c.err
}

// Close implements io.Closer.
func (c *content) Close() error { return c.from.Close() }

// isHandedOut reports whether the transport has the whole content. There is nothing to hand out where c is nil.
func (c *content) isHandedOut() bool { return c == nil || c.whole.Load() }

// keepBack makes sure that no byte of the content leaves any more where none has left yet, and reports that. Without a gate it
// keeps nothing back.
func (c *content) keepBack() bool { return c != nil && c.gate.keepBack() }

// contentError returns why the content was not handed out to its end; nil: it was, or is not at fault.
func (c *content) contentError() error {
	if c == nil || c.fault.Load() == nil {
		return nil
	}
	return c.fault.Load()
}
