package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// signer makes and checks pre-signed addresses for PUT, as signature version 4 of object stores has it: the method, the
// host, the path and the query are signed, the body is not.
type signer struct{ access, secret string }

const (
	algorithm = "AWS4-HMAC-SHA256"
	amzTime   = "20060102T150405Z"
	scope     = "/eu-central-1/s3/aws4_request"
)

var (
	errSignature = errors.New("the request signature we calculated does not match the signature you provided")
	errExpired   = errors.New("request has expired")
)

// presign gives base an address that is good for life from at.
func (k signer) presign(base string, at time.Time, life time.Duration) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err) // it is our own
	}
	stamp := at.UTC().Format(amzTime)
	q := url.Values{
		"X-Amz-Algorithm": {algorithm}, "X-Amz-Credential": {k.access + "/" + stamp[:8] + scope}, "X-Amz-Date": {stamp},
		"X-Amz-Expires": {strconv.Itoa(int(life.Seconds()))}, "X-Amz-SignedHeaders": {"host"},
	}
	return base + "?" + q.Encode() + "&X-Amz-Signature=" + k.sign(u.Host, u.EscapedPath(), q)
}

// verify checks an address that was sent to.
func (k signer) verify(r *http.Request, now time.Time) error {
	q := r.URL.Query()
	given := q.Get("X-Amz-Signature")
	q.Del("X-Amz-Signature")
	at, err := time.Parse(amzTime, q.Get("X-Amz-Date"))
	life, lifeErr := strconv.Atoi(q.Get("X-Amz-Expires"))
	if err != nil || lifeErr != nil || !hmac.Equal([]byte(given), []byte(k.sign(r.Host, r.URL.EscapedPath(), q))) {
		return errSignature
	}
	if now.After(at.Add(time.Duration(life) * time.Second)) {
		return errExpired
	}
	return nil
}

func (k signer) sign(host, path string, q url.Values) string {
	canonical := sha256.Sum256([]byte("PUT\n" + path + "\n" + q.Encode() + "\nhost:" + host + "\n\nhost\nUNSIGNED-PAYLOAD"))
	stamp := q.Get("X-Amz-Date")
	day := stamp[:min(len(stamp), 8)]
	key := []byte("AWS4" + k.secret)
	for _, part := range []string{day, "eu-central-1", "s3", "aws4_request"} {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, algorithm+"\n"+stamp+"\n"+day+scope+"\n"+hex.EncodeToString(canonical[:])))
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}
