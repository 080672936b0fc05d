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

// How GETs and token requests are repeated: full jitter on a doubling bound. A service that asks for a longer pause
// than longestWait gets it from the ledger, not from a goroutine that sleeps here.
const (
	repeats     = 3
	firstWait   = 500 * time.Millisecond
	longestWait = 15 * time.Second
)

// repeat makes the call until it is answered, refused or out of time.
func (c *call) repeat(ctx context.Context, take taker) (*Answer, error) {
	var (
		ans   *Answer
		err   error
		taken bool
		wait  time.Duration
	)
	consume := func(resp *http.Response) error {
		ans, err = c.take(ctx, resp, take)
		taken = true
		var ce *CallError
		if errors.As(err, &ce) && ce.Status/100 == 2 {
			return err // the answer broke off or could not be read: that may be worth a repeat
		}
		return nil
	}
	client := &retryablehttp.Client{
		HTTPClient: &http.Client{
			Transport:     roundTrip(func(r *http.Request) (*http.Response, error) { return c.exchangeFor(r.Context()) }),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		RetryMax: repeats,
		CheckRetry: func(ctx context.Context, resp *http.Response, failed error) (bool, error) {
			if !worthRepeating(ctx, resp, failed) {
				return false, nil
			}
			asked := time.Duration(0)
			if resp != nil {
				asked = retryAfter(resp.Header, c.now())
			}
			wait = max(asked, rand.N(firstWait<<c.tries))
			c.tries++
			deadline, limited := ctx.Deadline()
			return wait <= longestWait && (!limited || wait < time.Until(deadline)), nil
		},
		Backoff:      func(_, _ time.Duration, _ int, _ *http.Response) time.Duration { return wait },
		ErrorHandler: func(resp *http.Response, err error, _ int) (*http.Response, error) { return resp, err },
	}
	req, reqErr := retryablehttp.NewRequestWithContext(ctx, http.MethodGet, "http://call.invalid", nil)
	if reqErr != nil {
		return nil, c.fail(reqErr, nil)
	}
	req.SetResponseHandler(consume)
	resp, doErr := client.Do(req)
	switch {
	case taken && (doErr == nil || err != nil):
		return ans, err
	case doErr != nil:
		return nil, c.fail(cause(ctx, doErr), nil)
	default: // repeats are used up, and the last answer is still unread
		return c.take(ctx, resp, take)
	}
}
