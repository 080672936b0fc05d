package apicall

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// expectAbove is the size from which on an upload first asks whether it is welcome, so that a dead URL fails before
// its content is sent.
const expectAbove = 1_000_000

// Store makes calls without credentials, to URLs that carry their own. It is safe for concurrent use.
type Store struct {
	wire       wire
	withoutMD5 *md5Memory
}

// upload is one PUT to a pre-signed URL.
type upload struct {
	Op     string // what is done, in words, for errors: "upload"
	URL    string // sent byte for byte
	Header http.Header
	Size   int64                         // bytes that Open's reader yields
	SHA256 [32]byte                      // of these bytes
	Open   func() (io.ReadCloser, error) // called once per hop; each reader is its own
	Stall  time.Duration                 // longest time without progress; default 60 s

	// AsksFirst: whatever its size, it asks first whether it is welcome, and nothing of its content leaves after an answer has begun.
	AsksFirst bool

	// MayRedirect reports whether a redirect to a URL leads to what URL names; one that does not is not followed. nil: all do.
	MayRedirect func(to string) bool
}

// put makes exactly one attempt. It follows one 307 or 308 that the policy and MayRedirect allow. The body's length is always told,
// never chunked; ctx ends the upload at any point. Content of another length or digest than announced never leaves whole:
// the error wraps a *contentError then. A 2xx counts only if it came after the whole content had left (else the error is
// errAnsweredEarly), if its own content can be read, and if that is neither a web page (errStorePage) nor an error document
// as object stores write them. The answer holds the digest that left, and no content. Every error is a *Error.
func (s *Store) put(ctx context.Context, up upload) (*Answer, error) {
	stall := up.Stall
	if stall <= 0 {
		stall = defaultStall
	}
	ctx, w := startWatchdog(ctx, stall, errStalled)
	defer w.stop()
	c := s.newCall(up.Op, http.MethodPut)
	c.header, c.size, c.mayRedirect = up.Header, up.Size, up.MayRedirect
	c.asksFirst, c.mayKeepBack = up.AsksFirst || up.Size > expectAbove, up.AsksFirst
	c.body = func() (io.ReadCloser, error) {
		body, err := up.Open()
		if err != nil {
			return nil, err
		}
		if c.content, err = newContent(body, up.Size, up.SHA256); err != nil {
			return nil, err
		}
		if up.AsksFirst {
			c.content.gate = newGate(ctx)
		}
		return &sending{Reader: w.watchReader(c.content), Closer: c.content}, nil
	}
	var err error
	if c.url, err = parseLink(up.URL); err != nil {
		return nil, c.errorFrom(err)
	}
	// This is the PUT. If the process dies in it, bytes may be stored: the next start finds the committed intent, and sends the
	// same bytes to the same URL while the ticket is valid, or asks.
	return c.callOnce(ctx, func(c *call, resp *http.Response) (*Answer, error) {
		// A 2xx alone proves nothing: a proxy can send one before the content has left.
		if err := c.checkAcceptance(resp); err != nil {
			return nil, err
		}
		discardBody(resp)
		ans := c.newAnswer(resp)
		ans.Sent = c.content.sent
		return ans, nil
	})
}

// checkAcceptance returns an error where a 2xx does not prove that the store has the whole content.
func (c *call) checkAcceptance(resp *http.Response) error {
	// This comes first. net/http returns an answer as soon as it has one, so the transport may still be sending. What is read
	// of the answer later says nothing about when the answer began.
	early := !c.use.answersContent(c.content)
	if early {
		defer c.use.closeIfCurrent()
		// The body only helps to say what answered. It may never end: the peer may wait for the rest of our content.
		defer time.AfterFunc(earlyAnswerWait, func() { resp.Body.Close() }).Stop()
	}
	switch start, err := io.ReadAll(io.LimitReader(resp.Body, startOfAnswer)); {
	case err != nil && !early:
		return err
	case isErrorDocument(start):
		return c.refusalError(resp, start)
	case len(start) > 0 && strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/html"), isWebPage(start):
		return errStorePage
	case early:
		return errAnsweredEarly
	}
	return nil
}

// startOfAnswer is how much of the content of a store's 2xx is looked at. Object stores answer a PUT without content.
const startOfAnswer = 4 << 10

// earlyAnswerWait limits the wait for the body of an answer that came too early.
const earlyAnswerWait = time.Second

// Fetch streams the content behind a pre-signed URL into into, in exactly one attempt, as API.Stream does.
func (s *Store) Fetch(ctx context.Context, op, rawURL string, into func(*Answer, io.Reader) error) (*Answer, error) {
	ctx, w := startWatchdog(ctx, defaultTimeout, errSlow)
	defer w.stop()
	c := s.newCall(op, http.MethodGet)
	c.header = http.Header{"Accept-Encoding": {"identity"}} // the content's own bytes, as they were stored
	var err error
	if c.url, err = parseLink(rawURL); err != nil {
		return nil, c.errorFrom(err)
	}
	return c.callOnce(ctx, streamInto(w, into))
}

func (s *Store) newCall(op, method string) *call {
	rule := func(u *url.URL) (bool, error) { return false, s.wire.policy.checkPresigned(u) }
	return &call{wire: &s.wire, rule: rule, op: op, method: method, grant: true}
}

// CheckURL reports whether the policy lets this client use the pre-signed URL raw: nil or a *PolicyError.
func (s *Store) CheckURL(raw string) error { return s.wire.policy.CheckPresigned(raw) }

// sending is the body of an upload, watched for progress.
type sending struct {
	io.Reader
	io.Closer
}
