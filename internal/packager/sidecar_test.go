package packager

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

func TestSidecar_Refused(t *testing.T) {
	with := func(old, new string) string {
		kit.Need(t, strings.Contains(sidecar, old), "the good sidecar has no %q", old)
		return strings.Replace(sidecar, old, new, 1)
	}
	add := func(line string) string { return with(`"amount": 1234.56`, `"amount": 1234.56,`+"\n  "+line) }
	date := func(s string) string { return with(`"2026-10-31"`, s) }
	amount := func(s string) string { return with(`1234.56`, s) }
	for _, row := range []struct {
		name, src string
		words     []string
	}{
		{"Empty", "", []string{"metadata.json is empty"}},
		{"OnlyByteOrderMark", "\xef\xbb\xbf \n", []string{"is empty"}},
		{"Huge", sidecar + strings.Repeat(" ", maxSmallFile), []string{"1.0 MB; such a file has at most 1.0 MB"}},
		{"Deep", strings.Repeat(`[`, 200_000), []string{"line 1, column 17", "nested deeper than 16"}},
		{"ManyValues", `{"files": [` + strings.Repeat("1,", 30_000) + "1]}", []string{"more than 20000 values"}},
		{"UTF16LittleEndian", "\xff\xfe{\x00}\x00", []string{"UTF-16", "Save as", "UTF-8"}},
		{"UTF16BigEndianNoMark", "\x00{\x00}", []string{"UTF-16"}},
		{"WordDocument", "PK\x03\x04....", []string{"word processor", "Notepad"}},
		{"Latin1", with("Müller", "M\xfcller"), []string{"line 5, column 19", "not UTF-8", `encoding "UTF-8"`}},
		{"TrailingData", sidecar + "x", []string{"line 10, column 1", "after the closing bracket"}},
		{"TwoObjects", sidecar + sidecar, []string{"line 10, column 1"}},
		{"NotAnObject", `["a"]`, []string{"a list in [ ], not an object"}},
		{"NaN", amount("NaN"), []string{"line 8, column 13", "NaN is not a number"}},
		{"Infinity", amount("-Infinity"), []string{"-Infinity is not a number"}},
		{"CapitalTrue", amount("True"), []string{"Write true"}},
		{"UnquotedText", amount("EUR"), []string{"text without quotes"}},
		{"LeadingZero", amount("0123"), []string{"leading zero"}},
		{"PlusSign", amount("+1"), []string{"begins with +"}},
		{"BarePoint", amount(".5"), []string{"begins with ."}},
		{"PointAtEnd", amount("5."), []string{"digits are missing"}},
		{"UnquotedDate", date("31.10.2026"), []string{"line 4, column 19", "dates and invoice numbers in quotes"}},
		{"CommaInNumber", amount("1234,56"), []string{"line 8, column 17", "a comma inside a number", "1234.56"}},
		{"CommaAtEnd", amount("1234.56,"), []string{"line 8, column 20", "a comma before }"}},
		{"CommaMissing", with(`"EUR",`, `"EUR"`), []string{"line 8, column 3", "a comma or } is expected"}},
		{"ColonMissing", with(`"currencyCode":`, `"currencyCode"`), []string{"a colon is expected"}},
		{"CutOff", sidecar[:40], []string{"not closed on its line"}},
		{"CutOffBetween", strings.TrimRight(sidecar, "}\n"), []string{"ends too early"}},
		{"CurlyQuotes", with(`"documentDate"`, `“documentDate”`), []string{"metadata.json is unreadable at line 4, column 3: curly quotes, probably from Word. Fill in a copy of _template\\metadata.json with Notepad, then move"}},
		{"CurlyQuoteAtTheEnd", with(`"EUR"`, `"EUR”`), []string{"line 7, column 23", "curly quotes"}},
		{"SingleQuotes", with(`"EUR"`, `'EUR'`), []string{"single quotes"}},
		{"Comment", with(`"currencyCode"`, `// "currencyCode"`), []string{"a comment"}},
		{"LineBreakInText", with("EUR", "EU\nR"), []string{"line 7, column 19", "not closed on its line"}},
		{"TabInText", with("EUR", "EU\tR"), []string{"control character"}},
		{"WindowsPath", with("EUR", `C:\Scans`), []string{`every backslash twice`}},
		{"LoneSurrogate", with("EUR", `\ud800`), []string{"half a character"}},
		{"EscapedNUL", with("EUR", `\u0000`), []string{`"currencyCode" has a control character`}},
		{"DuplicateKey", add(`"amount": 2`), []string{`line 9, "amount" stands here a second time (first in line 8)`}},
		{"DuplicateKeyEscaped", add(`"\u0061mount": 2`), []string{`stands here a second time`}},
		{"DuplicateKeyInside", add(`"additionalParameters": [{"key": "a", "value": "b", "key": "c"}]`), []string{"second time"}},
		{"UnknownKey", add(`"betrag": 2`), []string{`line 9, "betrag" is not a field`, "the fields are documentType"}},
		{"KeyInOtherCase", with(`"documentId"`, `"documentID"`), []string{`line 3, "documentID" is not`, `Did you mean "documentId"?`}},
		{"KeyMisspelt", with(`"currencyCode"`, `"currency_cod"`), []string{`Did you mean "currencyCode"?`}},
		{"NumberForText", with(`"2026-4711"`, `4711`), []string{`line 3, "documentId" is a number; it must be text in quotes. Write it in quotes: "4711"`}},
		{"Null", with(`"EUR"`, `null`), []string{`"currencyCode" is null. Leave the whole field out`}},
		{"TextForList", with(`["DE123456789"]`, `"DE123456789"`), []string{`"recipientIds" is text in quotes; it must be a list`}},
		{"NumberInList", with(`["DE123456789"]`, `["DE1", 2]`), []string{`"recipientIds"[1] is a number`}},
		{"EmptyInList", with(`["DE123456789"]`, `[""]`), []string{`"recipientIds"[0] is empty`}},
		{"ObjectForParameters", add(`"additionalParameters": {"a": "b"}`), []string{`[{"key": "…", "value": "…"}]`}},
		{"ParameterNotText", add(`"additionalParameters": [{"key": "a", "value": "b"}, {"key": 7, "value": "c"}]`), []string{`line 9, "additionalParameters"[1].key is a number`}},
		{"ParameterWithoutKey", add(`"additionalParameters": [{"value": "c"}]`), []string{`"additionalParameters"[0].key is missing`}},
		{"ParameterUnknown", add(`"additionalParameters": [{"Key": "a"}]`), []string{`"additionalParameters"[0].Key is not a field`, `Did you mean "key"?`}},
		{"BadUUID", add(`"clientUUID": "4711"`), []string{`"clientUUID": "4711" is not a UUID`}},
		{"ZeroUUID", add(`"clientUUID": "00000000-0000-0000-0000-000000000000"`), []string{"is not a UUID"}},
		{"GermanDate", date(`"31.10.2026"`), []string{`NOT ARCHIVED. metadata.json, line 4, "documentDate": 31.10.2026 is not a valid date. Write 2026-10-31, then move this whole folder back. Nothing was sent.`}},
		{"AmericanDate", date(`"10/31/2026"`), []string{"10/31/2026 is not a valid date", "year-month-day"}},
		{"CompactDate", date(`20261031`), []string{`Write "2026-10-31" in quotes`}},
		{"ImpossibleDay", date(`"2026-02-30"`), []string{"2026-02-30 is not a valid date: there is no such day"}},
		{"ImpossibleTime", date(`"2026-10-31T25:00:00Z"`), []string{"no such day or time"}},
		{"UnlikelyYear", date(`"0026-10-31"`), []string{"the year is 26"}},
		{"OtherOffset", date(`"2026-10-31T00:30:00+01:00"`), []string{"is not in UTC, and is not converted", "Write 2026-10-31,"}},
		{"ZeroOffset", date(`"2026-10-31T00:30:00+00:00"`), []string{"is not in UTC"}},
		{"NoZone", date(`"2026-10-31T00:30:00"`), []string{"does not say its time zone"}},
		{"CommaInSeconds", date(`"2026-10-31T00:30:00,5Z"`), []string{"like 2026-10-31T14:30:00Z"}},
		{"DateMissing", with(`  "documentDate": "2026-10-31",`+"\n", ""), []string{`metadata.json, "documentDate" is missing. Write the date of issue`}},
		{"GermanAmount", amount(`"1.234,56"`), []string{`NOT ARCHIVED. metadata.json, line 8, "amount": "1.234,56" is ambiguous. Write 1234.56, then move`}},
		{"AmbiguousAmount", amount(`"1.234"`), []string{"Write 1.234 or 1234 without quotes, whichever is meant"}},
		{"AmountWithCurrencyBehind", amount(`"119.00 EUR"`), []string{`"119.00 EUR" has more in it than a number. Write the number alone, like 1234.56; the currency belongs to "currencyCode"`}},
		{"CurrencyBehindANumber", amount(`119.00 EUR`), []string{"line 8, column 20", "a word behind a number", `and the currency in "currencyCode"`}},
		{"CurrencyAtANumber", amount(`119.00EUR`), []string{"line 8, column 19", "a word behind a number"}},
		{"QuotesInAValue", with("Müller", `Fa. "Huber" KG`), []string{"line 5", `quotation marks inside a value. Put a backslash before each of them: \"Huber\"`}},
		{"DateWithASpace", date(`" 2026-10-31"`), []string{`"documentDate": " 2026-10-31" has a space before or behind the date. Write 2026-10-31`}},
		{"AmountWithCurrency", amount(`"EUR 12"`), []string{"Write the number alone"}},
		{"Exponent", amount(`1e3`), []string{"1e3 has an exponent"}},
		{"FourHundredDigits", amount(strings.Repeat("9", 400)), []string{`"amount" has 400 characters`}},
		{"AmountIsList", amount(`[1]`), []string{`"amount" is a list in [ ]; it must be a number`}},
		{"TypeUnknown", with(`"Invoice"`, `"Rechnung"`), []string{`line 2, "documentType": "Rechnung" is not known. Write one of Invoice, CreditNote`}},
		{"NameTooLong", with("Müller", strings.Repeat("ü", 151)), []string{"characters; the archive takes 150"}},
		{"CurrencyWrong", with("EUR", "Euro"), []string{"is not an ISO 4217 code"}},
		{"FilesNotAList", add(`"files": "a.pdf"`), []string{`"files" is text in quotes; it must be a list`}},
		{"FileOutside", add(`"files": ["../a.pdf"]`), []string{`"files"[0]: "../a.pdf" is not the name of a file in this folder`}},
		{"FileTwice", add(`"files": ["a.pdf", "A.PDF"]`), []string{"A.PDF is named a second time"}},
		{"FileDigestBroken", add(`"files": [{"name": "a.pdf", "sha256": "12"}]`), []string{`"files"[0].sha256 is not a SHA-256`}},
		{"FileSizeBroken", add(`"files": [{"name": "a.pdf", "size": -1}]`), []string{"a number of bytes"}},
		{"FileWithoutName", add(`"files": [{"size": 1}]`), []string{`"files"[0].name is missing`}},
		{"Escape", with("EUR", `\u001b[31m`), []string{"control character"}},
		{"RightToLeft", with(`"EUR"`, "\"\u202eRUE\""), []string{`"\u202eRUE" is not an ISO 4217 code`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, root := drop(t, tree{"metadata.json": row.src, "a.pdf": "%PDF"})
			refused := refusalOf(t, root, rules, row.words...)
			if strings.ContainsFunc(refused.Text(), func(r rune) bool { return r < ' ' && r != '\n' || r == '\u202e' }) {
				t.Errorf("control characters in %q", refused.Text())
			}
		})
	}
}

