package packager

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"vaultd/internal/archive"
)

// readBack compares a finished ZIP with what it should be: its bytes with those that were written, and name, size, CRC and
// digest of each entry with the files. It uses the inflate of the standard library, which has no part in the compressing. It
// returns the digest of the bytes that it read.
func (b *workspace) readBack(ctx context.Context, r io.ReaderAt, w written, files []archive.File) (archive.Digest, error) {
	r, err := b.readIntoMemory(r, w.size)
	if err != nil {
		return archive.Digest{}, fmt.Errorf("read back ZIP: %w", err)
	}
	sum, err := b.hashWhole(ctx, r, w)
	if err != nil {
		return archive.Digest{}, fmt.Errorf("read back ZIP: %w", err)
	}
	z, err := zip.NewReader(r, w.size)
	if err != nil {
		return archive.Digest{}, fmt.Errorf("read back ZIP: %w", err)
	}
	if len(z.File) != len(files) {
		return archive.Digest{}, fmt.Errorf("read back ZIP: %d entries instead of %d", len(z.File), len(files))
	}
	for i, f := range z.File {
		if err := b.compareEntry(ctx, f, files[i]); err != nil {
			return archive.Digest{}, fmt.Errorf("read back %q: %w", files[i].Path, err)
		}
	}
	return sum, nil
}

// readIntoMemory reads a small ZIP into memory, so that all comparisons see the bytes of one read. It reads one byte more
// than there should be.
func (b *workspace) readIntoMemory(r io.ReaderAt, size int64) (io.ReaderAt, error) {
	if size >= int64(len(b.fileBuf)) {
		return r, nil
	}
	n, err := r.ReadAt(b.fileBuf[:size+1], 0)
	if err != nil && err != io.EOF {
		return nil, err
	}
	return bytes.NewReader(b.fileBuf[:n]), nil
}

func (b *workspace) hashWhole(ctx context.Context, r io.ReaderAt, w written) (archive.Digest, error) {
	sum, crc := sha256.New(), crc32.NewIEEE()
	n, err := io.CopyBuffer(io.MultiWriter(sum, crc), &contextReader{ctx, io.NewSectionReader(r, 0, w.size+1)}, b.copyBuf)
	switch {
	case err != nil:
		return archive.Digest{}, err
	case n != w.size || crc.Sum32() != w.crc:
		return archive.Digest{}, errors.New("its bytes are not those that were written")
	}
	return archive.Digest(sum.Sum(nil)), nil
}

func (b *workspace) compareEntry(ctx context.Context, f *zip.File, want archive.File) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	// A wrong CRC is reported by the last read.
	defer func() { r.Close() }()
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, &contextReader{ctx, io.LimitReader(r, want.Size+1)}, b.copyBuf)
	switch {
	case err != nil:
		return err
	case f.Name != want.Path || n != want.Size || archive.Digest(sum.Sum(nil)) != want.SHA256:
		return errors.New("its content is not that of the file")
	}
	return nil
}

// contextReader reads until its context is done.
type contextReader struct {
	ctx context.Context
	r   io.Reader
}

func (p *contextReader) Read(b []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.r.Read(b)
}
