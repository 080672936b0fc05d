package main_test

import (
	"vaultd/internal/test/kit"

	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

const troubleshootingPage = "../../docs/troubleshooting.md"

// The messages that the page names are those that the program prints: each of their words stands in one of its texts, in that
// order, but for examples of names, numbers and paths. A message that was put into other words must be changed in the page too.
func TestTroubleshooting_NamesTheProgramsMessages(t *testing.T) {
	page := kit.Value(os.ReadFile(troubleshootingPage))(t)
	said := programTexts(t)
	named := namedMessages(string(page))
	kit.Need(t, len(named) >= 100, "vacuous: %d messages were found in the page", len(named))
	kit.Check(t, unsaid("the certificate was eaten", said) != "" && unsaid("none lost at sea", said) != "",
		"vacuous: what the program does not say is found in it")
	for _, message := range named {
		for _, run := range quotedRuns(message) {
			if rest := unsaid(run, said); rest != "" {
				t.Errorf("%q is named in %s, and %q is in no text of the program", message, troubleshootingPage, rest)
			}
		}
	}
}

// namedMessages finds what the page quotes from the program: the code in bold lines, and that in the first column of its tables.
func namedMessages(page string) (all []string) {
	bold, code := regexp.MustCompile(`\*\*.+?\*\*`), regexp.MustCompile("`([^`]+)`")
	for _, line := range strings.Split(page, "\n") {
		var quoted []string
		switch {
		case strings.HasPrefix(line, "**"):
			quoted = bold.FindAllString(line, -1)
		case strings.HasPrefix(line, "| `"):
			first, _, _ := strings.Cut(line[2:], " | ")
			quoted = []string{first}
		}
		for _, q := range quoted {
			for _, m := range code.FindAllStringSubmatch(q, -1) {
				all = append(all, m[1])
			}
		}
	}
	return all
}

// programTexts gives every text in the program's source, with what is filled in left out, and the words of what it speaks to: the
// statuses of HTTP, the emulator's answers, and the errors of this system.
func programTexts(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	filled := regexp.MustCompile(`%[-+#0 ]*[0-9*]*(\.[0-9*]+)?(\[\d+\])?[a-zA-Z]`)
	for _, root := range []string{".", "../../internal"} {
		err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if text, err := strconv.Unquote(lit.Value); err == nil {
						all.WriteString("\x00" + filled.ReplaceAllString(text, "\x00"))
						all.WriteString("\x00" + strings.ReplaceAll(text, "-", " ")) // as codes are shown
					}
				}
				return true
			})
			return nil
		})
		kit.Must(t, err)
	}
	for code := 200; code < 600; code++ {
		all.WriteString("\x00" + strconv.Itoa(code) + " " + http.StatusText(code))
	}
	for _, words := range systemWords {
		all.WriteString("\x00" + words)
	}
	return all.String() + "\x00"
}

// systemWords are errors in the words of Go's library and of the kernel.
var systemWords = []string{"no such host", "lookup ", "network is unreachable", "dial tcp", "connection refused", "no route to host", "i/o timeout",
	"address already in use", "no space left on device", "permission denied", "listen on ", "Proxy Authentication Required"}

var (
	exampleWord = regexp.MustCompile(`[0-9/"…\\]|\.example|~|^\(?(ACME|BETA|ACNE|NAME|KEY|PLACE|X|acme-in|files01|NFS|vaultd|config\.yaml|alice|client-secret|hint)[,:;.]?$`)
	bareWord    = regexp.MustCompile(`^[(,;:.]*|[),;:.]*$`)
)

// quotedRuns cuts a message at what is only an example in it.
func quotedRuns(message string) (runs []string) {
	var run []string
	for _, word := range append(strings.Fields(message), "…") {
		if !exampleWord.MatchString(word) {
			run = append(run, word)
			continue
		}
		if len(run) > 0 {
			runs = append(runs, strings.Join(run, " "))
		}
		run = nil
	}
	return runs
}

// unsaid returns from where on a run of words is in no text; "": all of it is. A run may be in several texts where something is filled in
// between them: each part ends there, or begins there. Two texts may begin alike, so a shorter part is tried where the longest leads
// nowhere.
func unsaid(run string, said string) string { return unsaidWords(strings.Fields(run), true, said) }

func unsaidWords(words []string, first bool, said string) string {
	left := strings.Join(words, " ")
	for n := len(words); n > 0; n-- {
		part := bareWord.ReplaceAllString(strings.Join(words[:n], " "), "")
		if part == "" || !isSaid(part, !first, n < len(words), said) {
			continue
		}
		rest := unsaidWords(words[n:], false, said)
		if rest == "" {
			return ""
		}
		if len(rest) < len(left) {
			left = rest
		}
	}
	return left
}

// isSaid reports whether a part of a run is in a text as whole words: after what is filled in, before it, or anywhere.
func isSaid(part string, after, before bool, said string) bool {
	const between = " ,;:.()'"
	for rest := said; ; {
		i := strings.Index(rest, part)
		if i < 0 {
			return false
		}
		head, tail := rest[:i], rest[i+len(part):]
		begins, ends := !endsInLetter.MatchString(head[max(0, i-1):]), !beginsInLetter.MatchString(tail[:1])
		if after {
			begins = strings.HasSuffix(strings.TrimRight(head[max(0, i-10):], between), "\x00")
		}
		if before {
			ends = strings.HasPrefix(strings.TrimLeft(tail, between), "\x00")
		}
		if begins && ends {
			return true
		}
		rest = rest[i+1:]
	}
}

var endsInLetter, beginsInLetter = regexp.MustCompile(`[a-zA-Z]$`), regexp.MustCompile(`^[a-zA-Z]`)
