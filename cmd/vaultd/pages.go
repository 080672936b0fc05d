package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/page"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/report"
	"vaultd/internal/spool"
)

// pageSource answers the HTML pages with what the running daemon knows.
type pageSource struct {
	h               *host
	historyPatience time.Duration // with the journal, for the page of one document

	report sync.Mutex // held while a report or an answer about booked invoices is made: each one reads the whole ledger

	mu      sync.Mutex
	history present.History  // guarded by mu
	drawnAt time.Time        // when it was read; guarded by mu
	drawnOf *catalog.Catalog // guarded by mu
}

func newPageSource(h *host) *pageSource { return &pageSource{h: h, historyPatience: historyPatience} }

// historyPatience is how long the journal is read for the page of one document.
// If a clock was set back, its lines may stand among those of millions of
// others.
const historyPatience = 2 * time.Second

// historyAge is how old the figures of the charts may be: they change slowly, and every open page asks for them every few seconds.
const historyAge = time.Minute

// enter returns the program as it is inside the current daemon, and what a command sees there.
func (s *pageSource) enter() (*app, view) {
	a := &app{stdout: io.Discard, stderr: io.Discard, uid: uint32(os.Geteuid())}
	s.h.putInside(a)
	return a, a.insideView()
}

// About implements page.Source.
func (s *pageSource) About() page.About {
	_, v := s.enter()
	host, _ := os.Hostname() // for people only
	return page.About{Clock: v.Clock, Host: host, Version: buildVersion(), Environment: v.cfg.Service.Environment, Books: booksSetup(v.cfg)}
}

// Status implements page.Source.
func (s *pageSource) Status(ctx context.Context) (present.StatusSummary, error) {
	_, v := s.enter()
	return v.collectStatus(ctx)
}

// checkDamage lets the daemon check the whole ledger soon where an answer met damage in it, as a command does.
func checkDamage(a *app, err error) error {
	if _, isDamaged := errors.AsType[*ledger.DamageError](err); isDamaged {
		a.inside.CheckNow()
	}
	return err
}

// History implements page.Source.
func (s *pageSource) History(ctx context.Context) (present.History, error) {
	_, v := s.enter()
	s.mu.Lock() // whoever asks meanwhile waits for the same answer
	defer s.mu.Unlock()
	if age := v.Now.Sub(s.drawnAt); s.drawnOf == v.catalog && age >= 0 && age < historyAge && s.history.Missing == "" {
		return s.history, nil
	}
	h, err := v.collectHistory(ctx)
	if err == nil {
		s.history, s.drawnAt, s.drawnOf = h, v.Now, v.catalog
	}
	return h, err
}

// Search implements page.Source.
func (s *pageSource) Search(ctx context.Context, words []string, after archive.Key, limit int) (f page.Found, err error) {
	a, v := s.enter()
	q := catalog.NewQuery(words)
	c, release := v.openCatalog()
	err = c.Search(ctx, q, after, func(string) {}, func(h catalog.Hit) error {
		if f.HasMore = len(f.Hits) == limit; f.HasMore {
			return errEnough
		}
		f.Hits = append(f.Hits, page.Hit{Entry: h.Entry, Metadata: h.Meta, AsRead: h.Read})
		return nil
	})
	lacks, isLacking := errors.AsType[*catalog.IncompleteError](err)
	switch {
	case errors.Is(err, errEnough):
		err = nil
	case isLacking:
		f.Lacks, err = lacks.Why, nil
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.IsCut, err = true, nil
	}
	if err := errors.Join(err, release()); err != nil || !after.IsZero() {
		return f, checkDamage(a, err)
	}
	f.NotTaken, err = v.findNotTaken(q.OccursIn)
	f.NotTaken = f.NotTaken[:min(len(f.NotTaken), limit)]
	return f, err
}

// Document implements page.Source.
func (s *pageSource) Document(ctx context.Context, key archive.Key) (present.Dossier, bool, error) {
	a, v := s.enter()
	e, ok, err := v.ledger.Entry(key)
	if err != nil || !ok {
		return present.Dossier{}, false, checkDamage(a, err)
	}
	patient, cancel := context.WithTimeout(ctx, s.historyPatience)
	defer cancel()
	d, err := present.ReadDossier(patient, v.ledger, e, v.Location)
	if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) { // all but some steps of the history is there
		err = nil
	}
	return d, true, checkDamage(a, err)
}

// Receipt implements page.Source.
func (s *pageSource) Receipt(user string, key archive.Key) ([]byte, error) {
	a, v := s.enter()
	e, ok, err := v.ledger.Entry(key)
	switch {
	case err != nil:
		return nil, checkDamage(a, err)
	case !ok:
		return nil, page.NoSuchDocument()
	}
	_, record, err := v.newEvidence(e)
	switch {
	case errors.Is(err, proof.ErrNoRecord):
		return nil, &page.Refusal{Status: http.StatusConflict, Text: present.WordsOf(e.Route).NoEvidence, Do: "Its page says what became of it."}
	case err == nil:
		s.h.log.Info("a person took a receipt", "user", user, "key", e.Key)
	}
	return record, err
}

// errNotInArchive says to the visitor that there is neither a receipt nor a download.
func errNotInArchive() error {
	return &page.Refusal{Status: http.StatusConflict, Text: "This document is not in the archive.", Do: "Its page says what became of it."}
}

