package arrivals

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/emulator"
	"vaultd/internal/extractapi"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/faults"
	"vaultd/internal/test/kit"
)

// newEmulated puts the emulator and its client in place of the tiny service.
func newEmulated(t *testing.T, h *house, readings emulator.ExtractReadings) *emulator.Server {
	return newEmulatedAt(t, h, readings, []string{"files.example"})
}

// newEmulatedAt is newEmulated with the hosts that redirects without a signature may lead to.
func newEmulatedAt(t *testing.T, h *house, readings emulator.ExtractReadings, hosts []string) *emulator.Server {
	t.Helper()
	own := emulator.Account{Name: "books", Secret: "own"}
	s, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "u", Secret: "s", ClientID: "main", ClientSecret: "s", Vaults: []emulator.Vault{{ID: "V"}},
		Clock: time.Now, Extracts: emulator.Extracts{Account: own, FilesURL: "https://files.example"}, Readings: emulator.Readings{Extracts: readings}})
	kit.Must(t, err)
	h.askAt(s, hosts)
	for n := range 3 {
		made := time.Now().Add(-time.Hour).UTC().Truncate(time.Second)
		kit.Must(t, s.PublishExtract(emulator.PublishedExtract{ID: fmt.Sprint("e", n), Type: archive.DeltaExtract, Name: "books", Start: made.AddDate(0, 0, -1), End: made, Made: made,
			Files: []emulator.PublishedFile{{Table: "IA_INVOICE", Name: "i.zip", Content: content("i")}, {Table: "ADM_SUPPLIER", Name: "s.zip", Content: content(fmt.Sprint("s", n))}}}))
	}
	kit.Must(t, s.SetTableDefinition([]byte(`[{"Table name":"IA_INVOICE","Columns":[]}]`)))
	return s
}

// askAt makes the engine ask the emulator, with the hosts that redirects without a signature may lead to.
func (h *house) askAt(s *emulator.Server, hosts []string) {
	h.t.Helper()
	api, _, err := apicall.New(apicall.Config{BaseURL: "https://books.example", RedirectHosts: hosts, Transport: s.Transport(), Now: time.Now,
		Auth: apicall.Auth{Method: apicall.OAuth2, Username: "books", Secret: func() (string, error) { return "own", nil }, Scopes: []string{extractapi.ReadScope, extractapi.WriteScope}}})
	kit.Must(h.t, err)
	h.real, h.hosts = extractapi.New(api), fmt.Sprint(hosts)
}

// checkService demands that everything was acknowledged, and that the service saw nothing that a correct client never does.
func checkService(t *testing.T, h *house, s *emulator.Server) {
	t.Helper()
	for _, x := range s.PublishedExtracts() {
		a := h.want(archive.ExtractID(x.ID), arrival.Acknowledged)
		kit.Check(t, x.IsAcknowledged, "extract %s is not acknowledged at the service, want it acknowledged", x.ID)
		for _, f := range x.Files {
			for _, had := range a.Files {
				if had.Name == f.Name && (int(had.Downloads) < f.Downloads || had.SHA256.String() != f.SHA256) {
					t.Errorf("%s of extract %s: downloads = %d, digest %s, want at least %d, %s", f.Name, x.ID, had.Downloads, had.SHA256, f.Downloads, f.SHA256)
				}
			}
		}
	}
	kit.Len(t, "violations that the service saw", s.Violations(), 0)
}

// A redirect to a host that is not listed costs one download in all, whatever
// the number of workers, extracts and restarts, until the configuration allows
// other hosts. Lists and acknowledgements go on meanwhile.
func TestIntake_I20_I25_UnlistedHostCostsOneDownload(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := newEmulatedAt(t, h, emulator.ExtractReadings{Download: "redirect-auth"}, nil)
		defer s.Close()
		kit.Must(t, h.live(72*time.Hour))
		listed := s.CountCalls("extract-list")
		kit.Check(t, listed > 50, "lists = %d, want one each hour", listed)
		kit.Must(t, h.live(24*time.Hour)) // a restart
		kit.Want(t, "downloads", s.CountCalls("extract-download"), 1)
		kit.Want(t, "calls to the other host", s.CountCalls("extract-fetch"), 0)
		var counted uint64
		for n := range 3 {
			counted += h.want(archive.ExtractID(fmt.Sprint("e", n)), arrival.Fetching).Downloads()
		}
		kit.Want(t, "downloads that the ledger counts", counted, 1)
		h.askAt(s, []string{"files.example"})
		kit.Must(t, h.live(2*time.Hour))
		checkService(t, h, s)
		kit.Want(t, "downloads", s.CountCalls("extract-download"), 7)
	})
}

