package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/analysis"
	"honnef.co/go/tools/analysis/facts/directives"
	"honnef.co/go/tools/analysis/lint"
)

// filter makes an analyzer report only the findings that keep accepts.
func filter(a *analysis.Analyzer, keep func(*analysis.Pass, *analysis.Diagnostic) bool) *analysis.Analyzer {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		report := pass.Report
		pass.Report = func(d analysis.Diagnostic) {
			if keep(pass, &d) {
				report(d)
			}
		}
		return run(pass)
	}
	return a
}

// except drops an analyzer's findings in files whose path contains a part.
func except(a *analysis.Analyzer, parts ...string) *analysis.Analyzer {
	return filter(a, func(pass *analysis.Pass, d *analysis.Diagnostic) bool {
		name := pass.Fset.Position(d.Pos).Filename
		return !slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
	})
}

// onlyOurs makes an analyzer skip the packages of libraries, which go vet has
// analyzed for what analyzers remember of imported packages.
func onlyOurs(a *analysis.Analyzer) {
	run := a.Run
	a.Run = func(pass *analysis.Pass) (any, error) {
		if pass.Module == nil || !strings.HasPrefix(pass.Module.Path, "vaultd") {
			return nil, nil
		}
		return run(pass)
	}
}

// ignores collects which lint:ignore comments of a package matched a finding.
type ignores struct {
	mu   sync.Mutex
	used map[*ast.Comment]bool
	left int // analyzers that have not ended yet
}

// heedIgnores makes the analyzers of one package drop the findings that have a
// lint:ignore comment. The last of them reports the comments that are left over.
func heedIgnores(analyzers []*analysis.Analyzer) {
	all := &ignores{used: map[*ast.Comment]bool{}, left: len(analyzers)}
	for _, a := range analyzers {
		a.Requires = append(a.Requires, directives.Analyzer)
		filter(a, func(pass *analysis.Pass, d *analysis.Diagnostic) bool {
			d.Message += " (" + a.Name + ")" // go vet prints only the message
			return !all.match(pass, d)
		})
		run := a.Run
		a.Run = func(pass *analysis.Pass) (any, error) {
			defer all.end(pass, pass.Report)
			return run(pass)
		}
	}
}

func (i *ignores) match(pass *analysis.Pass, d *analysis.Diagnostic) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	at := lineOf(pass, d.Pos)
	for _, ignore := range pass.ResultOf[directives.Analyzer].([]lint.Directive) {
		if (lineOf(pass, ignore.Directive.Pos()) == at || lineOf(pass, ignore.Node.Pos()) == at) &&
			ignore.Command == "ignore" && len(ignore.Arguments) > 1 && ignore.Arguments[0] == pass.Analyzer.Name {
			i.used[ignore.Directive] = true
			return true
		}
	}
	return false
}

func (i *ignores) end(pass *analysis.Pass, report func(analysis.Diagnostic)) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left--; i.left > 0 {
		return
	}
	for _, ignore := range pass.ResultOf[directives.Analyzer].([]lint.Directive) {
		if !i.used[ignore.Directive] {
			report(analysis.Diagnostic{Pos: ignore.Directive.Pos(), Message: "the comment gives no reason, or matches no finding"})
		}
	}
}

func lineOf(pass *analysis.Pass, pos token.Pos) string {
	p := pass.Fset.Position(pos)
	return fmt.Sprint(p.Filename, ":", p.Line)
}
