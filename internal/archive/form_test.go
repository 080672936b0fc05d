package archive

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// I4: what looks like an answer of somebody else, or like a part of a file, is told from what looks whole.
func TestCheckForm_I4(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for name, r := range map[string]struct {
		content string
		want    error
	}{
		"PDF":              {"%PDF-1.7 " + long + "%%EOF\n", nil},
		"CutPDF":           {"%PDF-1.7 " + long, ErrCutOff},
		"ZIP":              {"PK\x03\x04" + long + "PK\x05\x06" + strings.Repeat("\x00", 18), nil},
		"CutZIP":           {"PK\x03\x04" + long, ErrCutOff},
		"PNG":              {"\x89PNG" + long + "IEND\xaeB`\x82", nil},
		"CutPNG":           {"\x89PNG" + long, ErrCutOff},
		"JPEG":             {"\xff\xd8\xff" + long + "\xff\xd9", nil},
		"CutJPEG":          {"\xff\xd8\xff" + long, ErrCutOff},
		"XML":              {"\ufeff<?xml version=\"1.0\"?><a>" + long + "</a>\n", nil},
		"XMLInLatin":       {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>M\xfcller</a>", nil},
		"CutXML":           {"<a><b/>" + long, ErrCutOff},
		"CutXMLAtATag":     {"<a><b/>", ErrCutOff},
		"DeepXML":          {strings.Repeat("<a>", 5000) + strings.Repeat("</a>", 5000), ErrCutOff},
		"LongXML":          {"<a>" + strings.Repeat(long, 500) + "</a>", nil},
		"CutLongXML":       {"<a>" + strings.Repeat(long, 500), ErrCutOff},
		"ErrorOfAStore":    {"<?xml version=\"1.0\"?><Error><Code>x</Code></Error>", ErrInItsPlace},
		"OtherError":       {"<error/>", ErrInItsPlace},
		"Page":             {"\n<!DOCTYPE html><p>sign in", ErrInItsPlace},
		"PageInXML":        {"<?xml version=\"1.0\"?><!DOCTYPE html><html></html>", ErrInItsPlace},
		"PageAfterARemark": {"<!-- x --><html></html>", ErrInItsPlace},
		"JSON":             {" {\"message\":\"not found\"}", ErrInItsPlace},
		"BracesInText":     {"{braces} in a text", nil},
		"Text":             {"number;amount\n1;2\n", nil},
		"Short":            {"x", nil},
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckForm(strings.NewReader(r.content), int64(len(r.content)), false)
			kit.Check(t, errors.Is(err, r.want) && (err == nil) == (r.want == nil), "%v, want %v", err, r.want)
		})
	}
	if err := CheckForm(bytes.NewReader(nil), 0, false); err != nil {
		t.Errorf("an empty file is judged elsewhere: %v", err)
	}
}
