package emulator

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// grantParameter holds the signature of an address that does not tell how long it is good.
const grantParameter = "upload-grant"

// addressGrant is what such a signature says.
type addressGrant struct {
	Object      string        `json:"object"`
	Issued      time.Time     `json:"issued"`
	Life        time.Duration `json:"life"` // nanoseconds
	ContentType string        `json:"contentType,omitempty"`
}

// sealAddress returns the address base with a grant that only the server can read.
func (k keys) sealAddress(base string, g addressGrant) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", err
	}
	q := u.Query()
	g.Object = objectName(u)
	payload := base64.RawURLEncoding.EncodeToString(encodeJSON(g))
	q.Set(grantParameter, payload+"."+base64.RawURLEncoding.EncodeToString(k.grantMAC(payload)))
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// grantMAC differs from the one of an access token, so neither can stand for the other.
func (k keys) grantMAC(payload string) []byte { return k.tokenMAC(grantParameter + " " + payload) }

// verifySealed checks a call to an address that sealAddress made. signedAt is when it was made.
func (k keys) verifySealed(r *http.Request, now time.Time) (signedAt time.Time, d *denial) {
	payload, sum, _ := strings.Cut(r.URL.Query().Get(grantParameter), ".")
	mac, err := base64.RawURLEncoding.DecodeString(sum)
	wrong := &denial{403, "SignatureDoesNotMatch", "The request signature we calculated does not match the signature you provided."}
	if err != nil || !hmac.Equal(mac, k.grantMAC(payload)) {
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
