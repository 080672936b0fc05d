package intake

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/custody"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// handOn puts every file of the arrival into the drop folder, each in a folder of its own, and commits that they are there.
func (w *work) handOn(ctx context.Context) error {
	for i := w.countPut(); i < len(w.a.Files); i++ {
		// A crash after this leaves a folder that is there, or that was taken from there. The next start puts it there again: it is found, or it
		// ends as a duplicate of the first, because both have one identity.
		if err := w.cfg.HandOn.Drop.PutFolder(ctx, w.makeFolder(w.a.Files[i])); err != nil {
			return w.postponeHandOn(ctx, err)
		}
		w.noteCountPut(i + 1)
	}
	// Every file is durable in the drop folder, or was taken from it. A crash before this commit puts them there again.
	err := w.commit(ctx, arrival.HandedOn{})
	if err == nil {
		w.noteCountPut(0)
	}
	return err
}

// countPut returns how many files of the arrival this run has put into the drop folder. Without it a full disk would fill with duplicates: each try would
// begin with the first file. Only after a restart it does.
func (w *work) countPut() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.put[w.a.Key]
}

// noteCountPut notes how many files are there; 0 forgets the arrival.
func (w *work) noteCountPut(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.put[w.a.Key] = n; n == 0 {
		delete(w.put, w.a.Key)
	}
}

// postponeHandOn postpones for a drop folder that is away, full or not ours to write. What is held stays held, and the acknowledgement waits. A folder whose
// place is not known stops the process.
func (w *work) postponeHandOn(ctx context.Context, err error) error {
	code := CauseDrop
	switch {
	case errors.Is(err, custody.ErrUnknownPlace):
		return err
	case ctx.Err() != nil:
		return nil
	case custody.IsFull(err):
		code = CauseDropFull
	}
	if w.a.Cause.Code != code {
		w.cfg.Log.Warn("an extract does not get into its drop folder; it is tried again", "extract", w.a.Item, "drop", w.cfg.HandOn.DropName, "err", err)
	}
	return w.postpone(ctx, ledger.Cause{Code: code, Text: err.Error()})
}

// makeFolder makes the folder of one file. The same file of the same extract always gives the same folder.
func (w *work) makeFolder(f arrival.File) archive.DropFolder {
	a := w.a
	// The last one is the day on which it was held here: the service told neither a day nor when it made the extract.
	day := cmp.Or(a.End, a.Made, a.HeldAt.Truncate(24*time.Hour)).UTC().Truncate(time.Second)
	name := fileNameInDrop(f.Stored)
	meta := archive.Document{Type: w.cfg.HandOn.DocumentType, Number: documentNumber(a.Item, f.Name), Date: day.Format(time.RFC3339)}
	id := archive.DeriveExtractFileID(w.cfg.HandOn.LedgerID, a.Item, f.Name, f.SHA256)
	file := archive.DropFile{File: archive.File{Path: name, Size: f.Size, SHA256: f.SHA256}, Open: func() (io.ReadCloser, error) { return w.cfg.Custody.OpenFile(a.Item, f.Stored) }}
	return archive.DropFolder{Key: a.Key, Name: folderNameInDrop(a.Item, name), Files: []archive.DropFile{file}, Sidecar: archive.MakeSidecar(id, []string{name}, meta.Metadata())}
}

// documentNumber is the number of a file in the archive: that of its extract
// and its own name. If it is too long its end gives way to a digest of all of
// it, so that no two files have one number.
func documentNumber(id archive.ExtractID, name string) string {
	number := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '_'
		}
		return r
	}, strings.ToValidUTF8(string(id)+"/"+name, "_"))
	if utf8.RuneCountInString(number) <= archive.MaxNumber {
		return number
	}
	end := "~" + archive.Sum([]byte(string(id) + "/" + name)).String()[:16]
	return string([]rune(number)[:archive.MaxNumber-len(end)]) + end
}

// maxFolderName is how long the name of a folder gets, in bytes. A number that makes it unique, and what is put before it in the archive's
// own folders, has room then.
const maxFolderName = 200

// folderNameInDrop is the name of the folder of a file. Two extracts may get the same one: the drop folder numbers them.
func folderNameInDrop(id archive.ExtractID, file string) string {
	number := strings.Map(func(r rune) rune {
		if strings.ContainsRune(`<>:"|*`, r) {
			return '_' // no name on Windows
		}
		return r
	}, string(id))
	number = number[:min(len(number), maxFolderName-len("Extract ")-len(" ")-len(file))]
	return "Extract " + number + " " + file
}

// fileNameInDrop is the name of a held file in its folder: that which it has in
// custody. If a file of that name is not always a part of its folder, as one
// with the name of an unfinished file, it gets a plainer one.
func fileNameInDrop(stored string) string {
	name := stored
	if !archive.IsContentName(name) {
		name += ".file"
	}
	if !archive.IsContentName(name) {
		name = "file " + name
	}
	return name
}
