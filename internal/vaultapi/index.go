package vaultapi

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// FirstPage is the cursor of the first page of an index.
const FirstPage = "initial"

// Page is one page of a vault's index. [WalkIndex] decides whether it is the last one.
type Page struct {
	Records []archive.IndexRecord
	Cursor  string // of the next page; empty: the page names none
	Found   int    // documents in the index, as the page tells it; -1: it does not
	Request string // id of the call, for the provider
}

// Index reads one page of the index: FirstPage or the cursor of the page before, at most 1000 records, sorted by
// "archiveDate" or "documentDate" with "asc" or "desc" behind it. New documents shift the pages of a descending walk,
// so a walk through all documents uses "archiveDate asc".
func (c *Client) Index(ctx context.Context, v archive.VaultID, cursor string, size int, sort string) (Page, error) {
	const op = "read the index"
	ans, err := c.apiOf(v).Do(ctx, apicall.Request{Op: op, Path: []string{"v1", "vaults", string(v), "index"}, Limit: answerLimit(size),
		Query: url.Values{"cursor": {cursor}, "size": {strconv.Itoa(size)}, "sort": {sort}}})
	if err != nil {
		return Page{}, err
	}
	defer ans.Release()
	body, err := apicall.ReadFields(ans.Body, "cursor", "documents", "found")
	if err != nil {
		return Page{}, ans.Unreadable(op, err)
	}
	var documents []json.RawMessage
	if raw := body["documents"]; raw != nil && json.Unmarshal(raw, &documents) != nil {
		return Page{}, ans.Unreadable(op, apicall.ErrUnknownForm)
	}
	p := Page{Cursor: body.Text("cursor"), Found: body.Count("found"), Request: ans.RequestID}
	if documents == nil && p.Found < 0 {
		return Page{}, ans.Unreadable(op, apicall.ErrUnknownForm) // it is no page at all, so it is no empty one
	}
	for _, raw := range documents {
		rec, err := readIndexRecord(raw)
		if err != nil {
			return Page{}, ans.Unreadable(op, err) // a page with a hole would count as missing documents
		}
		p.Records = append(p.Records, rec)
	}
	return p, nil
}

// indexFields are the fields that are read of a record. Services write bumid here and bumId elsewhere; both are read.
var indexFields = []string{"archiveId", "bumid", "bumId", "archiveDate", "documentType", "documentId", "documentDate", "senderName", "recipientName",
	"senderIds", "recipientIds", "currencyCode", "buyerReferenceId", "buyerReferenceType", "amount", "tradingPartner", "flowDirection", "additionalParameters"}

func readIndexRecord(raw json.RawMessage) (archive.IndexRecord, error) {
	f, err := apicall.ReadFields(raw, indexFields...)
	if err != nil {
		return archive.IndexRecord{}, err
	}
	number, err := f.Either("bumid", "bumId")
	if err != nil {
		return archive.IndexRecord{}, err
	}
	rec := archive.IndexRecord{ArchiveID: sanitizeMessage(f.Text("archiveId")), ArchivedAt: f.Time("archiveDate"), Raw: bytes.Clone(raw)}
	if remote, err := archive.ParseRemoteID(apicall.ReadText(number)); err == nil {
		rec.Remote = remote
	}
	rec.Document = archive.Document{Type: f.Text("documentType"), Number: f.Text("documentId"), Date: f.Text("documentDate"),
		SenderName: f.Text("senderName"), SenderIDs: apicall.ReadTexts(f["senderIds"]), RecipientName: f.Text("recipientName"), RecipientIDs: apicall.ReadTexts(f["recipientIds"]),
		Currency: f.Text("currencyCode"), BuyerReferenceID: f.Text("buyerReferenceId"), BuyerReferenceType: f.Text("buyerReferenceType"),
		Amount: archive.Decimal(f.Text("amount")), TradingPartner: f.Text("tradingPartner"), FlowDirection: f.Text("flowDirection")}
	rec.Document.Parameters, err = readParameters(f["additionalParameters"])
	return rec, err
}

// readParameters reads the further searchable pairs of a record.
func readParameters(raw json.RawMessage) ([]archive.Parameter, error) {
	if raw == nil {
		return nil, nil
	}
	var pairs []json.RawMessage
	if json.Unmarshal(raw, &pairs) != nil {
		return nil, apicall.ErrUnknownForm
	}
	var all []archive.Parameter
	for _, pair := range pairs {
		f, err := apicall.ReadFields(pair, "key", "value")
		if err != nil {
			return nil, err
		}
		all = append(all, archive.Parameter{Key: f.Text("key"), Value: f.Text("value")})
	}
	return all, nil
}

// Vault is one vault that the credentials reach.
type Vault struct {
	ID   archive.VaultID
	Name string
}

// Vaults lists the vaults that the credentials of v reach. The list is advice: its form is not specified, and some services do
// not have it. So it is requested once, and a refusal does not replace the token of other calls.
func (c *Client) Vaults(ctx context.Context, v archive.VaultID) ([]Vault, error) {
	ans, err := c.apiOf(v).Do(ctx, apicall.Request{Op: "list the vaults", Path: []string{"v1", "vaults"}, Limit: vaultsAnswer, Header: http.Header{"Accept": {"application/json"}}})
	if err != nil {
		return nil, err
	}
	defer ans.Release()
	elements, err := apicall.ReadRecords(ans.Body, "vaults")
	if err != nil {
		return nil, ans.Unreadable("list the vaults", err)
	}
	var out []Vault
	for _, raw := range elements {
		f, err := apicall.ReadFields(raw, "vaultId", "id", "name")
		if errors.Is(err, apicall.ErrTwice) {
			return nil, ans.Unreadable("list the vaults", err)
		}
		given := apicall.ReadText(raw) // the id alone, where the element is no object
		if err == nil {
			given = cmp.Or(f.Text("vaultId"), f.Text("id"))
		}
		if id := sanitizeMessage(given); id != "" {
			out = append(out, Vault{ID: archive.VaultID(id), Name: sanitizeMessage(f.Text("name"))})
		}
	}
	return out, nil
}
