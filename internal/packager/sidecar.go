package packager

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"vaultd/internal/archive"
	"vaultd/internal/strictjson"
)

// sidecarFields are the keys of a sidecar, in the order in which faults are reported.
var sidecarFields = append(archive.MetadataFields(), "clientUUID", "files")

// sidecarForm keeps a hostile sidecar cheap; a real one stays far below.
var sidecarForm = strictjson.Form{Depth: 16, Values: 20_000,
	Again: `Fill in a copy of _template\metadata.json with Notepad`, Currency: "currencyCode"}

// sidecarReader holds a sidecar as it was understood. Its faults are in the order of the file.
type sidecarReader struct {
	name string
	src  []byte // without the byte order mark

	doc           archive.Document
	asRead        archive.AsRead
	id            archive.ID // zero: the sidecar names none
	hasFilesField bool       // it has the key files
	listedFiles   []listedFile

	at     map[string]int  // where the value of a top-level key begins
	faulty map[string]bool // top-level keys that have a fault already
	faults []Fault
}

// readSidecar understands the bytes of a sidecar under the rules of its drop.
func readSidecar(name string, src []byte, rules Rules) *sidecarReader {
	f := newSidecarReader(name)
	if text, advice := describeUnreadable(src); text != "" {
		f.faults = []Fault{{File: name, Brief: name + " unreadable", Text: text, Advice: advice}}
		return f
	}
	f.src = strictjson.WithoutMark(src)
	v, repeated, bad := strictjson.Parse(f.src, sidecarForm)
	switch {
	case bad != nil:
		f.addFault(bad.At, "", f.name+" unreadable", bad.Text, bad.Advice)
		return f
	case v.Kind != strictjson.Object:
		f.addFault(v.At, "", f.name+" unreadable", "the file is "+v.Kind.String()+", not an object in { }", `Fill in a copy of _template\metadata.json`)
		return f
	}
	f.asRead = asRead(v)
	for _, r := range repeated[:min(len(repeated), maxFaults+1)] {
		first, _ := strictjson.Place(f.src, r.First)
		f.addFault(r.At, r.Key, "a field stands twice", fmt.Sprintf("stands here a second time (first in line %d)", first), "Delete one of the two")
	}
	defaults, _ := fromConfig(rules.Defaults, "")
	v.Members = append(v.Members, missingMembers(defaults.Members, v.Members)...)
	f.readFields(v)
	f.checkDocument()
	f.checkRequired(rules.Require)
	slices.SortStableFunc(f.faults, func(a, b Fault) int {
		if a.Line == 0 || b.Line == 0 {
			return b.Line - a.Line // faults without a line come last
		}
		return cmp.Or(a.Line-b.Line, a.Col-b.Col)
	})
	return f
}

func newSidecarReader(name string) *sidecarReader {
	return &sidecarReader{name: name, at: map[string]int{}, faulty: map[string]bool{}}
}

// describeUnreadable returns why the bytes are no text at all; empty: they are.
func describeUnreadable(src []byte) (text, advice string) {
	const again = `Fill it in from _template\metadata.json`
	switch {
	case len(bytes.TrimSpace(strictjson.WithoutMark(src))) == 0:
		return "is empty", again
	case bytes.HasPrefix(src, []byte("\xff\xfe")), bytes.HasPrefix(src, []byte("\xfe\xff")),
		len(src) > 1 && (src[0] == 0 || src[1] == 0):
		return "is saved as Unicode (UTF-16)", `Open it with Notepad, choose "Save as" with encoding UTF-8`
	case bytes.HasPrefix(src, []byte("PK\x03\x04")), bytes.HasPrefix(src, []byte("{\\rtf")):
		return "is a word processor's document, not plain text", again + " with Notepad"
	}
	return "", ""
}

// missingMembers returns the members of defaults that have leaves out or empty.
func missingMembers(defaults, have []strictjson.Member) (add []strictjson.Member) {
	for _, d := range defaults {
		given := slices.ContainsFunc(have, func(m strictjson.Member) bool { return m.Key == d.Key && !isEmptyValue(m.Value) })
		if !given {
			add = append(add, d)
		}
	}
	return add
}

