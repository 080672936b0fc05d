package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/page"
	"vaultd/internal/spool"
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
		{&spool.NoSpaceError{Free: 1, MinFree: 2}, 2, "There is no room for the download on the disk of vaultd.", http.StatusInsufficientStorage},
		{downloadError(wanted{}, full), 2, "vaultd could not store the download on its own disk.", http.StatusInsufficientStorage},
		{downloadError(wanted{}, &apicall.Error{Op: "download", Status: http.StatusNotFound}), 2, "The archive did not deliver the document.", http.StatusBadGateway},
	} {
		refusal, is := errors.AsType[*page.Refusal](refuseDownload(c.err, c.allowed))
		if !is || refusal.Text != c.text || refusal.Status != c.status {
			t.Errorf("%v: %+v", c.err, refusal)
		}
	}
}

// hugeArchive sends without end.
type hugeArchive struct{ sent int64 }

func (h *hugeArchive) Download(_ context.Context, _ archive.VaultID, _ archive.RemoteID, w io.Writer) (int64, archive.Digest, error) {
	part := make([]byte, 1<<20)
	for h.sent < 1<<30 {
		n, err := w.Write(part)
		h.sent += int64(n)
		if err != nil {
			return h.sent, archive.Digest{}, err
		}
	}
	return h.sent, archive.Digest{}, nil
}

// A download leaves the room that the work needs: it is not begun where that is used up, and ends where it comes to be.
func TestDownload_I21_LeavesRoomForTheWork(t *testing.T) {
	s := newShelf(t)
	tmp, err := spool.NamelessFile(s.cfg.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	defer tmp.Close()
	a, huge, what := &app{}, &hugeArchive{}, wanted{vault: "V-1", remote: "R1"}
	s.cfg.Billing.DownloadsPerMonth = 5
	s.cfg.Spool.MinFree = durable.FreeBytes(s.cfg.StateDir) * 2
	if _, err := a.downloadTo(t.Context(), s.view, huge, what, operator.Person{}, tmp); !errors.Is(err, syscall.ENOSPC) || huge.sent != 0 {
		t.Errorf("with a full disk: %v, %d bytes", err, huge.sent)
	}
	if n, err := s.ledger.CountFetches(s.Now); err != nil || n != 0 {
		t.Errorf("%d downloads count, %v", n, err)
	}
	checks := 0
	file := &boundedFile{file: tmp, check: func() error {
		if checks++; checks == 3 {
			return &spool.NoSpaceError{}
		}
		return nil
	}}
	if n, _, err := huge.Download(t.Context(), "", "", file); !errors.Is(err, syscall.ENOSPC) || n >= 64<<20 {
		t.Errorf("a disk that becomes full: %v after %d bytes", err, n)
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
