package emulator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/smithy-go/encoding/httpbinding"
	"github.com/rclone/gofakes3/signature"
)

// keys holds the secret of the store's temporary credentials and the key of the access tokens. They are in a file of their
// own, so that the journal holds no secret.
type keys struct {
	AccessKey    string `json:"accessKeyId"`
	SecretKey    string `json:"secretAccessKey"`
	SessionToken string `json:"sessionToken"`
	TokenKey     string `json:"tokenKey"`
}

func openKeys(path string) (k keys, err error) {
	b, err := os.ReadFile(path)
	if err == nil {
		return k, json.Unmarshal(b, &k)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	k = keys{"ASIA" + rand.Text()[:16], rand.Text() + rand.Text(), rand.Text() + rand.Text(), rand.Text()}
	// The file is written beside and then renamed: a server that is killed here finds no keys at the next start, never half of them.
	if err := os.WriteFile(path+".tmp", encodeJSON(k), 0o600); err != nil {
		return k, err
	}
	return k, os.Rename(path+".tmp", path)
}

const (
	region     = "eu-central-1"
	algorithm  = "AWS4-HMAC-SHA256"
	amzTime    = "20060102T150405Z"
	maxExpires = 7 * 24 * time.Hour
)

// presign returns the URL base with a signature for method and headers, valid for life from at on. The AWS signer makes the
// signature. It gets the path in the form that object stores sign, and the URL keeps the path of base.
func (k keys) presign(ctx context.Context, method, base string, headers map[string]string, at time.Time, life time.Duration) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("parse store address: %w", err)
	}
	q := u.Query() // the parameter that names the object, if there is one
	q.Set("X-Amz-Expires", strconv.Itoa(int(life.Seconds())))
	req := &http.Request{Method: method, Host: u.Host, Header: http.Header{},
		URL: &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: httpbinding.EscapePath(u.Path, false), RawQuery: q.Encode()}}
	for name, v := range headers {
		req.Header.Set(name, v)
	}
	by := aws.Credentials{AccessKeyID: k.AccessKey, SecretAccessKey: k.SecretKey, SessionToken: k.SessionToken}
	signed, _, err := v4.NewSigner().PresignHTTP(ctx, by, req, "UNSIGNED-PAYLOAD", "s3", region, at, func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = true // the path is escaped already, and object stores escape it once
		o.DisableHeaderHoisting = true  // a header that is signed is sent as a header
	})
	if err != nil {
		return "", fmt.Errorf("sign store address: %w", err)
	}
	_, u.RawQuery, _ = strings.Cut(signed, "?")
	return u.String(), nil
}

// verifierClock guards the clock of the verifying library, which is a variable of its package.
var verifierClock sync.Mutex

// verifySignature checks the signature alone, as if r arrived when its URL was made. verify decides whether the URL has
// expired, by the clock of the server, which in tests is not that of the machine.
func (k keys) verifySignature(r *http.Request, signedAt time.Time) signature.ErrorCode {
	verifierClock.Lock()
	defer verifierClock.Unlock()
	signature.TimeNow = func() time.Time { return signedAt }
	return signature.V4SignVerifyWithLookup(r, func(id string) (string, bool) { return k.SecretKey, id == k.AccessKey })
}

func isPresigned(r *http.Request) bool {
	return r.URL.Query().Has("X-Amz-Signature") || r.URL.Query().Has(signatureParameter)
}

// signedHeaders are the headers that a pre-signed request must carry beside its host.
func signedHeaders(r *http.Request) map[string]string {
	headers := map[string]string{}
	for _, name := range strings.Split(r.URL.Query().Get("X-Amz-SignedHeaders"), ";") {
		if name != "host" {
			headers[name] = r.Header.Get(name)
		}
	}
	return headers
}

// expired is the answer to a call whose address is over.
var expired = &denial{403, "AccessDenied", "Request has expired"}

// denial is an error answer of the object store.
type denial struct {
	status        int
	code, message string
}

// verify checks a pre-signed request: its form, its life, and its signature by another library than the one that signed.
// signedAt is when the URL was made.
func (k keys) verify(r *http.Request, now time.Time) (signedAt time.Time, d *denial) {
	q := r.URL.Query()
	if q.Get("X-Amz-Signature") == "" {
		return signedAt, &denial{403, "AccessDenied", "Access Denied"}
	}
	malformed := &denial{400, "AuthorizationQueryParametersError", "Query-string authentication is malformed"}
	signedAt, err := time.Parse(amzTime, q.Get("X-Amz-Date"))
	seconds, errExp := strconv.Atoi(q.Get("X-Amz-Expires"))
	life := time.Duration(seconds) * time.Second
	switch {
	case err != nil || errExp != nil || seconds < 1 || life > maxExpires || q.Get("X-Amz-Algorithm") != algorithm:
		return signedAt, malformed
	case signedAt.After(now.Add(15 * time.Minute)):
		return signedAt, &denial{403, "AccessDenied", "Request is not valid yet"}
	case now.After(signedAt.Add(life)):
		return signedAt, expired
	}
	bare := *r
	bare.Header = r.Header.Clone()
	bare.Header.Del("Date") // the library would take it for the signing time; the query's counts
	if code := k.verifySignature(&bare, signedAt); code != signature.ErrNone {
		e := signature.GetAPIError(code)
		return signedAt, &denial{max(e.HTTPStatusCode, 400), e.Code, e.Description}
	}
	if q.Get("X-Amz-Security-Token") != k.SessionToken {
		return signedAt, &denial{403, "InvalidToken", "The provided token is malformed or otherwise invalid"}
	}
	return signedAt, nil
}

// storeRefusal is the store's XML answer.
func (c *call) storeRefusal(d *denial) reply {
	c.record.Text = d.code + ": " + d.message
	return reply{status: d.status, header: http.Header{"Content-Type": {"application/xml"}},
		body: errorXML(d.code, d.message, c.record.RequestID)}
}

func errorXML(code, message, requestID string) []byte {
	type body struct {
		XMLName                  xml.Name `xml:"Error"`
		Code, Message, RequestId string
	}
	b, err := xml.Marshal(body{Code: code, Message: message, RequestId: requestID})
	if err != nil {
		return nil // cannot happen: three strings
	}
	return append([]byte(xml.Header), b...)
}
