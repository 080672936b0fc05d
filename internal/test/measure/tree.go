package main

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// tree is what was counted of a checkout.
type tree struct {
	packages map[string]*figures // by the path of the folder
	pages    map[string]int      // words of each page
	places   []place             // of all counters
}

// figures are those of one package, or the sums of several.
type figures struct {
	files         int // Go files without tests
	code          int // code lines of these files
	lines         int // all lines of these files
	testLines     int // all lines of tests
	pageLines     int // all lines of pages
	words         int // of pages
	functionLines int // lines of the functions of files
	comments      int // own-line comments in these functions
	sentences     int
	counts        map[string]int // by the name of a counter
}

// place is one hit of a counter.
type place struct {
	counter string
	file    string
	line    int
	text    string
}

// goFile is one Go file that is written by hand.
type goFile struct {
	path   string
	src    []byte
	set    *token.FileSet
	syntax *ast.File

	code, comments map[int]bool // the lines that hold code or a comment
}

// readTree counts all that needs no compiler.
func readTree(root string) (*tree, error) {
	files, err := listFiles(root)
	if err != nil {
		return nil, err
	}
	t := newTree()
	for _, name := range files {
		src, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // deleted, and git still lists it
		}
		if err != nil {
			return nil, err
		}
		if err := t.countFile(name, src); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// newTree returns a tree without files.
func newTree() *tree { return &tree{packages: map[string]*figures{}, pages: map[string]int{}} }

// countFile counts in a page or a Go file.
func (t *tree) countFile(name string, src []byte) error {
	if path.Ext(name) == ".md" {
		t.countPage(name, string(src))
		return nil
	}
	return t.countGo(name, src)
}

// listFiles returns the Go files and pages of a checkout, as paths from its
// root, without test data and without files that git ignores.
func listFiles(root string) ([]string, error) {
	out, err := git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.go", "*.md")
	if err != nil {
		return nil, err
	}
	var files []string
	for name := range strings.SplitSeq(out, "\x00") {
		if name != "" && !strings.Contains("/"+name, "/testdata/") {
			files = append(files, name)
		}
	}
	return files, nil
}

// countGo adds the figures of a Go file to those of its package.
func (t *tree) countGo(name string, src []byte) error {
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	if ast.IsGenerated(syntax) {
		return nil
	}
	f := goFile{path: name, src: src, set: set, syntax: syntax}
	f.code, f.comments = classifyLines(src)
	t.countSize(f)
	t.countComments(f)
	t.countBare(f)
	return nil
}

// of returns the figures of the package that a file is in.
func (t *tree) of(file string) *figures {
	pkg := path.Dir(file)
	if t.packages[pkg] == nil {
		t.packages[pkg] = &figures{counts: map[string]int{}}
	}
	return t.packages[pkg]
}

// hit counts one place.
func (t *tree) hit(counter, file string, line int, text string) {
	t.of(file).counts[counter]++
	t.places = append(t.places, place{counter, file, line, text})
}

// sum adds up the figures of the packages that belong to a part, or of all if
// part is empty.
func (t *tree) sum(part string) *figures {
	all := &figures{counts: map[string]int{}}
	for pkg, f := range t.packages {
		if part == "" || partOf(pkg) == part {
			all.add(f)
		}
	}
	return all
}

// add adds the figures of other to f.
func (f *figures) add(other *figures) {
	f.files += other.files
	f.code += other.code
	f.lines += other.lines
	f.testLines += other.testLines
	f.pageLines += other.pageLines
	f.words += other.words
	f.functionLines += other.functionLines
	f.comments += other.comments
	f.sentences += other.sentences
	for counter, n := range other.counts {
		f.counts[counter] += n
	}
}

// rate returns how often a counter hits in 1,000 lines.
func (f *figures) rate(counter string) float64 {
	return 1000 * float64(f.counts[counter]) / float64(max(1, f.lines+f.testLines+f.pageLines))
}

// parts are the parts of the repository by the path of a package. The first
// that fits counts.
var parts = []struct{ name, path string }{
	{"emulator", "internal/emulator"},
	{"tests", "internal/test"},
	{"bench", "bench"},
	{"tests", "browser"},
	{"tools", "tools"},
	{"product", "cmd"},
	{"product", "internal"},
}

// partOf returns the part that a package belongs to.
func partOf(pkg string) string {
	for _, p := range parts {
		if pkg == p.path || strings.HasPrefix(pkg, p.path+"/") {
			return p.name
		}
	}
	return "pages"
}
