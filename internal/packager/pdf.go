package packager

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// PDFRules is what a drop of single PDFs asks of them.
type PDFRules struct {
	Receiving string // address of the PDF flow
	Notify    string // address that the service tells of it
	MaxSize   int64  // bytes of a PDF; 0: archive.MaxPackage

	// openFile is that of Rules.
	openFile func(root *os.Root, path string) (*os.File, fs.FileInfo, error)
}

// BuildPDF checks the single PDF that lies in the claimed folder at root, and copies it byte for byte as the file name into spool,
// mode 0600, replacing what is there. When it returns without an error the copy is synced and was read back. The directory is not
// synced, as with [BuildPackage]. After an error nothing new bears the name.
//
// Its errors are those of BuildPackage. The same PDF under the same rules gives the same result.
func BuildPDF(ctx context.Context, root *os.Root, rules PDFRules, spool *durable.Dir, name string) (Sealed, error) {
	return buildPDF(ctx, rules, spool, name, func() (*listing, error) { return listFolder(root, rules.forListing()) })
}

// ValidatePDF checks the single file name in root as BuildPDF checks the file of
// a claimed folder, and writes nothing. It returns the same errors, and a zero
// Package: it is not taken yet.
func ValidatePDF(ctx context.Context, root *os.Root, name string, rules PDFRules) (Sealed, error) {
	s, err := buildPDF(ctx, rules, nil, "", func() (*listing, error) { return listFile(root, name, rules.forListing()) })
	s.Package = archive.Package{}
	return s, err
}

// ValidatePDFFolder is ValidatePDF for the single PDF in the claimed folder at
// root. It returns the Package, without a path.
func ValidatePDFFolder(ctx context.Context, root *os.Root, rules PDFRules) (Sealed, error) {
	return BuildPDF(ctx, root, rules, nil, "")
}

// buildPDF copies the PDF that list finds as the file name into spool; without a
// spool it reads the PDF in the same way and writes nothing.
func buildPDF(ctx context.Context, rules PDFRules, spool *durable.Dir, name string, list func() (*listing, error)) (Sealed, error) {
	if err := rules.check(); err != nil {
		return Sealed{}, err
	}
	p, err := openPDFFolder(list)
	if err != nil {
		return Sealed{}, err
	}
	if spool == nil {
		copied, err := p.copyTo(ctx, io.Discard)
		if err != nil {
			return Sealed{}, err
		}
		return p.describe(rules, copied, name), nil
	}
	part, err := spool.Create(name, 0o600)
	if err != nil {
		return Sealed{}, fmt.Errorf("create copy: %w", err)
	}
	defer part.Discard()
	copied, err := p.copyTo(ctx, part)
	if err != nil {
		return Sealed{}, err
	}
	// The copy is read back before it gets its name: a copy under its name is always that of the PDF.
	if err := copied.compareWith(ctx, part); err != nil {
		return Sealed{}, fmt.Errorf("read back copy: %w", err)
	}
	// A crash here leaves a temporary file or a whole copy that no entry records. Either is replaced when the PDF is copied again.
	if err := part.CommitWithoutDirSync(); err != nil {
		return Sealed{}, fmt.Errorf("finish copy: %w", err)
	}
	return p.describe(rules, copied, name), nil
}

// check returns an error for rules that are a mistake of the configuration: no PDF is refused for it.
func (r PDFRules) check() error {
	if r.Receiving == "" || r.Notify == "" {
		return errors.New("use packaging rules: an address is missing")
	}
	return nil
}

// listFile is listFolder for a single file, whatever else lies beside it.
func listFile(root *os.Root, name string, rules Rules) (*listing, error) {
	dir, err := root.Open(".")
	if err != nil {
		return nil, fmt.Errorf("open folder: %w", withoutPath(err))
	}
	defer dir.Close() // read-only
	info, err := durable.Lstat(dir, name)
	if err != nil {
		return nil, fmt.Errorf("look at %q: %w", name, withoutPath(err))
	}
	l := &listing{root: root, rules: rules}
	if !l.checkName(name, name, map[string]string{}) {
		return l, nil
	}
	return l, l.addEntry(foundEntry{disk: name, info: info, from: fromPeople})
}

// pdfFolder is a claimed folder that holds a single PDF.
type pdfFolder struct {
	*listing
	file foundFile
	list func() (*listing, error) // lists the folder anew
}

// describe returns what follows from the rules and the bytes of the PDF, which was copied as name.
func (p *pdfFolder) describe(rules PDFRules, copied *pdfCopy, name string) Sealed {
	return Sealed{
		ID:       archive.DerivePDFID(rules.Receiving, copied.sha256),
		Metadata: archive.PDFRequest{Receiving: rules.Receiving, Notify: rules.Notify}.Encode(), MetadataDigest: archive.ReceivingDigest(rules.Receiving),
		Files: []archive.File{{Path: p.file.path, Size: p.file.state.Size, SHA256: copied.sha256}}, Junk: p.junk, Content: copied.sha256, Endings: p.endings, Owners: p.owners(),
		Package: archive.Package{Path: name, Size: p.file.state.Size, SHA256: copied.sha256, MD5: copied.md5},
	}
}

