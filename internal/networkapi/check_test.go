package networkapi

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

const goodDocument = `{
  "documentType": "CreditNote",
  "data": {
    "externalDocumentIdentifier": {"id": "CN-1"},
    "issueDate": "2026-10-31+01:00",
    "documentCurrencyCode": "EUR",
    "accountingSupplierParty": {"partyName": "Otto", "partyIdentifications": [{"id": "DE123456789", "schemeId": "VAT"}, {"id": "x"}], "postalAddress": {"countryId": "DE"}},
    "accountingCustomerParty": {"partyName": "Acme", "endpoint": {"id": "123456789", "schemeId": "FR:ORGNR"}},
    "allowanceCharges": [{"changeIndicator": false, "amount": 12.50}],
    "paymentMeans": {"paymentMeansCode": "31", "paymentDueDate": "2026-11-30", "financialAccounts": [{"ids": [{"id": "DE89370400440532013000", "schemeId": "IBAN"}]}]},
    "customFields": [{"name": "issueDate", "issueDate": "whenever"}],
    "invoiceLines": [{"lineExtension": {"amount": 9007199254740993.10, "currencyId": "EUR"}}]
  },
  "processingPreference": {"sentTo": {"id": "1234567890123", "schemeId": "GLN"}}
}`

// describe returns the faults as a person reads them.
func describe(faults []Fault) (all []string) {
	for _, f := range faults {
		all = append(all, f.Describe("document.json"))
	}
	return all
}

func TestCheckDocument_GoodOnes(t *testing.T) {
	for _, document := range []string{goodDocument, "\xef\xbb\xbf" + goodDocument, strings.ReplaceAll(goodDocument, "\n", "\r\n"), `{"data":{"documentCurrencyCode":"EUR","accountingCustomerParty":{"partyName":"A","endpoint":{"id":"x"}}}}`,
		`{"documentType":"CreditNode","data":{"documentCurrencyCode":"EUR","orderReference":null,"billingReference":{"id":"1"},"taxTotal":{"taxSubtotals":[]}},"processingPreference":{"sentTo":{"id":"any"}}}`,
		`{"data":{"documentCurrencyCode":"EUR","invoiceLines":[{"version":1}]},"printingPreference":{"any":1}}`, `{"data":{"documentCurrencyCode":"EUR","note":"\ud83d\ude00 \\ud83d"},"processingPreference":{"printingPreference":1}}`} {
		if faults := CheckDocument([]byte(document)); len(faults) != 0 {
			t.Errorf("%q, want len(faults) = 0", describe(faults))
		}
	}
}

