package simulation

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Nature is what is the matter with a folder.
type Nature uint8

// The natures.
const (
	Good      Nature = iota
	Faulty           // its sidecar has faults: it comes back
	FailsOnce        // the service fails its first archiving
	Fails            // the service fails it always
	Hostile          // something in it must not be taken

	Scan       // a single PDF
	CutOffScan // its end is missing: it comes back
	TextScan   // it is no PDF: it comes back
	ScanFolder // a folder, where single PDFs are taken: it stays

	Document       // a folder for the business network
	FaultyDocument // its document has faults: it comes back
	VirusDocument  // the network refuses one of its files
	TakenDocument  // somebody else has its number in the network
)

// Folder is what somebody drops. The same seed and number give the same bytes.
type Folder struct {
	Name   string
	Number string            // documentId
	Files  map[string][]byte // by path, the sidecar among them
	Link   string            // a link with this name leads out of the folder; may be empty
	Pipe   string            // a pipe of this name; may be empty
	IsFile bool              // it is no folder, but the one file in Files, which bears its name
}

// Dropped is a folder, or a single file, that was dropped.
type Dropped struct {
	Drop int // the drops of the vaults come first, then those of single PDFs, then those for the network
	Folder
}

// MakeFolder returns the n-th folder of a seed: one to four files of some hundred bytes
// to some kilobytes, rarely megabytes, and a sidecar. Of eight folders two bear the same invoice number and date, written
// in another way, and of sixteen one has a date that cannot be.
func MakeFolder(seed uint64, n int, is Nature) Folder {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	f := Folder{Name: fmt.Sprintf("Müller %d-%d", seed, n), Number: fmt.Sprintf("%d/%d", seed, n), Files: map[string][]byte{}}
	paired := n%8 >= 6
	if paired {
		f.Number = fmt.Sprintf("%s %d/%d", []string{"re", "RE"}[n%2], seed, n|1)
	}
	switch is {
	case FailsOnce:
		f.Number = "FAIL-ONCE " + f.Number
	case Fails:
		f.Number = "FAIL " + f.Number
	}
	for i := range 1 + r.IntN(4) {
		name := fmt.Sprintf("Rechnung %d.pdf", i+1)
		if i == 2 {
			name = "Anhänge/Lieferschein.pdf"
		}
		f.Files[name] = drawContent(r, drawSize(r))
	}
	year, month, day := 1999, 1+r.IntN(12), 1+r.IntN(28) // a test's clock begins with the year 2000
	switch {
	case paired:
		month, day = 1+n/8%12, 1+n/8%28
	case n%16 == 3:
		year = 2062
	}
	f.Files["metadata.json"] = fmt.Appendf(nil,
		`{"documentType":"Invoice","documentId":%q,"documentDate":"%d-%02d-%02d","senderName":"Müller & Söhne","amount":%d.%02d,"currencyCode":"EUR"}`,
		f.Number, year, month, day, r.IntN(1e9), r.IntN(100))
	switch is {
	case Faulty:
		f.Files["metadata.json"] = [][]byte{
			[]byte(`{"documentType":"Invoice","documentId":"x","documentDate":"31.10.2026"}`), []byte(`{"documentType":`), {},
			[]byte(`{"documentType":"Bill","documentId":"x","documentDate":"2026-10-31","documentId":"y"}`),
		}[r.IntN(4)]
	case Hostile:
		switch r.IntN(4) {
		case 0:
			f.Link = "link.pdf"
		case 1:
			f.Pipe = "pipe.pdf"
		case 2:
			f.Files = map[string][]byte{"metadata.json": f.Files["metadata.json"]}
		case 3:
			f.Files["bad\nname\xff.pdf"] = []byte("x")
		}
	}
	return f
}

// CopyToDropAgain returns the same invoice under another name.
func (f Folder) CopyToDropAgain() Folder {
	f.Name += " noch einmal"
	return f
}

func drawSize(r *rand.Rand) int {
	switch p := r.IntN(1000); {
	case p < 700:
		return 100 + r.IntN(2_000)
	case p < 975:
		return 2_000 + r.IntN(20_000)
	case p < 998:
		return 50_000 + r.IntN(150_000)
	}
	return 1_000_000 + r.IntN(2_000_000)
}

// drawContent is half noise and half the same, so that it packs as a document does.
func drawContent(r *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := 0; i < n/2; i += 8 {
		x := r.Uint64()
		for j := range min(8, n-i) {
			b[i+j] = byte(x >> (8 * j))
		}
	}
	return b
}

// DropFolders puts folders, or single files, into a drop folder: made beside it and moved in.
func (w *World) DropFolders(at int, fs ...Folder) {
	w.t.Helper()
	for _, f := range fs {
		if w.away[at] {
			w.later = append(w.later, Dropped{at, f})
			continue
		}
		if _, err := os.Lstat(filepath.Join(w.DropPath(at), f.Name)); f.IsFile && err == nil {
			// One of that name still lies there. Whoever would replace it destroys it himself, so it gets another name.
			f = f.renamePDF(fmt.Sprintf("%s (%d).pdf", strings.TrimSuffix(f.Name, ".pdf"), len(w.dropped)))
		}
		aside := filepath.Join(w.dir, "aside")
		w.failOn(os.MkdirAll(aside, 0o770))
		for name, data := range f.Files {
			p := filepath.Join(aside, name)
			w.failOn(os.MkdirAll(filepath.Dir(p), 0o770))
			w.failOn(os.WriteFile(p, data, 0o660))
		}
		if f.Link != "" {
			w.failOn(os.Symlink("/etc/hostname", filepath.Join(aside, f.Link)))
		}
		if f.Pipe != "" {
			w.failOn(syscall.Mkfifo(filepath.Join(aside, f.Pipe), 0o660))
		}
		if f.IsFile {
			w.failOn(os.Rename(filepath.Join(aside, f.Name), filepath.Join(w.DropPath(at), f.Name)))
		} else {
			w.failOn(os.Rename(aside, filepath.Join(w.DropPath(at), f.Name)))
		}
		if at >= w.cfg.Vaults && !f.IsFile && !w.isNetworkDrop(at) {
			w.untaken = append(w.untaken, Dropped{at, f})
			continue
		}
		w.notePDF(at, f)
		w.dropped = append(w.dropped, Dropped{at, f})
	}
}

// TakeAway takes a drop folder away, as an unmounted share does; with empty it
// leaves another, empty one in its place. Who would drop something waits for it.
func (w *World) TakeAway(at int, empty bool) {
	w.t.Helper()
	if w.away[at] {
		return
	}
	w.failOn(os.Rename(w.DropPath(at), w.DropPath(at)+" away"))
	w.away[at] = true
	if empty {
		w.failOn(os.Mkdir(w.DropPath(at), 0o770))
	}
}

// BringBack ends TakeAway. Nothing may have been made in the folder that stood there.
func (w *World) BringBack(at int) {
	w.t.Helper()
	if !w.away[at] {
		return
	}
	if made := listNames(w.DropPath(at)); len(made) > 0 {
		w.t.Errorf("I19: made in a folder that is not ours: %q", made)
	}
	if err := os.Remove(w.DropPath(at)); err != nil && !os.IsNotExist(err) {
		w.t.Fatal(err)
	}
	w.failOn(os.Rename(w.DropPath(at)+" away", w.DropPath(at)))
	delete(w.away, at)
	later := w.later
	w.later = nil
	for _, d := range later {
		w.DropFolders(d.Drop, d.Folder)
	}
}
