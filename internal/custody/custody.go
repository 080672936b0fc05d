package custody

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// Names in the folder.
const (
	ownerFile     = "custody.json"
	extractFolder = "extracts"
	fileFolder    = "files"
	manifestFile  = "manifest.json"
	partEnding    = ".part"
)

// version is the form of the folder.
const version = 1

// maxOwnFile limits what is read of a file of our own, in bytes. A manifest has some hundred bytes for each file of its extract.
const maxOwnFile = 64 << 20

// Modes of what is made here: the files are business records, and the group of the folder may read them.
const (
	folderMode fs.FileMode = 0o750
	fileMode   fs.FileMode = 0o640
)

// owner is the content of custody.json: which ledger the folder belongs to.
type owner struct {
	Custody     int    `json:"custody"`
	Ledger      string `json:"ledger"`
	Environment string `json:"environment"`
}

// ForeignError says that a folder belongs to another ledger or environment.
type ForeignError struct{ Path, Ledger, Environment string }

// Error implements error.
func (e *ForeignError) Error() string {
	return fmt.Sprintf("the custody folder %s belongs to the ledger %s (%s), not to this one: set extracts.custody to a folder of its own", e.Path, e.Ledger, e.Environment)
}

// Custody is the folder. It is safe for concurrent use, but each extract has one writer at a time.
type Custody struct {
	path        string
	ledger      string
	environment string
	dir         *durable.Dir // the folder itself
	extracts    *durable.Dir
	maxUnpacked int64 // of one file, in bytes
}

// Open opens the folder at path, which must exist, for one ledger and
// environment. It marks an empty folder as theirs. If the folder belongs to
// others, the error is a *ForeignError. If it has files but no mark, it may be
// a wrong folder, and nothing is written. fault is nil but in tests.
func Open(path, ledger, environment string, fault durable.Hook) (*Custody, error) {
	dir, err := durable.Open(path, fault)
	if err != nil {
		return nil, fmt.Errorf("open the custody folder: %w (make the folder for the user of vaultd, or correct extracts.custody)", err)
	}
	c := &Custody{path: path, ledger: ledger, environment: environment, dir: dir, maxUnpacked: maxUnpacked}
	if err := c.claim(); err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	if c.extracts, err = makeFolder(dir, extractFolder, folderMode); err != nil {
		return nil, errors.Join(fmt.Errorf("open the custody folder %s: %w", path, err), dir.Close())
	}
	return c, nil
}

// Close closes the folder. What lies in it stays.
func (c *Custody) Close() error { return errors.Join(c.extracts.Close(), c.dir.Close()) }

// claim makes sure that the folder belongs to this ledger.
func (c *Custody) claim() error {
	mark, err := readFile(c.dir, ownerFile)
	switch {
	case err == nil:
		return c.checkOwner(mark)
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("read %s: %w", filepath.Join(c.path, ownerFile), err)
	}
	if err := c.dir.EachName(func(name string) error {
		if name == durable.TemporaryName(ownerFile) {
			return nil // of a start that died here
		}
		return fmt.Errorf("the custody folder %s has no %s, but %q lies in it: set extracts.custody to an empty folder", c.path, ownerFile, name)
	}); err != nil {
		return err
	}
	// This is written before any file is kept. After a crash the folder is still empty, or it is ours.
	content, err := json.Marshal(owner{Custody: version, Ledger: c.ledger, Environment: c.environment})
	if err != nil {
		return err
	}
	return c.dir.WriteFile(ownerFile, append(content, '\n'), fileMode)
}

func (c *Custody) checkOwner(mark []byte) error {
	var o owner
	if err := json.Unmarshal(mark, &o); err != nil || o.Custody == 0 {
		return fmt.Errorf("%s is damaged: restore it from a copy, or set extracts.custody to an empty folder", filepath.Join(c.path, ownerFile))
	}
	switch {
	case o.Custody > version:
		return fmt.Errorf("the custody folder %s was written by a newer vaultd (form %d): use that one", c.path, o.Custody)
	case o.Ledger != c.ledger || o.Environment != c.environment:
		return &ForeignError{Path: c.path, Ledger: o.Ledger, Environment: o.Environment}
	}
	return nil
}

// makeFolder opens the folder name in dir, and makes it where it is missing.
func makeFolder(dir *durable.Dir, name string, mode fs.FileMode) (*durable.Dir, error) {
	sub, err := dir.OpenDir(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return sub, err
	}
	// After a crash here the folder is there and empty, or missing; the next call finds it or makes it.
	if err := dir.Mkdir(name, mode, -1); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return dir.OpenDir(name)
}

// readFile reads a small file of our own.
func readFile(dir *durable.Dir, name string) ([]byte, error) {
	f, info, err := durable.OpenRegular(dir.Root(), name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read-only
	if info.Size() > maxOwnFile {
		return nil, fmt.Errorf("%s has %d bytes, more than a file of vaultd has", name, info.Size())
	}
	return io.ReadAll(io.LimitReader(f, maxOwnFile))
}

// folderName is the name of the folder of an extract: its number, where that is a plain name, else one that is made of its digest.
// Two extracts never share a folder: a plain name never begins as a made one does.
func folderName(id archive.ExtractID) string {
	if isPlainName(string(id)) {
		return string(id)
	}
	return madeName + archive.Sum([]byte(id)).String()[:32]
}

const (
	madeName    = "id-"
	longestName = 100
)
