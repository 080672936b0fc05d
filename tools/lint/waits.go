package main

import (
	"go/ast"
	"go/types"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// listedWaits holds the tests that wait in real time against their list: a test
// that reaches time.Sleep has it in a bubble of virtual time, or calls
// kit.Waits. It follows calls inside the package, by what they name.
var listedWaits = &analysis.Analyzer{
	Name: "listedWaits",
	Doc:  "reports tests that sleep in real time and are not in the list of kit.Waits",
	Run: func(pass *analysis.Pass) (any, error) {
		bodies := map[types.Object]*ast.FuncDecl{}
		for _, f := range pass.Files {
			if !strings.HasSuffix(pass.Fset.Position(f.Pos()).Filename, "_test.go") {
				continue
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil {
					bodies[pass.TypesInfo.Defs[fn.Name]] = fn
				}
			}
		}
		for test, fn := range bodies {
			if fn.Recv != nil || !strings.HasPrefix(fn.Name.Name, "Test") || fn.Name.Name == "TestMain" {
				continue
			}
			used := map[types.Object]bool{}
			collectUses(pass, bodies, test, used)
			names := map[string]bool{}
			for o := range used {
				if o.Pkg() != nil {
					names[o.Pkg().Name()+"."+o.Name()] = true
				}
			}
			isBubble := names["synctest.Test"] || names["kit.Bubble"] || names["kit.ParallelBubble"]
			if names["time.Sleep"] && !isBubble && !names["kit.Waits"] {
				pass.Reportf(fn.Pos(), "%s sleeps in real time: have it in a synctest bubble, wait for an event, or call kit.Waits", fn.Name.Name)
			}
		}
		return nil, nil
	},
}

// collectUses adds what a function and those of the same tests that it uses
// name.
func collectUses(pass *analysis.Pass, bodies map[types.Object]*ast.FuncDecl, fn types.Object, used map[types.Object]bool) {
	ast.Inspect(bodies[fn].Body, func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		if !ok {
			return true
		}
		o := pass.TypesInfo.Uses[id]
		if f, isFunction := o.(*types.Func); isFunction && !used[f] {
			used[f] = true
			if bodies[f.Origin()] != nil {
				collectUses(pass, bodies, f.Origin(), used)
			}
		}
		return true
	})
}
