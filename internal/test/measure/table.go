package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// textCounters are the counters of text, in the order in which they are
// printed.
var textCounters = []string{headlessCounter, negationsCounter, wideCounter, privateCounter, bareCounter}

// partNames are the parts, in the order in which they are printed.
var partNames = []string{"product", "emulator", "tests", "bench", "tools", "pages"}

// printTables prints the sizes of the packages, their text, and the words of
// the pages.
func printTables(w io.Writer, t *tree) {
	printRows(w, t, "package\tfiles\tcode lines\tlines\ttest lines\tcomments in functions %\troute\tnames", func(f *figures) string {
		return fmt.Sprintf("%d\t%d\t%d\t%d\t%.1f\t%d\t%d", f.files, f.code, f.lines, f.testLines,
			share(f.comments, f.functionLines), f.counts[routeCounter], f.counts[namesCounter])
	})
	fmt.Fprintln(w)
	printRows(w, t, "package\tsentences\theadless\t%\tnegations\t%\twide\tprivate\tbare", func(f *figures) string {
		c := f.counts
		return fmt.Sprintf("%d\t%d\t%.1f\t%d\t%.1f\t%d\t%d\t%d", f.sentences, c[headlessCounter], share(c[headlessCounter], f.sentences),
			c[negationsCounter], share(c[negationsCounter], f.sentences), c[wideCounter], c[privateCounter], c[bareCounter])
	})
	fmt.Fprintln(w)
	printSums(w, t)
}

// printRows prints a line for each package, for each part and for the whole.
func printRows(w io.Writer, t *tree, head string, row func(*figures) string) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "%s\t\n", head)
	for _, name := range slices.Sorted(maps.Keys(t.packages)) {
		fmt.Fprintf(table, "%s\t%s\t\n", name, row(t.packages[name]))
	}
	fmt.Fprintln(table, strings.Repeat("\t", strings.Count(head, "\t")+1))
	for _, part := range partNames {
		fmt.Fprintf(table, "%s\t%s\t\n", strings.ToUpper(part), row(t.sum(part)))
	}
	fmt.Fprintf(table, "ALL\t%s\t\n", row(t.sum("")))
	_ = table.Flush()
}

// printSums prints the words of the pages, and the figures that are compared
// with accepted.txt.
func printSums(w io.Writer, t *tree) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "page\twords\t")
	for _, name := range slices.Sorted(maps.Keys(t.pages)) {
		fmt.Fprintf(table, "%s\t%d\t\n", name, t.pages[name])
	}
	_ = table.Flush()
	fmt.Fprintln(w)
	for _, l := range t.limits() {
		fmt.Fprintf(w, "%-13s %v\n", l.name, l)
	}
}

// share returns n in percent of all.
func share(n, all int) float64 { return 100 * float64(n) / float64(max(1, all)) }

// printPlaces prints the places of one counter.
func printPlaces(w io.Writer, t *tree, counter string) error {
	if counter != routeCounter && counter != namesCounter && !slices.Contains(textCounters, counter) {
		return fmt.Errorf("unknown counter %q; use one of %s, %s, %s", counter, strings.Join(textCounters, ", "), routeCounter, namesCounter)
	}
	slices.SortStableFunc(t.places, func(a, b place) int { return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.line, b.line)) })
	for _, p := range t.places {
		if p.counter == counter {
			fmt.Fprintf(w, "%s:%d: %s\n", p.file, p.line, p.text)
		}
	}
	return nil
}
