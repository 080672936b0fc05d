package readings

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// Stores that take no Content-MD5 where the address does not sign it get the
// same bytes at the same address without it, in one registration. The first
// uploads carry it, those after the first success do not.
func TestReading_I25_StoresThatRefuseContentMD5(t *testing.T) {
	for _, way := range []string{"unsigned", "mismatch", "unknown"} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			s := setup{readings: emulator.Readings{ContentMD5: way, ShortBody: "keep", ETag: "none"}, pdf: &pdfDrop{}}
			virtual(t, s, func(t *testing.T, w *world) {
				w.archivesBeside(ledger.Delivered, 3, hour)
				w.onceRegistered()
				with, without, paths := 0, 0, map[string]int{}
				for _, c := range w.sentTo(storeHost) {
					if paths[c.path]++; c.md5 {
						with++
					} else {
						without++
					}
				}
				if with == 0 || without != len(paths) {
					t.Errorf("%d uploads with Content-MD5 and %d without it to %d addresses, want some, and one without for each", with, without, len(paths))
				}
				for _, e := range w.entries() {
					if r := e.Current(); r.UploadIntents != r.WithoutEffect+1 {
						t.Errorf("%q: %d of %d uploads without effect, want all but the last", e.Folder, r.WithoutEffect, r.UploadIntents)
					}
				}
				with = 0
				w.drop(0, "Später", "R-9")
				w.archivesBeside(ledger.Delivered, 3, hour)
				for _, c := range w.sentTo(storeHost) {
					if paths[c.path] == 0 && c.md5 {
						with++
					}
				}
				kit.Want(t, "uploads with Content-MD5 to a host that is known to refuse it", with, 0)
			})
		})
	}
}

// If the answer to an upload is lost, the archive's status alone makes a
// document archived. At a store that took it without Content-MD5 it is flagged
// until it is compared; at others the store's check of the digest stands for
// it.
func TestReading_I4_UploadsWithoutAnAnswer(t *testing.T) {
	for way, flagged := range map[string]bool{"check": false, "unsigned": true} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			lost := func(r *http.Request, next http.RoundTripper) (*http.Response, error) {
				resp, err := next.RoundTrip(r)
				if err == nil && r.Method == http.MethodPut && resp.StatusCode == http.StatusOK {
					return nil, errors.Join(io.ErrUnexpectedEOF, resp.Body.Close())
				}
				return resp, err
			}
			s := setup{readings: emulator.Readings{ContentMD5: way, ShortBody: "keep", ETag: "none"}, between: lost}
			virtual(t, s, func(t *testing.T, w *world) {
				w.archives(2 * hour)
				for _, e := range w.entries() {
					kit.Want(t, "comparison needed of "+e.Folder, e.NeedsComparison(), flagged)
				}
			})
		})
	}
}

// Other refusals than that of the header never make a package leave without
// Content-MD5.
func TestReading_I4_ContentMD5IsKept(t *testing.T) {
	kit.Rows(t, map[string]emulator.Fault{
		"Malformed": {Kind: emulator.Status, Status: 400},
		"Denied":    {Kind: emulator.Status, Status: 403},
		"Expired":   {Kind: emulator.DeadToken},
		"Faulty":    {Kind: emulator.Status, Status: 501},
	}, func(t *testing.T, fault emulator.Fault) {
		t.Parallel()
		virtual(t, setup{faults: first(2, "upload", fault)}, func(t *testing.T, w *world) {
			w.archives(hour)
			for _, c := range w.sentTo(storeHost) {
				kit.Check(t, c.md5, "an upload without Content-MD5 at %v", c.at)
			}
		})
	})
}

// A store that answers 417 to "Expect: 100-continue" gets the same upload once
// more without it, at the same address.
func TestReading_I25_AStoreThatRefusesExpect(t *testing.T) {
	t.Parallel()
	s := setup{readings: emulator.Readings{Expect: "refuse", ContentMD5: "unsigned"}, pdf: &pdfDrop{}}
	virtual(t, s, func(t *testing.T, w *world) {
		w.archivesBeside(ledger.Delivered, 3, hour)
		w.onceRegistered()
	})
}

// onceRegistered wants each document registered once, whatever its route.
func (w *world) onceRegistered() {
	w.t.Helper()
	for _, e := range w.entries() {
		kit.Want(w.t, "registrations of "+e.Folder, e.Posts, 1)
	}
}
