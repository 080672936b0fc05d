package campaign

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/test/simulation"
)

// place is one drop folder with rules of its own.
type place struct {
	name, vault string
	mode        string // auto, poll
	complete    string // quiet, marker, list
	action      string // keep, move, delete
	takesPDFs   bool   // single ones, and no folders
	overNetwork bool   // documents for the business network
}

func vaultID(n int) string { return fmt.Sprintf("VAULT-%d", n+1) }

// places gives n drop folders, among them all combinations of rules once n is 18.
func places(n, vaults int) (all []place) {
	for i := range n {
		all = append(all, place{
			name: fmt.Sprintf("drop-%02d", i+1), vault: vaultID(i % vaults), action: []string{"keep", "move", "delete"}[i%3],
			mode: []string{"auto", "poll"}[i/3%2], complete: []string{"quiet", "marker", "list"}[(i/6+i)%3],
		})
	}
	return all
}

// scans is the one drop folder of single PDFs.
var scans = place{name: "scans", takesPDFs: true}

// outgoing is the one drop folder for the business network.
var outgoing = place{name: "outgoing", overNetwork: true}

// exchanged is the drop folder that vaultd alone puts folders into: copies of what was sent over the business network, and what came in.
var exchanged = place{name: "exchanged", vault: vaultID(0), mode: "auto", complete: "quiet", action: "keep"}

// parcel is a folder or a single PDF that was dropped, and what must become of it.
type parcel struct {
	simulation.Folder
	place place
	want  ledger.State
}

// content is what must arrive: the files without what only describes them.
func (p parcel) content() map[string][]byte {
	files := maps.Clone(p.Files)
	delete(files, "metadata.json")
	delete(files, ".done")
	return files
}

// people drop folders all the time, some slowly, some faulty, some twice.
type people struct {
	t      *testing.T
	dir    string // in which the drop folders lie
	aside  string
	seed   uint64
	places []place
	busy   sync.WaitGroup

	mu  sync.Mutex // held while folders move: who holds it sees a disk on which nobody but vaultd works
	r   *rand.Rand
	all []parcel // guarded by mu
}

// work drops folders until ctx ends, unless full says that it is enough for now.
func (p *people) work(ctx context.Context, every time.Duration, full func(dropped int) bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for n := 0; ctx.Err() == nil; {
		select {
		case <-ctx.Done():
		case <-tick.C:
			if !full(n) {
				p.drop(n)
				if n%4 == 3 {
					p.dropPDF(n)
				}
				if n%4 == 1 {
					p.dropDocument(n)
				}
				n++
			}
		}
	}
	p.busy.Wait()
}

// drop drops the n-th folder.
func (p *people) drop(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.places[p.r.IntN(len(p.places))]
	one := parcel{place: at, want: ledger.Archived}
	twin := p.first(at)
	switch dice := p.r.IntN(100); {
	case dice < 4 && at.complete != "list":
		one.Folder, one.want = simulation.MakeFolder(p.seed, n, simulation.Faulty), ledger.Rejected
	case dice < 7 && at.complete != "list":
		one.Folder, one.want = simulation.MakeFolder(p.seed, n, simulation.Hostile), ledger.Rejected
	case dice < 11:
		one.Folder = simulation.MakeFolder(p.seed, n, simulation.FailsOnce)
	case dice < 13:
		one.Folder, one.want = simulation.MakeFolder(p.seed, n, simulation.Fails), ledger.Quarantined
	case dice < 17 && twin != nil:
		one.Folder, one.want = twin.CopyToDropAgain(), ledger.Duplicate
		one.Name, one.Files = fmt.Sprintf("%s %d", one.Name, n), maps.Clone(one.Files)
	default:
		one.Folder = simulation.MakeFolder(p.seed, n, simulation.Good)
	}
	if one.want != ledger.Duplicate && at.complete == "list" {
		one.Files["metadata.json"] = listing(one.Files)
	}
	delete(one.Files, ".done")
	if at.complete == "marker" {
		one.Files[".done"] = nil
	}
	p.all = append(p.all, one)
	if one.Link == "" && one.Pipe == "" && p.r.IntN(4) == 0 {
		kit.Must(p.t, os.Mkdir(p.path(one), 0o770))
		p.busy.Go(func() { p.writeSlowly(one) })
		return
	}
	p.moveIn(one)
}

// dropPDF drops a single PDF.
func (p *people) dropPDF(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := parcel{place: scans, want: ledger.Delivered, Folder: simulation.MakePDF(p.seed, n, simulation.Scan)}
	switch dice := p.r.IntN(100); {
	case dice < 10:
		one.Folder, one.want = simulation.MakePDF(p.seed, n, simulation.CutOffScan), ledger.Delivered // looks_cut_off: warn
	case dice < 20:
		one.Folder, one.want = simulation.MakePDF(p.seed, n, simulation.TextScan), ledger.Rejected
	case dice < 35:
		i := slices.IndexFunc(p.all, func(o parcel) bool { return o.place == scans && o.want == ledger.Delivered })
		if i >= 0 {
			one.Folder, one.want = p.all[i].CopyPDFToDropAgain(n), ledger.Duplicate
		}
	}
	if p.r.IntN(4) == 0 {
		r := rand.New(rand.NewPCG(p.seed, uint64(n)))
		p.busy.Go(func() {
			p.writePieces(p.path(one), one.Files[one.Name], r)
			p.mu.Lock()
			defer p.mu.Unlock()
			p.all = append(p.all, one) // it is dropped once it has its name
			kit.Must(p.t, os.Rename(p.path(one)+".part", p.path(one)))
		})
		return
	}
	p.all = append(p.all, one)
	kit.Must(p.t, os.WriteFile(filepath.Join(p.aside, one.Name), one.Files[one.Name], 0o660))
	kit.Must(p.t, os.Rename(filepath.Join(p.aside, one.Name), p.path(one)))
}

