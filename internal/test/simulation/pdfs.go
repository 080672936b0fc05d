package simulation

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/pdfapi"
	"vaultd/internal/test/outside"
	"vaultd/internal/watch"
)

// PDFs are the drop folders of single PDFs of a world. The zero value is none.
type PDFs struct {
	Drops          []PDFDrop
	RepeatsPut     bool // the same bytes may go to the same address again where nobody answered the first time
	OwnAccount     bool // credentials of its own
	Workers        int  // default 2
	Settle, Rescan time.Duration
}

// PDFDrop is one of them.
type PDFDrop struct {
	Receiving string // address of the PDF flow
	SendsSame bool   // the same PDF again is sent again
}

var pdfAccount = emulator.Account{Name: "pdf", Secret: "secret of pdf"}

const scanPrefix = "Scan"

// onePDFDrop is a drop of PDFs in a world in which everything happens soon.
func onePDFDrop() PDFs {
	return PDFs{Drops: []PDFDrop{{Receiving: "ap@in.example"}}, Settle: time.Second, Rescan: time.Minute}
}

// MakePDF returns the n-th thing of a seed that somebody drops where single PDFs are taken.
func MakePDF(seed uint64, n int, is Nature) Folder {
	r := rand.New(rand.NewPCG(seed, uint64(n)<<32))
	name := fmt.Sprintf("%s %d-%d ä.pdf", scanPrefix, seed, n)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%%PDF-1.7\n%%\xe2\xe3\xcf\xd3\n1 0 obj\n<< /Length %d >>\nstream\n", n)
	b.Write(drawContent(r, drawSize(r)))
	b.WriteString("\nendstream\nendobj\ntrailer\n<< /Size 2 >>\nstartxref\n9\n")
	whole := b.String() + "%%EOF\n"
	switch is {
	case CutOffScan:
		return Folder{Name: name, IsFile: true, Files: map[string][]byte{name: b.Bytes()}}
	case TextScan:
		return Folder{Name: name, IsFile: true, Files: map[string][]byte{name: fmt.Appendf(nil, "invoice %d of %d", n, seed)}}
	case ScanFolder:
		name = strings.TrimSuffix(name, ".pdf")
		return Folder{Name: name, Files: map[string][]byte{"page.pdf": []byte(whole)}}
	}
	return Folder{Name: name, IsFile: true, Files: map[string][]byte{name: []byte(whole)}}
}

// CopyPDFToDropAgain returns the same PDF under another name.
func (f Folder) CopyPDFToDropAgain(time int) Folder {
	name := strings.TrimSuffix(f.Name, ".pdf") + fmt.Sprintf(" (%d).pdf", time)
	return Folder{Name: name, IsFile: true, Files: map[string][]byte{name: f.Files[f.Name]}}
}

// renamePDF returns the same PDF under a name.
func (f Folder) renamePDF(name string) Folder {
	return Folder{Name: name, IsFile: true, Files: map[string][]byte{name: f.Files[f.Name]}}
}

// digest is the SHA-256 of a single file, in hex.
func (f Folder) digest() string { return archive.Sum(f.Files[f.Name]).String() }

// addPDFs configures the drops of single PDFs and their service.
func (w *World) addPDFs(cfg *daemon.Config, l *life, api *apicall.API, store *apicall.Store) {
	w.t.Helper()
	p := w.cfg.PDFs
	if len(p.Drops) == 0 {
		return
	}
	auth := apicall.Auth{Method: apicall.Basic, Username: "vaultd", Secret: func() (string, error) { return "secret", nil }}
	if p.OwnAccount {
		auth.Username, auth.Secret = pdfAccount.Name, func() (string, error) { return pdfAccount.Secret, nil }
	}
	if w.cfg.OAuth {
		auth.Method, auth.Scopes = apicall.OAuth2, []string{pdfapi.Scope}
	}
	own, err := api.WithAuth(auth)
	w.failOn(err)
	cfg.Routes = map[ledger.Route]ingest.Route{ledger.PDF: {Client: pdfapi.New(pdfapi.Config{API: own, Store: store, Now: l.now}),
		Workers: max(p.Workers, 1), BatchSize: 1, RepeatsUpload: p.RepeatsPut}}
	for i, d := range p.Drops {
		at := w.cfg.Vaults + i
		cfg.Drops = append(cfg.Drops, dropwork.Settings{Name: w.dropName(at), Path: w.DropPath(at), Route: ledger.PDF,
			Receiving: d.Receiving, Notify: "clerk@acme.example", SendsSamePDF: d.SendsSame,
			Mode: watch.Poll, Settle: p.Settle, Rescan: p.Rescan})
	}
}

