package arrivals

import (
	"cmp"
	"context"
	"io"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/ledger/arrival"
)

// handOn puts every file of the arrival into the drop folder, each in a folder
// of its own.
func (x *extracts) handOn(ctx context.Context, w *work) error {
	var folders []archive.DropFolder
	for _, f := range w.a.Files {
		folders = append(folders, x.makeFolder(w, f))
	}
	return w.handOn(ctx, x.cfg.HandOn.Drop, folders...)
}

// makeFolder makes the folder of one file. The same file of the same extract
// always gives the same folder.
func (x *extracts) makeFolder(w *work, f arrival.File) archive.DropFolder {
	a := w.a
	// The last one is the day on which it was held here: the service told
	// neither a day nor when it made the extract.
	day := cmp.Or(a.End, a.Made, a.HeldAt.Truncate(24*time.Hour)).UTC().Truncate(time.Second)
	name := fileNameInDrop(f.Stored)
	meta := archive.Document{Type: x.cfg.HandOn.DocumentType, Number: documentNumber(a.Item, f.Name), Date: day.Format(time.RFC3339)}
	id := archive.DeriveExtractFileID(x.cfg.HandOn.LedgerID, a.Item, f.Name, f.SHA256)
	file := archive.DropFile{File: archive.File{Path: name, Size: f.Size, SHA256: f.SHA256}, Open: func() (io.ReadCloser, error) { return x.cfg.Custody.OpenFile(a.Item, f.Stored) }}
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

// maxFolderName is how long the name of a folder gets, in bytes. A number that
// makes it unique, and what is put before it in the archive's own folders, has
// room then.
const maxFolderName = 200

// folderNameInDrop is the name of the folder of a file. Two extracts may get
// the same one: the drop folder numbers them.
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
