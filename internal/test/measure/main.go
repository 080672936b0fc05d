// Command measure counts how readable the code is by four figures, for each package and for the parts of the repository.
//
// It reads Go files without the tests and without generated files, and it never runs or changes them. The definitions:
//
//   - A code line holds at least one token. Blank lines and lines with nothing but a comment do not count. A raw string
//     literal counts with all its lines.
//   - A function is a declaration with a body, so methods are functions and function literals are part of the function
//     around them. Its length is the number of lines from "func" to the closing brace, both included.
//   - An own-line comment is a line inside a function body that holds only a comment. Its share is 100 times the number
//     of such lines, divided by the sum of the lengths of all functions.
//   - A name has a single word when splitting it at capital letters, digits and underscores gives one word: read, Close,
//     ID, run2. Names that an interface dictates, such as String or Error, count like all others.
//
// The product is everything in cmd and internal, without internal/emulator and internal/test.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// run reads the files below the root and prints the table.
func run(args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("measure", flag.ContinueOnError)
	f.SetOutput(stderr)
	root := f.String("root", ".", "`folder` with the Go files, such as a checkout of this repository")
	list := f.String("list", "", "`package` whose functions with a name of a single word are listed, such as internal/drop")
	if err := f.Parse(args); err != nil {
		return err
	}
	files, err := listFiles(*root)
	if err != nil {
		return err
	}
	packages := map[string]*figures{}
	for _, file := range files {
		if err := measureFile(*root, file, packages); err != nil {
			return err
		}
	}
	if *list != "" {
		return printSingleWords(stdout, *list, packages)
	}
	printTable(stdout, packages)
	return nil
}

// listFiles returns the Go files of a checkout, as paths from its root. Files that git ignores are left out.
func listFiles(root string) ([]string, error) {
	cmd := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard", "*.go")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of %s: %w", root, err)
	}
	var files []string
	for _, file := range strings.Fields(string(out)) {
		if !strings.HasSuffix(file, "_test.go") && !strings.Contains("/"+file, "/testdata/") {
			files = append(files, file)
		}
	}
	return files, nil
}