func TestSidecar_AllFaultsAtOnceWithPlaces(t *testing.T) {
	_, root := drop(t, tree{"metadata.json": "{\r\n" +
		"  \"documentType\": \"Rechnung\",\r\n" +
		"  \"senderName\": \"Äh\", \"amount\": \"1.234,56\",\r\n" +
		"\t\"documentDate\": \"31.10.2026\"\r\n}", "a.pdf": "x"})
	refused := refusalOf(t, root, rules, "4 things to put right", "\n        \"documentDate\": \"31.10.2026\"\n                        ^")
	var got []string
	for _, f := range refused.Faults {
		got = append(got, fmt.Sprintf("%d:%d %s", f.Line, f.Col, f.Field))
	}
	want := "2:19 documentType, 3:33 amount, 4:18 documentDate, 0:0 documentId"
	kit.Want(t, "faults at", strings.Join(got, ", "), want)
}

func TestRefusal_I7_ErrorHoldsNoValues(t *testing.T) {
	src := strings.NewReplacer("2026-10-31", "SECRET-date", "1234.56", `"SECRET-amount"`, "EUR", "SECRET-currency", "Invoice", "SECRET-type").Replace(sidecar)
	_, root := drop(t, tree{"metadata.json": src, "a.pdf": "x"})
	refused := refusalOf(t, root, rules, "SECRET-date", "SECRET-amount")
	texts := []string{refused.Error()}
	for _, f := range refused.Faults {
		texts = append(texts, f.Brief)
	}
	for _, s := range texts {
		kit.Lacks(t, "the text", s, "SECRET", "\n")
	}
	want := "folder refused: documentType not accepted (metadata.json, line 2, column 19); 3 more"
	kit.Check(t, refused.Error() == want, "got  %s\nwant %s", refused, want)
}

