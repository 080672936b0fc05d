package apicall

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/singleflight"

	"vaultd/internal/sanitize"
)

const (
	opToken     = "get a token"
	tokenAnswer = 256 << 10
	// longestToken bounds the use of a token whose life the service does not tell.
	longestToken = 30 * time.Minute
	// aheadLimit bounds a renewal while the old token is still good.
	aheadLimit = 10 * time.Second
	// replaceLimit bounds the wait for another token in place of one that was refused.
	replaceLimit = time.Minute
	// A token that replaced a refused one is not replaced for a refusal itself
	// before it is so old: replaceEvery where it was refused as well, so that a
	// missing right costs few token requests; replaceSoonest where it was
	// accepted. If no other token was to be had, one is asked for again after
	// replaceAgain: a renewed secret shall count soon.
	replaceEvery   = 15 * time.Minute
	replaceSoonest = time.Minute
	replaceAgain   = 3 * time.Second
)

// errNoBearer is a token answer without a token that could be sent.
var errNoBearer = errors.New("the token answer cannot be used")

// ScopeError names scopes that were asked for and not granted: misspelled, or not given to this client.
type ScopeError struct {
	Missing []string
}

func (e *ScopeError) Error() string {
	return "scope not granted (misspelled, or not given to this client): " + sanitize.Message(strings.Join(e.Missing, ", "), 300)
}

// tokens gets, keeps and renews the access token. At most one request for a
// token is on its way: all callers that need one share its result, also a
// failure. A library's token source cannot forget a token that was refused, and
// lets callers wait for its lock without regard to their context.
type tokens struct {
	wire     *wire
	endpoint *url.URL
	id       string
	secret   func() (string, error)
	scopes   []string
	escape   bool

	flight singleflight.Group

	mu      sync.Mutex
	current token // guarded by mu
}

type token struct {
	value  string
	renew  time.Time // from here on it is renewed ahead
	expiry time.Time // from here on it is not used
	keep   time.Time // until here a refusal does not replace it
}

func newTokens(a Auth, base *url.URL, w *wire) (*tokens, error) {
	t := &tokens{wire: w, id: a.Username, secret: a.Secret, scopes: a.Scopes, escape: a.Encoding == "rfc6749"}
	var err error
	if a.TokenURL == "" {
		t.endpoint, err = joinURL(base, "v1", "tokens")
		return t, err
	}
	u, err := parseLink(a.TokenURL)
	if err != nil {
		return nil, fmt.Errorf("token_url: %w", err)
	}
	t.endpoint = u
	w.policy.tokens = append(w.policy.tokens, hostAndPort(u))
	return t, w.policy.checkScheme(u)
}

// getToken returns a token that is valid now. After most of its life one caller
// renews it; the others still use the old one, also if that fails: another
// caller tries it when a quarter of the rest is over.
func (t *tokens) getToken(ctx context.Context) (string, error) {
	t.mu.Lock()
	have, now := t.current, t.wire.now()
	left, isRenewed := have.expiry.Sub(now), now.Before(have.renew)
	if !isRenewed {
		t.current.renew = now.Add(left / 4)
	}
	t.mu.Unlock()
	if left > 0 {
		if isRenewed {
			return have.value, nil
		}
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, min(aheadLimit, left*3/4))
		defer cancel()
	}
	fresh, err := t.replaceToken(ctx, have.value, 0)
	if err != nil && left > 0 {
		return have.value, nil
	}
	return fresh, err
}

// errGaveUp says that the caller that requested a token for all ran out of
// time: that says nothing about the service.
var errGaveUp = errors.New("its caller gave up")

// replaceToken gets a token in place of the one that its caller had, unless
// another caller did. No refusal replaces the new one before keep is over.
func (t *tokens) replaceToken(ctx context.Context, had string, keep time.Duration) (string, error) {
	for {
		result := t.flight.DoChan(opToken, func() (any, error) {
			if have := t.currentToken(); have.value != had {
				return have.value, nil
			}
			// A crash here costs one unused token.
			fresh, err := t.requestToken(ctx)
			t.mu.Lock()
			defer t.mu.Unlock()
			switch {
			case err == nil:
				fresh.keep = t.wire.now().Add(keep)
				t.current = fresh
			case ctx.Err() != nil:
				err = errGaveUp
			default:
				t.current.keep = t.wire.now().Add(replaceAgain)
			}
			return fresh.value, err
		})
		select {
		case r := <-result:
			if errors.Is(r.Err, errGaveUp) && ctx.Err() == nil {
				continue
			}
			return r.Val.(string), r.Err
		case <-ctx.Done():
			return "", fmt.Errorf("wait for a token: %w", context.Cause(ctx))
		}
	}
}

func (t *tokens) currentToken() token {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.current
}

// replaceRefused gets a token in place of one that the service refused with 401 or 403, and reports whether there is another one
// now. A refusal does not tell whether the token is dead or a right is missing. So a token is replaced once, however many calls
// were refused with it, and the new one is kept for a while. The refused token stays in use where no other one could be got:
// other calls may still be allowed with it.
func (t *tokens) replaceRefused(ctx context.Context, refused string) bool {
	switch have := t.currentToken(); {
	case have.value != refused:
		return true
	case t.wire.now().Before(have.keep):
		return false
	}
	limited, cancel := context.WithTimeout(ctx, replaceLimit)
	defer cancel()
	_, err := t.replaceToken(limited, refused, replaceEvery)
	return err == nil
}

// confirmReplacement notes that the service accepted the new token in a call that it had refused with the old one. So the old one
// was dead, and no right is missing.
func (t *tokens) confirmReplacement(value string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current.value == value {
		t.current.keep = t.wire.now().Add(replaceSoonest)
	}
}

