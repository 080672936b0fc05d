package networkapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// maxFile limits one file that is fetched, in bytes. The specification shows no limit.
const maxFile = 1 << 30

// base64Heads are how files begin that came in base64: a PDF, a ZIP file, XML with and without a byte order mark, a web page, an RTF, a PNG, a JPEG,
// a TIFF in both orders of bytes, and documents of office programs. The network may send base64 and does not say so. Assumption: no file of the
// network begins with one of these texts itself. A text file in base64 cannot be told from its own text, and is kept as it came.
var base64Heads = []string{"JVBERi0", "UEsDB", "PD94bWwg", "77u/PD94bWwg", "PCFET0NUWVBF", "PCFkb2N0eXBl", "PGh0bWw", "e1xydGY", "iVBORw0KGgo", "/9j/", "SUkqA", "TU0AK",
	"0M8R4KGxGuE"}

// headSize is how much of a file is looked at before it is written.
const headSize = 16

var errEmptyFile = errors.New("the file that came is empty")

// FetchFile writes a stored file to w, and returns its length. It is one GET, and a second one where version 2 of the interface does not know the file. A file
// in base64 is decoded. On an error w may hold a part; an error of w has the code "local".
func (c *Client) FetchFile(ctx context.Context, id archive.FileID, w io.Writer) (n int64, err error) {
	err = inEitherVersion(append(splitPath(filesPath), string(id)), func(path []string) (err error) {
		n, err = c.fetch(ctx, apicall.Request{Op: "fetch a file", Path: path}, w)
		return err
	})
	return n, err
}

// FetchValidationFile writes the file to w that a notification names as the result of a validation, as FetchFile does.
func (c *Client) FetchValidationFile(ctx context.Context, id archive.FileID, w io.Writer) (int64, error) {
	return c.fetch(ctx, apicall.Request{Op: "fetch a validation file", Path: append(splitPath(validationFilesPath), string(id))}, w)
}

// fetch writes the content of an answer to w.
func (c *Client) fetch(ctx context.Context, r apicall.Request, w io.Writer) (int64, error) {
	out := &fileWriter{w: w}
	r.Header = http.Header{"Accept-Encoding": {"identity"}} // the file's own bytes
	// This is the GET. If the process dies in it, w holds a part. Nothing was acknowledged, so the next start fetches the file again,
	// from its first byte on.
	_, err := c.api.Stream(ctx, r, func(_ *apicall.Answer, body io.Reader) error { return out.copyFile(body) })
	if err != nil {
		e := apicall.AsError(err)
		if out.err != nil {
			e.Code = "local"
		}
		return out.n, e
	}
	return out.n, nil
}

// fileWriter counts what it writes, and knows whether it was the writing that failed.
type fileWriter struct {
	w   io.Writer
	n   int64
	err error
}

func (f *fileWriter) Write(p []byte) (int, error) {
	n, err := f.w.Write(p)
	f.n += int64(n)
	if err != nil {
		f.err = err
	}
	return n, err
}

// copyFile copies a file, and decodes it where its first bytes say that it is in base64.
func (f *fileWriter) copyFile(body io.Reader) error {
	in := bufio.NewReaderSize(body, 32<<10)
	head, err := in.Peek(headSize)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	var from io.Reader = in
	if isBase64(head) {
		from = base64.NewDecoder(base64.StdEncoding, in)
	}
	if _, err := io.Copy(f, io.LimitReader(from, maxFile+1)); err != nil {
		return err
	}
	switch {
	case f.n > maxFile:
		return apicall.ErrTooLarge
	case f.n == 0:
		return errEmptyFile // the network takes no empty file, so the content was lost on the way
	}
	return nil
}

// isBase64 reports whether a file that begins with head came in base64.
func isBase64(head []byte) bool {
	for _, begin := range base64Heads {
		if bytes.HasPrefix(head, []byte(begin)) {
			return true
		}
	}
	return false
}