func TestSidecar_ManyFaultsAreBounded(t *testing.T) {
	var b strings.Builder
	for i := range 9_000 {
		fmt.Fprintf(&b, `"x%d": 1, `, i)
	}
	_, root := drop(t, tree{"metadata.json": "{" + b.String() + sidecar[1:], "a.pdf": "x"})
	kit.Want(t, "faults", len(refusalOf(t, root, rules, "8900 more of such faults").Faults), maxFaults+1)
}

func TestSidecar_Understood(t *testing.T) {
	src := "\xef\xbb\xbf" + `{"documentType": "CreditNote", "documentId": "Größe \u00e9 \ud83d\ude00", "documentDate": "2026-10-31T22:30:00.250Z",
	 "amount": -9007199254740993.10, "senderIds": ["DE1", "4012345000009"], "additionalParameters": [{"key": "Kostenstelle", "value": "4711\n12"}],
	 "buyerReferenceId": "", "clientUUID": "0B6F3C1E-5F1D-4A53-9F0E-2F6A3C1D9B77", "flowDirection": "receiving"}`
	_, root := drop(t, tree{"METADATA.JSON": src, "a.pdf": "x"})
	s := mustBuild(t, root, Rules{Vault: "V", Defaults: map[string]any{
		"currencyCode": "EUR", "senderIds": []any{"other"}, "buyerReferenceId": "PO-1", "recipientIds": []string{"DE9"}, "flowDirection": "sending"}})
	want := `{"documentType":"CreditNote","documentId":"Größe é 😀","documentDate":"2026-10-31T22:30:00.250Z","senderIds":["DE1","4012345000009"],` +
		`"recipientIds":["DE9"],"currencyCode":"EUR","buyerReferenceId":"PO-1","amount":-9007199254740993.10,` +
		`"additionalParameters":[{"key":"Kostenstelle","value":"4711\n12"}],"flowDirection":"receiving"}`
	kit.Check(t, string(s.Metadata) == want, "got  %s\nwant %s", s.Metadata, want)
	kit.Check(t, s.HasChosenID && s.ID.String() == "0b6f3c1e-5f1d-4a53-9f0e-2f6a3c1d9b77",
		"identity %s, chosen %v", s.ID, s.HasChosenID)
}

