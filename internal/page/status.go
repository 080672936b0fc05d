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
	Charts charts
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
	s.Host, s.Service, s.ReloadFault, s.Damage, s.Catalog, s.Figures, s.LostLedger = "", "", "", "", "", "", ""
	s.Needs = slices.Clone(s.Needs)
	for i := range s.Needs {
		n := &s.Needs[i]
		n.Text, n.Brief, n.Do, n.Names, n.Entries = "", "", "", nil, nil
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
		s.Drops[i].Why, s.Drops[i].Paused, s.Drops[i].Do, s.Drops[i].Foreign = "", "", "", nil
		s.Drops[i].IgnoredByRule.Names, s.Drops[i].IgnoredBySystem.Names = nil, nil
	}
	if s.Check != nil {
		s.Check = &present.LedgerCheck{At: s.Check.At, OK: s.Check.OK}
	}
	if s.Safe != nil {
		s.Safe = &present.SafeMode{Since: s.Safe.Since, From: s.Safe.From}
	}
	s.Advice, s.StalledDrops, s.LongNotTaken, s.ExtractNeeds, s.IndexNeeds, s.SpoolWaits, s.Incoming, s.Attention, s.Asked, s.Received = nil, nil, nil, nil, nil, nil, nil, nil, present.ArrivalNeeds{}, present.ArrivalNeeds{}
	return s
}

// stateCount is how many entries are in a state.
type stateCount struct {
	State string
	Count uint64

	IsSplit          bool   // the next two are known
	Waiting, Settled uint64 // those that need a person, and those that were closed or corrected
}

// BalanceStates returns the states that have entries, in their order, open ones apart.
func (b statusBody) BalanceStates() (ended []stateCount) {
	for _, s := range ledger.States() {
		if n := b.Balance.States[s.String()]; n > 0 && !s.IsOpen() {
			ended = append(ended, b.splitCount(s, n))
		}
	}
	return ended
}

// splitCount tells how many of n entries in a state wait for a person. Of a document that the archive contradicts, or has more than once, the
// needs do not say in which state it is: the rest is not known to be settled then.
func (b statusBody) splitCount(s ledger.State, n uint64) stateCount {
	c := stateCount{State: s.String(), Count: n}
	c.IsSplit = s == ledger.Rejected || s == ledger.Quarantined
	for _, need := range b.Needs {
		switch need.What {
		case c.State:
			c.Waiting += uint64(need.Count)
		case "contradicted", "archived-twice":
			c.IsSplit = false
		}
	}
	if c.IsSplit = c.IsSplit && c.Waiting <= n; c.IsSplit {
		c.Settled = n - c.Waiting
	}
	return c
}

// DescribeSplit says how many of a state need a person; empty: it is not known, or nobody is needed in this state.
func (f *frame) DescribeSplit(c stateCount) string {
	switch {
	case !c.IsSplit:
		return ""
	case c.Settled == 0:
		return f.T("needs a person: %d", c.Waiting)
	}
	return f.T("needs a person: %d; closed or corrected: %d", c.Waiting, c.Settled)
}

// OpenStates returns the states on the way that have entries.
func (b statusBody) OpenStates() (open []stateCount) {
	for _, s := range ledger.States() {
		if n := b.Open.States[s.String()]; n > 0 {
			open = append(open, stateCount{State: s.String(), Count: uint64(n)})
		}
	}
	return open
}

// Limit is after what time an open document needs a person.
func (b statusBody) Limit() time.Duration { return time.Duration(b.Open.Limit * float64(time.Second)) }

// vaultStatus is one vault with its drops.
type vaultStatus struct {
	ID          string // empty: of the drops of a route without vaults
	Route       string // empty: it is configured no more
	Today, Open int
	Delivered   int
	Delivers    bool   // what is taken is delivered, and never archived
	Group       string // what is taken and where it goes; empty: the vault says it
	Drops       []present.DropStatus
	Bills       []present.Bill
	IsLeftOver  bool // it is configured no more
}

// Vaults returns the vaults of the configuration in its order; drops that are not configured any more come last.
func (b statusBody) Vaults() (all []*vaultStatus) {
	for _, d := range b.Drops {
		i := slices.IndexFunc(all, func(v *vaultStatus) bool { return v.ID == d.Vault && (v.ID != "" || v.Route == d.Route) })
		if i < 0 {
			i = len(all)
			one := &vaultStatus{ID: d.Vault, Route: d.Route, Delivers: d.Delivers(), IsLeftOver: d.Vault == "" && !d.Delivers()}
			if one.Delivers {
				one.Group = present.WordsOf(ledger.Route(d.Route)).Group
			}
			all = append(all, one)
		}
		v := all[i]
		v.Today, v.Open, v.Drops = v.Today+d.Today, v.Open+d.Open, append(v.Drops, d)
		v.Delivered += d.Delivered
	}
	for _, bill := range b.Billing {
		for _, v := range all {
			if bill.Vault == v.ID && !v.Delivers {
				v.Bills = append(v.Bills, bill)
			}
		}
	}
	return all
}

// DescribeToday writes how many were archived today, or delivered: two numbers that are never added up.
func (f *frame) DescribeToday(archived, delivered int, delivers bool) string {
	switch {
	case archived < 0: // they are being counted
		return "–"
	case delivered == 0 && !delivers:
		return f.FormatNumber(archived)
	case archived == 0:
		return f.T("%d delivered", delivered)
	}
	return f.FormatNumber(archived) + ", " + f.T("%d delivered", delivered)
}

// DeliversOnlyPDFs reports whether no drop of the configuration delivers anything but single PDFs.
func (b statusBody) DeliversOnlyPDFs() bool {
	return !slices.ContainsFunc(b.Drops, func(d present.DropStatus) bool { return d.Delivers() && d.Route != string(ledger.PDF) })
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
