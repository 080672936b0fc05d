package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/networkapi"
	"vaultd/internal/test/kit"
)

const networkGood = `{"documentType": "CreditNote", "data": {"documentCurrencyCode": "EUR"},
 "processingPreference": {"sentTo": {"id": "7300010000001", "schemeId": "GLN"}}}`

// I24: every fault of a folder for the network is told at once, with its line and its field; nothing of it controls the terminal.
func TestValidateNetwork_I24_EachFaultAtOnce(t *testing.T) {
	type files map[string]string
	endings := "the network takes " + strings.Join(networkapi.Endings, ", ") + ".\n"
	for name, row := range map[string]struct {
		folder files
		code   int
		want   string // all that is printed; a size follows where it ends with two blanks
	}{
		"CreditNote":  {files{"document.json": networkGood, "scan.pdf": "x"}, exitDone, "GOOD  folder would be sent as a credit note with 1 file\n  scan.pdf  imageFile  "},
		"Invoice":     {files{"document.json": `{"data": {"documentCurrencyCode": "EUR"}, "printingPreference": {}}`}, exitDone, "GOOD  folder would be sent as an invoice with 0 files\n"},
		"Junk":        {files{"document.json": `{"data": {"documentCurrencyCode": "EUR"}, "printingPreference": {}}`, "Thumbs.db": "x"}, exitDone, "GOOD  folder would be sent as an invoice with 0 files\n  ignored: Thumbs.db\n"},
		"NoRecipient": {files{"document.json": `{"data": {"documentCurrencyCode": "EUR"}}`}, exitData, "NOT SENT. document.json, line 1, processingPreference.sentTo: is missing, so that nobody knows whom the document goes to; write \"processingPreference\": {\"sentTo\": {\"id\": \"…\", \"schemeId\": \"…\"}} beside \"data\".\n"},
		"TwoPDFs":     {files{"document.json": networkGood, "a.pdf": "x", "b.pdf": "y"}, exitData, "NOT SENT. document.json: 2 of the files are PDFs, and none is named like the document or the folder, so that nobody knows which one is the picture of the invoice; write \"files\": [{\"name\": \"a.pdf\", \"fileType\": \"imageFile\"}] into the document beside \"data\", with the name of that file.\n"},
		"GLN":         {files{"document.json": goodAt(12, `"7300010000001"`, `"730001000000"`)}, exitData, "NOT SENT. document.json, line 12, sentTo.id: a GLN has 13 digits, this has 12.\n"},
		"Ending":      {files{"document.json": networkGood, "photo.heic": "x"}, exitData, "NOT SENT. photo.heic: " + endings},
		"All": {files{"document.json": strings.Replace(goodAt(3, `"7300010000001"`, `"730001000000"`), `"EUR"`, `"Euro"`, 1), "a.pdf": "", "b.heic": ""}, exitData,
			"NOT SENT. document.json, line 1, documentCurrencyCode: is not an ISO 4217 code; write three capital letters, like EUR.\n" +
				"NOT SENT. document.json, line 3, sentTo.id: a GLN has 13 digits, this has 12.\n" +
				"NOT SENT. a.pdf: is empty; the network takes no empty file.\n" +
				"NOT SENT. b.heic: " + endings + "NOT SENT. b.heic: is empty; the network takes no empty file.\n"},
		"NoJSON":     {files{"document.json": "{"}, exitData, "NOT SENT. document.json, line 1: the file is not JSON here: unexpected end of JSON input. Look at the quotes, commas and brackets just before it.\n"},
		"Empty":      {files{"document.json": ""}, exitData, "NOT SENT. document.json, line 1: the file is not JSON here: unexpected end of JSON input. Look at the quotes, commas and brackets just before it.\n"},
		"NoDocument": {files{"photo.heic": "x"}, exitData, "NOT SENT. document.json: is missing; put it beside the files.\nNOT SENT. photo.heic: " + endings},
		"Hidden":     {files{"document.json": networkGood, ".invoice": "x"}, exitData, "NOT SENT. .invoice: " + endings},
		"Hostile":    {files{"document.json": networkGood, "a\x1b[2Jb.exe": "x"}, exitData, `NOT SENT. a\x1b[2Jb.exe: ` + endings},
		"LongName":   {files{"document.json": networkGood, strings.Repeat("a: ", 80) + ".exe": "x"}, exitData, "NOT SENT. " + strings.Repeat("a: ", 80) + ".exe: " + endings},
		"Folder":     {files{"document.json": networkGood, "more/a.pdf": "x"}, exitData, "NOT SENT. more: is a folder or a link; put the file itself beside document.json.\n"},
		"NoFile":     {files{"document.json/a.pdf": "x"}, exitData, "NOT SENT. document.json: is a folder or a link; put the file itself there.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "folder")
			for name, text := range row.folder {
				writeIn(t, folder, name, text)
			}
			var out bytes.Buffer
			code := program.Run(t.Context(), []string{"validate", "--network", folder}, strings.NewReader(""), &out, &out, os.LookupEnv)
			if got := out.String(); code != row.code || got != row.want && !(strings.HasSuffix(row.want, "  ") && strings.HasPrefix(got, row.want)) {
				t.Errorf("exit %d:\n%q, want\n%q", code, got, row.want)
			}
			out.Reset()
			code = program.Run(t.Context(), []string{"validate", "--network", "--json", folder}, strings.NewReader(""), &out, &out, os.LookupEnv)
			var v validatedShown
			if err := json.Unmarshal(out.Bytes(), &v); err != nil || code != row.code || v.Good != (code == exitDone) || v.Good != (v.DocumentType != "") || len(v.Faults) != strings.Count(row.want, "NOT SENT. ") {
				t.Errorf("exit %d, %v: %s", code, err, out.String())
			}
		})
	}
}

