package emulator

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// requireVault lets a call through only for a vault that its credentials may use. The answer does not tell whether another
// vault exists.
func requireVault(h handler) handler {
	return func(s *Server, c *call) reply {
		c.vault = c.PathValue("vault")
		if !slices.ContainsFunc(s.cfg.Vaults, func(v Vault) bool { return v.ID == c.vault && v.Account.Name == c.account }) {
			return c.refusal(http.StatusForbidden, "AccessDenied", "no access to this vault")
		}
		return h(s, c)
	}
}

// authorize lets a call through only with valid credentials of an account that may use the service.
func (s *Server) authorize(c *call) (reply, bool) {
	given := c.Header.Values("Authorization")
	if len(given) > 1 {
		s.recordViolation(c, "two Authorization headers in one call")
		return c.refusal(http.StatusBadRequest, "InvalidRequest", "more than one authorization given"), false
	}
	if len(given) == 0 {
		if c.of.isBasicOnly {
			s.recordViolation(c, "%s without an Authorization header", c.op)
		}
		return c.unauthorized("Unauthorized"), false
	}
	if token, ok := strings.CutPrefix(given[0], "Bearer "); ok && s.cfg.ClientID != "" && !c.of.isBasicOnly {
		return s.checkToken(c, token)
	}
	user, secret, ok := c.basicCredentials()
	if isOffered := s.cfg.Username+s.cfg.Secret != "" || c.of.isBasicOnly; !ok || !isOffered || c.of.isBasicOnly && user == "" {
		return c.unauthorized("authorization of this type is not accepted"), false
	}
	if c.account, ok = s.accountOf(user, secret, s.cfg.Username, s.cfg.Secret); !ok {
		return c.refusal(c.reading.BadCredentials, "invalid_credentials", "invalid credentials"), false
	}
	return c.checkAccount()
}

// checkAccount lets an account through that may use the service of the operation.
func (c *call) checkAccount() (reply, bool) {
	if !c.of.admits(c.account) {
		return c.refusal(http.StatusForbidden, "AccessDenied", "User is not authorized to access this resource"), false
	}
	return reply{}, true
}

// accountOf returns the account that the credentials belong to: the main one, which has no name, or one that an operation
// admits.
func (s *Server) accountOf(user, secret, mainUser, mainSecret string) (account string, ok bool) {
	if user == mainUser && secret == mainSecret {
		return "", true
	}
	return user, user != "" && slices.ContainsFunc(s.operations, func(o operation) bool {
		return o.of != nil && slices.Contains(o.of.accounts, Account{user, secret})
	})
}

func (c *call) unauthorized(message string) reply {
	rep := c.refusal(http.StatusUnauthorized, "unauthorized", message)
	rep.header.Set("WWW-Authenticate", `Basic realm="archive"`)
	return rep
}

// basicCredentials reads the Basic header in the encoding of the readings: as it stands, or with both parts form-encoded.
func (c *call) basicCredentials() (user, secret string, ok bool) {
	user, secret, ok = c.BasicAuth()
	if !ok || c.reading.BasicEncoding == "raw" {
		return user, secret, ok
	}
	user, errU := url.QueryUnescape(user)
	secret, errS := url.QueryUnescape(secret)
	return user, secret, errU == nil && errS == nil
}

// tokenGrant is the content of an access token. Tokens are signed and not stored, so they survive a restart.
type tokenGrant struct {
	Issued  time.Time `json:"iat"`
	Expires time.Time `json:"exp"`
	Scope   string    `json:"scope"`
	Account string    `json:"sub"`
	Revoked int       `json:"rev"` // how often all tokens had been revoked when this one was given
}

// revokeTokens makes every token that was given until now invalid.
func (s *Server) revokeTokens(c *call) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLines(journalLine{Time: c.now, Kind: kindRevoked})
}

func (s *Server) revocations() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.revoked
}

func (s *Server) checkToken(c *call, token string) (reply, bool) {
	g, ok := s.keys.openToken(token)
	switch {
	case !ok || !c.now.Before(g.Expires) || g.Revoked < s.revocations():
		rep := c.refusal(c.reading.BadCredentials, "invalid_token", "invalid credentials: the token is not valid, or not any more")
		if rep.status == http.StatusUnauthorized {
			rep.header.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		}
		return rep, false
	case c.of.requireScope != "" && !slices.Contains(strings.Fields(g.Scope), c.of.requireScope):
		return c.refusal(http.StatusForbidden, "insufficient_scope", "User is not authorized to access this resource"), false
	}
	c.account = g.Account
	return c.checkAccount()
}

