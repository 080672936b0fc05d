package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of the service. Sizes are decimal and count the bytes of the ZIP.
const (
	MB             = 1_000_000
	MaxPackage     = 100 * MB // largest ZIP the service takes
	MaxNumber      = 100      // characters of documentId
	MaxName        = 150      // characters of senderName, recipientName, tradingPartner
	MaxIDs         = 300      // characters of one array of identifiers, separators counted
	MaxReference   = 100      // characters of buyerReferenceId and buyerReferenceType
	MaxParameters  = 16_000   // characters of additionalParameters in all; the service names no limit
	MaxCurrency    = 3        // characters of currencyCode
	MaxAmountDigit = 60       // digits of an amount; the service names no limit
)

// DocumentTypes are the values that the service knows for documentType.
var DocumentTypes = []string{"Invoice", "CreditNote", "InvoiceSelfBilled", "CreditNoteSelfBilled"}

// Decimal is a number kept as its JSON text, digit for digit; empty is none.
type Decimal string

// ParseDecimal checks that s is a JSON number without an exponent.
func ParseDecimal(s string) (Decimal, error) {
	digits := strings.Count(s, "") - 1
	if !json.Valid([]byte(s)) || s == "" || strings.Trim(s, "-0123456789.") != "" || digits > MaxAmountDigit {
		return "", fmt.Errorf("%q is not a plain decimal number", shorten(s, 40))
	}
	return Decimal(s), nil
}

// Rat returns the exact value; nil for none.
func (d Decimal) Rat() *big.Rat {
	r, ok := new(big.Rat).SetString(string(d))
	if !ok {
		return nil
	}
	return r
}

// Parameter is one further searchable pair.
type Parameter struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Document is the metadata of one invoice as the service stores it. Empty fields
// are not sent.
type Document struct {
	Type               string      // one of DocumentTypes
	Number             string      // documentId: the invoice number, not an identity
	Date               string      // documentDate, RFC 3339 in UTC, as it is sent
	SenderName         string      //
	SenderIDs          []string    //
	RecipientName      string      //
	RecipientIDs       []string    //
	Currency           string      // ISO 4217
	BuyerReferenceID   string      //
	BuyerReferenceType string      //
	Amount             Decimal     //
	Parameters         []Parameter // additionalParameters
	TradingPartner     string      //
	FlowDirection      string      // "sending" or "receiving"
}

// Fault is one thing wrong with one field, in words for the person who wrote it.
type Fault struct {
	Field string // the field's name in the sidecar, e.g. "documentDate"
	Text  string // what is wrong and what would be right
}

// Faults returns everything that the service would refuse, in the order of the fields.
func (d Document) Faults() []Fault {
	var fs []Fault
	add := func(field, format string, a ...any) { fs = append(fs, Fault{field, fmt.Sprintf(format, a...)}) }
	long := func(field, s string, n int) {
		if c := utf8.RuneCountInString(s); c > n {
			add(field, "has %d characters; the archive takes %d", c, n)
		}
	}
	switch {
	case d.Type == "":
		add("documentType", "is missing; write one of %s", strings.Join(DocumentTypes, ", "))
	case !slices.Contains(DocumentTypes, d.Type):
		add("documentType", "%q is not known; write one of %s", shorten(d.Type, 40), strings.Join(DocumentTypes, ", "))
	}
	if strings.TrimSpace(d.Number) == "" {
		add("documentId", "is missing; write the invoice number")
	}
	long("documentId", d.Number, MaxNumber)
	switch t, err := time.Parse(time.RFC3339, d.Date); {
	case d.Date == "":
		add("documentDate", "is missing; write the date of issue, like 2026-10-31")
	case err != nil || t.Location() != time.UTC:
		add("documentDate", "%q is not a date in UTC; write it like 2026-10-31", shorten(d.Date, 40))
	}
	long("senderName", d.SenderName, MaxName)
	long("recipientName", d.RecipientName, MaxName)
	long("senderIds", strings.Join(d.SenderIDs, ","), MaxIDs)
	long("recipientIds", strings.Join(d.RecipientIDs, ","), MaxIDs)
	if d.Currency != "" && !isCurrency(d.Currency) {
		add("currencyCode", "%q is not an ISO 4217 code; write three capital letters, like EUR", shorten(d.Currency, 20))
	}
	long("buyerReferenceId", d.BuyerReferenceID, MaxReference)
	long("buyerReferenceType", d.BuyerReferenceType, MaxReference)
	if d.Amount != "" {
		if _, err := ParseDecimal(string(d.Amount)); err != nil {
			add("amount", "%v; write it like 1234.56", err)
		}
	}
	long("tradingPartner", d.TradingPartner, MaxName)
	if n := d.parameterSize(); n > MaxParameters {
		add("additionalParameters", "has %d characters in all; vaultd takes %d", n, MaxParameters)
	}
	if d.FlowDirection != "" && d.FlowDirection != "sending" && d.FlowDirection != "receiving" {
		add("flowDirection", "%q is not known; write sending or receiving", shorten(d.FlowDirection, 40))
	}
	return fs
}

// parameterSize counts the characters of all names and values.
func (d Document) parameterSize() (n int) {
	for _, p := range d.Parameters {
		n += utf8.RuneCountInString(p.Key) + utf8.RuneCountInString(p.Value)
	}
	return n
}