// I10: an amount in quotes is the number that it says, and freezes to the same bytes as without them.
func TestSidecar_I10_AQuotedAmountIsTheNumber(t *testing.T) {
	for _, amount := range []string{"119.00", "-5", "0", "0.500", "1234.56", "9007199254740993.10", "12345.678"} {
		var frozen [][]byte
		for _, written := range []string{amount, `"` + amount + `"`, `" ` + amount + ` "`} {
			_, root := drop(t, tree{"metadata.json": strings.Replace(sidecar, "1234.56", written, 1), "a.pdf": "x"})
			frozen = append(frozen, mustBuild(t, root, rules).Metadata)
		}
		if !bytes.Equal(frozen[0], frozen[1]) || !bytes.Equal(frozen[0], frozen[2]) || !bytes.Contains(frozen[0], []byte(`"amount":`+amount)) {
			t.Errorf("%s: %s, want frozen[0] = %v, frozen[0] = %v, frozen[0] with %q", amount, frozen, frozen[1], frozen[2], []byte(`"amount":`+amount))
		}
	}
}

func TestRequire(t *testing.T) {
	for _, row := range []struct {
		name    string
		require map[string]any
		words   []string // none: accepted
	}{
		{"OneOfTheIds", map[string]any{"recipientIds": "DE123456789"}, nil},
		{"AnyOfTheOwn", map[string]any{"recipientIds": []any{"4012345000009", "DE123456789"}}, nil},
		{"Text", map[string]any{"currencyCode": []string{"CHF", "EUR"}}, nil},
		{"Amount", map[string]any{"amount": json.Number("1234.56")}, nil},
		{"AnotherCompanys", map[string]any{"recipientIds": "DE999"}, []string{"NOT ARCHIVED. Recipient is DE123456789; this folder is for DE999. Move it to the right company's folder. Nothing was sent."}},
		{"AnotherSenders", map[string]any{"senderName": []string{"A", "B"}}, []string{"Sender is Müller & Söhne; this folder is for A or B."}},
		{"AnotherCurrency", map[string]any{"currencyCode": "CHF"}, []string{`"currencyCode" is EUR; this folder is for CHF`}},
		{"NothingSaid", map[string]any{"senderIds": "DE1"}, []string{`"senderIds" is missing; this folder is for DE1`}},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "x"})
			r := Rules{Vault: "V", Require: row.require}
			if row.words == nil {
				mustBuild(t, root, r)
				return
			}
			refusalOf(t, root, r, row.words...)
		})
	}
}