func (s *Server) grantToken(c *call) reply {
	if t, _, _ := mime.ParseMediaType(c.Header.Get("Content-Type")); t != "application/x-www-form-urlencoded" {
		return tokenError(c, 400, "invalid_request", "Content-Type must be application/x-www-form-urlencoded")
	}
	body, tooLong, err := readBody(c.Request, 64<<10)
	form, errForm := url.ParseQuery(string(body))
	if err != nil || tooLong || errForm != nil {
		return tokenError(c, 400, "invalid_request", "the form is not readable")
	}
	if form.Has("client_secret") || c.URL.Query().Has("client_secret") {
		s.recordViolation(c, "client secret outside the Authorization header")
		return tokenError(c, 400, "invalid_request", "client credentials belong in the Authorization header")
	}
	id, secret, ok := c.basicCredentials()
	if ok && s.cfg.ClientID != "" {
		c.account, ok = s.accountOf(id, secret, s.cfg.ClientID, s.cfg.ClientSecret)
	}
	if !ok || s.cfg.ClientID == "" {
		rep := tokenError(c, 401, "invalid_client", "")
		rep.header.Set("WWW-Authenticate", `Basic realm="token"`)
		return rep
	}
	if form.Get("grant_type") != "client_credentials" {
		return tokenError(c, 400, "invalid_request", "grant_type must be client_credentials")
	}
	return s.tokenReply(c, s.grantedScope(c.account, strings.Fields(form.Get("scope"))))
}

// grantedScope returns the scopes that the account has of those it asked for. A missing scope is no error: the answer names
// those that were granted.
func (s *Server) grantedScope(account string, asked []string) string {
	var has []string
	for _, a := range asked {
		if s.mayHave(account, a) {
			has = append(has, a)
		}
	}
	return strings.Join(has, " ")
}

// mayHave reports whether an account has a scope: a service that admits the account names the scope, or names none at all and
// no other service names this one.
func (s *Server) mayHave(account, scope string) bool {
	isNamed, isAny := false, false
	for _, o := range s.operations {
		if o.of == nil || o.of.isBasicOnly {
			continue
		}
		names, admits := slices.Contains(o.of.scopes, scope), o.of.admits(account)
		if names && admits {
			return true
		}
		isNamed = isNamed || names
		isAny = isAny || admits && len(o.of.scopes) == 0
	}
	return isAny && !isNamed
}

func (s *Server) tokenReply(c *call, scope string) reply {
	life := int(s.cfg.TokenLife.Seconds())
	answer := map[string]any{
		"access_token": s.keys.sealToken(tokenGrant{c.now, c.now.Add(s.cfg.TokenLife), scope, c.account, s.revocations()}),
		"token_type":   cmp.Or(c.reading.TokenType, "Bearer"), "expires_in": life, "scope": scope,
	}
	if c.reading.TokenType == "none" {
		delete(answer, "token_type")
	}
	if c.reading.NumbersAsStrings {
		answer["expires_in"] = strconv.Itoa(life)
	}
	rep := jsonReply(answer)
	rep.header.Set("Cache-Control", "no-store")
	return rep
}

func tokenError(c *call, status int, code, description string) reply {
	if c.reading.TokenErrorsAs200 {
		status = 200
	}
	body := map[string]string{"error": code}
	if description != "" {
		body["error_description"] = description
	}
	return reply{status: status, header: jsonHeader(), body: encodeJSON(body)}
}

func (k keys) sealToken(g tokenGrant) string {
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"HS256","typ":"JWT"}`))
	payload := head + "." + base64.RawURLEncoding.EncodeToString(encodeJSON(g))
	return payload + "." + base64.RawURLEncoding.EncodeToString(k.tokenMAC(payload))
}

func (k keys) openToken(token string) (g tokenGrant, ok bool) {
	i := strings.LastIndexByte(token, '.')
	if i < 0 {
		return g, false
	}
	mac, err := base64.RawURLEncoding.DecodeString(token[i+1:])
	if err != nil || !hmac.Equal(mac, k.tokenMAC(token[:i])) {
		return g, false
	}
	_, claims, _ := strings.Cut(token[:i], ".")
	raw, err := base64.RawURLEncoding.DecodeString(claims)
	return g, err == nil && json.Unmarshal(raw, &g) == nil
}

func (k keys) tokenMAC(payload string) []byte {
	h := hmac.New(sha256.New, []byte(k.TokenKey))
	h.Write([]byte(payload))
	return h.Sum(nil)
}
