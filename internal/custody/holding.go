package custody

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// File is one file that is held.
type File struct {
	Stored string         `json:"stored"` // its name in the folder of the extract's files
	Size   int64          `json:"size"`
	SHA256 archive.Digest `json:"sha256"`
	Form   Form           `json:"form"`
	Beside string         `json:"beside,omitempty"` // the name of the file of other bytes that has its place; empty: it has it itself
}

// ErrUnknownPlace means that a file may or may not have got its name. The caller must not record it as held; vaultd stops.
var ErrUnknownPlace = durable.ErrSync

// Holding is the folder of one extract. It has one writer at a time.
type Holding struct {
	path  string
	dir   *durable.Dir
	files *durable.Dir
	of    archive.Extract
	in    *Custody
}

// Begin opens the folder of an extract, and makes it where it is missing. It may be called again at any time.
func (c *Custody) Begin(e archive.Extract) (*Holding, error) {
	name := folderName(e.ID)
	dir, err := makeFolder(c.extracts, name, folderMode)
	if err != nil {
		return nil, fmt.Errorf("open the custody of extract %s: %w", e.ID, err)
	}
	files, err := makeFolder(dir, fileFolder, folderMode)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the custody of extract %s: %w", e.ID, err), dir.Close())
	}
	return &Holding{path: filepath.Join(c.path, extractFolder, name), dir: dir, files: files, of: e, in: c}, nil
}

// Close closes the folder. What lies in it stays.
func (h *Holding) Close() error { return errors.Join(h.files.Close(), h.dir.Close()) }

// Part is a file of an extract while it comes. It is written to from its first
// byte, and then committed or abandoned.
type Part struct {
	*coming
	of         *Holding
	stored     string
	mayBePlain bool
}

// Begin opens a new part for a file with its number in the extract's list, which begins at 1. What an earlier download left of it
// is replaced.
func (h *Holding) Begin(number int, f archive.ExtractFile) (*Part, error) {
	p := &Part{of: h, stored: StoredName(number, f.Name), mayBePlain: f.MayBePlain()}
	var err error
	if p.coming, err = begin(h.files, p.stored+partEnding, fileMode); err != nil {
		return nil, fmt.Errorf("begin %s: %w", filepath.Join(h.path, fileFolder, p.stored), err)
	}
	return p, nil
}

// Abandon removes what came. After Commit it does nothing.
func (p *Part) Abandon() { p.file.Discard() }

// Commit reads the container to its end, makes the bytes durable, and gives
// them their name. If that name has the same bytes already, nothing changes. If
// it has others, both are kept, and Beside names the first. A *DamagedError
// says that the bytes are no whole file; they are removed, because they can be
// downloaded again.
func (p *Part) Commit(ctx context.Context) (File, error) {
	defer p.Abandon()
	where := filepath.Join(p.of.path, fileFolder, p.stored)
	form, err := readContainer(ctx, p.file, p.size, p.of.in.maxUnpacked, p.mayBePlain)
	if err != nil {
		return File{}, fmt.Errorf("keep %s: %w", where, err)
	}
	// The part is durable under its own name before it gets the one that counts. A crash in between leaves the part alone, and the
	// next download replaces it.
	if err := p.file.CommitWithoutDirSync(); err != nil {
		return File{}, fmt.Errorf("keep %s: %w", where, err)
	}
	f := File{Stored: p.stored, Size: p.size, SHA256: p.digest(), Form: form}
	f, err = p.of.place(p.stored+partEnding, f)
	if err != nil {
		return File{}, fmt.Errorf("keep %s: %w", where, err)
	}
	return f, nil
}

// place gives the part its name, or one beside it where other bytes have that name.
func (h *Holding) place(part string, f File) (File, error) {
	first := f.Stored
	for n := 0; ; n++ {
		if n > 0 {
			f.Stored, f.Beside = fmt.Sprintf("%s%s%d", first, besideMark, n), first
		}
		// The name is taken only if it is free. After a crash here the file has one of its two names; whoever comes again finds
		// the same bytes under the name that counts, or downloads them once more.
		err := h.files.RenameIntoOwn(part, h.files, f.Stored)
		if !errors.Is(err, fs.ErrExist) {
			return f, err
		}
		same, err := h.holds(f)
		if err != nil {
			return f, err
		}
		if same {
			return f, h.removePart(part)
		}
	}
}