// notePDF tells the service what people mean: where the same PDF may be sent again, each time it is dropped there is one delivery more.
func (w *World) notePDF(at int, f Folder) {
	w.t.Helper()
	if !f.IsFile {
		return
	}
	to := w.cfg.PDFs.Drops[at-w.cfg.Vaults].Receiving
	before, beforeAgain, again := 0, 0, 0
	for _, d := range w.dropped {
		if d.IsFile && w.cfg.PDFs.Drops[d.Drop-w.cfg.Vaults].Receiving == to && d.digest() == f.digest() {
			before++
			if w.cfg.PDFs.Drops[d.Drop-w.cfg.Vaults].SendsSame {
				beforeAgain++
			}
		}
	}
	if again = beforeAgain; w.cfg.PDFs.Drops[at-w.cfg.Vaults].SendsSame {
		again++
	}
	// Which of them is taken first is not certain, and the first is sent anyway.
	if min(before, again) > min(max(before-1, 0), beforeAgain) {
		w.failOn(w.emulator.ReleasePDF(to, f.digest()))
	}
}

// slotRemote is the number by which the ledger knows a slot.
func (w *World) slotRemote(s emulator.PDFSlot) archive.RemoteID {
	r := w.readings
	if r.PDF.BumID != "none" {
		return archive.RemoteID(s.BumID)
	}
	address := storeURL + "/pdf/" + s.BumID + ".pdf"
	if r.KeyInQuery {
		address = storeURL + "/put?key=pdf%2F" + s.BumID + ".pdf"
	}
	sum := archive.Sum([]byte(archive.PresignedURL(address).Object()))
	return archive.RemoteID("address-" + hex.EncodeToString(sum[:16]))
}

// collectSlots is what the service of the PDFs has; nil: there is none.
func (w *World) collectSlots() []outside.Slot {
	w.t.Helper()
	if len(w.cfg.PDFs.Drops) == 0 {
		return nil
	}
	all := []outside.Slot{}
	for _, s := range w.emulator.PDFSlots() {
		one := outside.Slot{Remote: w.slotRemote(s)}
		for _, p := range s.PUTs {
			if p.IsRefused { // whoever is told that it was refused cannot know that it was kept
				continue
			}
			sum, err := archive.ParseDigest(p.SHA256)
			w.failOn(err)
			one.Uploads = append(one.Uploads, outside.StoredUpload{SHA256: sum, Size: p.Size, Torn: p.IsTruncated})
		}
		all = append(all, one)
	}
	return all
}

// checkPDFs checks what the ledger alone cannot tell: each PDF that was dropped lies in one place, as it was dropped, folders stay where
// they are, and nothing is called a possible double that cannot be one.
func (w *World) checkPDFs(entries []ledger.Entry) (problems []string) {
	w.t.Helper()
	say := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	for i := range w.cfg.PDFs.Drops {
		at := w.cfg.Vaults + i
		if w.away[at] {
			continue
		}
		type file struct{ name, sum string }
		dropped := map[file]int{}
		for _, d := range w.dropped {
			if d.Drop == at {
				dropped[file{d.Name, d.digest()}]++
			}
		}
		found := w.findFiles(at)
		for f, n := range dropped {
			same := 0
			for _, place := range found[f.name] {
				if data, err := os.ReadFile(filepath.Join(w.DropPath(at), place)); err == nil && archive.Sum(data).String() == f.sum {
					same++
				}
			}
			if same != n {
				say("I1: the PDF %q was dropped this often: %d, and lies here as it was dropped this often: %d; of its name are %q", f.name, n, same, found[f.name])
			}
		}
	}
	for _, d := range w.untaken {
		if _, err := os.Stat(filepath.Join(w.DropPath(d.Drop), d.Name, "page.pdf")); err != nil && !w.away[d.Drop] {
			say("I18: a folder where single PDFs are taken was touched: %v", err)
		}
	}
	if w.cfg.PDFs.RepeatsPut || w.setBacks > 0 || w.released > 0 {
		return problems
	}
	for _, e := range entries {
		if e.Route == ledger.PDF && e.PossibleDouble {
			say("I2: %q is called a possible double, and nobody sent it twice", e.Folder)
		}
	}
	return problems
}

