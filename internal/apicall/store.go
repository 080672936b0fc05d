package apicall

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"time"
)

// expectAbove is the size from which on an upload first asks whether it is welcome, so that a dead URL fails before
// its content is sent.
const expectAbove = 1_000_000

// Store makes calls without credentials, to URLs that carry their own. It is safe for concurrent use.
type Store struct {
	wire wire
}

// Upload is one PUT to a pre-signed URL.
type Upload struct {
	Op     string // what is done, in words, for errors: "upload"
	URL    string // sent byte for byte
	Header http.Header
	Size   int64                         // bytes that Open's reader yields
	Open   func() (io.ReadCloser, error) // called once per hop; each reader is its own
	Stall  time.Duration                 // longest time without progress; default 60 s
}

// Put makes exactly one attempt. It follows one 307 or 308 that the policy allows. The body's length is always told,
// never chunked; ctx ends the upload at any point. Every error is a *CallError.
func (s *Store) Put(ctx context.Context, up Upload) (*Answer, error) {
	stall := up.Stall
	if stall <= 0 {
		stall = defaultStall
	}
	ctx, w := watch(ctx, stall, errStalled)
	defer w.stop()
	c := s.newCall(up.Op, http.MethodPut)
	c.header, c.size = up.Header, up.Size
	c.body = func() (io.ReadCloser, error) {
		body, err := up.Open()
		if err != nil {
			return nil, err
		}
		return &sending{Reader: w.reader(body), Closer: body}, nil
	}
	var err error
	if c.url, err = parseLink(up.URL); err != nil {
		return nil, c.fail(err)
	}
	return c.once(ctx, func(c *call, resp *http.Response) (*Answer, error) {
		discard(resp) // 2xx is the whole answer; what stands in its body is nobody's business
		return c.answer(resp), nil
	})
}

// Fetch streams the content behind a pre-signed URL into into, as API.Stream does.
func (s *Store) Fetch(ctx context.Context, op, rawURL string, into func(*Answer, io.Reader) error) (*Answer, error) {
	ctx, w := watch(ctx, defaultTimeout, errSlow)
	defer w.stop()
	c := s.newCall(op, http.MethodGet)
	c.header = http.Header{"Accept-Encoding": {"identity"}} // the content's own bytes, as they were stored
	var err error
	if c.url, err = parseLink(rawURL); err != nil {
		return nil, c.fail(err)
	}
	return c.repeat(ctx, func(c *call, resp *http.Response) (*Answer, error) {
		w.expect(defaultStall, errStalled)
		ans := c.answer(resp)
		if err := into(ans, w.reader(resp.Body)); err != nil {
			return nil, &finalError{err}
		}
		return ans, nil
	})
}

func (s *Store) newCall(op, method string) *call {
	rule := func(u *url.URL) (bool, error) { return false, s.wire.policy.presigned(u) }
	return &call{wire: &s.wire, rule: rule, op: op, method: method, grant: true}
}

// Allowed reports whether the policy lets this client use the pre-signed URL raw: nil or a *PolicyError.
func (s *Store) Allowed(raw string) error { return s.wire.policy.Presigned(raw) }

// sending is an upload's body under watch.
type sending struct {
	io.Reader
	io.Closer
}
