package catalog

import (
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Query is a list of words that must all occur in what an entry and its document say.
type Query []word

// word is one word of a query, in the forms under which it may be written. It has one form or two.
type word []string

// NewQuery returns the query for words without blanks.
func NewQuery(words []string) Query {
	var q Query
	for _, w := range words {
		q = append(q, spellingsOf(w))
	}
	return q
}

// Hit is an entry that a query found, with what its document says.
type Hit struct {
	Entry ledger.Entry
	Meta  archive.Document // zero before the entry is sealed
	Read  archive.AsRead   // of a folder that was refused or is a duplicate
}

// Match returns the hit where every word of the query is found in the entry or its document; nil where one is not.
func (q Query) Match(e ledger.Entry, doc ledger.Document) (*Hit, error) {
	r, err := newRow(e, doc)
	if err != nil {
		return nil, err
	}
	var texts []string
	for _, t := range slices.Concat([]string{e.Folder, e.Dest}, r.references(), r.parties()) {
		texts = append(texts, spellingsOf(t)...)
	}
	marks := marksOf(e)
	for _, w := range q {
		if !w.occursIn(texts) && !w.beginsOneOf(marks) {
			return nil, nil
		}
	}
	return &Hit{Entry: e, Meta: r.meta, Read: r.read}, nil
}

// OccursIn reports whether every word of the query occurs in one text.
func (q Query) OccursIn(text string) bool {
	texts := spellingsOf(text)
	return !slices.ContainsFunc(q, func(w word) bool { return !w.occursIn(texts) })
}

// occursIn reports whether the word occurs in one of some texts, which are in all their spellings.
func (w word) occursIn(texts []string) bool {
	return slices.ContainsFunc(texts, func(t string) bool {
		return slices.ContainsFunc(w, func(form string) bool { return strings.Contains(t, form) })
	})
}

// leastMark is how many characters of a key or number must be given, from its beginning.
const leastMark = 6

// beginsOneOf reports whether one of some keys and numbers begins with the
// word. One inside of them does not count: a key or UUID holds any short number
// somewhere.
func (w word) beginsOneOf(marks []string) bool {
	return slices.ContainsFunc(marks, func(m string) bool {
		return len(w[0]) >= min(leastMark, len(m)) && strings.HasPrefix(strings.ToLower(m), w[0])
	})
}

// marksOf returns the key and the numbers of an entry. A word finds them by their beginning.
func marksOf(e ledger.Entry) []string {
	marks := []string{e.Key.String()}
	if !e.ID.IsZero() {
		marks = append(marks, e.ID.String())
		if e.FirstID != e.ID {
			marks = append(marks, e.FirstID.String())
		}
	}
	for _, r := range e.Registrations {
		marks = append(marks, string(r.Ticket.Remote))
	}
	return marks
}

var spelledOut = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue")

// spellingsOf returns the forms of a text that count as the same: without case and marks, and with umlauts spelled out.
func spellingsOf(text string) []string {
	if isASCII(text) {
		return []string{strings.ToLower(text)}
	}
	lower := cases.Fold().String(norm.NFC.String(text))
	plain := strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, norm.NFKD.String(lower))
	if out := spelledOut.Replace(lower); out != plain {
		return []string{plain, out}
	}
	return []string{plain}
}

// isASCII tells the texts that folding only makes lower case; most of them are.
func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}
