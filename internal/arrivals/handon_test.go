package arrivals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/drop"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/faults"
	"vaultd/internal/test/kit"
)

// putter is a real drop folder.
type putter struct {
	h  *house
	to *drop.Folder
}

func (p putter) PutFolder(ctx context.Context, f archive.DropFolder) error {
	if p.h.puts.Add(1); p.h.away != nil {
		return p.h.away
	}
	f.SidecarName = "metadata.json"
	_, err := p.to.PutFolder(ctx, f)
	return err
}

// newArchivingHouse is a house whose extracts are archived, and whose service complains when one is acknowledged that is not in the drop folder.
func newArchivingHouse(t *testing.T) *house {
	h := newHouse(t)
	h.into = t.TempDir()
	h.svc.beforeAcknowledge = func(id archive.ExtractID) {
		for i, name := range h.svc.have[id].files {
			_, err := os.Stat(h.dropped(id, i, name))
			kit.Check(t, err == nil, "extract %s is acknowledged, want %s in the drop folder before (error %v)", id, name, err)
		}
	}
	return h
}

// dropped is where a file lies in the drop folder.
func (h *house) dropped(id archive.ExtractID, i int, name string) string {
	stored := fmt.Sprintf("%04d-%s", i+1, name)
	return filepath.Join(h.into, fmt.Sprintf("Extract %s %s", id, stored), stored)
}

// wantInDrop demands that every file of an arrival lies in the drop folder once, with its metadata, and that nothing is left beside.
func (h *house) wantInDrop(a arrival.Arrival) {
	h.t.Helper()
	numbers := map[string]int{}
	for i, f := range a.Files {
		path := h.dropped(a.Item, i, f.Name)
		if b, err := os.ReadFile(path); err != nil || archive.Sum(b) != f.SHA256 {
			h.t.Errorf("extract %s is handed on, want %s in the drop folder with digest %s (error %v)", a.Item, f.Name, f.SHA256, err)
			continue
		}
		var meta sidecar
		b, err := os.ReadFile(filepath.Join(filepath.Dir(path), "metadata.json"))
		if err := errors.Join(err, json.Unmarshal(b, &meta)); err != nil || meta.Number != string(a.Item)+"/"+f.Name || meta.Type != "Invoice" || meta.Date != a.Made.UTC().Format(time.RFC3339) {
			h.t.Errorf("metadata.json = %s (error %v), want an invoice with the number and date of the file", b, err)
		}
		numbers[meta.ID]++
	}
	kit.Len(h.t, "identities", numbers, len(a.Files))
	left, err := os.ReadDir(filepath.Join(h.into, ".vaultd", "incoming"))
	kit.Check(h.t, err == nil && len(left) <= 0, "left in the incoming folder: %v (error %v), want nothing", left, err)
}

// countDropped counts the folders in the drop folder.
func (h *house) countDropped() int {
	all := kit.Value(filepath.Glob(filepath.Join(h.into, "Extract *")))(h.t)
	return len(all)
}

// Each file is in the drop folder before the service is told, also of an extract that was held before anybody asked for it.
func TestHandOn_I30_BeforeTheAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newArchivingHouse(t)
		h.svc.add("4711", "a", "b")
		into := h.into
		h.acknowledge, h.into = false, ""
		_ = h.live(2 * time.Hour)
		a := h.want("4711", arrival.Held)
		kit.Check(t, a.HandedOnAt.IsZero(), "handed on at %v, want not at all: no drop folder is configured", a.HandedOnAt)
		h.into = into
		_ = h.live(2 * time.Hour)
		a = h.want("4711", arrival.Held)
		kit.Check(t, !a.HandedOnAt.IsZero(), "the extract is not handed on, want it handed on")
		h.acknowledge = true
		h.svc.add("4712", "a", "b", "c")
		_ = h.live(2 * time.Hour)
		h.want("4711", arrival.Acknowledged)
		if a := h.want("4712", arrival.Acknowledged); a.HandedOnAt.IsZero() || h.countDropped() != 5 {
			t.Errorf("handed on at %v, %d folders, want a time and 5", a.HandedOnAt, h.countDropped())
		}
	})
}

