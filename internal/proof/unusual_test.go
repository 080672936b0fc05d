package proof

import (
	"maps"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// I13: that a document bears the number of another one, or a date that it can hardly be of, and that a person has looked
// at it, stands in every line since, and in the entry.
func TestCheck_I13_UnusualDocumentsStayFlagged(t *testing.T) {
	for name, row := range map[string]struct {
		promise string
		spoil   func(b *book)
	}{
		"Nothing":         {"", func(*book) {}},
		"FlagTakenBack":   {"I13", func(b *book) { b.edit(b.line(2, "uploaded"), func(l *ledger.Line) { l.Flags = "same-number" }) }},
		"NumberForgotten": {"I12", func(b *book) { b.change(2, func(e *ledger.Entry) { e.SameNumber = archive.Key{} }) }},
		"DateForgotten":   {"I12", func(b *book) { b.change(2, func(e *ledger.Entry) { e.StrangeDate = false }) }},
		"NobodyLooked":    {"I12", func(b *book) { b.change(2, func(e *ledger.Entry) { e.Reviewed = false }) }},
	} {
		b := newBook(t)
		b.claim(1)
		s := seal(2)
		s.SameNumber, s.StrangeDate = archive.Key{1}, true
		b.do(2, ledger.ClaimedFolder{Vault: "V", Drop: "in", Folder: "folder"}, s)
		b.upload(2, "b2")
		b.archive(2, "b2")
		b.do(2, ledger.Closed{})
		row.spoil(b)
		r := Check(b.journal(), maps.Values(b.entries), Seen{})
		if row.promise == "" && !r.OK() || row.promise != "" && (r.OK() || r.Findings[0].Promise != row.promise) {
			t.Errorf("%s: findings = %v, want one of %q", name, r.Findings, row.promise)
		}
	}
}
