package boltledger_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// I12: a file that another entry lists is found, however many documents the ledger has.
func TestCountHeldFiles_I12_FindsOthers(t *testing.T) {
	l := fill.New(t, boltledger.Config{}, ledger.Info{})
	logo, own, none := archive.Sum([]byte("logo")), archive.Sum([]byte("own")), archive.Sum([]byte("none"))
	keys, at := map[string]archive.Key{}, time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	for name, files := range map[string][]archive.Digest{"one": {logo}, "two": {own, logo}} {
		doc := &ledger.Document{}
		for _, d := range files {
			doc.Files = append(doc.Files, archive.File{Path: "x", Size: 1, SHA256: d})
		}
		i := l.Item(name)
		keys[name] = i.Claim(at).Key
		l.Commit(ledger.Change{Key: i.Key, Rev: 1, Events: []ledger.Event{ledger.Refused{Cause: ledger.Cause{Code: "x"}}}, Document: doc, At: archive.Instant{Wall: at}})
	}
	for skipped, want := range map[string]int{"one": 2, "two": 1, "neither": 2} {
		got := kit.Value(l.CountHeldFiles(t.Context(), []archive.Digest{logo, own, none}, func(k archive.Key) bool { return k == keys[skipped] }))(t)
		kit.Want(t, "held without "+skipped, got, want)
	}
}

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
		rs, err := l.Apply(t.Context(), c)
		kit.Check(t, err == nil && errors.Is(rs[0].Err, ledger.ErrIllegal), "%s: %v (%v), want %v", name, rs, err, ledger.ErrIllegal)
	}
	got, ok, err := l.Document(sealed.e.Key)
	kit.Check(t, err == nil && ok && got.Salt == sealed.own.Salt && got.AsRead.IsZero(), "document = %+v, %v (%v), want the sealed one", got, ok, err)
}