func isEmptyValue(v *strictjson.Value) bool {
	return v.Kind == strictjson.Text && v.Text == "" || v.Kind == strictjson.List && len(v.Items) == 0
}

// addFault adds a fault at an offset of the source; -1: no place. A top-level key that has one is skipped by the checks of
// the whole document.
func (f *sidecarReader) addFault(at int, field, brief, text, advice string) {
	x := Fault{File: f.name, Field: field, Brief: brief, Text: text, Advice: advice}
	// Faults beyond maxFaults are only counted.
	if at >= 0 && len(f.faults) < maxFaults {
		x.Line, x.Col = strictjson.Place(f.src, at)
		x.Excerpt = excerptAt(f.src, at)
	}
	f.faults = append(f.faults, x)
	f.faulty[topField(field)] = true
}

// topField returns the top-level key of a field.
func topField(field string) string {
	name, _, _ := strings.Cut(field, "[")
	return name
}

func (f *sidecarReader) readFields(v *strictjson.Value) {
	for _, m := range v.Members {
		f.at[m.Key] = m.Value.At
		f.readField(m)
	}
}

func (f *sidecarReader) readField(m strictjson.Member) {
	d, v := &f.doc, m.Value
	switch m.Key {
	case "documentType":
		f.readText(m.Key, v, &d.Type)
	case "documentId":
		f.readText(m.Key, v, &d.Number)
	case "documentDate":
		f.readDate(m.Key, v, &d.Date)
	case "senderName":
		f.readText(m.Key, v, &d.SenderName)
	case "senderIds":
		f.readTexts(m.Key, v, &d.SenderIDs)
	case "recipientName":
		f.readText(m.Key, v, &d.RecipientName)
	case "recipientIds":
		f.readTexts(m.Key, v, &d.RecipientIDs)
	case "currencyCode":
		f.readText(m.Key, v, &d.Currency)
	case "buyerReferenceId":
		f.readText(m.Key, v, &d.BuyerReferenceID)
	case "buyerReferenceType":
		f.readText(m.Key, v, &d.BuyerReferenceType)
	case "amount":
		f.readAmount(m.Key, v, &d.Amount)
	case "additionalParameters":
		f.readParameters(m.Key, v, &d.Parameters)
	case "tradingPartner":
		f.readText(m.Key, v, &d.TradingPartner)
	case "flowDirection":
		f.readText(m.Key, v, &d.FlowDirection)
	case "clientUUID":
		f.readUUID(m.Key, v)
	case "files":
		f.readFilesField(m.Key, v)
	default:
		f.addUnknownField(m.At, m.Key, m.Key, sidecarFields)
	}
}

func (f *sidecarReader) addUnknownField(at int, field, key string, among []string) {
	advice := "Delete it; the fields are " + strings.Join(among, ", ")
	if len(f.faults) >= maxFaults {
		// The fault is only counted, and looking for the nearest word costs time.
		advice = "Delete it"
	} else if near := nearestWord(key, among); near != "" {
		advice = fmt.Sprintf("Did you mean %q? Write it exactly so", near)
		// Marked so that it is not reported as missing, too.
		f.faulty[near] = true
	}
	f.addFault(at, field, "a field is not known", "is not a field that is known here", advice)
}

// addWrongKind adds a fault that says which kind of value a field takes.
func (f *sidecarReader) addWrongKind(field string, v *strictjson.Value, want, advice string) {
	said := "is " + v.Kind.String() + "; it must be " + want
	if v.IsNull() {
		said, advice = "is null", "Leave the whole field out when there is nothing to say"
	}
	f.addFault(v.At, field, topField(field)+" not understood", said, advice)
}

// readText reads text into to. Line breaks and tabs are allowed, but not in a field that identifies something.
func (f *sidecarReader) readText(field string, v *strictjson.Value, to *string) bool {
	if v.Kind != strictjson.Text {
		advice := `Write it in straight quotes: "…"`
		if v.Kind == strictjson.Number {
			advice = fmt.Sprintf(`Write it in quotes: "%s"`, showName(v.Text))
		}
		f.addWrongKind(field, v, "text in quotes", advice)
		return false
	}
	bad := strings.IndexFunc(v.Text, func(r rune) bool {
		breaks := strings.ContainsRune("\t\n\r", r)
		return unicode.IsControl(r) && (!breaks || field == "documentId")
	})
	if bad >= 0 {
		f.addFault(v.At, field, topField(field)+" not understood", "has a control character in it", "Delete that character")
		return false
	}
	*to = v.Text
	return true
}

