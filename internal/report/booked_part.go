package report

import (
	"context"
	"errors"
	"fmt"

	"vaultd/internal/books"
)

// bookedInAudit is how many booked invoices that are not archived the audit names. The report of the books has every one.
const bookedInAudit = 500

// BookedPart is what the audit has of the comparison with the books.
type BookedPart struct {
	booksSummary
	Fault       string      `json:"fault"`           // why nothing could be compared; empty: it was, and the fields above count
	MissingRows []bookedRow `json:"missingInvoices"` // the first five hundred

	known []string
}

// NewBookedPart reads an answer for the audit.
func NewBookedPart(ctx context.Context, b *Books) (*BookedPart, error) {
	p := &BookedPart{booksSummary: b.summarize(), MissingRows: []bookedRow{}, known: b.Known()}
	err := b.Answer.EachMissing(ctx, func(r books.Row) error {
		if p.MissingRows = append(p.MissingRows, newBookedRow(r)); len(p.MissingRows) == bookedInAudit {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return p, err
}

// NewBookedFault says in the audit that the books could not be asked.
func NewBookedFault(why string) *BookedPart {
	return &BookedPart{Fault: why, MissingRows: []bookedRow{}}
}

// describeShortfall says what keeps the result from being complete; empty: nothing.
func (p *BookedPart) describeShortfall() string {
	switch {
	case p == nil:
		return ""
	case p.Fault != "":
		return "What was booked is not known: " + p.Fault + ". "
	case p.Result.Code == "not-complete":
		return p.Result.Text + " "
	}
	return ""
}

// describe says what was compared.
func (p *BookedPart) describe() string {
	if p.Fault != "" {
		return asDropped
	}
	return fmt.Sprintf("Compared with what the extracts say was booked from %s to %s: %s archived, %s not.", p.From, p.To,
		formatNumber(p.Booked-p.NotArchived), formatNumber(p.NotArchived))
}

// Known says in sentences what the comparison rests on.
func (p *BookedPart) Known() []string { return p.known }

// VerdictLines are the verdicts that occur, in the order in which people read them.
func (p *BookedPart) VerdictLines() (all []verdictLine) {
	for _, v := range books.Verdicts() {
		if n := p.Verdicts[v.String()]; n > 0 || v == books.Archived {
			all = append(all, verdictLine{v.Words(), n})
		}
	}
	return all
}
