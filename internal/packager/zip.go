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

	"vaultd/internal/archive"
)

// levels are the compressor's levels by the words of the configuration.
var levels = map[string]int{"fast": 1, "default": 8, "max": 9}

const (
	maxHeld   = 1 << 20         // bytes of a file that are held in memory
	maxPacked = maxHeld + 1<<10 // bytes of an entry that are held in memory: enough for one that does not shrink
	chunkSize = 64 << 10

	// fixedDate is 1980-01-01, the first day that a ZIP can name. Entries have no time of their own, because the same files must
	// give the same bytes.
	fixedDate = 1<<5 | 1
	// sizesFollowFlag says that CRC and sizes follow the data.
	sizesFollowFlag = 0x8
	utf8Flag        = 0x800
	// Made on Unix, by version 2.0 of the format: Info-ZIP's unzip takes the names
	// of other makers for a code page, whatever the UTF-8 flag says.
	creator  = 3<<8 | 20
	reader   = 20
	readable = 0o100644 << 16 // a regular file, rw-r--r--
)

// errTooLarge says that the ZIP grew beyond the size that the rules allow.
var errTooLarge = errors.New("the ZIP is too large")

// workspace holds buffers and compressors, some 4 MB, that are used again for the next folder.
type workspace struct {
	level    int
	deflater *runDeflater
	fileBuf  []byte       // a piece of a file, or a small ZIP that is read back
	entryBuf bytes.Buffer // an entry that is not written yet
	copyBuf  []byte
	zipBuf   *bufio.Writer
}

// workspaces saves making those tables for each small invoice. Nothing in them changes what is written.
var workspaces sync.Pool

func takeWorkspace(level int) (*workspace, error) {
	if b, ok := workspaces.Get().(*workspace); ok && b.level == level {
		return b, nil
	}
	s, err := newRunDeflater(level)
	if err != nil {
		return nil, err
	}
	return &workspace{level: level, deflater: s, fileBuf: make([]byte, maxHeld),
		copyBuf: make([]byte, chunkSize), zipBuf: bufio.NewWriterSize(nil, chunkSize)}, nil
}

// release returns the workspace for the next folder. No byte of this folder stays visible in it.
func (b *workspace) release() {
	b.deflater.releaseData()
	workspaces.Put(b)
}

// limitedWriter counts the bytes of the ZIP on their way to the disk and stops at the limit. Its CRC is for the reading
// back, which takes the SHA-256 of what it finds.
type limitedWriter struct {
	to     io.Writer
	md5    hash.Hash
	crc    uint32
	n, max int64
}

func (s *limitedWriter) Write(p []byte) (int, error) {
	if s.n+int64(len(p)) > s.max {
		return 0, errTooLarge
	}
	s.md5.Write(p)
	s.crc = crc32.Update(s.crc, crc32.IEEETable, p)
	n, err := s.to.Write(p)
	s.n += int64(n)
	return n, err
}

// written describes the ZIP as it left for the disk.
type written struct {
	size int64
	crc  uint32
	md5  [16]byte
}

// zipBuilder is one ZIP that is being made.
type zipBuilder struct {
	ctx   context.Context
	l     *listing
	bench *workspace
	zip   *zip.Writer
}

// writeZIP writes the listing's files as a ZIP to w. It reads each file once.
func (b *workspace) writeZIP(ctx context.Context, l *listing, w io.Writer) ([]archive.File, written, error) {
	to := &limitedWriter{to: w, md5: md5.New(), max: l.rules.MaxSize}
	b.zipBuf.Reset(to)
	defer b.zipBuf.Reset(nil) // drops the reference to the file
	p := &zipBuilder{ctx: ctx, l: l, bench: b, zip: zip.NewWriter(b.zipBuf)}
	files := make([]archive.File, 0, len(l.files))
	for _, f := range l.files {
		file, err := p.addFile(f)
		if err != nil {
			return nil, written{}, err
		}
		files = append(files, file)
	}
	if err := errors.Join(p.zip.Close(), b.zipBuf.Flush()); err != nil {
		return nil, written{}, fmt.Errorf("write ZIP: %w", err)
	}
	return files, written{size: to.n, crc: to.crc, md5: [16]byte(to.md5.Sum(nil))}, nil
}

