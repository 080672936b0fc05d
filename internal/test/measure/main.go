// Command measure counts how large the repository is and how plain its text is,
// for each package and for the whole. With -check it compares the figures with
// those in accepted.txt. It reads files and never changes one, except that
// -accept writes accepted.txt.
//
// Size:
//
//   - A code line holds at least one token. A raw string literal counts with
//     all its lines. The product is everything in cmd and internal, without
//     internal/emulator and internal/test. Its ceiling counts code lines.
//   - Test lines are all lines of _test.go files, with blanks and comments.
//     Other files of internal/test have code lines, in the part "tests".
//   - Words of pages are counted in all Markdown files, as "wc -w" does,
//     without the text that a program writes: pages and sections between marks
//     (see page.go).
//   - An own-line comment is a line inside a function that holds only a
//     comment. Its share is in percent of the lines of all functions.
//
// Text, counted in the comments of all Go files that are written by hand and in
// the same pages. Code blocks, headings and code spans of pages are left out. A
// sentence ends with a full stop, a question mark, an exclamation mark or a
// colon before a capital letter, and with its paragraph, list item or table
// cell.
//
//   - headless: sentences that begin with What, One that, Of what, Of which,
//     Who, Where, That which, Nobody, Whoever or Whatever, and end without a
//     question mark.
//   - negations: sentences with a negation.
//   - wide: lines that hold only a comment and have more than 100 characters.
//   - private: uses of the words in words.go.
//   - bare: failures of tests that print values without a word: t.Error or
//     t.Fatal without a text, unless all they print are errors, and t.Errorf or
//     t.Fatalf with a format of verbs and punctuation.
//
// Their rates are per 1,000 lines: all lines of Go files and pages that are
// written by hand.
//
// Ties between packages of the main module, which need the compiler and are
// only printed:
//
//   - route: the places that ask which way a document takes, outside tests:
//     comparisons with the name of a route, values of the cases of a switch over
//     one, indexes by one that read, and conditions that read a yes or no of a route or of
//     its row (a field, or a method without arguments), or compare a part of a
//     row. A method of a row that is called, and a text that is taken out of
//     one, are no branch.
//   - names: unexported functions, methods and types of a package that its own
//     _test.go files use. A file that hands them on to an external test package
//     is one of those. Constants, variables and fields are left out.
//
// With -subjects the command checks the subjects of commits (see subjects.go).
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// run does what the flags ask for; without one it prints all figures.
func run(args []string, stdout, stderr io.Writer) error {
	f := flag.NewFlagSet("measure", flag.ContinueOnError)
	f.SetOutput(stderr)
	root := f.String("root", ".", "`folder` of the checkout")
	list := f.String("list", "", "print the places of one `counter`: headless, negations, wide, private, bare, route or names")
	check := f.Bool("check", false, "compare with accepted.txt, and fail where a figure is above it")
	accept := f.Bool("accept", false, "lower accepted.txt to the figures of today; set those that are named behind the flag to them in any case")
	subjects := f.Bool("subjects", false, "check the subjects of commits: those behind a revision, or all since the rule began")
	if err := f.Parse(args); err != nil {
		return err
	}
	if *subjects {
		return checkSubjects(stdout, *root, f.Args())
	}
	if f.NArg() > 0 && !*accept {
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	t, err := readTree(*root)
	if err != nil {
		return err
	}
	switch {
	case *check:
		return checkAccepted(stdout, *root, t)
	case *accept:
		return writeAccepted(stdout, *root, t, f.Args())
	}
	if *list == "" || *list == routeCounter || *list == namesCounter {
		if err := t.countTies(*root); err != nil {
			return err
		}
	}
	if *list != "" {
		return printPlaces(stdout, t, *list)
	}
	printTables(stdout, t)
	return nil
}
