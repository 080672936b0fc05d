package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"syscall"

	"vaultd/internal/books"
	"vaultd/internal/config"
	"vaultd/internal/page"
	"vaultd/internal/report"
	"vaultd/internal/spool"
)

// booksSetup says what the pages can ask about booked invoices; nil: nothing.
func booksSetup(cfg config.Config) *page.BooksSetup {
	if cfg.Books.Table == "" {
		return nil
	}
	return &page.BooksSetup{From: cfg.Books.From, HasCompany: len(cfg.Books.Columns.Company) > 0}
}

// Books implements page.Source.
func (s *pageSource) Books(ctx context.Context, q page.BooksQuestion, most int) (shown page.BooksAnswer, err error) {
	err = s.askBooks(ctx, q, func(_ view, answer *books.Answer) error {
		shown = showAnswer(answer)
		err := answer.EachMissing(ctx, func(r books.Row) error {
			if len(shown.Rows) == most {
				return errEnough
			}
			shown.Rows = append(shown.Rows, page.BookedRow{Number: r.Number, Supplier: r.Supplier, Company: r.Company, Date: string(r.Date), Amount: string(r.Amount), Currency: r.Currency,
				Verdict: r.Verdict.Words(), Found: r.Found, Folder: r.Folder, Key: r.Entry})
			return nil
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		return err
	})
	return shown, err
}

// showAnswer is what the page says of an answer before its rows.
func showAnswer(a *books.Answer) page.BooksAnswer {
	c := a.Coverage
	shown := page.BooksAnswer{Result: a.Result().Code, Safe: a.Question.Safe, Extracts: c.Extracts, Records: c.Records, NoKey: c.NoKey, Until: c.Until,
		Booked: a.Booked, Archived: a.Counts[books.Archived], Missing: a.Missing(), Unbooked: a.Unbooked}
	for _, h := range c.Holes {
		shown.Holes = append(shown.Holes, page.BooksHole{First: string(h.First), Last: string(h.Last), IsAtEnd: h.AtEnd, Series: h.Series()})
	}
	for _, p := range a.Problems {
		shown.Problems = append(shown.Problems, p.String())
	}
	for _, d := range c.Changes {
		shown.Changes = append(shown.Changes, d.String())
	}
	for _, v := range books.Verdicts() {
		if n := a.Counts[v]; n > 0 || v == books.Archived {
			shown.Verdicts = append(shown.Verdicts, page.BooksCount{Words: v.Words(), Count: n})
		}
	}
	for _, sum := range a.Sums {
		shown.Sums = append(shown.Sums, page.BooksSum{Currency: sum.Currency, Booked: sum.Booked.Total, Archived: sum.Archived.Total, Missing: sum.Missing.Total})
	}
	return shown
}

// WriteBooks implements page.Source.
func (s *pageSource) WriteBooks(ctx context.Context, user string, q page.BooksQuestion, form string, separator rune, begin func(name string) io.Writer) error {
	return s.sendWhole(ctx, func(w io.Writer) error {
		return s.askBooks(ctx, q, func(v view, answer *books.Answer) error {
			host, _ := os.Hostname() // for people only
			r := &report.Books{Answer: answer, Info: v.ledger.Info(), Made: v.Now, Location: v.Location, Program: "vaultd " + buildVersion(), Host: host}
			return writeBooks(ctx, r, booksFlags{format: form, separator: string(separator)}, w)
		})
	}, func() io.Writer {
		s.h.log.Info("a person took an answer about booked invoices", "user", user, "form", form, "from", q.From, "to", q.To)
		return begin(booksName(q, form))
	})
}

// sendWhole sends what write writes, once all of it is there: a fault is told in
// words, and a visitor who reads slowly holds up no other answer. begin starts
// the answer.
func (s *pageSource) sendWhole(ctx context.Context, write func(io.Writer) error, begin func() io.Writer) error {
	_, v := s.enter()
	tmp, err := spool.NamelessFile(v.cfg.StateDir) // a crash leaves the folder as it was
	if err != nil {
		return err
	}
	defer tmp.Close()
	bounded := &boundedFile{file: tmp, check: func() error { return spool.CheckMinFree(v.cfg.StateDir, v.cfg.Spool.MinFree) }}
	if err := bounded.check(); err != nil {
		return s.refuseBooks(err)
	}
	if err := write(bounded); err != nil {
		return err
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	// An error from here on is the visitor's connection.
	if _, err := io.Copy(begin(), tmp); err != nil {
		s.h.log.Log(ctx, slog.LevelDebug, "an answer was not delivered whole", "err", err)
		panic(http.ErrAbortHandler) // only a broken connection tells the visitor that the file is not whole
	}
	return nil
}

// booksName names the file of an answer.
func booksName(q page.BooksQuestion, form string) string {
	return fmt.Sprintf("books-%s-%s.%s", q.From, q.To, form)
}

// askBooks calls do with the answer, unless another one or a report is being made for the pages. It says to the visitor why there is none.
func (s *pageSource) askBooks(ctx context.Context, q page.BooksQuestion, do func(view, *books.Answer) error) error {
	if !s.report.TryLock() {
		return errOtherReport()
	}
	defer s.report.Unlock()
	a, v := s.enter()
	question, err := v.booksQuestion(booksFlags{from: q.From, to: q.To, company: q.Company})
	if err == nil {
		err = v.withBooks(ctx, question, func(answer *books.Answer) error { return do(v, answer) })
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	return s.refuseBooks(checkDamage(a, err))
}

// errOtherReport says to the visitor that the pages make one report at a time.
func errOtherReport() error {
	return &page.Refusal{Status: http.StatusServiceUnavailable, Text: "Another report is being made.", Do: "Wait until it is done, then ask again."}
}

// refuseBooks says to the visitor why there is no answer, as far as somebody can do something about it.
func (s *pageSource) refuseBooks(err error) error {
	coded, isCoded := errors.AsType[*codedError](err)
	unknown, isUnknown := errors.AsType[*books.UnknownCompanyError](err)
	switch {
	case isUnknown:
		return &page.Refusal{Status: http.StatusNotFound, Text: "No booked invoice is of this company.", Do: "Go back and write its name as the books have it.", Detail: strings.Join(unknown.Near, ", ")}
	case errors.Is(err, errOtherAnswer):
		return errOtherReport()
	case errors.Is(err, syscall.ENOSPC):
		return &page.Refusal{Status: http.StatusInsufficientStorage, Text: "There is no room for the answer on the disk of vaultd.", Do: "Tell IT: the disk is full."}
	case isCoded:
		s.h.log.Warn("the books could not be compared for the pages", "err", err)
		return &page.Refusal{Status: http.StatusServiceUnavailable, Text: "The books cannot be compared with the archive now.", Do: "Tell IT what stands here.", Detail: strings.TrimSuffix(err.Error()+"; "+coded.hint, "; ")}
	}
	return err
}
