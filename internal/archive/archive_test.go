package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

func TestKey_SortsByTimeAndSurvivesItsText(t *testing.T) {
	var texts []string
	for i := range 200 {
		k := NewKey(time.UnixMilli(1_700_000_000_000 + int64(i)*7))
		back, err := ParseKey(strings.ToUpper(k.String()))
		kit.Need(t, err == nil && back == k, "%v came back as %v: %v", k, back, err)
		if k.Time().UnixMilli() != 1_700_000_000_000+int64(i)*7 {
			t.Fatalf("%v tells %v", k, k.Time())
		}
		texts = append(texts, k.String())
	}
	kit.Check(t, slices.IsSorted(texts), "texts do not sort as the keys were made")
	for _, bad := range []string{"", "0", strings.Repeat("u", 26), strings.Repeat("0", 27), strings.Repeat("z", 26)} {
		kit.Fails(t, fmt.Sprintf("%q was taken for a key", bad), kit.Err(ParseKey(bad)))
	}
}

const ( // reckoned once with another program
	goldenContent    = "e902873456fd15315bbcef46ab06e3ab3bc007b32b8f374f41a0ef92bd4b69e5"
	goldenID         = "9af5049a-f948-527e-8ee9-35f5d77e7ca8"
	goldenGeneration = "c7c225e1-f91b-5d0e-82a4-7edec8392951"
)

// The identity of a dropped invoice must never change with a version of vaultd:
// these values are fixed for ever.
func TestDeriveID_I10_IsFixedForEver(t *testing.T) {
	files := []File{{Path: "b.xml", Size: 2, SHA256: Sum([]byte("b!"))}, {Path: "a.pdf", Size: 1, SHA256: Sum([]byte("a")), Type: ImageFile}}
	content := ContentDigest(files)
	kit.Want(t, "content digest", content.String(), goldenContent)
	slices.Reverse(files)
	kit.Want(t, "the order of the files changes the digest", ContentDigest(files), content)
	id := DeriveID("VAULT", content, Sum([]byte("{}")))
	kit.Want(t, "derived", id.String(), goldenID)
	kit.Want(t, "generation", id.Generation(1).String(), goldenGeneration)
	kit.Check(t, DeriveID("OTHER", content, Sum([]byte("{}"))) != id, "the vault is part of the identity")
}

func TestMetadata_I10_FixedOrderExactNumbers(t *testing.T) {
	d := Document{Type: "Invoice", Number: "1\u2028<&>", Date: "2026-10-31T00:00:00Z", Amount: "9007199254740993.10",
		SenderIDs: []string{"DE1"}, Parameters: []Parameter{{"k", "v"}}}
	const want = `{"documentType":"Invoice","documentId":"1\u2028<&>","documentDate":"2026-10-31T00:00:00Z",` +
		`"senderIds":["DE1"],"amount":9007199254740993.10,"additionalParameters":[{"key":"k","value":"v"}]}`
	kit.Want(t, "the metadata", string(d.Metadata()), want)
	back, err := ParseMetadata(d.Metadata())
	kit.Check(t, err == nil && string(back.Metadata()) == want, "read back %+v, %v", back, err)
}

// I10: each text stands in the frozen bytes as the JSON encoder writes it, whether or not it needs an escape.
func TestMetadata_I10_TextsAsTheEncoderWritesThem(t *testing.T) {
	for r := range rune(0x3000) {
		text := "a" + string(r) + "b"
		var want bytes.Buffer
		enc := json.NewEncoder(&want)
		enc.SetEscapeHTML(false)
		kit.Must(t, enc.Encode(map[string]string{"senderName": text}))
		if got := string(Document{SenderName: text}.Metadata()); got != strings.TrimSpace(want.String()) {
			t.Errorf("%U: %s, the encoder writes %s", r, got, want.String())
		}
	}
}

