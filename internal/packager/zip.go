package packager

import (
	"archive/zip"
	"bufio"
	"bytes"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"

	"vaultd/internal/archive"
)

// levels are the compressor's levels by the words of the configuration.
var levels = map[string]int{"fast": 1, "default": 7, "max": 9}

const (
	maxWhole  = 1 << 20 // a file up to this size is compressed in memory
	chunkSize = 128 << 10

	// firstDay is 1980-01-01, the first day that a ZIP can name: entries have no
	// time of their own, because the same files must give the same bytes.
	firstDay = 1<<5 | 1
	utf8Flag = 0x800
	// Made on Unix, by version 2.0 of the format: Info-ZIP's unzip takes the names
	// of other makers for a code page, whatever the UTF-8 flag says.
	creator  = 3<<8 | 20
	reader   = 20
	readable = 0o100644 << 16 // a regular file, rw-r--r--
)

// errFull says that the ZIP grew past the rules' size.
var errFull = errors.New("the ZIP is too large")

// bench is what compressing needs and can be used again: tables of about 1 MB.
type bench struct {
	level           int
	deflate, stored *flate.Writer
	whole           []byte
	packed          bytes.Buffer
	chunk           []byte
	buf             *bufio.Writer
}

// benches saves making those tables for every small invoice. Nothing in them
// changes what is written.
var benches sync.Pool

func takeBench(level int) (*bench, error) {
	if b, ok := benches.Get().(*bench); ok && b.level == level {
		return b, nil
	}
	deflate, err := flate.NewWriter(io.Discard, level)
	if err != nil {
		return nil, err
	}
	stored, err := flate.NewWriter(io.Discard, flate.NoCompression)
	if err != nil {
		return nil, err
	}
	return &bench{level: level, deflate: deflate, stored: stored,
		chunk: make([]byte, chunkSize), buf: bufio.NewWriterSize(nil, chunkSize)}, nil
}

// sink counts and digests the ZIP's bytes on their way to the disk and stops at
// the limit.
type sink struct {
	to     io.Writer
	sha    hash.Hash
	md5    hash.Hash
	n, max int64
}

func (s *sink) Write(p []byte) (int, error) {
	if s.n+int64(len(p)) > s.max {
		return 0, errFull
	}
	s.sha.Write(p)
	s.md5.Write(p)
	n, err := s.to.Write(p)
	s.n += int64(n)
	return n, err
}

// packing is one ZIP in the making.
type packing struct {
	ctx   context.Context
	l     *listing
	bench *bench
	sink  *sink
	zip   *zip.Writer
}

// pack writes the listing's files as a ZIP to w, reading each once, and returns
// what it holds and the digests of its bytes.
func pack(ctx context.Context, l *listing, w io.Writer) ([]archive.File, archive.Package, error) {
	b, err := takeBench(levels[l.rules.Compression])
	if err != nil {
		return nil, archive.Package{}, err
	}
	defer func() {
		b.buf.Reset(nil) // forget the file
		benches.Put(b)
	}()
	p := &packing{ctx: ctx, l: l, bench: b,
		sink: &sink{to: w, sha: sha256.New(), md5: md5.New(), max: l.rules.MaxSize}}
	b.buf.Reset(p.sink)
	p.zip = zip.NewWriter(b.buf)
	files := make([]archive.File, 0, len(l.files))
	for _, f := range l.files {
		file, err := p.add(f)
		if err != nil {
			return nil, archive.Package{}, err
		}
		files = append(files, file)
	}
	if err := errors.Join(p.zip.Close(), b.buf.Flush()); err != nil {
		return nil, archive.Package{}, fmt.Errorf("write ZIP: %w", err)
	}
	pkg := archive.Package{Size: p.sink.n, SHA256: archive.Digest(p.sink.sha.Sum(nil)), MD5: [16]byte(p.sink.md5.Sum(nil))}
	return files, pkg, nil
}

// add reads one file once, as it is packed.
func (p *packing) add(f found) (archive.File, error) {
	file := archive.File{Path: f.path, Size: f.stamp.size}
	var writeErr error // of the ZIP's disk, not of the file's
	err := p.l.read(f, func(r io.Reader) (readErr error) {
		if f.stamp.size > maxWhole {
			file.SHA256, writeErr, readErr = p.addStream(f, r)
			return readErr
		}
		data, readErr := p.whole(r, f.stamp.size)
		if readErr == nil {
			file.SHA256 = archive.Sum(data)
			writeErr = p.addWhole(f.path, data)
		}
		return readErr
	})
	if err == nil && writeErr != nil {
		err = fmt.Errorf("pack %q: %w", f.path, writeErr)
	}
	return file, err
}

// entry is the part of an entry's header that all have.
func entry(name string, method uint16) *zip.FileHeader {
	//lint:ignore SA1019 Modified would add an extended timestamp to every entry; the fixed date alone is what we want
	return &zip.FileHeader{Name: name, Method: method, Flags: utf8Flag, ModifiedDate: firstDay,
		CreatorVersion: creator, ReaderVersion: reader, ExternalAttrs: readable}
}

