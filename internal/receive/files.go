package receive

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/sanitize"
)

const (
	documentName = "document.json" // of the document itself, as it came

	folderMode fs.FileMode = 0o700
	fileMode   fs.FileMode = 0o600

	longestID = 100
)

// part is a file while it comes.
type part struct {
	*durable.TempFile
	sum  hash.Hash
	size int64
}

// Write implements io.Writer.
func (p *part) Write(b []byte) (int, error) {
	n, err := p.TempFile.Write(b)
	p.sum.Write(b[:n])
	p.size += int64(n)
	return n, err
}

// ReadFrom implements io.ReaderFrom, in place of that of the file: nothing is written past Write.
func (p *part) ReadFrom(from io.Reader) (int64, error) {
	return io.Copy(struct{ io.Writer }{p}, from)
}

// openFolder opens the folder of the arrival, and makes it where it is missing.
func (w *work) openFolder() (*durable.Dir, error) {
	name := w.a.Key.String()
	dir, err := w.cfg.Dir.OpenDir(name)
	if !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	// After a crash here the folder is there and empty, or missing; the next call finds it or makes it.
	if err := w.cfg.Dir.Mkdir(name, folderMode, -1); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	return w.cfg.Dir.OpenDir(name)
}

// keepFile makes a file of what write writes, and makes it durable. A file of that name is one of which no line tells, and is replaced.
func (w *work) keepFile(name string, write func(*part) error) (kept archive.File, err error) {
	dir, err := w.openFolder()
	if err != nil {
		return kept, err
	}
	defer dir.Close() // synced by the commit below
	file, err := dir.Create(name, fileMode)
	if err != nil {
		return kept, err
	}
	p := &part{TempFile: file, sum: sha256.New()}
	defer p.Discard()
	if err := write(p); err != nil {
		return kept, err
	}
	// A crash before this leaves the file under a temporary name, and the next fetch replaces it.
	if err := p.Commit(); err != nil {
		return kept, err
	}
	return archive.File{Path: name, Size: p.size, SHA256: archive.Digest(p.sum.Sum(nil))}, nil
}

// storedName is the name of a file here: its place in the document, and what is plain of its number at the network.
func storedName(files []arrival.File, id string) string {
	plain := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, id)
	return fmt.Sprintf("%04d-%s", placeOf(files, id), plain[:min(len(plain), longestID)])
}

// placeOf is the place of a file in its document.
func placeOf(files []arrival.File, id string) int {
	return slices.IndexFunc(files, func(f arrival.File) bool { return f.Name == id })
}

// digestOf is the digest of the list of what is held.
func digestOf(files []arrival.File) archive.Digest {
	var all []archive.File
	for _, f := range files {
		all = append(all, archive.File{Path: f.Stored, Size: f.Size, SHA256: f.SHA256})
	}
	return archive.ContentDigest(all)
}

var errOtherBytes = errors.New("it is not what was recorded; restore state_dir/received from a copy")

// makeFolder makes the folder for the drop folder. The same document always gives the same.
func (w *work) makeFolder() (archive.DropFolder, error) {
	f := archive.DropFolder{Key: w.a.Key}
	var names []string
	var raw []byte
	for _, held := range w.a.Files {
		content, err := w.read(held, archive.HeadOfFile)
		if err == nil && held.Name == arrival.DocumentFile {
			content, err = w.read(held, held.Size)
			raw = content
		}
		if err != nil {
			return f, fmt.Errorf("read %s of document %s: %w", held.Stored, w.a.Item, err)
		}
		file := archive.DropFile{File: archive.File{Path: w.nameInDrop(held, content), Size: held.Size, SHA256: held.SHA256}, Open: func() (io.ReadCloser, error) { return w.openKept(held.Stored) }}
		f.Files, names = append(f.Files, file), append(names, file.Path)
	}
	if len(w.a.Files) == 0 || archive.Sum(raw) != w.a.Files[0].SHA256 {
		return f, errOtherBytes
	}
	d, err := w.cfg.Describe(w.kind(), raw)
	if err != nil {
		return f, err
	}
	f.Name = archive.NameFolder("Received", d.SenderName, d.Number)
	f.Sidecar = archive.MakeSidecar(archive.DeriveReceivedID(w.a.Document()), names, d.Metadata())
	return f, nil
}

// nameInDrop is the name of a held file in the drop folder: its place in the
// document, and the name that the network tells, or its number there. Its
// ending is that of its type.
func (w *work) nameInDrop(f arrival.File, head []byte) string {
	if f.Name == arrival.DocumentFile {
		return f.Stored
	}
	ending := cmp.Or(f.Told.Ending(head), "bin")
	told := strings.TrimSuffix(f.Told.Name, path.Ext(f.Told.Name))
	if !slices.Contains(archive.NetworkEndings(), strings.ToLower(strings.TrimPrefix(path.Ext(f.Told.Name), "."))) {
		told = f.Told.Name // what stands behind its last point is no type of file that the network has
	}
	name := storedName(w.a.Files, f.Name)
	if safe := archive.NameFolder(sanitize.Replace(told, '_')); safe != "" {
		name = fmt.Sprintf("%04d-%s", placeOf(w.a.Files, f.Name), safe)
	}
	return archive.CutText(name, archive.MaxNameInDrop-len(".")-len(ending)) + "." + ending
}

// openKept opens a file that is kept here.
func (w *work) openKept(stored string) (*os.File, error) {
	file, _, err := durable.OpenRegular(w.cfg.Dir.Root(), path.Join(w.a.Key.String(), stored))
	return file, err
}

// read reads the first bytes of a held file.
func (w *work) read(f arrival.File, most int64) ([]byte, error) {
	file, err := w.openKept(f.Stored)
	if err != nil {
		return nil, err
	}
	defer file.Close() // read-only
	return io.ReadAll(io.LimitReader(file, most))
}

// removeArchived removes the files of documents that the archive has and of which the network was told.
func (e *Engine) removeArchived(ctx context.Context) error {
	return e.cfg.Dir.EachName(func(name string) error {
		key, err := archive.ParseKey(name)
		if err != nil || ctx.Err() != nil {
			return ctx.Err() // no folder of ours
		}
		a, known, err := e.cfg.Ledger.Arrival(key)
		if err != nil || !known || a.State != arrival.Acknowledged {
			return err
		}
		if done, err := e.cfg.IsArchived(archive.DeriveReceivedID(a.Document())); err != nil || !done {
			return err
		}
		if err := e.removeFolder(name, a.Files); err != nil {
			e.cfg.Log.Warn("the files of an archived document were not removed; it is tried again", "document", a.Item, "err", err)
		}
		return nil
	})
}

// removeFolder removes the files of an arrival one by one, and then their folder.
func (e *Engine) removeFolder(name string, files []arrival.File) error {
	dir, err := e.cfg.Dir.OpenDir(name)
	if err != nil {
		return err
	}
	defer dir.Close() // what it lost is gone with it
	for _, f := range files {
		// A crash after this leaves the others, and the next sweep removes them: the archive has the document.
		for _, name := range []string{f.Stored, storedName(files, f.Name), storedName(files, f.Name) + decodedEnd} {
			if err := dir.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return e.cfg.Dir.Rmdir(name)
}
