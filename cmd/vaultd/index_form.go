package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/present"
	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

// indexForm is how the records of an index are told.
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

// indexTold says in words how far the walk through the index of a vault came.
type indexTold struct {
	w    io.Writer
	part bool // days were asked for
}

func (t indexTold) end(i walkedIndex) {
	fmt.Fprintf(t.w, "VAULT      %s: the index gave %s\n", sanitize.Text(string(i.vault)), i.gave())
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

// mostIndexCounts bounds the counts, whatever words an index uses for its types.
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
