package boltledger_test

import (
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
		got, err := l.CountHeldFiles(t.Context(), []archive.Digest{logo, own, none}, func(k archive.Key) bool { return k == keys[skipped] })
		kit.Must(t, err)
		kit.Want(t, "held without "+skipped, got, want)
	}
}
