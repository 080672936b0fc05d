package networkapi

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"vaultd/internal/archive"
)

// Sender sends documents out of sealed packages: ZIPs that hold the document first, then its files. A package is read while it is sent,
// and what left of it is held against the digests that were recorded when it was sealed.
type Sender struct {
	Client *Client
	Types  FileTypes // what each file is to its document
}

// StoreFile stores one file of a package, as [Client.StoreFile] does. What it
// is to its document was decided when that was sealed, so that each attempt
// says the same.
func (s Sender) StoreFile(ctx context.Context, document archive.RemoteID, p archive.Package, f archive.File) (archive.FileID, error) {
	return s.Client.StoreFile(ctx, document, File{Name: f.Path, Type: cmp.Or(f.Type, s.Types.Of(f.Path)), Size: f.Size, SHA256: f.SHA256,
		Open: func() (io.ReadCloser, error) { return s.OpenPacked(p, f) }})
}

// OpenPacked opens one file of a package. Closing it closes the package.
func (s Sender) OpenPacked(p archive.Package, f archive.File) (io.ReadCloser, error) {
	return openPacked(p, func(packed *zip.File) bool { return packed.Name == f.Path })
}

// maxComposed bounds a document that is sent, in bytes.
const maxComposed = 64 << 20

// Compose returns what is sent of the document of a package. It is an error where the package holds another document than the one with
// the digest.
func (s Sender) Compose(p archive.Package, document archive.Digest, files []archive.FileID) (archive.NetworkBody, error) {
	raw, err := readPackedDocument(p, document)
	if err != nil {
		return archive.NetworkBody{}, err
	}
	kind, err := ReadKind(raw)
	if err != nil {
		return archive.NetworkBody{}, err
	}
	body, err := ComposeBody(raw, files)
	return archive.NetworkBody{Kind: kind, JSON: body}, err
}

// readPackedDocument reads the document of a package. It is an error where that has another digest.
func readPackedDocument(p archive.Package, digest archive.Digest) ([]byte, error) {
	r, err := openPacked(p, nil)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(io.LimitReader(r, maxComposed+1))
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, fmt.Errorf("read the document in the package: %w", err)
	}
	if archive.Sum(raw) != digest {
		return nil, errors.New("the package in the spool holds another document than was sealed; look at the disk of state_dir")
	}
	return raw, nil
}

// SendDocument sends a document under its number, as [Client.SendDocument] does.
func (s Sender) SendDocument(ctx context.Context, number archive.RemoteID, b archive.NetworkBody) error {
	return s.Client.SendDocument(ctx, b.Kind, number, b.JSON)
}

// FetchValidationFile returns the file with what the network's check of a document found, as [Client.FetchValidationFile] does. One that is longer
// than [archive.MaxValidationFile] is an error, and so is one that [archive.CheckForm] finds a fault with.
func (s Sender) FetchValidationFile(ctx context.Context, id archive.FileID) ([]byte, error) {
	content := &limitedBuffer{left: archive.MaxValidationFile}
	told, err := s.Client.FetchValidationFile(ctx, id, content)
	if err != nil {
		return nil, err
	}
	if encoding := told.Wrapping(content.bytes); encoding != "" {
		plain := &limitedBuffer{left: archive.MaxValidationFile}
		if err := archive.Unwrap(encoding, bytes.NewReader(content.bytes), plain); err != nil {
			return nil, fmt.Errorf("read a validation file: %w", err)
		}
		content = plain
	}
	return content.bytes, archive.CheckForm(bytes.NewReader(content.bytes), int64(len(content.bytes)), false)
}

// limitedBuffer takes no more bytes than are left.
type limitedBuffer struct {
	bytes []byte
	left  int
}

var errTooLong = errors.New("the file is longer than is taken")

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if len(p) > b.left {
		return 0, errTooLong
	}
	b.bytes, b.left = append(b.bytes, p...), b.left-len(p)
	return len(p), nil
}

// IsNumberTaken is [AlreadyExists].
func (Sender) IsNumberTaken(err error) bool { return AlreadyExists(err) }

// HasDocument reports whether the network shows the document to its sender. That it may fetch it is an assumption, so false proves nothing.
func (s Sender) HasDocument(ctx context.Context, number archive.RemoteID, b archive.NetworkBody) bool {
	_, received, err := s.Client.FetchDocument(ctx, b.Kind, number)
	return err == nil && received.Document == number
}

// openPacked opens a file of a package; wanted nil: the first one.
func openPacked(p archive.Package, wanted func(*zip.File) bool) (io.ReadCloser, error) {
	z, err := zip.OpenReader(p.Path)
	if err != nil {
		return nil, fmt.Errorf("open the package: %w", err)
	}
	for _, f := range z.File {
		if wanted != nil && !wanted(f) {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, errors.Join(fmt.Errorf("open %q in the package: %w", f.Name, err), z.Close())
		}
		return packedFile{r, z}, nil
	}
	return nil, errors.Join(fmt.Errorf("find the file in the package: %w", fs.ErrInvalid), z.Close())
}

// packedFile is an open file of a package. Closing it closes the package.
type packedFile struct {
	io.ReadCloser
	from *zip.ReadCloser
}

// Close implements io.Closer.
func (f packedFile) Close() error { return errors.Join(f.ReadCloser.Close(), f.from.Close()) }
