package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/emulator"
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
			kit.Check(t, w.emulator.CountCalls("pdf-register") == posts && w.emulator.CountCalls("pdf-upload") == puts,
				"something was sent, and nobody said so")
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

// sendingSoon is a world with one drop for the business network beside that of a vault, in which everything ends within hours.
func sendingSoon(seed uint64, outcomes ...emulator.OutcomeRate) Config {
	cfg := soon(seed)
	cfg.Network = oneNetworkDrop()
	with := cfg.Emulator
	cfg.Emulator = func(c *emulator.Config) {
		with(c)
		c.Network.DeliverMin, c.Network.DeliverMax, c.Network.DecideAfter, c.Network.RejectAfter = time.Minute, time.Hour, time.Hour, 3*time.Hour
		c.Network.Outcomes = outcomes
	}
	return cfg
}

// archivingSoon is such a world in which copies of what is sent are archived.
func archivingSoon(seed uint64, outcomes ...emulator.OutcomeRate) Config {
	cfg := sendingSoon(seed, outcomes...)
	cfg.Network.Copies = true
	return cfg
}

// TestCopies_I1_FaultAtEveryFileAndCommit strikes what is done for a copy, one operation after the other, in each form: each copy is archived once, and
// no source is placed without it.
func TestCopies_I1_FaultAtEveryFileAndCommit(t *testing.T) {
	sampled := isSampled(t, "a fault at each file and commit of a copy")
	strikeBeforePlace(t, sampled, "delivered", "incoming", map[Seam]int{Files: 30, Commits: 4}, func(n uint64) Config {
		return archivingSoon(n, emulator.OutcomeRate{Outcome: "delivered", Rate: 1})
	}, func(o Outcome) bool {
		return len(o.EntriesIn(ledger.Archived)) == 1 && len(o.EntriesIn(ledger.Delivered)) == 1
	})
}

// strikeBeforePlace strikes one operation after the other, from the first one on a file with that word in its name, in each form, while one document is
// sent. ended reports whether all ended as it should.
func strikeBeforePlace(t *testing.T, sampled bool, name, from string, most map[Seam]int, of func(seed uint64) Config, ended func(Outcome) bool) {
	for _, seam := range []Seam{Files, Commits} {
		for b := Fail; b <= DieDone; b++ {
			t.Run(fmt.Sprintf("%s/%s/%v", name, seam, b), func(t *testing.T) {
				t.Parallel()
				step := 1
				if sampled {
					step = max(most[seam]/3, 1)
				}
				for n := 1; n <= most[seam]; n += step {
					kit.Check(t, strikeFrom(t, of(uint64(n)), from, seam, b, n, ended),
						"vacuous: nothing was struck at %d", n)
					kit.Need(t, !t.Failed(), "%s %s %v at %d", name, seam, b, n)
				}
			})
		}
	}
}

// strikeFrom sends one document, with a strike at the n-th operation from the first file with that word in its name on, and reports whether it fired.
func strikeFrom(t *testing.T, cfg Config, from string, seam Seam, b Blow, n int, ended func(Outcome) bool) (fired bool) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, cfg)
		var hit atomic.Bool
		left, isCounted := n, false
		w.SetPlan(func(op Op) Strike {
			isCounted = isCounted || op.Seam == Files && strings.Contains(op.On, from)
			if op.Seam != seam || !isCounted {
				return Strike{}
			}
			if left--; left != 0 {
				return Strike{}
			}
			hit.Store(true)
			return Strike{Blow: b}
		})
		w.Start()
		w.DropFolders(outgoing, MakeDocument(21, 1, Document))
		w.Advance(4 * time.Hour)
		w.RunUntilCalm(72 * time.Hour)
		o := w.Check(false)
		kit.Check(t, ended(o), "%v, want ended(o)", o)
		fired = hit.Load()
	})
	return fired
}

const outgoing = 1 // the drop for the network of such a world

// sendTwo drops an invoice and a credit note with files, and what is dropped again once it came back.
func (w *World) sendTwo() {
	w.t.Helper()
	w.Start()
	w.DropFolders(0, MakeFolder(21, 0, Good))
	w.DropFolders(outgoing, MakeDocument(21, 1, Document), MakeDocument(21, 4, Document))
	w.Advance(5 * time.Hour)
	w.DropReturnedAgain(rand.New(rand.NewPCG(1, 1)))
}

