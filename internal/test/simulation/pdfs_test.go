package simulation

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// TestSetBack_I2_PDFsAreNeverSentAgain sets the machine back, or has its ledger made anew, while single PDFs are delivered, doubted, packed,
// and not taken yet. Nobody can ask their service, so nothing that may have been delivered is sent again before a person says so. What
// the folders prove stays delivered, and one who looks first has each delivered once.
func TestSetBack_I2_PDFsAreNeverSentAgain(t *testing.T) {
	kit.Rows(t, map[string]SetBack{"LedgerAlone": LedgerAlone, "WholeState": WholeState, "MadeAnew": MadeAnew}, func(t *testing.T, how SetBack) {
		kit.ParallelBubble(t, func(t *testing.T) {
			w := New(t, several(15))
			const scans = 2
			at := func(op string, b Blow) {
				w.SetPlan(func(o Op) Strike { return Strike{Blow: map[bool]Blow{true: b}[o.Name == op]} })
			}
			w.Start()
			w.DropFolders(0, MakeFolder(15, 0, Good))
			delivered := MakePDF(15, 0, Scan)
			w.DropFolders(scans, delivered)
			w.Advance(10 * time.Minute)
			at("pdf-upload", FailDone)
			w.DropFolders(scans, MakePDF(15, 1, Scan)) // nobody knows whether it is there, and it is
			w.Advance(10 * time.Minute)
			at("pdf-upload", Fail)
			w.DropFolders(scans, MakePDF(15, 2, Scan)) // and this is not
			w.Advance(10 * time.Minute)
			at("pdf-register", Fail)
			w.DropFolders(scans, MakePDF(15, 3, Scan)) // packed when the copy is made, delivered after it
			w.Advance(5 * time.Minute)
			w.Snapshot()
			w.SetPlan(nil)
			w.DropFolders(scans, MakePDF(15, 4, Scan)) // the copy knows nothing of it
			w.Advance(2 * time.Hour)
			at("pdf-register", Fail)
			w.DropFolders(scans, MakePDF(15, 5, Scan)) // claimed, and never registered
			w.Advance(10 * time.Minute)
			w.SetPlan(nil)
			w.SetBack(how)
			posts, puts := w.emulator.CountCalls("pdf-register"), w.emulator.CountCalls("pdf-upload")
			w.DropFolders(scans, delivered.CopyPDFToDropAgain(1), MakePDF(15, 4, Scan).CopyPDFToDropAgain(1))
			w.RunUntilCalm(72 * time.Hour)
			if w.emulator.CountCalls("pdf-register") != posts || w.emulator.CountCalls("pdf-upload") != puts {
				t.Error("something was sent, and nobody said so")
			}
			w.DropFolders(scans, MakePDF(15, 6, Scan)) // what is new is sent as ever
			w.Advance(time.Hour)
			for range 5 { // he leaves some for later
				w.DecideDeliveries(rand.New(rand.NewPCG(15, uint64(w.deaths))), true)
				w.RunUntilCalm(72 * time.Hour)
			}
			o := w.Check(false)
			times := map[string]int{}
			for _, s := range w.emulator.PDFSlots() {
				for _, p := range s.PUTs {
					times[p.SHA256]++
				}
			}
			for n := range 7 {
				kit.Want(t, fmt.Sprintf("PDF %d was delivered", n), times[MakePDF(15, n, Scan).digest()], 1)
			}
			for _, f := range []string{delivered.Name, MakePDF(15, 4, Scan).Name, MakePDF(15, 6, Scan).Name} {
				if e := o.EntryOf(f); e == nil || e.State != ledger.Delivered || e.PossibleDouble {
					t.Errorf("%q: %+v, want e other than nil, e.State = ledger.Delivered, not e.PossibleDouble", f, e)
				}
			}
		})
	})
}

// TestSetBack_I2_ClosedPDFDroppedAgain has a ledger made anew after a person closed a PDF that the service has. Its folder says that it was
// closed in doubt. Whoever drops the file again gets it back: nothing sends it a second time.
func TestSetBack_I2_ClosedPDFDroppedAgain(t *testing.T) {
	kit.Rows(t, map[string]SetBack{"LedgerAlone": LedgerAlone, "WholeState": WholeState, "MadeAnew": MadeAnew}, func(t *testing.T, how SetBack) {
		kit.ParallelBubble(t, func(t *testing.T) {
			w := New(t, several(16))
			const scans = 2
			closed, other := MakePDF(16, 1, Scan), MakePDF(16, 2, Scan)
			w.Start()
			w.DropFolders(0, MakeFolder(16, 0, Good))
			w.Advance(5 * time.Minute)
			w.Snapshot()
			w.SetPlan(func(o Op) Strike { return Strike{Blow: map[bool]Blow{true: FailDone}[o.Name == "pdf-upload"]} })
			w.DropFolders(scans, closed, other, MakePDF(16, 3, TextScan))
			w.Advance(20 * time.Minute)
			w.SetPlan(nil)
			for n := range uint64(4) {
				w.DecideDeliveries(rand.New(rand.NewPCG(16, n)), true)
				w.Advance(10 * time.Minute)
			}
			w.SetBack(how)
			w.RunUntilCalm(72 * time.Hour)
			puts := w.emulator.CountCalls("pdf-upload")
			w.DropFolders(scans, closed.CopyPDFToDropAgain(1), other.CopyPDFToDropAgain(1))
			w.RunUntilCalm(72 * time.Hour)
			kit.Want(t, "uploads", w.emulator.CountCalls("pdf-upload"), puts)
			o := w.Check(false)
			for _, f := range []Folder{closed.CopyPDFToDropAgain(1), other.CopyPDFToDropAgain(1)} {
				e := o.EntryOf(f.Name)
				kit.Check(t, e != nil && e.State == ledger.Rejected, "%+v, want e other than nil, e.State = ledger.Rejected", e)
			}
		})
	})
}
