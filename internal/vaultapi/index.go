package vaultapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// FirstPage is the cursor of the first page of an index.
const FirstPage = "initial"

// Page is one page of a vault's index.
type Page struct {
	Records []IndexRecord
	Cursor  string // of the next page
	Found   int    // documents in the index; -1: not told
	Last    bool   // there is no next page
}

// IndexRecord is one archived document as the index shows it: no clientUUID and no size.
type IndexRecord struct {
	ArchiveID  string
	Remote     archive.RemoteID // empty where it cannot be used
	ArchivedAt time.Time        // zero: not told
	Document   archive.Document // as far as the index repeats it
	Raw        []byte           // the record as it came
}

// Index reads one page of the index: FirstPage or the cursor of the page before, at most 1000 records, sorted by
// "archiveDate" or "documentDate" with "asc" or "desc" behind it. New documents shift the pages of a descending walk,
// so whoever wants them all walks "archiveDate asc".
func (c *Client) Index(ctx context.Context, v archive.VaultID, cursor string, size int, sort string) (Page, error) {
	const op = "read the index"
	ans, err := c.api.Do(ctx, apicall.Request{Op: op, Path: []string{"v1", "vaults", string(v), "index"},
		Query: url.Values{"cursor": {cursor}, "size": {strconv.Itoa(size)}, "sort": {sort}}})
	if err != nil {
		return Page{}, fault(err, byQuestion)
	}
	var body struct {
		Cursor    scalar            `json:"cursor"`
		Documents []json.RawMessage `json:"documents"`
		Found     scalar            `json:"found"`
		Start     scalar            `json:"start"`
	}
	if err := json.Unmarshal(ans.Body, &body); err != nil {
		return Page{}, unreadable(op, ans, errShape)
	}
	p := Page{Cursor: string(body.Cursor), Found: -1}
	for _, raw := range body.Documents {
		rec, err := indexRecord(raw)
		if err != nil {
			return Page{}, unreadable(op, ans, err) // a page with a hole would count as missing documents
		}
		p.Records = append(p.Records, rec)
	}
	found, err := strconv.Atoi(string(body.Found))
	if err == nil {
		p.Found = found
	}
	p.Last = len(p.Records) == 0 || p.Cursor == "" || p.Cursor == cursor ||
		p.Found >= 0 && strings.TrimSpace(string(body.Start)) == strconv.Itoa(found)
	return p, nil
}

func indexRecord(raw json.RawMessage) (IndexRecord, error) {
	var r struct {
		ArchiveID  scalar `json:"archiveId"`
		Remote     scalar `json:"bumid"` // and bumId: names are matched without regard to case
		Archived   scalar `json:"archiveDate"`
		Type       scalar `json:"documentType"`
		Number     scalar `json:"documentId"`
		Date       scalar `json:"documentDate"`
		Sender     scalar `json:"senderName"`
		Recipient  scalar `json:"recipientName"`
		SenderIDs  list   `json:"senderIds"`
		RecipIDs   list   `json:"recipientIds"`
		Currency   scalar `json:"currencyCode"`
		BuyerID    scalar `json:"buyerReferenceId"`
		BuyerType  scalar `json:"buyerReferenceType"`
		Amount     scalar `json:"amount"`
		Partner    scalar `json:"tradingPartner"`
		Flow       scalar `json:"flowDirection"`
		Parameters []struct {
			Key   scalar `json:"key"`
			Value scalar `json:"value"`
		} `json:"additionalParameters"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return IndexRecord{}, errShape
	}
	rec := IndexRecord{ArchiveID: words(string(r.ArchiveID)), ArchivedAt: parseTime(string(r.Archived)), Raw: bytes.Clone(raw)}
	if remote, err := archive.ParseRemoteID(string(r.Remote)); err == nil {
		rec.Remote = remote
	}
	rec.Document = archive.Document{Type: string(r.Type), Number: string(r.Number), Date: string(r.Date),
		SenderName: string(r.Sender), SenderIDs: r.SenderIDs, RecipientName: string(r.Recipient), RecipientIDs: r.RecipIDs,
		Currency: string(r.Currency), BuyerReferenceID: string(r.BuyerID), BuyerReferenceType: string(r.BuyerType),
		Amount: archive.Decimal(r.Amount), TradingPartner: string(r.Partner), FlowDirection: string(r.Flow)}
	for _, p := range r.Parameters {
		rec.Document.Parameters = append(rec.Document.Parameters, archive.Parameter{Key: string(p.Key), Value: string(p.Value)})
	}
	return rec, nil
}

// list is an array of strings that may hold numbers, or one value alone.
type list []string

func (l *list) UnmarshalJSON(b []byte) error {
	var many []scalar
	if json.Unmarshal(b, &many) != nil {
		var one scalar
		if json.Unmarshal(b, &one) != nil || one == "" {
			return nil
		}
		many = []scalar{one}
	}
	for _, s := range many {
		*l = append(*l, string(s))
	}
	return nil
}

// Vault is one vault that the credentials reach.
type Vault struct {
	ID   archive.VaultID
	Name string
}

// Vaults lists the vaults that the credentials reach. The list is advice: its form is not specified.
func (c *Client) Vaults(ctx context.Context) ([]Vault, error) {
	ans, err := c.get(ctx, "list the vaults", "v1", "vaults")
	if err != nil {
		return nil, fault(err, byQuestion)
	}
	elements, err := records(ans.Body, "vaults")
	if err != nil {
		return nil, unreadable("list the vaults", ans, err)
	}
	var out []Vault
	for _, raw := range elements {
		var object struct {
			VaultID scalar `json:"vaultId"`
			ID      scalar `json:"id"`
			Name    scalar `json:"name"`
		}
		if json.Unmarshal(raw, &object) != nil {
			json.Unmarshal(raw, &object.VaultID) //nolint:errcheck // a scalar takes anything
		}
		if object.VaultID == "" {
			object.VaultID = object.ID
		}
		if id := words(string(object.VaultID)); id != "" {
			out = append(out, Vault{ID: archive.VaultID(id), Name: words(string(object.Name))})
		}
	}
	return out, nil
}
