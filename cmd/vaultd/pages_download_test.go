package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// What a visitor is told of a download that failed is what happened: no month ends where downloads are switched off, and a full disk of
// ours is not the archive's fault.
func TestPages_I26_DownloadThatFailedIsToldAsItWas(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		old, text string // of the configuration
		fault     emulator.Fault
		says      string
		status    int
	}{
		"SwitchedOff": {"downloads_per_month: 2", "downloads_per_month: 0", emulator.Fault{}, "Downloads are switched off.", http.StatusForbidden},
		"UsedUp":      {"downloads_per_month: 2", "downloads_per_month: 1", emulator.Fault{}, "The downloads of this month are used up.", http.StatusTooManyRequests},
		"NoRoom":      {"min_free: 1MB", "min_free: 9000TB", emulator.Fault{}, "There is no room for the download on the disk of vaultd.", http.StatusInsufficientStorage},
		"NotThere":    {"", "", emulator.Fault{Kind: emulator.Status, Status: http.StatusNotFound}, "The archive did not deliver the document.", http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			emu, service := serveEmulator(t, emulator.Config{ArchiveMax: 50 * time.Millisecond})
			s := newSite(t, service, fast)
			address := s.withPages()
			s.add("acme", "otto", 1)
			s.must(0, "run", "--once", "--wait")
			var row1 struct{ Key string }
			kit.Must(t, json.Unmarshal([]byte(s.must(0, "list", "--json")), &row1))
			if name == "UsedUp" {
				s.must(0, "fetch", "otto-0", "-o", filepath.Join(s.dir, "got.zip"))
			}
			if row.old != "" {
				s.edit(row.old, row.text)
			}
			if err := emu.SetFaults(emulator.Faults{Rules: []emulator.Rule{{Op: "download", Rate: 1, Fault: row.fault}}}); err != nil && row.fault != (emulator.Fault{}) {
				t.Fatal(err)
			}
			s.begin()
			awaitPort(t, address)
			anna := newReader(t, address)
			anna.signIn("anna")
			a := anna.send("/report", "/document/"+row1.Key+"/download", url.Values{})
			if a.code != row.status || !strings.Contains(a.body, row.says) {
				t.Errorf("%d, want %d and %q: %s", a.code, row.status, row.says, a.body)
			}
		})
	}
}

// A download leaves the room that the work needs: it is not begun where that is used up, and ends where it comes to be.
func TestDownload_I21_LeavesRoomForTheWork(t *testing.T) {
	if !apart(t) {
		return
	}
	s := newShelf(t)
	stored(t, s, []byte("PK"))
	sent := 0
	s.archiveIs(func(w http.ResponseWriter, _ *http.Request) {
		part := append([]byte("PK\x03\x04"), make([]byte, 1<<20)...)
		for sent = 1; sent < 200; sent++ {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	})
	kit.Must(t, s.ledger.Close())
	dir := filepath.Join(t.TempDir(), "state")
	kit.Must(t, os.Mkdir(dir, 0o700))
	small(t, dir, "size=120m")
	copyFiles(t, s.cfg.StateDir, dir)
	s.edit(s.cfg.StateDir, dir)
	s.edit("drops:", "spool: {min_free: 60MB}\ndrops:")
	fetch := func() (string, int) {
		_, errs, code := runHere("--config", s.config, "fetch", "Müller 4711", "-o", filepath.Join(t.TempDir(), "x.zip"))
		return errs, code
	}
	if errs, code := fetch(); code == exitDone || sent == 0 || sent > 100 || !strings.Contains(errs, "min_free") {
		t.Errorf("a disk that becomes full: exit %d after %d MB: %s", code, sent, errs)
	}
	s.edit("min_free: 60MB", "min_free: 500MB")
	sent = 0
	if errs, code := fetch(); code == exitDone || sent != 0 || !strings.Contains(errs, "nothing was downloaded") {
		t.Errorf("with a full disk: exit %d after %d MB: %s", code, sent, errs)
	}
}