// Whoever has more faults than are listed is told so.
func TestValidateNetwork_ManyFaults(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	writeIn(t, folder, "document.json", `{"data": {"documentCurrencyCode": "EUR", "x": [`+strings.Repeat("{\"amount\": \"x\"},\n", 200)+`{}]}}`)
	var out bytes.Buffer
	code := program.Run(t.Context(), []string{"validate", "--network", folder}, strings.NewReader(""), &out, &out, os.LookupEnv)
	if code != exitData || strings.Count(out.String(), "NOT SENT. ") != networkapi.MaxFaults || !strings.Contains(out.String(), "there may be more") {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

// I19: a link in a folder leads to a file of somebody else, and is no part of the folder.
func TestValidateNetwork_I19_FollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	writeIn(t, dir, "outside.pdf", networkGood)
	kit.Must(t, os.Mkdir(folder, 0o700))
	for _, name := range []string{"document.json", "a.pdf"} {
		kit.Must(t, os.Symlink(filepath.Join(dir, "outside.pdf"), filepath.Join(folder, name)))
	}
	var out bytes.Buffer
	code := program.Run(t.Context(), []string{"validate", "--network", folder}, strings.NewReader(""), &out, &out, os.LookupEnv)
	if code != exitData || strings.Count(out.String(), "is a folder or a link") != 2 {
		t.Errorf("exit %d: %s", code, out.String())
	}
}

// I24: in a drop of the network, or for one, a folder is checked by the rules of that drop, with the words that its _REASON.txt would have.
func TestValidateNetwork_I24_ByTheRouteOfTheDrop(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://127.0.0.1:1", fast)
	s.withNetwork("http://127.0.0.1:1")
	s.edit("drops:\n", "drops:\n  - {name: out, path: "+s.dir+"/out, route: network, document: rechnung.json}\n")
	in, elsewhere := s.dir+"/out/Huber 88", s.dir+"/elsewhere"
	bad := goodAt(12, `"7300010000001"`, `"730001000000"`)
	writeIn(t, in, "rechnung.json", bad)
	writeIn(t, in, "photo.heic", "x")
	writeIn(t, elsewhere, "rechnung.json", networkGood)
	writeIn(t, elsewhere, "scan.pdf", "x")
	out, code := s.vaultd("validate", in)
	for _, want := range []string{"NOT SENT. 2 things to put right.", `rechnung.json, line 12, "sentTo.id": a GLN has 13 digits, this has 12.`, "photo.heic: the network takes CSV, DOC,", "ZIP."} {
		kit.Check(t, code == exitData && strings.Contains(out, want), "exit %d, without %q: %s", code, want, out)
	}
	if out, code := s.vaultd("validate", "--drop", "out", elsewhere); code != exitDone || !strings.HasPrefix(out, "GOOD  elsewhere would be sent as a credit note with 1 file\n  scan.pdf  imageFile") {
		t.Errorf("exit %d: %s", code, out)
	}
	out, code = s.vaultd("validate", "--json", in)
	var v validatedShown
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != exitData || v.Route != "network" || v.Drop != "out" || len(v.Faults) != 2 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
}

func TestValidateNetwork_Usage(t *testing.T) {
	for want, args := range map[int][]string{exitUsage: {"--network", "--drop", "x", "."}, exitFailed: {"--network", filepath.Join(t.TempDir(), "none")}} {
		out, errs, code := runHere(append([]string{"validate"}, args...)...)
		kit.Check(t, code == want, "%q: exit %d: %s%s", args, code, out, errs)
	}
}

// goodAt returns the good document with a text replaced, whose processingPreference stands in that line.
func goodAt(line int, old, with string) string {
	return strings.Replace(strings.Replace(networkGood, "\n", strings.Repeat("\n", line-1), 1), old, with, 1)
}

// writeIn writes a file below a folder, and makes what is above it.
func writeIn(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	kit.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
}

// validatedShown is what "validate --json" says of a folder.
type validatedShown struct {
	Good                             bool
	Drop, Vault, Route, DocumentType string
	Size                             int64 `json:"bytes"`
	Files, Faults                    []any
}

// A PDF is checked by the rules of the drop that it is in, and the refusal has
// the words that the clerk would read.
func TestValidate_SinglePDF(t *testing.T) {
	dir := t.TempDir()
	scans, path := filepath.Join(dir, "scans"), filepath.Join(dir, "config.yaml")
	text := smallConfig + fmt.Sprintf("  - {name: scans, path: %s, route: pdf, receiving: ap@in.example, notify: clerk@acme.example}\n"+
		"pdf: {base_url: 'https://ap.acme.example', auth: {method: basic, username: p, secret_file: /etc/vaultd/secret-pdf}}\n", scans)
	for _, err := range []error{os.WriteFile(path, []byte(text), 0o600), os.MkdirAll(scans+"/Mai", 0o770),
		os.WriteFile(scans+"/good.pdf", []byte("%PDF-1.7 %%EOF"), 0o660), os.WriteFile(scans+"/brief.docx", []byte("PK"), 0o660)} {
		kit.Must(t, err)
	}
	for name, row := range map[string]struct {
		code int
		says string
	}{
		"good.pdf":   {0, "GOOD  good.pdf would be taken by drop scans and delivered to ap@in.example"},
		"brief.docx": {exitData, `NOT SENT. "brief.docx" is no PDF. Save it as PDF, then move the PDF back.`},
		"Mai":        {exitData, `"Mai" is a folder; drop scans takes single PDFs`},
		"gone.pdf":   {exitFailed, "does not exist"},
	} {
		out, errs, code := runHere("--config", path, "validate", filepath.Join(scans, name))
		kit.Check(t, code == row.code && strings.Contains(out+errs, row.says), "%s: exit %d: %s%s", name, code, out, errs)
	}
	out, errs, code := runHere("--config", path, "--json", "validate", "--drop", "scans", filepath.Join(scans, "good.pdf"))
	var v validatedShown
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || !v.Good || v.Route != "pdf" || v.Vault != "" || v.Size != 14 || len(v.Files) != 1 {
		t.Errorf("exit %d: %+v, %v: %s", code, v, err, errs)
	}
	kit.Len(t, "it changed something", kit.Value(os.ReadDir(scans))(t), 3)
}