// In each reading of what the specification leaves open, extracts come in whole.
func TestReading_I30_Intake(t *testing.T) {
	kit.Rows(t, map[string]emulator.ExtractReadings{
		"AsKnown": {}, "RFC3339": {Times: "rfc3339"}, "Wrapped": {List: "wrapped"}, "Parts": {List: "parts"}, "Bytes": {Download: "bytes"}, "OtherHostWantsHeaders": {Download: "redirect-auth"},
		"Singular": {Acknowledge: "singular"}, "BothPaths": {Acknowledge: "both"}, "ExportedByDownload": {Exported: "download"},
	}, func(t *testing.T, readings emulator.ExtractReadings) {
		inHouse(t, func(t *testing.T, h *house) {
			s := newEmulated(t, h, readings)
			defer s.Close()
			kit.Must(t, h.live(time.Hour))
			checkService(t, h, s)
		})
	})
}

// I30: files that the service adds to an extract are held as they came,
// whatever they are, and named in the manifest. A page in the place of a
// table's file is none.
func TestReading_I30_ExtraFiles(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		s := newEmulated(t, h, emulator.ExtractReadings{})
		defer s.Close()
		kit.Must(t, s.PublishExtract(emulator.PublishedExtract{ID: "extra", Type: archive.DeltaExtract, Made: time.Now().Add(-time.Hour), Files: []emulator.PublishedFile{
			{Table: "IA_INVOICE", Name: "i.zip", Content: content("i")}, {Name: "readme.txt", Content: []byte("made by the export")}, {Name: "_SUCCESS.json"}}}))
		kit.Must(t, s.PublishExtract(emulator.PublishedExtract{ID: "page", Type: archive.DeltaExtract, Made: time.Now().Add(-time.Hour), Files: []emulator.PublishedFile{
			{Table: "IA_INVOICE", Name: "i.zip", Content: []byte("<html>sign in</html>")}}}))
		kit.Must(t, h.live(2*time.Minute))
		h.want("extra", arrival.Acknowledged)
		h.want("page", arrival.Fetching)
		c := kit.Value(custody.Open(h.kept, "ledger-1", "test", nil))(t)
		defer c.Close()
		m := kit.Value(c.Find("extra"))(t)
		kit.Must(t, c.Verify(t.Context(), m))
		kit.Want(t, "the forms in the manifest", fmt.Sprint(m.Files[0].Form, m.Files[1].Form, m.Files[2].Form, m.Files[1].Name), "zipplainplainreadme.txt")
	})
}

// I30: without a table definition, or with one of another form, an extract is
// held all the same: its files say what their columns are. A page in its place
// may pass, and is asked for again before.
func TestReading_I30_NoTableDefinition(t *testing.T) {
	for name, row := range map[string]struct {
		after time.Duration
		kept  bool
	}{"none": {time.Minute, false}, "page": {20 * time.Minute, false}, "other": {time.Minute, true}} {
		kit.Bubble(t, name, func(t *testing.T) {
			h := newHouse(t)
			s := newEmulated(t, h, emulator.ExtractReadings{Definition: name})
			defer s.Close()
			if kit.Must(t, h.live(time.Minute)); row.after > time.Minute {
				h.want("e0", arrival.Fetching)
			}
			kit.Must(t, h.live(row.after))
			checkService(t, h, s)
			c := kit.Value(custody.Open(h.kept, "ledger-1", "test", nil))(t)
			defer c.Close()
			m := kit.Value(c.Find("e0"))(t)
			kit.Must(t, c.Verify(t.Context(), m))
			kit.Want(t, "the definition is kept", m.Definition.Stored != "", row.kept)
		})
	}
}

// Faults of every kind at every call, with deaths between: afterwards everything is held and acknowledged, and the service saw no mistake.
func TestIntake_I30_FaultsOfTheEmulator(t *testing.T) {
	kinds := []emulator.Fault{{Kind: emulator.Abort}, {Kind: emulator.Abort, IsAfterWork: true}, {Kind: emulator.Status}, {Kind: emulator.Status, IsAfterWork: true},
		{Kind: emulator.HTML}, {Kind: emulator.Refuse}, {Kind: emulator.Cut}, {Kind: emulator.Garble}, {Kind: emulator.Truncate}, {Kind: emulator.Empty}, {Kind: emulator.Status, Status: 403}}
	struck := 0
	for seed := range uint64(12) {
		inHouse(t, func(t *testing.T, h *house) {
			s := newEmulated(t, h, emulator.ExtractReadings{})
			defer s.Close()
			r, deaths := rand.New(rand.NewPCG(seed, 30)), rand.New(rand.NewPCG(seed, 31))
			left := 4
			var mu sync.Mutex // two extracts are worked on at once
			kit.Must(t, s.SetFaults(emulator.Faults{Hook: func(op string, _ int) emulator.Fault {
				mu.Lock()
				defer mu.Unlock()
				if left == 0 || op == "token" || r.IntN(4) != 0 {
					return emulator.Fault{}
				}
				left--
				struck++
				return kinds[r.IntN(len(kinds))]
			}}))
			for range 3 {
				_ = h.live(time.Duration(1+deaths.IntN(600)) * time.Second)
				h.look(nil)
			}
			_ = h.live(12 * time.Hour)
			h.allowMore()
			kit.Must(t, s.SetFaults(emulator.Faults{}))
			_ = h.live(12 * time.Hour)
			checkService(t, h, s)
		})
		kit.Need(t, !t.Failed(), "seed %d failed, want each to succeed", seed)
	}
	kit.Check(t, struck >= 20, "%d faults were injected, want at least 20", struck)
}

