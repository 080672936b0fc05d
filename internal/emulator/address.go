package emulator

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// The parameters of an address that does not tell how long it is good. Delivery networks sign addresses in this form: the policy
// is for the one who made it, and the signature covers it.
const (
	policyParameter    = "Policy"
	signatureParameter = "Signature"
)

// addressGrant is what a policy says.
type addressGrant struct {
	Object      string        `json:"object"`
	Issued      time.Time     `json:"issued"`
	Life        time.Duration `json:"life"` // nanoseconds
	ContentType string        `json:"contentType,omitempty"`
}

// sealAddress returns the address base with a policy and its signature.
func (k keys) sealAddress(base string, g addressGrant) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	q := u.Query()
	g.Object = objectName(u)
	payload := base64.RawURLEncoding.EncodeToString(encodeJSON(g))
	q.Set(policyParameter, payload)
	q.Set(signatureParameter, base64.RawURLEncoding.EncodeToString(k.policyMAC(payload)))
	q.Set("Key-Pair-Id", k.AccessKey)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// policyMAC differs from the one of an access token, so neither can stand for the other.
func (k keys) policyMAC(payload string) []byte { return k.tokenMAC(policyParameter + " " + payload) }

// verifySealed checks a call to an address that sealAddress made. signedAt is when it was made.
func (k keys) verifySealed(r *http.Request, now time.Time) (signedAt time.Time, d *denial) {
	payload := r.URL.Query().Get(policyParameter)
	mac, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get(signatureParameter))
	wrong := &denial{403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."}
	if err != nil || !hmac.Equal(mac, k.policyMAC(payload)) {
		return signedAt, wrong
	}
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	var g addressGrant
	if err != nil || json.Unmarshal(raw, &g) != nil || g.Object != objectName(r.URL) {
		return signedAt, wrong
	}
	if g.ContentType != "" && r.Header.Get("Content-Type") != g.ContentType {
		return g.Issued, wrong
	}
	if now.After(g.Issued.Add(g.Life)) {
		return g.Issued, expired
	}
	return g.Issued, nil
}
