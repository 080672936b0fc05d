package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/books"
	"vaultd/internal/config"
	"vaultd/internal/custody"
	"vaultd/internal/expected"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/present"
	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

type booksFlags struct {
	from, to  string // days; empty: books.from, and today
	company   string
	index     bool
	format    string // text, html, csv, xlsx or json
	separator string // of csv
	output    string // empty or "-": standard output
	force     bool
}

var booksFormats = []string{"text", "html", "csv", "xlsx", "json"}

func (a *app) booksCommand() *cobra.Command {
	var f booksFlags
	c := &cobra.Command{
		Use:   "books",
		Short: "which booked invoices are not in the archive",
		Long: `Compares what the accounts-payable system booked, as its extracts tell it, with what is
in the archive. It says RESULT first, then for which days the extracts tell anything,
then every booked invoice that is not archived and why: never dropped, rejected, on the
way, or only a number that is alike; then what is archived and not booked.

A booked invoice counts as archived only where exactly one archived document has its
number and nothing differs that both say: supplier, company, amount, currency, date. It
ends with 4 where a booked invoice is not archived, or where something is not known: a
day that no extract covers makes every answer NOT COMPLETE.

--from and --to are days of the invoices, as the books have them. --index also reads the
archive's own index, of every vault: a document that others archived is found there, and
one that the archive lost is not called archived.

FILE may be .html (a page for screen and paper), .csv, .xlsx or .json, which have every
invoice. books in the configuration says which records are booked invoices; the new ones
of held extracts are read first, and the first time that can take a minute.`,
		Example: `  vaultd books --from 2026-10-01 --to 2026-10-31
  vaultd books --from 2026-10-01 --to 2026-10-31 --company "Acme GmbH" --index -o october.html`,
		Args: expectArgs(),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.complete(a.json); err != nil {
				return err
			}
			return a.runBooks(c, args, f)
		},
	}
	c.Flags().StringVar(&f.from, "from", "", "the first `day`, such as 2026-10-01 (default: books.from)")
	c.Flags().StringVar(&f.to, "to", "", "the last `day` (default: today)")
	c.Flags().StringVar(&f.company, "company", "", "only invoices to this `company`, as the books name it")
	c.Flags().BoolVar(&f.index, "index", false, "also read the archive's own index")
	c.Flags().StringVar(&f.format, "format", "", "text, html, csv, xlsx or json (default: as the file's name ends)")
	c.Flags().StringVar(&f.separator, "separator", ",", `of csv: "," or ";"`)
	c.Flags().StringVarP(&f.output, "output", "o", "", "`FILE` to write; - is standard output (the default)")
	c.Flags().BoolVar(&f.force, "force", false, "overwrite FILE")
	return c
}

// complete checks the flags and fills in what they leave open.
func (f *booksFlags) complete(asJSON bool) error {
	f.format = strings.ToLower(f.format)
	end := strings.ToLower(strings.TrimPrefix(filepath.Ext(f.output), "."))
	if end == "htm" {
		end = "html"
	}
	switch {
	case asJSON && f.format != "" && f.format != "json":
		return usageError{fmt.Errorf("--json and --format %s are not the same", f.format)}
	case asJSON:
		f.format = "json"
	case f.format == "" && f.output != "" && f.output != "-" && end != "txt":
		f.format = end
	case f.format == "":
		f.format = "text"
	}
	if !slices.Contains(booksFormats, f.format) {
		return usageError{fmt.Errorf("%q is no format that is known: html, csv, xlsx or json; say which with --format", sanitize.Text(f.format))}
	}
	if f.separator != "," && f.separator != ";" {
		return usageError{fmt.Errorf(`%q is no separator; known are "," and ";"`, f.separator)}
	}
	for name, text := range map[string]string{"--from": f.from, "--to": f.to} {
		if day, err := time.Parse(time.DateOnly, text); text != "" && (err != nil || day.Year() < 1970) {
			return usageError{fmt.Errorf("%s %q is not a day; write it as 2026-10-31", name, sanitize.Text(text))}
		}
	}
	if f.from != "" && f.to != "" && f.to < f.from {
		return usageError{fmt.Errorf("--to %s is before --from %s", f.to, f.from)}
	}
	return nil
}

