package archive

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// The network tells neither length nor digest of a file. What a file looks like is all that can be known of it: a hint, and no verdict.
var (
	ErrInItsPlace = errors.New("a web page or an error came in its place, perhaps that of a proxy")
	ErrCutOff     = errors.New("it came cut off or damaged")
)

const (
	formHead = 64      // bytes that tell what a file is
	formTail = 1024    // bytes in which a file has its end: so far the usual readers look
	mostText = 1 << 20 // bytes of XML or JSON that are read whole; of more only the end is looked at. Reading XML takes up to thirty times as much memory

	deepestXML = 200 // elements that lie in each other: each level takes memory
)

// CheckForm returns [ErrInItsPlace] where the size bytes of in look like an
// answer of somebody else: a web page, JSON, XML that calls itself an error. It
// returns [ErrCutOff] where they look like a part of a file: XML that is not
// well formed, or what [FindEnding] takes for cut off. Any other error is one
// of reading. If the file is a web page itself, as the network says, none is
// looked for.
func CheckForm(in io.ReaderAt, size int64, isPage bool) error {
	head, err := readPart(in, 0, min(size, formHead))
	if err != nil {
		return err
	}
	if looksLikeWebPage(head) && !isPage {
		return ErrInItsPlace
	}
	switch first := bytes.TrimLeft(head, spaceAndMark); {
	case isPage && bytes.HasPrefix(first, []byte("<")):
		return nil
	case size <= mostText && (bytes.HasPrefix(first, []byte("<")) || bytes.HasPrefix(first, []byte("{"))):
		text, err := readPart(in, 0, size)
		if err != nil {
			return err
		}
		return checkText(bytes.TrimLeft(text, spaceAndMark))
	}
	ending, err := FindEnding(".xml", in, size)
	if err == nil && (ending == EndsShort || size > 0 && size <= formHead && IsBegunPDF(head)) {
		return ErrCutOff
	}
	return err
}

// checkText is CheckForm for a short text that begins like XML or JSON. JSON is none of the types that the network takes, and the form of the errors of
// many services.
func checkText(text []byte) error {
	switch {
	case text[0] == '<':
		return checkXML(text)
	case json.Valid(text):
		return ErrInItsPlace
	}
	return nil
}

func readPart(in io.ReaderAt, from, n int64) ([]byte, error) {
	part := make([]byte, n)
	if _, err := in.ReadAt(part, from); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return part, nil
}

// spaceAndMark may stand before the first sign of a file.
const spaceAndMark = " \t\r\n\ufeff"

// looksLikeWebPage reports whether a file that begins with head is a web page.
func looksLikeWebPage(head []byte) bool {
	text := strings.ToLower(string(bytes.TrimLeft(head[:min(len(head), formHead)], spaceAndMark)))
	return strings.HasPrefix(text, "<!doctype html") || strings.HasPrefix(text, "<html")
}

// checkXML returns ErrCutOff for what is no well formed XML, and ErrInItsPlace for an error as object stores write them, or a page. XML 1.1, and entities that a
// file declares itself, count as damaged.
func checkXML(text []byte) error {
	dec, root, depth := xml.NewDecoder(bytes.NewReader(text)), "", 0
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return formReader{in}, nil }
	for {
		token, err := dec.Token()
		switch at := token.(type) {
		case xml.StartElement:
			depth++
			root = cmp.Or(root, at.Name.Local)
		case xml.EndElement:
			depth--
		}
		switch {
		case depth > deepestXML:
			return ErrCutOff
		case errors.Is(err, io.EOF) && (strings.EqualFold(root, "error") || strings.EqualFold(root, "html")):
			return ErrInItsPlace
		case errors.Is(err, io.EOF) && root != "":
			return nil
		case err != nil:
			return ErrCutOff
		}
	}
}

// formReader reads text of any encoding in which signs of XML are those of ASCII, with a sign for each other byte: enough to see its form.
type formReader struct{ io.Reader }

// Read implements io.Reader.
func (r formReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	for i, b := range p[:n] {
		if b >= 0x80 {
			p[i] = '?'
		}
	}
	return n, err
}
