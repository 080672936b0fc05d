package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"time"
)

// ink is the chance with which one document is written: the same key gives the same bytes.
type ink struct {
	*rand.Rand
	bytes *rand.ChaCha8 // the same stream, as bytes
}

func inkFrom(key [32]byte) *ink {
	source := rand.NewChaCha8(key)
	return &ink{rand.New(source), source}
}

// invoice is what all files of one folder speak of.
type invoice struct {
	*ink
	number         string
	date           time.Time
	seller, buyer  string
	sellerTax, tax string
	cents          int64
}

var (
	firms  = []string{"Alpenblick Mühlen", "Brenner & Söhne", "Donauwerk", "Eichhorn Logistik", "Feldhaus", "Grünwald Papier", "Hafenkontor", "Innviertler Holz"}
	kinds  = []string{"GmbH", "AG", "KG", "e.U.", "OG", "SE"}
	things = []string{"Buchenholzplatte", "Druckerpapier A4", "Frachtpauschale", "Gehäusedeckel", "Kabeltrommel", "Lagermiete", "Montage vor Ort",
		"Ölfilter", "Palettentausch", "Rohrschelle verzinkt", "Schmierfett", "Stundensatz Technik", "Transportversicherung", "Wartung", "Zylinderschraube M8"}
	streets = []string{"Am Graben", "Bahnhofstraße", "Hauptplatz", "Industriezeile", "Lindenweg", "Ringstraße"}
	towns   = []string{"Graz", "Innsbruck", "Köln", "Linz", "München", "Salzburg", "Wels", "Wien", "Zürich"}
)

func (k *ink) one(of []string) string { return of[k.IntN(len(of))] }

func (k *ink) firm() string { return k.one(firms) + " " + k.one(kinds) }

func (k *ink) invoice(number string, i int) *invoice {
	return &invoice{ink: k, number: number, date: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, i%300),
		seller: k.firm(), buyer: k.firm(), sellerTax: fmt.Sprintf("ATU%08d", k.IntN(1e8)), tax: fmt.Sprintf("DE%09d", k.IntN(1e9)),
		cents: 1000 + k.Int64N(5_000_000)}
}

func money(cents int64) string { return fmt.Sprintf("%d.%02d", cents/100, cents%100) }

// sidecar is metadata.json as people's programs write it. It names no identity: vaultd derives one.
func (v *invoice) sidecar(w io.Writer, _ int) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(map[string]any{
		"documentType": "Invoice", "documentId": v.number, "documentDate": v.date.Format(time.DateOnly),
		"senderName": v.seller, "senderIds": []string{v.sellerTax}, "recipientName": v.buyer, "recipientIds": []string{v.tax},
		"currencyCode": "EUR", "amount": json.RawMessage(money(v.cents)), "flowDirection": "sending",
	})
}

