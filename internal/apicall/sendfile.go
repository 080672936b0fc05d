package apicall

import (
	"context"
	"errors"
	"io"
	"net/http"
)

// FileBody is the body of a request that holds one file, and is read from the file while it is sent.
type FileBody struct {
	Before []byte // what stands before the file
	After  []byte // what stands after it
	Size   int64  // of the file, in bytes
	SHA256 [32]byte
	Open   func() (io.ReadCloser, error) // called once per hop; each reader is its own
}

// size is the length of the whole body.
func (b FileBody) size() int64 { return int64(len(b.Before)) + b.Size + int64(len(b.After)) }

// SendFile makes the call in exactly one attempt, with b in place of r's body, and reads its whole answer as [API.Do] does. The
// length of the body is always told, never chunked. The transfer is limited by its progress, not by its time. A redirect of 307 or
// 308 that the policy allows opens the file again.
//
// A file of another length or digest than announced never leaves whole: the error has Damaged and the code "file-damaged" then. A
// 2xx that came before the whole body had left is no success: the outcome is unknown. Sent of the answer is the digest of the file
// that left. Every error is a *Error.
func (a *API) SendFile(ctx context.Context, r Request, b FileBody) (*Answer, error) {
	ctx, w := startWatchdog(ctx, a.timeout, errSlow)
	defer w.stop()
	c, err := a.newCall(r)
	if err != nil {
		return nil, err
	}
	c.size = b.size()
	c.body = func() (io.ReadCloser, error) {
		w.setLimit(defaultStall, errStalled)
		file, err := b.Open()
		if err != nil {
			return nil, &contentError{err}
		}
		if c.content, err = newFramedContent(b.Before, file, b.Size, b.SHA256, b.After); err != nil {
			return nil, err
		}
		return &sending{Reader: w.watchReader(c.content), Closer: c.content}, nil
	}
	// This is the POST. If the process dies in it, the other side may have the file. The caller committed its intent before.
	ans, err := c.callOnce(ctx, func(c *call, resp *http.Response) (*Answer, error) {
		if !c.use.answersContent(c.content) {
			// Whatever it says, it was said without the whole file.
			c.use.closeIfCurrent()
			return nil, errAnsweredBeforeFile
		}
		return a.readAnswer(ctx, c, resp, r.Limit)
	})
	if content, damaged := errors.AsType[*contentError](err); damaged {
		e := AsError(err)
		e.Damaged, e.Code, e.Text = true, "file-damaged", r.Op+": the file is no longer what was announced, or cannot be read: "+content.Error()
	}
	return ans, err
}

// errAnsweredBeforeFile says that a service answered 2xx before the whole body had left.
var errAnsweredBeforeFile = errors.New("the service said yes before it could have the whole file, so it has said nothing about it")
