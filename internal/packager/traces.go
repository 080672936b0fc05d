package packager

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"slices"

	"vaultd/internal/archive"
)

// mostCompared bounds the bytes that are read to compare two folders.
const mostCompared = 200_000_000

// Traces are what a folder has in common with another drop of the same document,
// whatever is wrong with either of them.
type Traces struct {
	AsRead archive.AsRead // of the sidecar or document; zero: nothing could be read

	listing *listing // its files are all but sidecar, lists, junk and vaultd's notes
	isWhole bool     // all of them are listed
}

// ReadTraces reads the sidecar of a folder and lists its files.
func ReadTraces(ctx context.Context, root *os.Root, rules Rules) (Traces, error) {
	rules, err := rules.validated()
	if err != nil {
		return Traces{}, err
	}
	return readTraces(ctx, root, rules, func(d *droppedFolder) error {
		_, err := d.readLists()
		return err
	})
}

// ReadNetworkTraces is ReadTraces for a folder of the business network.
func ReadNetworkTraces(ctx context.Context, root *os.Root, rules NetworkRules) (Traces, error) {
	rules, err := rules.validated()
	if err != nil {
		return Traces{}, err
	}
	return readTraces(ctx, root, rules.Rules, func(d *droppedFolder) error {
		return (&networkFolder{droppedFolder: d, rules: rules}).readDocument()
	})
}

// ReadPDFTraces is ReadTraces for the folder of a single PDF, which has no sidecar.
func ReadPDFTraces(ctx context.Context, root *os.Root, rules PDFRules) (Traces, error) {
	return readTraces(ctx, root, rules.forListing(), func(*droppedFolder) error { return nil })
}

func readTraces(ctx context.Context, root *os.Root, rules Rules, readSidecar func(*droppedFolder) error) (Traces, error) {
	if err := ctx.Err(); err != nil {
		return Traces{}, err
	}
	l, err := readListing(&listing{root: root, rules: rules, ignoresTemporary: true})
	if err != nil {
		return Traces{}, err
	}
	d := &droppedFolder{listing: l, form: newSidecarReader(rules.Sidecar)}
	err = readSidecar(d)
	return Traces{AsRead: d.form.asRead, listing: l, isWhole: len(l.faults) == 0}, err
}

// HasFileOf reports whether all files are known, and one has this size.
func (t Traces) HasFileOf(size int64) bool {
	return t.isWhole && slices.ContainsFunc(t.listing.files, func(f foundFile) bool { return f.state.Size == size })
}

// Owners returns the uids of whom the files that are listed belong to, each once.
func (t Traces) Owners() []uint32 { return t.listing.owners() }

// Files returns all files with their digests; none where not all of them are known,
// or where they are too large to be compared. A file that changes meanwhile is an
// error that wraps [archive.ErrChanged].
func (t Traces) Files(ctx context.Context) ([]archive.File, error) {
	if !t.isWhole {
		return nil, nil
	}
	if _, total := t.listing.largestFile(); total > mostCompared {
		return nil, nil
	}
	var files []archive.File
	for _, f := range t.listing.files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one := archive.File{Path: f.path, Size: f.state.Size}
		err := t.listing.readFile(f, func(r io.Reader) error {
			h := sha256.New()
			_, err := io.CopyN(h, r, one.Size)
			h.Sum(one.SHA256[:0])
			return err
		})
		if err != nil {
			return nil, err
		}
		files = append(files, one)
	}
	return files, nil
}

// HasContent reports whether anything but junk and vaultd's notes is in a folder. It
// reads names alone, and no more than it needs.
func HasContent(root *os.Root) (bool, error) {
	d, err := root.Open(".")
	if err != nil {
		return true, err
	}
	defer d.Close() // read-only
	for {
		names, err := d.Readdirnames(64)
		if slices.ContainsFunc(names, func(name string) bool { return !IsJunkName(name) && !isDeliveryNote(name) }) {
			return true, nil
		}
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return true, err
		}
	}
}
