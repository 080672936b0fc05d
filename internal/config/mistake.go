package config

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// yamlMistake is what a person most likely did wrong where a file cannot be read as YAML.
type yamlMistake struct {
	at            mark
	problem, hint string
}

// findUsualMistake looks for the mistakes that people make in YAML, in the lines up to the one behind that where the parser stopped: it
// stops lines behind the mistake or one before it, and says only what it expected. ok is false where none of them is there.
func findUsualMistake(lines []string, stopped mark) (found yamlMistake, ok bool) {
	s := yamlScan{open: []int{0}}
	for i, line := range lines {
		if found, ok = s.checkLine(line); ok {
			found.at.line = i + 1
			return found, true
		}
		if i+1 > stopped.line && !isBlank(line) {
			break
		}
	}
	if b := s.bracket; b.line > 0 { // it is open where the parser stopped
		return yamlMistake{b, "a bracket is opened here and never closed", "add the closing bracket } or ] at the end of the list or section"}, true
	}
	return found, false
}

// yamlScan reads a file line by line, as far as the usual mistakes need it.
type yamlScan struct {
	line    int
	open    []int // the columns, from 0, at which the sections and lists begin that are open
	opened  bool  // the line before opens a section: what follows may be indented deeper
	text    int   // the indentation above which a text of several lines goes on; -1: none does
	inText  bool
	bracket mark // the first bracket that is open; line 0: none is
	depth   int
}

var (
	keyWithoutSpace = regexp.MustCompile(`^([A-Za-z_][A-Za-z0-9_]*):\S`)
	keyWithoutColon = regexp.MustCompile(`^([A-Za-z_]+)(\s.*)?$`)
	keyAndValue     = regexp.MustCompile(`^([^\s"'{}\[\]#,][^\s:]*):(\s+(.*))?$`)
	textBlock       = regexp.MustCompile(`^[|>][-+0-9]*$`)
)

// checkLine looks at one more line.
func (s *yamlScan) checkLine(line string) (yamlMistake, bool) {
	s.line++
	content := strings.TrimLeft(line, " ")
	indent := len(line) - len(content)
	switch {
	case isBlank(line):
		return yamlMistake{}, false
	case s.inText && indent > s.text:
		return yamlMistake{}, false
	case content[0] == '\t':
		return mistakeAt(indent, "a tab stands where only spaces may stand", "replace the tab by spaces, two for each level; set the editor to indent with spaces")
	}
	s.inText = false
	if s.depth > 0 {
		return s.checkValue(content, indent)
	}
	if m, wrong := s.checkIndentation(indent, content); wrong {
		return m, true
	}
	item := strings.HasPrefix(content, "- ")
	for strings.HasPrefix(content, "- ") { // an item of a list: what follows the dash is a section of its own
		rest := strings.TrimLeft(content[2:], " ")
		indent += len(content) - len(rest)
		content = rest
		s.open = append(s.open, indent)
	}
	return s.checkEntry(content, indent, item)
}

