package archive

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// plainSeeds are metadata that is plain, and metadata that only looks so.
var plainSeeds = []string{
	`{}`, `{"documentType":"Invoice"}`, `{"documentType":"Invoice","documentId":"R-1","documentDate":"2026-10-31T00:00:00Z","senderName":"Müller & Söhne","senderIds":["DE1","DE2"],` +
		`"recipientName":"Acme","recipientIds":["AT1"],"currencyCode":"EUR","buyerReferenceId":"b","buyerReferenceType":"t","amount":9007199254740993.10,"tradingPartner":"p","flowDirection":"sending"}`,
	`{"amount":-0.50}`, `{"amount":0}`, `{"amount":01}`, `{"amount":1.}`, `{"amount":.5}`, `{"amount":-}`, `{"amount":1e3}`, `{"amount":1-2}`, `{"amount":null}`, `{"amount":"1"}`, `{"amount":1`,
	`{"documentId":"a\u0062"}`, `{"documentId":"a\"b"}`, "{\"documentId\":\"a\tb\"}", "{\"documentId\":\"\xff\"}", `{"documentId":null}`, `{"documentId":""}`, `{"documentId":"open`,
	`{"documentId":"1","documentType":"Invoice"}`, `{"documentId":"1","documentId":"2"}`, `{"DOCUMENTID":"1"}`, `{"later":"1","documentId":"2"}`, `{"documentId":"1",}`, `{,"documentId":"1"}`,
	`{"senderIds":[]}`, `{"senderIds":["1",]}`, `{"senderIds":["1"}`, `{"senderIds":["1" ,"2"]}`, `{"senderIds":null}`, `{"senderIds":"1"}`, ` {}`, `{} `, `{"documentId": "1"}`, ``, `[`, `{`,
	`{"documentId":"1","additionalParameters":[{"key":"k","value":"v"}],"tradingPartner":"p"}`, `{"receivingEmailAddress":"ap@in.example"}`, `{"documentId":"1"}{"documentId":"2"}`,
}

// I10: what is read in one go is exactly what encoding/json reads; most metadata is read so.
func FuzzParseMetadata_I10_PlainAsTheDecoderReads(f *testing.F) {
	for _, s := range plainSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, ok := parsePlainMetadata(b)
		if !ok {
			return
		}
		want, err := parseMetadata(b)
		kit.Check(t, err == nil && reflect.DeepEqual(got, want),
			"%q: read as %+v, encoding/json reads %+v (%v)", b, got, want, err)
	})
}

func TestParseMetadata_MostIsPlain(t *testing.T) {
	for i, s := range plainSeeds {
		_, ok := parsePlainMetadata([]byte(s))
		kit.Check(t, ok == (i < 5) || s == `{"documentId":""}`, "%s: plain is %v", s, ok)
	}
	d := Document{Type: "Invoice", Number: "R-1", Date: "2026-10-31T00:00:00Z", SenderName: "Müller & Söhne", SenderIDs: []string{"DE1"}, RecipientName: "Acme", Currency: "EUR", Amount: "119.00"}
	back, ok := parsePlainMetadata(d.Metadata())
	kit.Check(t, ok && reflect.DeepEqual(back, d), "%v: %+v, want ok, back = %v", ok, back, d)
}

func BenchmarkParseMetadata(b *testing.B) {
	meta := []byte(plainSeeds[2])
	for name, parse := range map[string]func([]byte) (Document, error){"plain": ParseMetadata, "any": parseMetadata} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				kit.Value(parse(meta))(b)
			}
		})
	}
}

