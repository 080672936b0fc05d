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
	errSecret  = errors.New("the secret cannot be read") // not "secret: …", which would be hidden as one
)

// Outcome is what is certain about the effect of a call that failed.
type Outcome uint8

const (
	// Unknown: the request may have left, and nothing trustworthy came back. The other side may have done it.
	Unknown Outcome = iota
	// NotSent: no byte of the request left this machine.
	NotSent
	// Refused: the other side said no, and did nothing.
	Refused
)

func (o Outcome) String() string {
	return [...]string{"unknown", "not sent", "refused"}[min(o, Refused)]
}

// CallError is how every failed call comes back. No field holds a query, a credential or a token; texts of the other
// side are stripped of control characters and cut.
type CallError struct {
	Op         string // what was tried, in words
	Method     string
	Host, Path string // of the last hop; Path without the query
	Status     int    // of the last answer; 0: none
	RequestID  string
	Sent       bool          // bytes of the request may have left
	RetryAfter time.Duration // what the other side asked for: at most an hour with 429, 15 minutes with 503; 0: nothing
	Date       time.Time     // the other side's clock; zero: not given
	Code       string        // the other side's code for the fault: "SlowDown", "invalid_client"
	Message    string        // its words, at most 500 characters
	Err        error         // the cause on this side, if any: *PolicyError, *ScopeError, a network error
}

// Error names the step, the target, the answer in words and, if the request may have left, its id.
func (e *CallError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s %s%s", e.Op, e.Method, e.Host, e.Path)
	if e.Status != 0 {
		fmt.Fprintf(&b, ": %d", e.Status)
		if text := http.StatusText(e.Status); text != "" {
			b.WriteString(" " + text)
		}
	}
	if e.Code != "" && !strings.Contains(e.Message, e.Code) {
		b.WriteString(": " + e.Code)
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	b.WriteString(e.hint())
	if e.RequestID != "" && e.Sent { // the other side knows no other
		b.WriteString(" (request id " + e.RequestID + ")")
	}
	return b.String()
}

// hint says what to look at where the fault's own words do not.
func (e *CallError) hint() string {
	var (
		inner  *CallError
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

func (e *CallError) Unwrap() error { return e.Err }

// Outcome tells what is certain. Only a 4xx that speaks of this request is a refusal: 408, 425, 429, the object store's
// RequestTimeout and every 5xx leave open what was done, and so does a redirect that asks for another method.
func (e *CallError) Outcome() Outcome {
	switch {
	case !e.Sent:
		return NotSent
	case e.Status == http.StatusTemporaryRedirect, e.Status == http.StatusPermanentRedirect:
		return Refused
	case e.Status/100 != 4, passingStatus(e.Status), passingCode(e.Code):
		return Unknown
	}
	return Refused
}

// Credentials reports whether the call failed because credentials or rights are missing: 401, 403, or a token that was
// refused or lacks a scope.
func (e *CallError) Credentials() bool {
	var (
		inner *CallError
		scope *ScopeError
	)
	switch {
	case errors.As(e.Err, &scope), errors.Is(e.Err, errSecret):
		return true
	case errors.As(e.Err, &inner):
		return inner.Credentials()
	case e.Op == opToken:
		return e.Outcome() == Refused && e.Status/100 == 4
	default:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	}
}

// passingCode knows the object store's codes that mean "again", whatever status they come with.
func passingCode(code string) bool {
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

// fail turns any error into a CallError. An error of another call (the token's) is kept as the cause, with what it
// knows about waiting.
func (c *call) fail(err error) *CallError {
	var done *CallError
	if errors.As(err, &done) && done.Op == c.op && done.RequestID == c.id && c.id != "" {
		return done
	}
	e := c.blank()
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
	e.Err = c.safe(explainCertificate(err, c.server(), e.Host, c.now()))
	return e
}

// broken is a 2xx whose content could not be read.
func (c *call) broken(resp *http.Response, err error) *CallError {
	e := c.fail(err)
	e.Status, e.Date, e.RequestID = resp.StatusCode, serverDate(resp.Header), c.requestID(resp)
	return e
}

// refusal is an answer other than 2xx, with its body in words.
func (c *call) refusal(resp *http.Response) *CallError {
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorAnswer)) // what could be read is what there is to say
	return c.refusalOf(resp, body)
}

// refusalOf is an answer that is no success, with its body in words.
func (c *call) refusalOf(resp *http.Response, body []byte) *CallError {
	e := c.blank()
	e.Status, e.Date, e.RequestID = resp.StatusCode, serverDate(resp.Header), c.requestID(resp)
	e.RetryAfter = retryAfter(resp.StatusCode, resp.Header, c.now())
	e.Code, e.Message = explain(resp.Header.Get("Content-Type"), body, c.secrets())
	return e
}

// server says in words whom the call is for.
func (c *call) server() string {
	switch {
	case c.grant:
		return "the object store"
	case c.op == opToken:
		return "the server that gives tokens"
	}
	return "the service"
}

func (c *call) blank() *CallError {
	e := &CallError{Op: c.op, Method: c.method, RequestID: c.id, Sent: c.sent.Load()}
	if u := c.last; u != nil {
		e.Host, e.Path = sanitize.Message(u.Host, 200), sanitize.Message(u.EscapedPath(), 200)
	} else if c.url != nil {
		e.Host, e.Path = sanitize.Message(c.url.Host, 200), sanitize.Message(c.url.EscapedPath(), 200)
	}
	return e
}

// secrets are the texts that must not show: the credentials in use and the parts of the query.
func (c *call) secrets() []string {
	out := append([]string(nil), c.hidden...)
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

// safe keeps err as it is where its text is harmless, and otherwise hides its text but not what it is.
func (c *call) safe(err error) error {
	var own *CallError
	if err == nil || errors.As(err, &own) {
		return err
	}
	if text := scrub(err.Error(), c.secrets(), 500); text != err.Error() {
		return &hushed{text: text, err: err}
	}
	return err
}

// hushed is an error whose own text must not be seen. It has no Unwrap: whoever unwraps and prints would see it.
type hushed struct {
	text string
	err  error
}

func (e *hushed) Error() string        { return e.text }
func (e *hushed) Is(target error) bool { return errors.Is(e.err, target) }
func (e *hushed) As(target any) bool   { return errors.As(e.err, target) }

// Kind is a stable word for what went wrong, for machines: "http-403" for an answer, else one of policy, scope,
// credentials, unreadable, dns, certificate-expired, certificate-early, certificate-unknown, certificate-foreign, tls, no-connection, timeout, cancelled, connection.
func (e *CallError) Kind() string {
	var (
		policy *PolicyError
		scope  *ScopeError
		name   *net.DNSError
		op     *net.OpError
		cert   *certificateError
		inner  *CallError
	)
	switch {
	case e.Status == 0 && errors.As(e.Err, &inner) && !e.Credentials():
		return inner.Kind() // the call for a token failed, and this one never left
	case errors.As(e.Err, &cert):
		return cert.kind
	case errors.As(e.Err, &policy):
		return "policy"
	case errors.As(e.Err, &scope):
		return "scope"
	case e.Credentials() && e.Status == 0:
		return "credentials"
	case e.Err != nil && e.Status != 0:
		return "unreadable"
	case e.Status != 0:
		return "http-" + strconv.Itoa(e.Status)
	case certificateFault(e.Err):
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