// Download implements page.Source.
func (s *pageSource) Download(ctx context.Context, user string, key archive.Key, begin func(page.Delivery) io.Writer) error {
	a, v := s.enter()
	e, ok, err := v.ledger.Entry(key)
	switch {
	case err != nil:
		return checkDamage(a, err)
	case !ok:
		return page.NoSuchDocument()
	case e.State != ledger.Archived || e.ArchivedRemote == "":
		return errNotInArchive()
	}
	service, err := a.newServiceClient(v.cfg)
	if err != nil {
		return err
	}
	tmp, err := spool.NamelessFile(v.cfg.StateDir) // a crash leaves the folder as it was
	if err != nil {
		return err
	}
	defer tmp.Close()
	s.h.log.Info("a person downloads from the archive", "user", user, "key", e.Key)
	// The name stands beside the journal, where it can be erased; the journal has its digest.
	by := operator.Person{UID: a.uid, Reason: "on the pages, by the user " + user}
	got, err := a.downloadTo(ctx, v, service, archivedDownload(e), by, tmp)
	if err != nil {
		s.h.log.Warn("the download failed", "key", e.Key, "err", err)
		return refuseDownload(checkDamage(a, err), v.cfg.Billing.DownloadsPerMonth)
	}
	if _, err := tmp.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read the download: %w", err)
	}
	// An error from here on is the visitor's connection: the answer has begun, and the download stands in the journal.
	if _, err := io.Copy(begin(page.Delivery{Name: fileName(e), Size: got.size, Differs: got.outcome == ledger.FetchDiffers}), tmp); err != nil {
		s.h.log.Log(ctx, slog.LevelDebug, "a download was not delivered whole", "key", e.Key, "err", err)
	}
	return nil
}

// refuseDownload says to the visitor why there is no download. allowed is how many a month may have.
func refuseDownload(err error, allowed uint64) error {
	if coded, ok := errors.AsType[*codedError](err); ok && coded.code == exitPerson {
		if allowed == 0 {
			return &page.Refusal{Status: http.StatusForbidden, Text: "Downloads are switched off.", Do: "IT can allow them with billing.downloads_per_month."}
		}
		return &page.Refusal{Status: http.StatusTooManyRequests, Text: "The downloads of this month are used up.", Do: "They are counted anew from the first day of next month. IT can raise billing.downloads_per_month."}
	}
	service, isService := errors.AsType[*apicall.Error](err)
	_, isFull := errors.AsType[*spool.NoSpaceError](err)
	switch {
	case isFull && !isService:
		return &page.Refusal{Status: http.StatusInsufficientStorage, Text: "There is no room for the download on the disk of vaultd.", Do: "Nothing was downloaded. Tell IT: the disk is full."}
	case isService && service.Code == "local":
		return &page.Refusal{Status: http.StatusInsufficientStorage, Text: "vaultd could not store the download on its own disk.", Do: "The download was counted. Tell IT: the disk may be full."}
	case isService:
		return &page.Refusal{Status: http.StatusBadGateway, Text: "The archive did not deliver the document.", Do: "The download was counted. Look at how it stands, then try again later."}
	}
	return err
}

// Report implements page.Source.
func (s *pageSource) Report(ctx context.Context, user string, order page.ReportOrder, begin func(name string) io.Writer) error {
	return s.sendWhole(ctx, func(w io.Writer) error { return s.makeReport(ctx, order, w) }, func() io.Writer {
		// Before the first byte leaves: a connection that breaks half-way does
		// not hide what was read by then.
		s.h.log.Info("a person took a report", "user", user, "form", order.Form, "year", order.Year, "month", order.Month)
		return begin(reportName(order))
	})
}

// makeReport writes a report to w. One is made at a time.
func (s *pageSource) makeReport(ctx context.Context, order page.ReportOrder, w io.Writer) error {
	if !s.report.TryLock() {
		return errOtherReport()
	}
	defer s.report.Unlock()
	a, v := s.enter()
	c, err := v.auditConfig(a, report.Selection{Year: order.Year, Month: time.Month(order.Month)})
	if err != nil {
		return err
	}
	if order.Form == "html" { // the tables say nothing of the books
		if c.Booked, err = a.bookedForAudit(ctx, v, auditFlags{sel: c.Select}); err != nil {
			return s.refuseBooks(checkDamage(a, err))
		}
	}
	err = v.examine(ctx, a, c, sinceCheckpoint, func(r *report.Audit, _ []string) (err error) {
		switch order.Form {
		case "csv":
			_, err = r.CSV(ctx, w, order.Separator)
		case "xlsx":
			_, err = r.XLSX(ctx, w)
		default:
			_, err = r.HTML(ctx, w)
		}
		return err
	})
	if errors.Is(err, syscall.ENOSPC) {
		return s.refuseBooks(err)
	}
	return checkDamage(a, err)
}

// reportName names the file of a report.
func reportName(o page.ReportOrder) string {
	switch {
	case o.Month != 0:
		return fmt.Sprintf("archive-%d-%02d.%s", o.Year, o.Month, o.Form)
	case o.Year != 0:
		return fmt.Sprintf("archive-%d.%s", o.Year, o.Form)
	}
	return "archive." + o.Form
}