// Two documents bear one number where a bookkeeper would say so, and only then.
func TestNumberDigest_WhatABookkeeperTakesForOneNumber(t *testing.T) {
	first := Document{Type: "Invoice", Number: "RE-é12", Date: "2026-10-31T00:00:00Z", SenderName: "Müller GmbH", Amount: "10.00"}
	for name, row := range map[string]struct {
		change func(*Document)
		same   bool
	}{
		"OtherAmount":      {func(d *Document) { d.Amount = "11.00" }, true},
		"OtherType":        {func(d *Document) { d.Type = "CreditNote" }, true},
		"SpaceAround":      {func(d *Document) { d.Number, d.SenderName = " RE-é12\t", "Müller GmbH " }, true},
		"OtherCase":        {func(d *Document) { d.Number, d.SenderName = "re-É12", "MÜLLER gmbh" }, true},
		"OtherUnicodeForm": {func(d *Document) { d.Number, d.SenderName = "RE-e\u030112", "Mu\u0308ller GmbH" }, true},
		"TimeOfDay":        {func(d *Document) { d.Date = "2026-10-31T08:39:03Z" }, true},
		"OtherNumber":      {func(d *Document) { d.Number = "RE-é13" }, false},
		"SpaceWithin":      {func(d *Document) { d.Number = "RE -é12" }, false},
		"OtherDay":         {func(d *Document) { d.Date = "2026-11-01T00:00:00Z" }, false},
		"OtherSender":      {func(d *Document) { d.SenderName = "Huber GmbH" }, false},
		"WithIdentifiers":  {func(d *Document) { d.SenderIDs = []string{"DE1"} }, false},
	} {
		other := first
		row.change(&other)
		kit.Want(t, name+": the same", other.NumberDigest("V1") == first.NumberDigest("V1"), row.same)
	}
	kit.Check(t, first.NumberDigest("V1") != first.NumberDigest("V2"), "the same number in another vault")
	ids, turned := first, first
	ids.SenderIDs, turned.SenderIDs, turned.SenderName = []string{"DE1", "HRB 2"}, []string{"hrb 2", "DE1"}, "Mueller"
	kit.Want(t, "identifiers in another order are another sender", ids.NumberDigest("V1"), turned.NumberDigest("V1"))
	joined := first
	if joined.SenderIDs = []string{"DE1HRB 2"}; joined.NumberDigest("V1") == ids.NumberDigest("V1") {
		t.Error("two identifiers are one")
	}
}

func TestHasStrangeDate(t *testing.T) {
	berlin := kit.Value(time.LoadLocation("Europe/Berlin"))(t)
	now := time.Date(2026, 11, 20, 23, 30, 0, 0, time.UTC) // the 21st in Berlin
	for date, strange := range map[string]bool{
		"2026-11-20T00:00:00Z": false, "2026-11-22T22:59:59Z": false, "2026-11-23T00:00:00Z": true, "2062-11-20T00:00:00Z": true,
		"1990-01-01T00:00:00Z": false, "1989-12-31T23:59:59Z": true, "0206-11-20T00:00:00Z": true, "": false,
	} {
		kit.Want(t, fmt.Sprintf("%q", date), (Document{Date: date}).HasStrangeDate(now.In(berlin)), strange)
	}
	// Midnight of a day here, and any other time that is another day here.
	newYork := kit.Value(time.LoadLocation("America/New_York"))(t)
	for _, row := range []struct {
		date string
		loc  *time.Location
		day  string
	}{
		{"2025-12-31T23:00:00Z", berlin, "2026-01-01"}, {"2026-06-30T22:00:00Z", berlin, "2026-07-01"}, {"2026-06-30T23:59:59Z", berlin, "2026-07-01"},
		{"2026-06-30T21:59:59Z", berlin, ""}, {"2025-12-31T23:00:00Z", time.UTC, ""}, {"2026-01-01T00:00:00Z", newYork, ""}, {"2026-01-01T00:00:00Z", berlin, ""},
		{"2026-01-01T05:00:00Z", newYork, ""}, {"2026-01-01T03:00:00Z", newYork, "2025-12-31"}, {"2026-01-01", berlin, ""}, {"", berlin, ""},
	} {
		name := row.date + " in " + row.loc.String()
		kit.Want(t, name, OtherDay(row.date, row.loc), row.day)
		kit.Want(t, name+" is strange", Document{Date: row.date}.HasStrangeDate(now.In(row.loc)), row.day != "")
	}
	kit.Check(t, (Document{Date: "2026-11-22T00:00:00Z"}).HasStrangeDate(now),
		"the day after tomorrow in UTC is believed")
}

