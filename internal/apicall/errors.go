package apicall

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/sanitize"
)

// ErrTooLarge says that an answer was longer than its limit; the rest was not read.
var ErrTooLarge = errors.New("the answer is larger than its limit")

var (
	errSlow    = fmt.Errorf("no answer in time: %w", context.DeadlineExceeded)
	errStalled = fmt.Errorf("the transfer stands still: %w", context.DeadlineExceeded)
	errCrawls  = fmt.Errorf("the transfer crawls, less than 64 kB in ten minutes: %w", context.DeadlineExceeded)
	errStandIn = errors.New("a stand-in of the service answered (vaultd emulate), which is no evidence in production")
	errSecret  = errors.New("the secret cannot be read") // not "secret: …", which would be hidden as one
)

// Outcome is what is certain about the effect of a call that failed.
type Outcome uint8

// The outcomes.
const (
	// OutcomeUnknown: the request may have left, and nothing trustworthy came back. It may have been done.
	OutcomeUnknown Outcome = iota
	// NotSent: no byte of the request left this machine; of an upload that asks first, no byte of its content.
	NotSent
	// NotProcessed: answered and certainly not done, and the request itself is not to blame: credentials, rights, a path.
	NotProcessed
	// Refused: answered and certainly not done, because of the request itself. Only a client of one interface knows which
	// answers say this (see [BlameRequest]).
	Refused
)

func (o Outcome) String() string {
	return [...]string{"unknown", "not sent", "not processed", "refused"}[min(o, Refused)]
}

// Error is how every call to a service or an object store fails. No field holds a query, a credential or a token; texts of
// the other side are stripped of control characters and cut.
type Error struct {
	Outcome    Outcome
	Code       string // stable, for machines: "http-403", "timeout"; see [Error.codeOf] for all of them
	Text       string // for a person, in place of the text that is made of the fields below; with the request's id
	Denied     bool   // credentials or rights are missing: 401, 403, or a token that was refused or lacks a scope
	Expired    bool   // the store refused an upload because its ticket is over
	RefusesMD5 bool   // the store refused an upload because of its Content-MD5, which the address does not sign; it stored nothing
	Damaged    bool   // the package or file is not what was announced, or cannot be read: its end was not sent

	Op           string // what was tried, in words
	Method       string
	Host, Path   string // of the last hop; Path without the query
	Status       int    // of the last answer; 0 if missing
	RequestID    string
	Sent         bool          // bytes of the request may have left
	RetryAfter   time.Duration // what the other side asked for: at most an hour with 429, 15 minutes with 503; 0: nothing
	Date         time.Time     // the other side's clock; zero: missing
	ServiceCode  string        // the other side's code for the fault: "SlowDown", "invalid_client"
	ServiceClass string        // the other side's class of the fault: "VALIDATION"; may be empty
	ErrorID      string        // the other side's id of this one error, by which its support finds it; may be empty
	Message      string        // its words, at most 500 characters
	Field        string        // the first field of the request that its words are about: "lines.0.amount"; empty: it names none
	Plain        *Plain        // what a refusal means, for whoever made what was refused; nil: only these fields say it
	keptBack     bool          // of an upload that asks first: no byte of its content left, and none will
	Err          error         // the cause on this side, if any: *PolicyError, *ScopeError, a network error
}

// Plain is what a refusal means, in the words of the client of one interface,
// for people who know nothing of calls.
type Plain struct {
	Head string // how the text begins: "NOT SENT"
	Says string // what is wrong, without a full stop. Of a file it goes on behind the name: "did not pass …"
	Do   string // what whoever made it does before it is dropped again; with a full stop: that is all, because it is not their turn
}

// AsError returns err as an *Error. An error of any other type counts as an unknown outcome.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: "unforeseen", Text: fmt.Sprint(err), Err: err}
}

// BlameRequest marks a failed call as Refused where it was not processed and its status is one of those with which an
// interface rejects the request itself. It returns err.
func BlameRequest(err error, statuses ...int) error {
	if e, ok := errors.AsType[*Error](err); ok && e.Outcome == NotProcessed && slices.Contains(statuses, e.Status) {
		e.Outcome = Refused
	}
	return err
}

