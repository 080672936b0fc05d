package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// signer signs with its own key.
type signer struct{ ed25519.PrivateKey }

func newSigner(t *testing.T, seed byte) (s signer, public string) {
	t.Helper()
	s = signer{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))}
	der, err := x509.MarshalPKIXPublicKey(s.Public())
	kit.Must(t, err)
	return s, base64.StdEncoding.EncodeToString(der)
}

func (s signer) SignReceipt(text []byte) ([]byte, string) {
	der, _ := x509.MarshalPKIXPublicKey(s.Public())
	return ed25519.Sign(s.PrivateKey, text), base64.StdEncoding.EncodeToString(der)
}

// I12: a receipt is signed with all its lines but the last two, so that an
// auditor can check it with other tools; whatever is changed, cut off, added or
// taken from another receipt is seen.
func TestSign_I12_EachLineCounts(t *testing.T) {
	ours, key := newSigner(t, 1)
	theirs, other := newSigner(t, 2)
	plain := Receipt{Format: receiptFormat, Key: "k", DocumentID: `"signature": "a <b>`, Record: "{\"signature\":1}\n}\n"}.Encode()
	text := Sign(plain, ours)
	kit.Want(t, "it is JSON", json.Valid(text), true)
	lines := strings.SplitAfter(string(text), "\n")
	signed := strings.Join(lines[:len(lines)-3], "") // the last line feed ends the file
	signature, _ := ours.SignReceipt([]byte(signed))
	kit.Want(t, "its last two lines", strings.Join(lines[len(lines)-3:], ""), "  \"signature\": \""+base64.StdEncoding.EncodeToString(signature)+"\"\n}\n")
	back, err := ParseReceipt(text)
	kit.Must(t, err)
	kit.Want(t, "read back", string(back.Encode()), string(plain))

	type row struct {
		text []byte
		keys []string
		want error
	}
	kit.Rows(t, map[string]row{
		"AsSigned":           {text, []string{other, key}, nil},
		"Unsigned":           {plain, []string{key}, ErrUnsigned},
		"NoKeyIsKnown":       {text, nil, ErrUnknownKey},
		"AnotherKeyIsKnown":  {text, []string{other}, ErrUnknownKey},
		"SignedByAnother":    {Sign(plain, theirs), []string{key}, ErrUnknownKey},
		"SignedTwice":        {Sign(text, theirs), []string{key}, ErrUnknownKey},
		"ABrokenKeyIsKnown":  {bytes.ReplaceAll(text, []byte(key), []byte("MCow")), []string{"MCow"}, ErrSignature},
		"SignatureCutShort":  {bytes.Replace(text, []byte("==\"\n}"), []byte("\"\n}"), 1), []string{key}, ErrSignature},
		"AFieldBehindIt":     {bytes.Replace(text, []byte("\n}\n"), []byte(",\n  \"key\": \"x\"\n}\n"), 1), []string{key}, ErrSignature},
		"NoLineFeedAtTheEnd": {bytes.TrimSuffix(text, []byte("\n")), []string{key}, ErrSignature},
		"OtherLineEnds":      {bytes.ReplaceAll(text, []byte("\n"), []byte("\r\n")), []string{key}, ErrSignature},
		"AFieldChanged":      {bytes.Replace(text, []byte(`"key": "k"`), []byte(`"key": "l"`), 1), []string{key}, ErrSignature},
		"AnotherKeyNamed":    {bytes.ReplaceAll(Sign(plain, theirs), []byte(other), []byte(key)), []string{key}, ErrSignature},
	}, func(t *testing.T, row row) {
		if _, err := CheckSignature(row.text, row.keys); !errors.Is(err, row.want) || (err == nil) != (row.want == nil) {
			t.Errorf("%v, want %v", err, row.want)
		}
	})
	for i := range text {
		changed := bytes.Clone(text)
		changed[i] ^= 4
		if _, err := CheckSignature(changed, []string{key}); err == nil {
			t.Fatalf("byte %d may be changed", i)
		}
	}
	kit.Want(t, "keys that it names", strings.Join(FindPublicKeys(text), " "), key)
}
