package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/networkapi"
	"vaultd/internal/packager"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

const (
	networkDocument = "document.json"
	routeNetwork    = "network"
	// maxDocument bounds the bytes that are read of a document. CheckDocument refuses far smaller ones.
	maxDocument = 64 << 20
)

// networkFolder is a folder for the business network, checked.
type networkFolder struct {
	validated

	types    []archive.FileType // what each file is to the document
	document []byte             // empty: it could not be read, and a fault says why
}

// validateNetwork checks a folder for the business network: its document and its files. It needs no configuration.
func (a *app) validateNetwork(path string) error {
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find %s: %w", path, err)
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return fail(exitFailed, fmt.Errorf("open the folder: %w", err), "name a folder with "+networkDocument+" and the files that belong to it")
	}
	defer root.Close() // read-only
	f := networkFolder{validated: validated{Path: abs, Route: routeNetwork, Files: []present.File{}, Ignored: []string{}, Remarks: []string{}, Missing: []string{}, Faults: []validateFault{}}}
	if err := f.checkDocument(root); err != nil {
		return err
	}
	if err := f.checkFiles(root); err != nil {
		return err
	}
	f.typeFiles()
	if f.Good = len(f.Faults) == 0; f.Good {
		kind, err := networkapi.ReadKind(f.document)
		if err != nil { // what has no fault has a kind
			return err
		}
		f.DocumentType = string(kind)
	}
	return a.printNetworkFolder(f)
}

// validateNetworkDrop checks a folder by the rules of a drop of the business network, as the drop itself does.
func (a *app) validateNetworkDrop(ctx context.Context, cfg config.Config, d config.Drop, root *os.Root) error {
	rules := wireNetworkChecks(cfg.Network.FileTypes)
	rules.Rules, rules.Folder = cfg.PackingRules(d), filepath.Base(root.Name())
	v := validated{Path: root.Name(), Drop: d.Name, Route: routeNetwork, Files: []present.File{}, Ignored: []string{}, Remarks: []string{}, Missing: []string{}, Faults: []validateFault{}}
	s, err := packager.ValidateNetwork(ctx, root, rules)
	if refusal, ok := errors.AsType[*packager.Refusal](err); ok {
		return a.printRefusal(v, refusal)
	}
	if err != nil {
		return describeChanged(err)
	}
	if missing, err := packager.FindMissingNetworkFiles(root, rules); err == nil && d.Complete != "quiet" {
		v.Missing = append(v.Missing, missing...)
	}
	v.Good, v.ClientUUID, v.DocumentID, v.DocumentType = true, present.TextOrNil(s.ID.String()), present.TextOrNil(s.Document.Number), s.Document.Type
	v.Ignored, v.Remarks = append(v.Ignored, s.Junk...), append(v.Remarks, s.Endings.Remarks()...)
	var types []archive.FileType
	for _, f := range s.Files {
		types = append(types, f.Type)
		v.Files, v.Size = append(v.Files, present.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256.String()}), v.Size+f.Size
	}
	return a.printNetworkFolder(networkFolder{validated: v, types: types})
}

// checkDocument reads the document and adds what is wrong with it. A link leads out of the folder, so it is no document.
func (f *networkFolder) checkDocument(root *os.Root) error {
	info, err := root.Lstat(networkDocument)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.addFault(networkDocument, "is missing; put it beside the files.")
		return nil
	case err != nil:
		return fmt.Errorf("look at the document: %w", err)
	case !info.Mode().IsRegular():
		f.addFault(networkDocument, "is a folder or a link; put the file itself there.")
		return nil
	}
	file, err := root.Open(networkDocument)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	defer file.Close() // read-only
	document, err := io.ReadAll(io.LimitReader(file, maxDocument))
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	f.document = document
	for _, fault := range networkapi.CheckDocument(document) {
		f.Faults = append(f.Faults, validateFault{File: networkDocument, Line: fault.Line, Field: fault.Field, Problem: fault.Text})
	}
	return nil
}

