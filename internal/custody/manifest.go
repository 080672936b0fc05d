package custody

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// Manifest says what is held of one extract. It stands beside the files and is written once, when all are held.
type Manifest struct {
	Extract    archive.Extract // Status is empty: it changes
	HeldAt     time.Time
	Definition File // Stored is empty: the service had none
	Files      []HeldFile
	SHA256     archive.Digest // of the manifest's own file

	folder string
}

// HeldFile is one file of a manifest, with the service's names.
type HeldFile struct {
	Name  string `json:"name"`
	Table string `json:"table"`
	File
}

// manifestForm is the stored form, in the order of its fields for ever.
type manifestForm struct {
	Manifest    int        `json:"manifest"`
	Ledger      string     `json:"ledger"`
	Environment string     `json:"environment"`
	ID          string     `json:"id"`
	Type        string     `json:"type"`
	Start       time.Time  `json:"start,omitzero"`
	End         time.Time  `json:"end,omitzero"`
	Made        time.Time  `json:"made,omitzero"`
	Name        string     `json:"name"`
	FileCount   int        `json:"fileCount"` // as the service told it; -1: it did not
	HeldAt      time.Time  `json:"heldAt"`
	Definition  File       `json:"definition"`
	Files       []HeldFile `json:"files"`
}

// ManifestError says that a manifest cannot be used.
type ManifestError struct {
	Path string
	Err  error
}

// Error implements error.
func (e *ManifestError) Error() string { return fmt.Sprintf("manifest %s: %v", e.Path, e.Err) }

// Unwrap returns the cause.
func (e *ManifestError) Unwrap() error { return e.Err }

// Seal writes the manifest of an extract whose files are all held, and returns
// it with its digest. If a manifest of the same files is there already, that
// one is returned: its time is the first one. A manifest of other files is
// never replaced; the error is a *ManifestError then.
func (h *Holding) Seal(files []HeldFile, definition File, at time.Time) (Manifest, archive.Digest, error) {
	m := Manifest{Extract: h.of, HeldAt: at.UTC().Truncate(time.Second), Definition: definition, Files: slices.Clone(files), folder: filepath.Base(h.path)}
	m.Extract.Status = ""
	slices.SortFunc(m.Files, func(a, b HeldFile) int { return cmp.Compare(a.Stored, b.Stored) })
	where := filepath.Join(h.path, manifestFile)
	had, err := readFile(h.dir, manifestFile)
	if err == nil {
		first, err := h.in.parseManifest(had, m.folder)
		if err != nil {
			return Manifest{}, archive.Digest{}, &ManifestError{Path: where, Err: err}
		}
		m.HeldAt = first.HeldAt
		if !bytes.Equal(h.in.encodeManifest(m), had) {
			return Manifest{}, archive.Digest{}, &ManifestError{Path: where, Err: errors.New("it names other files than those that came now: look at both, and move the older folder away")}
		}
		m.SHA256 = archive.Sum(had)
		return m, m.SHA256, h.dir.Sync() // it may be of a life that died before it synced the folder
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, archive.Digest{}, &ManifestError{Path: where, Err: err}
	}
	content := h.in.encodeManifest(m)
	// All files and the definition are durable by now. After a crash here the manifest is there whole, or missing; the next start
	// finds the files and writes it again.
	if err := h.dir.WriteFile(manifestFile, content, fileMode); err != nil {
		return Manifest{}, archive.Digest{}, &ManifestError{Path: where, Err: err}
	}
	m.SHA256 = archive.Sum(content)
	return m, m.SHA256, nil
}

// Manifests yields the manifest of each extract that is held, in no order. An extract that is not whole yet has none. A manifest
// that cannot be used comes with its error, and the others follow.
func (c *Custody) Manifests() iter.Seq2[Manifest, error] {
	return func(yield func(Manifest, error) bool) {
		stop := errors.New("stop")
		err := c.extracts.EachName(func(folder string) error {
			m, err := c.readManifest(folder)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil {
				err = &ManifestError{Path: filepath.Join(c.path, extractFolder, folder, manifestFile), Err: err}
			}
			if !yield(m, err) {
				return stop
			}
			return nil
		})
		if err != nil && !errors.Is(err, stop) {
			yield(Manifest{}, fmt.Errorf("list the custody folder %s: %w", c.path, err))
		}
	}
}

// Find returns the manifest of an extract. The error wraps fs.ErrNotExist where it is not held whole.
func (c *Custody) Find(id archive.ExtractID) (Manifest, error) { return c.readManifest(folderName(id)) }

