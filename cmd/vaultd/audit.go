package main

import (
	"bytes"
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
	"golang.org/x/term"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/expected"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/recovery"
	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

type auditFlags struct {
	year      int
	month     string // such as 2026-10; empty: the whole year
	vault     string
	drop      string
	states    string
	format    string // empty: as the file's name ends, else html
	separator string // of csv
	output    string // empty or "-": standard output
	force     bool
	expected  string // the file with the list of what was expected; may be empty
	columns   string // what its columns are called
	decimal   string // how it writes amounts: comma or point; empty: as the amounts show
	sinceLast bool   // go on from the last such report
	whole     bool   // examine the whole ledger, whatever was examined before
	asOf      string // the time of the report; empty: now

	auditHandover
	sel report.Selection
}

// auditHandover is what a client adds to an audit that the daemon makes for it.
// It follows from flags that are about the client's own files.
type auditHandover struct {
	Beside   string `json:"beside,omitempty"`   // the folder in which the report is to lie; empty: unknown
	Stem     string `json:"stem,omitempty"`     // of the names of the files beside the page; may be empty
	Listed   bool   `json:"listed,omitempty"`   // the list comes as input
	Reported uint64 `json:"reported,omitempty"` // the line up to which a report of --since-last was written: note that; zero: make a report
}

var auditFormats = []string{"html", "csv", "json", "xlsx"}

const auditLong = `Writes the audit: the result in plain words, the balance, what needs a person, what
it costs, what people did and what nobody can prove; then every folder. It examines the
ledger as vaultd verify does; what does not agree stands at the top. It asks nobody, and
changes nothing in the ledger.

Exit code 0: COMPLETE in one of its forms, NOTHING FOUND, or A PART ONLY (--state). Exit
code 4: NOT COMPLETE, SAFE MODE, or the ledger differs from its journal. The report is
written in both cases.

Like verify it goes on from the checkpoint of the last examination, and leaves one: it
replays the lines that came since, and holds every entry against them that is on its way
or that one of them is about. All other entries are read and counted. The report and the
command say which lines were examined when. Where anything differs, where there is no
checkpoint that can be used, with --as-of and with --whole everything is examined.

--year and --month go by the document's date, and where there is none by the day on which
the folder was taken; the bill goes by the year in which the archive said "archived". What
was taken in that time and bears a date that can hardly be right is named as a remark.
A folder that is rejected, quarantined or on the way is named in every year and month to
which it may belong: by its date as read, by the day on which it was taken, and, without
a date that can be right, in each that ended at most thirteen months before that day.

html is one page for screen and paper, of at most 3 MB. It has every folder up to 2,000
of them; of more it has the newest 200, and the complete table lies beside FILE under
its name with .csv and .xlsx. json is the same as one object, with every folder.

csv and xlsx are the table alone, and so without what was not taken. csv has commas
(--separator ";" for spreadsheets that want it) and UTF-8 with a byte order mark. xlsx
has dates as dates, in UTC, and amounts as numbers; an amount of more than 15 digits,
which a spreadsheet would round, is a text. No cell of either is a formula. Without
--format the end of the file's name decides.

--expected LIST compares with a list of what was expected, such as an export of the
bookkeeping for the same choice: CSV (with semicolons, commas or tabs; in UTF-8 or
Windows-1252) or XLSX, with a column of the document's number and, where it has them, of
sender, date, amount and currency. The report says COMPLETE only when everything on such
a list is archived as listed. Without a list, and with books in the configuration, it
compares with what the extracts say was booked in that time (see vaultd books), unless
--vault, --drop or --state leave something out. --columns says what its columns are called, where vaultd
does not know them: --columns "number=Beleg-Nr.,amount=". No name: do not compare it. LIST is a
file; - is standard input, for what another program writes.

--since-last makes a monthly report: what was on its way at the last one, and what was
taken since. It names documents that came late, of a month that was over at the last
report. When the page is written, a line of the journal says up to which line it went.

--as-of gives the report a time: the same ledger, arguments and time give the same
bytes, and so it rests on no checkpoint. Where FILE is a folder, the report is named by its day.

What the sidecar of a rejected folder or of a duplicate says is shown as read; nobody
checked it, and no sum counts it. Each kept folder is shown with the place of its receipt.
Where FILE is an html page in a drop folder (in _archived, for instance) or in a folder
above it, that place is a link, which works wherever the page is opened from there.`

func (a *app) auditCommand() *cobra.Command {
	var f auditFlags
	c := &cobra.Command{
		Use:   "audit",
		Short: "the report: what was dropped, what became of it, what is not proven",
		Long:  auditLong,
		Example: `  vaultd audit -o audit.html
  vaultd audit --year 2026 --drop acme-in -o 2026.html
  vaultd audit --month 2026-10 -o october.html
  vaultd audit --year 2026 --expected bookkeeping.csv -o 2026.html
  vaultd audit --since-last -o /srv/reports/
  vaultd audit --state rejected,quarantined --format csv --separator ";" -o todo.csv
  vaultd audit --format json | jq .result`,
		Args: expectArgs(),
		RunE: func(c *cobra.Command, args []string) error {
			if a.handover != nil {
				f.auditHandover = *a.handover
			}
			if err := f.completeFlags(a.json); err != nil {
				return err
			}
			return a.runAudit(c, args, f)
		},
	}
	f.addTo(c)
	return c
}

// addTo makes the flags of the command.
func (f *auditFlags) addTo(c *cobra.Command) {
	c.Flags().IntVar(&f.year, "year", 0, "only documents of this `year`")
	c.Flags().StringVar(&f.month, "month", "", "only documents of this `month`, such as 2026-10")
	c.Flags().StringVar(&f.vault, "vault", "", "only what goes to the vault of this `id`")
	c.Flags().StringVar(&f.drop, "drop", "", "only what came from the drop of this `name`")
	c.Flags().StringVar(&f.states, "state", "", "only these `states`, separated by commas; see vaultd list")
	c.Flags().StringVar(&f.format, "format", "", "html, csv, xlsx or json")
	c.Flags().StringVar(&f.separator, "separator", ",", `of csv: "," or ";"`)
	c.Flags().StringVarP(&f.output, "output", "o", "", "`FILE` to write; - is standard output (the default)")
	c.Flags().BoolVar(&f.force, "force", false, "overwrite FILE")
	c.Flags().StringVar(&f.expected, "expected", "", "compare with the `LIST` of what was expected: CSV or XLSX; - is standard input")
	c.Flags().StringVar(&f.columns, "columns", "", "what its columns are called, as `FIELD=NAME,...`; the fields are number, sender, date, amount, currency")
	c.Flags().StringVar(&f.decimal, "decimal", "", "how it writes amounts: comma or point; only where the amounts do not show it")
	c.Flags().BoolVar(&f.sinceLast, "since-last", false, "only what was on its way or was taken since the last report with this flag")
	c.Flags().BoolVar(&f.whole, "whole", false, "examine the whole ledger, whatever was examined before")
	c.Flags().StringVar(&f.asOf, "as-of", "", "the `TIME` that the report gives as its own: 2026-11-01 or 2026-11-01T15:04:05+01:00; not before the journal's last line")
}

// completeFlags checks the flags and fills in what they leave open.
func (f *auditFlags) completeFlags(asJSON bool) error {
	f.format = strings.ToLower(f.format)
	if asJSON && f.format != "" && f.format != "json" {
		return usageError{fmt.Errorf("--json and --format %s are not the same", f.format)}
	}
	end := strings.ToLower(strings.TrimPrefix(filepath.Ext(f.output), "."))
	switch {
	case asJSON:
		f.format = "json"
	case f.format == "" && slices.Contains(auditFormats, end):
		f.format = end
	case f.format == "" && end == "htm":
		f.format = "html"
	case f.format == "" && end != "":
		return usageError{fmt.Errorf("the name %q ends in no format that is known (html, csv, xlsx, json); say which with --format", sanitize.Text(filepath.Base(f.output)))}
	case f.format == "":
		f.format = "html"
	}
	states, err := parseStates(f.states)
	switch {
	case err != nil:
		return err
	case !slices.Contains(auditFormats, f.format):
		return usageError{fmt.Errorf("%q is no format; known are html, csv, xlsx and json", f.format)}
	case f.format == "html" && (end == "csv" || end == "xlsx"): // the table of a long page would get the same name
		return usageError{fmt.Errorf("the name %q is one of a table, and the format is html; name the page FILE.html", sanitize.Text(filepath.Base(f.output)))}
	case f.separator != "," && f.separator != ";":
		return usageError{fmt.Errorf(`%q is no separator; known are "," and ";"`, f.separator)}
	case f.decimal != "" && f.decimal != "comma" && f.decimal != "point":
		return usageError{fmt.Errorf("--decimal %q is not known; known are comma and point", f.decimal)}
	case f.expected == "" && (f.columns != "" || f.decimal != ""):
		return usageError{errors.New("--columns and --decimal are about the list of --expected")}
	case (f.expected != "" || f.Listed) && f.states != "":
		return usageError{errors.New("--expected says what should be archived; it cannot go with --state")}
	case f.sinceLast && (f.year != 0 || f.month != "" || f.vault != "" || f.drop != "" || f.states != ""):
		return usageError{errors.New("--since-last goes on from the last report, which had everything; it cannot go with another choice")}
	case f.sinceLast && (f.format != "html" || (f.output == "" || f.output == "-") && f.Stem == ""):
		return usageError{errors.New("--since-last needs a page in a file: the next one goes on from what was written; say it with -o FILE.html")}
	case f.year != 0 && (f.year < 1970 || f.year > 9999):
		return usageError{fmt.Errorf("%d is no year", f.year)}
	}
	var month time.Month
	if f.month != "" {
		first, err := time.Parse("2006-01", f.month)
		switch {
		case err != nil || first.Year() < 1970:
			return usageError{fmt.Errorf("%q is no month; write it as 2026-10", sanitize.Text(f.month))}
		case f.year != 0 && f.year != first.Year():
			return usageError{fmt.Errorf("--month %s is not in --year %d", f.month, f.year)}
		}
		f.year, month = first.Year(), first.Month()
	}
	f.sel = report.Selection{Year: f.year, Month: month, Vault: archive.VaultID(f.vault), Drop: f.drop, States: states, SinceLast: f.sinceLast}
	return nil
}

func (a *app) runAudit(c *cobra.Command, args []string, f auditFlags) error {
	if info, err := os.Stat(f.output); err == nil && info.IsDir() {
		f.output = filepath.Join(f.output, "report-"+time.Now().Format(time.DateOnly)+"."+f.format)
	}
	toStdout := f.output == "" || f.output == "-"
	switch out, isFile := a.stdout.(*os.File); {
	case toStdout && (f.format == "html" || f.format == "xlsx") && isFile && term.IsTerminal(int(out.Fd())):
		return fail(exitUsage, fmt.Errorf("%s is nothing for a terminal", f.format), "vaultd audit -o audit."+f.format+", then open it")
	case a.inside != nil && !toStdout: // it would be written with the daemon's rights
		return usageError{errors.New("the daemon writes no files for others")}
	case a.inside != nil && f.expected != "":
		return usageError{errors.New("the daemon reads no files for others")}
	case a.inside != nil && f.Reported > 0:
		return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.markReported(ctx, v, f.Reported) })
	case a.inside != nil:
		return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.auditInto(ctx, v, f, a.stdout) })
	}
	cfg, err := a.configForAsking()
	if err != nil {
		return err
	}
	list, err := a.readExpected(f, cfg.Location)
	if err != nil {
		return err
	}
	replace := map[string]string{"output": "-", "format": f.format}
	if list != nil { // the daemon gets the list, not the file's name
		replace["expected"], replace["columns"], replace["decimal"] = "", "", ""
		f.Listed = true
	}
	var head strings.Builder
	fill := func(write func(io.Writer) error) error { return write(a.stdout) }
	if !toStdout {
		if f.Beside, err = filepath.Abs(filepath.Dir(f.output)); err != nil {
			return fail(exitCreate, fmt.Errorf("find the folder of %s: %w", sanitize.Text(f.output), err), "name FILE with its whole path")
		}
		fill = func(write func(io.Writer) error) error { return a.auditFile(f, write) }
	}
	if !toStdout && f.format == "html" {
		f.Stem = filepath.Base(f.tablePath())
		fill = func(write func(io.Writer) error) error { return a.auditPage(f, &head, write) }
	}
	err = fill(func(w io.Writer) error {
		return a.runThroughDaemonWithInput(c.Context(), cfg, controlRequest{Args: commandLine(c, args, replace), Audit: &f.auditHandover}, list, w, func(ctx context.Context, v view) error {
			a.stdin = bytes.NewReader(list)
			defer a.useMemory(reportMemory)()
			return a.auditInto(ctx, v, f, w)
		})
	})
	if !f.sinceLast || err != nil && !isNotedReport(err, head.String()) {
		return err
	}
	// The files have their names. A crash here leaves no line: the next report has the same folders again, and none is left out.
	if noted := a.noteReport(c.Context(), cfg, head.String()); noted != nil {
		return noted
	}
	return err
}