// requestToken requests a token. The token's life counts from before the request left.
func (t *tokens) requestToken(ctx context.Context) (token, error) {
	secret, err := readSecret(t.secret)
	if err != nil {
		return token{}, err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	if len(t.scopes) > 0 {
		form.Set("scope", strings.Join(t.scopes, " "))
	}
	c := &call{wire: t.wire, rule: t.checkTarget, op: opToken, method: http.MethodPost, id: uuid.NewString(), url: t.endpoint}
	c.credential = func(context.Context) (credential, error) { return basicHeader(t.id, secret, t.escape), nil }
	c.header = http.Header{"Content-Type": {"application/x-www-form-urlencoded"}, "Accept": {"application/json"}}
	c.header.Set(t.wire.idHeader, c.id)
	encoded := []byte(form.Encode())
	c.body, c.size = inMemory(encoded), int64(len(encoded))

	left := t.wire.now()
	var answered *http.Response
	ans, err := c.callWithRetries(ctx, func(c *call, resp *http.Response) (*Answer, error) {
		answered = resp
		body, err := readAll(resp.Body, tokenAnswer)
		return &Answer{Body: body}, err
	})
	if err != nil {
		return token{}, err
	}
	fresh, err := t.parseAnswer(ans.Body, left)
	if said, isError := errorInside(ans.Body); isError {
		return token{}, c.tokenRefusal(answered, said.withoutSecrets(append(c.secretTexts(), fresh.value)))
	}
	if err != nil {
		return token{}, c.unreadableError(answered, err)
	}
	return fresh, nil
}

// errorInside returns what a token answer says of an error: in the field
// "error", or anywhere where it grants no token.
func errorInside(body []byte) (explanation, bool) {
	f, err := ReadFields(body, "access_token", "error")
	if err != nil {
		return explanation{}, false
	}
	said := jsonWords(trimBOM(body))
	isNamed := strings.HasPrefix(string(f["error"]), `"`) && f.Text("error") != ""
	return said, said.code+said.message != "" && (isNamed || f.Text("access_token") == "")
}

// tokenRefusal is a 2xx of the token endpoint whose content is an error: some gateways answer so.
func (c *call) tokenRefusal(resp *http.Response, said explanation) *Error {
	e := c.refusalSaying(resp, said)
	e.Outcome = NotProcessed
	switch code := said.code; {
	case code == "temporarily_unavailable", code == "slow_down", code == "429", code == "503":
		e.Code = "http-503"
	case code == "server_error", len(code) == 3 && code[0] == '5':
		e.Code = "http-500"
	default:
		e.Denied, e.Code = true, "credentials"
	}
	return e
}

// checkTarget is the rule for token requests: the secret goes to the token endpoint's host and nowhere else.
func (t *tokens) checkTarget(u *url.URL) (bool, error) {
	if !sameHost(u, t.endpoint) {
		return false, &PolicyError{Host: u.Host, Reason: "a token request does not leave its host"}
	}
	return true, t.wire.policy.checkScheme(u)
}

// parseAnswer checks a token answer. Numbers may come as strings, and the scopes as a list.
func (t *tokens) parseAnswer(body []byte, left time.Time) (token, error) {
	var a struct {
		Value, Type string
	}
	f, err := ReadFields(body, "access_token", "token_type", "expires_in", "scope")
	if err == nil {
		err = errors.Join(readText(f["access_token"], &a.Value), readText(f["token_type"], &a.Type))
	}
	switch {
	case err != nil:
		words := explainAnswer("", body, nil).message
		if !strings.HasPrefix(words, pageWords) {
			words = "not the JSON that was expected" // which may hold a token
		}
		return token{}, errors.New("the token answer is " + words)
	case a.Value == "" || strings.ContainsFunc(a.Value, func(r rune) bool { return r <= ' ' || r > '~' }):
		return token{}, fmt.Errorf("%w: it holds no usable access_token", errNoBearer)
	case !isBearer(a.Type):
		return token{}, fmt.Errorf("%w: the token is of type %q, not Bearer", errNoBearer, sanitize.Message(a.Type, 40))
	}
	if granted, told := scopeList(f["scope"]); told {
		missing := slices.DeleteFunc(slices.Clone(t.scopes), func(s string) bool { return slices.Contains(granted, s) })
		if len(missing) > 0 {
			return token{}, &ScopeError{Missing: missing}
		}
	}
	life := longestToken
	seconds, err := strconv.ParseFloat(strings.Trim(string(f["expires_in"]), `"`), 64)
	if err == nil && seconds > 0 {
		life = time.Duration(min(seconds, (24*time.Hour).Seconds()) * float64(time.Second))
	}
	ahead := life * 8 / 10
	ahead -= rand.N(life/20 + 1) // so that several daemons do not renew in step
	return token{value: a.Value, renew: left.Add(ahead), expiry: left.Add(life - min(life/10, 10*time.Second))}, nil
}

// isBearer reports whether a token of this type is sent as a Bearer token:
// gateways write "BearerToken" and "urn:…:bearer" too. Tokens of other types
// need a proof with each call that vaultd cannot give.
func isBearer(kind string) bool {
	kind = strings.ToLower(strings.TrimSpace(kind))
	return kind == "" || strings.HasPrefix(kind, "bearer") || strings.HasSuffix(kind, "bearer")
}

// readText reads a field that must be a string where it stands at all.
func readText(raw json.RawMessage, into *string) error {
	if raw == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}

// scopeList reads "a b" or ["a","b"]; told is false where the answer does not speak of scopes: then all were granted.
func scopeList(raw json.RawMessage) (granted []string, told bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil && string(raw) != "null" {
		return strings.Fields(text), true
	}
	err := json.Unmarshal(raw, &granted)
	return granted, err == nil && granted != nil
}