func TestRules_Check(t *testing.T) {
	faults := Rules{Sidecar: "a/b", Complete: "soon", Compression: "zopfli", MaxSize: 2 * archive.MaxPackage,
		Defaults: map[string]any{"clientUUID": "x", "betrag": "1", "amount": 1.5, "currencyCode": "Euro", "documentDate": "31.10.2026", "recipientIds": "DE1"},
		Require:  map[string]any{"files": "a", "senderIds": []string{}, "sender": "a"},
	}.FindFaults()
	var got []string
	for _, f := range faults {
		got = append(got, f.Field)
		kit.Check(t, f.Text != "", "%s has no text", f.Field)
	}
	want := "vault sidecar complete max_size compression defaults.amount defaults.clientUUID defaults.betrag defaults.documentDate " +
		"defaults.recipientIds defaults.currencyCode require.files require.sender require.senderIds"
	kit.Want(t, "got", strings.Join(got, " "), want)
	_, root := drop(t, tree{"metadata.json": sidecar, "a.pdf": "x"})
	_, err := build(t, root, Rules{})
	kit.Check(t, err != nil && !strings.Contains(err.Error(), "refused"), "a wrong configuration gave %v", err)
	for _, name := range []string{".done", "Manifest-sha256.txt", "_reason.TXT", "a.tmp", "..", "._x"} {
		f := (Rules{Vault: "V", Sidecar: name}).FindFaults()
		kit.Check(t, len(f) == 1 && f[0].Field == "sidecar", "sidecar %q: %v", name, f)
	}
	good := Rules{Vault: "V", Defaults: map[string]any{"currencyCode": "EUR", "amount": "12.50",
		"additionalParameters": []any{map[string]any{"key": "Kostenstelle", "value": "4711"}}}}
	f := good.FindFaults()
	kit.Check(t, f == nil, "good rules have faults: %v", f)
	p := mustBuild(t, root, good).Document.Parameters
	kit.Check(t, len(p) == 1 && p[0] == (archive.Parameter{Key: "Kostenstelle", Value: "4711"}), "parameters by default: %v", p)
}

