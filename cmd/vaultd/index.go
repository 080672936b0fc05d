package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/present"
	"vaultd/internal/recovery"
	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

type indexFlags struct {
	vault     string
	from, to  string // days; empty: no bound
	csv       bool
	separator string
	output    string // empty or "-": standard output

	first, last calendarDay // as from and to say; zero: no bound
}

func (a *app) indexCommand() *cobra.Command {
	var f indexFlags
	c := &cobra.Command{
		Use:   "index",
		Short: "what the archive's own index holds, counted or as a table",
		Long: `Reads the archive's index, which names every document that it holds, and counts the
documents by type and by the month in which the archive took them. --csv and --json
write the records instead, each as soon as it is read: --csv as a table in which no
cell becomes a formula, --json as one object a line. A file's name that ends in .csv
or .json decides as well.

It says of each vault how many documents the index gave, and how many it says there
are. Where it did not give all of them it ends with 3, and a file is called
FILE.incomplete. With --json the last line of each vault says so too ("end").

It needs no ledger, compares nothing (see "vaultd reconcile") and sends nothing.`,
		Example: `  vaultd index
  vaultd index --from 2026-10-01 --to 2026-10-31 -o october.csv
  vaultd index --vault VAULT-ID --json | jq -r 'select(.documentType == "CreditNote") | .bumId'`,
		Args: expectArgs(),
		RunE: func(c *cobra.Command, args []string) error {
			if err := f.checkFlags(a); err != nil {
				return err
			}
			return a.runIndex(c, f)
		},
	}
	c.Flags().StringVar(&f.vault, "vault", "", "only the vault of this `id` (default: all that drops are configured for)")
	c.Flags().StringVar(&f.from, "from", "", "only what the archive took on this `day` or later, such as 2026-10-01")
	c.Flags().StringVar(&f.to, "to", "", "only what it took on this `day` or before")
	c.Flags().BoolVar(&f.csv, "csv", false, "the records as a table")
	c.Flags().StringVar(&f.separator, "separator", ",", `of csv: "," or ";"`)
	c.Flags().StringVarP(&f.output, "output", "o", "", "`FILE` to write; - is standard output (the default)")
	return c
}

// calendarDay is a day in the configured time zone.
type calendarDay struct {
	year  int
	month time.Month
	day   int
}

func calendarDayOf(t time.Time) calendarDay {
	y, m, d := t.Date()
	return calendarDay{y, m, d}
}

func (d calendarDay) isBefore(other calendarDay) bool {
	return slices.Compare([]int{d.year, int(d.month), d.day}, []int{other.year, int(other.month), other.day}) < 0
}

// checkFlags checks the flags and fills in what they leave open.
func (f *indexFlags) checkFlags(a *app) error {
	for _, bound := range []struct {
		name, text string
		into       *calendarDay
	}{{"--from", f.from, &f.first}, {"--to", f.to, &f.last}} {
		if bound.text == "" {
			continue
		}
		t, err := time.Parse(time.DateOnly, bound.text)
		if err != nil {
			return usageError{fmt.Errorf("%s %q is not a day; write it as 2026-10-31", bound.name, sanitize.Text(bound.text))}
		}
		*bound.into = calendarDayOf(t)
	}
	if f.output != "" && f.output != "-" && !f.csv && !a.json {
		switch strings.ToLower(filepath.Ext(f.output)) {
		case ".csv":
			f.csv = true
		case ".json", ".jsonl":
			a.json = true
		default:
			return usageError{fmt.Errorf("say what goes into %s: --csv or --json", sanitize.Text(filepath.Base(f.output)))}
		}
	}
	switch {
	case f.csv && a.json:
		return usageError{errors.New("--csv and --json are two forms; choose one")}
	case f.separator != "," && f.separator != ";":
		return usageError{fmt.Errorf(`%q is no separator; known are "," and ";"`, f.separator)}
	case f.from != "" && f.to != "" && f.last.isBefore(f.first):
		return usageError{fmt.Errorf("--to %s is before --from %s", f.to, f.from)}
	case f.vault != "" && (len(f.vault) > maxVaultID || !vaultIDs.MatchString(f.vault)):
		return usageError{fmt.Errorf("--vault %q is not the id of a vault", sanitize.FirstLine(f.vault, 60))}
	}
	return nil
}