// I18: a name that a program or a system gives is known in each spelling, and a
// name that people give counts as theirs.
func TestNames_I18_AreKnownByTheirForm(t *testing.T) {
	for what, of := range map[string]struct {
		is      func(string) bool
		yes, no string
	}{
		"System": {IsSystemName, "lost+found $RECYCLE.BIN System\\sVolume\\sInformation #recycle @Recycle .@__thumb .Trash-1000 .stfolder .stversions .snapshot @eaDir Thumbs.db ._a.pdf FOUND.000 __MACOSX a.pdf:Zone.Identifier", "Trash snapshot recycle lost Rechnung .vaultd _archived found.txt"},
		"Unfinished": {IsUnfinished, "r.pdf.9f8e7d6c.partial .sftpgo-upload.cm2k3.r.pdf .r.pdf.Xy12Zz .goutputstream-AB12CD a.PART ~$brief.docx .nfs0001 .smbdeleteAA .fuse_hidden01 .in.a.pdf. .a.pdf.~1a2b3c a.pdf.crdownload a.sb-1a2b3c4d-AbCdEf .#a.txt",
			"a.pdf partial.pdf a.tmp.pdf rechnung.pdf.sha256 .r.pdf.icloud metadata.json .metadata.json.swp a~ .invoice.json"},
		"Placeholder": {IsPlaceholder, ".r.pdf.icloud r.pdf.nextcloud r.pdf.owncloud r.gdoc r.pdf.cloudf", "r.pdf icloud.pdf r.icloud nextcloud"},
		"Content":     {IsContentName, "r.pdf metadata.json Rechnung\\s4711.pdf .done #1.pdf a.backup.pdf", "Thumbs.db a.part .a.icloud a.pdf~"},
	} {
		for _, name := range strings.Fields(of.yes) {
			kit.Want(t, what+" "+name, of.is(strings.ReplaceAll(name, "\\s", " ")), true)
		}
		for _, name := range strings.Fields(of.no) {
			kit.Want(t, what+" "+name, of.is(strings.ReplaceAll(name, "\\s", " ")), false)
		}
	}
}

// I18: a companion names the file that it accompanies.
func TestNames_I18_CompanionNamesItsFile(t *testing.T) {
	for name, want := range map[string]string{
		".~lock.a.ods#": "a.ods", "#a.txt#": "a.txt", ".metadata.json.swp": "metadata.json", ".a.SWO": "a", ".a.txt.un~": "a.txt",
		"metadata.json~": "metadata.json", "a.pdf.~12~": "a.pdf", "a.pdf.bak": "a.pdf", "a.lck": "a", "a.pdf:Zone.Identifier": "a.pdf",
		"a.pdf\uf03aZone.Identifier": "a.pdf", "a.pdf:Zone.Identifier:$DATA": "a.pdf", "a.pdf:com.apple.quarantine": "a.pdf",
		"a.pdf": "", "~": "", "a:b.pdf": "", ".swp": "", "#a": "", "bak": "",
	} {
		kit.Want(t, name, CompanionOf(name), want)
	}
}

// I32: rules that ignore everything, or what is vaultd's own, are a mistake.
func TestIgnoreRules_I32_RefuseWhatHidesEverything(t *testing.T) {
	own := []string{".vaultd", "_archived", "_STATUS.txt"}
	for rules, want := range map[string]string{
		"Entwurf*": "", "scanner.log": "", "[0-9][0-9][0-9][0-9]-*": "", "*.tmp|Notizen": "", "_alt*": "",
		"*": "everything", "**": "everything", "?*": "everything", "*[!~]": "everything", "[!.]*": "everything", "Entwurf*|*": "everything",
		"[0-9]*|[a-z]*|[ä]*": "everything", "_*": "_archived", ".*": ".vaultd", "*.txt": "_STATUS.txt", "_ARCHIVED": "_archived",
		"a/b": "slash", "[": "not a pattern",
	} {
		_, text := IgnoreRules(strings.Split(rules, "|")).FindFault(own, false)
		if kit.Holds(t, rules, text, want); want == "" {
			kit.Want(t, rules, text, "")
		}
	}
	_, text := IgnoreRules{"*.pdf"}.FindFault(own, true)
	kit.Holds(t, "*.pdf in a drop of PDFs", text, "everything")
	kit.Want(t, "case and form", IgnoreRules{"ÜBUNG*"}.Match("u\u0308bung 1"), true)
}

