// Package apicall makes one HTTP call of a service. It sends the right
// credentials and to nobody else, follows the redirects that the policy allows,
// adds a request id, and limits time and size. It also reads the forms in which
// services answer, for all clients (see [ReadFields]), and it has the one type
// of error of a remote call: [Error]. No error holds a secret.
//
// There are two clients. [API] carries the credentials and speaks to the
// service. [Store] carries none and speaks to the object store behind
// pre-signed URLs: it reads the tickets that services give, and uploads
// packages to them. They share no connection.
//
// A POST or a PUT leaves this machine at most once per call, and so does a GET
// whose content is streamed: downloads are counted, and some are paid for.
// Further attempts belong to the ledger; a second retry layer would hide them.
// Only GETs that are read into memory and token requests are repeated here.
// Three answers prove that nothing was done: a redirect that asks for the same
// request elsewhere, a 401 or 403 to an OAuth token that may be dead, and a 417
// to "Expect: 100-continue". The call after each of them is the same attempt.
//
// The package keeps nothing on disk, so a crash leaves nothing to clean up.
// The effect that a call may have had when the process died follows from what
// its caller committed before it. Of a call that returned, Outcome in [Error]
// says whether nothing was sent, nothing was done, or neither is known.
package apicall

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Limits of an answer and of a call, where the caller names none.
const (
	defaultTimeout   = 60 * time.Second // gateways in front of the service cut at about 29 s
	defaultStall     = 60 * time.Second
	defaultAnswer    = 1 << 20
	errorAnswer      = 64 << 10
	requestIDHeader  = "X-SVC-REQUEST-ID"
	defaultUserAgent = "vaultd"
)

// Config says where the service is and how to reach it. The zero value of a field is its default.
type Config struct {
	BaseURL         string   // https, or http to a loopback host
	RequestIDHeader string   // default X-SVC-REQUEST-ID
	AllowedHosts    []string // host or host:port; see Policy
	RedirectHosts   []string // the same of hosts that redirects without a signature may lead to, with the credentials
	CAFile          string   // PEM, trusted in addition to the system's
	Proxy           string   // URL of a proxy; the environment is not consulted
	ProxyAuth       ProxyAuth
	UserAgent       string
	Auth            Auth
	RefusedHeader   string        // an answer with this header is from a stand-in of the service and counts for nothing; empty: none is refused
	Timeout         time.Duration // of a whole API call with its token, redirects and repeats; default 60 s

	// Transport, if set, replaces the network for both clients. The policy on addresses is then not asked (there are
	// none); the policy on URLs is. Unless it is an *http.Transport, a failed exchange counts as sent, save for errors of
	// dialling, names and certificates.
	Transport http.RoundTripper
	Now       func() time.Time // default time.Now
}

// API makes calls with credentials. It is safe for concurrent use.
type API struct {
	base    *url.URL
	wire    wire
	auth    *authorizer
	memory  answerMemory
	timeout time.Duration
}

// Request is one call of the API.
type Request struct {
	Op     string   // what is done, in words, for errors: "register"
	Method string   // default GET
	Path   []string // segments below the base URL, unescaped
	URL    string   // instead of Path and Query: an absolute link that the service gave
	Query  url.Values
	Header http.Header
	Body   []byte
	Limit  int64 // of the answer's body in bytes, at most 64 MiB; default 1 MiB
}

// Answer is a 2xx answer. Body is empty where it was streamed.
type Answer struct {
	Status    int
	Header    http.Header
	Body      []byte
	RequestID string
	Sent      [32]byte // of an upload: the SHA-256 of the package or file that left

	release func()
}

// Release gives back the memory that Body counts for, once whatever matters of it was copied. It may be called twice.
func (a *Answer) Release() {
	if a != nil && a.release != nil {
		a.release()
	}
}

// Date is the other side's clock by the Date header; zero where it sent none.
func (a *Answer) Date() time.Time { return serverDate(a.Header) }

// New returns the two clients for cfg. They share the policy and nothing else.
func New(cfg Config) (*API, *Store, error) {
	base, err := parseBase(cfg.BaseURL)
	if err != nil {
		return nil, nil, err
	}
	policy, err := NewPolicy(cfg.BaseURL, cfg.AllowedHosts, cfg.RedirectHosts)
	if err != nil {
		return nil, nil, err
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	apiNet, storeNet, err := newTransports(cfg, policy)
	if err != nil {
		return nil, nil, err
	}
	header := cmp.Or(cfg.RequestIDHeader, requestIDHeader)
	agent := cmp.Or(cfg.UserAgent, defaultUserAgent)
	api := &API{base: base, timeout: cfg.Timeout, memory: newAnswerMemory()}
	if api.timeout <= 0 {
		api.timeout = defaultTimeout
	}
	api.wire = wire{policy: policy, transport: apiNet, idHeader: header, agent: agent, now: cfg.Now, refusedHeader: cfg.RefusedHeader, proxyAuth: cfg.ProxyAuth}
	if api.auth, err = newAuthorizer(cfg.Auth, base, &api.wire); err != nil {
		return nil, nil, err
	}
	store := &Store{wire: wire{policy: policy, transport: storeNet, agent: agent, now: cfg.Now, refusedHeader: cfg.RefusedHeader, proxyAuth: cfg.ProxyAuth}, withoutMD5: &md5Memory{}}
	return api, store, nil
}

// WithAuth returns a client of the same service with other credentials: it has tokens of its own, and shares all else with a. It
// is to be asked for before the first call.
func (a *API) WithAuth(auth Auth) (*API, error) {
	other := &API{base: a.base, wire: a.wire, memory: a.memory, timeout: a.timeout}
	var err error
	other.auth, err = newAuthorizer(auth, other.base, &other.wire)
	return other, err
}

// Do makes the call and reads its whole answer. The answers of all calls share a bounded memory, so the caller releases
// this one when he has read it. A GET is repeated on faults that pass, within the call's time; any other method is exactly
// one attempt. Every error is a *Error.
func (a *API) Do(ctx context.Context, r Request) (*Answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.timeout, errSlow)
	defer cancel()
	return a.runCall(ctx, r, func(c *call, resp *http.Response) (*Answer, error) { return a.readAnswer(ctx, c, resp, r.Limit) })
}

