package apicall

import (
	"bytes"
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// wire is what all calls of one client share.
type wire struct {
	policy    *Policy
	transport http.RoundTripper
	idHeader  string // empty for the store
	agent     string
	now       func() time.Time

	refusedHeader string // see Config.RefusedHeader
	proxyAuth     ProxyAuth
}

// tracesConnections reports whether the transport tells us when a connection is handed to a request.
func (w *wire) tracesConnections() bool {
	_, ok := w.transport.(*http.Transport)
	return ok
}

// call is one logical call: what is asked, and what its errors may tell about it.
type call struct {
	*wire
	rule        func(*url.URL) (credentials bool, err error) // asked before each hop
	credential  func(context.Context) (credential, error)    // asked where rule wants credentials
	tokens      *tokens                                      // where a refused token is replaced; may be nil
	op          string
	method      string
	id          string
	url         *url.URL
	header      http.Header                   // read only; each hop sends a copy
	body        func() (io.ReadCloser, error) // nil: none; a fresh reader for each hop
	size        int64
	content     *content             // of an upload: what the present hop sends; nil: no upload
	asksFirst   bool                 // "Expect: 100-continue": the content leaves once it is welcome, or after a while without a word
	mayKeepBack bool                 // the content has a gate, see [gate]
	use         *connUse             // of the present hop on its connection; nil: the connection is not ours
	mayRedirect func(to string) bool // asked before a redirect is followed; nil: wherever the rule allows
	grant       bool                 // the URL itself is the authority, so its query is a secret

	last    *url.URL     // the hop that was tried last
	note    *RequestNote // where its id is noted; may be nil
	sent    atomic.Bool  // a connection was handed to a request: bytes may have left
	begun   bool         // bytes of the content may have left, on this hop or an earlier one
	renewed bool         // a refused token was followed up already: a call does so once
	used    string       // the token that the last hop carried
	hidden  []string     // texts to keep out of errors
}

// readAnswerFunc reads an answer of status 2xx.
type readAnswerFunc func(*call, *http.Response) (*Answer, error)

// finalError marks an error of the one who reads a streamed answer. It is told as it is, also where the call was cancelled.
type finalError struct{ error }

func (e *finalError) Unwrap() error { return e.error }

// callOnce makes exactly one attempt.
func (c *call) callOnce(ctx context.Context, take readAnswerFunc) (*Answer, error) {
	resp, err := c.followRedirects(ctx)
	if err != nil {
		return nil, c.errorFrom(contextCause(ctx, err))
	}
	return c.takeAnswer(ctx, resp, take)
}

// takeAnswer turns a response into an answer or an error and closes it.
func (c *call) takeAnswer(ctx context.Context, resp *http.Response, take readAnswerFunc) (*Answer, error) {
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return nil, c.readRefusal(resp)
	}
	ans, err := take(c, resp)
	if done, ok := errors.AsType[*Error](err); ok && done.Op == c.op {
		return nil, done
	}
	if err != nil {
		return nil, c.unreadableError(resp, contextCause(ctx, err))
	}
	return ans, nil
}

// followRedirects sends the request, follows redirects, and returns the first answer that is not a redirect.
func (c *call) followRedirects(ctx context.Context) (*http.Response, error) {
	at := c.url
	for hop := 0; ; {
		resp, err := c.sendRequest(ctx, at)
		if err != nil {
			return nil, err
		}
		if c.renewToken(ctx, resp.StatusCode) {
			// The service refused the token, so it did nothing. The same request may leave once more, with the new token.
			discardBody(resp)
			continue
		}
		if resp.StatusCode == http.StatusExpectationFailed && c.asksFirst {
			// Not the request was refused, but its question (RFC 9110, 10.1.1).
			// It leaves once more without it.
			discardBody(resp)
			c.asksFirst = false
			continue
		}
		next, err := c.redirectTarget(at, resp, hop)
		if err != nil {
			discardBody(resp)
			return nil, &redirectError{status: resp.StatusCode, date: serverDate(resp.Header), err: err}
		}
		if next == nil {
			return resp, nil
		}
		// A redirect that keeps the method says that nothing was done here. This stays the same attempt.
		discardBody(resp)
		at = next
		hop++
	}
}

// renewToken gets another token where the service has just refused the one that the call carried, and reports whether the call
// should be sent once more. This service answers 403 to a token that is not valid any more; others answer 401.
func (c *call) renewToken(ctx context.Context, status int) bool {
	refused := status == http.StatusUnauthorized || status == http.StatusForbidden
	switch {
	case c.used == "" || c.tokens == nil:
		return false
	case c.renewed:
		if !refused && status < 500 {
			c.tokens.confirmReplacement(c.used)
		}
		return false
	case !refused:
		return false
	}
	c.renewed = true
	return c.tokens.replaceRefused(ctx, c.used)
}

