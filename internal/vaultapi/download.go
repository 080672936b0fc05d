package vaultapi

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// maxDownload bounds what a download writes. A service may pack anew, so it is more than a package may have.
const maxDownload = 2 * archive.MaxPackage

// ErrNotZIP says that a download brought something other than a ZIP file.
var ErrNotZIP = errors.New("what came is not a ZIP file")

// Download writes the archived package of a registration to w and returns its length and digest. The service may send
// it itself, redirect to a pre-signed URL, or name one. On an error w may hold a part. A download may cost money.
func (c *Client) Download(ctx context.Context, v archive.VaultID, r archive.RemoteID, w io.Writer) (int64, archive.Digest, error) {
	const op = "download"
	out := &digested{w: w}
	var elsewhere string
	ans, err := c.api.Stream(ctx, apicall.Request{Op: op, Path: []string{"v1", "vaults", string(v), "documents", string(r)},
		Header: http.Header{"Accept-Encoding": {"identity"}}}, func(_ *apicall.Answer, body io.Reader) (err error) {
		elsewhere, err = out.take(body, true)
		return err
	})
	if err == nil && elsewhere != "" {
		ans, err = c.store.Fetch(ctx, op, elsewhere, func(_ *apicall.Answer, body io.Reader) error {
			_, err := out.take(body, false)
			return err
		})
	}
	switch {
	case errors.Is(err, ErrNotZIP), errors.Is(err, apicall.ErrTooLarge):
		e := fault(err, byQuestion)
		e.Code = "unreadable"
		return out.n, archive.Digest{}, e
	case err != nil:
		return out.n, archive.Digest{}, fault(err, byQuestion)
	case out.n == 0:
		return 0, archive.Digest{}, unreadable(op, ans, ErrNotZIP)
	}
	return out.n, out.sum(), nil
}

// digested writes a package and knows its length and digest.
type digested struct {
	w    io.Writer
	n    int64
	hash []byte
}

func (d *digested) sum() (s archive.Digest) {
	copy(s[:], d.hash)
	return s
}

// take copies a ZIP from body. With link allowed, a JSON body's URL is returned instead.
func (d *digested) take(body io.Reader, linkAllowed bool) (elsewhere string, err error) {
	in := bufio.NewReaderSize(body, 64<<10)
	head, _ := in.Peek(4) // shorter is not a ZIP either
	if !bytes.HasPrefix(head, []byte("PK\x03\x04")) && !bytes.HasPrefix(head, []byte("PK\x05\x06")) {
		if !linkAllowed {
			return "", ErrNotZIP
		}
		return named(in)
	}
	h := sha256.New()
	d.n, err = io.Copy(io.MultiWriter(d.w, h), io.LimitReader(in, maxDownload+1))
	if err == nil && d.n > maxDownload {
		err = apicall.ErrTooLarge
	}
	d.hash = h.Sum(nil)
	return "", err
}

// named reads the JSON forms that name a URL: a string, or an object with it under one of some names, which may be an
// object with url in turn.
func named(in io.Reader) (string, error) {
	body, err := io.ReadAll(io.LimitReader(in, 1<<20))
	if err != nil {
		return "", err
	}
	if address, _ := link(body); address != "" {
		return address, nil
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(body, &object) != nil {
		return "", ErrNotZIP
	}
	for name, raw := range object {
		switch strings.ToLower(name) {
		case "downloadurl", "archivefileurl", "fileurl", "href", "location":
			if address, _ := link(raw); address != "" {
				return address, nil
			}
		}
	}
	return "", ErrNotZIP
}
