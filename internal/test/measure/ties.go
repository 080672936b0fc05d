package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The counters that need types.
const (
	routeCounter = "route"
	namesCounter = "names"
)

// goPackage is the answer of "go list -json" about a package.
type goPackage struct {
	ImportPath, Dir, Export           string
	GoFiles, TestGoFiles, TestImports []string
}

// countTies type-checks the packages with their tests and counts routes and
// names.
func (t *tree) countTies(root string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	packages, err := goList(root, "-json=ImportPath,Dir,GoFiles,TestGoFiles,TestImports", "./...")
	if err != nil {
		return err
	}
	imported := map[string]bool{}
	for _, p := range packages {
		for _, name := range p.TestImports {
			imported[name] = true
		}
	}
	// Compiling the imports is enough: the import of a test inside a package
	// never imports that package.
	compiled, err := goList(root, append([]string{"-export", "-deps", "-json=ImportPath,Export", "./..."}, slices.Sorted(maps.Keys(imported))...)...)
	if err != nil {
		return err
	}
	exports := map[string]string{}
	for _, p := range compiled {
		exports[p.ImportPath] = p.Export
	}
	set := token.NewFileSet()
	imports := importer.ForCompiler(set, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for _, p := range packages {
		c := checker{tree: t, root: root, set: set, info: types.Info{
			Uses: map[*ast.Ident]types.Object{}, Types: map[ast.Expr]types.TypeAndValue{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}}
		if err := c.check(p, imports); err != nil {
			return err
		}
	}
	return nil
}

// goList runs "go list" in a folder.
func goList(dir string, args ...string) ([]goPackage, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = dir
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.String())
	}
	var all []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p goPackage
		if err := d.Decode(&p); err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	return all, nil
}

// checker counts in one package.
type checker struct {
	tree *tree
	root string
	set  *token.FileSet
	info types.Info
}

// check type-checks a package with its tests and counts in it.
func (c *checker) check(p goPackage, imports types.Importer) error {
	var files []*ast.File
	for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles) {
		f, err := parser.ParseFile(c.set, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	var faults []error
	config := types.Config{Importer: imports, Error: func(err error) { faults = append(faults, err) }}
	pkg, _ := config.Check(p.ImportPath, c.set, files, &c.info) // its error is the first that Error received
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("%s: %w", p.ImportPath, err)
	}
	for _, f := range files[:len(p.GoFiles)] {
		ast.Inspect(f, c.countRoute)
	}
	c.countNames(pkg)
	return nil
}

// place returns the file and line of a position.
func (c *checker) place(pos token.Pos) (file string, line int) {
	p := c.set.Position(pos)
	file, err := filepath.Rel(c.root, p.Filename)
	if err != nil {
		file = p.Filename
	}
	return filepath.ToSlash(file), p.Line
}

// countRoute counts the places of a node that depend on the route of a
// document.
func (c *checker) countRoute(n ast.Node) bool {
	hit := func(at ast.Expr) {
		file, line := c.place(at.Pos())
		c.tree.hit(routeCounter, file, line, types.ExprString(at))
	}
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && (c.isRoute(n.X) || c.isRoute(n.Y)) {
			hit(n)
		}
	case *ast.SwitchStmt:
		if n.Tag == nil || !c.isRoute(n.Tag) {
			break
		}
		for _, clause := range n.Body.List {
			for _, value := range clause.(*ast.CaseClause).List {
				hit(value)
			}
		}
	case *ast.CallExpr:
		if method, ok := n.Fun.(*ast.SelectorExpr); ok && c.info.Selections[method] != nil && c.isRoute(method.X) {
			hit(n)
		}
	case *ast.IndexExpr:
		if c.isRoute(n.Index) {
			hit(n)
		}
	}
	return true
}

// isRoute reports whether an expression is a value of ledger.Route.
func (c *checker) isRoute(e ast.Expr) bool {
	named, ok := types.Unalias(c.info.TypeOf(e)).(*types.Named)
	return ok && named.Obj().Name() == "Route" && named.Obj().Pkg().Path() == "vaultd/internal/ledger"
}

// countNames counts the unexported functions, methods and types of a package
// that its tests use, each at its first use.
func (c *checker) countNames(pkg *types.Package) {
	first := map[types.Object]token.Pos{}
	for id, used := range c.info.Uses {
		switch o := used.(type) {
		case *types.Func:
			used = o.Origin()
		case *types.TypeName:
			if o.Parent() != pkg.Scope() {
				continue
			}
		default:
			continue
		}
		if used.Pkg() != pkg || used.Exported() || !c.isTest(id.Pos()) || c.isTest(used.Pos()) {
			continue
		}
		if at, known := first[used]; !known || id.Pos() < at {
			first[used] = id.Pos()
		}
	}
	for used, pos := range first {
		file, line := c.place(pos)
		c.tree.hit(namesCounter, file, line, used.Name())
	}
}

// isTest reports whether a position is in a test.
func (c *checker) isTest(pos token.Pos) bool {
	return strings.HasSuffix(c.set.Position(pos).Filename, "_test.go")
}
