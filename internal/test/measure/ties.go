package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/constant"
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
		c := checker{tree: t, root: root, set: set, filled: map[*ast.IndexExpr]bool{}, info: types.Info{
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

	filled map[*ast.IndexExpr]bool // places of tables that a statement fills
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

// rowTypes are what a route's row consists of, in the tables that there are.
var rowTypes = []string{
	"vaultd/internal/ledger.routeRow", "vaultd/internal/ledger.evidence", "vaultd/internal/ingest.Route", "vaultd/internal/ingest.way", "vaultd/internal/present.Words",
	"vaultd/internal/dropwork.form", "vaultd/internal/recovery.form",
}

// countRoute counts the places of a node that depend on the route of a
// document: those that whoever adds a route has to look at.
func (c *checker) countRoute(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		switch n.Op {
		case token.EQL, token.NEQ:
			if c.namesRoute(n.X) || c.namesRoute(n.Y) || c.isOfRow(n.X) || c.isOfRow(n.Y) {
				c.hitRoute(n)
			}
		case token.LAND, token.LOR:
			c.countAnswers(n.X, n.Y)
		}
	case *ast.AssignStmt:
		for _, to := range n.Lhs { // it fills the table
			if at, is := to.(*ast.IndexExpr); is {
				c.filled[at] = true
			}
		}
	case *ast.UnaryExpr:
		if n.Op == token.NOT {
			c.countAnswers(n.X)
		}
	case *ast.IfStmt:
		c.countAnswers(n.Cond)
	case *ast.ReturnStmt:
		c.countAnswers(n.Results...)
	case *ast.SwitchStmt:
		for _, clause := range n.Body.List {
			for _, value := range clause.(*ast.CaseClause).List {
				if n.Tag != nil && (c.isRoute(n.Tag) || c.namesRoute(value)) {
					c.hitRoute(value)
				}
				c.countAnswers(value)
			}
		}
	case *ast.TypeAssertExpr:
		if c.isRow(n.X) {
			c.hitRoute(n)
		}
	case *ast.IndexExpr:
		if c.isRoute(n.Index) && !c.filled[n] {
			c.hitRoute(n)
		}
	}
	return true
}

func (c *checker) hitRoute(at ast.Expr) {
	file, line := c.place(at.Pos())
	c.tree.hit(routeCounter, file, line, types.ExprString(at))
}

// countAnswers counts those of conditions that a route or a row answers by
// itself: a method without arguments, or a field, that is true or false.
func (c *checker) countAnswers(conditions ...ast.Expr) {
	for _, cond := range conditions {
		cond = ast.Unparen(cond)
		asked := cond
		if call, is := cond.(*ast.CallExpr); is {
			if len(call.Args) > 0 {
				continue
			}
			asked = call.Fun
		}
		of, is := asked.(*ast.SelectorExpr)
		basic, isBasic := types.Unalias(c.info.TypeOf(cond)).(*types.Basic)
		if is && isBasic && basic.Info()&types.IsBoolean != 0 && (c.isRow(of.X) || c.isRoute(of.X)) {
			c.hitRoute(cond)
		}
	}
}

// isOfRow reports whether an expression is a row, or a field of one that is no
// text: a comparison with it is a branch on the row.
func (c *checker) isOfRow(e ast.Expr) bool {
	if of, is := ast.Unparen(e).(*ast.SelectorExpr); is && c.info.Selections[of] != nil && c.isRow(of.X) {
		basic, isBasic := c.info.TypeOf(e).Underlying().(*types.Basic)
		return !isBasic || basic.Info()&types.IsString == 0
	}
	return c.isRow(e)
}

// isRow reports whether an expression is a route's row in a table.
func (c *checker) isRow(e ast.Expr) bool { return slices.Contains(rowTypes, c.typeOf(e)) }

// isRoute reports whether an expression is a value of ledger.Route.
func (c *checker) isRoute(e ast.Expr) bool { return c.typeOf(e) == "vaultd/internal/ledger.Route" }

// typeOf names the type of an expression, or that it points to; empty: it has no
// name.
func (c *checker) typeOf(e ast.Expr) string {
	is := c.info.TypeOf(e)
	if is == nil {
		return ""
	}
	if pointer, points := is.Underlying().(*types.Pointer); points {
		is = pointer.Elem()
	}
	named, ok := types.Unalias(is).(*types.Named)
	if !ok || named.Obj().Pkg() == nil {
		return ""
	}
	return named.Obj().Pkg().Path() + "." + named.Obj().Name()
}

// namesRoute reports whether an expression names one of the routes. Whether two
// documents go the same way, or any is meant, is no question of which.
func (c *checker) namesRoute(e ast.Expr) (names bool) {
	ast.Inspect(e, func(n ast.Node) bool {
		part, is := n.(ast.Expr)
		if !is {
			return true
		}
		value := c.info.Types[part].Value
		names = names || value != nil && value.Kind() == constant.String && constant.StringVal(value) != "" && c.isRoute(part)
		return !names
	})
	return names
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