// The codes of calls that neither the service nor the object store answered, but
// something on the way.
const (
	CodeStandIn   = "stand-in" // a stand-in of the service, though the environment is production
	CodeProxyAuth = "http-407" // a proxy, or a gateway, wants a sign-in of its own
	CodeProxy     = "proxy"
)

// IsOnTheWay reports whether something on the way answered a call that failed
// with this code.
func IsOnTheWay(code string) bool {
	return code == CodeStandIn || code == CodeProxyAuth || code == CodeProxy
}

// IsUnlisted reports whether the way led to a host that the configuration does
// not allow. All calls that take this way fail until it does.
func (e *Error) IsUnlisted() bool {
	refused, ok := errors.AsType[*PolicyError](e)
	return ok && refused.IsUnlisted
}

// Overloaded reports whether the other side asks for fewer calls: 429, 503.
func (e *Error) Overloaded() bool {
	return e.Status == http.StatusTooManyRequests || e.Status == http.StatusServiceUnavailable
}

// MayBeAbsent reports whether the answer is one with which services say that they do not know a number that was asked
// about: 400, 404, 422, 502. Each of them may also be about the path of every call, so alone it proves nothing.
func (e *Error) MayBeAbsent() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusBadGateway:
		return true
	}
	return false
}

// Error names the step, the target, the answer in words and, if the request may have left, its id.
func (e *Error) Error() string {
	if e.Text != "" {
		return e.Text
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s%s", e.Op, e.Method, e.Host, e.Path)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": %d", e.Status)
		if text := http.StatusText(e.Status); text != "" {
			b.WriteString(" " + text)
		}
	}
	if e.ServiceCode != "" && !strings.Contains(e.Message, e.ServiceCode) {
		b.WriteString(": " + e.ServiceCode)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	b.WriteString(e.hint())
	b.WriteString(e.numbers())
	return b.String()
}

// numbers are the ids by which the other side's support finds the call.
func (e *Error) numbers() string {
	switch told := e.RequestID != "" && e.Sent; { // the other side knows no other
	case told && e.ErrorID != "":
		return " (request id " + e.RequestID + ", error id " + e.ErrorID + ")"
	case told:
		return " (request id " + e.RequestID + ")"
	case e.ErrorID != "":
		return " (error id " + e.ErrorID + ")"
	}
	return ""
}

// IsWebPage reports whether an error answer is a web page, as proxies and gateways give it: then the service said nothing.
func (e *Error) IsWebPage() bool { return strings.HasPrefix(e.Message, pageWords) }

// hint says what to look at where the fault's own words do not.
func (e *Error) hint() string {
	var (
		inner  *Error
		record tls.RecordHeaderError
	)
	switch {
	case errors.As(e.Err, &inner): // said its own
	case e.Status == http.StatusBadGateway:
		return " (if this lasts, the base address or the case of the path may be wrong)"
	case errors.As(e.Err, &record):
		return " (that port does not speak TLS)"
	}
	return ""
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// classify sets Outcome, Denied and Code by the other fields, which are complete.
func (e *Error) classify() *Error {
	e.Outcome = e.outcomeOf()
	e.Denied = e.isDenied()
	e.Code = e.codeOf()
	return e
}

// outcomeOf tells what is certain. Only a 4xx that speaks of this request proves that nothing was done: 408, 425, 429, the
// object store's RequestTimeout and every 5xx leave it open, and so does a redirect that asks for another method. Of an upload whose
// content was kept back whole, no answer but a 2xx leaves anything open, and neither does the lack of one: nothing can be stored.
func (e *Error) outcomeOf() Outcome {
	switch {
	case !e.Sent:
		return NotSent
	case e.Status == http.StatusTemporaryRedirect, e.Status == http.StatusPermanentRedirect:
		return NotProcessed
	case e.Status/100 == 4 && !isTransientStatus(e.Status) && !isTransientCode(e.ServiceCode):
		return NotProcessed
	case e.keptBack && e.Status/100 != 2:
		return NotSent
	}
	return OutcomeUnknown
}

func (e *Error) isDenied() bool {
	var (
		inner *Error
		scope *ScopeError
	)
	switch {
	case errors.As(e.Err, &scope), errors.Is(e.Err, errSecret), e.wantsProxyAuth():
		return true
	case errors.As(e.Err, &inner):
		return inner.Denied
	case e.Op == opToken:
		return e.Outcome == NotProcessed && e.Status/100 == 4
	default:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	}
}

// wantsProxyAuth reports whether a proxy, or a gateway on the way, wants a
// sign-in of its own. Then the service said nothing.
func (e *Error) wantsProxyAuth() bool {
	var (
		inner *Error
		proxy *proxyError
	)
	switch {
	case errors.As(e.Err, &proxy):
		return proxy.status == http.StatusProxyAuthRequired
	case errors.As(e.Err, &inner):
		return inner.wantsProxyAuth()
	}
	return e.Status == http.StatusProxyAuthRequired
}

// isTransientCode knows the object store's codes that mean "again", whatever status they come with.
func isTransientCode(code string) bool {
	switch code {
	case "RequestTimeout", "SlowDown", "ServiceUnavailable", "InternalError", "OperationAborted", "ThrottlingException":
		return true
	}
	return false
}

// redirectError is an answer that sends us where we do not go.
type redirectError struct {
	status int
	date   time.Time
	err    error
}

func (e *redirectError) Error() string { return e.err.Error() }
func (e *redirectError) Unwrap() error { return e.err }

// errorFrom turns any error into an Error. An error of another call (the token's) is kept as the cause, with what it
// knows about waiting.
func (c *call) errorFrom(err error) *Error {
	var done *Error
	if errors.As(err, &done) && done.Op == c.op && done.RequestID == c.id && c.id != "" {
		return done
	}
	e := c.newError()
	var (
		link *url.Error
		turn *redirectError
	)
	for errors.As(err, &link) {
		err = link.Err
	}
	if errors.As(err, &turn) {
		e.Status, e.Date, err = turn.status, turn.date, turn.err
	}
	if done != nil {
		e.RetryAfter, e.Date = done.RetryAfter, done.Date
	}
	e.Err = c.withoutSecrets(explainCertificate(err, c.serverName(), e.Host, c.now()))
	return e.classify()
}

// unreadableError is a 2xx whose content could not be read.
func (c *call) unreadableError(resp *http.Response, err error) *Error {
	e := c.errorFrom(err)
	e.Status, e.Date, e.RequestID = resp.StatusCode, serverDate(resp.Header), c.requestID(resp)
	return e.classify()
}

// readRefusal is an answer other than 2xx, with its body in words.
func (c *call) readRefusal(resp *http.Response) *Error {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorAnswer)) // what could be read is what there is to say
	return c.refusalError(resp, body)
}

