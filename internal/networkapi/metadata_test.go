package networkapi

import (
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

const told = `{"documentType":"CreditNote","data":{
  "externalDocumentIdentifier":{"id":"RE-4711","schemeId":"x"},"issueDate":"2026-10-31+01:00","documentCurrencyCode":"EUR",
  "accountingSupplierParty":{"partyName":"Müller & Söhne","partyIdentifications":[{"id":"DE123456789","schemeId":"VAT"}],"endpoint":{"id":"4012345000009","schemeId":"GLN"}},
  "accountingCustomerParty":{"partyName":"Acme","partyIdentifications":[{"id":"FI12345678","schemeId":"VAT"}]},
  "taxTotal":{"taxSubtotals":[{"taxableAmount":9007199254740993.10},{"taxableAmount":0.1}]}},
 "processingPreference":{"sentTo":{"id":"003712345678","schemeId":"ISO6523-ACTORID-UPIS"}}}`

// What a document tells becomes the metadata of the archive, digit for digit, and in its canonical form.
func TestReadMetadata_DigitForDigit(t *testing.T) {
	faults := CheckDocument([]byte(told))
	kit.Need(t, len(faults) == 0, "%+v, want len(faults) = 0", faults)
	for name, src := range map[string]string{"Plain": told, "ByteOrderMark": "\xef\xbb\xbf" + told} {
		d, err := ReadMetadata([]byte(src))
		want := `{"documentType":"CreditNote","documentId":"RE-4711","documentDate":"2026-10-31T00:00:00Z","senderName":"Müller & Söhne","senderIds":["DE123456789","4012345000009"],` +
			`"recipientName":"Acme","recipientIds":["FI12345678","003712345678"],"currencyCode":"EUR","amount":9007199254740993.20,"flowDirection":"sending"}`
		if err != nil || string(d.Metadata()) != want {
			t.Errorf("%s: %s, %v, want no error, string(d.Metadata()) = %v", name, d.Metadata(), err, want)
		}
		if again, err := archive.ParseMetadata(d.Metadata()); err != nil || string(again.Metadata()) != want {
			t.Errorf("%s: read again: %s, %v", name, again.Metadata(), err)
		}
	}
	// One amount alone keeps its digits.
	one, err := ReadMetadata([]byte(strings.Replace(told, `,{"taxableAmount":0.1}`, "", 1)))
	kit.Check(t, err == nil && one.Amount == "9007199254740993.10",
		`%s, %v, want no error, one.Amount = "9007199254740993.10"`, one.Amount, err)
}

// What is not told, or would not be taken, stays away: nothing is guessed and nothing is cut.
func TestReadMetadata_NothingIsGuessed(t *testing.T) {
	long := strings.Repeat("ä", 151)
	for name, row := range map[string]struct{ old, new, gone string }{
		"NoType":          {`"documentType":"CreditNote",`, "", `"documentType":"CreditNote"`},
		"NoNumber":        {`"externalDocumentIdentifier":{"id":"RE-4711","schemeId":"x"},`, "", "documentId"},
		"LongNumber":      {"RE-4711", strings.Repeat("7", 101), "documentId"},
		"BlankNumber":     {"RE-4711", "  ", "documentId"},
		"LineBreakInside": {"RE-4711", `RE\n4711`, "documentId"},
		"NoDate":          {`"issueDate":"2026-10-31+01:00",`, "", "documentDate"},
		"NoSuchDay":       {"2026-10-31", "2026-02-30", "documentDate"},
		"LongName":        {"Müller & Söhne", long, "senderName"},
		"ManyIDs":         {"DE123456789", strings.Repeat("1", 287), "senderIds"},
		"LongRecipient":   {`"Acme"`, `"` + long + `"`, "recipientName"},
		"LongRecipientID": {"003712345678", strings.Repeat("1", 300), "recipientIds"},
		"NoCurrency":      {`"EUR"`, `"Euro"`, "currencyCode"},
		"NoAmount":        {`"taxTotal":{"taxSubtotals":[{"taxableAmount":9007199254740993.10},{"taxableAmount":0.1}]}`, `"x":1`, "amount"},
		"OneAmountIsNone": {`"taxableAmount":0.1`, `"amount":0.1`, "amount"},
		"Exponent":        {`:0.1`, `:1e1`, "amount"},
		"LongSum":         {`:0.1`, `:0.` + strings.Repeat("1", 50), "amount"},
	} {
		kit.Need(t, strings.Contains(told, row.old), "%v:, want told with %q", name, row.old)
		d, err := ReadMetadata([]byte(strings.Replace(told, row.old, row.new, 1)))
		if text := string(d.Metadata()); err != nil || strings.Contains(text, row.gone) {
			t.Errorf("%s: %s, %v, want no error, text without %q", name, text, err, row.gone)
		}
		// Whatever is left is what the archive takes.
		for _, f := range d.Faults() {
			kit.Check(t, strings.HasPrefix(f.Text, "is missing"),
				`%s: %+v, want f.Text that begins with "is missing"`, name, f)
		}
	}
	edge, err := ReadMetadata([]byte(strings.NewReplacer("DE123456789", strings.Repeat("1", 286), "RE-4711", strings.Repeat("7", 100)).Replace(told)))
	kit.Check(t, err == nil && len(edge.SenderIDs) == 2 && len(edge.Number) == 100,
		"what just fits is left out: %+v, %v", edge, err)
	if d, err := ReadMetadata([]byte(`{"data":{"documentCurrencyCode":"EUR"}}`)); err != nil || string(d.Metadata()) != `{"documentType":"Invoice","currencyCode":"EUR","flowDirection":"sending"}` {
		t.Errorf("%s, %v, want no error, string(d.Metadata()) = `{\"documentType\":\"Invoice\",\"currencyCode\":\"EUR\",\"flowDirection\":\"sending\"}`", d.Metadata(), err)
	}
	kit.Fails(t, "ReadMetadata", kit.Err(ReadMetadata([]byte(`{"data":{},"data":{}}`))))
}

// A received document is told in the same words, and not as one that is sent.
func TestContent_MetadataOfAReceivedDocument(t *testing.T) {
	r, err := readReceived([]byte(`{"data":{"externalDocumentIdentifier":{},"issueDate":"2026-10-31","accountingSupplierParty":{"partyName":"Müller","endpoint":{"id":17}},"taxTotals":[{"taxSubtotals":{"taxableAmount":"0"}}]}}`))
	kit.Must(t, err)
	d := r.Content.Metadata(archive.NetworkInvoice)
	if d.FlowDirection != "" || d.Number != "" || d.SenderName != "Müller" || !slices.Equal(d.SenderIDs, []string{"17"}) || d.Amount != "0" {
		t.Errorf(`%+v, want d.FlowDirection = "", d.Number = "", d.SenderName = "Müller", d.SenderIDs = %v, d.Amount = "0"`, d, []string{"17"})
	}
}
