package dropwork

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ingest"
)

var _ ingest.Copies = SentCopies{}

// SentCopies puts copies of what was sent over the business network into a drop folder of the archive.
type SentCopies struct{ Into *Drop }

// Names of the files of a copy that are not those of its document.
const (
	copiedDocument = "document.json" // as it was dropped
	copiedBody     = "sent.json"     // as it was sent: with the numbers that its files have at the network
)

// PutCopy implements ingest.Copies.
func (c SentCopies) PutCopy(ctx context.Context, s ingest.SentCopy) error {
	d, err := archive.ParseMetadata(s.Metadata)
	if err != nil {
		return err
	}
	in := archive.DropFolder{Key: s.Key, Name: archive.NameFolder("Sent", d.RecipientName, d.Number)}
	names := newCopyNames(c.Into.Settings.Rules.Sidecar)
	add := func(name string, f archive.File, open func() (io.ReadCloser, error)) {
		f.Path = names.choose(name)
		in.Files = append(in.Files, archive.DropFile{File: f, Open: open})
	}
	for i, f := range s.Files {
		name := f.Path
		if i == 0 {
			name = copiedDocument
		}
		add(name, f.File, f.Open)
	}
	if s.Body != nil {
		add(copiedBody, archive.File{Size: int64(len(s.Body)), SHA256: archive.Sum(s.Body)}, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(s.Body)), nil })
	}
	in.Sidecar = archive.MakeSidecar(s.ID, names.all, s.Metadata)
	// After a crash here the folder lies out of sight, in its place, or was taken from there; the copy is put there again, and has the same identity.
	err = c.Into.PutFolder(ctx, in)
	c.Into.endOnSyncError(err)
	return err
}

// copyNames chooses the names of the files of a copy: their own ones, unless the drop folder would take that for something else.
type copyNames struct {
	taken map[string]bool
	all   []string
}

func newCopyNames(sidecar string) *copyNames {
	return &copyNames{taken: map[string]bool{archive.FoldName(sidecar): true}}
}

func (n *copyNames) choose(name string) string {
	name = norm.NFC.String(name)
	ending := archive.CutText(path.Ext(name), archive.MaxNameInDrop/2)
	name = archive.CutText(strings.TrimSuffix(name, path.Ext(name)), archive.MaxNameInDrop-len(ending)) + ending
	if !drop.IsPlainName(name) {
		name = strings.Map(func(r rune) rune {
			if !drop.IsPlainName("x" + string(r) + "x") {
				return '_'
			}
			return r
		}, "file "+name)
	}
	for chosen, i := name, 2; ; chosen, i = fmt.Sprintf("%d %s", i, name), i+1 {
		if !n.taken[archive.FoldName(chosen)] {
			n.taken[archive.FoldName(chosen)] = true
			n.all = append(n.all, chosen)
			return chosen
		}
	}
}