// ubl is an invoice like those of UBL 2.1, with as many lines as it takes to reach the size.
func (v *invoice) ubl(w io.Writer, size int) error {
	b := &counted{w: bufio.NewWriter(w)}
	fmt.Fprintf(b, `<?xml version="1.0" encoding="UTF-8"?>
<Invoice xmlns="urn:oasis:names:specification:ubl:schema:xsd:Invoice-2" xmlns:cac="urn:oasis:names:specification:ubl:schema:xsd:CommonAggregateComponents-2" xmlns:cbc="urn:oasis:names:specification:ubl:schema:xsd:CommonBasicComponents-2">
  <cbc:CustomizationID>urn:cen.eu:en16931:2017</cbc:CustomizationID>
  <cbc:ID>%s</cbc:ID>
  <cbc:IssueDate>%s</cbc:IssueDate>
  <cbc:InvoiceTypeCode>380</cbc:InvoiceTypeCode>
  <cbc:DocumentCurrencyCode>EUR</cbc:DocumentCurrencyCode>
`, v.number, v.date.Format(time.DateOnly))
	v.party(b, "AccountingSupplierParty", v.seller, v.sellerTax)
	v.party(b, "AccountingCustomerParty", v.buyer, v.tax)
	fmt.Fprintf(b, "  <cac:LegalMonetaryTotal>\n    <cbc:PayableAmount currencyID=\"EUR\">%s</cbc:PayableAmount>\n  </cac:LegalMonetaryTotal>\n", money(v.cents))
	for line := 1; b.n < size-500; line++ {
		price := 100 + v.Int64N(90_000)
		n := 1 + v.Int64N(40)
		fmt.Fprintf(b, `  <cac:InvoiceLine>
    <cbc:ID>%d</cbc:ID>
    <cbc:InvoicedQuantity unitCode="C62">%d</cbc:InvoicedQuantity>
    <cbc:LineExtensionAmount currencyID="EUR">%s</cbc:LineExtensionAmount>
    <cac:DespatchLineReference><cbc:LineID>%08d</cbc:LineID></cac:DespatchLineReference>
    <cac:Item>
      <cbc:Name>%s</cbc:Name>
      <cac:SellersItemIdentification><cbc:ID>%06X-%d</cbc:ID></cac:SellersItemIdentification>
      <cac:StandardItemIdentification><cbc:ID schemeID="0160">%013d</cbc:ID></cac:StandardItemIdentification>
      <cac:ClassifiedTaxCategory><cbc:ID>S</cbc:ID><cbc:Percent>20</cbc:Percent></cac:ClassifiedTaxCategory>
    </cac:Item>
    <cac:Price><cbc:PriceAmount currencyID="EUR">%s</cbc:PriceAmount></cac:Price>
  </cac:InvoiceLine>
`, line, n, money(n*price), v.IntN(1e8), v.one(things), v.IntN(1<<24), v.IntN(10), v.Int64N(1e13), money(price))
	}
	fmt.Fprint(b, "</Invoice>\n")
	return b.flush()
}

func (v *invoice) party(w io.Writer, role, name, tax string) {
	fmt.Fprintf(w, `  <cac:%[1]s>
    <cac:Party>
      <cac:PartyName><cbc:Name>%[2]s</cbc:Name></cac:PartyName>
      <cac:PostalAddress>
        <cbc:StreetName>%[3]s %[4]d</cbc:StreetName>
        <cbc:CityName>%[5]s</cbc:CityName>
        <cbc:PostalZone>%04[6]d</cbc:PostalZone>
      </cac:PostalAddress>
      <cac:PartyTaxScheme><cbc:CompanyID>%[7]s</cbc:CompanyID><cac:TaxScheme><cbc:ID>VAT</cbc:ID></cac:TaxScheme></cac:PartyTaxScheme>
    </cac:Party>
  </cac:%[1]s>
`, role, strings.ReplaceAll(name, "&", "&amp;"), v.one(streets), 1+v.IntN(120), v.one(towns), 1000+v.IntN(9000), tax)
}

// csv is a table of the invoice's lines.
func (v *invoice) csv(w io.Writer, size int) error {
	b := &counted{w: bufio.NewWriter(w)}
	fmt.Fprint(b, "position;article;text;quantity;price;delivered\r\n")
	for line := 1; b.n < size-40; line++ {
		fmt.Fprintf(b, "%d;%06X;%s;%d;%s;%s\r\n", line, v.IntN(1<<24), v.one(things), 1+v.IntN(40),
			money(100+v.Int64N(90_000)), v.date.AddDate(0, 0, -v.IntN(40)).Format(time.DateOnly))
	}
	return b.flush()
}

// counted counts what is written and keeps the first error for the end.
type counted struct {
	w   *bufio.Writer
	n   int
	err error
}

// Write implements io.Writer.
func (c *counted) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += n
	if c.err == nil {
		c.err = err
	}
	return n, err
}

func (c *counted) flush() error {
	if c.err != nil {
		return c.err
	}
	return c.w.Flush()
}