// One thing is changed in a good document, and is told with its place.
func TestCheckDocument_EachFault(t *testing.T) {
	for _, r := range []struct{ name, old, new, want string }{
		{"GLN", `"1234567890123"`, `"123456789012"`, "document.json, line 14, sentTo.id: a GLN has 13 digits, this has 12."},
		{"GLNWithLetters", `"1234567890123"`, `"123456789012X"`, "document.json, line 14, sentTo.id: a GLN has 13 digits and nothing else."},
		{"DUNS", `"1234567890123", "schemeId": "GLN"`, `"1234", "schemeId": "DUNS"`, "document.json, line 14, sentTo.id: a D-U-N-S number has 9 digits, this has 4."},
		{"SchemeUnknown", `"GLN"`, `"UNKNOWN"`, `document.json, line 14, sentTo.schemeId: "UNKNOWN" is not a scheme of the network`},
		{"RegisterOfACountryThatIsNone", `FR:ORGNR`, `ZZ:ORGNR`, `line 8, accountingCustomerParty.endpoint.schemeId: "ZZ:ORGNR" is not a scheme`},
		{"NoteIsANumber", `"issueDate"`, `"note": 1, "issueDate"`, "line 5, note: must be a text in quotes."},
		{"OrderInWords", `"issueDate"`, `"isIssuedAgainstOrder": "yes", "issueDate"`, "line 5, isIssuedAgainstOrder: must be true or false, without quotes."},
		{"TwoTaxSchemes", `"postalAddress": {`, `"partyTaxScheme": [{"company": {"id": "1"}}], "postalAddress": {`, "line 7, accountingSupplierParty.partyTaxScheme: must be an object in { }."},
		{"AddressIsAText", `{"countryId": "DE"}`, `"Berlin"`, "line 7, accountingSupplierParty.postalAddress: must be an object"},
		{"TelephoneIsANumber", `"postalAddress": {`, `"contact": {"telephone": 4930}, "postalAddress": {`, "accountingSupplierParty.contact.telephone: must be a text"},
		{"SchemeOfAPayment", `"paymentMeansCode"`, `"paymentIdentifier": {"id": "1", "schemeId": "WRONG"}, "paymentMeansCode"`, "line 10, paymentMeans.paymentIdentifier.schemeId: is not known; write SPY or ISO."},
		{"Barcode", `{"ids": [`, `{"accounting": {"virtualBankBarcode": {"id": "1", "schemeId": "SE"}}, "ids": [`, "paymentMeans.financialAccounts[0].accounting.virtualBankBarcode.schemeId: is not known; write FI."},
		{"TaxTotalIsAList", `"customFields"`, `"taxTotal": [], "customFields"`, "line 11, taxTotal: must be an object"},
		{"CountryThatIsNone", `"countryId": "DE"`, `"countryId": "XQ"`, "postalAddress.countryId: is not an ISO 3166 code"},
		{"OldIdentifications", `"partyIdentifications"`, `"partyIdentification"`, `line 7, accountingSupplierParty.partyIdentification: is a name of version 1; write "partyIdentifications", a list`},
		{"OldCharge", `"allowanceCharges"`, `"allowanceCharge"`, `line 9, allowanceCharge: is a name of version 1; write "allowanceCharges"`},
		{"OldAccounts", `"financialAccounts"`, `"financialAccount"`, `paymentMeans.financialAccount: is a name of version 1; write "financialAccounts"`},
		{"OldLines", `"invoiceLines"`, `"invoiceLine"`, `line 12, invoiceLine: is a name of version 1; write "invoiceLines"`},
		{"OldTaxOfALine", `[{"lineExtension"`, `[{"taxTotal": {}, "lineExtension"`, `line 12, invoiceLines[0].taxTotal: is a name of version 1; write "taxTotals"`},
		{"OldOperator", `"postalAddress": {`, `"serviceProviderId": "x", "postalAddress": {`, `accountingSupplierParty.serviceProviderId: is a name of version 1; write "operator".`},
		{"OldDelivery", `"issueDate"`, `"deliveryChannelPreference": {}, "issueDate"`, `deliveryChannelPreference: is a name of version 1; write "processingPreference", or "printingPreference", beside "data".`},
		{"PreferenceInData", `"issueDate"`, `"processingPreference": {}, "issueDate"`, `processingPreference: is a name of version 1; write it beside "data"`},
		{"InternalNumber", `"issueDate"`, `"internalId": "1", "issueDate"`, "internalId: is a name of version 1; delete it"},
		{"SchemeIsANumber", `"GLN"`, `7`, "document.json, line 14, sentTo.schemeId: must be a text in quotes."},
		{"IDMissing", `"id": "1234567890123", `, ``, "document.json, line 14, sentTo.id: is missing"},
		{"SIREN", `"123456789", "schemeId": "FR:ORGNR"`, `"12345678900011", "schemeId": "FR:ORGNR"`, "line 8, accountingCustomerParty.endpoint.id: a SIREN has 9 digits, this has 14."},
		{"RegisterNumber", `"123456789", "schemeId": "FR:ORGNR"`, `"12/34", "schemeId": "DE:ORGNR"`, "line 8, accountingCustomerParty.endpoint.id: a number of a national register has digits only."},
		{"RegisterOfNoCountry", `FR:ORGNR`, `fr:ORGNR`, `line 8, accountingCustomerParty.endpoint.schemeId: "fr:ORGNR" is not a scheme`},
		{"VAT", `"DE123456789"`, `"123456789"`, "line 7, accountingSupplierParty.partyIdentifications[0].id: a VAT number begins with"},
		{"Email", `"1234567890123", "schemeId": "GLN"`, `"Otto <a@b.example>", "schemeId": "EMAIL-RFC2822"`, "sentTo.id: this is not an e-mail address."},
		{"SpaceBehindAnID", `"1234567890123"`, `"1234567890123 "`, "sentTo.id: it begins or ends with a space"},
		{"IBANWithSpaces", `DE89370400440532013000`, `DE89 3704 0044 0532 0130 00`, "line 10, paymentMeans.financialAccounts[0].ids[0].id: an IBAN is written without spaces."},
		{"IBANCheckDigits", `DE89370400440532013000`, `DE89370400440532013001`, "the check digits of this IBAN do not match"},
		{"IBANShort", `DE89370400440532013000`, `DE89`, "an IBAN has two capital letters"},
		{"IBANAsEndpoint", `"1234567890123", "schemeId": "GLN"`, `"DE8937040044053201300", "schemeId": "IBAN"`, "sentTo.id: the check digits of this IBAN do not match"},
		{"NoCurrency", `    "documentCurrencyCode": "EUR",` + "\n", ``, "line 3, documentCurrencyCode: is missing; write the ISO 4217 code"},
		{"CurrencyInWords", `"documentCurrencyCode": "EUR"`, `"documentCurrencyCode": "Euro"`, "line 6, documentCurrencyCode: is not an ISO 4217 code"},
		{"CurrencyOfALine", `"currencyId": "EUR"`, `"currencyId": "eur"`, "line 12, invoiceLines[0].lineExtension.currencyId: is not an ISO 4217 code"},
		{"PartyWithoutName", `"partyName": "Acme", `, ``, "line 8, accountingCustomerParty.partyName: is missing; write the name of the party."},
		{"PartyWithEmptyName", `"Acme"`, `" "`, "line 8, accountingCustomerParty.partyName: is empty; write the name"},
		{"DateInGerman", `2026-10-31+01:00`, `31.10.2026`, "line 5, issueDate: is no date; write it like 2026-10-31"},
		{"DateThatIsNone", `2026-10-31+01:00`, `2026-02-30`, "line 5, issueDate: is no date"},
		{"DateWithTime", `2026-10-31+01:00`, `2026-10-31T00:00:00Z`, "line 5, issueDate: is no date"},
		{"DateIsANumber", `"2026-11-30"`, `20261130`, "line 10, paymentMeans.paymentDueDate: is no date"},
		{"Country", `"countryId": "DE"`, `"countryId": "Germany"`, "line 7, accountingSupplierParty.postalAddress.countryId: is not an ISO 3166 code"},
		{"ChargeWithoutIndicator", `"changeIndicator": false, `, ``, "line 9, allowanceCharges[0].changeIndicator: is missing; write true for a charge"},
		{"ChargeWithAWord", `"changeIndicator": false`, `"changeIndicator": "false"`, "line 9, allowanceCharges[0].changeIndicator: must be true or false, without quotes."},
		{"ChargeWithoutAmount", `, "amount": 12.50`, ``, "line 9, allowanceCharges[0].amount: is missing; write a number"},
		{"AmountInQuotes", `12.50`, `"12.50"`, "line 9, allowanceCharges[0].amount: must be a number without quotes"},
		{"NoPaymentMeansCode", `"paymentMeansCode": "31", `, ``, "line 10, paymentMeans.paymentMeansCode: is missing"},
		{"PaymentMeansCodeIsANumber", `"31"`, `31`, "line 10, paymentMeans.paymentMeansCode: must be a text in quotes."},
		{"InvoiceNumberMissing", `{"id": "CN-1"}`, `{}`, "line 4, externalDocumentIdentifier.id: is missing"},
		{"KindUnknown", `"CreditNote"`, `"Order"`, "line 2, documentType: is not known; write Invoice or CreditNote."},
		{"KindIsANumber", `"CreditNote"`, `1`, "line 2, documentType: is not known"},
		{"DataIsAList", `"data": {`, `"data": [], "data2": {`, "line 3, data: must be an object in { }."},
		{"MemberUnknown", `"processingPreference"`, `"fileRefs": [], "processingPreference"`, `line 14, fileRefs: is not known here, and would not be sent`},
		{"FieldTwice", `"issueDate"`, `"documentCurrencyCode": "EUR", "issueDate"`, "line 6, documentCurrencyCode: stands here a second time (first in line 5)"},
		{"ListOfPartyIsAnObject", `[{"id": "DE123456789", "schemeId": "VAT"}, {"id": "x"}]`, `{}`, "partyIdentifications: must be a list in [ ]."},
		{"ListHoldsAText", `[{"changeIndicator"`, `["x", {"changeIndicator"`, "allowanceCharges[0]: must be an object in { }."},
		{"SyntaxError", `"CN-1"}`, `"CN-1"]`, `document.json, line 4: the file is not JSON here: here a comma or } is expected, not ]; look for a missing comma, colon or quote just before it.`},
		{"CurlyQuotes", `"CN-1"`, `“CN-1”`, "document.json, line 4: the file is not JSON here: curly quotes, probably from Word; export it again, as plain JSON."},
		{"CommaInAnAmount", `12.50`, `1,234.50`, "document.json, line 9: the file is not JSON here: a comma inside a number; write a number without thousands separators and with a point, like 1234.56."},
		{"CurrencyBehindAnAmount", `12.50`, `12.50 EUR`, `the file is not JSON here: a word behind a number; write the number alone, like 1234.56, and the currency in "currencyId".`},
		{"CommaTooMany", `"GLN"}`, `"GLN",}`, "document.json, line 14: the file is not JSON here: a comma before }; delete that comma."},
		{"NotUTF8", `Otto`, "Otto\xff", "document.json, line 7: the file is not JSON here: a character that is not UTF-8; save the file again"},
		{"HalfCharacter", `Otto`, `Otto\ud800`, "document.json, line 7: the file is not JSON here: half a character"},
	} {
		t.Run(r.name, func(t *testing.T) {
			kit.Need(t, strings.Count(goodDocument, r.old) != 0, "the document has no %s", r.old)
			document := strings.Replace(goodDocument, r.old, r.new, 1)
			told := describe(CheckDocument([]byte(document)))
			kit.Check(t, slices.ContainsFunc(told, func(s string) bool { return strings.Contains(s, r.want) }) && len(told) <= 2,
				"got %q, want %q", told, r.want)
		})
	}
}

