package networkapi

import (
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// Content is what of a document's data its metadata in the archive is made of. What the data does not tell is empty; nothing is
// guessed. All texts are as they were written.
type Content struct {
	Number             string // externalDocumentIdentifier.id: the invoice number
	IssueDate          string // perhaps with a time zone
	Currency           string
	Supplier, Customer Party
	NetAmount          archive.Decimal // sum of the taxable amounts; empty: none is told, or one of them is no number
	Lines              int
	Custom             []archive.NamedValue // fields that the two parties agreed on
}

// Party is one party of a document.
type Party struct {
	Name string
	IDs  []string // of its partyIdentifications and its endpoint, in this order and each once
}

// readContent reads the data of a document. Objects may be empty, and lists may be absent. It fails only where a field stands twice
// with two values: then nobody can say which one is meant.
func readContent(data json.RawMessage) (Content, error) {
	f, err := apicall.ReadFields(data, "externalDocumentIdentifier", "issueDate", "documentCurrencyCode", "accountingSupplierParty", "accountingCustomerParty",
		"taxTotal", "taxTotals", "invoiceLines", "creditNoteLines", "customFields")
	if err != nil {
		return Content{}, fmt.Errorf("the data of the document: %w", err)
	}
	c := Content{IssueDate: f.Text("issueDate"), Currency: f.Text("documentCurrencyCode")}
	if c.Number, err = readID(f["externalDocumentIdentifier"]); err != nil {
		return Content{}, err
	}
	if c.Supplier, err = readParty(f["accountingSupplierParty"]); err != nil {
		return Content{}, err
	}
	if c.Customer, err = readParty(f["accountingCustomerParty"]); err != nil {
		return Content{}, err
	}
	taxes, err := f.Either("taxTotal", "taxTotals")
	if err != nil {
		return Content{}, err
	}
	if c.NetAmount, err = sumTaxable(taxes); err != nil {
		return Content{}, err
	}
	// Credit notes use invoiceLines too; some have lines of their own name.
	for _, name := range []string{"invoiceLines", "creditNoteLines"} {
		lines, err := readList(f[name])
		if err != nil {
			return Content{}, fmt.Errorf("the lines of the document: %w", err)
		}
		c.Lines += len(lines)
	}
	c.Custom = readNamedValues(f["customFields"])
	return c, nil
}

// readID returns the id of an object that may be empty, or an id that stands alone.
func readID(raw json.RawMessage) (string, error) {
	if isEmpty(raw) || !isObject(raw) {
		return apicall.ReadText(raw), nil
	}
	f, err := apicall.ReadFields(raw, "id")
	return f.Text("id"), err
}

// readParty reads a party that may be absent or empty.
func readParty(raw json.RawMessage) (Party, error) {
	if isEmpty(raw) {
		return Party{}, nil
	}
	f, err := apicall.ReadFields(raw, "partyName", "partyIdentifications", "partyIdentification", "endpoint")
	if err != nil {
		return Party{}, fmt.Errorf("a party of the document: %w", err)
	}
	p := Party{Name: f.Text("partyName")}
	for _, name := range []string{"partyIdentifications", "partyIdentification", "endpoint"} {
		all, err := readList(f[name])
		if err != nil {
			return Party{}, fmt.Errorf("the ids of a party: %w", err)
		}
		for _, one := range all {
			id, err := readID(one)
			if err != nil {
				return Party{}, err
			}
			if id != "" && !slices.Contains(p.IDs, id) {
				p.IDs = append(p.IDs, id)
			}
		}
	}
	return p, nil
}

// sumTaxable adds the taxable amounts of all taxes, exactly. Assumption: their sum is the net amount of the document. Empty: there
// is none, or one of them is no plain number, so that the sum would be wrong.
func sumTaxable(taxes json.RawMessage) (archive.Decimal, error) {
	totals, err := readList(taxes)
	if err != nil {
		return "", fmt.Errorf("the taxes of the document: %w", err)
	}
	sum, decimals, found := new(big.Rat), 0, false
	for _, total := range totals {
		f, err := apicall.ReadFields(total, "taxSubtotals")
		if err != nil {
			return "", fmt.Errorf("the taxes of the document: %w", err)
		}
		parts, err := readList(f["taxSubtotals"])
		if err != nil {
			return "", fmt.Errorf("the taxes of the document: %w", err)
		}
		for _, part := range parts {
			f, err := apicall.ReadFields(part, "taxableAmount")
			if err != nil {
				return "", fmt.Errorf("the taxes of the document: %w", err)
			}
			amount, err := archive.ParseDecimal(f.Text("taxableAmount"))
			if err != nil {
				return "", nil
			}
			sum.Add(sum, amount.Rat())
			decimals, found = max(decimals, countDecimals(string(amount))), true
		}
	}
	if !found {
		return "", nil
	}
	return archive.Decimal(sum.FloatString(decimals)), nil // exact: no part of the sum has more decimals
}

// countDecimals returns how many digits stand behind the point.
func countDecimals(amount string) int {
	_, fraction, _ := strings.Cut(amount, ".")
	return len(fraction)
}

// readNamedValues reads pairs of name and value. They are advice: one that cannot be read is left out.
func readNamedValues(raw json.RawMessage) (pairs []archive.NamedValue) {
	all, err := readList(raw)
	if err != nil {
		return nil
	}
	for _, one := range all {
		if f, err := apicall.ReadFields(one, "name", "value"); err == nil && f.Text("name") != "" {
			pairs = append(pairs, archive.NamedValue{Name: f.Text("name"), Value: f.Text("value")})
		}
	}
	return pairs
}
