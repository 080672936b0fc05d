package archive

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I4: what is told of a file decides on its ending, unless its first bytes say
// otherwise; nothing told: the first bytes alone.
func TestFileTold_I4_Ending(t *testing.T) {
	docx := "PK\x03\x04\x14\x00[Content_Types].xml..PK\x03\x04word/document.xml"
	for name, r := range map[string]struct {
		told FileTold
		head string
		want string
	}{
		"CSVByName":           {NewFileTold("a.CSV", "application/octet-stream"), "number;amount\n", "csv"},
		"CSVByType":           {NewFileTold("", "text/csv; charset=utf-8"), "number;amount\n", "csv"},
		"TXT":                 {NewFileTold("", "text/plain"), "<b>not markup</b>", "txt"},
		"DOC":                 {NewFileTold("a.doc", ""), "\xd0\xcf\x11\xe0\xa1", "doc"},
		"DOCThatIsRTF":        {NewFileTold("a.doc", ""), "{\\rtf1", "doc"},
		"DOCX":                {NewFileTold("", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"), docx, "docx"},
		"DOCXByItself":        {FileTold{}, docx, "docx"},
		"ODTByItself":         {FileTold{}, "PK\x03\x04....mimetypeapplication/vnd.oasis.opendocument.textPK", "odt"},
		"ZIPByItself":         {FileTold{}, "PK\x03\x04a.txt", "zip"},
		"ZIPToldOfADOCX":      {NewFileTold("all.zip", ""), docx, "zip"},
		"XMLWithoutItsHead":   {NewFileTold("", "application/xml"), "<Invoice/>", "xml"},
		"XMLByTheEndOfItType": {NewFileTold("", "application/vnd.invoice+xml"), "<Invoice/>", "xml"},
		"XMLByItself":         {FileTold{}, "\ufeff<Invoice/>", "xml"},
		"XMLInUTF16":          {NewFileTold("a.xml", ""), "\xff\xfe<\x00?\x00", "xml"},
		"Page":                {NewFileTold("a.htm", ""), "<!doctype html>", "htm"},
		"NameBeforeType":      {NewFileTold("a.txt", "text/csv"), "a;b", "txt"},
		"TypeWhereNameIsNone": {NewFileTold("a.exe", "text/csv"), "a;b", "csv"},
		"NamedPDFIsAPNG":      {NewFileTold("a.pdf", "application/pdf"), "\x89PNG\r\n", "png"},
		"NamedPDFIsText":      {NewFileTold("a.pdf", ""), "sorry", ""},
		"TypedPDFIsAPage":     {NewFileTold("", "application/pdf"), "<html>", "html"},
		"TextByItself":        {FileTold{}, "number;amount", ""},
		"Program":             {NewFileTold("a.exe", ""), "MZ\x00\x00", ""},
	} {
		kit.Want(t, name+": ending", r.told.Ending([]byte(r.head)), r.want)
	}
}

// I4: names and types of headers that keep the rules, and of some that do not.
func TestReadFileHeaders_I4(t *testing.T) {
	for name, r := range map[string]struct {
		headers map[string]string
		want    FileTold
	}{
		"Quoted":        {map[string]string{"Content-Disposition": `attachment; filename="a b.pdf"`}, FileTold{Name: "a b.pdf"}},
		"Extended":      {map[string]string{"Content-Disposition": "attachment; filename=x.pdf; filename*=UTF-8''M%C3%A4rz.pdf"}, FileTold{Name: "März.pdf"}},
		"Unquoted":      {map[string]string{"Content-Disposition": "attachment; filename=Rechnung 4711.pdf; size=3"}, FileTold{Name: "Rechnung 4711.pdf"}},
		"Latin":         {map[string]string{"Content-Disposition": "attachment; filename=\"M\xe4rz.pdf\""}, FileTold{Name: "März.pdf"}},
		"EncodedWord":   {map[string]string{"Content-Disposition": `attachment; filename="=?UTF-8?B?TcOkcnoucGRm?="`}, FileTold{Name: "März.pdf"}},
		"Folders":       {map[string]string{"Content-Disposition": `attachment; filename="..\\..\\x.pdf"`}, FileTold{Name: "x.pdf"}},
		"OnlyFolders":   {map[string]string{"Content-Disposition": `attachment; filename="../.."`}, FileTold{}},
		"PageByName":    {map[string]string{"Content-Disposition": `inline; filename="a.html"`, "Content-Type": "text/html"}, FileTold{Name: "a.html", Type: "text/html", IsPage: true}},
		"PageAttached":  {map[string]string{"Content-Disposition": "attachment", "Content-Type": "text/html; charset=x"}, FileTold{Type: "text/html", IsPage: true}},
		"PageOfAProxy":  {map[string]string{"Content-Type": "text/html"}, FileTold{Type: "text/html"}},
		"PageInTheWay":  {map[string]string{"Content-Disposition": `attachment; filename="a.pdf"`, "Content-Type": "application/pdf"}, FileTold{Name: "a.pdf", Type: "application/pdf"}},
		"Wrapped":       {map[string]string{"Content-Transfer-Encoding": " Base64 "}, FileTold{Encoding: "base64"}},
		"NotWrapped":    {map[string]string{"Content-Encoding": "identity"}, FileTold{}},
		"WithoutAnyone": {nil, FileTold{}},
	} {
		kit.Want(t, name+": told", ReadFileHeaders(func(h string) string { return r.headers[h] }), r.want)
	}
	long := NewFileTold(strings.Repeat("ä", 500)+".pdf", strings.Repeat("x", 500))
	kit.Check(t, len(long.Name) <= maxTold && len(long.Type) <= maxTold && strings.HasSuffix(long.Name, ".pdf"),
		"long texts = %d and %d bytes, want at most %d, with the ending", len(long.Name), len(long.Type), maxTold)
}

// I4: a file comes out of its encoding where that is told and the first bytes
// agree, or where they show it themselves.
func TestFileTold_I4_Wrapping(t *testing.T) {
	in64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, _ = z.Write([]byte("a;b\n"))
	_ = z.Close()
	for name, r := range map[string]struct {
		told FileTold
		came string
		want string // the file; empty: as it came
	}{
		"PDF":               {FileTold{}, in64("%PDF-1.7\x00\xff"), "%PDF-1.7\x00\xff"},
		"InLines":           {FileTold{}, "JVBE\r\nRi0x\r\n", "%PDF-1"},
		"ToldCSV":           {FileTold{Encoding: Base64}, in64("number;amount\n"), "number;amount\n"},
		"CSVNotTold":        {FileTold{}, in64("number;amount\n"), ""},
		"ToldXML":           {NewFileTold("a.xml", ""), in64("<Invoice><Line/></Invoice>"), "<Invoice><Line/></Invoice>"},
		"TypedXML":          {NewFileTold("", "text/xml"), in64("<Invoice><Line/></Invoice>"), "<Invoice><Line/></Invoice>"},
		"ToldAndNot":        {FileTold{Encoding: Base64}, "number;amount\n", ""},
		"ToldAndBinary":     {FileTold{Encoding: Base64}, "%PDF-1.7", ""},
		"Short":             {FileTold{}, "x", ""},
		"GZIP":              {FileTold{Encoding: GZIP}, packed.String(), "a;b\n"},
		"GZIPNotTold":       {FileTold{}, packed.String(), ""},
		"GZIPToldOfAPDF":    {FileTold{Encoding: GZIP}, "%PDF-1.7", ""},
		"OfficeBefore2007":  {FileTold{}, in64("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"},
		"PageInBase64":      {FileTold{}, in64("<!DOCTYPE html><p>"), "<!DOCTYPE html><p>"},
		"WordsThatLookLike": {NewFileTold("a.txt", ""), "JVBERi0xLjc", "%PDF-1.7"},
	} {
		encoding := r.told.Wrapping([]byte(r.came))
		if r.want == "" {
			kit.Want(t, name+": encoding", encoding, "")
			continue
		}
		var out bytes.Buffer
		err := Unwrap(encoding, strings.NewReader(r.came), &out)
		if name == "WordsThatLookLike" { // and break off: what came is kept, in doubt
			kit.Fails(t, name+": error", err, ErrCutOff)
			continue
		}
		kit.Check(t, encoding != "" && err == nil && out.String() == r.want,
			"%s: out of %q came %q (error %v), want %q", name, encoding, out.String(), err, r.want)
	}
}

func FuzzFileTold(f *testing.F) {
	for _, s := range []string{"JVBERi0xLjc=", "JVBERi0", "UEsDBA==", "%PDF-", "", "JVBERi0x\r\nLjc="} {
		f.Add([]byte(s), "attachment; filename=a.pdf", "base64")
	}
	f.Fuzz(func(t *testing.T, came []byte, disposition, encoding string) {
		told := ReadFileHeaders(func(name string) string {
			return map[string]string{"Content-Disposition": disposition, "Content-Transfer-Encoding": encoding}[name]
		})
		kit.Check(t, len(told.Name) <= maxTold && !strings.ContainsAny(told.Name, "/"),
			"name of %q = %q, want one without folders, of at most %d bytes", disposition, told.Name, maxTold)
		var out bytes.Buffer
		if wrapped := told.Wrapping(came); wrapped != "" && Unwrap(wrapped, bytes.NewReader(came), &out) == nil && out.Len() == 0 {
			t.Errorf("%q came out of %s as nothing, want an error", came, wrapped)
		}
		ending := told.Ending(came)
		kit.Check(t, ending == "" || slices.Contains(NetworkEndings(), ending), "ending = %q, want one that the network has", ending)
	})
}