// addFile reads one file once, while it packs it.
func (p *zipBuilder) addFile(f foundFile) (archive.File, error) {
	file := archive.File{Path: f.path, Size: f.state.Size}
	// writeErr is a fault of the spool's disk; an error of reading is one of the share's.
	var writeErr error
	err := p.l.readFile(f, func(r io.Reader) (readErr error) {
		file.SHA256, writeErr, readErr = p.packFile(f, r)
		return readErr
	})
	switch {
	case err == nil && writeErr != nil:
		err = fmt.Errorf("pack %q: %w", f.path, writeErr)
	case err == nil && f.state.Size <= maxHeld:
		data := p.bench.fileBuf[:f.state.Size]
		err = p.l.checkSmallEnding(f, data)
	}
	return file, err
}

// packFile reads a file piece by piece and packs it as an entry.
func (p *zipBuilder) packFile(f foundFile, r io.Reader) (sum archive.Digest, writeErr, readErr error) {
	e := p.beginEntry(f.path)
	h := sha256.New()
	var piece []byte
	for left := f.state.Size; left > 0; left -= int64(len(piece)) {
		piece = p.bench.fileBuf[:min(left, maxHeld)]
		if readErr = p.ctx.Err(); readErr == nil {
			_, readErr = io.ReadFull(r, piece)
		}
		if readErr != nil {
			return sum, nil, readErr
		}
		h.Write(piece)
		if writeErr = e.write(piece); writeErr != nil {
			return sum, writeErr, nil
		}
	}
	return archive.Digest(h.Sum(nil)), e.finish(piece), nil
}

// zipEntry is one file of the ZIP. It is kept in memory until its CRC and its sizes are known, so that they can stand before
// it, which every reader understands. An entry that is too large for that is streamed, and they stand behind it.
type zipEntry struct {
	*zipBuilder
	header *zip.FileHeader
	crc    uint32
	size   uint64
	sent   uint64    // bytes of the entry that were written to the ZIP
	to     io.Writer // nil while the entry is kept in memory
}

func (p *zipBuilder) beginEntry(name string) *zipEntry {
	p.bench.entryBuf.Reset()
	//lint:ignore SA1019 Modified would add an extended timestamp to every entry; the fixed date alone is what we want
	e := &zipEntry{zipBuilder: p, header: &zip.FileHeader{Name: name, Method: zip.Deflate, Flags: utf8Flag, ModifiedDate: fixedDate,
		CreatorVersion: creator, ReaderVersion: reader, ExternalAttrs: readable}}
	p.bench.deflater.reset(e)
	return e
}

func (e *zipEntry) write(piece []byte) error {
	e.crc = crc32.Update(e.crc, crc32.IEEETable, piece)
	e.size += uint64(len(piece))
	return e.bench.deflater.write(piece)
}

// Write takes compressed bytes.
func (e *zipEntry) Write(b []byte) (int, error) {
	if e.to == nil && e.bench.entryBuf.Len()+len(b) <= maxPacked {
		return e.bench.entryBuf.Write(b)
	}
	if err := e.startStreaming(); err != nil {
		return 0, err
	}
	n, err := e.to.Write(b)
	e.sent += uint64(n)
	return n, err
}

// startStreaming begins the entry in the ZIP with the bytes that were kept in memory.
func (e *zipEntry) startStreaming() (err error) {
	if e.to != nil {
		return nil
	}
	e.header.Flags |= sizesFollowFlag
	return e.startEntry(e.bench.entryBuf.Bytes())
}

func (e *zipEntry) startEntry(held []byte) (err error) {
	if e.to, err = e.zip.CreateRaw(e.header); err == nil {
		_, err = e.to.Write(held)
	}
	e.sent = uint64(len(held))
	return err
}

// finish writes the entry that was kept in memory, or the sizes of a streamed one. A file that did not shrink is stored as
// it is, when all of it is still in memory: last is its last piece.
func (e *zipEntry) finish(last []byte) error {
	if e.size > 0 {
		if err := e.bench.deflater.close(); err != nil {
			return err
		}
	}
	e.header.CRC32, e.header.UncompressedSize64 = e.crc, e.size
	if e.to != nil {
		// The ZIP writer writes these sizes when the next entry begins or the ZIP ends. They fit: no file and no ZIP has 4 GB.
		e.header.CompressedSize64 = e.sent
		//lint:ignore SA1019 CreateRaw fills them from the others, which is too early here
		e.header.CompressedSize, e.header.UncompressedSize = uint32(e.sent), uint32(e.size)
		return nil
	}
	held := e.bench.entryBuf.Bytes()
	if whole := uint64(len(last)) == e.size; whole && len(held) >= len(last) {
		e.header.Method, held = zip.Store, last
	}
	e.header.CompressedSize64 = uint64(len(held))
	return e.startEntry(held)
}
