package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
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

	// Of the document, as its checked metadata has it, else as its sidecar was read.
	Type           string // empty: all
	Number, Sender Query  // words that must all occur in the invoice number, and in the sender's name; empty: all
}

// selectsEntry reports whether the filter selects an entry, whatever its document says.
func (f Filter) selectsEntry(e ledger.Entry) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, e.State)) && (f.Drop == "" || f.Drop == e.Drop) && (f.Vault == "" || f.Vault == string(e.Vault)) &&
		(f.Route == "" || f.Route == cmp.Or(e.Route, ledger.Vault)) &&
		!e.SeenAt.Before(f.Since) && (f.Until.IsZero() || e.SeenAt.Before(f.Until))
}

// selectsTexts reports whether the filter selects what a document says.
func (f Filter) selectsTexts(r row) bool {
	m := r.shown()
	occurs := func(q Query, text string) bool { return len(q) == 0 || text != "" && q.OccursIn(text) }
	return (f.Type == "" || f.Type == m.Type) && occurs(f.Number, m.Number) && occurs(f.Sender, m.SenderName)
}

func (f Filter) readsDocument() bool { return f.Type != "" || len(f.Number) > 0 || len(f.Sender) > 0 }

func (f Filter) selectsAll() bool {
	return len(f.States) == 0 && f.Drop == "" && f.Vault == "" && f.Route == "" && f.Since.IsZero() && f.Until.IsZero() && !f.readsDocument()
}

// selects reports whether the filter selects an entry. It reads the document where the filter asks for that.
func (c *Catalog) selects(f Filter, e ledger.Entry) (bool, error) {
	if !f.selectsEntry(e) || !f.readsDocument() {
		return f.selectsEntry(e), nil
	}
	r, err := c.readRow(e)
	return err == nil && f.selectsTexts(r), err
}

// conditions returns what every row meets that the filter selects, but for its states.
func (f Filter) conditions(ctx context.Context, db *sql.DB) (conditions []string, args []any, err error) {
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
	if f.Type != "" {
		add("type = ?", f.Type)
	}
	// The words may stand in the folder's name as well: the number itself is looked at in the ledger.
	if match := f.Number.textMatch(); match != "" {
		add("id IN (SELECT rowid FROM tokens WHERE tokens MATCH ?)", match)
	}
	if len(f.Sender) > 0 {
		ids, err := f.Sender.partiesIn(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		list, err := json.Marshal(ids)
		if err != nil {
			return nil, nil, err
		}
		add("sender IN (SELECT value FROM json_each(?))", string(list))
	}
	return conditions, args, nil
}

// question asks for the rows that the filter may select; a [*cannotHelp] where it selects all. Of each state the rows stand in the order of
// their ids, so that the rows of several states only have to be merged.
func (f Filter) question(ctx context.Context, db *sql.DB) (question, error) {
	if f.selectsAll() {
		return nil, &cannotHelp{}
	}
	conditions, common, err := f.conditions(ctx, db)
	if err != nil {
		return nil, err
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