// isNotedReport reports whether a report that ended with err was written, and of
// a ledger that agrees with its journal: then alone it sends its head.
func isNotedReport(err error, head string) bool {
	code, _ := exitCodeOf(err)
	return code == exitDifferences && head != ""
}

// auditInto examines the ledger and writes the report to w.
func (a *app) auditInto(ctx context.Context, v view, f auditFlags, w io.Writer) error {
	v, err := v.asOf(f.asOf)
	if err != nil {
		return err
	}
	c, err := v.auditConfig(a, f.sel)
	if err != nil {
		return err
	}
	c.ReceiptLink = v.receiptLinks(f.Beside)
	if f.Listed {
		if c.Expected, err = expected.Decode(a.stdin); err != nil {
			return fail(exitData, err, "")
		}
	}
	if c.Booked, err = a.bookedForAudit(ctx, v, f); err != nil {
		return err
	}
	// A report of a given time has the same bytes whatever was examined before it.
	return v.examine(ctx, a, c, extent(f.whole || f.asOf != ""), func(r *report.Audit, notes []string) error {
		end, err := f.writeReport(ctx, r, w)
		if err != nil {
			return err
		}
		return a.endAudit(ctx, v, f, r, end, notes, w)
	})
}

// endAudit sends the head of a report that was written, says the result in
// words, and gives the exit code.
func (a *app) endAudit(ctx context.Context, v view, f auditFlags, r *report.Audit, end report.Closing, notes []string, w io.Writer) error {
	s := r.Summary
	if f.Stem != "" && s.Check.Agrees { // the next report starts again where this one could not trust the ledger
		if a.inside != nil && f.sinceLast {
			a.reports.note(a.uid, s.About.HeadLine)
		}
		if _, err := fmt.Fprint(pieceWriter{w, headPart}, s.About.HeadLine); err != nil {
			return err
		}
	}
	if s.Notice != "" {
		fmt.Fprintln(a.stderr, s.Notice)
	}
	fmt.Fprintf(a.stderr, "%s: %s\n", s.Result.Title, s.Result.Text)
	fmt.Fprintln(a.stderr, r.DescribeExamined())
	for _, note := range notes {
		fmt.Fprintln(a.stderr, sanitize.Text(note))
	}
	if !end.Agrees {
		fmt.Fprintln(a.stderr, end)
	}
	// The report says nothing of it: it has the same bytes whatever the catalog has.
	counts, err := v.compareCatalog(ctx)
	if err != nil {
		return err
	}
	if counts.Differs != "" {
		fmt.Fprintf(a.stderr, "the catalog %s\n", sanitize.Text(v.describeCatalog(counts)))
	}
	if n := len(s.Check.Findings) + int(s.Check.Omitted); n > 0 {
		return fail(exitDifferences, fmt.Errorf("%s found; the report begins with them", present.FormatCount(n, "difference", "differences")),
			whenDamaged)
	}
	if s.IsIncomplete() {
		return failSilently(exitDifferences)
	}
	return nil
}

