package archive

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// What is taken for an identifier is written again as it was meant, and fits a path, a line and a URL.
func FuzzIdentifiers(f *testing.F) {
	for _, s := range []string{"10d90000-0000-4000-8000-00000000000A", "06gzjdqx1hf98hs4xds9252kmc", "06gzjdqx1hf9Ths4xds9252kmc", "06gzjdqx1hf98hs4xds9252\u212amc", "bum/../1", strings.Repeat("ab", 32), "{10d90000-0000-4000-8000-00000000000a}", "\u212a", "", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseID(s)
		kit.Check(t, err != nil || strings.EqualFold(id.String(), s), "%q is the ID %s", s, id)
		k, err := ParseKey(s)
		kit.Check(t, err != nil || len(s) == 26 && k.String() == strings.ToLower(s), "%q is the key %s", s, k)
		d, err := ParseDigest(s)
		kit.Check(t, err != nil || strings.EqualFold(d.String(), s), "%q is the digest %s", s, d)
		if r, err := ParseRemoteID(s); err == nil && (!strings.EqualFold(string(r), s) || strings.ContainsAny(s, "\r\n\x00 ") || s == "" || s == "." || s == "..") {
			t.Errorf("%q is the number %q", s, string(r))
		}
	})
}

// An amount keeps its value, digit by digit, from the text to the request.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"9007199254740993.10", "-0.0", "1e5", "00", ".5", "1.", "+1", "1_0", "٣", "0x1", strings.Repeat("9", 400)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := ParseDecimal(s)
		if err != nil {
			return
		}
		kit.Check(t, string(d) == s && d.Rat() != nil && json.Valid([]byte(s)), "%q is taken for %q", s, string(d))
		doc := Document{Type: "Invoice", Number: "1", Date: "2026-10-31T00:00:00Z", Amount: d}
		back, err := ParseMetadata(doc.Metadata())
		kit.Check(t, err == nil && back.Amount == d && bytes.Equal(back.Metadata(), doc.Metadata()),
			"%q became %q: %v", s, string(back.Amount), err)
	})
}
