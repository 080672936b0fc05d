package daemon

import (
	"io"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
)

// correctable reports whether dropping a folder again may resolve e. It may where e is
// an unresolved rejection without any doubt. One that was closed in doubt, that the
// service contradicts, or about which a question is open stays for a person: resolved,
// nobody would ever look at it again.
func correctable(e ledger.Entry) bool {
	return e.State == ledger.Rejected && !e.Resolved && !e.InDoubt && !e.Contradicted && !e.Hold &&
		len(e.OpenQuestions()) == 0 && (e.Source == ledger.Returned || e.Source == ledger.Returning)
}

// corrects finds the rejection that a claimed folder puts right: the one whose returned
// folder it is, else one of its name. Where the returned folder still lies there, a
// name alone proves nothing, for exports use the same ones again and again: then both
// must be of the same invoice, or the older one would be forgotten in silence.
func (r *room) corrects(f *drop.Folder, c drop.ClaimedFolder) (*ledger.Entry, error) {
	var best *ledger.Entry
	bestRank := 0
	for _, k := range r.clerk.candidates(c.Folder) {
		e, ok, err := r.d.ledger.Entry(k)
		if err != nil {
			return nil, err
		}
		if !ok || e.Drop != r.cfg.Name || !correctable(e) {
			continue
		}
		if rank := r.likeness(f, c, e); rank > bestRank {
			best, bestRank = &e, rank
		}
	}
	return best, nil
}

// candidates returns the unresolved rejections of a name, the newest first.
func (c *clerk) candidates(name string) []archive.Key {
	c.mu.Lock()
	defer c.mu.Unlock()
	var keys []archive.Key
	same := sameName(name)
	for k, names := range c.returned {
		if slices.Contains(names, same) {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b archive.Key) int { return strings.Compare(b.String(), a.String()) })
	return keys[:min(len(keys), listed)]
}

// likeness ranks how surely a claimed folder is e's, put right; 0: it is not.
func (r *room) likeness(f *drop.Folder, c drop.ClaimedFolder, e ledger.Entry) int {
	if c.Inode.Ino == e.Node.Ino {
		return 4 // the same folder, moved back
	}
	there, err := f.OpenPlaced(e.Dest, drop.Inode(e.Node))
	if err == nil {
		defer there.Close() // read-only
		if r.sameInvoice(f, c, there.Root()) {
			return 1
		}
		return 0
	}
	if sameName(path.Base(e.Dest)) == sameName(c.Folder) {
		return 3 // a copy of what lay there
	}
	return 2
}

// sameInvoice reports whether a claimed folder and a returned one are of the same
// invoice: they bear the same number, or where one has none that can be read, share a
// file of the same name and size.
func (r *room) sameInvoice(f *drop.Folder, c drop.ClaimedFolder, returned *os.Root) bool {
	dir, _, err := f.OpenClaimed(c.Key)
	if err != nil {
		return false
	}
	defer dir.Close() // read-only
	here, there := r.features(dir.Root()), r.features(returned)
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

// features are what two drops of one invoice have in common.
type features struct {
	number string           // as it stands in the sidecar; empty: none that can be read
	files  map[string]int64 // sizes of the files at the top
}

const (
	mostFeatures = 1000
	mostSidecar  = 1 << 20
)

var documentID = regexp.MustCompile(`"documentId"\s*:\s*"([^"\n]{1,200})"`)

// features looks at the top of a folder. The sidecar may be broken: that is why it was refused.
func (r *room) features(root *os.Root) features {
	x := features{files: map[string]int64{}}
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
		case strings.EqualFold(name, r.cfg.Rules.Sidecar):
			if text, err := io.ReadAll(io.LimitReader(file, mostSidecar)); err == nil {
				if m := documentID.FindSubmatch(text); m != nil {
					x.number = string(m[1])
				}
			}
		case !packager.IsJunkName(name):
			x.files[name] = info.Size()
		}
		file.Close() // read-only
	}
	return x
}
