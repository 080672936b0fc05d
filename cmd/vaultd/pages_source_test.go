package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/ledger"
	"vaultd/internal/page"
)

// What a visitor is told of a download that failed is what happened: no month ends where downloads are switched off, and a full disk of
// ours is not the archive's fault.
func TestPages_I26_DownloadThatFailedIsToldAsItWas(t *testing.T) {
	full := &apicall.Error{Op: "download", Code: "local", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err     error
		allowed uint64
		text    string
		status  int
	}{
		{overBudget(&ledger.BudgetError{}), 0, "Downloads are switched off.", http.StatusForbidden},
		{overBudget(&ledger.BudgetError{Used: 2, Allowed: 2}), 2, "The downloads of this month are used up.", http.StatusTooManyRequests},
		{downloadError(wanted{}, full), 2, "vaultd could not store the download on its own disk.", http.StatusInsufficientStorage},
		{downloadError(wanted{}, &apicall.Error{Op: "download", Status: http.StatusNotFound}), 2, "The archive did not deliver the document.", http.StatusBadGateway},
	} {
		refusal, is := errors.AsType[*page.Refusal](refuseDownload(c.err, c.allowed))
		if !is || refusal.Text != c.text || refusal.Status != c.status {
			t.Errorf("%v: %+v", c.err, refusal)
		}
	}
}

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
