package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
)

// addExtractFlags adds the flags of the extracts.
func addExtractFlags(f *pflag.FlagSet, folder *string, x *emulator.Extracts, r *emulator.ExtractReadings) {
	f.StringVar(folder, "extracts", "", "`folder` with extracts to offer (docs/extracts.md says what is in it)")
	f.StringVar(&x.Account.Name, "extract-user", "", "this `user` alone, with the same secret, may use the extracts; empty: the main one")
	f.StringVar(&r.Times, "extract-times", "", "times of extracts as slash (28/03/2024, 10:17:02) or rfc3339")
	f.StringVar(&r.List, "extract-list", "", "the list of extracts: bare, wrapped (in an object), or parts (one extract an answer)")
	f.StringVar(&r.Download, "extract-file", "", "the address of a file answers with redirect, bytes, or redirect-auth (to a host that wants Authorization and Date again)")
	f.StringVar(&x.FilesURL, "extract-files-url", "", "base `URL` of that host, as this program under another name; empty: the same one")
	f.StringVar(&r.Acknowledge, "extract-acknowledge", "", "the path of an acknowledgement: plural, singular or both")
	f.StringVar(&r.Exported, "extract-exported", "", "what makes an extract exported: acknowledge or download")
	f.StringVar(&r.Definition, "extract-definition", "", "the table definition: list, none (404), page (of a web server) or other (JSON of another form)")
}

// definitionFile is the table definition in a folder of extracts.
const definitionFile = "definition.json"

// publishExtracts makes the service offer the extracts of a folder: its definition.json says which columns the tables have, and each folder
// in it is one extract. What the service offers already, as after a restart, stays as it is.
func publishExtracts(emu *emulator.Server, folder fs.FS, made time.Time) error {
	definition, err := fs.ReadFile(folder, definitionFile)
	if err == nil {
		err = emu.SetTableDefinition(definition)
	}
	if err != nil {
		return err
	}
	isOffered := map[string]bool{}
	for _, e := range emu.PublishedExtracts() {
		isOffered[e.ID] = true
	}
	inside, err := fs.ReadDir(folder, ".")
	if err != nil {
		return err
	}
	for _, d := range inside {
		if !d.IsDir() || isHidden(d) || isOffered[d.Name()] {
			continue
		}
		x, err := readExtractFolder(folder, d.Name())
		if err != nil {
			return err
		}
		x.Made = made
		if err := emu.PublishExtract(x); err != nil {
			return err
		}
	}
	return nil
}

// readExtractFolder reads one folder. A name such as 2026-10-29 makes a delta
// of that day, and one such as 2026-01-01_2026-10-28 an initial extract from
// the first of these days to the last. More may follow behind a point:
// 2026-10-29.supplier is one more delta of that day. Each file is named for its
// table, and is packed where it is no ZIP or gzip file.
func readExtractFolder(folder fs.FS, name string) (x emulator.PublishedExtract, err error) {
	days, _, _ := strings.Cut(name, ".")
	first, last, isInitial := strings.Cut(days, "_")
	x = emulator.PublishedExtract{ID: name, Type: archive.InitialExtract, Name: "daily"}
	if !isInitial {
		x.Type, last = archive.DeltaExtract, first
	}
	start, wrongStart := time.Parse(time.DateOnly, first)
	end, wrongEnd := time.Parse(time.DateOnly, last)
	if wrongStart != nil || wrongEnd != nil || end.Before(start) {
		return x, fmt.Errorf("%q is neither a day such as 2026-10-29 nor two days such as 2026-01-01_2026-10-28", name)
	}
	x.Start, x.End = start, end.AddDate(0, 0, 1) // the service names the end of the last day
	files, err := fs.ReadDir(folder, name)
	if err != nil {
		return x, err
	}
	for _, f := range files {
		if isHidden(f) {
			continue
		}
		content, err := fs.ReadFile(folder, path.Join(name, f.Name()))
		if err != nil {
			return x, err
		}
		table, _, _ := strings.Cut(f.Name(), ".")
		file := emulator.PublishedFile{Table: table, Name: f.Name(), Content: content}
		if end := path.Ext(f.Name()); end != ".zip" && end != ".gz" {
			file.Name = table + ".zip"
			if file.Content, err = zipOne(f.Name(), content); err != nil {
				return x, err
			}
		}
		x.Files = append(x.Files, file)
	}
	return x, nil
}

func isHidden(d fs.DirEntry) bool { return strings.HasPrefix(d.Name(), ".") }

// zipOne returns a ZIP with one file.
func zipOne(name string, content []byte) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create(name)
	if err == nil {
		_, err = w.Write(content)
	}
	err = errors.Join(err, z.Close())
	return b.Bytes(), err
}
