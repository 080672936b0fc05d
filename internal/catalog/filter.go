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
	Route        ledger.Route   // empty: all
	Since, Until time.Time      // of when it was taken, the second excluded; zero: no bound

	// Of the document, as its checked metadata has it, else as its sidecar was read.
	Type           string // empty: all
	Number, Sender Query  // words that must all occur in the invoice number, and in the sender's name; empty: all
}

// selectsEntry reports whether the filter selects an entry, whatever its document says.
func (f Filter) selectsEntry(e ledger.Entry) bool {
	return (len(f.States) == 0 || slices.Contains(f.States, e.State)) && (f.Drop == "" || f.Drop == e.Drop) && (f.Vault == "" || f.Vault == string(e.Vault)) &&
		(f.Route == "" || f.Route == e.Route) &&
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
	doc, _, err := c.cfg.Ledger.Document(e.Key)
	if err != nil {
		return false, err
	}
	r, err := newRow(e, doc)
	return err == nil && f.selectsTexts(r), err
}

// addFilter adds what every row meets that the filter selects, but for its states.
func (s *selection) addFilter(f Filter) {
	var of []string
	var values []any
	for _, v := range []struct{ column, value string }{{"drop_name", f.Drop}, {"vault", f.Vault}, {"type", f.Type}, {"route", string(f.Route)}} {
		if v.value != "" {
			of, values = append(of, v.column+" = ?"), append(values, v.value)
		}
	}
	if len(of) > 0 {
		s.add("d.origin IN (SELECT id FROM origin WHERE "+strings.Join(of, " AND ")+")", values...)
	}
	if !f.Since.IsZero() { // the columns hold whole milliseconds
		s.add("d.seen >= ?", millis(f.Since))
	}
	if !f.Until.IsZero() {
		s.add("d.seen <= ?", millis(f.Until))
	}
	for _, w := range f.Number {
		if forms, ok := w.storable(); ok {
			contains, args := containsAny("d.number", forms)
			s.add("("+contains+")", args...)
			s.addMatch(forms)
		}
	}
	for _, w := range f.Sender {
		if forms, ok := w.storable(); ok {
			contains, args := containsAny("sender", forms)
			s.add("d.party IN (SELECT id FROM party WHERE "+contains+")", args...)
		}
	}
}