func TestDocumentFaults_NameEveryFieldAtOnce(t *testing.T) {
	d := Document{Type: "Bill", Date: "2026-02-30T00:00:00Z", SenderName: strings.Repeat("ä", 151), Currency: "eur",
		RecipientIDs: []string{strings.Repeat("1", 150), strings.Repeat("2", 150)}, Amount: "1e3", FlowDirection: "up", Parameters: []Parameter{{"a", strings.Repeat("ä", MaxParameters)}}}
	var fields []string
	for _, f := range d.Faults() {
		fields = append(fields, f.Field)
	}
	want := []string{"documentType", "documentId", "documentDate", "senderName", "recipientIds", "currencyCode", "amount", "additionalParameters", "flowDirection"}
	kit.Want(t, "fields with faults", fields, want)
	fine := Document{Type: "CreditNote", Number: "1", Date: "2026-02-28T10:00:00Z", SenderName: strings.Repeat("ä", 150), Parameters: []Parameter{{"a", strings.Repeat("ä", MaxParameters-1)}}}
	fs := fine.Faults()
	kit.Check(t, len(fs) <= 0, "a good document has faults: %v", fs)
}

func TestParseDecimal_KeepsEveryDigitAndRefusesTheRest(t *testing.T) {
	for _, good := range []string{"0", "-1.50", "9007199254740993.10", "0.000000001"} {
		kit.Want(t, "string(d)", string(kit.Value(ParseDecimal(good))(t)), good)
	}
	for _, bad := range []string{"", "1,5", "1e5", "01", ".5", "5.", "+1", "NaN", `"1"`, "1 ", strings.Repeat("9", 400), "0x1", "--1"} {
		kit.Fails(t, fmt.Sprintf("%q was taken for a decimal", bad), kit.Err(ParseDecimal(bad)))
	}
}

func TestPresignedURL_I7_NeverPrintsItself(t *testing.T) {
	const secret = "https://store.example/x?X-Amz-Signature=canary"
	ticket := Ticket{Remote: "r", URL: secret}
	asJSON := kit.Value(json.Marshal(ticket))(t)
	var log, verbs strings.Builder
	for _, verb := range []string{"d", "x", "X", "c", "t", "U", "+d", "#x", "-10s", "o", "e"} { // also those that do not fit a text
		fmt.Fprintf(&verbs, "%"+verb+" %"+verb+" %"+verb+"\n", ticket, ticket.URL, &ticket)
	}
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "ticket", ticket, "url", ticket.URL)
	for _, s := range []string{fmt.Sprint(ticket), fmt.Sprintf("%v %+v %#v %s %q", ticket, ticket, ticket, ticket.URL, ticket.URL), ticket.URL.String(), verbs.String(), string(asJSON), log.String()} {
		if strings.Contains(s, "canary") || strings.Contains(strings.ToLower(s), "63616e617279") { // in hexadecimal too
			t.Errorf("the address shows in %s", s)
		}
	}
}

func TestParseRemoteID_OnlyWhatFitsAPath(t *testing.T) {
	for _, bad := range []string{"", "a/b", "..", "a b", "a\nb", "ä", "a%2fb", "a?b", strings.Repeat("x", 201)} {
		kit.Fails(t, fmt.Sprintf("%q was taken", bad), kit.Err(ParseRemoteID(bad)))
	}
	// One number in two spellings is one; only of a UUID is it known that letters of either size are the same.
	for given, want := range map[string]RemoteID{
		"46aa4caf-b373-11ed-bbfc-cfd535abf178": "46aa4caf-b373-11ed-bbfc-cfd535abf178",
		"46AA4CAF-b373-11ED-BBFC-CFD535ABF178": "46aa4caf-b373-11ed-bbfc-cfd535abf178",
		"46AA4CAFB37311EDBBFCCFD535ABF178":     "46AA4CAFB37311EDBBFCCFD535ABF178",
		"Doc-4711":                             "Doc-4711",
	} {
		kit.Want(t, given, kit.Value(ParseRemoteID(given))(t), want)
	}
}

func TestInstantSince_I6_AnotherBootTellsNothing(t *testing.T) {
	a := Instant{Boot: time.Minute, BootID: "a"}
	d, ok := (Instant{Boot: time.Hour, BootID: "a"}).Since(a)
	kit.Check(t, ok && d == 59*time.Minute, "d = %v, ok = %v, want ok, d = 59*time.Minute", d, ok)
	_, ok = (Instant{Boot: time.Hour, BootID: "b"}).Since(a)
	kit.Check(t, !ok, "compared clocks of two boots")
	_, ok = (Instant{}).Since(Instant{})
	kit.Check(t, !ok, "compared clocks of no boot")
}