// I4: what looks like an answer of somebody else, or like a part of a file, is told from what looks whole.
func TestCheckForm_I4(t *testing.T) {
	long := strings.Repeat("x", 3000)
	type row struct {
		content string
		want    error
	}
	kit.Rows(t, map[string]row{
		"PDF":              {"%PDF-1.7 " + long + "%%EOF\n", nil},
		"CutPDF":           {"%PDF-1.7 " + long, ErrCutOff},
		"ZIP":              {"PK\x03\x04" + long + "PK\x05\x06" + strings.Repeat("\x00", 18), nil},
		"CutZIP":           {"PK\x03\x04" + long, ErrCutOff},
		"PNG":              {"\x89PNG" + long + "IEND\xaeB`\x82", nil},
		"CutPNG":           {"\x89PNG" + long, ErrCutOff},
		"JPEG":             {"\xff\xd8\xff" + long + "\xff\xd9", nil},
		"CutJPEG":          {"\xff\xd8\xff" + long, ErrCutOff},
		"XML":              {"\ufeff<?xml version=\"1.0\"?><a>" + long + "</a>\n", nil},
		"XMLInLatin":       {"<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>M\xfcller</a>", nil},
		"CutXML":           {"<a><b/>" + long, ErrCutOff},
		"CutXMLAtATag":     {"<a><b/>", ErrCutOff},
		"DeepXML":          {strings.Repeat("<a>", 5000) + strings.Repeat("</a>", 5000), ErrCutOff},
		"LongXML":          {"<a>" + strings.Repeat(long, 500) + "</a>", nil},
		"CutLongXML":       {"<a>" + strings.Repeat(long, 500), ErrCutOff},
		"ErrorOfAStore":    {"<?xml version=\"1.0\"?><Error><Code>x</Code></Error>", ErrInItsPlace},
		"OtherError":       {"<error/>", ErrInItsPlace},
		"Page":             {"\n<!DOCTYPE html><p>sign in", ErrInItsPlace},
		"PageInXML":        {"<?xml version=\"1.0\"?><!DOCTYPE html><html></html>", ErrInItsPlace},
		"PageAfterARemark": {"<!-- x --><html></html>", ErrInItsPlace},
		"JSON":             {" {\"message\":\"not found\"}", ErrInItsPlace},
		"BracesInText":     {"{braces} in a text", nil},
		"Text":             {"number;amount\n1;2\n", nil},
		"Short":            {"x", nil},
	}, func(t *testing.T, r row) {
		err := CheckForm(strings.NewReader(r.content), int64(len(r.content)), false)
		kit.Check(t, errors.Is(err, r.want) && (err == nil) == (r.want == nil), "%v, want %v", err, r.want)
	})
	kit.Want(t, "an empty file is judged elsewhere", CheckForm(bytes.NewReader(nil), 0, false), nil)
}

const (
	signedOnce  = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=A%2F20260303&X-Amz-Date=20260303T121201Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host&X-Amz-Signature=11"
	signedAgain = "X-Amz-Signature=22&x-amz-date=20260303T130000Z&X-Amz-Expires=60&X-Amz-Security-Token=t%2Fu&X-Amz-Algorithm=AWS4-HMAC-SHA256&x-id=PutObject"
)