// isBlank reports whether a line holds nothing but blanks or a comment.
func isBlank(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// checkIndentation compares a line's indentation with the sections that are open.
func (s *yamlScan) checkIndentation(indent int, content string) (yamlMistake, bool) {
	deepest := s.open[len(s.open)-1]
	if indent > deepest {
		if !s.opened {
			return mistakeAt(indent, "this line is indented deeper than the line above, which opens no section",
				fmt.Sprintf("indent lines that belong together alike: the line above begins in column %d, this one in column %d", deepest+1, indent+1))
		}
		s.open = append(s.open, indent)
	}
	left := 0 // the section that ends last
	for len(s.open) > 1 && s.open[len(s.open)-1] > indent {
		left = s.open[len(s.open)-1]
		s.open = s.open[:len(s.open)-1]
	}
	if at := s.open[len(s.open)-1]; at != indent {
		return mistakeAt(indent, "the indentation of this line fits no line above it",
			fmt.Sprintf("begin it in the column of the lines that it belongs to: %d or %d, not %d", at+1, left+1, indent+1))
	}
	if strings.HasPrefix(content, "-") && len(content) > 1 && content[1] != ' ' && content != "---" {
		return mistakeAt(indent+1, "a space is missing after the dash", "write a dash, a space, then the item")
	}
	return yamlMistake{}, false
}

// checkEntry looks at a key with its value, which is the first one of an item of a list or not.
func (s *yamlScan) checkEntry(content string, indent int, item bool) (yamlMistake, bool) {
	s.opened = false
	bare := strings.TrimRight(content, " ")
	if at := strings.Index(bare, " #"); at >= 0 && !strings.ContainsAny(bare[:at], `"'`) {
		bare = strings.TrimRight(bare[:at], " ")
	}
	if m := keyWithoutSpace.FindStringSubmatch(bare); m != nil && m[1] != "http" && m[1] != "https" {
		return mistakeAt(indent+len(m[1])+1, "a space is missing after the colon", fmt.Sprintf(`write "%s: " with a space, then the value`, m[1]))
	}
	if at := strings.IndexAny(bare, "\u00a0“”„"); at >= 0 {
		return mistakeAt(indent+utf8.RuneCountInString(bare[:at]), "a character of a word processor stands here", "write plain quotes and plain spaces, with a plain text editor")
	}
	if end := endOfQuote(content); (content[0] == '"' || content[0] == '\'') && end > 0 && strings.HasPrefix(content[end+1:], ": ") {
		return s.checkValue(content[end+3:], indent+end+3) // a key in quotes
	}
	m := keyAndValue.FindStringSubmatch(content)
	switch {
	case m == nil && !item && keyWithoutColon.MatchString(bare):
		word := strings.Fields(bare)[0]
		return mistakeAt(indent+len(word), "a colon is missing", fmt.Sprintf(`write "%s:", then a space and the value`, word))
	case m == nil:
		return s.checkValue(content, indent)
	case m[3] == "" || strings.HasPrefix(m[3], "#"):
		s.opened = true
		return yamlMistake{}, false
	case textBlock.MatchString(m[3]):
		s.inText, s.text = true, indent
		return yamlMistake{}, false
	}
	return s.checkValue(m[3], indent+len(content)-len(m[3]))
}

// checkValue looks at a value that begins in a column, and at what stands behind it in the line.
func (s *yamlScan) checkValue(text string, column int) (yamlMistake, bool) {
	if strings.HasPrefix(text, "@") || strings.HasPrefix(text, "`") {
		return mistakeAt(column, "a text may not begin with "+text[:1], "put the text in single quotes")
	}
	inFlow := s.depth > 0 || strings.HasPrefix(text, "{") || strings.HasPrefix(text, "[")
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case (c == '"' || c == '\'') && (i == 0 || inFlow && strings.ContainsRune(" {[,:", rune(text[i-1]))):
			end := endOfQuote(text[i:])
			if end < 0 {
				return mistakeAt(column+i, "a quote is opened here and never closed in this line", "add the closing quote at the end of the text, or remove this one")
			}
			i += end
		case c == '#' && i > 0 && text[i-1] == ' ':
			return yamlMistake{}, false
		case inFlow && (c == '{' || c == '['):
			if s.depth++; s.depth == 1 {
				s.bracket = mark{line: s.line, col: column + i + 1}
			}
		case inFlow && (c == '}' || c == ']') && s.depth > 0:
			if s.depth--; s.depth == 0 {
				s.bracket = mark{}
			}
		case !inFlow && c == ':' && i+1 < len(text) && text[i+1] == ' ':
			return mistakeAt(column+i, "a second colon stands in this line", "put a text with a colon in quotes; write each key in a line of its own")
		}
	}
	return yamlMistake{}, false
}

// endOfQuote returns where a text in quotes ends; -1: not in this line.
func endOfQuote(text string) int {
	for i := 1; i < len(text); i++ {
		switch {
		case text[i] == '\\' && text[0] == '"':
			i++
		case text[i] == text[0] && text[0] == '\'' && i+1 < len(text) && text[i+1] == '\'':
			i++ // two of them stand for one
		case text[i] == text[0]:
			return i
		}
	}
	return -1
}

// mistakeAt is a mistake in a column, counted from 0.
func mistakeAt(column int, problem, hint string) (yamlMistake, bool) {
	return yamlMistake{mark{col: column + 1}, problem, hint}, true
}
