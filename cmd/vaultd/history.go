package main

import (
	"cmp"
	"context"
	"errors"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// collectHistory gathers what the page draws. It costs the same whatever the
// ledger holds: it reads figures and a bounded number of rows and entries. What
// the catalog does not have now is left out, and the history says why: a page
// that shows zeros would say that nothing was archived.
func (v view) collectHistory(ctx context.Context) (h present.History, err error) {
	h = present.NewHistory(v.Clock)
	since := time.Date(h.Months[0].Year, h.Months[0].Month, 2, 0, 0, 0, 0, v.Location) // the second: a zone may have no midnight on the first
	c, release := v.openCatalog()
	defer func() { err = errors.Join(err, release()) }()
	lacks, err := c.CatchUp(ctx)
	if err == nil {
		err = v.addFigures(ctx, c, &h, since)
	}
	damage, isDamage := errors.AsType[*ledger.DamageError](err)
	incomplete, isIncomplete := errors.AsType[*catalog.IncompleteError](err)
	switch {
	case isDamage:
		return present.History{Missing: damage.Error()}, nil
	case isIncomplete:
		return present.History{Missing: cmp.Or(lacks, incomplete.Why)}, nil
	case err != nil:
		return h, err
	}
	h.Missing = lacks
	if err := v.addRows(ctx, c, &h, since.AddDate(0, 0, -2)); err != nil {
		if ctx.Err() != nil {
			return h, context.Cause(ctx)
		}
		h.Missing = err.Error()
	}
	return h, nil
}

// addFigures adds what the archive archived: the days, the months from that of
// a time on, and the shares; and what was delivered on the days of these
// months, which is counted by itself.
func (v view) addFigures(ctx context.Context, c *catalog.Catalog, h *present.History, since time.Time) error {
	byDay, err := c.CompletedByDay(ctx, ledger.Archived, v.Now, present.HistoryDays)
	if err != nil {
		return err
	}
	for i, n := range byDay {
		h.Days[i].Archived = uint64(n)
	}
	first, last := h.DaysOfMonths()
	noonOfLast := time.Date(last.Year(), last.Month(), last.Day(), 12, 0, 0, 0, v.Location)
	delivered, err := c.CompletedByDay(ctx, ledger.Delivered, noonOfLast, int(last.Sub(first)/(24*time.Hour))+1)
	if err != nil {
		return err
	}
	h.AddDelivered(delivered)
	totals, err := c.Totals(ctx, since)
	if err != nil {
		return err
	}
	for _, t := range totals {
		if of := h.MonthOf(t.Year, time.Month(t.Month)); of != nil {
			of.Archived += t.Documents
		}
	}
	h.Shares, err = v.sharesOf(totals)
	return err
}

// sharesOf returns which share of what is included each vault uses this year.
func (v view) sharesOf(totals []ledger.Total) ([]present.VaultShare, error) {
	bills, err := calculateBills(totals, v.cfg, v.Now)
	if err != nil {
		return nil, err
	}
	now, rule := v.Now.In(v.Location), billing.Rule{Included: v.cfg.Billing.Included}
	var shares []present.VaultShare
	for _, b := range bills {
		if b.Year != now.Year() {
			continue
		}
		one := present.VaultShare{Vault: string(b.Vault), Year: b.Year, Included: cmp.Or(rule.Included, archive.MB)}
		for _, m := range rule.MonthShares(totals, b.Vault, b.Year, int(now.Month())) {
			one.Used = append(one.Used, present.MonthShare{Month: time.Month(m.Month), Share: m.Share})
		}
		if f := b.Forecast; b.HasForecast {
			one.Forecast = &present.ShareForecast{Share: rule.ShareOf(f.Average), Lowest: rule.ShareOf(f.Lowest), Highest: rule.ShareOf(f.Highest)}
		}
		shares = append(shares, one)
	}
	if len(shares) == 2 { // the customer and the only vault
		shares = shares[1:]
	}
	return shares, nil
}

// addRows adds what is found by way of the rows: the rejected folders since a time, and the delays.
func (v view) addRows(ctx context.Context, c *catalog.Catalog, h *present.History, since time.Time) error {
	taken, err := c.RejectedSince(ctx, since, present.RejectedAtMost+1)
	if err != nil {
		return err
	}
	delays, err := v.newestDelays(ctx, c, ledger.Archived)
	if err != nil {
		return err
	}
	delivered, err := v.newestDelays(ctx, c, ledger.Delivered)
	if err != nil {
		return err
	}
	h.SetDelays(delays, delivered)
	if h.IsRejectedCut = len(taken) > present.RejectedAtMost; h.IsRejectedCut {
		taken = taken[:present.RejectedAtMost]
	}
	for _, t := range taken {
		h.AddRejected(t.In(v.Location))
	}
	return nil
}

// newestDelays returns how long each of the newest archived or delivered documents took, as the ledger has them.
func (v view) newestDelays(ctx context.Context, c *catalog.Catalog, state ledger.State) (delays []time.Duration, err error) {
	keys, err := c.NewestIn(ctx, state, present.DelaysAtMost)
	for _, k := range keys {
		e, _, err := v.ledger.Entry(k)
		if err != nil {
			return nil, err
		}
		if took, known := e.CompletionTime(); known && e.State == state {
			delays = append(delays, took)
		}
	}
	return delays, err
}
