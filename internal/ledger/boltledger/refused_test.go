package boltledger_test

import (
	"bytes"
	"errors"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// The readable part of a folder that ends unsealed is committed with its end,
// and is there after a restart.
func TestDocument_I5_OfAnEntryThatEndsUnsealed(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	first := newDoc(t, l, 1).archived()
	read := goldenRefused()
	for n, end := range []ledger.Event{ledger.Refused{Cause: ledger.Cause{Code: "documentDate-not-understood"}}, ledger.FoundDuplicate{First: first.e.Key}} {
		d := newDoc(t, l, n+2)
		d.do(d.claim())
		c := d.change(end)
		c.Document = &read
		applied(t, l, c)
	}
	kit.Must(t, l.Close())
	l = open(t, boltledger.Config{Dir: dir})
	sound(t, l)
	for n := range 2 {
		got, ok, err := l.Document(newDoc(t, l, n+2).e.Key)
		kit.Check(t, err == nil && ok && got.AsRead == read.AsRead && got.IsOnlyAsRead(),
			"document %d = %+v, %v (%v), want nothing but %+v", n+2, got, ok, err, read.AsRead)
	}
	kit.Want(t, "the error of Lines",
		l.Lines(1, func(_ uint64, line []byte) error { return holdsNothingOf(read.AsRead, line) }), nil)
}

func holdsNothingOf(read archive.AsRead, line []byte) error {
	for _, text := range []string{read.Number, read.Date, read.SenderName, read.Amount} {
		if len(text) > 2 && bytes.Contains(line, []byte(text)) {
			return errors.New("a journal line holds " + text)
		}
	}
	return nil
}

// That part never replaces the document of a sealed folder, and such a document
// never comes with a refusal.
func TestDocument_RefusedDoesNotReplaceASealedOne(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	sealed := newDoc(t, l, 1)
	sealed.do(sealed.claim())
	sealed.do(sealed.sealed())
	fresh := newDoc(t, l, 2)
	fresh.do(fresh.claim())
	read := goldenRefused()
	for name, row := range map[string]struct {
		d   *doc
		own *ledger.Document
	}{"Sealed": {sealed, &read}, "WithMetadata": {fresh, &fresh.own}} {
		c := row.d.change(ledger.Refused{})
		c.Document = row.own
		if rs, err := l.Apply(t.Context(), c); err != nil || !errors.Is(rs[0].Err, ledger.ErrIllegal) {
			t.Errorf("%s: %v (%v), want %v", name, rs, err, ledger.ErrIllegal)
		}
	}
	if got, ok, err := l.Document(sealed.e.Key); err != nil || !ok || got.Salt != sealed.own.Salt || !got.AsRead.IsZero() {
		t.Errorf("document = %+v, %v (%v), want the sealed one", got, ok, err)
	}
}
