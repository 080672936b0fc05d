package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const acceptedFile = "internal/test/measure/accepted.txt"

// acceptedHead explains the file to its readers.
const acceptedHead = `# The figures that "make check" accepts: for a total the most, for a habit of the text the places in all and per 1,000 lines.
# A habit fails the check if both rise: a change that deletes plain lines raises the second alone.
# Lower all figures with "go run ./internal/test/measure -accept". Move one on purpose with "-accept NAME", and give the reason in the commit.
`

// limit is one figure that is compared with accepted.txt.
type limit struct {
	name    string
	count   int
	rate    float64 // per 1,000 lines, with two decimals
	isTotal bool    // it has no rate
}

// limits returns the figures of a tree.
func (t *tree) limits() []limit {
	all := t.sum("")
	limits := []limit{
		{name: "product-lines", count: t.sum("product").code, isTotal: true},
		{name: "test-lines", count: all.testLines, isTotal: true},
		{name: "page-words", count: all.words, isTotal: true},
	}
	for _, counter := range textCounters {
		limits = append(limits, limit{name: counter, count: all.counts[counter], rate: math.Round(100*all.rate(counter)) / 100})
	}
	return limits
}

// String returns the figure as messages have it.
func (l limit) String() string {
	if l.isTotal {
		return fmt.Sprint(l.count)
	}
	return fmt.Sprintf("%d (%.2f per 1,000 lines)", l.count, l.rate)
}

// isAbove reports whether a figure rose above the accepted one.
func (l limit) isAbove(accepted limit) bool {
	return l.count > accepted.count && (l.isTotal || l.rate > accepted.rate)
}

// isFarBelow reports whether a figure fell by more than one percent.
func (l limit) isFarBelow(accepted limit) bool {
	return float64(l.count) < 0.99*float64(accepted.count)
}

// readAccepted returns the accepted figures by name.
func readAccepted(root string) (map[string]limit, error) {
	text, err := os.ReadFile(filepath.Join(root, acceptedFile))
	if err != nil {
		return nil, err
	}
	accepted := map[string]limit{}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var l limit
		if n, err := fmt.Sscan(line, &l.name, &l.count, &l.rate); n < 2 {
			return nil, fmt.Errorf("%s: line %q: %w", acceptedFile, line, err)
		}
		accepted[l.name] = l
	}
	return accepted, nil
}

// checkAccepted compares the figures of a tree with the accepted ones. It fails
// if one is above, and prints those that fell by more than one percent.
func checkAccepted(w io.Writer, root string, t *tree) error {
	accepted, err := readAccepted(root)
	if err != nil {
		return err
	}
	var above []string
	for _, l := range t.limits() {
		most, known := accepted[l.name]
		most.isTotal = l.isTotal
		switch {
		case !known:
			return fmt.Errorf("%s has no line for %s", acceptedFile, l.name)
		case l.isAbove(most):
			above = append(above, l.name)
			fmt.Fprintf(w, "%s: got %v, accepted %v\n", l.name, l, most)
			if !l.isTotal {
				fmt.Fprintf(w, "  the places: go run ./internal/test/measure -list %s\n", l.name)
			}
		case l.isFarBelow(most):
			fmt.Fprintf(w, "%s: got %v, accepted %v; lower it: go run ./internal/test/measure -accept\n", l.name, l, most)
		}
	}
	if len(above) > 0 {
		return fmt.Errorf("above %s; bring the figure down, or accept it on purpose (go run ./internal/test/measure -accept %s) and give the reason in the commit",
			acceptedFile, strings.Join(above, " "))
	}
	return nil
}

// writeAccepted lowers the accepted figures to those of a tree, and sets the
// named ones to them in any case.
func writeAccepted(w io.Writer, root string, t *tree, names []string) error {
	accepted, err := readAccepted(root)
	if err != nil {
		return err
	}
	limits := t.limits()
	for _, name := range names {
		if !slices.ContainsFunc(limits, func(l limit) bool { return l.name == name }) {
			return fmt.Errorf("unknown figure %q; use one of those in %s", name, acceptedFile)
		}
	}
	text := acceptedHead
	for _, l := range limits {
		was, known := accepted[l.name]
		was.isTotal = l.isTotal
		if known && !slices.Contains(names, l.name) {
			l.count, l.rate = min(l.count, was.count), min(l.rate, was.rate)
		}
		if l != was {
			fmt.Fprintf(w, "%s: %v, was %v\n", l.name, l, was)
		}
		text += fmt.Sprintf("%-13s %6d", l.name, l.count)
		if !l.isTotal {
			text += fmt.Sprintf(" %6.2f", l.rate)
		}
		text += "\n"
	}
	return os.WriteFile(filepath.Join(root, acceptedFile), []byte(text), 0o644)
}
