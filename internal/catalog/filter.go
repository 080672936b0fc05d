package catalog

import (
	"slices"
	"strings"
	"time"

	"vaultd/internal/ledger"
)

// Filter selects entries; the zero filter selects all.
type Filter struct {
	States       []ledger.State // empty: all
	Drop, Vault  string         // empty: all
	Since, Until time.Time      // of when it was taken, the second excluded; zero: no bound
}

// question asks for the rows that the filter may select; a [*cannotHelp] where it selects all. Of each state the rows stand in the order of
// their ids, so that the rows of several states only have to be merged.
func (f Filter) question() (question, error) {
	var also strings.Builder
	var common []any
	add := func(condition string, value any) {
		also.WriteString(" AND " + condition)
		common = append(common, value)
	}
	if f.Drop != "" {
		add("drop_name = ?", f.Drop)
	}
	if f.Vault != "" {
		add("vault = ?", f.Vault)
	}
	if !f.Since.IsZero() { // the columns hold whole milliseconds
		add("seen >= ?", millis(f.Since))
	}
	if !f.Until.IsZero() {
		add("seen <= ?", millis(f.Until))
	}
	if len(f.States) == 0 && len(common) == 0 {
		return nil, &cannotHelp{}
	}
	return func(below int64) (string, []any) {
		one := "SELECT id, key, late FROM document WHERE id < ?" + also.String()
		if len(f.States) == 0 {
			return one + " ORDER BY id DESC LIMIT ?", slices.Concat([]any{below}, common, []any{pageRows})
		}
		var parts []string
		var args []any
		for _, s := range f.States {
			parts = append(parts, one+" AND state = ?")
			args = append(append(append(args, below), common...), int(s))
		}
		return strings.Join(parts, " UNION ALL ") + " ORDER BY id DESC LIMIT ?", append(args, pageRows)
	}, nil
}
