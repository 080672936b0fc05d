package apicall

import (
	"context"
	"net/http"
	"sync"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// maxForeignID bounds an id that the other side made, in characters.
const maxForeignID = 64

// storeIDs are the headers in which object stores give their own id of a call.
var storeIDs = []string{"X-Amz-Request-Id", "X-Ms-Request-Id", "X-Guploader-Uploadid", "X-Obs-Request-Id", "X-Oss-Request-Id", "X-Request-Id", "Request-Id"}

// RequestNote holds the id of the latest call that was answered with a 2xx.
type RequestNote struct {
	mu sync.Mutex
	id archive.RequestID // guarded by mu
}

type noteKey struct{}

// NoteRequests returns a context for calls whose ids are noted.
func NoteRequests(ctx context.Context) (context.Context, *RequestNote) {
	n := new(RequestNote)
	return context.WithValue(ctx, noteKey{}, n), n
}

// Last returns the id of the latest call that was answered with a 2xx; it may
// be empty.
func (n *RequestNote) Last() archive.RequestID {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id
}

// noteAnswer notes the id of a call that was answered with a 2xx. If the answer
// gives another id than the call had, both are noted.
func (c *call) noteAnswer(resp *http.Response) {
	n := c.note
	if n == nil || c.op == opToken {
		return
	}
	id := c.requestID(resp)
	if c.id != "" {
		if given := foreignID(resp.Header, c.idHeader); given != "" && given != id {
			id += ", answered as " + given
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.id = archive.RequestID(id)
}

// foreignID returns the first of the headers that has a value, safe to show.
func foreignID(h http.Header, names ...string) string {
	for _, name := range names {
		if id := sanitize.Message(h.Get(name), maxForeignID); id != "" {
			return id
		}
	}
	return ""
}