func TestUnlikelyValuesOfAConfiguration(t *testing.T) {
	for field, x := range map[string]any{
		"currencyCode": nil, "senderName": 4711, "recipientName": true, "senderIds": []any{"a", []any{}}, "recipientIds": []any{1.5},
		"additionalParameters": map[string]any{"key": struct{}{}}, "amount": json.Number("1e5"), "documentType": uint64(7), "tradingPartner": int64(1),
	} {
		f := Rules{Vault: "V", Defaults: map[string]any{field: x}}.FindFaults()
		kit.Check(t, len(f) == 1 && strings.HasPrefix(f[0].Field, "defaults."+field) && f[0].Text != "",
			"%s: %v gave %v", field, x, f)
	}
}

func FuzzSidecar(f *testing.F) {
	for _, s := range []string{sidecar, "", "{", `{"a":[{}`, "\xef\xbb\xbf{}", `{"amount":1e5}`, `{"documentDate":"31.10.2026"}`, `{"a":"\ud83d\ude00"}`,
		`{"amount":"1.234,56","amount":-0.0}`, `{“a”:1}`, `{"files":[{"name":"a\\b","sha256":"","size":1}]}`, "{\"a\":\r\n\x80}", `{"senderIds":["a",null]}`, `{"a":1,2}`} {
		f.Add([]byte(s))
	}
	r := kit.Value(Rules{Vault: "V", Require: map[string]any{"currencyCode": "EUR"}}.validated())(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		form := readSidecar("metadata.json", src, r)
		for _, x := range form.faults {
			kit.Check(t, x.Text != "" && x.Advice != "" && x.Line >= 0 && (x.Line <= 0 || x.Col >= 1), "fault %+v", x)
		}
		if err := newRefusal(form.faults, form.asRead); err != nil {
			s := err.Error() + err.(*Refusal).Text()
			kit.Check(t, !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' }), "control character in %q", s)
			return
		}
		kit.Check(t, json.Valid(form.src), "took what is no JSON: %q", src)
		meta := form.doc.Metadata()
		kit.Check(t, json.Valid(meta) && len(form.doc.Faults()) <= 0, "took %q as %s", src, meta)
	})
}

// I18: a lock, a swap file or a backup is left out, and listed, where the file
// that it accompanies is there and every list leaves it out. Otherwise it is a
// file as any other.
func TestFolder_I18_CompanionsAreLeftOut(t *testing.T) {
	const meta = `{"documentType": "Invoice", "documentId": "1", "documentDate": "2026-10-31"`
	backup := "a.pdf~"
	type row struct {
		files      tree
		sent, junk string
		complete   string
	}
	kit.Rows(t, map[string]row{
		"BesideTheirFile": {tree{"metadata.json": meta + "}", "a.pdf": "a", "sub/b.ods": "b", backup: "x", ".~lock.a.pdf#": "x", "sub/.b.ods.swp": "x", "metadata.json.bak": "x", "a.pdf:Zone.Identifier": "x"},
			"a.pdf sub/b.ods", ".~lock.a.pdf# a.pdf:Zone.Identifier a.pdf~ metadata.json.bak sub/.b.ods.swp", ""},
		"Alone":             {tree{"metadata.json": meta + "}", "a.pdf": "a", "b.pdf~": "x", "sub/a.pdf~": "x", ".~lock.c.ods#": "x"}, ".~lock.c.ods# a.pdf b.pdf~ sub/a.pdf~", "", ""},
		"NamedBySidecar":    {tree{"metadata.json": meta + `, "files": ["a.pdf", "a.pdf~"]}`, "a.pdf": "a", backup: "x", "a.pdf.bak": "y"}, "a.pdf a.pdf~", "a.pdf.bak", "list"},
		"NamedByManifest":   {tree{"metadata.json": meta + "}", "manifest-sha256.txt": digestOf("a") + "  a.pdf\n" + digestOf("x") + "  a.pdf~\n", "a.pdf": "a", backup: "x"}, "a.pdf a.pdf~", "", "list"},
		"FolderIsNoBackup":  {tree{"metadata.json": meta + "}", "a.pdf": "a", "a.pdf~/b.pdf": "x"}, "a.pdf a.pdf~/b.pdf", "", ""},
		"ThumbnailsOfANAS":  {tree{"metadata.json": meta + "}", "a.pdf": "a", ".@__thumb/s100a.pdf": "x", ".AppleDouble/a.pdf": "x"}, "a.pdf", ".@__thumb/s100a.pdf .AppleDouble/a.pdf", ""},
		"OneWithoutContent": {tree{"metadata.json": meta + "}", "a.pdf": "a", "a.pdf.lock": ""}, "a.pdf", "a.pdf.lock", ""},
	}, func(t *testing.T, row row) {
		_, root := drop(t, row.files)
		r := rules
		r.Complete = row.complete
		s := kit.Value(ValidateFolder(t.Context(), root, r))(t)
		var sent []string
		for _, f := range s.Files {
			sent = append(sent, f.Path)
		}
		kit.Want(t, "sent", strings.Join(sent, " "), row.sent)
		kit.Want(t, "ignored", strings.Join(s.Junk, " "), row.junk)
	})
	for _, waits := range []string{".a.pdf.icloud", ".a.pdf.Xy12Zz", "a.pdf.partial", "sub/a.gdoc"} {
		_, root := drop(t, tree{"metadata.json": meta + "}", "a.pdf": "a", waits: "x"})
		kit.Fails(t, waits+": err", kit.Err(ValidateFolder(t.Context(), root, rules)), archive.ErrChanged)
	}
}

