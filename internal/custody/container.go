package custody

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Form is how the records of a file are packed.
type Form string

// The forms. Plain is of our own files, and of files that the service adds to an extract.
const (
	ZIP   Form = "zip"
	Gzip  Form = "gzip"
	Plain Form = "plain"
)

// Bounds of a container. An extract's file has one entry or a few, of at most
// 100,000 records together.
const (
	maxUnpacked  = 4 << 30 // bytes of all entries, 40 kB for each record; tests have other ones
	maxDirectory = 4 << 20 // bytes of a ZIP's list of entries
)

// DamagedError says that a file is not whole, or not what it should be.
type DamagedError struct{ Why string }

// Error implements error.
func (e *DamagedError) Error() string { return "the file is damaged: " + e.Why }

// readContainer reads a file of so many bytes to the end of its container: every entry of a ZIP with its checksum, or a gzip stream
// with its trailer. It says which of the two it is. What comes out is thrown away, so names in a ZIP do not matter here. A container that
// unpacks to more than limit bytes is damaged, and no more than that of it is unpacked.
func readContainer(ctx context.Context, r io.ReaderAt, size, limit int64, mayBePlain bool) (Form, error) {
	form, err := formOf(r)
	if err != nil {
		return "", err
	}
	if form == Plain && !mayBePlain {
		return "", &DamagedError{Why: "it is neither a ZIP file nor a gzip file"}
	}
	err = eachEntry(r, size, limit, form, func(_ string, content io.Reader) error {
		_, err := io.Copy(io.Discard, &stoppable{ctx: ctx, r: content})
		return err
	})
	return form, err
}

// formOf tells the form by the first bytes.
func formOf(r io.ReaderAt) (Form, error) {
	head := make([]byte, 4)
	n, err := r.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	switch head = head[:n]; {
	case bytes.HasPrefix(head, []byte("PK")):
		return ZIP, nil
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return Gzip, nil
	}
	return Plain, nil
}

// eachEntry calls do with the content of each entry of a container, in the
// order of its list. A gzip file and a plain one have one entry without a name.
// do must read an entry to its end: only then is its checksum known. No more
// than limit bytes come out of all of them.
func eachEntry(r io.ReaderAt, size, limit int64, form Form, do func(name string, content io.Reader) error) error {
	left := limit
	bounded := func(r io.Reader) io.Reader { return &unpacked{r: r, left: &left, limit: limit} }
	if form == Plain {
		return do("", bounded(io.NewSectionReader(r, 0, size)))
	}
	if form == Gzip {
		z, err := gzip.NewReader(io.NewSectionReader(r, 0, size))
		if err != nil {
			return &DamagedError{Why: err.Error()}
		}
		return damaged(do("", bounded(z)))
	}
	if err := checkDirectory(r, size); err != nil {
		return err
	}
	z, err := zip.NewReader(r, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names lead nowhere: nothing is unpacked onto the disk
		return &DamagedError{Why: err.Error()}
	}
	for _, f := range z.File {
		if f.FileInfo().IsDir() {
			continue
		}
		content, err := f.Open()
		if err != nil {
			return &DamagedError{Why: err.Error()}
		}
		if err := damaged(errors.Join(do(f.Name, bounded(content)), content.Close())); err != nil {
			return err
		}
	}
	return nil
}

// damaged marks what readers of containers say about damage. An error of the disk stays as it is.
func damaged(err error) error {
	_, corrupt := errors.AsType[flate.CorruptInputError](err)
	switch {
	case corrupt, errors.Is(err, zip.ErrChecksum), errors.Is(err, zip.ErrFormat), errors.Is(err, zip.ErrAlgorithm),
		errors.Is(err, gzip.ErrChecksum), errors.Is(err, gzip.ErrHeader), errors.Is(err, io.ErrUnexpectedEOF):
		return &DamagedError{Why: err.Error()}
	}
	return err
}

// checkDirectory refuses a ZIP whose list of entries is so long that reading it would need much memory. It reads where the list
// begins as the end of the file tells it; what is wrong with it otherwise, the reader of the ZIP finds.
func checkDirectory(r io.ReaderAt, size int64) error {
	const end, locator, end64 = 22, 20, 56
	tail := make([]byte, min(size, end+65535+locator))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	at := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if at < 0 || len(tail)-at < end {
		return &DamagedError{Why: "it has no end: it is cut off"}
	}
	begin := int64(binary.LittleEndian.Uint32(tail[at+16:]))
	if at >= locator && bytes.HasPrefix(tail[at-locator:], []byte("PK\x06\x07")) {
		record := make([]byte, end64)
		if _, err := r.ReadAt(record, int64(binary.LittleEndian.Uint64(tail[at-locator+8:])&(1<<62-1))); err != nil {
			return &DamagedError{Why: fmt.Sprintf("its end cannot be read: %v", err)}
		}
		begin = int64(binary.LittleEndian.Uint64(record[48:]) & (1<<62 - 1))
	}
	if size-begin > maxDirectory {
		return &DamagedError{Why: "its list of entries is too long"}
	}
	return nil
}

// unpacked reads what comes out of a container, and fails where that is too much.
type unpacked struct {
	r     io.Reader
	left  *int64 // for this entry and those behind it
	limit int64
}

func (u *unpacked) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if *u.left -= int64(n); *u.left < 0 {
		return 0, &DamagedError{Why: fmt.Sprintf("it unpacks to more than %d MiB", u.limit>>20)}
	}
	return n, err
}

// stoppable reads until its context ends.
type stoppable struct {
	ctx context.Context
	r   io.Reader
}

func (s *stoppable) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}