func TestNameFolder(t *testing.T) {
	for _, row := range []struct {
		words []string
		want  string
	}{
		{[]string{"Sent", "Müller & Söhne", "RE-4711"}, "Sent Müller & Söhne RE-4711"}, {[]string{"Received", "", ""}, "Received"},
		{[]string{"Sent", " A/B\\C:\tD\x00 ", "N 1/2."}, "Sent A_B_C_ D_ N 1_2"}, {[]string{"Sent", "\xff", "1"}, "Sent _ 1"},
		{[]string{"Sent", strings.Repeat("𝄞", 80)}, "Sent " + strings.Repeat("𝄞", 48)},
	} {
		kit.Want(t, fmt.Sprintf("%q becomes", row.words), NameFolder(row.words...), row.want)
	}
}

func TestMakeSidecar(t *testing.T) {
	id := DeriveSentID("1")
	if got := string(MakeSidecar(id, []string{"a"}, []byte(`{"documentId":"x"}`))); got != "{\n  \"clientUUID\": \""+id.String()+"\",\n  \"files\": [\n    \"a\"\n  ],\n  \"documentId\": \"x\"\n}\n" {
		t.Error(got)
	}
	got := string(MakeSidecar(id, []string{"a"}, []byte("{}")))
	kit.Check(t, strings.HasSuffix(got, "  ]\n}\n"), "got = %v, want got that ends with \" ]\\n}\\n\"", got)
	kit.Check(t, DeriveSentID("1") != DeriveReceivedID("1"), "what was sent and what came in have one identity")
}

// I19: a number of the service stays within its path.
func TestParseExtractID_I19_IsOnePartOfAPath(t *testing.T) {
	for text, want := range map[string]bool{
		"4711": true, "a3C-9_f.1": true, strings.Repeat("9", 200): true,
		"": false, ".": false, "..": false, "a/b": false, `a\b`: false, "a b": false, "a?b": false, "a#b": false, "%2e": false, "ä": false, "a\n": false, strings.Repeat("9", 201): false,
	} {
		id, err := ParseExtractID(text)
		kit.Check(t, (err == nil) == want && (!want || string(id) == text), "%q gives %q, %v", text, id, err)
	}
}

// I7: the address of a download grants access, so every print hides it.
func TestDownloadURL_I7_PrintsNoAddress(t *testing.T) {
	file := ExtractFile{Name: "a.zip", URL: "https://files.example/a?Signature=s3cret"}
	asJSON := kit.Value(json.Marshal(file))(t)
	var logged strings.Builder
	slog.New(slog.NewTextHandler(&logged, nil)).Info("x", "file", file, "url", file.URL)
	for _, text := range []string{fmt.Sprint(file), fmt.Sprintf("%+v %#v %x %q %d", file, file.URL, file.URL, file.URL, file.URL), string(asJSON), logged.String()} {
		kit.Holds(t, "the text", text, "[address]")
		kit.Lacks(t, "the text", text, "s3cret", "files.example")
	}
}

// I2: the lesser of two clocks counts; one that was set back is ignored.
func TestPassed_I2(t *testing.T) {
	const day = 24 * time.Hour
	for _, row := range []struct{ ours, theirs, want time.Duration }{
		{day, day, day}, {day, time.Hour, time.Hour}, {time.Hour, day, time.Hour}, {-day, time.Hour, time.Hour}, {time.Hour, -day, time.Hour},
		{-time.Minute, day, -time.Minute}, {day, -5 * time.Minute, -5 * time.Minute}, {day, -5*time.Minute - 1, day},
	} {
		kit.Want(t, fmt.Sprintf("%v and %v", row.ours, row.theirs), ReliableElapsed(row.ours, row.theirs), row.want)
	}
	got := ReliableElapsed(-day, -2*day)
	kit.Check(t, got < 0, "both were set back: %v", got)
}

