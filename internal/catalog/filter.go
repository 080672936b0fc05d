package catalog

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"vaultd/internal/ledger"
)

// Filter selects entries; the zero filter selects all.
type Filter struct {
	States       []ledger.State // empty: all
	Drop, Vault  string         // empty: all
	Route        ledger.Route   // empty: all
	Since, Until time.Time      // of when it was taken, the second excluded; zero: no bound
}

// Selects reports whether the filter selects an entry.
func (f Filter) Selects(e ledger.Entry) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, e.State)) && (f.Drop == "" || f.Drop == e.Drop) && (f.Vault == "" || f.Vault == string(e.Vault)) &&
		(f.Route == "" || f.Route == cmp.Or(e.Route, ledger.Vault)) &&
		!e.SeenAt.Before(f.Since) && (f.Until.IsZero() || e.SeenAt.Before(f.Until))
}

func (f Filter) selectsAll() bool {
	return len(f.States) == 0 && f.Drop == "" && f.Vault == "" && f.Route == "" && f.Since.IsZero() && f.Until.IsZero()
}

// conditions returns what every row meets that the filter selects, but for its states.
func (f Filter) conditions() (conditions []string, args []any) {
	add := func(condition string, value any) {
		conditions = append(conditions, condition)
		args = append(args, value)
	}
	if f.Drop != "" {
		add("drop_name = ?", f.Drop)
	}
	if f.Vault != "" {
		add("vault = ?", f.Vault)
	}
	switch f.Route {
	case "":
	case ledger.Vault: // of an old entry none is recorded
		conditions = append(conditions, "route IN ('', 'vault')")
	default:
		add("route = ?", string(f.Route))
	}
	if !f.Since.IsZero() { // the columns hold whole milliseconds
		add("seen >= ?", millis(f.Since))
	}
	if !f.Until.IsZero() {
		add("seen <= ?", millis(f.Until))
	}
	return conditions, args
}

// question asks for the rows that the filter may select; a [*cannotHelp] where it selects all. Of each state the rows stand in the order of
// their ids, so that the rows of several states only have to be merged.
func (f Filter) question() (question, error) {
	conditions, common := f.conditions()
	if f.selectsAll() {
		return nil, &cannotHelp{}
	}
	one := "SELECT id, key, late FROM document WHERE " + strings.Join(append([]string{"id < ?"}, conditions...), " AND ")
	return func(below int64) (string, []any) {
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
