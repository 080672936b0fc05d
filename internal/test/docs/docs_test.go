package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// place is a Go file or a folder that a page names, and perhaps a declaration in it.
var place = regexp.MustCompile("`((?:cmd|internal|bench)/[\\w/]*\\w(?:\\.go)?)(?:: ([\\w.]+))?`")

// TestTour_NamesWhatExists holds the pages for developers against the files and declarations that they name.
func TestTour_NamesWhatExists(t *testing.T) {
	for _, page := range []string{"docs/tour.md", "docs/write-order.md", "CONTRIBUTING.md"} {
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
		if page == "docs/tour.md" && names < 20 {
			t.Errorf("%s: %d names were found", page, names)
		}
	}
}

// TestContributing_ListsEveryPackage holds the table of packages against the tree.
func TestContributing_ListsEveryPackage(t *testing.T) {
	list := exec.Command("go", "list", "-f", "{{.ImportPath}}", "./...")
	list.Dir = root
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("list the packages: %v: %s", err, out)
	}
	text := readPage(t, "CONTRIBUTING.md")
	for _, pkg := range append(strings.Fields(string(out)), "vaultd/bench", "vaultd/browser") {
		if name := strings.TrimPrefix(pkg, "vaultd/"); !strings.Contains(text, "`"+name+"`") {
			t.Errorf("CONTRIBUTING.md does not list %s", name)
		}
	}
}

// declaredIn returns the names that a file declares: Func, Type and Type.Method.
func declaredIn(t *testing.T, path string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
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
	name, _ := typ.(*ast.Ident)
	if name == nil {
		return ""
	}
	return name.Name + "."
}

func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