func isCurrency(s string) bool {
	return len(s) == MaxCurrency && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// Metadata returns the canonical JSON object of the document without its identity: fields in fixed order, empty ones left out,
// numbers as they were written. The same document gives the same bytes. They are part of the identity (see [DeriveID]), and the
// service gets them unchanged.
func (d Document) Metadata() []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	b.WriteByte('{')
	field := func(name string, v any, empty bool) {
		if empty {
			return
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.WriteString(`"` + name + `":`)
		if s, is := v.(string); is && isPlain(s) { // most of them: the encoder would write the same
			b.WriteString(`"` + s + `"`)
			return
		}
		enc.Encode(v)           //lint:ignore errcheck strings, pairs and checked numbers always encode
		b.Truncate(b.Len() - 1) // the encoder ends each value with a line feed
	}
	text := func(name, s string) { field(name, s, s == "") }
	text("documentType", d.Type)
	text("documentId", d.Number)
	text("documentDate", d.Date)
	text("senderName", d.SenderName)
	field("senderIds", d.SenderIDs, len(d.SenderIDs) == 0)
	text("recipientName", d.RecipientName)
	field("recipientIds", d.RecipientIDs, len(d.RecipientIDs) == 0)
	text("currencyCode", d.Currency)
	text("buyerReferenceId", d.BuyerReferenceID)
	text("buyerReferenceType", d.BuyerReferenceType)
	field("amount", json.RawMessage(d.Amount), d.Amount == "")
	field("additionalParameters", d.Parameters, len(d.Parameters) == 0)
	text("tradingPartner", d.TradingPartner)
	text("flowDirection", d.FlowDirection)
	b.WriteByte('}')
	return b.Bytes()
}

// isPlain reports whether a text stands in JSON as it is: printable ASCII without quotes and backslashes.
func isPlain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// RegisterRequest is what one document contributes to a registration. The client of the service puts the two into the bytes
// that it sends; the same two always give the same bytes.
type RegisterRequest struct {
	ID       ID
	Metadata []byte // canonical, as [Document.Metadata] wrote it before the first registration
}

// File is one file of an invoice: its path in the ZIP (slashes, NFC), its size in
// bytes and its digest.
type File struct {
	Path   string   `stored:"1"`
	Size   int64    `stored:"2"`
	SHA256 Digest   `stored:"3"`
	Type   FileType `stored:"4"` // of a file of a document for the business network, as it was when that was sealed; empty: by the ending of its name
}

// ContentDigest is the digest of the sorted list of the files: of "path NUL size
// NUL sha256 LF" for each, sizes in decimal and digests in hexadecimal.
func ContentDigest(files []File) Digest {
	sorted := slices.SortedFunc(slices.Values(files), func(a, b File) int { return strings.Compare(a.Path, b.Path) })
	h := sha256.New()
	for _, f := range sorted {
		fmt.Fprintf(h, "%s\x00%d\x00%s\n", f.Path, f.Size, f.SHA256)
	}
	return Digest(h.Sum(nil))
}

// ParseMetadata reads what Metadata wrote. Unknown fields are ignored: a later
// version may have written them.
func ParseMetadata(b []byte) (Document, error) {
	if d, ok := parsePlainMetadata(b); ok {
		return d, nil
	}
	return parseMetadata(b)
}

// MetadataFields returns the names of the fields of metadata, in the order in
// which faults are reported.
func MetadataFields() []string {
	return []string{"documentType", "documentId", "documentDate", "senderName", "senderIds", "recipientName", "recipientIds", "currencyCode",
		"buyerReferenceId", "buyerReferenceType", "amount", "additionalParameters", "tradingPartner", "flowDirection"}
}

// parseMetadata reads any metadata.
func parseMetadata(b []byte) (Document, error) {
	var m struct {
		Type               string      `json:"documentType"`
		Number             string      `json:"documentId"`
		Date               string      `json:"documentDate"`
		SenderName         string      `json:"senderName"`
		SenderIDs          []string    `json:"senderIds"`
		RecipientName      string      `json:"recipientName"`
		RecipientIDs       []string    `json:"recipientIds"`
		Currency           string      `json:"currencyCode"`
		BuyerReferenceID   string      `json:"buyerReferenceId"`
		BuyerReferenceType string      `json:"buyerReferenceType"`
		Amount             json.Number `json:"amount"`
		Parameters         []Parameter `json:"additionalParameters"`
		TradingPartner     string      `json:"tradingPartner"`
		FlowDirection      string      `json:"flowDirection"`
	}
	if err := json.Unmarshal(b, &m); err != nil {
		return Document{}, fmt.Errorf("parse metadata: %w", err)
	}
	return Document{Type: m.Type, Number: m.Number, Date: m.Date, SenderName: m.SenderName, SenderIDs: m.SenderIDs,
		RecipientName: m.RecipientName, RecipientIDs: m.RecipientIDs, Currency: m.Currency, BuyerReferenceID: m.BuyerReferenceID,
		BuyerReferenceType: m.BuyerReferenceType, Amount: Decimal(m.Amount), Parameters: m.Parameters,
		TradingPartner: m.TradingPartner, FlowDirection: m.FlowDirection}, nil
}
