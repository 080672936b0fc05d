package readings

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
	"vaultd/internal/test/outside"
	"vaultd/internal/vaultapi"
)

// damages changes the first packages behind the daemon's back, right after they were sealed: a byte of the time of
// their first file, which no checksum of a ZIP covers.
func damages(first int32) func(*daemon.Config) {
	return func(c *daemon.Config) {
		var sealed atomic.Int32
		spool := filepath.Join(c.StateDir, "spool")
		c.FileFault = func(op, name string, do func() error) error {
			err := do()
			if err != nil || op != "rename" || !strings.HasSuffix(name, ".zip") || sealed.Add(1) > first {
				return err
			}
			f, err := os.OpenFile(filepath.Join(spool, name), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteAt([]byte{0xa5}, 10)
			return err
		}
	}
}

// A package that was changed on the disk after it was sealed, at stores that do not look at Content-MD5: what is
// archived is what was sealed, and the registration that was open is used.
func TestReading_I4_APackageChangedOnTheDisk(t *testing.T) {
	kit.Rows(t, map[string]emulator.Readings{
		"StoreChecks":            {},
		"StoreIgnoresContentMD5": {ContentMD5: "ignore", ETag: "none"},
		"ItsETagIsMD5":           {ContentMD5: "ignore", ETag: "md5"},
		"StoreKeepsWhatEndsSoon": {ContentMD5: "ignore", ETag: "none", ShortBody: "keep"},
	}, func(t *testing.T, readings emulator.Readings) {
		virtual(t, setup{readings: readings, daemon: damages(2)}, func(t *testing.T, w *world) {
			w.archives(hour)
			w.onceEach()
			w.says("a package in the spool is no longer what was sealed")
		})
	})
}

// A 2xx that came before the whole package had left, or with words that are no object store's yes: the same bytes go to
// the same address, and nothing is called uploaded before.
func TestReading_I12_AYesToLessThanThePackage(t *testing.T) {
	for name, f := range map[string]emulator.Fault{
		"BeforeTheBody":            {Kind: emulator.Early},
		"AfterHalfOfIt":            {Kind: emulator.Early, IsAfterWork: true},
		"ErrorDocument":            {Kind: emulator.ErrorDocument},
		"ErrorDocumentThoughDone":  {Kind: emulator.ErrorDocument, IsAfterWork: true},
		"PageOfAPortal":            {Kind: emulator.HTML},
		"PageOfAPortalThoughDone":  {Kind: emulator.HTML, IsAfterWork: true},
		"AnswerCutThoughItIsEmpty": {Kind: emulator.Cut},
	} {
		for _, short := range []string{"refuse", "keep"} {
			t.Run(name+"/"+short, func(t *testing.T) {
				readings := emulator.Readings{ContentMD5: "ignore", ShortBody: short}
				virtual(t, setup{readings: readings, faults: first(2, "upload", f)}, func(t *testing.T, w *world) {
					w.archives(hour)
					w.onceEach()
				})
			})
		}
	}
}

// A store that takes packages of one type alone gets that one; the type that its address signs comes before it.
func TestReading_I4_TheTypeOfAPackage(t *testing.T) {
	kit.Rows(t, map[string]emulator.Readings{
		"ByTheConfiguration": {PackageType: "application/zip"},
		"ByTheTicket":        {PackageType: "application/octet-stream", URLForm: "headers"},
	}, func(t *testing.T, r emulator.Readings) {
		configured := func(c *vaultapi.Config) { c.ContentType = r.PackageType }
		virtual(t, setup{readings: r, vaultapi: configured}, func(t *testing.T, w *world) {
			w.archives(hour)
			w.onceEach()
		})
	})
}

// onceEach wants each document registered once.
func (w *world) onceEach() {
	w.t.Helper()
	for _, e := range w.entries() {
		kit.Check(w.t, e.State == ledger.Archived && e.Posts == 1,
			"%q is %s after %d registrations", e.Folder, e.State, e.Posts)
	}
}

// Stores that take no Content-MD5 where the address does not sign it get the
// same bytes at the same address without it, in one registration. The first
// uploads carry it, those after the first success do not.
func TestReading_I25_StoresThatRefuseContentMD5(t *testing.T) {
	for _, way := range []string{"unsigned", "mismatch", "unknown"} {
		t.Run(way, func(t *testing.T) {
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

// proven holds ledger and service against each other, and looks for secrets.
func (w *world) proven() {
	w.t.Helper()
	w.settled()
	l := w.daemon.Ledger()
	problems := kit.Value(l.Verify(w.t.Context()))(w.t)
	for _, p := range problems {
		w.t.Errorf("verify: %v", p)
	}
	findings, head := w.findings()
	for range 100 {
		if head == l.Head() {
			break
		}
		findings, head = w.findings() // something was committed meanwhile: they were not of one moment
	}
	for _, f := range findings {
		w.t.Errorf("proof: %v", f)
	}
	for _, v := range w.service.Violations() {
		w.t.Errorf("service: %s", v)
	}
	w.secretive()
}

// findings are those of the proof, and the end of the journal when they were looked for.
func (w *world) findings() ([]proof.Finding, ledger.Head) {
	w.t.Helper()
	seen := outside.Seen{Registrations: kit.Value(outside.RegistrationsOf(w.service.Registrations()))(w.t)}
	report := kit.Value(outside.Check(w.daemon.Ledger(), w.entries(), seen))(w.t)
	return report.Findings, report.Head
}

// said is everything that a person could have read: the log and every cause.
func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(w.log.String(), `\"`, `"`))
	for text := range w.heard {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// says wants all the words to have been said to a person.
func (w *world) says(words ...string) {
	w.t.Helper()
	said := w.said()
	kit.Holds(w.t, "the log", said, words...)
}

// secretive wants no secret in what was said (I7), and no credential at a host that is not the service's (I20).
func (w *world) secretive() {
	w.t.Helper()
	said := w.said()
	kit.Lacks(w.t, "the log", said, "S3cr3t", "canary", "X-Amz-Signature=", "X-Amz-Security-Token=", "eyJhbGciOi")
	for _, c := range w.sentTo(storeHost) {
		kit.Check(w.t, !c.authorized, "I20: credentials at the store: %+v", c)
	}
}

// waits wants every document to be on its way: none lost, none blamed, none archived (I24).
func (w *world) waits() {
	w.t.Helper()
	w.settled()
	es := w.entries()
	kit.Want(w.t, "entries", len(es), len(w.dropped))
	for _, e := range es {
		kit.Check(w.t, e.State.IsOpen() && !e.NeedsPerson(),
			"I24: %q is %s while the route should rest: %+v", e.Folder, e.State, e.Cause)
	}
	w.proven()
}
