package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// parts are the parts of the repository, by the path of a package. The first that fits counts.
var parts = []struct{ name, path string }{
	{"emulator", "internal/emulator"},
	{"tests", "internal/test"},
	{"bench", "bench"},
	{"tests", "browser"},
	{"tools", "tools"},
	{"product", "cmd"},
	{"product", "internal"},
}

// partOf returns the part that a package belongs to.
func partOf(pkg string) string {
	for _, p := range parts {
		if pkg == p.path || strings.HasPrefix(pkg, p.path+"/") {
			return p.name
		}
	}
	return "other"
}

// printTable prints a line for each package and one for each part.
func printTable(w io.Writer, packages map[string]*figures) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "package\tfiles\tcode lines\tfunctions\tsingle word %\tmedian\tp90\tmax\tcomment lines in functions\t% of function lines\t")
	sums := map[string]*figures{}
	for _, name := range slices.Sorted(maps.Keys(packages)) {
		printRow(t, name, packages[name])
		part := partOf(name)
		if sums[part] == nil {
			sums[part] = &figures{}
		}
		sums[part].add(packages[name])
	}
	fmt.Fprintln(t, "\t\t\t\t\t\t\t\t\t\t")
	all := &figures{}
	for _, part := range slices.Sorted(maps.Keys(sums)) {
		printRow(t, strings.ToUpper(part), sums[part])
		all.add(sums[part])
	}
	printRow(t, "ALL", all)
	_ = t.Flush()
}

func printRow(w io.Writer, name string, f *figures) {
	lengths := make([]int, 0, len(f.functions))
	for _, one := range f.functions {
		lengths = append(lengths, one.lines)
	}
	slices.Sort(lengths)
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%.0f\t%d\t%d\t%d\t%d\t%.1f\t\n", name, f.files, f.code, len(lengths), share(f.singleWords(), len(lengths)),
		quantile(lengths, 50), quantile(lengths, 90), quantile(lengths, 100), f.comments, share(f.comments, f.functionLines()))
}

// share returns n in percent of all.
func share(n, all int) float64 {
	if all == 0 {
		return 0
	}
	return 100 * float64(n) / float64(all)
}

// quantile returns the value below which the given percentage of the sorted values lies.
func quantile(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*percent/100]
}

// printSingleWords prints where the functions of a package stand whose name is a single word.
func printSingleWords(w io.Writer, pkg string, packages map[string]*figures) error {
	f := packages[pkg]
	if f == nil {
		return fmt.Errorf("there is no package %s", pkg)
	}
	for _, one := range f.functions {
		if countWords(one.name) <= 1 {
			fmt.Fprintf(w, "%s: %s (%d lines)\n", one.place, one.name, one.lines)
		}
	}
	return nil
}
