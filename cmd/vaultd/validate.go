package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/packager"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) validateCommand() *cobra.Command {
	var drop string
	var forNetwork bool
	c := &cobra.Command{
		Use:   "validate PATH",
		Short: "what a folder or PDF would become, and what is wrong with it; nothing is sent",
		Long: `Checks one folder as it would be checked if it were dropped: its sidecar, its files,
its size once packed. For a drop of single PDFs it checks one file. It prints what it
would become, or everything that is wrong with it in the words of _REASON.txt, and ends
with 65 then. It changes nothing and asks nobody; whether the same invoice is archived
already, it does not know.

PATH may lie anywhere. The rules are those of the drop that it lies in, so a folder in a
drop of the business network is checked as one that is to be sent there. For a folder
that lies elsewhere name the drop with --drop, unless there is only one.

With --network PATH is a folder for the business network, wherever it lies:
document.json and the files that belong to it. Everything that is wrong is printed at
once, with line and field. No configuration is needed.`,
		Example: `  vaultd validate "/srv/invoices/acme-in/Huber 88"
  vaultd validate ./export/4711 --drop acme-in
  vaultd validate ./network/4712 --network
  for d in export/*/; do vaultd validate "$d" --drop acme-in > /dev/null || echo "$d"; done`,
		Args: expectArgs("PATH (a folder, or a PDF)"),
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case forNetwork && drop != "":
				return usageError{errors.New("--network and --drop exclude each other: a drop says itself where its folders go")}
			case forNetwork:
				return a.validateNetwork(args[0])
			}
			return a.runValidate(c.Context(), args[0], drop)
		},
	}
	c.Flags().StringVar(&drop, "drop", "", "check by the rules of the drop of this `name`")
	c.Flags().BoolVar(&forNetwork, "network", false, "check a folder for the business network")
	return c
}

// validated is the object of "validate --json".
type validated struct {
	Good       bool            `json:"good"`
	Path       string          `json:"path"`
	Drop       string          `json:"drop"`
	Vault      string          `json:"vault"`
	ClientUUID *string         `json:"clientUUID"`
	Chosen     bool            `json:"clientUUIDFromSidecar"`
	DocumentID *string         `json:"documentId"`
	Files      []present.File  `json:"files"`
	Size       int64           `json:"bytes"` // of the files, before they are packed
	Ignored    []string        `json:"ignored"`
	Remarks    []string        `json:"remarks"`  // what is unusual about the files
	Missing    []string        `json:"waitsFor"` // what is missing until it is taken
	Faults     []validateFault `json:"faults"`
	Route      string          `json:"route"`

	DocumentType string `json:"documentType"` // of a folder for the network: Invoice or CreditNote; else empty
}

type validateFault struct {
	File    string `json:"file"`
	Line    int    `json:"line"` // 0: none
	Column  int    `json:"column"`
	Field   string `json:"field"`
	Problem string `json:"problem"`
	Advice  string `json:"advice"`
}

func (a *app) runValidate(ctx context.Context, path, name string) error {
	cfg, err := a.loadConfig()
	if err != nil {
		return err
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return fmt.Errorf("find %s: %w", path, err)
	}
	info, err := os.Stat(abs)
	if errors.Is(err, fs.ErrNotExist) {
		return fail(exitFailed, fmt.Errorf("%s does not exist", sanitize.Text(abs)), "")
	}
	d, err := dropForFolder(cfg, abs, name)
	if err != nil {
		return err
	}
	if d.Route == config.RoutePDF {
		return a.validatePDF(ctx, cfg, d, abs)
	}
	if info != nil && !info.IsDir() {
		return fail(exitData, fmt.Errorf("%s is a file; an invoice is a folder with its files and %s", sanitize.Text(path), d.Sidecar), "")
	}
	root, err := os.OpenRoot(abs)
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	defer root.Close() // read-only
	if d.Route == config.RouteNetwork {
		return a.validateNetworkDrop(ctx, cfg, d, root)
	}
	rules := cfg.PackingRules(d)
	v := validated{Path: abs, Drop: d.Name, Route: config.RouteVault, Vault: d.Vault, Files: []present.File{}, Ignored: []string{}, Remarks: []string{}, Missing: []string{}, Faults: []validateFault{}}
	s, err := packager.ValidateFolder(ctx, root, rules)
	if refusal, ok := errors.AsType[*packager.Refusal](err); ok {
		return a.printRefusal(v, refusal)
	}
	if err != nil {
		return describeChanged(err)
	}
	if missing, err := packager.FindMissingFiles(root, rules); err == nil && d.Complete != "quiet" {
		v.Missing = append(v.Missing, missing...)
	}
	return a.printValid(v, s)
}

// describeChanged says what to do where a folder changed while it was read; any other error stays as it is.
func describeChanged(err error) error {
	if errors.Is(err, archive.ErrChanged) {
		return fail(exitTemporary, err, "somebody is still writing into it; try again once that has ended")
	}
	return err
}

