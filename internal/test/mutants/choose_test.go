package mutants

import (
	"regexp"
	"testing"
)

// choose returns the mutants that which names: "all", or a regular expression
// on their names.
func choose(t *testing.T, which string, list []mutant) []mutant {
	if which == "all" {
		return list
	}
	wanted, err := regexp.Compile(which)
	if err != nil {
		t.Fatal(err)
	}
	return filter(list, func(m mutant) bool { return wanted.MatchString(m.name) })
}

func filter(list []mutant, isWanted func(mutant) bool) (wanted []mutant) {
	for _, m := range list {
		if isWanted(m) {
			wanted = append(wanted, m)
		}
	}
	return wanted
}
