package archive

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// FileTold is what the network says of a file: the headers of the answer that
// brought it, or the document that names it. All of it is text of a stranger,
// cut to a bound, and what is empty was not told.
type FileTold struct {
	Name     string `stored:"1"` // without the folders before it
	Type     string `stored:"2"` // the content type in small letters, without parameters
	Encoding string `stored:"3"` // how its bytes are wrapped, in small letters: base64, gzip
	IsPage   bool   `stored:"4"` // it is a web page by its name, or is one and an attachment: a page that comes in the place of a file says neither
}

// FileRef is one file of a received document, as the document names it.
type FileRef struct {
	ID   FileID
	Told FileTold
}

const maxTold = 200 // bytes of each text

// ReadFileHeaders reads the headers of an answer that brought a file.
func ReadFileHeaders(header func(name string) string) FileTold {
	disposition := header("Content-Disposition")
	kind, _, _ := strings.Cut(disposition, ";")
	t := NewFileTold(nameInDisposition(disposition), header("Content-Type"))
	t.IsPage = t.IsPage && t.Name != "" || isPageType(t.Type) && strings.EqualFold(strings.TrimSpace(kind), "attachment")
	for _, name := range []string{"Content-Transfer-Encoding", "Content-Encoding"} {
		if told := strings.ToLower(strings.TrimSpace(header(name))); t.Encoding == "" && told != "identity" {
			t.Encoding = CutText(strings.ToValidUTF8(told, "_"), maxTold)
		}
	}
	return t
}