// validatePDF checks one file by the rules of a drop of single PDFs.
func (a *app) validatePDF(ctx context.Context, cfg config.Config, d config.Drop, path string) error {
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		return fail(exitData, fmt.Errorf("%q is a folder; drop %s takes single PDFs", sanitize.Text(filepath.Base(path)), d.Name), "name the PDFs in it, one by one")
	}
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("open the folder: %w", err)
	}
	defer root.Close() // read-only
	v := validated{Path: path, Drop: d.Name, Route: d.Route, Files: []present.File{}, Ignored: []string{}, Remarks: []string{}, Missing: []string{}, Faults: []validateFault{}}
	s, err := packager.ValidatePDF(ctx, root, filepath.Base(path), cfg.PDFRules(d))
	if refusal, ok := errors.AsType[*packager.Refusal](err); ok {
		return a.printRefusal(v, refusal)
	}
	if errors.Is(err, archive.ErrChanged) {
		return fail(exitTemporary, err, "somebody is still writing it; try again once that has ended")
	}
	if err != nil {
		return err
	}
	v.Good, v.ClientUUID, v.Size, v.Remarks = true, present.TextOrNil(s.ID.String()), s.Files[0].Size, append(v.Remarks, s.Endings.Remarks()...)
	v.Files = append(v.Files, present.File{Path: s.Files[0].Path, Size: s.Files[0].Size, SHA256: s.Content.String()})
	if a.json {
		return writeJSON(a.stdout, v)
	}
	p := &present.Page{}
	fmt.Fprintf(p, "GOOD  %s would be taken by drop %s and delivered to %s\n", sanitize.Text(filepath.Base(path)), sanitize.Text(d.Name), sanitize.Text(d.Receiving))
	p.AddLine("identity", "%s (derived from address and content)", s.ID)
	p.AddLine("file", "%s, SHA-256 %s", present.FormatBytes(v.Size), s.Content)
	for _, remark := range v.Remarks {
		p.AddLine("remark", "%s", sanitize.Text(remark))
	}
	if _, err := a.stdout.Write(p.Bytes()); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}

// dropForFolder finds the drop whose rules apply to a folder: the named one, the one that contains the folder, or the only one.
func dropForFolder(c config.Config, folder, name string) (config.Drop, error) {
	var names []string
	best, found := config.Drop{}, false
	for _, d := range c.Drops {
		names = append(names, d.Name)
		if name == d.Name {
			return d, nil
		}
		if inside := folder == d.Path || strings.HasPrefix(folder, d.Path+"/"); inside && len(d.Path) >= len(best.Path) {
			best, found = d, true
		}
	}
	switch {
	case name != "":
		return best, usageError{fmt.Errorf("%q is no drop; configured are %s", name, strings.Join(names, ", "))}
	case found:
		return best, nil
	case len(c.Drops) == 1:
		return c.Drops[0], nil
	}
	return best, usageError{fmt.Errorf("%s lies in no drop folder; name the drop with --drop: %s", sanitize.Text(folder), strings.Join(names, ", "))}
}

func (a *app) printRefusal(v validated, r *packager.Refusal) error {
	if !a.json {
		for _, line := range sanitize.Lines(r.Text()) {
			fmt.Fprintln(a.stdout, line)
		}
		return failSilently(exitData)
	}
	for _, f := range r.Faults {
		v.Faults = append(v.Faults, validateFault{f.File, f.Line, f.Col, f.Field, f.Text, f.Advice})
	}
	if err := writeJSON(a.stdout, v); err != nil {
		return err
	}
	return failSilently(exitData)
}

func (a *app) printValid(v validated, s packager.Sealed) error {
	v.Good, v.ClientUUID, v.Chosen, v.DocumentID = true, present.TextOrNil(s.ID.String()), s.HasChosenID, present.TextOrNil(s.Document.Number)
	v.Ignored, v.Remarks = append(v.Ignored, s.Junk...), append(v.Remarks, s.Endings.Remarks()...)
	for _, f := range s.Files {
		v.Files = append(v.Files, present.File{Path: f.Path, Size: f.Size, SHA256: f.SHA256.String()})
		v.Size += f.Size
	}
	if a.json {
		return writeJSON(a.stdout, v)
	}
	p := &present.Page{}
	fmt.Fprintf(p, "GOOD  %s would be taken by drop %s for vault %s\n", sanitize.Text(filepath.Base(v.Path)), sanitize.Text(v.Drop), sanitize.Text(v.Vault))
	how := "derived from files and metadata"
	if s.HasChosenID {
		how = "given by the sidecar"
	}
	p.AddLine("clientUUID", "%s (%s)", s.ID, how)
	p.AddHeading("METADATA")
	for _, f := range present.MetadataFields(s.Document) {
		fmt.Fprintf(p, "  %-18s %s\n", f.Name, sanitize.Text(f.Value))
	}
	p.AddHeading(fmt.Sprintf("FILES (%d), %s before they are packed", len(s.Files), present.FormatSize(v.Size)))
	for _, f := range s.Files {
		fmt.Fprintf(p, "  %s  %s\n", sanitize.Text(f.Path), present.FormatBytes(f.Size))
	}
	if len(s.Junk) > 0 {
		fmt.Fprintf(p, "  ignored: %s\n", sanitize.Text(strings.Join(s.Junk, ", ")))
	}
	for _, remark := range v.Remarks {
		fmt.Fprintf(p, "  remark: %s\n", sanitize.Text(remark))
	}
	if len(v.Missing) > 0 {
		p.AddHeading("NOT COMPLETE YET")
		fmt.Fprintf(p, "  it is not taken before these are there: %s\n", sanitize.Text(strings.Join(v.Missing, ", ")))
	}
	if _, err := a.stdout.Write(p.Bytes()); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}