// refusalError is an answer that is no success, with its body in words.
func (c *call) refusalError(resp *http.Response, body []byte) *Error {
	return c.refusalSaying(resp, explainAnswer(resp.Header.Get("Content-Type"), body, c.secretTexts()))
}

// refusalSaying is an answer that is no success, with its explanation.
func (c *call) refusalSaying(resp *http.Response, said explanation) *Error {
	e := c.newError()
	e.Status, e.Date, e.RequestID = resp.StatusCode, serverDate(resp.Header), c.requestID(resp)
	e.RetryAfter = retryAfter(resp.StatusCode, resp.Header, c.now())
	e.ServiceCode, e.ServiceClass, e.ErrorID, e.Message, e.Field = said.code, said.class, said.id, said.message, said.field
	return e.classify()
}

// serverName says in words whom the call is for.
func (c *call) serverName() string {
	switch {
	case c.grant:
		return "the object store"
	case c.op == opToken:
		return "the server that gives tokens"
	}
	return "the service"
}

func (c *call) newError() *Error {
	e := &Error{Op: c.op, Method: c.method, RequestID: c.id, Sent: c.sent.Load(), keptBack: c.mayKeepBack && !c.begun}
	if u := c.last; u != nil {
		e.Host, e.Path = sanitize.Message(u.Host, 200), sanitize.Message(u.EscapedPath(), 200)
	} else if c.url != nil {
		e.Host, e.Path = sanitize.Message(c.url.Host, 200), sanitize.Message(c.url.EscapedPath(), 200)
	}
	return e
}

