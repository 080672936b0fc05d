package intake

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/faults"
	"vaultd/internal/test/kit"
)

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
			kit.Want(t, "arrivals seen", l.ArrivalBalance().Seen, 0)
		})
	})
}
