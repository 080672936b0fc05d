package proof

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

func TestReceipt_FixedFields(t *testing.T) {
	b := everyday(t)
	e := b.entries[archive.Key{3}]
	doc := ledger.Document{Metadata: []byte(`{"documentType":"Invoice","documentId":"R-3"}`), Files: []archive.File{{Path: "a.pdf", Size: 7, SHA256: archive.Digest{7}}}}
	r := kit.Value(NewReceipt("test", e, doc, &ledger.Head{N: 30, Hash: archive.Digest{8}}))(t)
	want := `{
  "format": "vaultd-receipt-1",
  "environment": "test",
  "key": "0c000000000000000000000000",
  "clientUUID": "03000000-0000-0000-0000-000000000000",
  "bumId": "b4",
  "vault": "V",
  "documentId": "R-3",
  "files": [
    {
      "path": "a.pdf",
      "size": 7,
      "sha256": "07` + strings.Repeat("0", 62) + `"
    }
  ],
  "zip": {
    "size": 3000,
    "sha256": "03` + strings.Repeat("0", 62) + `"
  },
  "seenAt": "2026-11-20T12:00:00Z",
  "registeredAt": "2026-11-20T12:00:00Z",
  "uploadedAt": "2026-11-20T12:00:00Z",
  "archivedAt": "2026-11-20T12:00:00Z",
  "record": "{\"status\":\"ArchivingSuccessful\"}",
  "journal": {
    "line": 30,
    "hash": "08` + strings.Repeat("0", 62) + `"
  }
}
`
	kit.Want(t, "the receipt", string(r.Encode()), want)
	var back Receipt
	err := json.Unmarshal(r.Encode(), &back)
	kit.Check(t, err == nil && back.BumID == "b4" && back.Journal.N == 30, "read back %+v: %v", back, err)
	kit.Fails(t, "a receipt for an upload",
		kit.Err(NewReceipt("test", b.entries[archive.Key{4}], doc, nil)), ErrNoRecord)
}

func TestReceipt_NamesTheGenerationThatSucceeded(t *testing.T) {
	base := archive.ID{9}
	e := ledger.Entry{State: ledger.Archived, ArchivedRemote: "b2", Generation: 2, FirstID: base, ID: base.Generation(2), Registrations: []ledger.Registration{
		{Ticket: archive.Ticket{Remote: "b1"}}, {Ticket: archive.Ticket{Remote: "b2"}, Generation: 1}, {Ticket: archive.Ticket{Remote: "b3"}, Generation: 2}}}
	r, err := NewReceipt("test", e, ledger.Document{Metadata: []byte(`{}`)}, nil)
	kit.Check(t, err == nil && r.ClientUUID == base.Generation(1).String(), "clientUUID %s: %v", r.ClientUUID, err)
}

// fetch writes a line about a download of vault V.
func (b *book) fetch(word, remote, outcome string) {
	b.mark(word)
	last := len(b.lines) - 1
	l := kit.Value(ledger.ParseLine(b.lines[last]))(b.t)
	l.Vault, l.Remote, l.Cause = "V", remote, outcome
	b.lines[last] = l.Encode()
}

// The last comparison of a document counts, one that failed takes nothing back, and one that never ended is none.
func TestCheck_I4_DownloadsAreCounted(t *testing.T) {
	b := everyday(t)
	for _, line := range []struct{ word, remote, outcome string }{
		{ledger.MarkFetchIntended, "b1", ""}, {ledger.MarkFetched, "b1", ledger.FetchDiffers},
		{ledger.MarkFetchIntended, "b1", ""}, {ledger.MarkFetchIntended, "b1", ""},
		{ledger.MarkFetched, "b1", ledger.FetchRepacked}, {ledger.MarkFetched, "b1", ledger.FetchFailed},
		{ledger.MarkFetchIntended, "b4", ""},
		{ledger.MarkFetchIntended, "stranger", ""}, {ledger.MarkFetched, "stranger", ledger.FetchNotCompared},
	} {
		b.fetch(line.word, line.remote, line.outcome)
	}
	r := b.check()
	kit.Want(t, "findings", r.Findings, nil)
	want := (Sample{Archived: 2, Compared: 1})
	kit.Check(t, r.Sample == want && r.Downloads.Announced == 5, "%+v of %d downloads, want %+v", r.Sample, r.Downloads.Announced, want)
	if r.Downloads.LastComparison("V", "b4") != "" || r.Downloads.LastLine("V", "b4") == 0 || r.Downloads.LastLine("V", "b6") != 0 || r.Downloads.LastLine("W", "b1") != 0 {
		t.Errorf("downloads = %+v, want b4 announced without a comparison, and b6 and vault W unknown", r.Downloads)
	}
	b.fetch(ledger.MarkFetchIntended, "b4", "")
	b.fetch(ledger.MarkFetched, "b4", ledger.FetchDiffers)
	r = b.check()
	kit.Check(t, r.Sample.Differ == 1 && r.Sample.Compared == 2, "sample = %+v, want 1 of 2 to differ", r.Sample)
}

// I11: what came of a download that nothing announced is a finding, and so is a line that names no document or outcome.
func TestCheck_I11_DownloadWithoutAnIntent(t *testing.T) {
	type row struct {
		says  string
		lines []string // remote and outcome in turn; no outcome: the intent
	}
	kit.Rows(t, map[string]row{
		"NoIntent":     {"nothing announced it", []string{"b1", ledger.FetchSame}},
		"OfAnother":    {"nothing announced it", []string{"b1", "", "b4", ledger.FetchSame}},
		"MoreOutcomes": {"nothing announced it", []string{"b1", "", "b1", ledger.FetchSame, "b1", ledger.FetchFailed}},
		"NoDocument":   {"names no document", []string{"", ""}},
		"NoOutcome":    {"its outcome is none", []string{"b1", "", "b1", "fine"}},
	}, func(t *testing.T, row row) {
		b := everyday(t)
		for i := 0; i < len(row.lines); i += 2 {
			word := ledger.MarkFetched
			if row.lines[i+1] == "" {
				word = ledger.MarkFetchIntended
			}
			b.fetch(word, row.lines[i], row.lines[i+1])
		}
		r := b.check()
		kit.Check(t, slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Promise == "I11" && strings.Contains(f.Text, row.says) }),
			"findings = %v, want one of I11 that tells of %q", r.Findings, row.says)
	})
}

// signer signs with its own key.
type signer struct{ ed25519.PrivateKey }

func newSigner(t *testing.T, seed byte) (s signer, public string) {
	t.Helper()
	s = signer{ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))}
	der := kit.Value(x509.MarshalPKIXPublicKey(s.Public()))(t)
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
