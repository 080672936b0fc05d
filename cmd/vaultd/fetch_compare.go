package main

import (
	"archive/zip"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// compareDownload holds a download against the ledger and says in words what it found, and which of the ledger's outcomes that is.
func compareDownload(zipped io.ReaderAt, size int64, sum archive.Digest, e ledger.Entry, doc ledger.Document) (words, outcome string) {
	if e.Package.IsZero() {
		return fmt.Sprintf("not compared, for the ledger does not know what was sent: %s, SHA-256 %s", present.FormatBytes(size), sum), ledger.FetchNotCompared
	}
	if size == e.Package.Size && sum == e.Package.SHA256 {
		return fmt.Sprintf("identical with what was sent: %s, SHA-256 %s", present.FormatBytes(size), sum), ledger.FetchSame
	}
	differs := fmt.Sprintf("the ZIP differs: %s, SHA-256 %s; sent: %s, SHA-256 %s", present.FormatBytes(size), sum, present.FormatBytes(e.Package.Size), e.Package.SHA256)
	if len(doc.Files) == 0 {
		return differs + "; the list of its files is erased, so they cannot be compared", ledger.FetchDiffers
	}
	if err := compareFiles(zipped, size, doc.Files); err != nil {
		return differs + "; inside, " + err.Error(), ledger.FetchDiffers
	}
	return fmt.Sprintf("the container differs, it was packed anew (%s, SHA-256 %s); all %s inside have the recorded content",
		present.FormatBytes(size), sum, present.FormatCount(len(doc.Files), "file", "files")), ledger.FetchRepacked
}

// compareFiles wants exactly the recorded files, each with its recorded bytes.
func compareFiles(zipped io.ReaderAt, size int64, want []archive.File) error {
	z, err := zip.NewReader(zipped, size)
	if err != nil {
		return fmt.Errorf("it cannot be read: %w", err)
	}
	left := map[string]archive.File{}
	for _, f := range want {
		left[norm.NFC.String(f.Path)] = f
	}
	for _, f := range z.File {
		if strings.HasSuffix(f.Name, "/") {
			continue
		}
		name := norm.NFC.String(f.Name)
		recorded, ok := left[name]
		if !ok {
			return fmt.Errorf("%q is more than what was sent", f.Name)
		}
		delete(left, name)
		if err := compareFile(f, recorded); err != nil {
			return fmt.Errorf("%q %w", f.Name, err)
		}
	}
	for name := range left {
		return fmt.Errorf("%q is missing", name)
	}
	return nil
}

var errOtherContent = errors.New("has another content than was sent")

// compareFile reads at most one byte more than was recorded, whatever the ZIP promises.
func compareFile(f *zip.File, recorded archive.File) error {
	r, err := f.Open()
	if err != nil {
		return fmt.Errorf("cannot be read: %w", err)
	}
	defer r.Close() // read-only
	h := sha256.New()
	n, err := io.Copy(h, io.LimitReader(r, recorded.Size+1))
	switch {
	case n != recorded.Size || err == nil && archive.Digest(h.Sum(nil)) != recorded.SHA256:
		return errOtherContent
	case err != nil:
		return fmt.Errorf("cannot be read: %w", err)
	}
	return nil
}
