package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/networkapi"
	"vaultd/internal/packager"
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
		"NoJSON":     {files{"document.json": "{"}, exitData, "NOT SENT. document.json, line 1: the file is not JSON here: the file ends too early; here a field's name in quotes is expected; complete it, or copy the file again.\n"},
		"Empty":      {files{"document.json": ""}, exitData, "NOT SENT. document.json, line 1: the file is not JSON here: the file ends too early; here a value is expected; complete it, or copy the file again.\n"},
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
	kit.Check(t, code == exitData && strings.Count(out.String(), "is a folder or a link") == 2,
		"exit %d: %s", code, out.String())
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

// sidecars are sidecars with the verdict that schema and packager must share.
var sidecars = map[string]struct {
	text string
	good bool
}{
	"Least":             {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31"}`, true},
	"Whole":             {`{"documentType":"CreditNote","documentId":"R 1/2","documentDate":"2026-10-31T14:30:00Z","senderName":"ACME","senderIds":["DE1"],"recipientName":"Otto","recipientIds":["DE2","4"],"currencyCode":"EUR","buyerReferenceId":"B","buyerReferenceType":"order","amount":1234.56,"additionalParameters":[{"key":"k","value":"v"},{"key":"k2"}],"tradingPartner":"T","flowDirection":"sending","clientUUID":"10d9e26c-5a3c-4a58-b3c1-3a8f9f0a7a11"}`, true},
	"Fraction":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31T14:30:00.123Z"}`, true},
	"EmptyFields":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"","senderIds":[],"currencyCode":"","amount":"","flowDirection":"","clientUUID":""}`, true},
	"UUIDInCapitals":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","clientUUID":"10D9E26C-5A3C-4A58-B3C1-3A8F9F0A7A11"}`, true},
	"BigAmount":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":9007199254740993.10}`, true},
	"NegativeAmount":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":-1}`, true},
	"Files":             {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":["a.pdf"]}`, true},
	"FilesWithSize":     {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":[{"name":"a.pdf","size":1}]}`, true},
	"NameOf150":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"` + strings.Repeat("ü", 150) + `"}`, true},
	"LineBreakInName":   {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"a\nb"}`, true},
	"NothingAtAll":      {`{}`, false},
	"AList":             {`[]`, false},
	"NoType":            {`{"documentId":"1","documentDate":"2026-10-31"}`, false},
	"NoNumber":          {`{"documentType":"Invoice","documentDate":"2026-10-31"}`, false},
	"NoDate":            {`{"documentType":"Invoice","documentId":"1"}`, false},
	"BlankNumber":       {`{"documentType":"Invoice","documentId":"  ","documentDate":"2026-10-31"}`, false},
	"NumberAsNumber":    {`{"documentType":"Invoice","documentId":1,"documentDate":"2026-10-31"}`, false},
	"NumberOf101":       {`{"documentType":"Invoice","documentId":"` + strings.Repeat("1", 101) + `","documentDate":"2026-10-31"}`, false},
	"NumberWithBreak":   {`{"documentType":"Invoice","documentId":"1\n2","documentDate":"2026-10-31"}`, false},
	"UnknownType":       {`{"documentType":"invoice","documentId":"1","documentDate":"2026-10-31"}`, false},
	"GermanDate":        {`{"documentType":"Invoice","documentId":"1","documentDate":"31.10.2026"}`, false},
	"NoSuchDay":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-02-30"}`, false},
	"NoSuchHour":        {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31T25:00:00Z"}`, false},
	"OtherOffset":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31T14:30:00+01:00"}`, false},
	"NoOffset":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31T14:30:00"}`, false},
	"Year1800":          {`{"documentType":"Invoice","documentId":"1","documentDate":"1800-10-31"}`, false},
	"QuotedAmount":      {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"1234.56"}`, true},
	"QuotedNegative":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"-5"}`, true},
	"QuotedWithSpaces":  {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":" 119.00 "}`, true},
	"QuotedHalf":        {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"0.500"}`, true},
	"QuotedThousand":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"1.234"}`, false},
	"QuotedComma":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"119,00"}`, false},
	"QuotedExponent":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"1e3"}`, false},
	"QuotedZeros":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":"0119.00"}`, false},
	"AmountTrue":        {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","amount":true}`, false},
	"NullName":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":null}`, false},
	"NameOf151":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"` + strings.Repeat("ü", 151) + `"}`, false},
	"ReferenceOf101":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","buyerReferenceId":"` + strings.Repeat("x", 101) + `"}`, false},
	"IdsAsText":         {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderIds":"DE1"}`, false},
	"BlankId":           {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderIds":[" "]}`, false},
	"IdOf301":           {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderIds":["` + strings.Repeat("x", 301) + `"]}`, false},
	"SmallCurrency":     {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","currencyCode":"eur"}`, false},
	"OtherDirection":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","flowDirection":"out"}`, false},
	"UnknownField":      {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","documentdate":"2026-10-31"}`, false},
	"ControlCharacter":  {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","senderName":"a\u0007b"}`, false},
	"HalfUUID":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","clientUUID":"10d9e26c"}`, false},
	"ZeroUUID":          {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","clientUUID":"00000000-0000-0000-0000-000000000000"}`, false},
	"ParameterNoKey":    {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","additionalParameters":[{"value":"v"}]}`, false},
	"ParameterMore":     {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","additionalParameters":[{"key":"k","x":"v"}]}`, false},
	"ParameterAsObject": {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","additionalParameters":{"k":"v"}}`, false},
	"FileOutside":       {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":["../a.pdf"]}`, false},
	"FileAbsolute":      {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":["/a.pdf"]}`, false},
	"FileNoName":        {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":[{"size":1}]}`, false},
	"FileBadDigest":     {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":[{"name":"a.pdf","sha256":"abc"}]}`, false},
	"FileHalfSize":      {`{"documentType":"Invoice","documentId":"1","documentDate":"2026-10-31","files":[{"name":"a.pdf","size":1.5}]}`, false},
}

// What an editor accepts with the schema, the packager accepts, and the other way round.
func TestSidecarSchema_SaysWhatThePackagerSays(t *testing.T) {
	text, _, _ := runHere("check", "--schema", "sidecar")
	doc := kit.Value(jsonschema.UnmarshalJSON(strings.NewReader(text)))(t)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	kit.Must(t, c.AddResource("urn:vaultd:sidecar", doc))
	schema := kit.Value(c.Compile("urn:vaultd:sidecar"))(t)
	for name, row := range sidecars {
		t.Run(name, func(t *testing.T) {
			v := kit.Value(jsonschema.UnmarshalJSON(strings.NewReader(row.text)))(t)
			if err := schema.Validate(v); (err == nil) != row.good {
				t.Errorf("schema: %v", err)
			}
			dir := t.TempDir()
			for file, text := range map[string]string{"metadata.json": row.text, "a.pdf": "x"} {
				kit.Must(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
			}
			root, err := os.OpenRoot(dir)
			kit.Must(t, err)
			defer root.Close()
			_, err = packager.ValidateFolder(t.Context(), root, packager.Rules{Vault: "V"})
			_, refused := errors.AsType[*packager.Refusal](err)
			kit.Check(t, refused != row.good && (err == nil || refused), "packager: %v", err)
		})
	}
}

// I24: docs/archive.md has each field of metadata.json, with its limit, and says
// which must be given.
func TestSidecarSchema_I24_ThePageHasEachField(t *testing.T) {
	type property struct {
		Ref       string `json:"$ref"`
		MaxLength int    `json:"maxLength"`
		Items     *property
	}
	var schema struct {
		Required   []string
		Properties map[string]property
		Defs       map[string]property `json:"$defs"`
	}
	text := kit.Value(os.ReadFile("sidecar.schema.json"))(t)
	kit.Must(t, json.Unmarshal(text, &schema))
	page := kit.Value(os.ReadFile("../../docs/archive.md"))(t)
	_, section, _ := strings.Cut(string(page), "## metadata.json\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| (.*) \\|$").FindAllStringSubmatch(section, -1) {
		rows[m[1]] = m[2]
	}
	kit.Want(t, "fields on the page", slices.Sorted(maps.Keys(rows)), slices.Sorted(maps.Keys(schema.Properties)))
	for name, p := range schema.Properties {
		p.MaxLength = max(p.MaxLength, schema.Defs[strings.TrimPrefix(p.Ref, "#/$defs/")].MaxLength)
		if def := schema.Defs[strings.TrimPrefix(p.Ref, "#/$defs/")]; def.Items != nil {
			p.MaxLength = def.Items.MaxLength
		}
		kit.Check(t, p.MaxLength <= 0 || strings.Contains(rows[name], strconv.Itoa(p.MaxLength)+" characters"),
			"%s: the page says %q, want %d characters", name, rows[name], p.MaxLength)
		if must := strings.Contains(rows[name], "must be given"); must != slices.Contains(schema.Required, name) {
			t.Errorf("%s: must be given = %v on the page, want %v", name, must, !must)
		}
	}
	kit.Holds(t, "the page", rows["additionalParameters"], "16,000 characters")
}
