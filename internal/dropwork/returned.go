package dropwork

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/present"
)

// mostReturned bounds how many unresolved rejections of before the start are
// compared with what is dropped: the latest.
const mostReturned = 20_000

// mostProving bounds how many files of a rejection are looked for in the rest of
// the ledger: the largest.
const mostProving = 3

// Returned is the index of the rejected folders that were returned and that are
// not resolved yet, by what the ledger knows of their content. It hears of every
// commit; a start reads it from the ledger before any folder is picked up.
type Returned struct {
	loaded chan struct{} // closed once the entries of before the start are known

	mu      sync.Mutex
	byQueue map[string]map[archive.Key]*rejection // guarded by mu; nil: not read yet
}

// rejection is what the ledger knows of the content of a rejected folder.
type rejection struct {
	read    archive.AsRead // its number and sender
	largest archive.File   // of its files; a size of zero: they are not known
}

// NewReturned returns an index that knows of nothing yet.
func NewReturned() *Returned {
	return &Returned{loaded: make(chan struct{}), byQueue: map[string]map[archive.Key]*rejection{}}
}

// Load reads the unresolved rejections from the ledger, and lets the drop folders begin.
func (x *Returned) Load(l Entries) error {
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
	queue := returnedQueue(e.Route, e.Vault)
	if x.byQueue[queue] == nil {
		x.byQueue[queue] = map[archive.Key]*rejection{}
	}
	switch _, known := x.byQueue[queue][e.Key]; {
	case !isCorrectable(e):
		delete(x.byQueue[queue], e.Key)
	case !known:
		x.byQueue[queue][e.Key] = nil
	}
}

// returnedQueue names the rejections that a folder may resolve: a correction goes
// to the same vault, through whichever of its drop folders.
func returnedQueue(r ledger.Route, v archive.VaultID) string {
	return string(cmp.Or(r, ledger.Vault)) + "/" + string(v)
}

// mostLooked bounds how many returned folders one inspection of a drop looks for: the
// newest.
const mostLooked = 500

// findMissing returns the unresolved rejections of the drop whose returned
// folders are not in their places, or have nothing in them but vaultd's notes.
// It touches the drop folder. What it cannot see it does not call missing.
func (d *Drop) findMissing() (missing []archive.Key) {
	f, done, err := d.HoldOpen()
	if err != nil {
		return nil
	}
	defer done()
	for _, k := range d.shared.Returned.newest(returnedQueue(d.Settings.Route, d.Settings.Vault)) {
		e, ok, err := d.shared.Ledger.Entry(k)
		if err != nil || !ok || e.Drop != d.Settings.Name || !isCorrectable(e) || e.Source != ledger.Returned {
			continue
		}
		hasContent := true
		dir, err := f.OpenPlaced(e.Dest, drop.Inode(e.Node))
		if err == nil {
			hasContent, err = packager.HasContent(dir.Root())
			dir.Close() // read-only
		}
		if errors.Is(err, fs.ErrNotExist) || err == nil && !hasContent {
			missing = append(missing, k)
		}
	}
	return missing
}

// newest returns the newest rejections of a queue.
func (x *Returned) newest(queue string) []archive.Key {
	x.mu.Lock()
	defer x.mu.Unlock()
	keys := slices.SortedFunc(maps.Keys(x.byQueue[queue]), func(a, b archive.Key) int { return bytes.Compare(b[:], a[:]) })
	return keys[:min(len(keys), mostLooked)]
}

// hasAny reports whether a queue has any unresolved rejection.
func (x *Returned) hasAny(queue string) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.byQueue[queue]) > 0
}

// findAlike returns the rejections of a queue that isAlike accepts, the newest first.
func (x *Returned) findAlike(l Entries, queue string, isAlike func(rejection) bool) (keys []archive.Key, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for k, r := range x.byQueue[queue] {
		if r == nil {
			if r, err = readRejection(l, k); err != nil {
				return nil, err
			}
			x.byQueue[queue][k] = r
		}
		if isAlike(*r) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b archive.Key) int { return bytes.Compare(b[:], a[:]) })
	return keys, nil
}

// readRejection reads what the ledger knows of a rejected folder's content.
func readRejection(l Entries, k archive.Key) (*rejection, error) {
	e, _, err := l.Entry(k)
	if err != nil {
		return nil, err
	}
	doc, _, err := l.Document(k)
	if err != nil {
		return nil, err
	}
	r := &rejection{read: doc.AsRead}
	if len(doc.Metadata) > 0 {
		m, err := present.ParseMetadata(e, doc)
		if err != nil {
			return nil, err
		}
		r.read = archive.AsRead{Number: m.Number, SenderName: m.SenderName, SenderIDs: strings.Join(m.SenderIDs, ", ")}
	}
	r.read = archive.AsRead{Number: r.read.Number, SenderName: r.read.SenderName, SenderIDs: r.read.SenderIDs} // the rest only takes memory
	if files := largestFirst(doc.Files); len(files) > 0 {
		r.largest = archive.File{Size: files[0].Size, SHA256: files[0].SHA256}
	}
	return r, nil
}

// largestFirst returns files in an order that depends on their content alone.
func largestFirst(files []archive.File) []archive.File {
	return slices.SortedFunc(slices.Values(files), func(a, b archive.File) int {
		return cmp.Or(cmp.Compare(b.Size, a.Size), bytes.Compare(a.SHA256[:], b.SHA256[:]))
	})
}