func (a *app) runBooks(c *cobra.Command, args []string, f booksFlags) error {
	toStdout := f.output == "" || f.output == "-"
	if a.inside != nil {
		if !toStdout { // it would be written with the daemon's rights
			return usageError{errors.New("the daemon writes no files for others")}
		}
		return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.booksInto(ctx, v, f, a.stdout) })
	}
	cfg, err := a.configForAsking()
	if err != nil {
		return err
	}
	request := commandLine(c, args, map[string]string{"output": "-", "format": f.format})
	write := func(w io.Writer) error {
		return a.runThroughDaemon(c.Context(), cfg, request, w, func(ctx context.Context, v view) error {
			defer a.useMemory(reportMemory)()
			return a.booksInto(ctx, v, f, w)
		})
	}
	if toStdout {
		return write(a.stdout)
	}
	return a.fillFile(newFile{path: f.output, mode: 0o640, overwrite: f.force, what: "report", skipped: "written", keptCode: exitDifferences,
		hint: "name another file with -o, or overwrite it with --force"}, write)
}

// booksInto answers and writes the report.
func (a *app) booksInto(ctx context.Context, v view, f booksFlags, w io.Writer) error {
	q, err := v.booksQuestion(f)
	if err != nil {
		return err
	}
	if f.index {
		q.Index = a.indexForBooks(ctx, v.cfg)
	}
	return v.withBooks(ctx, q, func(answer *books.Answer) error {
		host, _ := os.Hostname() // for people only
		r := &report.Books{Answer: answer, Info: v.ledger.Info(), Made: v.Now, Location: v.Location, Program: "vaultd " + buildVersion(), Host: host, By: present.UserName(a.uid)}
		if err := writeBooks(ctx, r, f, w); err != nil {
			return err
		}
		if f.format != "text" {
			result := answer.Result()
			fmt.Fprintf(a.stderr, "%s: %s\n", result.Title, sanitize.Text(result.Text))
		}
		if answer.HasDifferences() {
			return failSilently(exitDifferences)
		}
		return nil
	})
}

func writeBooks(ctx context.Context, r *report.Books, f booksFlags, w io.Writer) error {
	switch f.format {
	case "html":
		return r.HTML(ctx, w)
	case "csv":
		return r.CSV(ctx, w, rune(f.separator[0]))
	case "xlsx":
		return r.XLSX(ctx, w)
	case "json":
		return r.JSON(ctx, w)
	default:
		return r.Text(ctx, w)
	}
}

// booksQuestion is what the flags ask for.
func (v view) booksQuestion(f booksFlags) (books.Question, error) {
	c := v.cfg.Books
	if c.Table == "" {
		return books.Question{}, fail(exitConfig, errors.New("the configuration does not say which records of the extracts are booked invoices"), "see books in docs/configuration.md, and docs/books.md")
	}
	q := books.Question{From: books.Day(f.from), To: books.Day(f.to), Company: f.company, Now: v.Now}
	if q.From == "" {
		q.From = books.Day(c.From)
	}
	if q.To == "" {
		q.To = max(books.Day(v.Now.In(v.Location).Format(time.DateOnly)), q.From)
	}
	switch {
	case q.From < books.Day(c.From):
		return q, usageError{fmt.Errorf("--from %s is before %s, from which on books.from says that invoices were dropped here", f.from, c.From)}
	case q.To < q.From:
		return q, usageError{fmt.Errorf("--to %s is before %s", string(q.To), string(q.From))}
	case q.Company != "" && len(c.Columns.Company) == 0:
		return q, usageError{errors.New("--company needs books.columns.company in the configuration")}
	}
	if s, is := v.ledger.SafeMode(); is {
		q.Safe = v.unknownSince(s)
	}
	return q, nil
}

// errOtherAnswer says that another answer took too long to be waited for.
var errOtherAnswer = errors.New("another answer about booked invoices is being made")

// booksPatience is how long one answer waits for another inside the daemon.
const booksPatience = 2 * time.Minute

// takeBooksTurn waits until the daemon makes no other answer about booked invoices: one fills up to 256 MB, two at once would take them
// from the work. leave lets the next one begin. A command that runs alone waits for nobody.
func (v view) takeBooksTurn(ctx context.Context) (leave func(), err error) {
	if v.booksTurn == nil {
		return func() {}, nil
	}
	patient, cancel := context.WithTimeoutCause(ctx, booksPatience, fail(exitTemporary, errOtherAnswer, "try again when it is done"))
	defer cancel()
	select {
	case v.booksTurn <- struct{}{}:
		return func() { <-v.booksTurn }, nil
	case <-patient.Done():
		return nil, context.Cause(patient)
	}
}

