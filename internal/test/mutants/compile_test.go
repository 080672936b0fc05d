package mutants

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/template"
)

// goPackage is what "go list -json" tells of a package.
type goPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// TestMutants_EachCompiles keeps a rename from turning a mutant into a text that does not compile: such a mutant kills
// itself, and shows nothing of the tests.
func TestMutants_EachCompiles(t *testing.T) {
	packages := listPackages(t)
	exports, inDir := map[string]string{}, map[string]goPackage{}
	for _, p := range packages {
		exports[p.ImportPath], inDir[p.Dir] = p.Export, p
	}
	fset := token.NewFileSet()
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, m := range list {
		path, err := filepath.Abs(filepath.Join(root, m.file))
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Ext(path) != ".go" { // a part of the program that is no code
			checkTemplate(t, m, path)
			continue
		}
		p, known := inDir[filepath.Dir(path)]
		if !known {
			t.Errorf("%s: no package holds %s", m.name, m.file)
			continue
		}
		var files []*ast.File
		var faults []error
		for _, name := range p.GoFiles {
			name = filepath.Join(p.Dir, name)
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if name == path {
				text = bytes.Replace(text, []byte(m.old), []byte(m.new), 1)
			}
			file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
			faults, files = append(faults, err), append(files, file)
		}
		checker := types.Config{Importer: imports, Error: func(err error) { faults = append(faults, err) }}
		if errors.Join(faults...) == nil {
			checker.Check(p.ImportPath, fset, files, nil) // its error is the first of those that Error was given
		}
		if err := errors.Join(faults...); err != nil {
			t.Errorf("%s does not compile:\n%v", m.name, err)
		}
	}
}

// checkTemplate keeps a mutant of a template from being one that cannot be read.
func checkTemplate(t *testing.T, m mutant, path string) {
	if filepath.Ext(path) != ".html" {
		return
	}
	text, err := os.ReadFile(path)
	if err == nil {
		_, err = template.New(m.name).Parse(strings.Replace(string(text), m.old, m.new, 1))
	}
	if err != nil {
		t.Errorf("%s cannot be read:\n%v", m.name, err)
	}
}

// listPackages returns the packages of the module and all that they import, compiled.
func listPackages(t *testing.T) []goPackage {
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p goPackage
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}
