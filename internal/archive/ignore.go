package archive

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/text/unicode/norm"
)

// IgnoreRules are globs, as of path.Match, or with [! for [^. A name directly
// in a drop folder that matches one of them is not picked up. Case does not
// count.
type IgnoreRules []string

// Match reports whether something of that name is ignored.
func (r IgnoreRules) Match(name string) bool {
	return slices.ContainsFunc(r, func(glob string) bool { return matchName(glob, name) })
}

func matchName(glob, name string) bool {
	fold := func(s string) string { return strings.ToLower(norm.NFC.String(s)) }
	matched, err := path.Match(strings.ReplaceAll(fold(glob), "[!", "[^"), fold(name)) // as shells write it
	return matched && err == nil
}

// Names as people give them. Rules that match all of one row would leave nothing
// in the drop folder.
var (
	usualFolders = []string{"Rechnung 4711", "2026-10-31 Huber & Söhne", "scan_0815", "INVOICE", "Äpfel (2)", "7"}
	usualPDFs    = []string{"Rechnung 4711.pdf", "2026-10-31 Huber & Söhne.PDF", "scan_0815.pdf", "INVOICE.PDF", "Äpfel (2).pdf", "7.pdf"}
)

// FindFault returns the first rule that is a mistake, and why; an empty text: none
// is. reserved are the names of vaultd's own; files says that the drop takes
// single PDFs. A fault of all rules together has the index of the last one.
func (r IgnoreRules) FindFault(reserved []string, files bool) (at int, text string) {
	usual := usualFolders
	if files {
		usual = usualPDFs
	}
	for i, glob := range r {
		_, err := path.Match(glob, "")
		own := slices.IndexFunc(reserved, func(name string) bool { return matchName(glob, name) })
		switch {
		case err != nil:
			return i, "is not a pattern: a [ or \\ is not closed"
		case strings.Contains(glob, "/"):
			return i, "has a slash, and only names directly in the drop are compared"
		case matchesEach(IgnoreRules{glob}, usual):
			return i, "matches everything: nothing would ever be picked up"
		case own >= 0:
			return i, fmt.Sprintf("matches %s, which is vaultd's own", reserved[own])
		}
	}
	if len(r) > 0 && matchesEach(r, usual) {
		return len(r) - 1, "matches, together with the rules before it, everything: nothing would ever be picked up"
	}
	return 0, ""
}

func matchesEach(r IgnoreRules, names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !r.Match(name) })
}
