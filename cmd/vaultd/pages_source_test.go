package main

import (
	"bytes"
	"context"
	"testing"
	"time"
	"vaultd/internal/ledger"
)

// A document whose last step stands behind the lines of very many others is shown with the steps that could be read in time. Its receipt
// and its download read no journal.
func TestPages_G15_LongJournalHoldsNoDocumentBack(t *testing.T) {
	var log bytes.Buffer
	h := resting(t, &log)
	l := h.currentGeneration().d.Ledger()
	defer h.currentGeneration().d.Close()
	pile(t, l, 1)
	var e ledger.Entry
	if err := l.OpenEntries(func(one ledger.Entry) error { e = one; return nil }); err != nil {
		t.Fatal(err)
	}
	s := &pageSource{h: h, historyPatience: time.Nanosecond}
	if d, ok, err := s.Document(t.Context(), e.Key); err != nil || !ok || d.Entry.Key != e.Key || len(d.History) >= int(e.Rev) {
		t.Errorf("%v %v %d lines of %d", ok, err, len(d.History), e.Rev)
	}
	s.historyPatience = time.Minute
	if d, _, err := s.Document(t.Context(), e.Key); err != nil || len(d.History) != int(e.Rev) {
		t.Errorf("%v %d lines of %d", err, len(d.History), e.Rev)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := s.Document(gone, e.Key); err == nil {
		t.Error("who has gone is answered")
	}
}
