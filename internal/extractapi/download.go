package extractapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// maxDownload limits one file, in bytes. A file has at most 100,000 records.
const maxDownload = 4 << 30

// ErrNotExtract says that a download gave something else than a file of an extract.
var ErrNotExtract = errors.New("what came is neither a ZIP file nor a gzip file, or is the page of a web server")

// Download writes a file to w, as it came, and returns its length. It is exactly one download, however it ends: the service allows
// a limited number of them, and may count one whose answer is lost. Redirects are followed as the policy says. On an error w may
// hold a part. An error of w has the code "local".
func (c *Client) Download(ctx context.Context, f archive.ExtractFile, w io.Writer) (int64, error) {
	out := &apicall.FileWriter{W: w}
	// This is the GET. If the process dies in it, the service may have counted it. The intent was committed before, so the next
	// start knows that one download more may be used up, and begins a new one from the first byte.
	_, err := c.api.Stream(ctx, apicall.Request{Op: "download a file of an extract", URL: string(f.URL), Header: http.Header{"Accept-Encoding": {"identity"}}},
		func(_ *apicall.Answer, body io.Reader) error { return copyFile(out, body, f) })
	if err != nil {
		return out.N, out.Fault(err)
	}
	return out.N, nil
}

// copyFile copies a ZIP or a gzip file, and any file whose name says that it is
// none. If something else comes, as the page of a proxy, it writes nothing.
func copyFile(to *apicall.FileWriter, body io.Reader, of archive.ExtractFile) error {
	in := bufio.NewReaderSize(body, 64<<10)
	head, err := in.Peek(512)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !isContainer(head) && (!of.MayBePlain() || isPage(head) && !strings.Contains(strings.ToLower(path.Ext(of.Name)), ".htm")) {
		return ErrNotExtract
	}
	if _, err := io.Copy(to, io.LimitReader(in, maxDownload+1)); err != nil {
		return err
	}
	if to.N > maxDownload {
		return apicall.ErrTooLarge
	}
	return nil
}

// isContainer reports whether a file that begins with head is a ZIP file, perhaps an empty one, or a gzip file.
func isContainer(head []byte) bool {
	for _, begin := range []string{"PK\x03\x04", "PK\x05\x06", "\x1f\x8b"} {
		if bytes.HasPrefix(head, []byte(begin)) {
			return true
		}
	}
	return false
}

// isPage reports whether a file begins as the page of a web server does.
func isPage(head []byte) bool {
	text := bytes.ToLower(bytes.TrimLeft(head, "\ufeff \t\r\n"))
	return bytes.HasPrefix(text, []byte("<html")) || bytes.HasPrefix(text, []byte("<!doctype"))
}
