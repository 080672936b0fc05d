package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/books"
	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

// bookedForAudit compares the time of the report with the books; nil: nothing is to be compared. That they cannot be asked does not stop the
// report, which then says so.
func (a *app) bookedForAudit(ctx context.Context, v view, f auditFlags) (p *report.BookedPart, err error) {
	s := f.sel
	if v.cfg.Books.Table == "" || f.Listed || s.SinceLast || s.Vault != "" || s.Drop != "" || len(s.States) > 0 {
		return nil, nil
	}
	from, to := periodOf(s)
	from = max(from, v.cfg.Books.From)
	if today := v.Now.In(v.Location).Format(time.DateOnly); to > today {
		to = max(today, from)
	}
	if to < from {
		return nil, nil // all of it is before the books begin
	}
	q, err := v.booksQuestion(booksFlags{from: from, to: to})
	if err == nil {
		err = v.withBooks(ctx, q, func(answer *books.Answer) error {
			p, err = report.NewBookedPart(ctx, &report.Books{Answer: answer, Info: v.ledger.Info(), Made: v.Now, Location: v.Location, Program: "vaultd " + buildVersion()})
			return err
		})
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, errOtherAnswer) {
		return nil, err // a report that says that nothing is known would be wrong a minute later
	}
	if err != nil {
		fmt.Fprintf(a.stderr, "what was booked is not known: %s\n", sanitize.Text(err.Error()))
		return report.NewBookedFault(err.Error()), nil
	}
	return p, nil
}

// periodOf returns the first and the last day of a selection.
func periodOf(s report.Selection) (from, to string) {
	switch {
	case s.Year == 0:
		return "", "9999-12-31"
	case s.Month == 0:
		return fmt.Sprintf("%04d-01-01", s.Year), fmt.Sprintf("%04d-12-31", s.Year)
	}
	first := time.Date(s.Year, s.Month, 1, 0, 0, 0, 0, time.UTC)
	return first.Format(time.DateOnly), first.AddDate(0, 1, -1).Format(time.DateOnly)
}