// readAnswer reads the whole answer to a call, of at most limit bytes.
func (a *API) readAnswer(ctx context.Context, c *call, resp *http.Response, limit int64) (*Answer, error) {
	limit = min(limit, allAnswers)
	if limit <= 0 {
		limit = defaultAnswer
	}
	body, release, err := a.memory.readBody(ctx, resp, limit)
	if err != nil {
		return nil, err
	}
	ans := c.newAnswer(resp)
	ans.Body, ans.release = body, release
	if c.content != nil {
		ans.Sent = c.content.sent
	}
	return ans, nil
}

// Stream makes the call in exactly one attempt and hands the answer's body to into, which must read it before it returns. The
// time limit of a call ends where the body begins: from there the transfer may take as long as it moves. An error of into comes
// back inside the *Error.
func (a *API) Stream(ctx context.Context, r Request, into func(*Answer, io.Reader) error) (*Answer, error) {
	ctx, w := startWatchdog(ctx, a.timeout, errSlow)
	defer w.stop()
	c, err := a.newCall(r)
	if err != nil {
		return nil, err
	}
	// The service may count this download, even where its answer is lost. So it leaves once, for the one intent that the caller
	// committed; whoever wants it again commits another one.
	return c.callOnce(ctx, streamInto(w, into))
}

// streamInto hands the body of an answer to into. From there on the transfer is limited by its progress alone.
func streamInto(w *watchdog, into func(*Answer, io.Reader) error) readAnswerFunc {
	return func(c *call, resp *http.Response) (*Answer, error) {
		w.setLimit(defaultStall, errStalled)
		ans := c.newAnswer(resp)
		if err := into(ans, w.watchReader(resp.Body)); err != nil {
			return nil, &finalError{err}
		}
		return ans, nil
	}
}

func (a *API) runCall(ctx context.Context, r Request, take readAnswerFunc) (*Answer, error) {
	c, err := a.newCall(r)
	if err != nil {
		return nil, err
	}
	// Only a GET is repeated. A second POST or PUT may do a thing twice, so it leaves once. If the process dies while it is on
	// its way, the next start finds the intent that the caller committed, and asks what became of it.
	if c.method == http.MethodGet {
		return c.callWithRetries(ctx, take)
	}
	return c.callOnce(ctx, take)
}

func (a *API) newCall(r Request) (*call, error) {
	c := &call{wire: &a.wire, credential: a.auth.makeHeader, tokens: a.auth.tokens, op: r.Op, method: r.Method, id: uuid.NewString(), header: r.Header.Clone()}
	c.rule = func(u *url.URL) (bool, error) { return a.wire.policy.checkTarget(c.method, u) }
	c.method = cmp.Or(c.method, http.MethodGet)
	if c.header == nil {
		c.header = http.Header{}
	}
	c.header.Set(a.wire.idHeader, c.id)
	// Services may ask for the time of the request. Each hop of a redirect repeats it, as it repeats all headers.
	c.header.Set("Date", a.wire.now().UTC().Format(http.TimeFormat))
	if r.Body != nil {
		c.body, c.size = inMemory(r.Body), int64(len(r.Body))
	}
	var err error
	if c.url, err = a.resolveURL(r); err != nil {
		return nil, c.errorFrom(err)
	}
	return c, nil
}

// resolveURL builds the address of r.
func (a *API) resolveURL(r Request) (*url.URL, error) {
	if r.URL != "" {
		return parseLink(r.URL)
	}
	u, err := joinURL(a.base, r.Path...)
	if err == nil {
		u.RawQuery = r.Query.Encode()
	}
	return u, err
}

// joinURL adds segments to a base. They may come from outside (a vault's name, an id of theirs), so they are escaped and
// must not walk up the tree.
func joinURL(base *url.URL, segments ...string) (*url.URL, error) {
	u := *base
	escaped := u.EscapedPath()
	for _, s := range segments {
		if s == "" || s == "." || s == ".." {
			return nil, errors.New("a part of the address is empty or walks up the tree")
		}
		u.Path += "/" + s
		escaped += "/" + url.PathEscape(s)
	}
	u.RawPath = escaped
	return &u, nil
}

// parseBase accepts what a base URL may be: https, or http to loopback; no user, query or fragment.
func parseBase(raw string) (*url.URL, error) {
	u, err := parseLink(raw)
	switch {
	case err != nil:
		return nil, err
	case u.RawQuery != "" || u.ForceQuery:
		return nil, &PolicyError{Host: u.Host, Reason: "a base address has no query"}
	case u.Scheme == "http" && !isLoopbackHost(u.Hostname()):
		return nil, &PolicyError{Host: u.Host, Reason: "plain http is allowed to loopback only"}
	}
	u.Opaque = ""
	u.Path = strings.TrimRight(u.Path, "/")
	u.RawPath = strings.TrimRight(u.RawPath, "/")
	return u, nil
}
