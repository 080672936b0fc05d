package vaultapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"net/http"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// maxDownload limits what a download writes. A service may pack the files again, so it is more than the limit of a package.
const maxDownload = 2 * archive.MaxPackage

// ErrNotZIP says that a download gave something else than a ZIP file.
var ErrNotZIP = errors.New("what came is not a ZIP file")

// Download writes the archived package of a registration to w and returns its length and digest. The service may send
// it itself, redirect to a pre-signed URL, or name one. On an error w may hold a part. A download may cost money.
func (c *Client) Download(ctx context.Context, v archive.VaultID, r archive.RemoteID, w io.Writer) (int64, archive.Digest, error) {
	const op = "download"
	out := &packageWriter{w: w, hash: sha256.New()}
	var elsewhere string
	ans, err := c.apiOf(v).Stream(ctx, apicall.Request{Op: op, Path: []string{"v1", "vaults", string(v), "documents", string(r)},
		Header: http.Header{"Accept-Encoding": {"identity"}}}, func(_ *apicall.Answer, body io.Reader) (err error) {
		elsewhere, err = out.copyZIPOrLink(body)
		return err
	})
	// The credentials do not go to that URL: the store's client has none.
	if err == nil && elsewhere != "" {
		ans, err = c.store.Fetch(ctx, op, elsewhere, func(_ *apicall.Answer, body io.Reader) error {
			return out.copyZIP(bufio.NewReaderSize(body, 64<<10))
		})
	}
	switch {
	case err != nil:
		e := apicall.AsError(err)
		if out.err != nil {
			e.Code = "local"
		}
		return out.n, archive.Digest{}, e
	case out.n == 0:
		return 0, archive.Digest{}, ans.Unreadable(op, ErrNotZIP)
	}
	return out.n, archive.Digest(out.hash.Sum(nil)), nil
}

// packageWriter writes a package and knows its length and digest, and whether it was the writing that failed.
type packageWriter struct {
	w    io.Writer
	n    int64
	hash hash.Hash
	err  error
}

func (d *packageWriter) Write(p []byte) (int, error) {
	n, err := d.w.Write(p)
	d.n += int64(n)
	d.hash.Write(p[:n])
	d.err = err
	return n, err
}

// copyZIPOrLink copies a ZIP from body, or returns the URL where body is JSON that names one.
func (d *packageWriter) copyZIPOrLink(body io.Reader) (elsewhere string, err error) {
	in := bufio.NewReaderSize(body, 64<<10)
	if err := d.copyZIP(in); !errors.Is(err, ErrNotZIP) {
		return "", err
	}
	return readDownloadLink(in)
}

// copyZIP copies a ZIP from in. If in begins like no ZIP file, it reads nothing
// and returns ErrNotZIP.
func (d *packageWriter) copyZIP(in *bufio.Reader) error {
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) && !bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		return ErrNotZIP
	}
	if _, err = io.Copy(d, io.LimitReader(in, maxDownload+1)); err == nil && d.n > maxDownload {
		err = apicall.ErrTooLarge
	}
	return err
}

// readDownloadLink reads the JSON forms that name a URL: a string, or an object with it under one of some names. There it is a
// string or an object with url.
func readDownloadLink(in io.Reader) (string, error) {
	body, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return "", err
	}
	if address, _ := apicall.ReadLink(body); address != "" {
		return address, nil
	}
	object, err := apicall.ReadFields(body, addressFields...)
	if err != nil {
		return "", ErrNotZIP
	}
	for _, name := range addressFields {
		if address, _ := apicall.ReadLink(object[name]); address != "" {
			return address, nil
		}
	}
	return "", ErrNotZIP
}

// addressFields are the names under which an answer may give the address of the content, the best first. The
// specification shows none.
var addressFields = []string{"downloadUrl", "downloadURL", "archiveFileURL", "archiveFileUrl", "fileUrl", "fileURL", "href", "location"}
