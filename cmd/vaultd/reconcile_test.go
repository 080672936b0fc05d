package main_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// I15, I29, I32: an index that keeps giving a wrong number keeps safe mode, and
// says so with both numbers, until an operator accepts it. Every audit and
// verify say so from then on. With a running daemon and without one.
func TestReconcile_I15_I29_I32_AcceptedIndex(t *testing.T) {
	t.Parallel()
	for name, inside := range map[string]bool{"InsideTheDaemon": true, "BesideNone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond, Readings: emulator.Readings{IndexFound: "more"}})
			s := newSite(t, url, fast)
			s.dropped("acme", "before", 2)
			p := s.start("run")
			s.calm(2)
			backup := filepath.Join(s.dir, "backup.db")
			s.must(0, "backup", backup)
			s.dropped("acme", "after", 1)
			s.calm(3)
			kit.Await(t, "all folders to be kept", func() bool { // a claimed one would pass for one that is still to be archived
				kept, err := filepath.Glob(filepath.Join(s.dir, "acme", "_archived", "*", "*"))
				return err == nil && len(kept) == 3
			})
			p.stop(t)
			s.move("state", "lost")
			s.must(0, "restore", backup)
			if inside {
				s.start("run")
				s.listens()
			}
			out := s.must(exitPerson, "reconcile")
			kit.Holds(t, "reconcile", out, "Vault ACME: the index gave 3 of 1003 documents. Nothing is concluded from it; safe mode stays. Run reconcile again; if it lasts, show the provider request ",
				"INCOMPLETE the index gave 0 of 1000 documents", "RESULT     SAFE MODE stays", "an index was not read to its end")
			for _, wrong := range [][]string{
				{"reconcile", "--accept-index", "ACME=3/1003"},
				{"reconcile", "--accept-index", "3/1003", "--reason", "two vaults are configured"},
				{"reconcile", "--accept-index", "ACME=3", "--reason", "no second number"},
				{"reconcile", "--accept-index", "OTHER=3/1003", "--reason", "not configured"},
				{"reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "ACME=0/1000", "--reason", "twice"},
			} {
				s.must(exitUsage, wrong...)
			}
			if out := s.must(exitPerson, "reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "BETA=0/999", "--reason", "half"); !strings.Contains(out, "It is not accepted: --accept-index names 0 of 999 documents.") {
				t.Errorf("an index was accepted that lacks more than was said:\n%s", out)
			}
			var told struct {
				Safe   bool `json:"safeMode"`
				Vaults []struct {
					Index struct {
						Read, Found        int
						Complete, Accepted bool
						RequestID          string
					}
				}
			}
			kit.Must(t, json.Unmarshal([]byte(strings.SplitN(s.must(exitPerson, "reconcile", "--json"), "\n", 2)[0]), &told))
			if i := told.Vaults[0].Index; !told.Safe || i.Read != 3 || i.Found != 1003 || i.Complete || i.Accepted || i.RequestID == "" {
				t.Errorf(`%+v, want told.Safe, i.Read = 3, i.Found = 1003, not i.Complete, not i.Accepted, i.RequestID other than ""`, told)
			}
			out = s.must(0, "reconcile", "--accept-index", "ACME=3/1003", "--accept-index", "BETA=0/1000", "--reason", "the provider counts deleted ones, ticket 4711")
			kit.Holds(t, "accepted", out, "safe mode is over", "ACCEPTED   the index gave 3 of 1003 documents")
			kit.Holds(t, "verify",
				s.must(0, "verify"), "  3 times an index", "vault ACME gave 3 of 1003 documents; accepted by uid")
			if out, _ := s.vaultd("audit", "--json"); !strings.Contains(out, "the archive's index of vault BETA gave 0 of 1000 documents. A person") || !strings.Contains(out, "ticket 4711") {
				t.Errorf("audit:\n%s", out)
			}
			onceEach(t, emu, 3)
		})
	}
}

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