// HasLost reports whether the manifest of an extract that was held, or a file
// of it, is missing. If the folder of custody itself is not there, the error
// says so, and nothing is called lost.
func (c *Custody) HasLost(id archive.ExtractID) (bool, error) {
	mark, err := readFile(c.dir, ownerFile)
	if err == nil {
		err = c.checkOwner(mark)
	}
	if err != nil {
		return false, fmt.Errorf("look at the custody folder %s: %w", c.path, err)
	}
	m, err := c.Find(id)
	for i := 0; err == nil && i < len(m.Files); i++ {
		_, err = c.extracts.Root().Lstat(filepath.Join(m.folder, fileFolder, m.Files[i].Stored))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	return false, err
}

func (c *Custody) readManifest(folder string) (Manifest, error) {
	dir, err := c.extracts.OpenDir(folder)
	if err != nil {
		return Manifest{}, err
	}
	defer dir.Close() // read-only
	content, err := readFile(dir, manifestFile)
	if err != nil {
		return Manifest{}, err
	}
	return c.parseManifest(content, folder)
}

func (c *Custody) parseManifest(content []byte, folder string) (Manifest, error) {
	var f manifestForm
	if err := json.Unmarshal(content, &f); err != nil {
		return Manifest{}, fmt.Errorf("it is damaged: %w", err)
	}
	id, err := archive.ParseExtractID(f.ID)
	switch {
	case f.Manifest != version:
		return Manifest{}, fmt.Errorf("it has the form %d, and this vaultd knows the form %d", f.Manifest, version)
	case err != nil:
		return Manifest{}, err
	case folderName(id) != folder:
		return Manifest{}, fmt.Errorf("it is of extract %s, whose folder is another one", id)
	case f.Ledger != c.ledger || f.Environment != c.environment:
		return Manifest{}, fmt.Errorf("it belongs to the ledger %s (%s)", f.Ledger, f.Environment)
	}
	return Manifest{Extract: archive.Extract{ID: id, Type: f.Type, Start: f.Start.UTC(), End: f.End.UTC(), Made: f.Made.UTC(), Files: f.FileCount, Name: f.Name},
		HeldAt: f.HeldAt, Definition: f.Definition, Files: f.Files, SHA256: archive.Sum(content), folder: folder}, nil
}

func (c *Custody) encodeManifest(m Manifest) []byte {
	f := manifestForm{Manifest: version, Ledger: c.ledger, Environment: c.environment, ID: string(m.Extract.ID), Type: m.Extract.Type,
		Start: m.Extract.Start.UTC(), End: m.Extract.End.UTC(), Made: m.Extract.Made.UTC(), Name: m.Extract.Name,
		FileCount: m.Extract.Files, HeldAt: m.HeldAt, Definition: m.Definition, Files: append([]HeldFile{}, m.Files...)}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		panic(err) // texts, numbers and times of this century always encode
	}
	return append(b, '\n')
}

// ChangedError says that a held file is not what its manifest says.
type ChangedError struct{ Path, Why string }

// Error implements error.
func (e *ChangedError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Why) }

// Verify reads every file of a manifest and compares it with its digest. A difference is a *ChangedError; all of them are joined.
func (c *Custody) Verify(ctx context.Context, m Manifest) error {
	var all error
	if m.Definition.Stored != "" {
		all = c.verifyFile(ctx, m, m.Definition.Stored, m.Definition)
	}
	for _, f := range m.Files {
		all = errors.Join(all, c.verifyFile(ctx, m, filepath.Join(fileFolder, f.Stored), f.File))
	}
	return all
}

func (c *Custody) verifyFile(ctx context.Context, m Manifest, rel string, f File) error {
	path := filepath.Join(c.path, extractFolder, m.folder, rel)
	file, info, err := openHeld(c.extracts, filepath.Join(m.folder, rel), path)
	if err != nil {
		return err
	}
	defer file.Close() // read-only
	if info.Size() != f.Size {
		return &ChangedError{Path: path, Why: fmt.Sprintf("it has %d bytes, the manifest says %d; restore it from a copy of the folder", info.Size(), f.Size)}
	}
	sum, _, err := digestOf(&stoppable{ctx: ctx, r: file})
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if sum != f.SHA256 {
		return &ChangedError{Path: path, Why: "its SHA-256 is not the one of the manifest; restore it from a copy of the folder"}
	}
	return nil
}

// OpenFile opens a held file as it came. Its bytes are not compared with a digest: whoever reads them to their end does that. The caller
// closes it.
func (c *Custody) OpenFile(id archive.ExtractID, stored string) (io.ReadCloser, error) {
	rel := filepath.Join(folderName(id), fileFolder, stored)
	file, _, err := openHeld(c.extracts, rel, filepath.Join(c.path, extractFolder, rel))
	if err != nil {
		return nil, err
	}
	return file, nil
}

// openHeld opens a file that is held, at rel in dir. A missing one is a *ChangedError.
func openHeld(dir *durable.Dir, rel, path string) (*os.File, fs.FileInfo, error) {
	file, info, err := durable.OpenRegular(dir.Root(), rel)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, &ChangedError{Path: path, Why: "it is missing; restore it from a copy of the folder"}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("open %s: %w", path, err)
	}
	return file, info, nil
}

// EachEntry calls do with each part of a held file as it is unpacked, in the order of the container. do must read each to its end.
// The bytes are not compared with the digest: [Custody.Verify] does that. A
// file that unpacks to more than custody takes is a *DamagedError.
func (c *Custody) EachEntry(m Manifest, f HeldFile, do func(name string, content io.Reader) error) error {
	file, info, err := durable.OpenRegular(c.extracts.Root(), filepath.Join(m.folder, fileFolder, f.Stored))
	if err != nil {
		return fmt.Errorf("open %s of extract %s: %w", f.Stored, m.Extract.ID, err)
	}
	defer file.Close() // read-only
	if err := eachEntry(file, info.Size(), c.maxUnpacked, f.Form, do); err != nil {
		return fmt.Errorf("read %s of extract %s: %w", f.Stored, m.Extract.ID, err)
	}
	return nil
}

// ReadDefinition returns the table definition of the day of an extract, as it
// came. The manifest must have one.
func (c *Custody) ReadDefinition(m Manifest) ([]byte, error) {
	dir, err := c.extracts.OpenDir(m.folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close() // read-only
	return readFile(dir, m.Definition.Stored)
}
