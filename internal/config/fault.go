package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"vaultd/internal/sanitize"
)

// Fault is one thing that is wrong with the configuration: its place, what is wrong, and what would be right.
type Fault struct {
	File    string // the file's path, or the name of the environment variable that is wrong
	Line    int    // from 1; 0 when the fault has no line (the file is missing, or it is a variable)
	Col     int    // from 1, counted in characters
	Key     string // such as drops[0].settle
	Problem string
	Hint    string // what would be right, without a final dot; may be empty
	Excerpt string // the line and a caret below it, secrets hidden; may be empty
	Err     error  // the typed cause, where there is one
}

// String gives "file:line:col: key: problem", the excerpt and the hint, without a final newline.
func (f Fault) String() string {
	var b strings.Builder
	b.WriteString(f.File)
	if f.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", f.Line, f.Col)
	}
	if f.Key != "" {
		b.WriteString(": " + f.Key)
	}
	b.WriteString(": " + f.Problem)
	if f.Excerpt != "" {
		b.WriteString("\n" + f.Excerpt)
	}
	if f.Hint != "" {
		b.WriteString("\n  hint: " + f.Hint)
	}
	return b.String()
}

// Error lists everything that is wrong with a configuration: first the faults of the file in the order of its
// lines, then those of environment variables. It shows no secret, even where a person wrote one into the file.
type Error struct {
	Faults []Fault
}

func (e *Error) Error() string {
	parts := make([]string, 0, len(e.Faults)+1)
	for _, f := range e.Faults {
		parts = append(parts, f.String())
	}
	if n := len(e.Faults); n > 1 {
		parts = append(parts, strconv.Itoa(n)+" faults in the configuration")
	}
	return strings.Join(parts, "\n")
}

// Unwrap returns the typed causes, so that callers can tell missing rights from wrong values.
func (e *Error) Unwrap() []error {
	var causes []error
	for _, f := range e.Faults {
		if f.Err != nil {
			causes = append(causes, f.Err)
		}
	}
	return causes
}

// newError sorts faults. Of several faults of one key at one place it keeps the first: a person corrects that value
// once. It returns nil when there is no fault.
func newError(faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	slices.SortStableFunc(faults, func(a, b Fault) int {
		return cmp.Or(noLineLast(a)-noLineLast(b), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col), cmp.Compare(a.Key, b.Key))
	})
	type place struct {
		file, key string
		line, col int
	}
	seen := make(map[place]bool, len(faults))
	faults = slices.DeleteFunc(faults, func(f Fault) bool {
		p := place{f.File, f.Key, f.Line, f.Col}
		double := seen[p]
		seen[p] = true
		return double
	})
	return &Error{Faults: faults}
}

func noLineLast(f Fault) int {
	if f.Line == 0 {
		return 1
	}
	return 0
}

const (
	excerptWidth = 120
	hidden       = "[hidden]"
)

// formatExcerpt shows one line with its number and a caret under column col. It cuts off what follows hideFrom (a column; 0: nothing)
// and whatever looks like a secret, and it replaces characters that could control a terminal.
func formatExcerpt(line string, number, col, hideFrom int) string {
	text := []rune(line)
	cut := findSecretColumn(line)
	if hideFrom > 0 && (cut == 0 || hideFrom < cut) {
		cut = hideFrom
	}
	if cut > 0 && cut <= len(text)+1 {
		text = append(slices.Clip(text[:cut-1]), []rune(hidden)...)
		col = min(col, cut)
	}
	for i, r := range text {
		switch {
		case r == '\t':
			text[i] = ' '
		case !sanitize.IsPrintable(r):
			text[i] = '?'
		}
	}
	if from := col - excerptWidth/2; len(text) > excerptWidth && from > 0 {
		text, col = text[from:], col-from
	}
	if len(text) > excerptWidth {
		text = text[:excerptWidth]
	}
	gutter := strconv.Itoa(number)
	return fmt.Sprintf("  %s | %s\n  %s | %s^",
		gutter, string(text), strings.Repeat(" ", len(gutter)), strings.Repeat(" ", max(col-1, 0)))
}

var (
	secretKey = regexp.MustCompile(`(?i)([\w-]*(?:pass|pwd|secret|token|api[-_]?key|key_file)[\w-]*)["']?\s*[:=]\s*["']?`)
	userInfo  = regexp.MustCompile(`://[^/\s]*@`)
)

// findSecretColumn returns the column from which a line must not be shown, or 0. People do write a password where
// the name of a file belongs.
func findSecretColumn(line string) int {
	from := -1
	for _, m := range secretKey.FindAllStringSubmatchIndex(line, -1) {
		key, value := strings.ToLower(line[m[2]:m[3]]), line[m[1]:]
		if key == "token_url" || value == "" || (strings.HasSuffix(key, "_file") && isSecretRef(value)) {
			continue
		}
		from = m[1]
		break
	}
	if m := userInfo.FindStringIndex(line); m != nil && (from < 0 || m[0] < from) {
		from = m[0] + len("://")
	}
	if from < 0 {
		return 0
	}
	return len([]rune(line[:from])) + 1
}

// findNearestWord returns the known word that was probably meant, or "".
func findNearestWord(word string, known []string) string {
	best, bestDistance := "", 1+max(1, len(word)/3)
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

// editDistance counts the insertions, removals, replacements and swaps of neighbours that turn a into b.
func editDistance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, before
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(replace, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