// checkFiles adds the files beside the document, and what is wrong with them. What systems leave behind by themselves is ignored, as
// in every other folder.
func (f *networkFolder) checkFiles(root *os.Root) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return fmt.Errorf("list the folder: %w", err)
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == networkDocument: // checked already
		case packager.IsJunkName(name):
			f.Ignored = append(f.Ignored, name)
		case !e.Type().IsRegular():
			f.addFault(name, "is a folder or a link; put the file itself beside "+networkDocument+".")
		default:
			info, err := e.Info()
			if err != nil {
				return fmt.Errorf("look at %s: %w", sanitize.Text(name), err)
			}
			f.Files, f.Size = append(f.Files, present.File{Path: name, Size: info.Size()}), f.Size+info.Size()
			if text, ok := networkapi.CheckFileName(name); !ok {
				// The text begins with the name, perhaps shortened. A name may have a colon, and the words behind it have none.
				f.addFault(name, text[strings.LastIndex(text, ": ")+len(": "):])
			}
			if info.Size() == 0 {
				f.addFault(name, "is empty; the network takes no empty file.")
			}
		}
	}
	return nil
}

// typeFiles finds out what each file is to the document, as a drop does where
// nothing is configured.
func (f *networkFolder) typeFiles() {
	var names []string
	for _, file := range f.Files {
		names = append(names, file.Path)
	}
	types, faults := networkapi.DefaultFileTypes().TypeFiles(f.document, filepath.Base(f.Path), names)
	f.types = types
	if len(f.document) == 0 {
		return
	}
	for _, fault := range faults {
		f.Faults = append(f.Faults, validateFault{File: networkDocument, Line: fault.Line, Field: fault.Field, Problem: fault.Text})
	}
}

func (f *networkFolder) addFault(file, problem string) {
	f.Faults = append(f.Faults, validateFault{File: file, Problem: problem})
}

// printNetworkFolder prints what a folder would be sent as, or all that is wrong with it, and ends with 65 then.
func (a *app) printNetworkFolder(f networkFolder) error {
	p := &present.Page{}
	switch {
	case a.json:
		if err := writeJSON(p, f.validated); err != nil {
			return err
		}
	case f.Good:
		f.printGood(p)
	default:
		f.printFaults(p)
	}
	if _, err := a.stdout.Write(p.Bytes()); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	if !f.Good {
		return failSilently(exitData)
	}
	return nil
}

func (f *networkFolder) printGood(p *present.Page) {
	word := "an invoice"
	if f.DocumentType == string(archive.NetworkCreditNote) {
		word = "a credit note"
	}
	fmt.Fprintf(p, "GOOD  %s would be sent as %s with %s\n", sanitize.Text(filepath.Base(f.Path)), word, present.FormatCount(len(f.Files), "file", "files"))
	for i, file := range f.Files {
		p.AddText(fmt.Sprintf("%s  %s  %s", sanitize.Text(file.Path), f.types[i], present.FormatBytes(file.Size)))
	}
	for _, remark := range f.Remarks {
		p.AddText("remark: " + sanitize.Text(remark))
	}
	if len(f.Ignored) > 0 {
		p.AddText("ignored: " + sanitize.Text(strings.Join(f.Ignored, ", ")))
	}
	if len(f.Missing) > 0 {
		p.AddHeading("NOT COMPLETE YET")
		p.AddText("it is not taken before these are there: " + sanitize.Text(strings.Join(f.Missing, ", ")))
	}
}

// printFaults prints one line for each fault, like "NOT SENT. document.json, line 12, sentTo.id: a GLN has 13 digits, this has 12."
func (f *networkFolder) printFaults(p *present.Page) {
	ofDocument := 0
	for _, fault := range f.Faults {
		text := fault.File + ": " + fault.Problem
		if fault.Line > 0 {
			text = networkapi.Fault{Line: fault.Line, Field: fault.Field, Text: fault.Problem}.Describe(fault.File)
			ofDocument++
		}
		fmt.Fprintf(p, "NOT SENT. %s\n", sanitize.Text(text))
	}
	if ofDocument == networkapi.MaxFaults {
		fmt.Fprintf(p, "Only %d faults of %s are listed, and there may be more: put them right, then ask again.\n", ofDocument, networkDocument)
	}
}