// openPDFFolder reads the names in the folder, and refuses it for what is wrong with them.
func openPDFFolder(list func() (*listing, error)) (*pdfFolder, error) {
	l, err := list()
	if err != nil {
		return nil, err
	}
	l.leaveOut(func(string) bool { return false })
	p := &pdfFolder{listing: l, list: list}
	all := l.allFiles()
	switch {
	case len(all) == 1 && all[0].state.Size > l.rules.MaxSize:
		l.faults = nil // the listing refuses a huge file in the words for a folder
		p.file = all[0]
		p.checkSize()
	case len(l.faults) > 0:
	case len(all) == 0:
		l.addFault("", "empty folder", "The folder is empty", "Put the PDF itself into the drop folder.")
	case len(all) > 1 || all[0].disk != path.Base(all[0].disk):
		l.addFault("", "more than one file", "The folder holds more than a single PDF", "Move each PDF back by itself.")
	default:
		p.file = all[0]
		p.checkSize()
	}
	return p, p.refusalOrChanged(l.faults)
}

// forListing gives the rules under which the folder of a PDF is listed. There is no sidecar.
func (r PDFRules) forListing() Rules {
	open := r.openFile
	if open == nil {
		open = durable.OpenRegular
	}
	return Rules{MaxSize: cmp.Or(r.MaxSize, archive.MaxPackage), openFile: open}
}

func (p *pdfFolder) checkSize() {
	name, size := p.quotedName(), p.file.state.Size
	switch {
	case size == 0:
		p.addFault("", "empty file", name+" is empty: it has 0 bytes", "Scan it again.")
	case size > p.rules.MaxSize:
		p.addFault("", "too large", fmt.Sprintf("%s has %s; the service takes %s", name, megabytes(size), megabytes(p.rules.MaxSize)), "Save it as a smaller PDF")
	}
}

func (p *pdfFolder) quotedName() string { return `"` + showName(p.file.path) + `"` }

// refusalOrChanged returns archive.ErrChanged for a folder that changed since
// the listing, a Refusal for one that has faults, and nil for one without.
func (p *pdfFolder) refusalOrChanged(faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	again, err := p.list()
	if err != nil {
		return err
	}
	if !slices.Equal(p.allFiles(), again.allFiles()) {
		return fmt.Errorf("the folder: %w", archive.ErrChanged)
	}
	return &Refusal{Faults: faults, Of: SinglePDF}
}

// copyTo copies the PDF and checks its ends.
func (p *pdfFolder) copyTo(ctx context.Context, to io.Writer) (*pdfCopy, error) {
	c := &pdfCopy{to: to, sum: sha256.New(), md5Sum: md5.New()}
	// writeErr is a fault of the spool's disk; an error of reading is one of the share's.
	var writeErr error
	err := p.readFile(p.file, func(r io.Reader) (readErr error) {
		writeErr, readErr = c.readAll(&contextReader{ctx, r}, p.file.state.Size)
		return readErr
	})
	switch {
	case err != nil:
		return nil, err
	case writeErr != nil:
		return nil, fmt.Errorf("copy %q: %w", p.file.path, writeErr)
	case !c.isPDF() || archive.IsBegunPDF(c.head):
		p.addFault("", "no PDF", p.quotedName()+" is no PDF", "Save it as PDF")
	}
	c.sha256, c.md5 = archive.Digest(c.sum.Sum(nil)), [16]byte(c.md5Sum.Sum(nil))
	if err := p.refusalOrChanged(p.faults); err != nil {
		return c, err
	}
	return c, p.checkEnding(p.file, ".pdf")
}

// pdfCopy is a copy that is being made.
type pdfCopy struct {
	to          io.Writer
	sum, md5Sum hash.Hash
	head        []byte // the first bytes, at most endSize of them
	size        int64

	sha256 archive.Digest
	md5    [16]byte
}

// endSize is in how many bytes from the start a PDF has its mark: so far the usual readers look.
const endSize = 1024

func (c *pdfCopy) isPDF() bool { return bytes.Contains(c.head, []byte("%PDF-")) }

// readAll copies size bytes. It stops early, without an error, when the first ones are not those of a PDF.
func (c *pdfCopy) readAll(r io.Reader, size int64) (writeErr, readErr error) {
	buf := make([]byte, min(size, chunkSize))
	for left := size; left > 0; {
		piece := buf[:min(left, int64(len(buf)))]
		if _, err := io.ReadFull(r, piece); err != nil {
			return nil, err
		}
		left -= int64(len(piece))
		if c.size == 0 {
			if c.head = slices.Clone(piece[:min(len(piece), endSize)]); !c.isPDF() {
				return nil, nil
			}
		}
		c.sum.Write(piece)
		c.md5Sum.Write(piece)
		n, err := c.to.Write(piece)
		if c.size += int64(n); err != nil {
			return err, nil
		}
	}
	return nil, nil
}

// compareWith reads the copy back.
func (c *pdfCopy) compareWith(ctx context.Context, r io.ReaderAt) error {
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, &contextReader{ctx, io.NewSectionReader(r, 0, c.size+1)}, make([]byte, chunkSize))
	switch {
	case err != nil:
		return err
	case n != c.size || archive.Digest(sum.Sum(nil)) != c.sha256:
		return errors.New("its bytes are not those of the PDF")
	}
	return nil
}
