package main

import (
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Packages of this project are named by their path below internal, or below
// the module's root. A pattern is a path; "..." in the end stands for any rest.

// mayImport lists the packages of this project that a package may import. A
// package that is missing here imports none, and a new one begins so. Tests may
// import any package, except in browser.
var mayImport = map[string]string{
	"apicall":           "archive sanitize",
	"arrivals":          "apicall archive custody durable engine ledger ledger/arrival sanitize",
	"billing":           "archive ledger",
	"books":             "archive custody expected extractapi ledger present",
	"catalog":           "archive ledger",
	"config":            "archive drop durable networkapi packager sanitize statedir",
	"custody":           "archive durable",
	"daemon":            "...", // the wiring
	"drop":              "archive durable sanitize",
	"dropwork":          "archive drop durable ingest ledger packager present proof recovery sanitize spool statedir watch",
	"expected":          "archive sanitize",
	"extractapi":        "apicall archive sanitize",
	"engine":            "archive ledger window",
	"ingest":            "apicall archive engine ledger window", // the others through its own interfaces
	"ledger":            "archive",
	"ledger/arrival":    "archive ledger",
	"ledger/boltledger": "archive durable ledger ledger/arrival",
	"networkapi":        "apicall archive strictjson",
	"notices":           "apicall archive ledger ledger/arrival",
	"operator":          "apicall archive durable ingest ledger ledger/arrival present proof recovery vaultapi",
	"packager":          "archive durable sanitize strictjson",
	"page":              "archive chart ledger present sanitize web",
	"pdfapi":            "apicall archive",
	"present":           "apicall archive billing ingest ledger sanitize watch",
	"proof":             "archive ledger ledger/arrival",
	"recovery":          "apicall archive drop durable ledger packager proof",
	"report":            "archive billing books chart expected ledger present proof sanitize",
	"selfcheck":         "archive drop dropwork durable ledger ledger/arrival ledger/boltledger proof spool",
	"spool":             "archive durable ingest ledger statedir",
	"statedir":          "durable ledger ledger/boltledger",
	"statusfile":        "archive drop dropwork ingest ledger packager present sanitize spool watch",
	"strictjson":        "sanitize",
	"test/calls":        "apicall test/kit",
	"test/fill":         "archive ledger ledger/arrival ledger/boltledger proof test/kit",
	"test/outside":      "archive emulator ledger ledger/arrival proof",
	"test/simulation":   "...",
	"vaultapi":          "apicall archive sanitize",
	"watch":             "archive durable",
	"web":               "archive ledger report",
	"window":            "archive",

	"cmd/vaultd": "...",
	"bench":      "...",
	"browser":    "archive emulator ledger ledger/boltledger test/fill test/kit", // it sees the program from outside
}

// onlyIn lists the packages that alone may import a package, apart from tests:
// most of them wrap a library.
var onlyIn = map[string]string{
	"vaultd/internal/config":                   "cmd/vaultd", // it passes the fields that are needed
	"vaultd/internal/emulator":                 "cmd/vaultd bench browser test/...",
	"vaultd/internal/test/...":                 "test/...",
	"database/sql/...":                         "books catalog",
	"github.com/fsnotify/fsnotify/...":         "watch",
	"github.com/goccy/go-yaml/...":             "config",
	"github.com/hashicorp/go-retryablehttp...": "apicall", // for GETs and tokens only
	"github.com/santhosh-tekuri/jsonschema...": "",        // tests compare config with it
	"github.com/spf13/cobra/...":               "cmd/vaultd",
	"github.com/xuri/excelize/...":             "expected report",
	"go.etcd.io/bbolt/...":                     "bench ledger/boltledger",
	"log":                                      "", // use log/slog; only the servers of httptest want a *log.Logger
	"modernc.org/sqlite/...":                   "books catalog",
}

// pure packages decide, without I/O.
const (
	pure = "archive billing ledger window"
	io   = "os/... net net/http/... syscall/... golang.org/x/sys/..."
)

// nowhere lists what tests must leave out as well.
const nowhere = "vaultd/cmd/... math/rand io/ioutil github.com/pkg/errors gopkg.in/yaml... " +
	"github.com/stretchr/testify/... github.com/golang/mock/... go.uber.org/mock/..."

// imports reports imports that the lists above rule out.
var imports = &analysis.Analyzer{
	Name: "imports",
	Doc:  "report imports that this project rules out",
	Run: func(pass *analysis.Pass) (any, error) {
		pkg := nameInProject(strings.TrimSuffix(pass.Pkg.Path(), "_test"))
		for _, f := range pass.Files {
			test := strings.HasSuffix(pass.Fset.Position(f.Pos()).Filename, "_test.go")
			for _, spec := range f.Imports {
				imported, err := strconv.Unquote(spec.Path.Value)
				if err != nil {
					return nil, err
				}
				if list := ruledOutBy(pkg, imported, test); list != "" {
					pass.Reportf(spec.Pos(), "%s imports %s: see %s in tools/lint/imports.go", pkg, imported, list)
				}
			}
		}
		return nil, nil
	},
}

// ruledOutBy returns the name of the list that rules out an import by a file
// of pkg, or "".
func ruledOutBy(pkg, imported string, test bool) string {
	if test && imported == "vaultd/"+pkg {
		return "" // a test outside of its package
	}
	if inList(nowhere, imported) {
		return "nowhere"
	}
	ours := imported == "vaultd" || strings.HasPrefix(imported, "vaultd/")
	if ours && (!test || pkg == "browser") && !inList(mayImport[pkg], nameInProject(imported)) {
		return "mayImport"
	}
	if test {
		return ""
	}
	for pattern, users := range onlyIn {
		if matches(pattern, imported) && !inList(users, pkg) {
			return "onlyIn"
		}
	}
	if inList(pure, pkg) && inList(io, imported) {
		return "pure"
	}
	return ""
}

func nameInProject(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "vaultd/"), "internal/")
}

func inList(patterns, path string) bool {
	return slices.ContainsFunc(strings.Fields(patterns), func(p string) bool { return matches(p, path) })
}

func matches(pattern, path string) bool {
	prefix, open := strings.CutSuffix(pattern, "...")
	return path == strings.TrimSuffix(prefix, "/") || open && strings.HasPrefix(path, prefix)
}
