package proof

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

func TestReceipt_FixedFields(t *testing.T) {
	b, _ := everyday(t)
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
	if err := json.Unmarshal(r.Encode(), &back); err != nil || back.BumID != "b4" || back.Journal.N != 30 {
		t.Errorf("read back %+v: %v", back, err)
	}
	if _, err := NewReceipt("test", b.entries[archive.Key{4}], doc, nil); !errors.Is(err, ErrNotArchived) {
		t.Errorf("a receipt for an upload: %v", err)
	}
}

func TestReceipt_NamesTheGenerationThatSucceeded(t *testing.T) {
	base := archive.ID{9}
	e := ledger.Entry{State: ledger.Archived, ArchivedRemote: "b2", Generation: 2, FirstID: base, ID: base.Generation(2), Registrations: []ledger.Registration{
		{Ticket: archive.Ticket{Remote: "b1"}}, {Ticket: archive.Ticket{Remote: "b2"}, Generation: 1}, {Ticket: archive.Ticket{Remote: "b3"}, Generation: 2}}}
	r, err := NewReceipt("test", e, ledger.Document{Metadata: []byte(`{}`)}, nil)
	kit.Check(t, err == nil && r.ClientUUID == base.Generation(1).String(), "clientUUID %s: %v", r.ClientUUID, err)
}