// Nobody is told to guess whom a document goes to.
func TestCheckDocument_Recipient(t *testing.T) {
	for document, want := range map[string]string{
		`{"data":{"documentCurrencyCode":"EUR"}}`:                                                           "document.json, line 1, processingPreference.sentTo: is missing",
		"{\"data\":{\"documentCurrencyCode\":\"EUR\"},\n\"processingPreference\":{}}":                       "document.json, line 2, processingPreference.sentTo: is missing",
		`{"data":{"documentCurrencyCode":"EUR","accountingCustomerParty":{"partyName":"A"}}}`:               `write "processingPreference": {"sentTo": {"id": "…", "schemeId": "…"}} beside "data".`,
		`{"data":{"documentCurrencyCode":"EUR","accountingCustomerParty":{"partyName":"A","endpoint":{}}}}`: "accountingCustomerParty.endpoint.id: is missing",
		`{"data":{"documentCurrencyCode":"EUR"},"processingPreference":{"sentTo":"x"}}`:                     "sentTo: must be an object",
	} {
		told := describe(CheckDocument([]byte(document)))
		kit.Check(t, len(told) == 1 && strings.Contains(told[0], want), "faults of %s = %q, want one: %s", document, told, want)
	}
}

// All faults are told at once, in the order of the lines, and no more than a person reads.
func TestCheckDocument_AllFaultsAtOnce(t *testing.T) {
	told := CheckDocument([]byte("{\"data\": {\n\"issueDate\": 1,\n\"paymentMeans\": {},\n\"accountingSupplierParty\": {}},\n\"processingPreference\": {\"sentTo\": {}}}"))
	if len(told) != 5 || !slices.IsSortedFunc(told, func(a, b Fault) int { return a.Line - b.Line }) {
		t.Errorf("got %q", describe(told))
	}
	many := `{"data":{"a":[` + strings.Repeat(`{"amount":"x"},`, 10_000) + `{}]}}`
	kit.Want(t, "faults", len(CheckDocument([]byte(many))), MaxFaults)
	twice := `{"data":{` + strings.Repeat(`"a":1,`, 10_000) + `"documentCurrencyCode":"EUR"},"printingPreference":{}}`
	if told := CheckDocument([]byte(twice)); len(told) != 1 { // one line, one field
		t.Errorf("%d faults", len(told))
	}
	for _, hostile := range []string{strings.Repeat("[", 100_000), strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), "[" + strings.Repeat("1,", documentForm.Values) + "1]", "", "null", "[]", `"x"`, "{} {}", strings.Repeat(" ", MaxDocument+1)} {
		kit.Want(t, fmt.Sprintf("%.20q", hostile), len(CheckDocument([]byte(hostile))), 1)
	}
}

