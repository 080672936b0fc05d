package daemon

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/emulator"
	"vaultd/internal/extractapi"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

// booksAccount is the account of the extracts at the emulator.
var booksAccount = emulator.Account{Name: "books", Secret: "own"}

// zipWith is a ZIP with one file of this content.
func zipWith(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("records.json")
	if err == nil {
		_, err = io.WriteString(w, content)
	}
	kit.Must(t, errors.Join(err, z.Close()))
	return b.Bytes()
}

// offerExtract has the emulator offer an extract of two files, and returns how the daemon takes extracts in.
func (h *testDaemon) offerExtract() *Extracts {
	h.t.Helper()
	made := time.Now().Add(-time.Hour).UTC()
	h.must(h.emu.PublishExtract(emulator.PublishedExtract{ID: "4711", Type: archive.DeltaExtract, Name: "books", Start: made.AddDate(0, 0, -1), End: made, Made: made,
		Files: []emulator.PublishedFile{{Table: "IA_INVOICE", Name: "i.zip", Content: zipWith(h.t, "[1]")}, {Table: "ADM_SUPPLIER", Name: "s.zip", Content: zipWith(h.t, "[2]")}}}))
	h.must(h.emu.SetTableDefinition([]byte(`[{"Table name":"IA_INVOICE","Columns":[]}]`)))
	api, _, err := apicall.New(apicall.Config{BaseURL: "https://books.example", Transport: h.emu.Transport(), Now: time.Now, Auth: apicall.Auth{Method: apicall.Basic, Username: booksAccount.Name,
		Secret: func() (string, error) { return booksAccount.Secret, nil }}})
	h.must(err)
	client := extractapi.New(api)
	return &Extracts{Service: client, Acknowledger: client, Custody: h.t.TempDir(), Every: time.Hour, Workers: 2, MaxDownloads: 10, ToDrop: "acme-in", DocumentType: "Invoice"}
}

// dieAfterThePut ends the process once after that many folders were put into the drop folder, before the ledger knows of it.
func (h *testDaemon) dieAfterThePut(folders int32) {
	var put, died atomic.Int32
	files := durable.Hook(func(op, name string, do func() error) error {
		if op == "sync" && name == "0002-s.zip" && put.Load() == folders && died.Add(1) == 1 {
			return errors.New("the process dies here")
		}
		err := do()
		if op == "rename" && strings.HasPrefix(name, "Extract ") && err == nil {
			put.Add(1)
		}
		return err
	})
	h.files.Store(&files)
	h.cfg.LedgerFault = func(op string) error {
		if op == "commit" && put.Load() >= folders && died.Add(1) == 1 {
			return errors.New("the process dies here")
		}
		return nil
	}
}

// restart opens the daemon again after it died, with or without extracts.
func (h *testDaemon) restart(x *Extracts) {
	h.t.Helper()
	kit.Fails(h.t, "the process ended without an error", <-h.ended)
	_ = h.d.Close() // its ledger has failed
	h.cfg.Extracts, h.cfg.LedgerFault = x, nil
	h.files.Store(nil)
	h.again()
}

// wantHandedOn demands that both files are archived once, that the extract was acknowledged, and that nothing is left out of sight.
func (h *testDaemon) wantHandedOn() {
	h.t.Helper()
	a, _, err := h.d.Ledger().FindArrival(arrival.Extract, "4711")
	kit.Check(h.t, err == nil && a.State == arrival.Acknowledged && !a.HandedOnAt.IsZero(),
		"extract is %v for %v, handed on at %v (error %v), want %v and handed on", a.State, a.Cause, a.HandedOnAt, err, arrival.Acknowledged)
	h.onceEach("4711/i.zip", "4711/s.zip")
	kit.Len(h.t, "archived", h.archived(), 2)
	left, err := os.ReadDir(filepath.Join(h.path, ".vaultd", "incoming"))
	kit.Check(h.t, err == nil && len(left) <= 0, "left in the incoming folder: %v (error %v), want nothing", left, err)
}

// An extract comes, and its files end archived.
func TestHandOn_I1_ExtractEndsArchived(t *testing.T) {
	t.Parallel()
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		x := h.offerExtract()
		h.halt()
		h.cfg.Extracts = x
		h.again()
		h.pass()
		h.wantHandedOn()
		got, _ := h.entries() // in the order in which they were seen
		slices.Sort(got)
		kit.Want(t, "entries", got, []string{"Extract 4711 0001-i.zip archived", "Extract 4711 0002-s.zip archived"})
	})
}

// The process dies when files are in the drop folder and the ledger does not know it. They are found there by the next start, or were archived
// meanwhile, and what is put there once more is a duplicate: nothing is archived twice.
func TestHandOn_I2_CrashArchivesNothingTwice(t *testing.T) {
	t.Parallel()
	for _, folders := range []int32{1, 2} {
		for _, isTaken := range []bool{false, true} {
			withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
				x := h.offerExtract()
				h.halt()
				h.cfg.Extracts = x
				h.dieAfterThePut(folders)
				h.again()
				if isTaken {
					h.restart(nil)
					h.pass()
					got := h.archived()
					kit.Check(t, len(got) == int(folders), "archived before the extract continues = %v, want %d", got, folders)
					h.halt()
					h.cfg.Extracts = x
					h.again()
				} else {
					h.restart(x)
				}
				h.pass()
				h.pass()
				h.wantHandedOn()
				_, all := h.entries()
				duplicates := 0
				for _, e := range all {
					if e.State == ledger.Duplicate {
						duplicates++
					} else if e.State != ledger.Archived {
						t.Errorf("%s is %s, want %s", e.Folder, e.State, ledger.Archived)
					}
				}
				want := map[bool]int32{true: folders}[isTaken]
				kit.Check(t, !isTaken || duplicates == int(want), "duplicates = %d, want %d", duplicates, want)
			})
		}
	}
}

// While the drop folder is away nothing is lost and the service is not told; when it is back, the extract goes on.
func TestHandOn_I24_DropFolderIsAway(t *testing.T) {
	t.Parallel()
	withConfiguredDaemon(t, func(*Config) {}, func(h *testDaemon) {
		x := h.offerExtract()
		h.halt()
		h.must(os.Rename(h.path, h.path+".away"))
		h.cfg.Extracts = x
		h.again()
		h.pass()
		a, _, err := h.d.Ledger().FindArrival(arrival.Extract, "4711")
		if err != nil || a.State != arrival.Held || a.Cause.Code != "drop" || !a.HandedOnAt.IsZero() {
			t.Errorf("extract is %v for %v, handed on at %v (error %v), want %v for the drop, not handed on", a.State, a.Cause, a.HandedOnAt, err, arrival.Held)
		}
		h.must(os.Rename(h.path+".away", h.path))
		for range 4 {
			h.pass()
		}
		h.wantHandedOn()
	})
}
