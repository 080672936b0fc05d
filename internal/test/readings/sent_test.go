package readings

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
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
		t.Parallel()
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
				t.Parallel()
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
		t.Parallel()
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