// findFiles finds where each file of a drop lies, by its name.
func (w *World) findFiles(at int) map[string][]string {
	w.t.Helper()
	found := map[string][]string{}
	root := w.DropPath(at)
	w.failOn(filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			rel, errRel := filepath.Rel(root, path)
			w.failOn(errRel)
			found[d.Name()] = append(found[d.Name()], rel)
		}
		return err
	}))
	return found
}

// findUntoldFolders names the folders in drops of single PDFs that people are told nothing of.
func (w *World) findUntoldFolders() (untold []string) {
	w.t.Helper()
	if w.life == nil || len(w.untaken) == 0 {
		return nil
	}
	w.Advance(w.cfg.PDFs.Settle + 2*w.cfg.PDFs.Rescan) // it looks everywhere once more
	told := map[string]bool{}
	for _, d := range w.d.State().Drops {
		for _, group := range d.Watch.NotTaken {
			for _, it := range group.Items {
				told[d.Name+"/"+it.Name] = true
			}
		}
	}
	for _, d := range w.untaken {
		if !told[w.dropName(d.Drop)+"/"+d.Name] {
			untold = append(untold, fmt.Sprintf("I26: nobody is told why %q is not taken", d.Name))
		}
	}
	return untold
}

// explainsDoublePDF reports whether a violation is a PDF that two slots hold, and that somebody had sent again without a look.
func (w *World) explainsDoublePDF(violation string, entries []ledger.Entry) bool {
	rest, is := strings.CutPrefix(violation, "double PDF: SHA-256 ")
	sum, _, _ := strings.Cut(rest, " ")
	return is && w.careless && slices.ContainsFunc(entries, func(e ledger.Entry) bool {
		return e.Package.SHA256.String() == sum && e.PossibleDouble
	})
}

// DecideDeliveries lets a person decide on the PDFs of which nobody knows whether they were delivered. One who is careful looks into the
// accounts-payable system first; one who is not has most of them sent again. One in ten is left for later.
func (w *World) DecideDeliveries(r *rand.Rand, careful bool) {
	w.t.Helper()
	if w.life == nil || w.life.isDead() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	var waiting []ledger.Entry
	w.failOn(w.d.Ledger().OpenEntries(func(e ledger.Entry) error {
		if e.Route == ledger.PDF && e.State == ledger.Quarantined && !e.NeedsReconcile {
			waiting = append(waiting, e)
		}
		return nil
	}))
	for _, e := range waiting {
		switch dice := r.IntN(10); {
		case dice == 0:
			continue
		case careful && w.isInPDFFlow(e), !careful && dice < 4:
			after, err := w.d.Actions().Act(ctx, e, administrator, func(by ledger.Operator) ledger.Event { return ledger.Closed{By: by} })
			w.log.newLogger().Info("a person closed a PDF", "file", e.Folder, "state", after.State, "err", err)
		default:
			w.released++
			w.careless = w.careless || !careful
			after, err := w.d.Actions().Release(ctx, e, administrator)
			w.log.newLogger().Info("a person had a PDF sent again", "file", e.Folder, "state", after.State, "err", err)
		}
	}
}

// isInPDFFlow reports whether the service has the file that lies claimed, or was packed, for an entry.
func (w *World) isInPDFFlow(e ledger.Entry) bool {
	for _, d := range w.dropped {
		if w.dropName(d.Drop) != e.Drop || d.Name != e.Folder {
			continue
		}
		claimed, err := os.ReadFile(filepath.Join(w.DropPath(d.Drop), ".vaultd/claimed", e.Key.String(), e.Folder, e.Folder))
		if mine := e.Package.SHA256.String() == d.digest() || err == nil && archive.Sum(claimed).String() == d.digest(); !mine && (err == nil || !e.Package.IsZero()) {
			continue
		}
		for _, s := range w.emulator.PDFSlots() {
			to := w.cfg.PDFs.Drops[d.Drop-w.cfg.Vaults].Receiving
			if strings.EqualFold(s.Receiving, to) && slices.ContainsFunc(s.PUTs, func(p emulator.StoredPDF) bool { return p.SHA256 == d.digest() || p.IsTruncated }) {
				return true
			}
		}
	}
	return false
}