func (p *packing) whole(r io.Reader, size int64) ([]byte, error) {
	if p.bench.whole == nil {
		p.bench.whole = make([]byte, maxWhole)
	}
	data := p.bench.whole[:size]
	if err := p.ctx.Err(); err != nil {
		return nil, err
	}
	_, err := io.ReadFull(r, data)
	return data, err
}

// addWhole packs a file that is in memory: sizes and CRC stand before the data,
// which saves bytes and suits every reader. It is stored when that is smaller.
func (p *packing) addWhole(name string, data []byte) error {
	h := entry(name, zip.Store)
	h.CRC32, h.UncompressedSize64 = crc32.ChecksumIEEE(data), uint64(len(data))
	body := data
	if !packedAlready(data) {
		p.bench.packed.Reset()
		p.bench.deflate.Reset(&p.bench.packed)
		_, err := p.bench.deflate.Write(data)
		if err = errors.Join(err, p.bench.deflate.Close()); err != nil {
			return err
		}
		if p.bench.packed.Len() < len(data) {
			h.Method, body = zip.Deflate, p.bench.packed.Bytes()
		}
	}
	h.CompressedSize64 = uint64(len(body))
	w, err := p.zip.CreateRaw(h)
	if err == nil {
		_, err = w.Write(body)
	}
	return err
}

// addStream packs a large file in pieces; sizes and CRC follow the data. What
// cannot shrink goes as stored blocks within deflate (5 bytes for 64 KB): readers
// that stream refuse a stored entry whose sizes come later.
func (p *packing) addStream(f found, r io.Reader) (sum archive.Digest, writeErr, readErr error) {
	buf := p.bench.chunk
	h := sha256.New()
	var w io.Writer
	var out *stream
	for left := f.stamp.size; left > 0; {
		piece := buf[:min(left, int64(len(buf)))]
		if readErr = p.ctx.Err(); readErr == nil {
			_, readErr = io.ReadFull(r, piece)
		}
		if readErr != nil {
			return sum, nil, readErr
		}
		if w == nil {
			if w, out, writeErr = p.open(f.path, packedAlready(piece)); writeErr != nil {
				return sum, writeErr, nil
			}
		}
		h.Write(piece)
		if _, writeErr = w.Write(piece); writeErr != nil {
			return sum, writeErr, nil
		}
		left -= int64(len(piece))
	}
	return archive.Digest(h.Sum(nil)), out.Close(), nil
}

// open begins a large file's entry: w takes its content, out ends its compression.
func (p *packing) open(name string, stored bool) (w io.Writer, out *stream, err error) {
	out = &stream{Writer: p.bench.deflate}
	if stored {
		out.Writer = p.bench.stored
	}
	p.zip.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		out.Reset(w)
		return out, nil
	})
	w, err = p.zip.CreateHeader(entry(name, zip.Deflate))
	return w, out, err
}

// stream is a compressor that we close ourselves: zip.Writer does so only when
// the next entry begins, and by then the compressor may serve another file.
type stream struct {
	*flate.Writer
	closed bool
}

func (s *stream) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	return s.Writer.Close()
}

// magics begin the files that are compressed already. PDFs are not among them:
// they shrink by some percent more.
var magics = []string{
	"\xff\xd8\xff", "\x89PNG\r\n\x1a\n", "PK\x03\x04", "\x1f\x8b", "7z\xbc\xaf\x27\x1c", "\xfd7zXZ\x00", "\x28\xb5\x2f\xfd",
}

func packedAlready(data []byte) bool {
	for _, m := range magics {
		if len(data) >= len(m) && string(data[:len(m)]) == m {
			return true
		}
	}
	return false
}

// readBack holds a finished ZIP against what it should be: the digest of its
// bytes and, by the standard library's own inflate, name, size, CRC and digest of
// every entry.
func readBack(ctx context.Context, r io.ReaderAt, pkg archive.Package, files []archive.File) error {
	sum, buf := sha256.New(), make([]byte, 32<<10)
	n, err := io.CopyBuffer(sum, &patient{ctx, io.NewSectionReader(r, 0, pkg.Size+1)}, buf)
	if err != nil {
		return fmt.Errorf("read back ZIP: %w", err)
	}
	if n != pkg.Size || archive.Digest(sum.Sum(nil)) != pkg.SHA256 {
		return errors.New("read back ZIP: its bytes are not those that were written")
	}
	z, err := zip.NewReader(r, pkg.Size)
	if err != nil {
		return fmt.Errorf("read back ZIP: %w", err)
	}
	if len(z.File) != len(files) {
		return fmt.Errorf("read back ZIP: %d entries instead of %d", len(z.File), len(files))
	}
	for i, f := range z.File {
		if err := readEntry(ctx, f, files[i], buf); err != nil {
			return fmt.Errorf("read back %q: %w", files[i].Path, err)
		}
	}
	return nil
}

func readEntry(ctx context.Context, f *zip.File, want archive.File, buf []byte) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { r.Close() }() // its only news, a wrong CRC, comes with the last read
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, &patient{ctx, io.LimitReader(r, want.Size+1)}, buf)
	switch {
	case err != nil:
		return err
	case f.Name != want.Path || n != want.Size || archive.Digest(sum.Sum(nil)) != want.SHA256:
		return errors.New("its content is not that of the file")
	}
	return nil
}

// patient reads until its context is done.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p *patient) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}