// TestHandOn_I30_NthFailure fails each operation on files and commits once, in both forms, and the process ends where it must. Afterwards each file is
// in the drop folder once and the extract is acknowledged; at no moment was it called handed on or acknowledged without that.
func TestHandOn_I30_NthFailure(t *testing.T) {
	faults.EachOperation(t, 1, 40, func(f *faults.Fault) {
		synctest.Test(t, func(t *testing.T) {
			h := newArchivingHouse(t)
			h.svc.add("4711", "a", "b")
			into := h.into
			h.acknowledge, h.into = false, ""
			_ = h.live(time.Hour)
			h.acknowledge, h.into = true, into
			h.plant(f)
			_ = h.live(2 * time.Hour)
			f.On = false
			h.look(nil) // what is on disk is sound
			_ = h.live(2 * time.Hour)
			if h.want("4711", arrival.Acknowledged); h.countDropped() != 2 {
				t.Errorf("%d folders, want 2", h.countDropped())
			}
		})
	})
}

// A drop folder that is away or full loses nothing: it is told, tried again, and the acknowledgement waits. What is there is not written again.
func TestHandOn_I24_WaitsForTheDropFolder(t *testing.T) {
	for code, fault := range map[string]error{CauseDrop: errors.New("the drop folder is not there"), causeDropFull: unix.ENOSPC} {
		synctest.Test(t, func(t *testing.T) {
			h := newArchivingHouse(t)
			k := h.svc.add("4711", "a", "b")
			h.away = fault
			_ = h.live(5 * time.Hour)
			if a := h.want("4711", arrival.Held); a.Cause.Code != code || !a.HandedOnAt.IsZero() || k.acked != 0 {
				t.Errorf("cause = %v, handed on at %v, acknowledged %d times, want %s, not at all, 0", a.Cause, a.HandedOnAt, k.acked, code)
			}
			h.away = nil
			_ = h.live(2 * time.Hour)
			if a := h.want("4711", arrival.Acknowledged); a.Cause.Code != "" || h.countDropped() != 2 {
				t.Errorf("cause = %v, %d folders, want none, 2", a.Cause, h.countDropped())
			}
		})
	}
}

// A folder that may or may not be durable in the drop folder ends the process,
// and nothing is put there again before the next start.
func TestHandOn_I2_UnknownPlaceIsNotTriedAgain(t *testing.T) {
	for range 20 { // it may be tried again before the process ends, or not
		synctest.Test(t, func(t *testing.T) {
			h := newArchivingHouse(t)
			h.svc.add("4711", "a")
			h.away = fmt.Errorf("put the folder: %w", custody.ErrUnknownPlace)
			kit.Fails(t, "the engine went on", h.live(5*time.Hour), custody.ErrUnknownPlace)
			kit.Want(t, "times that the folder was put", h.puts.Load(), 1)
		})
	}
}

// A file that is taken from the drop folder while another one finds it full is not put there again and again.
func TestHandOn_PutsEachFileOnceInOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newArchivingHouse(t)
		h.svc.beforeAcknowledge = nil
		h.svc.add("4711", "a", "b")
		puts := 0
		h.fileFault = func(op, name string, do func() error) error {
			switch {
			case op == "rename" && strings.HasPrefix(name, "Extract "):
				if puts++; strings.HasSuffix(name, "a") {
					return errors.Join(do(), os.RemoveAll(filepath.Join(h.into, name))) // somebody takes it
				}
			case op == "write" && name == "0002-b":
				return unix.ENOSPC
			}
			return do()
		}
		_ = h.live(5 * time.Hour)
		h.look(func(l *boltledger.Ledger) {
			if a, _, err := l.FindArrival(arrival.Extract, "4711"); err != nil || a.Cause.Code != causeDropFull || puts != 1 {
				t.Errorf("cause = %v (error %v), put %d times, want %s, once", a.Cause, err, puts, causeDropFull)
			}
		})
	})
}

// Custody that is not what was recorded is not archived.
func TestHandOn_I4_DamagedCustody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newArchivingHouse(t)
		k := h.svc.add("4711", "a")
		h.away = errors.New("away")
		_ = h.live(time.Hour)
		kept := filepath.Join(h.kept, "extracts", "4711", "files", "0001-a")
		b := kit.Value(os.ReadFile(kept))(t)
		b[len(b)/2] ^= 1
		kit.Must(t, os.WriteFile(kept, b, 0o640))
		h.away = nil
		_ = h.live(2 * time.Hour)
		if h.countDropped() != 0 || k.acked != 0 {
			t.Errorf("%d folders, acknowledged %d times, want 0, 0", h.countDropped(), k.acked)
		}
		b[len(b)/2] ^= 1
		kit.Must(t, os.WriteFile(kept, b, 0o640))
		_ = h.live(2 * time.Hour)
		h.want("4711", arrival.Acknowledged)
	})
}

