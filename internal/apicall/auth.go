package apicall

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// How a call proves who it is.
const (
	Basic  = "basic"
	OAuth2 = "oauth2"
)

// Auth says how calls are authenticated.
type Auth struct {
	Method   string                 // Basic or OAuth2
	Username string                 // the client id with OAuth2
	Secret   func() (string, error) // read anew whenever it is needed, so it can be renewed at run time; its error must not hold it
	Scopes   []string               // OAuth2: what is asked for
	TokenURL string                 // OAuth2; default <base>/v1/tokens
	Encoding string                 // of both in a Basic header, of a call or a token request: "raw" (default) or "rfc6749"
}

// authorizer makes the Authorization header of API calls.
type authorizer struct {
	username string
	secret   func() (string, error)
	escape   bool
	tokens   *tokens // nil with Basic
}

// credential is one Authorization header and what of it must never be seen.
type credential struct {
	header string
	token  string // empty with Basic
	hidden []string
}

func newAuthorizer(a Auth, base *url.URL, w *wire) (*authorizer, error) {
	switch {
	case a.Secret == nil || a.Username == "":
		return nil, errors.New("credentials: a user name and a secret are needed")
	case a.Method != Basic && a.Method != OAuth2:
		return nil, fmt.Errorf("credentials: method %q is neither basic nor oauth2", a.Method)
	case a.Encoding != "rfc6749" && strings.Contains(a.Username, ":"):
		return nil, errors.New("credentials: a user name cannot hold a colon, unless it is encoded by rfc6749")
	case a.Encoding != "" && a.Encoding != "raw" && a.Encoding != "rfc6749":
		return nil, fmt.Errorf("credentials: encoding %q is neither raw nor rfc6749", a.Encoding)
	}
	auth := &authorizer{username: a.Username, secret: a.Secret, escape: a.Encoding == "rfc6749"}
	if a.Method == Basic {
		return auth, nil
	}
	var err error
	auth.tokens, err = newTokens(a, base, w)
	return auth, err
}

// makeHeader returns the credential for a call that is about to leave. With OAuth2 it may wait for a token, no longer than
// ctx allows.
func (a *authorizer) makeHeader(ctx context.Context) (credential, error) {
	if a.tokens != nil {
		t, err := a.tokens.getToken(ctx)
		return credential{header: "Bearer " + t, token: t, hidden: []string{t}}, err
	}
	secret, err := readSecret(a.secret)
	return basicHeader(a.username, secret, a.escape), err
}

// basicHeader joins id and secret as they are given, or escaped. (Many services want them raw where RFC 6749 would
// escape them.)
func basicHeader(id, secret string, escape bool) credential {
	escaped := url.QueryEscape(secret)
	pair := id + ":" + secret
	if escape {
		pair = url.QueryEscape(id) + ":" + escaped
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(pair))
	return credential{header: "Basic " + encoded, hidden: []string{secret, encoded, escaped}}
}

func readSecret(read func() (string, error)) (string, error) {
	s, err := read()
	if err != nil {
		return "", fmt.Errorf("%w: %w", errSecret, err)
	}
	if s == "" {
		return "", fmt.Errorf("%w: it is empty", errSecret)
	}
	return s, nil
}