// plant puts a fault into all seams of a house.
func (h *house) plant(f *faults.Fault) {
	f.On, h.commitFault, h.fileFault = true, f.Commit, f.File
	h.svc.fault = func(op string) (before, after error) {
		switch {
		case f.Full || !f.Hit(op):
			return nil, nil
		case f.Done:
			return nil, errCut
		}
		return &apicall.Error{Outcome: apicall.NotSent, Code: "no-connection", Text: "no connection"}, nil
	}
}

// TestIntake_I30_NthFailure fails each operation on files, commits and calls once, in both forms. After the fault everything is
// held and acknowledged, and at no moment was anything acknowledged that was not held.
func TestIntake_I30_NthFailure(t *testing.T) {
	faults.EachOperation(t, 1, 40, func(f *faults.Fault) {
		inHouse(t, func(t *testing.T, h *house) {
			h.svc.add("4711", "a", "b").added = true
			h.plant(f)
			if err := h.live(2 * time.Hour); err != nil {
				h.look(nil) // the process ended; what is on disk is sound
			}
			f.On = false
			_ = h.live(2 * time.Hour)
			h.want("4711", arrival.Acknowledged)
		})
	})
}

// TestIntake_I5_EndsInTheMiddle ends the engine at every second of its life: what was intended stands, and nothing is counted too low.
func TestIntake_I5_EndsInTheMiddle(t *testing.T) {
	for n := range 12 {
		inHouse(t, func(t *testing.T, h *house) {
			h.svc.add("4711", "a", "b", "c")
			h.svc.add("4712", "a", "b", "c")
			kit.Must(t, h.live(time.Duration(n)*500*time.Millisecond+time.Millisecond))
			h.look(nil)
			_ = h.live(2 * time.Hour)
			h.want("4711", arrival.Acknowledged)
			h.want("4712", arrival.Acknowledged)
		})
	}
}

// A ledger that was put back never counts fewer downloads than it did, and takes no more than one by itself: a person decides.
func TestIntake_I11_PutBackLedger(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		k := h.svc.add("4711", "a")
		cuts := 1
		h.svc.fault = func(op string) (error, error) {
			if op == "download" && cuts > 0 {
				cuts--
				return nil, errCut
			}
			return nil, nil
		}
		_ = h.live(30 * time.Second)
		h.look(func(l *boltledger.Ledger) {
			kit.Must(t, l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkRestored, At: time.Now()}, nil))
		})
		_ = h.live(5 * time.Hour)
		if a := h.want("4711", arrival.Fetching); !a.UnknownPast || a.MostDownloads() != 1 || k.downloads["a"] != 1 {
			t.Errorf("unknown past %t, %d downloads, the service counted %d, want true, 1, 1", a.UnknownPast, a.MostDownloads(), k.downloads["a"])
		}
		h.allowMore()
		_ = h.live(5 * time.Hour)
		h.want("4711", arrival.Acknowledged)
	})
}

// Custody that is not what its manifest says is not adopted, so nothing is acknowledged because of it.
func TestIntake_I30_DamagedCustodyIsNotAdopted(t *testing.T) {
	inHouse(t, func(t *testing.T, h *house) {
		h.acknowledge = false
		k := h.svc.add("4711", "a")
		_ = h.live(2 * time.Hour)
		h.want("4711", arrival.Held)
		kept := filepath.Join(h.kept, "extracts", "4711", "files", "0001-a")
		b := kit.Value(os.ReadFile(kept))(t)
		b[len(b)/2] ^= 1
		kit.Must(t, os.WriteFile(kept, b, 0o640))
		h.state = t.TempDir()
		kit.Must(t, boltledger.Create(h.state, ledger.Info{ID: "ledger-1", Environment: "test", BaseURL: "https://archive.example", Created: time.Now()}))
		h.acknowledge, k.gone = true, true
		_ = h.live(2 * time.Hour)
		kit.Want(t, "an extract whose custody is damaged was acknowledged", k.acked, 0)
		h.look(func(l *boltledger.Ledger) {
			kit.Must(t, l.Arrivals(func(a arrival.Arrival) error { t.Errorf("an arrival = %+v, want none", a); return nil }, arrival.States()...))
		})
	})
}
