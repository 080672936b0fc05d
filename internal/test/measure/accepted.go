package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const acceptedFile = "internal/test/measure/accepted.txt"

// acceptedHead explains the file to those who open it.
const acceptedHead = `# The figures that "make check" accepts. A figure above its line fails the check. Lower them all with
#   go run ./internal/test/measure -accept
# and move one on purpose with "-accept NAME", with the reason in the commit.
# Totals: code lines of the product, lines of tests, words of pages. The rest: places per 1,000 lines.
`

// limit is one figure that is compared with accepted.txt.
type limit struct {
	name  string
	now   float64
	isSum bool // a total; the others are rates
}

// limits returns the figures of a tree.
func (t *tree) limits() []limit {
	all := t.sum("")
	limits := []limit{
		{"product-lines", float64(t.sum("product").code), true},
		{"test-lines", float64(all.testLines), true},
		{"page-words", float64(all.words), true},
	}
	for _, counter := range textCounters {
		limits = append(limits, limit{counter, math.Round(100*all.rate(counter)) / 100, false})
	}
	return limits
}

// format returns a figure as accepted.txt has it.
func (l limit) format(figure float64) string {
	if l.isSum {
		return strconv.Itoa(int(figure))
	}
	return strconv.FormatFloat(figure, 'f', 2, 64)
}

// readAccepted returns the accepted figures by name.
func readAccepted(root string) (map[string]float64, error) {
	text, err := os.ReadFile(filepath.Join(root, acceptedFile))
	if err != nil {
		return nil, err
	}
	accepted := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		name, figure, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name == "" || strings.HasPrefix(name, "#") {
			continue
		}
		if accepted[name], err = strconv.ParseFloat(strings.TrimSpace(figure), 64); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", acceptedFile, name, err)
		}
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
		switch {
		case !known:
			return fmt.Errorf("%s has no line for %s", acceptedFile, l.name)
		case l.now > most && l.isSum:
			above = append(above, l.name)
			fmt.Fprintf(w, "%s: got %s, accepted %s\n", l.name, l.format(l.now), l.format(most))
		case l.now > most:
			above = append(above, l.name)
			fmt.Fprintf(w, "%s: got %s per 1,000 lines, accepted %s; for the %d places: go run ./internal/test/measure -list %s\n",
				l.name, l.format(l.now), l.format(most), t.sum("").counts[l.name], l.name)
		case l.now < 0.99*most:
			fmt.Fprintf(w, "%s: got %s, accepted %s; lower it: go run ./internal/test/measure -accept\n", l.name, l.format(l.now), l.format(most))
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
			return fmt.Errorf("unknown figure %q; use one of %s", name, acceptedFile)
		}
	}
	text := acceptedHead
	for _, l := range limits {
		figure, known := accepted[l.name]
		if !known || l.now < figure || slices.Contains(names, l.name) {
			figure = l.now
		}
		if figure != accepted[l.name] {
			fmt.Fprintf(w, "%s: %s, was %s\n", l.name, l.format(figure), l.format(accepted[l.name]))
		}
		text += fmt.Sprintf("%-13s %s\n", l.name, l.format(figure))
	}
	return os.WriteFile(filepath.Join(root, acceptedFile), []byte(text), 0o644)
}
