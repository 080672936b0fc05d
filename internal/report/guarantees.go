package report

// guarantee is one thing that vaultd promises. docs/guarantees.md is made of these, and
// every audit prints them with what it found.
type guarantee struct {
	id      string // as findings name it
	promise string // in words for an auditor
	how     string // it is kept
	limit   string // what it does not cover; empty: nothing known
	checked bool   // examined for contradictions, from the ledger alone, by each audit and by verify
	tests   []string
}

// promised is one guarantee in an audit.
type promised struct {
	ID       string `json:"promise"`
	Text     string `json:"text"`
	Checked  bool   `json:"checked"`  // the ledger was examined for contradictions to it: for this report, as far as it rests on nothing earlier
	Findings uint64 `json:"findings"` // against it; those omitted above a thousand are not told apart
	Today    string `json:"today"`    // the result in words
}

// listPromises says of each guarantee what the proof found.
func (a *Audit) listPromises() []promised {
	r := a.proof
	today := "no contradiction in " + formatCount(r.Lines, "journal line", "journal lines") + " and " + formatCount(r.Entries, "entry", "entries")
	if b := a.restsOn(); b != nil {
		today = "no contradiction in " + formatCount(r.Lines-b.Line, "new journal line", "new journal lines") + " and " + formatCount(r.Entries, "entry", "entries") +
			"; before that none was found on " + a.formatMinute(b.At)
	}
	against := map[string]uint64{}
	for _, f := range r.Findings {
		against[f.Promise]++
	}
	var all []promised
	for _, g := range guarantees {
		p := promised{ID: g.id, Text: g.promise, Checked: g.checked, Findings: against[g.id]}
		switch {
		case p.Findings > 0:
			p.Today = "BROKEN: " + formatCount(p.Findings, "finding", "findings") + ", see the top"
		case g.checked && r.Omitted > 0:
			p.Today = "not all findings are listed"
		case g.checked:
			p.Today = today
		default:
			p.Today = "held by construction and by tests"
		}
		all = append(all, p)
	}
	return all
}
