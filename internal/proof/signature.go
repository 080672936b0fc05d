package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
)

// Signer signs receipts. *boltledger.Ledger implements it.
type Signer interface {
	SignReceipt(text []byte) (signature []byte, publicKey string)
}

// The last two lines of a signed receipt or delivery note, before its brace.
// The signed text is everything before the line of the signature, that of the
// key included: all lines of the file but the last two.
const (
	keyLine       = ",\n  \"publicKey\": \"%s\",\n"
	signatureLine = "  \"signature\": \"%s\"\n}\n"
)

// Sign adds the signer's public key and its signature to the text that a
// receipt or a delivery note was encoded to.
func Sign(text []byte, by Signer) []byte {
	_, key := by.SignReceipt(nil)
	signed := fmt.Appendf(bytes.Clone(bytes.TrimSuffix(text, []byte("\n}\n"))), keyLine, key)
	signature, _ := by.SignReceipt(signed)
	return fmt.Appendf(signed, signatureLine, base64.StdEncoding.EncodeToString(signature))
}

// Reasons why the signature of a receipt or a delivery note is refused. Each is
// in words that follow "its receipt".
var (
	ErrUnsigned   = errors.New("has no signature")
	ErrUnknownKey = errors.New("is signed with a key that is not one of this ledger")
	ErrSignature  = errors.New("was changed after it was signed, or its signature is of another one")
)

var (
	signatureEnd = regexp.MustCompile(`^(?s)(.*,\n  "publicKey": "([^"\n]*)",\n)  "signature": "([^"\n]*)"\n}\n$`)
	publicKeys   = regexp.MustCompile(`MCowBQYDK2VwAyEA[A-Za-z0-9+/]{43}=`)
)

// CheckSignature reports whether the text of a receipt or of a delivery note is
// signed with one of the keys, each in the form of [FindPublicKeys]. It returns
// the key, or [ErrUnsigned], [ErrUnknownKey] or [ErrSignature].
func CheckSignature(text []byte, keys []string) (publicKey string, err error) {
	parts := signatureEnd.FindSubmatch(text)
	if parts == nil {
		if bytes.Contains(text, []byte(`"signature":`)) {
			return "", ErrSignature
		}
		return "", ErrUnsigned
	}
	publicKey = string(parts[2])
	if !slices.Contains(keys, publicKey) {
		return publicKey, ErrUnknownKey
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(string(parts[3]))
	if key := parsePublicKey(publicKey); err != nil || key == nil || !ed25519.Verify(key, parts[1], signature) {
		return publicKey, ErrSignature
	}
	return publicKey, nil
}

// HasWrittenForm reports whether a note has the form in which vaultd wrote it. An
// unsigned one must: in another form, as with a key twice, two readers could read
// different things.
func HasWrittenForm(text, asWritten []byte) bool {
	var have, want bytes.Buffer
	return errors.Join(json.Compact(&have, text), json.Compact(&want, asWritten)) == nil && bytes.Equal(have.Bytes(), want.Bytes())
}

// parsePublicKey returns nil unless the text is an Ed25519 key.
func parsePublicKey(text string) ed25519.PublicKey {
	der, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil {
		return nil
	}
	key, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil
	}
	public, _ := key.(ed25519.PublicKey)
	return public
}

// FindPublicKeys returns the public keys that a text names, each once: base64
// of their X.509 form.
func FindPublicKeys(text []byte) (keys []string) {
	for _, key := range publicKeys.FindAllString(string(text), -1) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
