package main

import (
	"regexp"
	"strings"
)

var (
	generatedPage  = regexp.MustCompile(`(?m)^<!-- Generated from `)
	generatedBegin = regexp.MustCompile(`^<!-- .*(?:: begin|: from here on written by .*) -->$`)
	generatedEnd   = regexp.MustCompile(`^<!-- .*(?:: end|: up to here) -->$`)
)

// countPage counts the words and the text of a page that are written by hand.
func (t *tree) countPage(name, src string) {
	if generatedPage.MatchString(src) {
		return
	}
	figures, p := t.of(name), &paragraph{}
	inGenerated, inCode := false, false
	for i, line := range strings.Split(strings.TrimSuffix(src, "\n"), "\n") {
		inGenerated = inGenerated && !generatedEnd.MatchString(line) || generatedBegin.MatchString(line)
		if inGenerated {
			continue
		}
		words := len(strings.Fields(line))
		figures.pageLines++
		figures.words += words
		t.pages[name] += words
		isFence := strings.HasPrefix(strings.TrimSpace(line), "```")
		if isFence {
			inCode = !inCode
		}
		t.countPageLine(name, i+1, line, p, inCode || isFence)
	}
	t.countParagraph(name, p)
}

var codeSpan = regexp.MustCompile("`[^`]*`")

// countPageLine adds a line of a page to its paragraph, or ends the paragraph.
func (t *tree) countPageLine(name string, number int, line string, p *paragraph, isCode bool) {
	line = codeSpan.ReplaceAllString(line, "`X`")
	trimmed := strings.TrimSpace(line)
	switch {
	case isCode, trimmed == "", strings.HasPrefix(trimmed, "#"), strings.HasPrefix(trimmed, "<!--"):
		t.countParagraph(name, p)
	case strings.HasPrefix(trimmed, "|"):
		t.countParagraph(name, p)
		for cell := range strings.SplitSeq(trimmed, "|") {
			p.addLine(number, cell)
			t.countParagraph(name, p)
		}
	default:
		if beginsItem(line) {
			t.countParagraph(name, p)
		}
		p.addLine(number, item.ReplaceAllString(line, ""))
	}
}
