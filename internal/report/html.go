package report

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"net/url"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

//go:embed audit.html
var auditHTML string

//go:embed audit.css
var auditCSS string

// testCSS prints the mark of a test environment into the margin of each sheet, beside
// the one that the page itself repeats.
const testCSS = `@page { @top-center { content: "` + TestMark + `"; font: bold 12pt sans-serif } }
`

// auditPage is one document without scripts and without anything from elsewhere.
var auditPage = template.Must(template.New("audit").Funcs(template.FuncMap{
	"safe": sanitize.Text, "number": formatNumber, "grouped": groupThousands, "money": formatMoney, "span": formatSeconds,
	"upper": strings.ToUpper, "megabytes": formatMegabytes, "many": formatCount,
	"share": formatShare, "uint": func(n int) uint64 { return uint64(n) },
}).Parse(auditHTML))

// HTML writes the audit as one self-contained page of at most three megabytes: the summary first, then the table by month with
// what each sums up to, then the lists that the summary refers to. Of a long table it has the newest rows, and no sums.
func (a *Audit) HTML(ctx context.Context, w io.Writer) (Closing, error) { return a.Page(ctx, w) }

// Page writes the page, and gives every row to the tables on the way, so that page and tables have the same rows. It links to the
// tables and finishes them; their error ends the page.
func (a *Audit) Page(ctx context.Context, w io.Writer, tables ...TableFile) (Closing, error) {
	out := bufio.NewWriterSize(w, buffered)
	p := &htmlPage{Summary: a.Summary, audit: a, ctx: ctx, tables: tables, room: listBudget, Style: template.CSS(auditCSS)}
	if a.isTest() {
		p.Style += testCSS
	}
	err := auditPage.Execute(out, p)
	if p.err != nil {
		err = p.err // it ended the rows; what the template made of that is not the cause
	}
	if err != nil {
		return p.closing, err
	}
	return p.closing, flush(out)
}

// Table is a form of the table that takes one row after the other. It is made by one of the methods of [Audit].
type Table interface {
	prepare(row) []byte // of a row what does not depend on the rows before; several goroutines call it at the same time
	add(prepared []byte) error
	finish() error // its error is the first one of all
}

// TableFile is a table that lies beside the page.
type TableFile struct {
	Name string // of the file
	Table
}

// HasLongTable reports whether the page will have the newest rows only.
func (a *Audit) HasLongTable() bool { return a.counts.Seen > rowsOnPage }

// htmlPage is what the template sees.
type htmlPage struct {
	Summary
	Style template.CSS

	audit   *Audit
	ctx     context.Context // of the one call that makes the page
	tables  []TableFile
	room    int // bytes that are left for lists
	closing Closing
	err     error
}

// ContentPolicy allows the page its own style and nothing else.
func (p *htmlPage) ContentPolicy() string {
	sum := sha256.Sum256([]byte(p.Style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// Table reads every row, and gives those that the page shows.
func (p *htmlPage) Table() (*pageTable, error) {
	t := &pageTable{}
	var tables []Table
	for _, one := range p.tables {
		tables = append(tables, one.Table)
	}
	p.closing, p.err = p.audit.eachRow(p.ctx, func(r row) error {
		t.add(r.month, func() template.HTML { return p.Row(r) })
		return nil
	}, tables...)
	for _, one := range p.tables {
		if p.err == nil {
			p.err = one.finish()
		}
	}
	t.Closing = p.closing
	return t, p.err
}

// TableFiles gives the files beside the page that have the complete table.
func (p *htmlPage) TableFiles() []TableFile { return p.tables }

// Link is the way from the page to the file.
func (t TableFile) Link() string { return "./" + url.PathEscape(t.Name) }

// FormatTime gives a time to the minute, with the zone's name.
func (p *htmlPage) FormatTime(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.In(p.audit.c.Location).Format("2 Jan 2006 15:04 MST")
}

// Examined says which part of the ledger was examined when.
func (p *htmlPage) Examined() string { return p.audit.DescribeExamined() }

// DescribeItem says why a thing was not taken, and since when it is there.
func (p *htmlPage) DescribeItem(i notTakenItem) string { return i.describe(p.audit.c.Location) }

// TimeCell gives a time for the table; its zone stands in the head.
func (p *htmlPage) TimeCell(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.In(p.audit.c.Location).Format("2006-01-02 15:04")
}

// PersonName names who acted.
func (p *htmlPage) PersonName(uid uint32) string { return sanitize.Text(p.audit.c.Person(uid)) }

// FolderName names the folder of an entry, with its drop.
func (p *htmlPage) FolderName(key string) (string, error) {
	if key == "" {
		return "the ledger", nil
	}
	k, err := archive.ParseKey(key)
	if err != nil {
		return "", nil // the proof speaks of it
	}
	e, ok, err := p.audit.c.Ledger.Entry(k)
	if err != nil || !ok {
		return "", err
	}
	return sanitize.Text(e.Folder) + " (" + sanitize.Text(e.Drop) + ")", nil
}

// ShortName cuts a name that is too long for a line.
func (p *htmlPage) ShortName(s string) string { return sanitize.Truncate(s, 160) }

// ShownSums gives the sums that fit into a line.
func (l senderLine) ShownSums() []senderSum { return l.Sums[:min(len(l.Sums), 10)] }

// MoreSums is how many do not.
func (l senderLine) MoreSums() uint64 { return uint64(len(l.Sums) - len(l.ShownSums())) }

// PeriodName names the kind of time that is selected.
func (p *htmlPage) PeriodName() string { return p.audit.c.Select.periodName() }

// IsPart reports whether something of the ledger is left out.
func (p *htmlPage) IsPart() bool { return !p.audit.c.Select.isEverything() }

// IsTest reports whether this is no evidence.
func (p *htmlPage) IsTest() bool { return p.Notice != "" }

// OrderedCounts give the balance in the order in which people read it.
func (b balance) OrderedCounts() []balanceLine {
	lines := []balanceLine{{"archived", b.States[ledger.Archived.String()]}}
	for _, s := range []ledger.State{ledger.Delivered, ledger.Rejected, ledger.Quarantined, ledger.Duplicate} {
		lines = append(lines, balanceLine{s.String(), b.States[s.String()]})
	}
	return append(lines, balanceLine{"open", b.Open})
}

type balanceLine struct {
	State string
	Count uint64
}

func formatSeconds(s float64) string {
	return present.FormatAge(time.Duration(s * float64(time.Second)))
}

// cssClassOf groups states for the colour that goes with their word.
func cssClassOf(r row) string {
	switch {
	case strings.Contains(strings.Join(r.Flags, " "), "CONTRADICTED"), slices.Contains(r.Flags, "REJECTED BY THE RECIPIENT"):
		return "bad"
	case r.State == ledger.Archived.String(), r.State == ledger.Delivered.String():
		return "good"
	case r.State == ledger.Quarantined.String(), r.State == ledger.Rejected.String() && len(r.Flags) == 0:
		return "bad"
	}
	return "calm"
}

// formatMegabytes writes bytes as the price list counts them.
func formatMegabytes(n uint64) string {
	thousandths := (n + 500) / 1000
	return groupThousands(formatThousandths(thousandths))
}
