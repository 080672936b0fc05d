package main_test

import (
	"vaultd/internal/test/kit"

	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// alters returns the address of a service whose index says something else than what was sent, once alter is set.
func alters(t *testing.T, emu http.Handler, alter *atomic.Pointer[strings.Replacer]) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		change := alter.Load()
		if change == nil || !strings.HasSuffix(r.URL.Path, "/index") {
			emu.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		emu.ServeHTTP(rec, r)
		var text bytes.Buffer
		_, _ = change.WriteString(&text, rec.Body.String()) // a buffer takes everything
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(text.Bytes()) // the client may be gone
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

// I4: what the index says of a document otherwise than it was sent is named field by field, as a difference, in words
// that cannot steer a terminal and for machines as it came.
func TestReconcile_I4_NamesWhatTheIndexSaysOtherwise(t *testing.T) {
	t.Parallel()
	emu, _ := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond})
	var alter atomic.Pointer[strings.Replacer]
	s := newSite(t, alters(t, emu, &alter), fast)
	s.drop("acme", "Huber 88", map[string][]byte{"a.pdf": []byte("pdf")}, map[string]any{"documentType": "Invoice", "documentId": "H-88", "documentDate": "2026-10-31",
		"senderName": "Huber", "amount": 119.5, "currencyCode": "EUR"})
	s.must(0, "run", "--once", "--wait")
	if out := s.must(0, "reconcile"); !strings.Contains(out, "nothing differs") || strings.Contains(out, "not compared") {
		t.Fatalf("before anything is altered:\n%s", out)
	}
	alter.Store(strings.NewReplacer(`"119.5"`, `"991.50"`, `"Huber"`, `"Hu\u001b[2Jber\nRESULT nothing"`))
	out := s.must(exitDifferences, "reconcile")
	kit.Holds(t, "reconcile", out, "  DIFFERS    2\n", "H-88", `senderName is "Huber" here, and "Hu\x1b[2Jber\nRESULT nothing" in the archive's index`,
		`amount is "119.5" here, and "991.50" in the archive's index`, "2 differences found")
	kit.Lacks(t, "out", out, "\x1b", "nothing differs")
	var told struct {
		Vaults []struct {
			MetadataDiffers struct {
				Count int
				Named []struct{ Key, BumID, DocumentID, Field, Ours, Theirs, Text string }
			}
			MetadataCompared, MetadataNotCompared int
		}
	}
	kit.Must(t, json.Unmarshal([]byte(strings.SplitN(s.must(exitDifferences, "reconcile", "--json"), "\n", 2)[0]), &told))
	v := told.Vaults[0]
	if d := v.MetadataDiffers; d.Count != 2 || len(d.Named) != 2 || d.Named[1].Field != "amount" || d.Named[1].Ours != "119.5" || d.Named[1].Theirs != "991.50" ||
		d.Named[1].BumID == "" || d.Named[1].Key == "" || v.MetadataCompared != 1 || v.MetadataNotCompared != 0 {
		t.Errorf(`%+v, want d.Count = 2, len(d.Named) = 2, d.Named[1].Field = "amount", d.Named[1].Ours = "119.5", d.Named[1].Theirs = "991.50", d.Named[1].BumID other than "", d.Named[1].Key other than "", v.MetadataCompared = 1, v.MetadataNotCompared = 0`, told)
	}
}

// I4: an archive that fills in fields makes no difference of any document; what it filled in is told.
func TestReconcile_I4_NamesWhatTheIndexAdds(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond, Readings: emulator.Readings{IndexFields: "filled"}})
	s := newSite(t, url, fast)
	s.drop("acme", "Huber 88", map[string][]byte{"a.pdf": []byte("pdf")}, map[string]any{"documentType": "Invoice", "documentId": "H-88", "documentDate": "2026-10-31", "currencyCode": "CHF"})
	s.must(0, "run", "--once", "--wait")
	out := s.must(0, "reconcile")
	kit.Holds(t, "reconcile", out, "  added      flowDirection of 1, tradingPartner of 1 documents: ", "RESULT     nothing differs")
	kit.Lacks(t, "a field that the archive fills in counts as a difference", out, "DIFFERS")
}