// TestNetwork_I2_FaultAtEveryCommitAndCall strikes the first commits and the first calls of each kind of a world that sends over the network, in each
// form: it fails or the process dies, before or after it was done. Nothing is sent twice, and nothing is acknowledged that is not in the ledger.
func TestNetwork_I2_FaultAtEveryCommitAndCall(t *testing.T) {
	sampled := isSampled(t, "a fault at each commit and call of each outcome")
	for outcome, first := range map[string]emulator.OutcomeRate{"delivered": {Outcome: "delivered", Rate: 1}, "undelivered": {Outcome: "undelivered", Rate: 1}, "late-reject": {Outcome: "late-reject", Rate: 1}, "invalid": {Outcome: "invalid", Rate: 1}} {
		if sampled && outcome != "delivered" {
			continue
		}
		for _, seam := range []Seam{Commits, Calls} {
			for b := Fail; b <= DieDone; b++ {
				t.Run(fmt.Sprintf("%s/%s/%v", outcome, seam, b), func(t *testing.T) {
					t.Parallel()
					most := map[Seam]int{Commits: 6, Calls: 4}[seam]
					if sampled {
						most = 3
					}
					for n := 1; n <= most; n++ {
						kit.Check(t, strikeSending(t, sampled, seam, b, n, first),
							"vacuous: nothing was struck at %d", n)
						kit.Need(t, !t.Failed(), "%s %v at %d", seam, b, n)
					}
				})
			}
		}
	}
}

// strikeSending sends with a strike at the n-th operation of a seam that is about the network, and reports whether it fired.
func strikeSending(t *testing.T, sampled bool, seam Seam, b Blow, n int, outcome emulator.OutcomeRate) (fired bool) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, sendingSoon(uint64(n), outcome))
		var hit atomic.Bool
		left, isCounted := n, !sampled // a sample strikes the commits from the first document that is sent on
		w.SetPlan(func(op Op) Strike {
			// The calls are polls for the most part, so each kind of call has its own count, and the strike goes to all of one number.
			isCounted = isCounted || op.Name == "network-send"
			if op.Seam != seam || seam == Commits && !isCounted || seam == Calls && (!strings.HasPrefix(op.Name, "network-") || op.N != n) {
				return Strike{}
			}
			if left--; seam == Commits && left != 0 {
				return Strike{}
			}
			hit.Store(true)
			return Strike{Blow: b}
		})
		w.sendTwo()
		w.RunUntilCalm(72 * time.Hour)
		w.Check(false)
		fired = hit.Load()
	})
	return fired
}

// TestNetwork_I2_DroppedAgainAfterALateReject drops a document again that the network had called delivered and then rejected. It goes under
// another number, and both ends are told.
func TestNetwork_I2_DroppedAgainAfterALateReject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, sendingSoon(23, emulator.OutcomeRate{Outcome: "late-reject", Rate: 1}))
		first := MakeDocument(23, 1, Document)
		w.Start()
		w.DropFolders(outgoing, first)
		w.Advance(2 * time.Hour)
		w.DropFolders(outgoing, first.CopyDocumentToDropAgain(1)) // it counts as delivered now
		w.Advance(4 * time.Hour)
		w.DropFolders(outgoing, first.CopyDocumentToDropAgain(2))
		w.RunUntilCalm(72 * time.Hour)
		o := w.Check(false)
		second, third := o.EntryOf(first.CopyDocumentToDropAgain(1).Name), o.EntryOf(first.CopyDocumentToDropAgain(2).Name)
		if second == nil || second.State != ledger.Duplicate || third == nil || third.State != ledger.Delivered || third.Generation != 0 && third.PossibleDouble {
			t.Errorf("%+v\n%+v", second, third)
		}
		kit.Want(t, "the network has it times", len(w.emulator.SentDocuments()), 2)
	})
}

// TestNetwork_I8_NumberOfSomebodyElse has a document whose number is taken. A person looks and releases it, and it goes under another number,
// flagged.
func TestNetwork_I8_NumberOfSomebodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, sendingSoon(24))
		f := MakeDocument(24, 1, Document)
		w.OccupyNumber(f)
		w.Start()
		w.DropFolders(outgoing, f)
		w.RunUntilCalm(24 * time.Hour)
		kit.Want(t, "the network took documents", len(w.emulator.SentDocuments()), 0)
		for n := range uint64(5) { // he leaves some for later
			w.DecideDocuments(rand.New(rand.NewPCG(24, n)), true)
			w.RunUntilCalm(24 * time.Hour)
		}
		o := w.Check(false)
		if e := o.EntryOf(f.Name); e == nil || e.State != ledger.Delivered || !e.PossibleDouble {
			t.Errorf("%+v, want e other than nil, e.State = ledger.Delivered, e.PossibleDouble", e)
		}
	})
}

// receivingSoon is a world that receives documents over the business network.
func receivingSoon(seed uint64) Config {
	cfg := sendingSoon(seed)
	cfg.Network.Receives, cfg.Network.Confirms = true, true
	return cfg
}

// TestReceive_I30_IsArchivedOnce receives documents in a calm world.
func TestReceive_I30_IsArchivedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := New(t, receivingSoon(31))
		w.Start()
		w.DropFolders(0, MakeFolder(31, 0, Good))
		for n := range 20 {
			w.PublishReceived(n)
		}
		w.RunUntilCalm(72 * time.Hour)
		o := w.Check(false)
		kit.Want(t, "arrivals", len(o.Arrivals), 20)
	})
}