// withBooks folds the extracts that are held, and calls do with the answer.
func (v view) withBooks(ctx context.Context, q books.Question, do func(*books.Answer) error) (err error) {
	leave, err := v.takeBooksTurn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	held, err := v.openCustody()
	if err != nil {
		return err
	}
	defer held.Close() // still unwritten
	b, err := books.Open(ctx, v.cfg.StateDir, bookSettings(v.cfg), held)
	if err != nil {
		return fail(exitIO, err, "")
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	recorded, err := v.recordedExtracts()
	if err != nil {
		return err
	}
	problems, err := b.Update(ctx, recorded)
	if lost, is := errors.AsType[*books.DefinitionError](err); is {
		return fail(exitConfig, lost, "correct books in the configuration: no extract that is held has that column. A column may have several names")
	}
	if err != nil {
		return err
	}
	answer, err := b.Answer(ctx, q, v.ledger, problems)
	if _, is := errors.AsType[*books.UnknownCompanyError](err); is {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	return errors.Join(do(answer), answer.Close())
}

// recordedExtracts returns the extracts that the ledger has as held.
func (v view) recordedExtracts() (map[archive.ExtractID]books.Recorded, error) {
	recorded := map[archive.ExtractID]books.Recorded{}
	err := v.ledger.Arrivals(func(x arrival.Arrival) error {
		if x.Kind == arrival.Extract && !x.Manifest.IsZero() {
			recorded[x.Item] = books.Recorded{Manifest: x.Manifest, End: x.End}
		}
		return nil
	}, arrival.States()...)
	return recorded, err
}

// openCustody opens the folder of the extracts. A folder without its mark is not ours: opening it would mark it, and a question makes
// nothing.
func (v view) openCustody() (*custody.Custody, error) {
	path := v.cfg.Extracts.Custody
	if _, err := os.Stat(filepath.Join(path, "custody.json")); err != nil {
		return nil, fail(exitDifferences, fmt.Errorf("the custody folder is not there: %w", err), "look at extracts.custody and its disk; restore it from a copy")
	}
	info := v.ledger.Info()
	c, err := custody.Open(path, info.ID, info.Environment, nil)
	if err != nil {
		return nil, fail(exitDifferences, err, "look at extracts.custody")
	}
	return c, nil
}

// bookSettings are the settings as the configuration has them.
func bookSettings(cfg config.Config) books.Settings {
	c := cfg.Books
	columns := books.Columns{Key: c.Columns.Key, Number: c.Columns.Number, Supplier: c.Columns.Supplier, Company: c.Columns.Company, Date: c.Columns.Date,
		Amount: c.Columns.Amount, Currency: c.Columns.Currency, Type: c.Columns.Type}
	s := books.Settings{Table: c.Table, Columns: columns, Booked: c.Booked.Column, Values: c.Booked.Values, Credit: c.Credit, From: books.Day(c.From),
		Encoding: cfg.Extracts.CSV.Encoding, Location: cfg.Location}
	s.Separator = map[string]rune{"comma": ',', "semicolon": ';', "tab": '\t', "bar": '|'}[cfg.Extracts.CSV.Separator]
	s.Decimal = map[string]expected.Shown{".": '.', ",": ','}[cfg.Extracts.CSV.Decimal]
	return s
}

// indexForBooks reads the archive's own index of each vault.
func (a *app) indexForBooks(ctx context.Context, cfg config.Config) books.Index {
	return func(each func(archive.IndexRecord) error) (all []books.IndexRead, err error) {
		service, err := a.newServiceClient(cfg)
		if err != nil {
			return nil, err
		}
		for _, vault := range vaultsOf(cfg) {
			result, _, err := service.ReadIndex(ctx, vault, func(records []archive.IndexRecord) error {
				for _, r := range records {
					if err := each(r); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				return nil, fmt.Errorf("read the index of vault %s: %w", vault, err)
			}
			all = append(all, books.IndexRead{Vault: vault, Read: result.Read, Found: result.Found, Complete: result.Complete, Why: result.Why})
		}
		return all, nil
	}
}
