package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"

	"github.com/google/uuid"

	"vaultd/internal/emulator"
	"vaultd/internal/networkapi"
)

// publishReceived lets the documents of a folder wait at the emulated network,
// as if others had sent them over the network. Each folder in it is one
// document, in the form of a folder that is to be sent. Its number follows from
// the folder's name, so what waits already, as after a restart, stays as it is.
// moreFiles returns files that come in addition.
func publishReceived(emu *emulator.Server, folder fs.FS, moreFiles func(name string) []emulator.ReceivedFile) error {
	isOffered := map[string]bool{}
	for _, d := range emu.ReceivedDocuments() {
		isOffered[d.BumID] = true
	}
	inside, err := fs.ReadDir(folder, ".")
	if err != nil {
		return err
	}
	for _, d := range inside {
		number := uuid.NewSHA1(uuid.NameSpaceOID, []byte(d.Name())).String()
		if !d.IsDir() || isHidden(d) || isOffered[number] {
			continue
		}
		document, err := readReceivedFolder(folder, d.Name())
		if err != nil {
			return err
		}
		document.BumID, document.Files = number, append(document.Files, moreFiles(d.Name())...)
		if _, err := emu.PublishReceived(document); err != nil {
			return err
		}
	}
	return nil
}

// noMoreFiles is for folders that have all files of their documents.
func noMoreFiles(string) []emulator.ReceivedFile { return nil }

func readReceivedFolder(folder fs.FS, name string) (d emulator.ReceivedDocument, err error) {
	document, err := fs.ReadFile(folder, path.Join(name, networkDocument))
	if err != nil {
		return d, err
	}
	var said struct {
		DocumentType string
		Data         json.RawMessage
	}
	if err := json.Unmarshal(document, &said); err != nil {
		return d, fmt.Errorf("%s: %w", path.Join(name, networkDocument), err)
	}
	d.Kind, d.Data = said.DocumentType, said.Data
	files, err := fs.ReadDir(folder, name)
	if err != nil {
		return d, err
	}
	for _, f := range files {
		if f.IsDir() || isHidden(f) || f.Name() == networkDocument {
			continue
		}
		content, err := fs.ReadFile(folder, path.Join(name, f.Name()))
		if err != nil {
			return d, err
		}
		d.Files = append(d.Files, emulator.ReceivedFile{FileType: string(networkapi.DefaultFileTypes().Of(f.Name())), Name: f.Name(), Content: content})
	}
	return d, nil
}
