package docs

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

const root = "../../.."

// place is a Go file or a folder that a page names, and perhaps a declaration in it.
var place = regexp.MustCompile("`((?:cmd|internal|bench)/[\\w/]*\\w(?:\\.go)?)(?:: ([\\w.]+))?`")

// TestTour_NamesWhatExists holds the pages for developers against the files and declarations that they name.
func TestTour_NamesWhatExists(t *testing.T) {
	for _, page := range []string{"docs/tour.md", "docs/write-order.md", "docs/archive.md", "CONTRIBUTING.md"} {
		text := readPage(t, page)
		names := 0
		for _, m := range place.FindAllStringSubmatch(text, -1) {
			path := filepath.Join(root, m[1])
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s names %s: %v", page, m[1], err)
				continue
			}
			if m[2] == "" {
				continue
			}
			if names++; !declaredIn(t, path)[m[2]] {
				t.Errorf("%s names %s in %s, which does not have it", page, m[2], m[1])
			}
		}
		kit.Check(t, page != "docs/tour.md" || names >= 20, "%s: %d names were found", page, names)
	}
}

// bare is a function that a page names without its file: mixed case, or a type with its method. Words of other kinds look otherwise.
var bare = regexp.MustCompile("`([a-z]+[A-Z]\\w*|\\w+\\.\\w+)`")

// notFunctions look like functions in the tour, and are files or the standard library's.
var notFunctions = regexp.MustCompile(`^os\.|\.(db|md|txt|json|yaml)$`)

// TestTour_BareNamesAreInTheFileNamedBefore holds the functions that the tour names without a file: each is in the file that the paragraph
// named last, or was named with its file in the same paragraph.
func TestTour_BareNamesAreInTheFileNamedBefore(t *testing.T) {
	const page = "docs/tour.md"
	found := 0
	for paragraph := range strings.SplitSeq(readPage(t, page), "\n\n") {
		last, inLast, named := "", map[string]bool{}, map[string]bool{}
		for _, word := range regexp.MustCompile("`[^`]+`").FindAllString(paragraph, -1) {
			if m := place.FindStringSubmatch(word); m != nil {
				if last = m[1]; strings.HasSuffix(last, ".go") {
					inLast = declaredIn(t, filepath.Join(root, last))
				}
				named[m[2]], named[methodOf(m[2])] = true, true
				continue
			}
			m := bare.FindStringSubmatch(word)
			if m == nil || notFunctions.MatchString(m[1]) {
				continue
			}
			found++
			kit.Check(t, inLast[m[1]] || named[m[1]] || isMethodIn(inLast, m[1]),
				"%s names %s, which is not in %s, the file that it names before", page, m[1], last)
		}
	}
	kit.Check(t, found >= 5, "%s: %d names were found", page, found)
}

// methodOf returns the method's name of Type.Method, and any other name as it is.
func methodOf(name string) string { return name[strings.LastIndex(name, ".")+1:] }

func isMethodIn(declared map[string]bool, method string) bool {
	for name := range declared {
		if methodOf(name) == method {
			return true
		}
	}
	return false
}

// TestTour_NamesEveryFileThatRemoves holds the answer to which lines may delete a file.
func TestTour_NamesEveryFileThatRemoves(t *testing.T) {
	checkTourNames(t, "**Which lines may delete or rename what people dropped?**", func(n ast.Node) bool {
		call, _ := n.(*ast.CallExpr)
		if call == nil {
			return false
		}
		f, _ := call.Fun.(*ast.SelectorExpr)
		if f == nil {
			return false
		}
		of, _ := f.X.(*ast.Ident)
		switch f.Sel.Name {
		case "Unlink", "Unlinkat", "Rmdir", "RemoveAll":
			return true
		case "Remove":
			return of != nil && of.Name == "os"
		}
		return false
	})
}

// TestTour_NamesEveryFileThatStartsAGoroutine holds the answer to which goroutines exist.
func TestTour_NamesEveryFileThatStartsAGoroutine(t *testing.T) {
	checkTourNames(t, "**Which goroutines exist, and who ends them?**", func(n ast.Node) bool {
		if _, is := n.(*ast.GoStmt); is {
			return true
		}
		call, _ := n.(*ast.CallExpr)
		if call == nil {
			return false
		}
		f, _ := call.Fun.(*ast.SelectorExpr)
		return f != nil && f.Sel.Name == "Go" && len(call.Args) == 1
	})
}

// checkTourNames checks that one answer of the tour names every file of the program in which does is true of a node, and no question is
// asked in vain.
func checkTourNames(t *testing.T, question string, does func(ast.Node) bool) {
	t.Helper()
	_, answer, asked := strings.Cut(readPage(t, "docs/tour.md"), question)
	kit.Need(t, asked, "docs/tour.md does not ask %q", question)
	answer, _, _ = strings.Cut(answer, "\n**")
	found := 0
	for _, dir := range []string{"cmd", "internal"} {
		kit.Must(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			name, relErr := filepath.Rel(root, path)
			switch {
			case err != nil || relErr != nil:
				return errors.Join(err, relErr)
			case d.IsDir() && name == "internal/test":
				return filepath.SkipDir
			case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
				return nil
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			is := false
			ast.Inspect(file, func(n ast.Node) bool {
				is = is || does(n)
				return !is
			})
			if is {
				found++
			}
			kit.Check(t, !is || strings.Contains(answer, "`"+name),
				"docs/tour.md does not name %s below %q", name, question)
			return nil
		}))
	}
	kit.Check(t, found >= 10, "%q: %d files were found", question, found)
}

// TestContributing_ListsEveryPackage holds the table of packages against the tree.
func TestContributing_ListsEveryPackage(t *testing.T) {
	list := exec.Command("go", "list", "-f", "{{.ImportPath}}", "./...")
	list.Dir = root
	out, err := list.CombinedOutput()
	kit.Need(t, err == nil, "list the packages: %v: %s", err, out)
	text := readPage(t, "CONTRIBUTING.md")
	for _, pkg := range append(strings.Fields(string(out)), "vaultd/bench", "vaultd/browser") {
		name := strings.TrimPrefix(pkg, "vaultd/")
		kit.Check(t, strings.Contains(text, "`"+name+"`"), "CONTRIBUTING.md does not list %s", name)
	}
}

// declaredIn returns the names that a file declares: Func, Type and Type.Method.
func declaredIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	file := kit.Value(parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution))(t)
	names := map[string]bool{}
	for _, d := range file.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			names[receiverName(d)+d.Name.Name] = true
		case *ast.GenDecl:
			for _, s := range d.Specs {
				if s, ok := s.(*ast.TypeSpec); ok {
					names[s.Name.Name] = true
				}
			}
		}
	}
	return names
}

// receiverName returns the name of a method's type with a dot, and nothing for a function.
func receiverName(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	typ := d.Recv.List[0].Type
	if p, ok := typ.(*ast.StarExpr); ok {
		typ = p.X
	}
	switch generic := typ.(type) {
	case *ast.IndexExpr:
		typ = generic.X
	case *ast.IndexListExpr:
		typ = generic.X
	}
	name, _ := typ.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name + "."
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text := kit.Value(os.ReadFile(filepath.Join(root, path)))(t)
	return string(text)
}