// sendRequest sends one request to one host and returns its answer.
func (c *call) sendRequest(ctx context.Context, u *url.URL) (*http.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	c.last = u
	c.note, _ = ctx.Value(noteKey{}).(*RequestNote)
	req, err := c.newRequest(ctx, u)
	if err != nil {
		return nil, err
	}
	// From the moment a connection is handed over, bytes may have left. Before that, nothing was sent for certain.
	c.use = nil
	trace := &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
		c.sent.Store(true)
		c.use = beginUse(got.Conn, c.content)
	}}
	if c.content != nil {
		c.content.gate.watchAnswer(trace)
	}
	// This is the remote call. If the process dies in it, the other side may have done what was asked.
	resp, err := c.transport.RoundTrip(req.WithContext(httptrace.WithClientTrace(ctx, trace)))
	if err == nil || !c.tracesConnections() && !isBeforeConnection(err) {
		c.sent.Store(true)
	}
	if !c.content.keepBack() {
		c.begun = true
	} else if err == nil {
		resp.Body = c.content.gate.releaseWith(resp.Body)
	} else {
		c.content.gate.release()
	}
	// Bytes that were there before the request left are no answer to it.
	if err == nil && !c.use.closeUnlessAnswered() {
		resp.Body.Close()
		return nil, errUnasked
	}
	// If the content was not sent whole, no answer is about the whole content.
	if fault := c.content.contentError(); fault != nil {
		if err == nil {
			resp.Body.Close()
		}
		return nil, fault
	}
	if err == nil && c.refusedHeader != "" && resp.Header.Get(c.refusedHeader) != "" {
		resp.Body.Close()
		return nil, errStandIn
	}
	return resp, err
}

// newRequest builds the request for one hop. GetBody stays nil: net/http would use it to send a body again by itself.
func (c *call) newRequest(ctx context.Context, u *url.URL) (*http.Request, error) {
	req := &http.Request{Method: c.method, URL: u, Host: u.Host, Header: http.Header{},
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	maps.Copy(req.Header, c.header) // the values are shared: change one only with Set
	req.Header.Set("User-Agent", c.agent)
	if c.asksFirst {
		req.Header.Set("Expect", "100-continue")
	}
	c.used = ""
	if err := c.addCredentials(ctx, u, req.Header); err != nil {
		return nil, err
	}
	if c.body == nil {
		return req, nil
	}
	body, err := c.body()
	if err != nil {
		return nil, err
	}
	req.Body, req.ContentLength = body, c.size
	if c.size == 0 {
		body.Close()
		req.Body = http.NoBody
	}
	return req, nil
}

// addCredentials asks the rule about u and adds the credentials where they belong.
func (c *call) addCredentials(ctx context.Context, u *url.URL, h http.Header) error {
	h.Del("Authorization")
	wanted, err := c.rule(u)
	if err != nil || !wanted {
		return err
	}
	cred, err := c.credential(ctx)
	if err != nil {
		return err
	}
	h.Set("Authorization", cred.header)
	c.used, c.hidden = cred.token, cred.hidden
	return nil
}

func (c *call) newAnswer(resp *http.Response) *Answer {
	c.noteAnswer(resp)
	return &Answer{Status: resp.StatusCode, Header: resp.Header, RequestID: c.requestID(resp)}
}

// requestID returns our id of a call to the service, and the store's own id of a call to the store.
func (c *call) requestID(resp *http.Response) string {
	if c.id == "" && resp != nil {
		return foreignID(resp.Header, storeIDs...)
	}
	return c.id
}

func inMemory(b []byte) func() (io.ReadCloser, error) {
	return func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil }
}

// readAll reads at most limit bytes; more is ErrTooLarge.
func readAll(r io.Reader, limit int64) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(b)) > limit {
		return nil, ErrTooLarge
	}
	return b, err
}

// discardBody reads a short rest of the body, so that the connection serves the next request.
func discardBody(resp *http.Response) {
	if resp.Body == http.NoBody {
		return
	}
	io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) //lint:ignore errcheck best effort
	resp.Body.Close()
}

// contextCause replaces the context's bare "cancelled" by why it ended.
func contextCause(ctx context.Context, err error) error {
	var final *finalError
	if ctx.Err() != nil && !errors.As(err, &final) {
		if why := context.Cause(ctx); why != nil {
			return why
		}
	}
	return err
}

func serverDate(h http.Header) time.Time {
	t, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// retryAfter reads both forms of Retry-After: seconds, or a date (on the server's clock where it told it). It is never
// negative and never more than a status may ask for.
func retryAfter(status int, h http.Header, now time.Time) time.Duration {
	v, longest := strings.TrimSpace(h.Get("Retry-After")), longestAsked(status)
	if s, err := strconv.ParseFloat(v, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		if !(s > 0) { // not a number, too
			return 0
		}
		return time.Duration(min(s, longest.Seconds()) * float64(time.Second))
	}
	t, err := http.ParseTime(v)
	if err != nil {
		return 0
	}
	if d := serverDate(h); !d.IsZero() {
		now = d
	}
	return min(max(t.Sub(now), 0), longest)
}

// longestAsked is the longest wait that is honoured of an answer: too many calls are ours to mend, a fault of the service
// may be over long before the time that it told. Other answers ask for none.
func longestAsked(status int) time.Duration {
	switch status {
	case http.StatusTooManyRequests:
		return time.Hour
	case http.StatusServiceUnavailable:
		return 15 * time.Minute
	}
	return 0
}