// Addresses that lead to one object have one name, those that lead to two have two.
func TestObject_I8_OneNameForOneObject(t *testing.T) {
	rows := []struct {
		name, a, b string
		same       bool
	}{
		{"TheSame", "https://b.example/k.zip?" + signedOnce, "https://b.example/k.zip?" + signedOnce, true},
		{"SignedAgain", "https://b.example/k.zip?" + signedOnce, "https://b.example/k.zip?" + signedAgain, true},
		{"OtherKey", "https://b.example/k.zip?" + signedOnce, "https://b.example/l.zip?" + signedOnce, false},
		{"OtherHost", "https://b.example/k.zip?" + signedOnce, "https://c.example/k.zip?" + signedOnce, false},
		{"OtherCaseOfTheKey", "https://b.example/k.zip?" + signedOnce, "https://b.example/K.zip?" + signedOnce, false},
		{"CaseOfSchemeAndHost", "https://b.example/k?" + signedOnce, "HTTPS://B.Example/k?" + signedOnce, true},
		{"StandardPort", "https://b.example/k?" + signedOnce, "https://b.example:443/k?" + signedOnce, true},
		{"OtherPort", "https://b.example/k?" + signedOnce, "https://b.example:8443/k?" + signedOnce, false},
		{"OtherScheme", "https://localhost/k?" + signedOnce, "http://localhost:80/k?" + signedOnce, true},
		{"DotBehindTheHost", "https://b.example/k?" + signedOnce, "https://b.example./k?" + signedOnce, true},
		{"EscapesInThePath", "https://b.example/a%2Fk%2Ezip?" + signedOnce, "https://b.example/a/k.zip?" + signedOnce, true},
		{"CaseOfAnEscape", "https://b.example/%c3%bc?" + signedOnce, "https://b.example/%C3%BC?" + signedOnce, true},
		{"KeyInTheQuery", "https://b.example/put?key=a&" + signedOnce, "https://b.example/put?key=b&" + signedOnce, false},
		{"KeyInTheQuerySignedAgain", "https://b.example/put?key=a%2Eb&" + signedOnce, "https://b.example/put?" + signedAgain + "&key=a.b", true},
		{"KeyInTheQueryUnsigned", "https://b.example/put?expires=1", "https://b.example/put?expires=2", false},
		{"TwoKeys", "https://b.example/put?k=a&k=b&" + signedOnce, "https://b.example/put?k=b&" + signedOnce, false},
		{"BadEscape", "https://b.example/put?k=%zz&" + signedOnce, "https://b.example/put?k=%zy&" + signedOnce, false},
		{"EmptyParameters", "https://b.example/k?&&" + signedOnce, "https://b.example/k?" + signedOnce + "&", true},
		{"OlderSignature", "https://b.example/k?AWSAccessKeyId=A&Expires=1&Signature=1", "https://b.example/k?AWSAccessKeyId=A&Expires=2&Signature=2", true},
		{"Google", "https://storage.googleapis.com/b/k?X-Goog-Signature=1", "https://b.storage.googleapis.com/k?X-Goog-Signature=2", true},
		{"Azure", "https://a.blob.example/c/k?sv=1&se=2&sp=w&sig=3", "https://a.blob.example/c/k?sv=1&se=4&sp=w&sig=5", true},
		{"NotAzure", "https://a.example/k?sv=1", "https://a.example/k?sv=2", false},
		{"BucketInTheHost", "https://b.s3.eu-central-1.amazonaws.com/k?" + signedOnce, "https://s3.eu-central-1.amazonaws.com/b/k?" + signedAgain, true},
		{"OldHostOfAmazon", "https://b.s3.eu-central-1.amazonaws.com/k?" + signedOnce, "https://s3.amazonaws.com/b/k?" + signedAgain, true},
		{"BucketWithDots", "https://a.b.s3-eu-west-1.amazonaws.com/k?" + signedOnce, "https://s3.dualstack.eu-west-1.amazonaws.com/a.b/k?" + signedAgain, true},
		{"OtherBucket", "https://b.s3.eu-central-1.amazonaws.com/k?" + signedOnce, "https://s3.eu-central-1.amazonaws.com/c/k?" + signedOnce, false},
		{"NotAmazon", "https://s3.amazonaws.com.example/b/k?" + signedOnce, "https://s3.amazonaws.com/b/k?" + signedOnce, false},
		{"Unreadable", "https://b.example/%zz", "https://b.example/%zy", false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			a, b := PresignedURL(r.a).Object(), PresignedURL(r.b).Object()
			kit.Check(t, (a == b) == r.same, "%q\n%q\nwant (a == b) = %v", a, b, r.same)
			kit.Lacks(t, "the text", a, "Signature")
		})
	}
}

// A store may send an upload on to another host, for the same object only.
func TestLeadsOn_I8_SameObjectElsewhere(t *testing.T) {
	for to, same := range map[string]bool{
		"https://b.eu.example/dir/k.zip?" + signedAgain:  true,
		"https://eu.example/b/dir/k.zip?" + signedAgain:  true,
		"https://b.example/dir/%6B.zip?" + signedAgain:   true,
		"https://dir.example/k.zip?" + signedAgain:       true, // dir may be a bucket
		"https://b.eu.example/dir/l.zip?" + signedAgain:  false,
		"https://b.eu.example/dir/k.zip/x?" + signedOnce: false,
		"https://b.eu.example/a/b/dir/k.zip":             false,
		"https://b.eu.example/dir/k.zip?key=l":           false,
		"https://b.eu.example/":                          false,
		"https://b.eu.example/%zz":                       false,
	} {
		got := PresignedURL("https://b.example/dir/k.zip?" + signedOnce).LeadsToSameObject(PresignedURL(to))
		kit.Check(t, got == same, "%s: %v, want got = %v", to, got, same)
	}
	kit.Check(t, !PresignedURL("https://b.example/k.zip").LeadsToSameObject("https://b.example/"),
		"the root is no object behind a bucket")
}

// TestFoldName_I19: names that a file system takes for one name fold to one text.
func TestFoldName_I19(t *testing.T) {
	for _, r := range []struct {
		a, b string
		same bool
	}{{"Rechnung", "RECHNUNG", true}, {"Mu\u0308ller", "M\u00fcLLER", true}, {"Maße", "Masse", false}, {"a\u212a", "AK", true}, {"a", "b", false}} {
		kit.Want(t, r.a+" and "+r.b+" are the same", FoldName(r.a) == FoldName(r.b), r.same)
	}
}
