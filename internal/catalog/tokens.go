package catalog

import (
	"hash/fnv"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The index holds tokens that this package makes; SQLite only compares them. A text without blanks is cut into all its pieces of these
// sizes, in characters. A word that occurs in the text has all its pieces among those of the text.
var gramSizes = [...]int{1, 2, 3, 6}

const markSize = 12 // characters of a key or number that are in the index

// The tokens that are no pieces of a text begin with a character of their own, from the private area of Unicode. A text may hold
// it all the same: then the index gives a candidate too many, and the search looks at the entry.
const (
	markKind  = '\ue001' // the beginning of a key or number
	nameKind  = '\ue002' // a digest of a folder's name
	partyKind = '\ue003' // the number of a party
	placeKind = '\ue004' // the number of a place
)

// tokenList collects tokens.
type tokenList []string

func (l *tokenList) add(token string) { *l = append(*l, token) }

// addText adds the pieces of a text in all its forms.
func (l *tokenList) addText(text string) {
	for _, form := range spellingsOf(text) {
		for _, piece := range strings.Fields(form) {
			p := newTokenPiece(piece)
			for _, size := range gramSizes {
				for i := range p.len() - size + 1 {
					l.add(p.gram(i, size))
				}
			}
		}
	}
}

// text returns the tokens parted by blanks. One that is there twice counts once in the index.
func (l *tokenList) text() string { return strings.Join(*l, " ") }

// tokenPiece is a text without blanks as its characters stand in tokens. The tokenizer "ascii" of SQLite parts tokens at every ASCII
// character that is neither letter nor digit, so these become others.
type tokenPiece struct {
	text   string
	starts []int // of each character in text, and the end
}

func newTokenPiece(piece string) tokenPiece {
	text := strings.Map(func(r rune) rune {
		if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return r + utf8.RuneSelf
		}
		return r
	}, piece)
	p := tokenPiece{text: text, starts: make([]int, 0, len(text)+1)}
	for i := range text {
		p.starts = append(p.starts, i)
	}
	p.starts = append(p.starts, len(text))
	return p
}

// len returns how many characters there are.
func (p tokenPiece) len() int { return len(p.starts) - 1 }

// gram returns size characters from the i-th on.
func (p tokenPiece) gram(i, size int) string { return p.text[p.starts[i]:p.starts[i+size]] }

// markToken returns the token of a key or number.
func markToken(mark string) string {
	p := newTokenPiece(strings.ToLower(mark))
	return string(markKind) + p.gram(0, min(markSize, p.len()))
}

// nameToken returns the token of a folder's name. Names that [strings.EqualFold] holds for equal have the same one.
func nameToken(name string) string {
	h := fnv.New64a()
	for _, r := range name {
		h.Write(utf8.AppendRune(nil, leastFold(r)))
	}
	return string(nameKind) + strconv.FormatUint(h.Sum64()&(1<<40-1), 36)
}

// leastFold returns the smallest of the characters that differ from r in case alone.
func leastFold(r rune) rune {
	least := r
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		least = min(least, f)
	}
	return least
}

func partyToken(id int64) string { return string(partyKind) + strconv.FormatInt(id, 36) }

func placeToken(id int64) string { return string(placeKind) + strconv.FormatInt(id, 36) }

// documentTokens returns the tokens of a row, parted by blanks. place is the number of the folder in which its source lies; zero: it
// was not placed yet.
func documentTokens(r row, parties map[string]int64, place int64) string {
	s := append(make(tokenList, 0, len(parties)+2), r.tokens)
	if r.tokens == "" {
		s[0] = textTokens(r)
	}
	for _, id := range parties {
		s.add(partyToken(id))
	}
	if place != 0 {
		s.add(placeToken(place))
	}
	return s.text()
}

// textTokens returns the tokens of a row for which its entry and its document are enough.
func textTokens(r row) string {
	s := make(tokenList, 0, 100)
	s.addText(r.Folder)
	s.add(nameToken(r.Folder))
	if base := path.Base(r.Dest); r.Dest != "" && base != r.Folder {
		s.addText(base)
		s.add(nameToken(base))
	}
	for _, text := range r.references() {
		s.addText(text)
	}
	for _, m := range marksOf(r.Entry) {
		s.add(markToken(m))
	}
	return s.text()
}

// partyTokens returns the tokens of the name or number of a party.
func partyTokens(text string) string {
	var s tokenList
	s.addText(text)
	return s.text()
}

// digestOfTexts tells whether the tokens of a row changed, without making them: most changes of an entry leave them as they are.
func digestOfTexts(r row) int64 {
	h := fnv.New64a()
	texts := slices.Concat([]string{r.Folder, r.Dest}, r.references(), marksOf(r.Entry), r.parties())
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	return int64(h.Sum64())
}

// coveringGrams returns pieces that every text has in which the form occurs, as large ones as there are; none where the form is no
// text. They overlap as little as they can: each further one costs time and excludes hardly anything.
func coveringGrams(form string) []string {
	if !utf8.ValidString(form) {
		return nil
	}
	var grams []string
	for _, piece := range strings.Fields(form) {
		p := newTokenPiece(piece)
		size := 1
		for _, s := range gramSizes {
			if s <= p.len() {
				size = s
			}
		}
		for i := 0; i+size <= p.len(); i += size {
			grams = append(grams, p.gram(i, size))
		}
		if p.len() > size && p.len()%size != 0 {
			grams = append(grams, p.gram(p.len()-size, size))
		}
	}
	return grams
}