// runIndex reads the index inside the daemon, which has the credentials. Otherwise this process reads it.
func (a *app) runIndex(c *cobra.Command, f indexFlags) error {
	if a.inside != nil {
		if f.output != "" && f.output != "-" { // the daemon would write it with its own rights
			return usageError{errors.New("the daemon writes no files for others")}
		}
		return a.readIndex(c.Context(), *a.cfg, f, a.stdout)
	}
	cfg, err := a.configForAsking()
	if err != nil {
		return err
	}
	replace := map[string]string{"output": "-"}
	if f.csv {
		replace["csv"] = "true"
	} else if a.json {
		replace["json"] = "true"
	}
	read := func(w io.Writer) error {
		return a.askDaemonOrRun(c.Context(), cfg, commandLine(c, nil, replace), w, func() error { return a.readIndex(c.Context(), cfg, f, w) })
	}
	if f.output == "" || f.output == "-" {
		return read(a.stdout)
	}
	return a.fillFile(newFile{path: f.output, mode: 0o640, what: "index", skipped: "read", keptCode: exitPerson, keptSuffix: ".incomplete", hint: "name another file with -o"}, read)
}

// indexer is the part of the service that reads an index.
type indexer interface {
	ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (archive.IndexResult, archive.RemoteSet, error)
}

func (a *app) readIndex(ctx context.Context, cfg config.Config, f indexFlags, w io.Writer) error {
	service, err := a.newServiceClient(cfg)
	if err != nil {
		return err
	}
	return a.readIndexes(ctx, service, cfg, f, w)
}

// readIndexes reads the index of each vault that is asked for, one after the other.
func (a *app) readIndexes(ctx context.Context, service indexer, cfg config.Config, f indexFlags, w io.Writer) error {
	out, err := a.indexForm(cfg, f, w)
	if err != nil {
		return err
	}
	vaults := []archive.VaultID{archive.VaultID(f.vault)}
	if f.vault == "" {
		vaults = vaultsOf(cfg)
	}
	complete := true
	for _, v := range vaults {
		walked, err := f.walkIndex(ctx, service, cfg.Location, v, out)
		if err != nil {
			return errors.Join(err, out.flush())
		}
		if err := out.end(walked); err != nil {
			return err
		}
		complete = complete && walked.Complete
	}
	if err := out.flush(); err != nil || complete {
		return err
	}
	return fail(exitPerson, errors.New("an index was not read to its end: documents may be missing here"),
		"run it again; if it lasts, show the provider the request that is named above (docs/recovery.md#an-index-that-is-not-complete)")
}

