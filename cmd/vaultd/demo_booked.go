package main

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"vaultd/internal/books"
	"vaultd/internal/config"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/testdata"
)

// The days that the demo asks the books about.
const demoFrom, demoTo = "2026-10-01", "2026-10-31"

// sampleExtracts is how many extracts the demo's service offers.
const sampleExtracts = 3

// publishSampleExtracts makes the demo's service offer what was booked: an initial extract up to 28 October, a delta of the 29th and one of the
// 31st. Of the 30th nothing tells, and the invoice that was booked on the 29th is dropped by nobody.
func publishSampleExtracts(emu *emulator.Server) error {
	folder, err := fs.Sub(testdata.Extracts, "extracts")
	if err != nil {
		return err
	}
	return publishExtracts(emu, folder, time.Now())
}

// areExtractsHeld reports whether the demo took in every extract of its service.
func areExtractsHeld(l *boltledger.Ledger) (bool, error) {
	held := 0
	err := l.Arrivals(func(arrival.Arrival) error { held++; return nil }, arrival.Held)
	return held == sampleExtracts, err
}

// demoBooked prints which booked invoices are not archived.
func (a *app) demoBooked(ctx context.Context, l *boltledger.Ledger, cfg config.Config) error {
	areHeld, err := areExtractsHeld(l)
	if err != nil {
		return err
	}
	if !areHeld || ctx.Err() != nil { // the demo was stopped, or its time is over
		fmt.Fprintln(a.stdout, "\nBOOKED   the extracts are not held yet, so that it is not known what was booked")
		return nil
	}
	v := view{Clock: present.Clock{Now: time.Now(), Location: cfg.Location}, cfg: cfg, ledger: l}
	q, err := v.booksQuestion(booksFlags{from: demoFrom, to: demoTo})
	if err != nil {
		return err
	}
	return v.withBooks(ctx, q, func(answer *books.Answer) error {
		fmt.Fprintf(a.stdout, "\nBOOKED   %s to %s: %s, %d archived, %d not\nRESULT   %s\n", q.From, q.To,
			present.FormatCount(int(answer.Booked), "invoice", "invoices"), answer.Booked-answer.Missing(), answer.Missing(), answer.Result().Title)
		for _, hole := range answer.Coverage.Holes {
			fmt.Fprintf(a.stdout, "         %s\n", sanitize.Text(hole.String()))
		}
		fmt.Fprintln(a.stdout)
		t := present.NewTable(a.stdout, "BOOKED INVOICE", "OF", "DATE", "NOT ARCHIVED BECAUSE")
		err := answer.EachBooked(ctx, func(r books.Row) error {
			why := r.Verdict.Words()
			if r.Folder != "" {
				why += ", see " + sanitize.Text(r.Folder)
			}
			if r.Verdict != books.Archived {
				t.AppendRow(present.TableRow(sanitize.Text(r.Number), sanitize.Text(r.Supplier), string(r.Date), why))
			}
			return nil
		})
		t.Render()
		return err
	})
}
