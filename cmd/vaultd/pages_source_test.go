// These tests are inside the package: they hold a report that is being made, and
// set the patience with a long journal.
package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/page"
	"vaultd/internal/test/kit"
)

// A document whose last step stands behind the lines of very many others is shown with the steps that could be read in time. Its receipt
// and its download read no journal.
func TestPages_G15_LongJournalHoldsNoDocumentBack(t *testing.T) {
	var log bytes.Buffer
	h, d := resting(t, &log)
	l := d.Ledger()
	defer d.Close()
	pile(t, l, 1)
	var e ledger.Entry
	kit.Must(t, l.OpenEntries(func(one ledger.Entry) error { e = one; return nil }))
	s := &pageSource{h: h, historyPatience: time.Nanosecond}
	if doc, ok, err := s.Document(t.Context(), e.Key); err != nil || !ok || doc.Entry.Key != e.Key || len(doc.History) >= int(e.Rev) {
		t.Errorf("%v %v %d lines of %d", ok, err, len(doc.History), e.Rev)
	}
	s.historyPatience = time.Minute
	doc, _, err := s.Document(t.Context(), e.Key)
	kit.Check(t, err == nil && len(doc.History) == int(e.Rev), "%v %d lines of %d", err, len(doc.History), e.Rev)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, err = s.Document(gone, e.Key)
	kit.Check(t, err != nil, "who has gone is answered")
}

// I21: the pages make one report at a time: a second one is refused at once.
func TestPages_I21_OneReportAtATime(t *testing.T) {
	s := &pageSource{}
	s.report.Lock()
	_, busy := s.Books(t.Context(), page.BooksQuestion{}, 1)
	for _, err := range []error{busy, s.makeReport(t.Context(), page.ReportOrder{}, io.Discard)} {
		if refusal, is := errors.AsType[*page.Refusal](err); !is || refusal.Status != http.StatusServiceUnavailable || refusal.Text != "Another report is being made." {
			t.Errorf(`%v, want is, refusal.Status = http.StatusServiceUnavailable, refusal.Text = "Another report is being made."`, err)
		}
	}
}

// A report is whole before its first byte leaves, so that a visitor who reads
// slowly keeps no other visitor from a report.
func TestPages_I23_SlowReaderHoldsNoReportBack(t *testing.T) {
	var log bytes.Buffer
	h, d := resting(t, &log)
	defer d.Close()
	pile(t, d.Ledger(), 3)
	s := &pageSource{h: h}
	for _, form := range []string{"html", "csv", "xlsx"} {
		var got bytes.Buffer
		kit.Must(t, s.Report(t.Context(), "anna", page.ReportOrder{Form: form, Separator: ','}, func(string) io.Writer {
			if !s.report.TryLock() {
				t.Errorf("%s: another report cannot be made while this one is sent, want it possible", form)
				return &got
			}
			s.report.Unlock()
			return &got
		}))
		kit.Check(t, got.Len() != 0, "%s: the report is empty", form)
	}
}