// Whatever the service calls its extracts and files: their numbers are valid and differ, and their folders can be taken.
func TestHandOn_NamesAndNumbers(t *testing.T) {
	long := strings.Repeat("ü", 120)
	seen := map[string]bool{}
	for _, name := range []string{"a.zip", long + "1", long + "2", "tab\there", "bad\xff"} {
		number := documentNumber("4711", name)
		d := archive.Document{Type: "Invoice", Number: number, Date: "2026-10-31T00:00:00Z"}
		if faults := d.Faults(); len(faults) > 0 || !utf8.ValidString(number) || strings.ContainsAny(number, "\t") || seen[number] {
			t.Errorf("document number %q has faults %v, want none, and each number once", number, faults)
		}
		seen[number] = true
	}
	for _, stored := range []string{"0001-a.zip", "0001-a.PART", "0001-a.tmp", "0001-a.zip.other-1"} {
		if name := fileNameInDrop(stored); !strings.HasPrefix(name, stored) || strings.HasSuffix(strings.ToLower(name), ".tmp") || strings.HasSuffix(strings.ToLower(name), ".part") {
			t.Errorf("name in the drop folder = %q, want it to begin with %q and to end with no mark of a part", name, stored)
		}
	}
	id := archive.ExtractID(strings.Repeat("x", 199) + ":")
	if name := folderNameInDrop(id, "0001-a.zip"); len(name) > maxFolderName || !strings.HasSuffix(name, " 0001-a.zip") {
		t.Errorf("folder name = %q, want at most %d bytes that end with the file name", name, maxFolderName)
	}
	kit.Want(t, "the folder", folderNameInDrop("a:b", "0001-a.zip"), "Extract a_b 0001-a.zip")
}

// sidecar is the metadata of one file of an extract, in the form of a drop folder.
type sidecar struct {
	ID     string   `json:"clientUUID"`
	Type   string   `json:"documentType"`
	Number string   `json:"documentId"`
	Date   string   `json:"documentDate"`
	Files  []string `json:"files"` // for a drop folder that wants a list of them
}

// twoStores is a service whose links lead to two hosts. Downloads from one of
// them are redirected to a host that is not allowed.
type twoStores struct {
	*service
	lost *atomic.Int32 // downloads from it
}

func (s twoStores) Files(ctx context.Context, id archive.ExtractID) ([]archive.ExtractFile, error) {
	files, err := s.service.Files(ctx, id)
	for i := range files {
		files[i].URL = "https://good.example/x"
		if strings.HasPrefix(string(id), "bad") {
			files[i].URL = "https://BAD.example/x"
		}
	}
	return files, err
}

func (s twoStores) Download(ctx context.Context, f archive.ExtractFile, w io.Writer) (int64, error) {
	if f.URL == "https://BAD.example/x" {
		s.lost.Add(1)
		why := &apicall.PolicyError{Host: "eu.example", IsUnlisted: true}
		return 0, &apicall.Error{Outcome: apicall.NotProcessed, Sent: true, Code: "policy", Text: "host eu.example refused", Err: why}
	}
	return s.service.Download(ctx, f, w)
}

// What leads to a refused host waits, one download being lost. What leads
// elsewhere comes in and is acknowledged, before and after a restart.
func TestIntake_I23_I25_ARefusedHostDelaysNoOther(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := twoStores{h.svc, new(atomic.Int32)}
		h.real, h.hosts = s, "one"
		for _, id := range []archive.ExtractID{"bad1", "good1", "bad2", "good2"} {
			h.svc.add(id, "a", "b")
		}
		kit.Must(t, h.live(3*time.Hour))
		h.svc.add("bad3", "a")
		h.svc.add("good3", "a")
		kit.Must(t, h.live(3*time.Hour))
		kit.Want(t, "downloads lost", s.lost.Load(), 1)
		for _, id := range []archive.ExtractID{"good1", "good2", "good3"} {
			h.want(id, arrival.Acknowledged)
		}
		h.hosts = "two" // another configuration: one try tells that it does not help
		kit.Must(t, h.live(3*time.Hour))
		kit.Want(t, "downloads lost, once the hosts changed", s.lost.Load(), 2)
	})
}
