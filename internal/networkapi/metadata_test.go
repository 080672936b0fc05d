package networkapi

import (
	"fmt"
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
		text := string(d.Metadata())
		kit.Check(t, err == nil && !strings.Contains(text, row.gone), "%s: %s, %v, want no error, text without %q", name, text, err, row.gone)
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
	kit.Check(t, d.FlowDirection == "" && d.Number == "" && d.SenderName == "Müller" && slices.Equal(d.SenderIDs, []string{"17"}) && d.Amount == "0",
		`%+v, want d.FlowDirection = "", d.Number = "", d.SenderName = "Müller", d.SenderIDs = %v, d.Amount = "0"`, d, []string{"17"})
}

// I10, I12: what each file is to its document. Of several PDFs one is the
// image; where nobody can say which one, the folder is refused in words.
func TestTypeFiles_I12_OneImage(t *testing.T) {
	const image, attachment, data = "imageFile", "attachmentFile", "dataFile"
	type row struct {
		files  string // the document's own list
		names  string
		types  FileTypes
		want   string // the types; empty: refused
		refuse string
	}
	kit.Rows(t, map[string]row{
		"OnlyPDF":         {names: "scan.pdf a.xml b.csv", want: image + " " + data + " " + attachment},
		"NamedByNumber":   {names: "Lieferschein.pdf RE_4711.PDF", want: attachment + " " + image},
		"NamedByFolder":   {names: "a.pdf Huber-88.pdf c.pdf", want: attachment + " " + image + " " + attachment},
		"NumberFirst":     {names: "Huber-88.pdf RE-4711.pdf", want: attachment + " " + image},
		"NamedTwice":      {names: "RE4711.pdf RE-4711.pdf", refuse: "2 of the files are PDFs, and none is named like the document or the folder"},
		"NobodyKnows":     {names: "a.pdf b.pdf", refuse: `write "files": [{"name": "a.pdf", "fileType": "imageFile"}]`},
		"Listed":          {files: `[{"name":"b.pdf","fileType":"imageFile"}]`, names: "a.pdf b.pdf", want: attachment + " " + image},
		"ListedInCapital": {files: `[{"name":"B.PDF","fileType":"imageFile"}]`, names: "a.pdf b.pdf", want: attachment + " " + image},
		"OneLeft":         {files: `[{"name":"b.pdf","fileType":"attachmentFile"}]`, names: "a.pdf b.pdf", want: image + " " + attachment},
		"TwoImages":       {files: `[{"name":"a.pdf","fileType":"imageFile"},{"name":"b.pdf","fileType":"imageFile"}]`, names: "a.pdf b.pdf c.pdf", want: image + " " + image + " " + attachment},
		"DataAsPDF":       {files: `[{"name":"a.csv","fileType":"dataFile"}]`, names: "a.csv", want: data},
		"NotThere":        {files: `[{"name":"c.pdf","fileType":"imageFile"}]`, names: "a.pdf", refuse: `names "c.pdf", which is not in the folder`},
		"NoPDFIsAnImage":  {types: FileTypes{"pdf": "attachmentFile"}, names: "a.pdf b.pdf", want: attachment + " " + attachment},
		"PagesOfAScan":    {types: FileTypes{"tif": "imageFile"}, names: "1.tif 2.tif", want: image + " " + image},
		"None":            {names: "", want: ""},
	}, func(t *testing.T, r row) {
		files := ""
		if r.files != "" {
			files = `, "files": ` + r.files
		}
		document := `{"data":{"documentCurrencyCode":"EUR","externalDocumentIdentifier":{"id":"RE-4711"}}` + files + `}`
		if r.types == nil {
			r.types = DefaultFileTypes()
		}
		types, faults := r.types.TypeFiles([]byte(document), "Huber 88", strings.Fields(r.names))
		if r.refuse != "" {
			kit.Holds(t, "the faults", fmt.Sprint(faults), r.refuse)
			return
		}
		kit.Want(t, "faults", len(faults), 0)
		kit.Want(t, "types", strings.Trim(fmt.Sprint(types), "[]"), r.want)
		kit.Lacks(t, "what is sent", string(kit.Value(ComposeBody([]byte(document), nil))(t)), "files\"")
	})
}

// The list is checked before anything is sent.
func TestCheckDocument_ListedFiles(t *testing.T) {
	for files, want := range map[string]string{
		`{}`:                              "files: must be a list",
		`["a.pdf"]`:                       "files[0]: must be an object",
		`[{"fileType":"imageFile"}]`:      "files[0].name: is missing",
		`[{"name":"a.pdf"}]`:              "files[0].fileType: is missing; write imageFile, attachmentFile or dataFile.",
		`[{"name":"a","fileType":"pdf"}]`: "files[0].fileType: is not known; write imageFile, attachmentFile or dataFile.",
		`[{"name":"a","fileType":"dataFile"},{"name":"A","fileType":"dataFile"}]`: "files[1].name: names a file that was named before",
		`[{"name":"a","fileType":"dataFile","type":"x"}]`:                         "files[0].type: is not known here",
	} {
		kit.Holds(t, files, strings.Join(describe(CheckDocument([]byte(strings.Replace(goodDocument, `"data"`, `"files": `+files+`, "data"`, 1)))), "\n"), want)
	}
}