// I10, I12: the body holds the bytes of the document, amounts and all, and is the same each time.
func TestComposeBody_I10_KeepsEveryByte(t *testing.T) {
	document := "\xef\xbb\xbf{\"processingPreference\" : {\"sentTo\":{ }} ,\n \"data\":\t{\"amount\" : 9007199254740993.10, \"b\": 1e400,\"c\":\"\\u00e4<&>\"}\n}"
	const want = `{"fileRefs":[{"refId":"f-1"},{"refId":"a\"b"}],"data":` + "{\"amount\" : 9007199254740993.10, \"b\": 1e400,\"c\":\"\\u00e4<&>\"}" + `,"processingPreference":{"sentTo":{ }}}`
	for range 3 {
		kit.Want(t, "got", string(kit.Value(ComposeBody([]byte(document), []archive.FileID{"f-1", `a"b`}))(t)), want)
	}
	if got, err := ComposeBody([]byte(`{"printingPreference": {"a" : 1e400},"data":{},"files":[]}`), nil); err != nil || string(got) != `{"fileRefs":[],"data":{},"printingPreference":{"a" : 1e400}}` {
		t.Errorf("got %s, %v", got, err)
	}
	got, err := ComposeBody([]byte(`{"data":{}, "processingPreference":null}`), nil)
	kit.Check(t, err == nil && string(got) == `{"fileRefs":[],"data":{}}`, "got %s, %v", got, err)
	for _, bad := range []string{"", "[]", "{}", `{"data":[]}`, `{"data":{},"data":{}}`, `{"data":{"a":1,"a":1}}`, `{"data":{},"x":1}`, `{"data":{},"documentType":"Order"}`, `{"data":{}} x`, `{"data":{},"processingPreference":[]}`, "{\"data\":{\"a\":\"\xff\"}}"} {
		kit.Fails(t, fmt.Sprintf("%q gives", bad), kit.Err(ComposeBody([]byte(bad), nil)))
	}
	kit.Fails(t, "a file with a path is named", kit.Err(ComposeBody([]byte(`{"data":{}}`), []archive.FileID{"../x"})))
}

