package main

import (
	"go/ast"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The counters of text.
const (
	headlessCounter  = "headless"
	negationsCounter = "negations"
	wideCounter      = "wide"
	privateCounter   = "private"
)

// widest is the largest number of characters of a comment line that is not
// counted.
const widest = 100

// paragraph collects the lines of one paragraph.
type paragraph struct {
	text  strings.Builder
	begin []textLine
}

// textLine says at which byte of a paragraph a line of the file begins.
type textLine struct{ offset, line int }

// addLine appends the text of one line.
func (p *paragraph) addLine(line int, text string) {
	if p.text.Len() > 0 {
		p.text.WriteByte(' ')
	}
	p.begin = append(p.begin, textLine{p.text.Len(), line})
	p.text.WriteString(strings.TrimSpace(text))
}

// lineAt returns the line of the file that holds a byte of the paragraph.
func (p *paragraph) lineAt(offset int) (line int) {
	for _, l := range p.begin {
		if l.offset <= offset {
			line = l.line
		}
	}
	return line
}

// countParagraph counts the sentences of a paragraph and empties it.
func (t *tree) countParagraph(file string, p *paragraph) {
	text := p.text.String()
	begin := 0
	for _, end := range append(sentenceEnds(text), len(text)) {
		sentence := strings.TrimSpace(text[begin:end])
		if strings.ContainsFunc(sentence, unicode.IsLetter) {
			t.countSentence(file, p.lineAt(begin), sentence)
		}
		begin = end
	}
	*p = paragraph{}
}

// countSentence runs the counters of sentences.
func (t *tree) countSentence(file string, line int, sentence string) {
	t.of(file).sentences++
	if headlessPattern.MatchString(sentence) && !strings.HasSuffix(sentence, "?") {
		t.hit(headlessCounter, file, line, sentence)
	}
	if negationPattern.MatchString(sentence) {
		t.hit(negationsCounter, file, line, sentence)
	}
	for _, word := range privatePattern.FindAllString(sentence, -1) {
		t.hit(privateCounter, file, line, word+": "+sentence)
	}
}

var sentenceEnd = regexp.MustCompile(`[.!?:][)"'”]*\s+`)

// sentenceEnds returns the offsets behind the sentences of a text, except the
// last: a mark ends a sentence if a capital letter follows.
func sentenceEnds(text string) (ends []int) {
	for _, m := range sentenceEnd.FindAllStringIndex(text, -1) {
		rest := strings.TrimLeft(text[m[1]:], "\"'([`*")
		if r, _ := utf8.DecodeRuneInString(rest); unicode.IsUpper(r) {
			ends = append(ends, m[1])
		}
	}
	return ends
}

// countComments counts the text of the comments of a Go file. Directives and
// code blocks are left out.
func (t *tree) countComments(f goFile) {
	for _, group := range f.syntax.Comments {
		p := &paragraph{}
		for _, c := range group.List {
			for i, text := range strings.Split(c.Text, "\n") {
				line := f.line(c.Pos()) + i
				t.countWide(f, c, line, text)
				text, isText := commentText(text)
				if !isText || beginsItem(text) {
					t.countParagraph(f.path, p)
				}
				if isText {
					p.addLine(line, strings.TrimPrefix(strings.TrimSpace(text), "- "))
				}
			}
		}
		t.countParagraph(f.path, p)
	}
}

// countWide counts a comment line that is too wide. A link may be as long as it
// is.
func (t *tree) countWide(f goFile, c *ast.Comment, line int, text string) {
	indent := 0
	if strings.HasPrefix(text, "//") {
		indent = f.set.Position(c.Pos()).Column - 1
	}
	if !f.code[line] && indent+utf8.RuneCountInString(text) > widest && !strings.Contains(text, "://") {
		t.hit(wideCounter, f.path, line, strings.TrimSpace(text))
	}
}

var directive = regexp.MustCompile(`^//[a-z]+[:/]\S`)

// commentText returns a line of a comment without its marks, and whether it
// holds text that is read.
func commentText(line string) (text string, isText bool) {
	if directive.MatchString(line) {
		return "", false
	}
	text = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(line, "//"), "/*"), "*/")
	if strings.HasPrefix(text, "\t") && strings.HasPrefix(line, "//") {
		return "", false // a code block
	}
	return text, strings.TrimSpace(text) != ""
}

var item = regexp.MustCompile(`^\s*(?:[-*+]|\d+[.)])\s`)

// beginsItem reports whether a line begins an item of a list.
func beginsItem(text string) bool { return item.MatchString(text) }