// isCorrectable reports whether dropping a folder again may resolve e. It may where e is
// an unresolved rejection without any doubt. One that was closed in doubt, that the
// service contradicts, or about which a question is open stays for a person: resolved,
// nobody would ever look at it again.
func isCorrectable(e ledger.Entry) bool {
	return e.State == ledger.Rejected && !e.Resolved && !e.InDoubt && !e.Contradicted && !e.Hold &&
		len(e.OpenQuestions()) == 0 && (e.Source == ledger.Returned || e.Source == ledger.Returning)
}

// findCorrected finds the rejection that a claimed folder resolves by its content:
// it bears the same number and sender, or it has all files of the rejected folder
// and one of them is in no other entry. A name proves nothing, nor does a place:
// exports use the same names again and again, and file systems the same inodes.
func (d *Drop) findCorrected(ctx context.Context, f *drop.Folder, c drop.ClaimedFolder) (*ledger.Entry, error) {
	l, queue := d.shared.Ledger, returnedQueue(d.Settings.Route, d.Settings.Vault)
	if !d.shared.Returned.hasAny(queue) {
		return nil, nil
	}
	dir, _, err := f.OpenClaimed(c.Key)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // read-only
	t, err := d.Settings.form().readTraces(ctx, d.Settings, dir.Root())
	if err != nil {
		return nil, err
	}
	keys, err := d.shared.Returned.findAlike(l, queue, func(r rejection) bool { return isSameInvoice(r.read, t.AsRead) })
	for _, k := range keys {
		if e, ok, err := l.Entry(k); err != nil || ok && isCorrectable(e) {
			return &e, err
		}
	}
	if err != nil {
		return nil, err
	}
	return d.findBySharedFiles(ctx, c.Key, t)
}

// findBySharedFiles finds the rejection all of whose files a claimed folder has.
func (d *Drop) findBySharedFiles(ctx context.Context, key archive.Key, t packager.Traces) (*ledger.Entry, error) {
	var files []archive.File
	var failed error
	has := func(one archive.File) bool {
		return slices.ContainsFunc(files, func(f archive.File) bool { return f.Size == one.Size && f.SHA256 == one.SHA256 })
	}
	keys, err := d.shared.Returned.findAlike(d.shared.Ledger, returnedQueue(d.Settings.Route, d.Settings.Vault), func(r rejection) bool {
		if r.largest.Size == 0 || isOtherNumber(r.read, t.AsRead) || !t.HasFileOf(r.largest.Size) {
			return false
		}
		if files == nil && failed == nil {
			files, failed = t.Files(ctx)
		}
		return has(r.largest)
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, err
	}
	for _, k := range keys {
		e, ok, err := d.shared.Ledger.Entry(k)
		if err != nil {
			return nil, err
		}
		doc, _, err := d.shared.Ledger.Document(k)
		if err != nil {
			return nil, err
		}
		rejected := slices.DeleteFunc(doc.Files, func(f archive.File) bool {
			return strings.EqualFold(f.Path, d.Settings.form().sidecar(d.Settings))
		})
		if !ok || !isCorrectable(e) || slices.ContainsFunc(rejected, func(f archive.File) bool { return !has(f) }) {
			continue
		}
		if proves, err := d.hasFileOfItsOwn(ctx, e, key, rejected); err != nil || proves {
			return &e, err
		}
	}
	return nil, nil
}

// hasFileOfItsOwn reports whether one of the largest files of a rejection is in no
// other entry, but for earlier rejections of the same folder. A logo or terms of
// business that come with many invoices prove nothing.
func (d *Drop) hasFileOfItsOwn(ctx context.Context, e ledger.Entry, claimed archive.Key, files []archive.File) (bool, error) {
	same := map[archive.Key]bool{e.Key: true, claimed: true}
	for before := e.Supersedes; !before.IsZero() && !same[before]; {
		same[before] = true
		earlier, _, err := d.shared.Ledger.Entry(before)
		if err != nil {
			return false, err
		}
		before = earlier.Supersedes
	}
	var digests []archive.Digest
	for _, f := range largestFirst(files) {
		if f.Size > 0 && len(digests) < mostProving {
			digests = append(digests, f.SHA256)
		}
	}
	held, err := d.shared.Ledger.CountHeldFiles(ctx, digests, func(k archive.Key) bool { return same[k] })
	return held < len(digests), err
}

// isSameInvoice reports whether two sidecars bear the same number and name the
// same sender, by its identifiers or by its name. What one of them lacks proves
// nothing.
func isSameInvoice(a, b archive.AsRead) bool {
	same := func(a, b string) bool { return a != "" && archive.PlainText(a) == archive.PlainText(b) }
	if !same(a.Number, b.Number) {
		return false
	}
	if a.SenderIDs == "" || b.SenderIDs == "" {
		return same(a.SenderName, b.SenderName)
	}
	others := strings.Split(archive.PlainText(b.SenderIDs), ", ")
	return slices.ContainsFunc(strings.Split(archive.PlainText(a.SenderIDs), ", "), func(id string) bool { return slices.Contains(others, id) })
}

// isOtherNumber reports whether two sidecars bear different numbers: then not even
// the same files make them the same invoice.
func isOtherNumber(a, b archive.AsRead) bool {
	return a.Number != "" && b.Number != "" && archive.PlainText(a.Number) != archive.PlainText(b.Number)
}
