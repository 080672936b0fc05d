package dropwork

import (
	"bytes"
	"context"
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// mostReturned bounds how many unresolved rejections of before the start are known by their names: the latest.
const mostReturned = 20_000

// mostCandidates bounds how many rejections of one name are compared with a claimed folder.
const mostCandidates = 20

// Returned is the index of the rejected folders that were given back and that nobody has corrected yet, by the names they may come back
// under. It hears of every commit; a start reads it from the ledger before any folder is taken.
type Returned struct {
	loaded chan struct{} // closed once the entries of before the start are known

	mu     sync.Mutex
	byDrop map[string]map[archive.Key][]string // names that people take for one are the same text; guarded by mu
}

// NewReturned returns an index that knows of nothing yet.
func NewReturned() *Returned {
	return &Returned{loaded: make(chan struct{}), byDrop: map[string]map[archive.Key][]string{}}
}

// Load reads the unresolved rejections from the ledger, and lets the drop folders begin.
func (x *Returned) Load(l *boltledger.Ledger) error {
	defer close(x.loaded)
	return l.VisitAttention(ledger.RejectedUnresolved, time.Time{}, mostReturned, x.addRejected)
}

// awaitLoaded returns true once the index is loaded, and false when ctx ends first.
func (x *Returned) awaitLoaded(ctx context.Context) bool {
	select {
	case <-x.loaded:
		return true
	case <-ctx.Done():
		return false
	}
}

// NoteCommit is the index's commit listener.
func (x *Returned) NoteCommit(rs []ledger.Result) {
	for _, r := range rs {
		if r.Err == nil && r.Entry.State == ledger.Rejected {
			x.addRejected(r.Entry)
		}
	}
}

// addRejected takes in a rejected entry, or forgets it where it cannot be corrected any more.
func (x *Returned) addRejected(e ledger.Entry) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.byDrop[e.Drop] == nil {
		x.byDrop[e.Drop] = map[archive.Key][]string{}
	}
	if !isCorrectable(e) {
		delete(x.byDrop[e.Drop], e.Key)
		return
	}
	x.byDrop[e.Drop][e.Key] = []string{foldName(e.Folder), foldName(path.Base(e.Dest))}
}

// findCandidates returns the unresolved rejections of a name in a drop, the newest first.
func (x *Returned) findCandidates(drop, name string) []archive.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	var keys []archive.Key
	same := foldName(name)
	for k, names := range x.byDrop[drop] {
		if slices.Contains(names, same) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b archive.Key) int { return bytes.Compare(b[:], a[:]) })
	return keys[:min(len(keys), mostCandidates)]
}

// foldName maps names that people take for one to the same text.
func foldName(name string) string { return cases.Fold().String(norm.NFC.String(name)) }

// isCorrectable reports whether dropping a folder again may resolve e. It may where e is
// an unresolved rejection without any doubt. One that was closed in doubt, that the
// service contradicts, or about which a question is open stays for a person: resolved,
// nobody would ever look at it again.
func isCorrectable(e ledger.Entry) bool {
	return e.State == ledger.Rejected && !e.Resolved && !e.InDoubt && !e.Contradicted && !e.Hold &&
		len(e.OpenQuestions()) == 0 && (e.Source == ledger.Returned || e.Source == ledger.Returning)
}

// findCorrected finds the rejection that a claimed folder puts right: the one whose returned
// folder it is, else one of its name. Where the returned folder still lies there, a
// name alone proves nothing, for exports use the same ones again and again: then both
// must be of the same invoice, or the older one would be forgotten in silence.
func (d *Drop) findCorrected(f *drop.Folder, c drop.ClaimedFolder) (*ledger.Entry, error) {
	var best *ledger.Entry
	bestRank := 0
	for _, k := range d.shared.Returned.findCandidates(d.Settings.Name, c.Folder) {
		e, ok, err := d.shared.Ledger.Entry(k)
		if err != nil {
			return nil, err
		}
		if !ok || e.Drop != d.Settings.Name || !isCorrectable(e) {
			continue
		}
		if rank := d.rankLikeness(f, c, e); rank > bestRank {
			best, bestRank = &e, rank
		}
	}
	return best, nil
}

// rankLikeness ranks how surely a claimed folder is e's, put right; 0: it is not.
func (d *Drop) rankLikeness(f *drop.Folder, c drop.ClaimedFolder, e ledger.Entry) int {
	if c.Inode.Ino == e.Node.Ino {
		return 4 // the same folder, moved back
	}
	there, err := f.OpenPlaced(e.Dest, drop.Inode(e.Node))
	if err == nil {
		defer there.Close() // read-only
		switch {
		case d.Settings.TakesFiles() && len(d.readFeatures(there.Root()).files) == 0:
			return 3 // the file was moved back, and the folder with its note stayed
		case d.isSameInvoice(f, c, there.Root()):
			return 1
		}
		return 0
	}
	if foldName(path.Base(e.Dest)) == foldName(c.Folder) {
		return 3 // a copy of what lay there
	}
	return 2
}

// isSameInvoice reports whether a claimed folder and a returned one are of the same
// invoice: they bear the same number, or where one has none that can be read, share a
// file of the same name and size.
func (d *Drop) isSameInvoice(f *drop.Folder, c drop.ClaimedFolder, returned *os.Root) bool {
	dir, _, err := f.OpenClaimed(c.Key)
	if err != nil {
		return false
	}
	defer dir.Close() // read-only
	here, there := d.readFeatures(dir.Root()), d.readFeatures(returned)
	if here.number != "" && there.number != "" {
		return here.number == there.number
	}
	for name, size := range here.files {
		if size > 0 && there.files[name] == size {
			return true
		}
	}
	return false
}

// invoiceFeatures are what two drops of one invoice have in common.
type invoiceFeatures struct {
	number string           // as it stands in the sidecar or the document; empty: none that can be read
	files  map[string]int64 // sizes of the files at the top
}

const (
	mostFeatures = 1000
	mostSidecar  = 1 << 20
)

// Where the number of an invoice stands: in a sidecar, and in a document of the business network.
var (
	documentID   = regexp.MustCompile(`"documentId"\s*:\s*"([^"\n]{1,200})"`)
	networkDocID = regexp.MustCompile(`"externalDocumentIdentifier"\s*:\s*\{[^{}]*"id"\s*:\s*"([^"\n]{1,200})"`)
)

// numberPattern finds the number of an invoice in what describes it.
func (s Settings) numberPattern() *regexp.Regexp {
	if s.Route == ledger.Network {
		return networkDocID
	}
	return documentID
}

// readFeatures looks at the top of a folder. The sidecar may be broken: that is why it was refused.
func (d *Drop) readFeatures(root *os.Root) invoiceFeatures {
	x := invoiceFeatures{files: map[string]int64{}}
	list, err := root.Open(".")
	if err != nil {
		return x
	}
	names, _ := list.Readdirnames(mostFeatures) // what cannot be read is not alike
	list.Close()                                // read-only
	for _, name := range names {
		file, info, err := durable.OpenRegular(root, name)
		if err != nil {
			continue
		}
		switch {
		case !d.Settings.TakesFiles() && strings.EqualFold(name, d.Settings.Rules.Sidecar):
			if text, err := io.ReadAll(io.LimitReader(file, mostSidecar)); err == nil {
				if m := d.Settings.numberPattern().FindSubmatch(text); m != nil {
					x.number = string(m[1])
				}
			}
		case !d.scanRules.IsJunk(name):
			x.files[name] = info.Size()
		}
		file.Close() // read-only
	}
	return x
}
