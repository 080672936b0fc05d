package packager

import (
	"fmt"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
)

// maxFaults bounds what one Refusal lists; the rest is counted by a last Fault.
const maxFaults = 100

// Fault is one thing wrong with the folder, in words for the person who dropped
// it. Brief and the place hold no value of the sidecar; Text, Advice and Excerpt do.
type Fault struct {
	File      string // where: the sidecar, the manifest or the file itself; empty: the folder
	Line, Col int    // from 1, Col in characters; 0: no place in the file
	Field     string // the field, like additionalParameters[1].key; may be empty
	Brief     string // a few words for a list, like "documentDate not understood"
	Text      string // what is wrong: a sentence without its full stop
	Advice    string // what to do about it; with its full stop when nothing is left to do then
	Excerpt   string // the line, and a second one with a caret below the place
}

// Kind is what was dropped, for the words of a refusal.
type Kind uint8

// The kinds.
const (
	ArchiveFolder Kind = iota // a folder for the archive
	SinglePDF
	NetworkFolder // a folder for the business network
)

// refusalWords are the words of a refusal, a row for each kind.
var refusalWords = [...]struct{ thing, verdict, nothing, moveBack string }{
	ArchiveFolder: {"folder", "NOT ARCHIVED", " Nothing was sent.", "move this whole folder back"},
	SinglePDF:     {"PDF", "NOT SENT", "", "move the PDF back"},
	NetworkFolder: {"folder", "NOT SENT", "", "move this whole folder back"},
}

// Refusal is the document's own fault: everything that is wrong with the folder,
// in the order in which a reader meets it. Faults is never empty.
type Refusal struct {
	Faults []Fault
	Of     Kind           // what was dropped
	AsRead archive.AsRead // what the sidecar says all the same; nothing of it was checked
}

// Error returns one line for logs. It holds no value of the sidecar.
func (r *Refusal) Error() string {
	f := r.Faults[0]
	s := refusalWords[r.Of].thing + " refused: " + f.Brief
	if f.Line > 0 {
		s += fmt.Sprintf(" (%s, line %d, column %d)", showName(f.File), f.Line, f.Col)
	}
	if n := len(r.Faults) - 1; n > 0 {
		s += fmt.Sprintf("; %d more", n)
	}
	return s
}

// Text returns the whole message for the person who dropped the folder, in lines
// that end with LF. It may hold values of the sidecar.
func (r *Refusal) Text() string {
	words := refusalWords[r.Of]
	verdict, nothing, moveBack := words.verdict, words.nothing, words.moveBack
	var b strings.Builder
	if len(r.Faults) == 1 {
		f := r.Faults[0]
		advice, whole := strings.CutSuffix(f.Advice, ".")
		if !whole {
			advice += ", then " + moveBack
		}
		fmt.Fprintf(&b, "%s. %s. %s.%s\n", verdict, f.sentence(), advice, nothing)
		writeExcerpt(&b, f.Excerpt, "    ")
		return b.String()
	}
	fmt.Fprintf(&b, "%s. %d things to put right.%s\n\n", verdict, len(r.Faults), nothing)
	for i, f := range r.Faults {
		fmt.Fprintf(&b, "%2d. %s. %s.\n", i+1, f.sentence(), strings.TrimSuffix(f.Advice, "."))
		writeExcerpt(&b, f.Excerpt, "        ")
	}
	fmt.Fprintf(&b, "\nPut all of this right, then %s.\n", moveBack)
	return b.String()
}

func writeExcerpt(b *strings.Builder, text, indent string) {
	for line := range strings.Lines(text) {
		b.WriteString(indent + strings.TrimRight(line, "\n") + "\n")
	}
}

// sentence says where and what, as in: metadata.json, line 9, "amount": "1,5" is ambiguous.
func (f Fault) sentence() string {
	switch {
	case f.File == "":
		return f.Text
	case f.Line > 0 && f.Col > 0 && f.Field == "":
		return fmt.Sprintf("%s is unreadable at line %d, column %d: %s", showName(f.File), f.Line, f.Col, f.Text)
	}
	s := showName(f.File)
	if f.Line > 0 {
		s += fmt.Sprintf(", line %d", f.Line)
	}
	if f.Field != "" {
		s += ", " + quoteField(f.Field)
	}
	if strings.HasPrefix(f.Text, "is ") || strings.HasPrefix(f.Text, "has ") || strings.HasPrefix(f.Text, "stands ") {
		return s + " " + f.Text
	}
	return s + ": " + f.Text
}

// quoteField quotes the name of a field but not what leads further into it.
func quoteField(field string) string {
	name := topField(field)
	return `"` + showName(name) + `"` + showName(field[len(name):])
}

// showName makes a name or a field of unknown origin fit for a line.
func showName(s string) string { return sanitize.Name(s, 80) }

// newRefusal returns the Refusal of faults, or nil when there are none.
func newRefusal(faults []Fault, read archive.AsRead) error {
	if len(faults) == 0 {
		return nil
	}
	if n := len(faults) - maxFaults; n > 0 {
		faults = append(faults[:maxFaults:maxFaults], Fault{
			Brief: "many faults", Text: fmt.Sprintf("%d more of such faults", n),
			Advice: "Put right those above first"})
	}
	return &Refusal{Faults: faults, AsRead: read}
}
