package page

import (
	"fmt"
	"net/http"
	"slices"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// statusBody is the first page: how it stands.
type statusBody struct {
	present.StatusSummary
	Urgent, Later int // things that need a person
	Charts        charts
}

// showStatus shows how it stands.
func (p *Pages) showStatus(w http.ResponseWriter, r *http.Request, f *frame) error {
	s, err := p.source.Status(r.Context())
	if err != nil {
		return err
	}
	if !f.Visitor.Rights.Read {
		s = withoutDocuments(s)
	}
	history, err := p.source.History(r.Context())
	if err != nil {
		return err
	}
	if !f.Visitor.Rights.Read {
		history = withoutReason(history)
	}
	f.IsLive = true
	body := statusBody{StatusSummary: s, Charts: drawCharts(f, history)}
	for _, n := range s.Needs {
		if n.When == "now" {
			body.Urgent++
		} else {
			body.Later++
		}
	}
	f.writePage(w, http.StatusOK, "status", f.Verdict(body), body)
	return nil
}

// withoutReason replaces what a history says of its figures that are missing: that may name a path.
func withoutReason(h present.History) present.History {
	if h.Missing != "" {
		h.Missing = `"vaultd status" tells why`
	}
	return h
}

// withoutDocuments leaves out of a summary whatever may name a document, a person or a path: what stays are counts, states,
// times, and ids of the configuration.
func withoutDocuments(s present.StatusSummary) present.StatusSummary {
	s.Host, s.Service, s.ReloadFault, s.Damage, s.Catalog = "", "", "", "", ""
	s.Needs = slices.Clone(s.Needs)
	for i := range s.Needs {
		s.Needs[i].Text, s.Needs[i].Do, s.Needs[i].Names = "", "", nil
	}
	s.Pauses = slices.Clone(s.Pauses)
	for i := range s.Pauses {
		s.Pauses[i].Text, s.Pauses[i].Do = "", ""
	}
	s.NotTaken = slices.Clone(s.NotTaken)
	for i := range s.NotTaken {
		s.NotTaken[i].Names = nil
	}
	s.Drops = slices.Clone(s.Drops)
	for i := range s.Drops {
		s.Drops[i].Why, s.Drops[i].Paused, s.Drops[i].Do = "", "", ""
	}
	if s.Check != nil {
		s.Check = &present.LedgerCheck{At: s.Check.At, OK: s.Check.OK}
	}
	if s.Safe != nil {
		s.Safe = &present.SafeMode{Since: s.Safe.Since, From: s.Safe.From}
	}
	s.Advice, s.StalledDrops, s.LongNotTaken, s.Attention = nil, nil, nil, present.AttentionCounts{}
	return s
}

// needTitles names the kinds of things that need a person.
var needTitles = map[string]string{
	"taken-over": "Another vaultd has taken over", "safe-mode": "Safe mode", "damaged": "The ledger is damaged", "balance": "The balance does not agree",
	"configuration": "The new configuration is not in use", "files": "Files are not what the ledger says", "check": "The check of the ledger is not complete",
	"disk": "The disk is full", "drop-paused": "A drop folder is paused", "contradicted": "The archive contradicts itself",
	"archived-twice": "Archived more than once", "paused": "Paused", "clock": "The clock is wrong", "not-taken": "Not taken",
	"unreadable": "Cannot be read", "overdue": "Open for too long", "kept-differs": "Kept folders are not what was archived", "rejected": "Rejected",
	"delivered-differs": "Kept PDFs are not what was delivered",
	"quarantined":       "Quarantined", "undecided": "A decision is needed", "same-number": "Same invoice number as another one",
	"strange-date": "A date that can hardly be right", "binding": "The ledger belongs to other accounts",
}

// NeedTitle names what a need is about.
func (f *frame) NeedTitle(n present.Need) string {
	if title, ok := needTitles[n.What]; ok {
		return f.T(title)
	}
	return f.Sanitize(n.What)
}

// Verdict says in one line how it stands.
func (f *frame) Verdict(b statusBody) string {
	switch {
	case b.Urgent > 0:
		return f.T("%d now, %d soon: a person is needed", b.Urgent, b.Later)
	case b.Later > 0:
		return f.T("%d soon: a person is needed", b.Later)
	case !b.Running:
		return f.T("vaultd does not run")
	}
	return f.T("All is well: nobody is needed")
}

// stateCount is how many entries are in a state.
type stateCount struct {
	State string
	Count uint64
}

// BalanceStates returns the states that have entries, in their order, open ones apart.
func (b statusBody) BalanceStates() (ended []stateCount) {
	for _, s := range ledger.States() {
		if n := b.Balance.States[s.String()]; n > 0 && !s.IsOpen() {
			ended = append(ended, stateCount{s.String(), n})
		}
	}
	return ended
}

// OpenStates returns the states on the way that have entries.
func (b statusBody) OpenStates() (open []stateCount) {
	for _, s := range ledger.States() {
		if n := b.Open.States[s.String()]; n > 0 {
			open = append(open, stateCount{s.String(), uint64(n)})
		}
	}
	return open
}

// Limit is after what time an open document needs a person.
func (b statusBody) Limit() time.Duration { return time.Duration(b.Open.Limit * float64(time.Second)) }

// vaultStatus is one vault with its drops.
type vaultStatus struct {
	ID          string // empty: of the drops of single PDFs
	Today, Open int
	Delivered   int
	IsPDF       bool // they are delivered, and never archived
	Drops       []present.DropStatus
	Bills       []present.Bill
	IsLeftOver  bool // it is configured no more
}

// Vaults returns the vaults of the configuration in its order; drops that are not configured any more come last.
func (b statusBody) Vaults() (all []*vaultStatus) {
	for _, d := range b.Drops {
		i := slices.IndexFunc(all, func(v *vaultStatus) bool { return v.ID == d.Vault && v.IsPDF == d.IsPDF() })
		if i < 0 {
			i = len(all)
			all = append(all, &vaultStatus{ID: d.Vault, IsPDF: d.IsPDF(), IsLeftOver: d.Vault == "" && !d.IsPDF()})
		}
		v := all[i]
		v.Today, v.Open, v.Drops = v.Today+d.Today, v.Open+d.Open, append(v.Drops, d)
		v.Delivered += d.Delivered
	}
	for _, bill := range b.Billing {
		for _, v := range all {
			if bill.Vault == v.ID && !v.IsPDF {
				v.Bills = append(v.Bills, bill)
			}
		}
	}
	return all
}

// DescribeToday writes how many were archived today, or delivered: two numbers that are never added up.
func (f *frame) DescribeToday(archived, delivered int, isPDF bool) string {
	switch {
	case delivered == 0 && !isPDF:
		return f.FormatNumber(archived)
	case archived == 0:
		return f.T("%d delivered", delivered)
	}
	return f.FormatNumber(archived) + ", " + f.T("%d delivered", delivered)
}

// FormatPercent writes how much of what is included is used.
func (f *frame) FormatPercent(b present.Bill) string {
	if b.Percent == "" {
		return "–"
	}
	return fmt.Sprintf("%s\u00a0%%", f.FormatDecimal(b.Percent))
}

// ForecastAverage writes what the bill will say at the end of the year.
func (f *frame) ForecastAverage(b present.Bill) string {
	if b.Forecast == nil {
		return "–"
	}
	return f.T("%s MB (%s to %s)", f.FormatDecimal(string(b.Forecast.Average)), f.FormatDecimal(string(b.Forecast.Lowest)), f.FormatDecimal(string(b.Forecast.Highest)))
}
