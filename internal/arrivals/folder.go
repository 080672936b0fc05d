package arrivals

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/sanitize"
)

const (
	documentName = "document.json" // of the document itself, as it came
)

// storedName is the name of a file in custody: its place in the document, and
// what is plain of its number at the network.
func storedName(files []arrival.File, id string) string {
	return custody.StoredName(placeOf(files, id), id)
}

// placeOf is the place of a file in its arrival.
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

// makeFolder makes the folder for the drop folder. The same document always
// gives the same.
func (r *received) makeFolder(w *work) (archive.DropFolder, error) {
	f := archive.DropFolder{Key: w.a.Key}
	var names []string
	var raw []byte
	for _, held := range w.a.Files {
		content, err := r.read(w, held, archive.HeadOfFile)
		if err == nil && held.Name == arrival.DocumentFile {
			content, err = r.read(w, held, held.Size)
			raw = content
		}
		if err != nil {
			return f, fmt.Errorf("read %s of document %s: %w", held.Stored, w.a.Item, err)
		}
		file := archive.DropFile{File: archive.File{Path: r.nameInDrop(w, held, content), Size: held.Size, SHA256: held.SHA256}, Open: func() (io.ReadCloser, error) { return r.cfg.Custody.Open(w.a.Key, held.Stored) }}
		f.Files, names = append(f.Files, file), append(names, file.Path)
	}
	if len(w.a.Files) == 0 || archive.Sum(raw) != w.a.Files[0].SHA256 {
		return f, errOtherBytes
	}
	d, err := r.cfg.Describe(w.networkKind(), raw)
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
func (r *received) nameInDrop(w *work, f arrival.File, head []byte) string {
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

// read reads the first bytes of a held file.
func (r *received) read(w *work, f arrival.File, most int64) ([]byte, error) {
	file, err := r.cfg.Custody.Open(w.a.Key, f.Stored)
	if err != nil {
		return nil, err
	}
	defer file.Close() // read-only
	return io.ReadAll(io.LimitReader(file, most))
}

// sweep removes now and then the files of documents that the archive has and of
// which the network was told.
func (r *received) sweep(ctx context.Context) (next time.Time, err error) {
	if now := r.now().Wall; now.Sub(r.swept) >= sweepEvery {
		r.swept = now
		err = r.cfg.Custody.EachKey(func(key archive.Key) error { return r.removeIfArchived(ctx, key) })
	}
	return r.swept.Add(sweepEvery), err
}

func (r *received) removeIfArchived(ctx context.Context, key archive.Key) error {
	a, known, err := r.cfg.Ledger.Arrival(key)
	if err != nil || !known || a.State != arrival.Acknowledged {
		return errors.Join(err, ctx.Err())
	}
	if done, err := r.cfg.IsArchived(archive.DeriveReceivedID(a.Document())); err != nil || !done {
		return err
	}
	var names []string
	for _, f := range a.Files {
		name := storedName(a.Files, f.Name)
		names = append(names, f.Stored, name, name+decodedEnd)
	}
	// A crash in it leaves some of them, and the next sweep removes them: the
	// archive has the document.
	if err := r.cfg.Custody.Remove(key, names); err != nil {
		r.Log.Warn("the files of an archived document were not removed; it is tried again", "document", a.Item, "err", err)
	}
	return nil
}