func (f *sidecarReader) readTexts(field string, v *strictjson.Value, to *[]string) {
	if v.Kind != strictjson.List {
		f.addWrongKind(field, v, "a list in [ ]", `Write ["first", "second"], also around a single one`)
		return
	}
	for i, item := range v.Items {
		var s string
		each := fmt.Sprintf("%s[%d]", field, i)
		if f.readText(each, item, &s) && strings.TrimSpace(s) == "" {
			f.addFault(item.At, each, field+" not understood", "is empty", "Write the identifier, or leave it out")
		}
		*to = append(*to, s)
	}
}

func (f *sidecarReader) readParameters(field string, v *strictjson.Value, to *[]archive.Parameter) {
	const shape = `Write [{"key": "…", "value": "…"}]`
	if v.Kind != strictjson.List {
		f.addWrongKind(field, v, "a list in [ ]", shape)
		return
	}
	for i, item := range v.Items {
		each := fmt.Sprintf("%s[%d]", field, i)
		if item.Kind != strictjson.Object {
			f.addWrongKind(each, item, "an object in { }", shape)
			continue
		}
		var p archive.Parameter
		for _, m := range item.Members {
			switch m.Key {
			case "key":
				f.readText(each+".key", m.Value, &p.Key)
			case "value":
				f.readText(each+".value", m.Value, &p.Value)
			default:
				f.addUnknownField(m.At, each+"."+m.Key, m.Key, []string{"key", "value"})
			}
		}
		if strings.TrimSpace(p.Key) == "" && !f.faulty[field] {
			f.addFault(item.At, each+".key", field+" not understood", "is missing or empty", shape)
		}
		*to = append(*to, p)
	}
}

func (f *sidecarReader) readUUID(field string, v *strictjson.Value) {
	var s string
	if !f.readText(field, v, &s) || s == "" {
		return
	}
	id, err := archive.ParseID(s)
	if err != nil || id.IsZero() {
		f.addFault(v.At, field, "clientUUID not understood", fmt.Sprintf("%q is not a UUID of 36 characters", showName(s)),
			"Write it like 0b6f3c1e-5f1d-4a53-9f0e-2f6a3c1d9b77, or leave it out: vaultd then makes one")
		return
	}
	f.id = id
}

// checkDocument adds what the service would refuse in fields that were understood.
func (f *sidecarReader) checkDocument() {
	for _, x := range f.doc.Faults() {
		if f.faulty[x.Field] {
			continue
		}
		at, ok := f.at[x.Field]
		if !ok {
			at = -1
		}
		brief := x.Field + " not accepted"
		if strings.HasPrefix(x.Text, "is missing") {
			brief, at = x.Field+" missing", -1
		}
		said, advice, _ := strings.Cut(x.Text, "; ")
		if !strings.HasPrefix(advice, "write ") {
			said, advice = x.Text, "Shorten it"
		}
		f.addFault(at, x.Field, brief, said, strings.ToUpper(advice[:1])+advice[1:])
	}
}

// nearestWord returns the word that key was probably meant to be, or "".
func nearestWord(key string, among []string) string {
	plain := func(s string) []rune {
		return []rune(strings.Map(func(r rune) rune {
			if unicode.IsLetter(r) || unicode.IsDigit(r) {
				return unicode.ToLower(r)
			}
			return -1
		}, s))
	}
	if len(key) > 60 {
		return ""
	}
	best, found := 3, ""
	for _, word := range among {
		if d := editDistance(plain(key), plain(word)); d < best && d*3 <= len(word) {
			best, found = d, word
		}
	}
	return found
}

// editDistance is the number of letters to add, drop or change (Levenshtein).
func editDistance(a, b []rune) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i, x := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j, y := range b {
			change := diagonal
			if x != y {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
