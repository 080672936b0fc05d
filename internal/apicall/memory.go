package apicall

import (
	"context"
	"net/http"
	"sync"

	"golang.org/x/sync/semaphore"
)

// allAnswers bounds the bodies of all answers that are being read or are not released yet, in bytes.
const allAnswers = 64 << 20

// answerMemory limits the memory of the bodies of all answers together. A call waits for free memory, within its own time limit.
type answerMemory struct{ free *semaphore.Weighted }

func newAnswerMemory() answerMemory { return answerMemory{semaphore.NewWeighted(allAnswers)} }

// readBody reads a body of at most limit bytes; more is ErrTooLarge. The body counts until release is called. An answer with
// a Content-Length counts by it, any other one by its limit.
func (m answerMemory) readBody(ctx context.Context, resp *http.Response, limit int64) (body []byte, release func(), err error) {
	size := limit
	if told := resp.ContentLength; told >= 0 {
		size = told
	}
	if size > limit {
		return nil, nil, ErrTooLarge
	}
	size = min(size, allAnswers)
	if err := m.free.Acquire(ctx, size); err != nil {
		return nil, nil, err
	}
	release = sync.OnceFunc(func() { m.free.Release(size) })
	if body, err = readAll(resp.Body, limit); err != nil {
		release()
		return nil, nil, err
	}
	return body, release, nil
}