// I10: the body of the request, and the identity of a PDF, are permanently the
// same.
func TestPDF_I10_IsFixedForEver(t *testing.T) {
	got := string(PDFRequest{Receiving: "ap+o'neill&co@in.example", Notify: "clerk@acme.example"}.Encode())
	want := `{"receivingEmailAddress":"ap+o'neill&co@in.example","notificationEmailAddress":"clerk@acme.example"}`
	kit.Check(t, got == want, "got %s, want %s", got, want)
	content := Sum([]byte("%PDF-1.7 %%EOF"))
	id := DerivePDFID("ap@in.example", content)
	kit.Want(t, "derived", "135ecb7a-01f3-53a7-9c9b-d48b785dbcae", id.String())
	kit.Check(t, DerivePDFID("AP@IN.example", content) == id && ReceivingDigest("AP@IN.example") == ReceivingDigest("ap@in.example"),
		"the case of the address makes another mailbox")
	for name, other := range map[string]ID{
		"Address": DerivePDFID("ap2@in.example", content), "Content": DerivePDFID("ap@in.example", Sum(nil)),
		"Vault": DeriveID("pdf", content, ReceivingDigest("ap@in.example")),
	} {
		kit.Check(t, other != id, "%s is no part of the identity", name)
	}
}

// Whom a document is for comes from its frozen metadata, whatever way it goes.
func TestReadReceiver(t *testing.T) {
	for want, metadata := range map[string][]byte{
		"ap@in.example": PDFRequest{Receiving: "ap@in.example", Notify: "x@in.example"}.Encode(),
		"Acme AG, 1, 2": Document{Type: "Invoice", RecipientName: "Acme AG", RecipientIDs: []string{"1", "2"}}.Metadata(),
		"4012345000009": Document{Type: "Invoice", RecipientIDs: []string{"4012345000009"}}.Metadata(),
		"":              nil,
	} {
		kit.Want(t, fmt.Sprint(metadata), kit.Value(ReadReceiver(metadata))(t).String(), want)
	}
	kit.Fails(t, "a list is metadata", kit.Err(ReadReceiver([]byte("[]"))))
}

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

func TestLife_I6_EarlierOfWindowAndOwnExpiry(t *testing.T) {
	type row struct {
		ticket         Ticket
		alone, limited time.Duration // unlimited, and limited to 15 minutes
	}
	kit.Rows(t, map[string]row{
		"NothingKnown":              {Ticket{}, 15 * time.Minute, 15 * time.Minute},
		"SignedAtAlone":             {Ticket{Date: noon, SignedAt: noon.Add(-time.Hour)}, 15 * time.Minute, 15 * time.Minute},
		"ServiceClockAheadByAnHour": {Ticket{Date: noon.Add(time.Hour), SignedAt: noon.Add(time.Hour), Validity: 15 * time.Minute}, 15*time.Minute - time.Second, 15*time.Minute - time.Second},
		"SignedLongBeforeAnswer":    {Ticket{Date: noon.Add(5 * time.Minute), SignedAt: noon, Validity: 15 * time.Minute}, 10*time.Minute - time.Second, 10*time.Minute - time.Second},
		"SignedAfterTheAnswer":      {Ticket{Date: noon, SignedAt: noon.Add(3 * time.Second), Validity: 15 * time.Minute}, 15*time.Minute + 2*time.Second, 15 * time.Minute},
		"ShortValidity":             {Ticket{Date: noon, SignedAt: noon, Validity: 6 * time.Second}, 5 * time.Second, 5 * time.Second},
		"LongerThanTheLimit":        {Ticket{Date: noon, SignedAt: noon, Validity: time.Hour}, time.Hour - time.Second, 15 * time.Minute},
		"NoDateInAnswer":            {Ticket{SignedAt: noon, Validity: time.Minute}, time.Minute, time.Minute},
		"LongWithoutADate":          {Ticket{SignedAt: noon, Validity: time.Hour}, time.Hour, 15 * time.Minute},
		"ValidityAlone":             {Ticket{Date: noon, Validity: 5 * time.Minute}, 5 * time.Minute, 5 * time.Minute},
		"ExpiredOnArrival":          {Ticket{Date: noon.Add(time.Hour), SignedAt: noon, Validity: time.Minute}, -59*time.Minute - time.Second, -59*time.Minute - time.Second},
	}, func(t *testing.T, row row) {
		kit.Want(t, "the life", row.ticket.Life(), row.alone)
		limited := row.ticket.LimitLife(15 * time.Minute)
		got := limited.Life()
		kit.Check(t, got == row.limited && limited.LimitLife(15*time.Minute).Life() == got, "limited: Life = %v, want %v", got, row.limited)
	})
}
