// Command lint analyzes packages for go vet. It has the analyzers of go vet
// itself and of staticcheck, some of other libraries, and those in this folder,
// which check what a package imports and how long a file is. "make check" runs
// it on all packages, and these commands on one:
//
//	go -C tools build -trimpath -o lint/lint ./lint
//	go vet -vettool=tools/lint/lint ./internal/drop
//
// With -trimpath the file is the same in each clone, so that go vet uses the
// results of other clones.
//
// A line that must stay as it is gets a comment, at its end or above it, with
// the name of the check, which is in the finding, and the reason:
//
//	//lint:ignore errcheck the client went away
package main

import (
	"flag"
	"log"

	"codeberg.org/polyfloyd/go-errorlint/errorlint"
	forbidigo "github.com/ashanbrown/forbidigo/v2/pkg/analyzer"
	"github.com/breml/bidichk/pkg/bidichk"
	"github.com/charithe/durationcheck"
	"github.com/gordonklaus/ineffassign/pkg/ineffassign"
	"github.com/timakin/bodyclose/passes/bodyclose"
	"github.com/ultraware/funlen"
	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/analysis/unitchecker"
	"honnef.co/go/tools/analysis/lint"
	"honnef.co/go/tools/simple"
	"honnef.co/go/tools/staticcheck"
	"honnef.co/go/tools/stylecheck"
	"honnef.co/go/tools/stylecheck/st1000"
)

// go vet keeps a result without findings for a package that it analyzes only as
// a dependency, and uses it later for the package itself (Go 1.26). This flag
// keeps the results of runs on whole modules apart from those of other runs.
var _ = flag.Bool("whole", false, "set this in runs on whole modules only")

// forbidden maps names that the program does not use to the reason.
var forbidden = map[string]string{
	`^os\.RemoveAll$`:              "nothing is deleted recursively; remove what is known, by name",
	`^http\.DefaultClient$`:        "use a client with limits of its own",
	`^fs\.WalkDir$`:                "it holds all names of a folder, which may be a million; use durable.Walk",
	`^time\.Sleep$`:                "wait for a timer or the context",
	`^context\.(Background|TODO)$`: "take the caller's context",
	`^fmt\.Print(f|ln)?$`:          "write to the stream that was given",
}

func main() {
	// The simulation and what fills ledgers are for tests alone.
	const tests, simulation, fill = "_test.go", "/internal/test/simulation/", "/internal/test/fill/"

	all := append(vet.Suite, // these check tests too
		bidichk.NewAnalyzer(),
		durationcheck.Analyzer,
		ineffassign.Analyzer,
		imports,
		unusedNames,
		listedWaits,

		except(bodyclose.Analyzer, tests),
		except(with(errorlint.NewAnalyzer(), "errorf", "true"), tests),
		except(droppedErrors, tests, simulation),
		except(forbid(), tests, simulation, fill, "/cmd/vaultd/main.go"),
		except(funlen.NewAnalyzer(60, -1, true), tests, simulation),
		except(fileLength, tests),
		except(misspellings, tests, "/internal/page/german.go"),
	)
	for _, group := range [][]*lint.Analyzer{staticcheck.Analyzers, simple.Analyzers, stylecheck.Analyzers} {
		for _, a := range group {
			if !a.Doc.NonDefault || a == st1000.SCAnalyzer {
				all = append(all, a.Analyzer)
			}
		}
	}
	heedIgnores(all)
	for _, a := range all {
		if len(a.FactTypes) == 0 && a.ResultType == nil {
			onlyOurs(a)
		}
	}
	unitchecker.Main(all...)
}

func forbid() *analysis.Analyzer {
	a := with(forbidigo.NewAnalyzer(), "analyze_types", "true")
	for pattern, why := range forbidden {
		with(a, "p", `{p: '`+pattern+`', msg: "`+why+`"}`)
	}
	return a
}

// with sets a flag of an analyzer.
func with(a *analysis.Analyzer, flag, value string) *analysis.Analyzer {
	if err := a.Flags.Set(flag, value); err != nil {
		log.Fatal(err)
	}
	return a
}