// A copied template is refused until its number and date are written into it,
// and then taken; the example in the help is taken.
func TestTemplate_FilledInIsTaken(t *testing.T) {
	kit.Rows(t, map[string]Rules{
		"Plain":    {Vault: "V"},
		"List":     {Vault: "V", Complete: "list"},
		"Marker":   {Vault: "V", Complete: "marker", Sidecar: "rechnung.json"},
		"Defaults": {Vault: "V", Defaults: map[string]any{"recipientName": "Acme <GmbH>", "recipientIds": []any{"DE1"}, "documentType": "CreditNote", "amount": json.Number("1.10")}},
	}, func(t *testing.T, rules Rules) {
		form, help := MakeTemplate(rules)
		_, example, found := strings.Cut(help, "A whole one:\n\n")
		kit.Need(t, found && !strings.Contains(help, "\r"), "help = %v, want found, help without \"\\r\"", help)
		filled := strings.NewReplacer(`"amount": ""`, `"amount": "119.00"`, `"senderName": ""`, `"senderName": "Huber"`, `"documentId": ""`, `"documentId": "4711"`, `"documentDate": ""`, `"documentDate": "2026-10-31"`, `"files": []`, `"files": ["rechnung.pdf"]`).Replace(string(form))
		for _, sidecar := range []string{filled, example} {
			_, err := validate(t, rules, sidecar)
			kit.Check(t, err == nil, "%v\n%s", err, sidecar)
		}
		_, err := validate(t, rules, string(form))
		refusal, ok := errors.AsType[*Refusal](err)
		if !ok || !strings.Contains(refusal.Text(), `"documentId" is missing`) || !strings.Contains(refusal.Text(), `"documentDate" is missing`) {
			t.Errorf("as it is: %v", err)
		}
		again, _ := MakeTemplate(rules)
		kit.Check(t, string(again) == string(form), "not the same twice")
	})
}

func validate(t *testing.T, rules Rules, sidecar string) (Sealed, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{rules.withDefaults().Sidecar: sidecar, "rechnung.pdf": "x"} {
		kit.Must(t, os.WriteFile(dir+"/"+name, []byte(content), 0o600))
	}
	if rules.Complete == "marker" {
		kit.Must(t, os.WriteFile(dir+"/"+markerName, nil, 0o600))
	}
	root := kit.Value(os.OpenRoot(dir))(t)
	defer root.Close()
	return ValidateFolder(t.Context(), root, rules)
}
