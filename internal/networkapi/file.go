package networkapi

import (
	"context"
	"errors"
	"io"
	"net/http"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

var errEmptyFile = errors.New("the file that came is empty")

// FetchFile writes a stored file to w as it came, and returns what the headers
// of the answer tell of it. It is one GET, and a second one where version 2 of
// the interface does not know the file. On an error w may hold a part; an error
// of w has the code "local".
func (c *Client) FetchFile(ctx context.Context, id archive.FileID, w io.Writer) (told archive.FileTold, err error) {
	err = inEitherVersion(append(splitPath(filesPath), string(id)), func(path []string) (err error) {
		told, err = c.fetch(ctx, apicall.Request{Op: "fetch a file", Path: path}, w)
		return err
	})
	return told, err
}

// FetchValidationFile writes the file to w that a notification names as the
// result of a validation, as FetchFile does. If it is unknown under the path of
// the specification, which lacks a version, it is asked for under the paths of
// all other files.
func (c *Client) FetchValidationFile(ctx context.Context, id archive.FileID, w io.Writer) (told archive.FileTold, err error) {
	get := func(path []string) (err error) {
		told, err = c.fetch(ctx, apicall.Request{Op: "fetch a validation file", Path: path}, w)
		return err
	}
	err = get(append(splitPath(validationFilesPath), string(id)))
	if isNotKnown(err) {
		if other := inEitherVersion(append(splitPath(filesPath), string(id)), get); !isNotKnown(other) {
			return told, other
		}
	}
	return told, err
}

// fetch writes the content of an answer to w.
func (c *Client) fetch(ctx context.Context, r apicall.Request, w io.Writer) (told archive.FileTold, err error) {
	out := &apicall.FileWriter{W: w}
	r.Header = http.Header{"Accept-Encoding": {"identity"}} // the file's own bytes
	// This is the GET. If the process dies in it, w holds a part. Nothing was acknowledged, so the next start fetches the file again,
	// from its first byte on.
	_, err = c.api.Stream(ctx, r, func(ans *apicall.Answer, body io.Reader) error {
		told = archive.ReadFileHeaders(ans.Header.Get)
		return copyFile(out, body)
	})
	if err != nil {
		return told, out.Fault(err)
	}
	return told, nil
}

// copyFile copies a file.
func copyFile(to *apicall.FileWriter, body io.Reader) error {
	if _, err := io.Copy(to, io.LimitReader(body, archive.MaxReceivedFile+1)); err != nil {
		return err
	}
	switch {
	case to.N > archive.MaxReceivedFile:
		return apicall.ErrTooLarge
	case to.N == 0:
		return errEmptyFile // the network takes no empty file, so the content was lost on the way
	}
	return nil
}