// dropDocument drops a folder for the business network.
func (p *people) dropDocument(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	one := parcel{place: outgoing, want: ledger.Delivered, Folder: simulation.MakeDocument(p.seed, n, simulation.Document)}
	switch dice := p.r.IntN(100); {
	case dice < 8:
		one.Folder, one.want = simulation.MakeDocument(p.seed, n, simulation.FaultyDocument), ledger.Rejected
	case dice < 14:
		one.Folder, one.want = simulation.MakeDocument(p.seed, n, simulation.VirusDocument), ledger.Rejected
	case dice < 30: // it is a duplicate, or goes under the next number where the first was not delivered
		i := slices.IndexFunc(p.all, func(o parcel) bool { return o.place.overNetwork && o.want == ledger.Delivered })
		if i >= 0 {
			one.Folder = p.all[i].CopyDocumentToDropAgain(n)
			one.Files = maps.Clone(one.Files)
			one.want = ledger.Duplicate
		}
	}
	p.all = append(p.all, one)
	p.moveIn(one)
}

// dropped gives what was dropped so far.
func (p *people) dropped() []parcel {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.all
}

// first gives a good folder of the same vault, whose rules ask the same.
func (p *people) first(at place) *parcel {
	for range 20 {
		if len(p.all) == 0 {
			return nil
		}
		one := p.all[p.r.IntN(len(p.all))]
		if one.want == ledger.Archived && one.place.vault == at.vault && (at.complete != "list" || one.place.complete == "list") {
			return &one
		}
	}
	return nil
}

// listing adds the names of all files to the sidecar.
func listing(files map[string][]byte) []byte {
	var meta map[string]json.RawMessage
	if json.Unmarshal(files["metadata.json"], &meta) != nil {
		return files["metadata.json"]
	}
	var names []string
	for name := range files {
		if name != "metadata.json" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	meta["files"], _ = json.Marshal(names)
	out, _ := json.Marshal(meta)
	return out
}

func (p *people) path(one parcel) string { return filepath.Join(p.dir, one.place.name, one.Name) }

// moveIn makes the folder elsewhere and moves it in whole.
func (p *people) moveIn(one parcel) {
	aside := filepath.Join(p.aside, one.Name)
	for name, data := range one.Files {
		path := filepath.Join(aside, name)
		kit.Must(p.t, os.MkdirAll(filepath.Dir(path), 0o770))
		kit.Must(p.t, os.WriteFile(path, data, 0o660))
	}
	if one.Link != "" {
		kit.Must(p.t, os.Symlink("/etc/hostname", filepath.Join(aside, one.Link)))
	}
	if one.Pipe != "" {
		kit.Must(p.t, syscall.Mkfifo(filepath.Join(aside, one.Pipe), 0o660))
	}
	kit.Must(p.t, os.Rename(aside, p.path(one)))
}

// writeSlowly writes the folder where it lies, piece by piece with pauses; what says that it is whole comes last.
func (p *people) writeSlowly(one parcel) {
	dir, r := p.path(one), rand.New(rand.NewPCG(p.seed, uint64(len(one.Name))))
	names := slices.Sorted(maps.Keys(one.content()))
	last := "metadata.json"
	switch one.place.complete {
	case "list":
		names = append([]string{last}, names...) // the sidecar first: it names what is to come
		last = ""
	case "marker":
		names, last = append(names, last), ".done"
	}
	for _, name := range names {
		p.writeOne(dir, name, one.Files[name], r)
	}
	if last != "" {
		p.writeOne(dir, last, one.Files[last], r)
	}
}

// writeOne writes a file as copy programs do: under another name until it is whole.
func (p *people) writeOne(dir, name string, data []byte, r *rand.Rand) {
	path := filepath.Join(dir, name)
	kit.Must(p.t, os.MkdirAll(filepath.Dir(path), 0o770))
	p.writePieces(path, data, r)
	kit.Must(p.t, os.Rename(path+".part", path))
}

// writePieces writes a file under its other name, with pauses.
func (p *people) writePieces(path string, data []byte, r *rand.Rand) {
	f := kit.Value(os.Create(path + ".part"))(p.t)
	for piece := range slices.Chunk(data, max(len(data)/3, 1)) {
		kit.Value(f.Write(piece))(p.t)
		time.Sleep(time.Duration(r.IntN(120)) * time.Millisecond)
	}
	kit.Must(p.t, f.Close())
}