// NewFileTold returns what a name and a content type tell. In the document that
// names a file, either says that it is a web page.
func NewFileTold(name, contentType string) FileTold {
	name = strings.TrimSpace(strings.ReplaceAll(name, `\`, "/"))
	if name = path.Base(name); name == "." || name == "/" || name == ".." {
		name = ""
	}
	contentType, _, _ = strings.Cut(contentType, ";")
	t := FileTold{Type: CutText(strings.ToValidUTF8(strings.ToLower(strings.TrimSpace(contentType)), "_"), maxTold)}
	ending := path.Ext(name) // the end of a long name tells its type
	t.Name = CutText(strings.TrimSuffix(name, ending), max(maxTold-len(ending), 0)) + CutText(ending, maxTold)
	t.IsPage = isPageEnding(endingOf(name)) || name == "" && isPageType(t.Type)
	return t
}

// Or returns what is told, and what other tells beside that.
func (t FileTold) Or(other FileTold) FileTold {
	for _, f := range []struct{ to, from *string }{{&t.Name, &other.Name}, {&t.Type, &other.Type}, {&t.Encoding, &other.Encoding}} {
		if *f.to == "" {
			*f.to = *f.from
		}
	}
	t.IsPage = t.IsPage || other.IsPage
	return t
}

func isPageType(t string) bool   { return t == "text/html" || t == "application/xhtml+xml" }
func isPageEnding(e string) bool { return e == "htm" || e == "html" }

// endingOf returns the ending of a name, in small letters and without the point.
func endingOf(name string) string { return strings.ToLower(strings.TrimPrefix(path.Ext(name), ".")) }

// nameInDisposition returns the name of a file in a Content-Disposition, also
// where that breaks the rules: unquoted with blanks, in an encoded word, or in
// the bytes of ISO 8859-1.
func nameInDisposition(header string) string {
	if !utf8.ValidString(header) {
		latin := make([]rune, 0, len(header))
		for _, b := range []byte(header) {
			latin = append(latin, rune(b))
		}
		header = string(latin)
	}
	_, params, err := mime.ParseMediaType(header)
	name := params["filename"]
	if err != nil || name == "" {
		_, rest, found := strings.Cut(strings.ToLower(header), "filename=")
		if !found {
			return ""
		}
		rest = header[len(header)-len(rest):]
		rest, _, _ = strings.Cut(rest, ";")
		name = strings.Trim(strings.TrimSpace(rest), `"`)
	}
	if decoded, err := new(mime.WordDecoder).DecodeHeader(name); err == nil {
		name = decoded
	}
	return name
}

// fileForm is what the first bytes of a file say of it.
type fileForm uint8

const (
	formUnknown fileForm = iota
	formText             // without a sign of a type
	formMarkup           // text that begins with an element
	formXML              // that declares itself
	formPage             // a web page
	formPDF
	formZIP
	formOLE // of office programs before 2007, and of later ones under a password
	formRTF
	formPNG
	formJPEG
	formTIFF
	formGZIP
)

// fileKinds are the types of files that the network has, by their endings, with
// the names that content types have for them, and the forms in which they
// begin.
var fileKinds = []struct {
	ending string
	types  []string
	forms  []fileForm
}{
	{"csv", []string{"text/csv", "application/csv", "text/comma-separated-values"}, []fileForm{formText}},
	{"doc", []string{"application/msword"}, []fileForm{formOLE, formRTF}},
	{"docx", []string{"application/vnd.openxmlformats-officedocument.wordprocessingml.document"}, []fileForm{formZIP, formOLE}},
	{"htm", nil, []fileForm{formPage, formMarkup, formXML}},
	{"html", []string{"text/html", "application/xhtml+xml"}, []fileForm{formPage, formMarkup, formXML}},
	{"jpeg", nil, []fileForm{formJPEG}},
	{"jpg", []string{"image/jpeg", "image/jpg", "image/pjpeg"}, []fileForm{formJPEG}},
	{"odt", []string{"application/vnd.oasis.opendocument.text"}, []fileForm{formZIP}},
	{"pdf", []string{"application/pdf", "application/x-pdf"}, []fileForm{formPDF}},
	{"png", []string{"image/png", "image/x-png"}, []fileForm{formPNG}},
	{"ppt", []string{"application/vnd.ms-powerpoint"}, []fileForm{formOLE}},
	{"pptx", []string{"application/vnd.openxmlformats-officedocument.presentationml.presentation"}, []fileForm{formZIP, formOLE}},
	{"rtf", []string{"application/rtf", "text/rtf"}, []fileForm{formRTF}},
	{"tif", nil, []fileForm{formTIFF}},
	{"tiff", []string{"image/tiff"}, []fileForm{formTIFF}},
	{"txt", []string{"text/plain"}, []fileForm{formText, formMarkup, formXML}},
	{"xls", []string{"application/vnd.ms-excel"}, []fileForm{formOLE}},
	{"xlsx", []string{"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"}, []fileForm{formZIP, formOLE}},
	{"xml", []string{"application/xml", "text/xml"}, []fileForm{formXML, formMarkup}},
	{"zip", []string{"application/zip", "application/x-zip-compressed", "application/x-zip"}, []fileForm{formZIP}},
}

// NetworkEndings returns the endings of the files that the network has, in small letters.
func NetworkEndings() (all []string) {
	for _, k := range fileKinds {
		all = append(all, k.ending)
	}
	return all
}

// Ending returns the ending of a file that begins with head, in small letters;
// empty: not known. Name and content type, in this order, count unless the
// first bytes contradict them. Else the first bytes alone decide.
func (t FileTold) Ending(head []byte) string {
	form := formOf(head)
	for _, k := range fileKinds {
		if k.ending == endingOf(t.Name) && slices.Contains(k.forms, form) {
			return k.ending
		}
	}
	for _, k := range fileKinds {
		if (slices.Contains(k.types, t.Type) || k.ending == "xml" && strings.HasSuffix(t.Type, "+xml") && !isPageType(t.Type)) && slices.Contains(k.forms, form) {
			return k.ending
		}
	}
	return map[fileForm]string{formPDF: "pdf", formZIP: endingInZIP(head), formRTF: "rtf", formXML: "xml", formMarkup: "xml", formPage: "html", formPNG: "png", formJPEG: "jpg", formTIFF: "tif"}[form]
}

// endingInZIP distinguishes the documents of office programs from other ZIP files, by
// the names of their first entries.
func endingInZIP(head []byte) string {
	switch {
	case bytes.Contains(head, []byte("mimetypeapplication/vnd.oasis.opendocument.text")):
		return "odt"
	case !bytes.Contains(head, []byte("[Content_Types].xml")) && !bytes.Contains(head, []byte("_rels/")):
		return "zip"
	case bytes.Contains(head, []byte("word/")):
		return "docx"
	case bytes.Contains(head, []byte("xl/")):
		return "xlsx"
	case bytes.Contains(head, []byte("ppt/")):
		return "pptx"
	}
	return "zip"
}

// HeadOfFile is how many first bytes of a file say what it is.
const HeadOfFile = 8 << 10

// signs are how files begin that have a sign of their type.
var signs = []struct {
	begin string
	form  fileForm
}{
	{"PK\x03\x04", formZIP}, {"PK\x05\x06", formZIP}, {"{\\rtf", formRTF}, {"\x89PNG", formPNG}, {"\xff\xd8\xff", formJPEG}, {"II*\x00", formTIFF}, {"MM\x00*", formTIFF},
	{"\xd0\xcf\x11\xe0", formOLE}, {"\x1f\x8b", formGZIP},
}

// formOf returns what the first bytes of a file say of it.
func formOf(head []byte) fileForm {
	for _, s := range signs {
		if bytes.HasPrefix(head, []byte(s.begin)) {
			return s.form
		}
	}
	first := bytes.TrimLeft(head, spaceAndMark)
	switch {
	case bytes.HasPrefix(first, []byte("%PDF")):
		return formPDF
	case looksLikeWebPage(head):
		return formPage
	case bytes.HasPrefix(head, []byte("\xff\xfe<\x00")), bytes.HasPrefix(head, []byte("\xfe\xff\x00<")), bytes.HasPrefix(first, []byte("<?xml")):
		return formXML
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")): // UTF-16
		return formText
	case bytes.IndexByte(head, 0) >= 0:
		return formUnknown
	case bytes.HasPrefix(first, []byte("<")):
		return formMarkup
	}
	return formText
}

// The encodings in which a file may be wrapped.
const (
	Base64 = "base64"
	GZIP   = "gzip"
)

// Wrapping returns the encoding in which a file that begins with head is
// wrapped; empty: in none. The first bytes decide: what begins like a file of
// some type is that file. The network may send base64 and not say so; then it
// is believed where its beginning stands for the sign of a type. Assumption: no
// text file of the network begins with such a sign in base64 itself.
func (t FileTold) Wrapping(head []byte) string {
	form := formOf(head)
	switch {
	case form == formGZIP && (t.Encoding == GZIP || t.Encoding == "x-gzip"):
		return GZIP
	case form != formText:
		return ""
	}
	begin := head[:min(len(head), 128)]
	if len(bytes.Trim(begin, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=\r\n")) > 0 {
		return ""
	}
	if t.Encoding == Base64 {
		return Base64
	}
	plain := bytes.Map(func(r rune) rune {
		if r == '\r' || r == '\n' || r == '=' {
			return -1
		}
		return r
	}, begin)
	decoded, err := base64.StdEncoding.DecodeString(string(plain[:len(plain)/4*4]))
	if is := formOf(decoded); err == nil && len(decoded) >= 4 && is != formText && is != formUnknown && is != formGZIP && (is != formMarkup || t.Ending(decoded) == endingOf(t.Name) || t.Type == "application/xml" || t.Type == "text/xml") {
		return Base64
	}
	return ""
}

// MaxReceivedFile limits one file that is fetched, and what comes out of its
// encoding, in bytes. The specification shows no limit.
const MaxReceivedFile = 1 << 30

// Unwrap writes what a file is that came wrapped in an encoding. Its error
// wraps [ErrCutOff] where the encoding breaks off, or holds too much.
func Unwrap(encoding string, in io.Reader, w io.Writer) error {
	var err error
	switch encoding {
	case Base64:
		in = base64.NewDecoder(base64.StdEncoding, in)
	case GZIP:
		if in, err = gzip.NewReader(in); err != nil {
			return fmt.Errorf("%w: %w", ErrCutOff, err)
		}
	}
	wrapped := &sourceReader{in: in}
	n, err := io.Copy(w, io.LimitReader(wrapped, MaxReceivedFile+1))
	switch {
	case wrapped.err != nil:
		return fmt.Errorf("%w: %w", ErrCutOff, wrapped.err)
	case err == nil && (n > MaxReceivedFile || n == 0):
		return fmt.Errorf("%w: its %s holds nothing, or too much", ErrCutOff, encoding)
	}
	return err
}

// sourceReader remembers whether it was the reading that failed.
type sourceReader struct {
	in  io.Reader
	err error
}

// Read implements io.Reader.
func (r *sourceReader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		r.err = err
	}
	return n, err
}
