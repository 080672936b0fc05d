package emulator

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"sync"
	"syscall"
)

// Transport passes requests to the server without a network, for tests on virtual time: every host is this server. It starts
// no goroutine. A call returns when the server has handled it or its context ends. A connection that dies gives a network error.
// One that dies in the middle of an answer gives a body that ends in such an error. One that is refused fails as a dial does, and
// nothing shows that there was a connection.
func (s *Server) Transport() http.RoundTripper { return transport{s} }

type transport struct{ server *Server }

// connection tells the transport whether the server accepted the connection.
type connection struct {
	trace   *httptrace.ClientTrace
	refused bool
}

type wireKey struct{}

// markConnected plays the dial of a call that came through Transport. It does nothing for a call over a network.
func markConnected(ctx context.Context, accepted bool) {
	w, _ := ctx.Value(wireKey{}).(*connection)
	if w == nil {
		return
	}
	w.refused = !accepted
	if accepted && w.trace != nil && w.trace.GotConn != nil {
		w.trace.GotConn(httptrace.GotConnInfo{})
	}
}

func (t transport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	w := &connection{trace: httptrace.ContextClientTrace(req.Context())}
	body := &countedBody{length: req.ContentLength}
	in := asReceived(req, w, body)
	out := &recorder{header: http.Header{}}
	aborted := out.run(t.server, in)
	switch {
	case w.refused:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	case body.failure() != nil:
		return nil, body.failure()
	case req.Context().Err() != nil:
		return nil, req.Context().Err()
	case aborted && out.status == 0:
		return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	}
	return out.response(req), nil
}

// asReceived returns the request in the form in which a server gets it.
func asReceived(req *http.Request, w *connection, body *countedBody) *http.Request {
	in := req.Clone(context.WithValue(req.Context(), wireKey{}, w))
	in.RequestURI, in.RemoteAddr = req.URL.RequestURI(), "127.0.0.1:1"
	in.Proto, in.ProtoMajor, in.ProtoMinor = "HTTP/1.1", 1, 1
	if in.Host == "" {
		in.Host = req.URL.Host
	}
	if req.URL.Scheme == "https" {
		in.TLS = &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true}
	}
	in.URL.Scheme, in.URL.Host, in.URL.User = "", "", nil
	if in.Header.Get("Authorization") == "" && req.URL.User != nil {
		secret, _ := req.URL.User.Password()
		in.SetBasicAuth(req.URL.User.Username(), secret)
	}
	switch {
	case req.Body == nil || req.Body == http.NoBody:
		in.ContentLength, in.Body = 0, http.NoBody
		return in
	case req.ContentLength <= 0: // net/http sends a body of unknown length in chunks
		in.ContentLength, in.TransferEncoding = -1, []string{"chunked"}
	default:
		in.Header.Set("Content-Length", strconv.FormatInt(req.ContentLength, 10))
	}
	body.from = req.Body
	in.Body = body
	return in
}

// countedBody passes the client's body to the server and checks it against its announced length.
type countedBody struct {
	from   io.ReadCloser
	length int64 // at most 0: unknown

	mu   sync.Mutex
	read int64
	err  error // what went wrong on the client's side; guarded by mu
}

func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.from.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read += int64(n)
	switch {
	case b.length > 0 && b.read > b.length:
		b.err = errors.New("http: request body longer than its ContentLength")
	case errors.Is(err, io.EOF) && b.length > 0 && b.read < b.length:
		b.err = errors.New("http: request body shorter than its ContentLength")
	case err != nil && !errors.Is(err, io.EOF):
		b.err = err
	}
	if b.err != nil {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

func (b *countedBody) Close() error { return nil } // RoundTrip closes the client's

func (b *countedBody) failure() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// recorder is the ResponseWriter of a call without a network.
type recorder struct {
	header http.Header
	sent   http.Header // as they were when the status was written
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }
func (r *recorder) Flush()              {}

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status, r.sent = status, r.header.Clone()
	}
}

func (r *recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// run serves the request. aborted says that the connection died before the handler returned.
func (r *recorder) run(h http.Handler, in *http.Request) (aborted bool) {
	defer func() {
		p := recover()
		if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
			aborted = true
		} else if p != nil {
			panic(p)
		}
	}()
	h.ServeHTTP(r, in)
	r.WriteHeader(http.StatusOK)
	return false
}

func (r *recorder) response(req *http.Request) *http.Response {
	length := int64(r.body.Len())
	if n, err := strconv.ParseInt(r.sent.Get("Content-Length"), 10, 64); err == nil {
		length = n
	}
	var body io.Reader = &r.body
	if int64(r.body.Len()) < length {
		body = io.MultiReader(body, brokenReader{})
	}
	return &http.Response{
		Status: strconv.Itoa(r.status) + " " + http.StatusText(r.status), StatusCode: r.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: r.sent, Body: io.NopCloser(body),
		ContentLength: length, Request: req, TLS: tlsOf(req),
	}
}

func tlsOf(req *http.Request) *tls.ConnectionState {
	if req.URL.Scheme != "https" {
		return nil
	}
	return &tls.ConnectionState{Version: tls.VersionTLS13, HandshakeComplete: true}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