// removePart removes the second copy of bytes that are held.
func (h *Holding) removePart(part string) error {
	if err := h.files.Unlink(part); err != nil {
		return err
	}
	// The name that counts may be of a life that died before it synced the folder.
	return h.files.Sync()
}

// holds reports whether the bytes of f lie under its name.
func (h *Holding) holds(f File) (bool, error) {
	file, info, err := durable.OpenRegular(h.files.Root(), f.Stored)
	if err != nil {
		return false, err
	}
	defer file.Close() // read-only
	if info.Size() != f.Size {
		return false, nil
	}
	sum, _, err := digestOf(file)
	return err == nil && sum == f.SHA256, err
}

// Definition keeps the table definition as it came, under a name that is made of its digest, so that one definition is kept once.
func (h *Holding) Definition(raw []byte) (File, error) {
	sum := archive.Sum(raw)
	f := File{Stored: "definition-" + sum.String()[:12] + ".json", Size: int64(len(raw)), SHA256: sum, Form: Plain}
	had, err := readFile(h.dir, f.Stored)
	switch {
	case err == nil && archive.Sum(had) == sum:
		return f, h.dir.Sync() // it may be of a life that died before it synced the folder
	case err == nil:
		return File{}, fmt.Errorf("%s has other bytes than its name says: look at it and move it away", filepath.Join(h.path, f.Stored))
	case !errors.Is(err, fs.ErrNotExist):
		return File{}, fmt.Errorf("read %s: %w", filepath.Join(h.path, f.Stored), err)
	}
	// After a crash here it is there whole, or missing; the next try writes it.
	if err := h.dir.WriteFile(f.Stored, raw, fileMode); err != nil {
		return File{}, fmt.Errorf("keep %s: %w", filepath.Join(h.path, f.Stored), err)
	}
	return f, nil
}

// StoredName makes the name of a file harmless: its number in the list, and
// what is left of the service's name.
func StoredName(number int, name string) string {
	safe := strings.Map(func(r rune) rune {
		if isPlainRune(r) {
			return r
		}
		return '_'
	}, name)
	return fmt.Sprintf("%04d-%s", number, safe[:min(len(safe), longestName)])
}

// isPlainName reports whether a number of the service is a name that every file system and person takes as it is. Upper-case letters
// are none: some file systems do not tell them from small ones.
func isPlainName(s string) bool {
	return s != "" && len(s) <= longestName && s[0] != '.' && !strings.HasPrefix(s, madeName) && s == strings.ToLower(s) &&
		strings.IndexFunc(s, func(r rune) bool { return !isPlainRune(r) }) < 0
}

func isPlainRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '.' || r == '_' || r == '-'
}

// Recall returns a file that was kept before as [Part.Commit] returned it, for a manifest that is made in a later life. It reads the
// file's length and first bytes, and not its content: [Custody.Verify] does that. A *ChangedError says that it is not there so.
func (h *Holding) Recall(stored string, size int64, sum archive.Digest) (File, error) {
	path := filepath.Join(h.path, fileFolder, stored)
	file, info, err := openHeld(h.files, stored, path)
	if err != nil {
		return File{}, err
	}
	defer file.Close() // read-only
	if info.Size() != size {
		return File{}, &ChangedError{Path: path, Why: fmt.Sprintf("it has %d bytes, the ledger says %d; restore it from a copy of the folder", info.Size(), size)}
	}
	form, err := formOf(file)
	if err != nil {
		return File{}, fmt.Errorf("read %s: %w", path, err)
	}
	f := File{Stored: stored, Size: size, SHA256: sum, Form: form}
	if i := strings.LastIndex(stored, besideMark); i > 0 {
		f.Beside = stored[:i]
	}
	return f, nil
}

// besideMark stands in the name of a file whose place has other bytes, before its number.
const besideMark = ".other-"
