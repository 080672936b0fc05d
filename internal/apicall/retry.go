package apicall

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// GETs and token requests are repeated after a random wait below a limit that
// doubles (full jitter). If a service asks for a longer pause than longestWait,
// the call fails, and its caller keeps the pause.
const (
	repeats     = 3
	firstWait   = 500 * time.Millisecond
	longestWait = 15 * time.Second
)

// repeater runs one call with go-retryablehttp. The library sees neither the URL nor secrets: each of its attempts is one
// followRedirects of the call.
type repeater struct {
	call  *call
	ctx   context.Context
	take  readAnswerFunc
	tries int
	wait  time.Duration // before the next attempt

	taken bool // the last attempt's answer was consumed, with this outcome:
	ans   *Answer
	err   error
}

// callWithRetries makes the call until it is answered, refused or out of time.
func (c *call) callWithRetries(ctx context.Context, take readAnswerFunc) (*Answer, error) {
	r := &repeater{call: c, ctx: ctx, take: take}
	client := &retryablehttp.Client{
		HTTPClient:   &http.Client{Transport: r},
		RetryMax:     repeats,
		CheckRetry:   r.shouldRetry,
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return r.wait },
		ErrorHandler: func(resp *http.Response, err error, _ int) (*http.Response, error) { return resp, err },
	}
	req, err := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, "http://call.invalid", nil)
	if err != nil {
		return nil, c.errorFrom(err)
	}
	req.SetResponseHandler(r.consumeAnswer)
	resp, err := client.Do(req)
	switch {
	case r.taken:
		return r.ans, r.err
	case err != nil:
		return nil, c.errorFrom(contextCause(ctx, err))
	default: // the repeats are used up, and the last answer is still unread
		return c.takeAnswer(ctx, resp, take)
	}
}

// RoundTrip is one attempt with all its hops.
func (r *repeater) RoundTrip(*http.Request) (*http.Response, error) {
	r.taken, r.ans, r.err = false, nil, nil
	return r.call.followRedirects(r.ctx)
}

// consumeAnswer reads the answer of the last attempt. Only the error of a 2xx that broke off goes back to shouldRetry, which may
// repeat the call.
func (r *repeater) consumeAnswer(resp *http.Response) error {
	r.ans, r.err = r.call.takeAnswer(r.ctx, resp, r.take)
	r.taken = true
	if resp.StatusCode/100 == 2 {
		return r.err
	}
	return nil
}

func (r *repeater) shouldRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	var inner *Error
	if !isTransient(ctx, resp, err) || r.call.op != opToken && errors.As(err, &inner) && inner.Op == opToken {
		return false, nil // (a token request had repeats of its own)
	}
	r.wait = rand.N(firstWait << r.tries)
	r.tries++
	if resp != nil {
		r.wait = max(r.wait, retryAfter(resp.StatusCode, resp.Header, r.call.now()))
	}
	deadline, limited := ctx.Deadline()
	return r.wait <= longestWait && (!limited || r.wait < time.Until(deadline)), nil
}

// isTransient reports whether a fault may go away by itself within seconds.
func isTransient(ctx context.Context, resp *http.Response, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if err == nil {
		return isTransientStatus(resp.StatusCode)
	}
	var (
		policy *PolicyError
		scope  *ScopeError
		turn   *redirectError
		proxy  *proxyError
	)
	switch {
	case errors.As(err, &proxy):
		return isTransientStatus(proxy.status)
	case errors.As(err, &policy), errors.As(err, &scope), errors.As(err, &turn):
		return false
	case errors.Is(err, ErrTooLarge), errors.Is(err, errSecret), errors.Is(err, errStandIn), isCertificateFault(err):
		return false
	}
	return true
}

func isTransientStatus(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return true
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
		return false
	default:
		return status >= 500
	}
}

// isBeforeConnection reports whether an error came before any byte of the request left. It is for transports that do not tell when
// a connection is handed over.
func isBeforeConnection(err error) bool {
	var (
		op     *net.OpError
		name   *net.DNSError
		policy *PolicyError
	)
	return errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect") ||
		errors.As(err, &name) || errors.As(err, &policy) || isCertificateFault(err)
}

func isCertificateFault(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
	)
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &host) ||
		errors.As(err, &invalid) || errors.As(err, &record)
}