// secretTexts are the texts that must not show: the credentials in use and the parts of the query.
func (c *call) secretTexts() []string {
	out := append(c.proxyAuth.hidden(), c.hidden...)
	for _, u := range []*url.URL{c.url, c.last} {
		if u == nil || u.RawQuery == "" || !c.grant && !isPresigned(u) {
			continue
		}
		out = append(out, u.RawQuery)
		for name, values := range u.Query() {
			if name != "X-Amz-Algorithm" && name != "X-Amz-SignedHeaders" {
				out = append(out, values...)
			}
		}
	}
	return out
}

// withoutSecrets keeps err as it is where its text is harmless, and otherwise hides its text but not what it is.
func (c *call) withoutSecrets(err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	if text := hideSecrets(err.Error(), c.secretTexts(), 500); text != err.Error() {
		return &hiddenTextError{text: text, err: err}
	}
	return err
}

// hiddenTextError is an error whose own text must not be seen. It has no Unwrap: whoever unwraps and prints would see it.
type hiddenTextError struct {
	text string
	err  error
}

func (e *hiddenTextError) Error() string        { return e.text }
func (e *hiddenTextError) Is(target error) bool { return errors.Is(e.err, target) }
func (e *hiddenTextError) As(target any) bool   { return errors.As(e.err, target) }

// codeOf is a stable word for what went wrong: "http-403" for an answer,
// "http-407" also for a proxy that refused so to connect, else one of proxy,
// policy, scope, stand-in, token, credentials, unreadable, dns,
// certificate-expired, certificate-early, certificate-unknown,
// certificate-foreign, tls, no-connection, timeout, cancelled, connection.
// Clients add local, not-the-store, answered-early, error-document,
// package-damaged, file-damaged, request.
func (e *Error) codeOf() string {
	var (
		policy *PolicyError
		scope  *ScopeError
		name   *net.DNSError
		op     *net.OpError
		cert   *certificateError
		inner  *Error
		proxy  *proxyError
	)
	switch {
	case e.wantsProxyAuth():
		return CodeProxyAuth
	case errors.As(e.Err, &proxy):
		return CodeProxy
	case e.Status == 0 && errors.As(e.Err, &inner) && !e.Denied:
		return inner.Code // the call for a token failed, and this one never left
	case errors.As(e.Err, &cert):
		return cert.kind
	case errors.As(e.Err, &policy):
		return "policy"
	case errors.As(e.Err, &scope):
		return "scope"
	case errors.Is(e.Err, errStandIn):
		return CodeStandIn
	case errors.Is(e.Err, errNoBearer):
		return "token"
	case e.Denied && e.Status == 0:
		return "credentials"
	case e.Err != nil && e.Status != 0:
		return "unreadable"
	case e.Status != 0:
		return "http-" + strconv.Itoa(e.Status)
	case isCertificateFault(e.Err):
		return "tls"
	case errors.As(e.Err, &name):
		return "dns"
	case errors.Is(e.Err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(e.Err, context.Canceled):
		return "cancelled"
	case errors.As(e.Err, &op) && op.Op == "dial":
		return "no-connection"
	case errors.As(e.Err, &op) && (op.Op == "remote error" || op.Op == "local error"):
		return "tls" // how crypto/tls dresses its alerts
	}
	return "connection"
}

// IsWebPage reports whether the body of a 2xx is a web page, which no interface of the service answers with.
func (a *Answer) IsWebPage() bool { return isWebPage(a.Body) }

// errWebPage is a 2xx of the API that is HTML.
var errWebPage = errors.New("answered with a web page, as a proxy does that wants a sign-in, and not by the service; look at the proxy and at base_url")

// Unreadable returns the error of a call whose 2xx answer makes no sense. What was asked for may have been done.
func (a *Answer) Unreadable(op string, err error) *Error {
	if isWebPage(a.Body) {
		err = errWebPage
	}
	return &Error{Outcome: OutcomeUnknown, Code: "unreadable", Op: op, Status: a.Status, RequestID: a.RequestID, Sent: true, Err: err,
		Text: op + ": " + err.Error() + " (request id " + a.RequestID + ")"}
}