// vaultsOf lists the vaults that drops are configured for.
func vaultsOf(cfg config.Config) (all []archive.VaultID) {
	for _, d := range cfg.VaultDrops() {
		if v := archive.VaultID(d.Vault); !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	return all
}

// walkedIndex tells how much of the index of a vault was read.
type walkedIndex struct {
	archive.IndexResult
	vault    archive.VaultID
	selected int // documents that the flags ask for
	undated  int // documents without a time of archiving, which no day selects
}

func (i walkedIndex) describeIndex() string {
	return recovery.VaultReport{Vault: i.vault, Index: i.IndexResult}.DescribeIndex()
}

// walkIndex reads the index of one vault and hands each record on. It keeps none in memory.
func (f indexFlags) walkIndex(ctx context.Context, service indexer, loc *time.Location, v archive.VaultID, out indexForm) (i walkedIndex, err error) {
	i.vault = v
	i.IndexResult, _, err = service.ReadIndex(ctx, v, func(recs []archive.IndexRecord) error {
		for _, rec := range recs {
			if rec.ArchivedAt.IsZero() {
				i.undated++
			}
			if !f.isWanted(rec.ArchivedAt, loc) {
				continue
			}
			i.selected++
			if err := out.record(v, rec); err != nil {
				return err
			}
		}
		return nil
	})
	return i, err
}

// isWanted reports whether the archive took a document on one of the days.
func (f indexFlags) isWanted(at time.Time, loc *time.Location) bool {
	if f.from == "" && f.to == "" {
		return true
	}
	d := calendarDayOf(at.In(loc))
	return !at.IsZero() && (f.from == "" || !d.isBefore(f.first)) && (f.to == "" || !f.last.isBefore(d))
}

// indexForm is one output form for the records of an index.
type indexForm interface {
	record(v archive.VaultID, rec archive.IndexRecord) error
	end(i walkedIndex) error // of one vault
	flush() error
}

func (a *app) indexForm(cfg config.Config, f indexFlags, w io.Writer) (indexForm, error) {
	told := indexTold{a.stderr, f.from != "" || f.to != ""}
	switch {
	case f.csv:
		t, err := report.NewIndexTable(w, rune(f.separator[0]), cfg.Service.Environment)
		return &indexTable{t, told}, err
	case a.json:
		return &indexLines{bufio.NewWriterSize(w, 64<<10), told}, nil
	}
	return &indexCounts{out: w, loc: cfg.Location, counts: map[indexCount]int{}, test: cfg.Service.Environment != "production", told: indexTold{w, told.part}}, nil
}

// indexTold writes in words how much of the index of a vault was read.
type indexTold struct {
	w    io.Writer
	part bool // days were asked for
}

func (t indexTold) end(i walkedIndex) {
	fmt.Fprintf(t.w, "VAULT      %s: the index gave %s\n", sanitize.Text(string(i.vault)), i.describeIndex())
	if !i.Complete {
		fmt.Fprintf(t.w, "INCOMPLETE %s; the provider's request is %s\n", sanitize.Text(i.Why), sanitize.Text(i.Request))
	}
	if t.part {
		fmt.Fprintf(t.w, "SELECTED   %d of them, by the day on which the archive took them", i.selected)
		if i.undated > 0 {
			fmt.Fprintf(t.w, "; of %d more the index does not tell that day", i.undated)
		}
		fmt.Fprintln(t.w)
	}
}

type indexTable struct {
	t    *report.IndexTable
	told indexTold
}

func (t *indexTable) record(v archive.VaultID, rec archive.IndexRecord) error {
	return t.t.Write(report.IndexRow{Vault: v, BumID: string(rec.Remote), ArchiveID: rec.ArchiveID, ArchivedAt: rec.ArchivedAt, Document: rec.Document})
}

func (t *indexTable) end(i walkedIndex) error { t.told.end(i); return nil }
func (t *indexTable) flush() error            { return t.t.Flush() }

// indexLine is one object of "index --json".
type indexLine struct {
	Vault              string              `json:"vault"`
	BumID              string              `json:"bumId"`
	ArchiveID          string              `json:"archiveId"`
	ArchivedAt         *time.Time          `json:"archiveDate"`
	Type               string              `json:"documentType"`
	Number             string              `json:"documentId"`
	Date               string              `json:"documentDate"`
	SenderName         string              `json:"senderName"`
	SenderIDs          []string            `json:"senderIds"`
	RecipientName      string              `json:"recipientName"`
	RecipientIDs       []string            `json:"recipientIds"`
	Currency           string              `json:"currencyCode"`
	Amount             string              `json:"amount"` // as the index has it
	BuyerReferenceID   string              `json:"buyerReferenceId"`
	BuyerReferenceType string              `json:"buyerReferenceType"`
	TradingPartner     string              `json:"tradingPartner"`
	FlowDirection      string              `json:"flowDirection"`
	Parameters         []archive.Parameter `json:"additionalParameters"`
}

// indexEnd is the last object of each vault.
type indexEnd struct {
	End struct {
		Vault    string `json:"vault"`
		Read     int    `json:"read"`
		Found    *int   `json:"found"` // as the index tells it; null: it does not
		Complete bool   `json:"complete"`
		Why      string `json:"why"`
		Request  string `json:"requestId"`
		Selected int    `json:"selected"`
		Undated  int    `json:"withoutArchiveDate"`
	} `json:"end"`
}

type indexLines struct {
	w    *bufio.Writer
	told indexTold
}

func (l *indexLines) record(v archive.VaultID, rec archive.IndexRecord) error {
	d := rec.Document
	return writeJSON(l.w, indexLine{
		Vault: string(v), BumID: string(rec.Remote), ArchiveID: rec.ArchiveID, ArchivedAt: present.TimeOrNil(rec.ArchivedAt), Type: d.Type, Number: d.Number, Date: d.Date,
		SenderName: d.SenderName, SenderIDs: append([]string{}, d.SenderIDs...), RecipientName: d.RecipientName, RecipientIDs: append([]string{}, d.RecipientIDs...),
		Currency: d.Currency, Amount: string(d.Amount), BuyerReferenceID: d.BuyerReferenceID, BuyerReferenceType: d.BuyerReferenceType,
		TradingPartner: d.TradingPartner, FlowDirection: d.FlowDirection, Parameters: append([]archive.Parameter{}, d.Parameters...),
	})
}

func (l *indexLines) end(i walkedIndex) error {
	var end indexEnd
	e := &end.End
	e.Vault, e.Read, e.Complete, e.Why, e.Request, e.Selected, e.Undated = string(i.vault), i.Read, i.Complete, i.Why, i.Request, i.selected, i.undated
	if i.Found >= 0 {
		e.Found = &i.Found
	}
	l.told.end(i)
	return writeJSON(l.w, end)
}

func (l *indexLines) flush() error {
	if err := l.w.Flush(); err != nil {
		return fail(exitIO, fmt.Errorf("write: %w", err), "")
	}
	return nil
}

// indexCount is what documents are counted by.
type indexCount struct{ month, kind string }

// mostIndexCounts bounds the number of counts, whatever types an index names.
const mostIndexCounts = 2000

type indexCounts struct {
	out    io.Writer
	loc    *time.Location
	counts map[indexCount]int // of one vault
	test   bool
	told   indexTold
}

func (c *indexCounts) record(_ archive.VaultID, rec archive.IndexRecord) error {
	by := indexCount{"no date", rec.Document.Type}
	if !rec.ArchivedAt.IsZero() {
		by.month = rec.ArchivedAt.In(c.loc).Format("2006-01")
	}
	if _, known := c.counts[by]; !known && len(c.counts) >= mostIndexCounts {
		by = indexCount{"more", "other types"}
	}
	c.counts[by]++
	return nil
}

func (c *indexCounts) end(i walkedIndex) error {
	c.told.end(i)
	if c.test {
		fmt.Fprintln(c.out, report.TestMark)
	}
	var rows []indexCount
	for by := range c.counts {
		rows = append(rows, by)
	}
	slices.SortFunc(rows, func(a, b indexCount) int { return cmp.Or(cmp.Compare(a.month, b.month), cmp.Compare(a.kind, b.kind)) })
	t := present.NewTable(c.out, "MONTH", "TYPE", "DOCUMENTS")
	for _, by := range rows {
		t.AppendRow(present.TableRow(by.month, sanitize.FirstLine(cmp.Or(by.kind, "no type"), 60), fmt.Sprint(c.counts[by])))
	}
	if len(rows) > 0 {
		t.Render()
	}
	clear(c.counts)
	return nil
}

func (c *indexCounts) flush() error { return nil }