func TestReadKind(t *testing.T) {
	for document, want := range map[string]archive.NetworkKind{`{"data":{}}`: archive.NetworkInvoice, `{"data":{},"documentType":"CreditNote"}`: archive.NetworkCreditNote, `{"data":{},"documentType":"Invoice"}`: archive.NetworkInvoice, `{"data":{},"documentType":""}`: ""} {
		got, err := ReadKind([]byte(document))
		kit.Check(t, got == want && (err == nil) == (want != ""), "%s: %q, %v, want got = %v, (err == nil) = %v", document, got, err, want, (want != ""))
	}
}

func TestFileTypes(t *testing.T) {
	for name, ok := range map[string]bool{"a.pdf": true, "a.PDF": true, "folder.heic/a.Jpeg": true, "photo.heic": false, "pdf": false, "": false, "a.pdf.exe": false} {
		text, got := CheckFileName(name)
		kit.Check(t, got == ok && ok == (text == ""), "%q: %q, want got = %v, ok = %v", name, text, ok, (text == ""))
	}
	text, _ := CheckFileName("photo.heic")
	kit.Check(t, strings.HasPrefix(text, "photo.heic: the network takes CSV, DOC") && strings.HasSuffix(text, "ZIP."), "got %q", text)
	types := DefaultFileTypes()
	if types.Of("a.PDF") != archive.ImageFile || types.Of("a.xml") != archive.DataFile || types.Of("a.txt") != archive.AttachmentFile || FileTypes(nil).Of("a.pdf") != archive.AttachmentFile || len(types.Faults()) != 0 {
		t.Error("a file has another type")
	}
	kit.Len(t, "got", (FileTypes{"PDF": archive.ImageFile, "heic": archive.ImageFile, "xml": "data"}).Faults(), 3)
}

func TestCheckIBAN(t *testing.T) {
	for _, good := range []string{"GB82WEST12345698765432", "DE89370400440532013000", "FR1420041010050500013M02606", "NO9386011117947", "MT84MALT011000012345MTLCAST001S"} {
		kit.Want(t, good, checkIBAN(good), "")
		for i := range len(good) { // each changed digit is found
			if c := good[i]; c >= '0' && c <= '8' {
				bad := fmt.Sprintf("%s%c%s", good[:i], c+1, good[i+1:])
				kit.Check(t, checkIBAN(bad) != "", "%s passes", bad)
			}
		}
	}
}

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
