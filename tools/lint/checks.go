package main

import (
	"bytes"
	"cmp"
	"go/token"
	"regexp"
	"strings"

	"github.com/golangci/misspell"
	"github.com/kisielk/errcheck/errcheck"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/packages"
	"honnef.co/go/tools/unused"
)

// droppedErrors reports calls whose error is dropped, apart from droppable.
var droppedErrors = &analysis.Analyzer{
	Name: "errcheck",
	Doc:  "report calls whose error is dropped",
	Run: func(pass *analysis.Pass) (any, error) {
		checker := errcheck.Checker{Exclusions: errcheck.Exclusions{
			Symbols: errcheck.DefaultExcludedSymbols, BlankAssignments: true, TypeAssertions: true}}
		found := checker.CheckPackage(&packages.Package{
			Fset: pass.Fset, Syntax: pass.Files, Types: pass.Pkg, TypesInfo: pass.TypesInfo})
		for _, e := range found.UncheckedErrors {
			if name := cmp.Or(e.SelectorName, e.FuncName); !droppable.MatchString(name) {
				pass.Reportf(posOf(pass, e.Pos), "the error of %s is dropped", name)
			}
		}
		return nil, nil
	},
}

var droppable = regexp.MustCompile(`(?i)^(.*(close|flush|print(f|ln)?)|os\.(remove(all)?|(un)?setenv|std(out|err)\..*))$`)

// unusedNames reports the findings of staticcheck's U1000, which reports none
// itself.
var unusedNames = &analysis.Analyzer{
	Name:     "unused",
	Doc:      "report names that are not used",
	Requires: []*analysis.Analyzer{unused.Analyzer.Analyzer},
	Run: func(pass *analysis.Pass) (any, error) {
		for _, o := range pass.ResultOf[unused.Analyzer.Analyzer].(unused.Result).Unused {
			pass.Reportf(posOf(pass, o.Position), "%s %s is not used", o.Kind, o.Name)
		}
		return nil, nil
	},
}

const maxFile = 400

// fileLength reports files of more lines than maxFile, without blank lines and
// comments.
var fileLength = &analysis.Analyzer{
	Name: "filelength",
	Doc:  "report long files",
	Run: func(pass *analysis.Pass) (any, error) {
		for _, f := range pass.Files {
			text, err := pass.ReadFile(pass.Fset.File(f.Pos()).Name())
			if err != nil {
				return nil, err
			}
			lines := 0
			for line := range bytes.Lines(text) {
				if len(bytes.TrimSpace(line)) > 0 {
					lines++
				}
			}
			for _, group := range f.Comments {
				for _, c := range group.List {
					lines -= 1 + strings.Count(c.Text, "\n")
				}
			}
			if lines > maxFile {
				pass.Reportf(f.Package, "the file has %d lines without comments, want at most %d", lines, maxFile)
			}
		}
		return nil, nil
	},
}

// misspellings reports common misspellings of English words.
var misspellings = &analysis.Analyzer{
	Name: "misspell",
	Doc:  "report misspelled words",
	Run: func(pass *analysis.Pass) (any, error) {
		words := misspell.New()
		for _, f := range pass.Files {
			file := pass.Fset.File(f.Pos())
			text, err := pass.ReadFile(file.Name())
			if err != nil {
				return nil, err
			}
			_, found := words.Replace(string(text))
			for _, d := range found {
				pass.Reportf(file.LineStart(d.Line)+token.Pos(d.Column), "%s should be %s", d.Original, d.Corrected)
			}
		}
		return nil, nil
	},
}

// posOf returns the form of a position that a finding has.
func posOf(pass *analysis.Pass, p token.Position) token.Pos {
	for _, f := range pass.Files {
		if file := pass.Fset.File(f.Pos()); file.Name() == p.Filename {
			return file.Pos(p.Offset)
		}
	}
	return pass.Files[0].Pos()
}