// writeReport writes the report in the form that the flags say.
func (f auditFlags) writeReport(ctx context.Context, r *report.Audit, w io.Writer) (report.Closing, error) {
	switch f.format {
	case "csv":
		return r.CSV(ctx, w, rune(f.separator[0]))
	case "json":
		return r.JSON(ctx, w)
	case "xlsx":
		return r.XLSX(ctx, w)
	}
	return f.writeHTML(ctx, r, w)
}

func (v view) auditConfig(a *app, sel report.Selection) (report.Config, error) {
	drops, err := v.readScans()
	host, _ := os.Hostname() // for people only
	unknown := ""
	if s, is := v.ledger.SafeMode(); is {
		unknown = v.unknownSince(s)
	}
	return report.Config{
		Safe: unknown, Drops: drops, Running: v.state != nil,
		Info: v.ledger.Info(), Select: sel,
		Made: v.Now, Location: v.Location, Program: "vaultd " + buildVersion(), Host: host, By: present.UserName(a.uid),
		Rule: billing.Rule{
			Included: v.cfg.Billing.Included, Price: archive.Decimal(v.cfg.Billing.PricePerTransaction), Currency: v.cfg.Billing.Currency,
		},
		Price: archive.Decimal(v.cfg.Billing.DownloadPrice), AlertAfter: v.cfg.Status.AlertAfter, Person: present.UserName, Reason: v.reasonOf, Ended: v.retentionEnded(),
	}, err
}

// retentionEnded returns a function that reports whether the retention of an archived entry is over.
func (v view) retentionEnded() func(ledger.Entry) bool {
	var drops []recovery.Origin
	for _, d := range v.cfg.Drops {
		drops = append(drops, recovery.Origin{Name: d.Name, Vault: archive.VaultID(d.Vault), Retention: d.Retention})
	}
	return func(e ledger.Entry) bool { return recovery.RetentionOf(drops, e).Ended(e.ArchivedAt, v.Now) }
}

// reasonOf gives the reason of the act that made a revision of an entry.
func (v view) reasonOf(key archive.Key, rev uint32) (string, error) {
	notes, err := v.ledger.Notes(key)
	return notes[rev].Text, err
}

// auditFile lets write fill a file, which gets its name when it is complete: also when the
// report is about differences, because then it is needed most.
func (a *app) auditFile(f auditFlags, write func(io.Writer) error) error {
	return a.fillFile(f.newReport(), write)
}

func (f auditFlags) newReport() newFile {
	return newFile{path: f.output, mode: 0o640, overwrite: f.force, what: "report", skipped: "written", keptCode: exitDifferences,
		hint: "name another file with -o, or overwrite it with --force"}
}
