package networkapi

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

func TestDirectory(t *testing.T) {
	const answer = `[{"siren":"123456789","siret":null,"routingIdentifier":"R-0001","addressingIdentifier":"123456789_A","addressingSuffix":"A","dateTo":"2027-01-31","effectiveEndDate":null,"history":{},"routingCode":{"x":1},
		"legalUnit":{"siren":"123456789","businessName":"Otto SARL","administrativeStatus":"A"},"facility":{"siret":"12345678900011","name":"Siège","administrativeStatus":"A","address":{}}},
		{"siren":null,"legalUnit":{"siren":987654321},"facility":null}]`
	lines, err := client(t, func(w http.ResponseWriter, r *http.Request) {
		kit.Check(t, r.URL.Path == "/v1/directory/fr" && r.URL.RawQuery == "addressing_suffix=A&siren=123456789",
			"got %s", r.URL)
		io.WriteString(w, answer)
	}).Directory(t.Context(), DirectoryQuery{SIREN: "123456789", Suffix: "A"})
	kit.Need(t, err == nil && len(lines) == 2, "got %+v, %v", lines, err)
	l := lines[0]
	if l.SIREN != "123456789" || l.SIRET != "12345678900011" || l.Routing != "R-0001" || l.Addressing != "123456789_A" || l.Suffix != "A" || l.To != "2027-01-31" || l.EffectiveEnd != "" ||
		l.BusinessName != "Otto SARL" || l.LegalStatus != "A" || l.FacilityName != "Siège" || l.Status != "A" || len(l.Raw) == 0 || lines[1].SIREN != "987654321" {
		t.Errorf("got %+v", lines)
	}
}

// I32: what is no list of lines never says that there is no line.
func TestDirectory_I32_NoLinesOnlyWhereItSaysSo(t *testing.T) {
	for body, want := range map[string]bool{"[]": true, `{"items":[]}`: true, "": false, "null": false, "{}": false, `[{}]`: false, `[7]`: false, `{"message":"ok"}`: false, "<html></html>": false, `[{"siren":"1","siren":"2"}]`: false, `[{"legalUnit":7}]`: false} {
		lines, err := client(t, calls.Says(200, body)).Directory(t.Context(), DirectoryQuery{SIREN: "123456789"})
		kit.Check(t, (err == nil) == want && len(lines) == 0, "%q gives %+v, %v", body, lines, err)
	}
	for status, want := range map[int]apicall.Outcome{401: apicall.NotProcessed, 403: apicall.NotProcessed, 404: apicall.NotProcessed, 422: apicall.Refused} {
		if _, err := client(t, calls.Says(status, "")).Directory(t.Context(), DirectoryQuery{SIREN: "123456789"}); calls.Failed(t, err).Outcome != want {
			t.Errorf("%d: %v, want calls.Failed(t, err).Outcome = %v", status, calls.Failed(t, err).Outcome, want)
		}
	}
}

func TestDirectory_QueriesThatAreNotSent(t *testing.T) {
	for _, q := range []DirectoryQuery{{}, {SIREN: "12345678"}, {SIREN: "12345678x"}, {SIRET: "123456789"}, {Addressing: "12345678"}, {Routing: "1234"}} {
		_, err := client(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }).Directory(t.Context(), q)
		e := calls.Failed(t, err)
		kit.Check(t, e.Outcome == apicall.NotSent, "%+v: %v, want e.Outcome = apicall.NotSent", q, e)
	}
}

func TestDirectoryLine_IsValidOn(t *testing.T) {
	day := time.Date(2026, 11, 25, 23, 0, 0, 0, time.UTC)
	for name, r := range map[string]struct {
		line DirectoryLine
		want bool
	}{
		"WithoutEnd": {DirectoryLine{}, true}, "EndsToday": {DirectoryLine{To: "2026-11-25"}, true}, "EndedYesterday": {DirectoryLine{To: "2026-11-24"}, false},
		"EffectiveEndBefore": {DirectoryLine{To: "2027-01-01", EffectiveEnd: "2026-11-24T00:00:00Z"}, false}, "EndsLater": {DirectoryLine{To: "2027-01-01", EffectiveEnd: "2026-12-01"}, true},
		"EndThatCannotBeRead": {DirectoryLine{To: "soon"}, false},
	} {
		kit.Want(t, name, r.line.IsValidOn(day), r.want)
	}
}

// A line of somebody else never counts, whatever the directory gives. What a line does not tell is no contradiction, but a line without
// a suffix does not have the one that was asked for.
func TestDirectoryQuery_Matches(t *testing.T) {
	company, facility := DirectoryQuery{SIREN: "552100554"}, DirectoryQuery{SIRET: "55210055400013"}
	for name, r := range map[string]struct {
		asked DirectoryQuery
		line  DirectoryLine
		want  bool
	}{
		"Company": {company, DirectoryLine{SIREN: "552100554"}, true}, "FacilityOfCompany": {company, DirectoryLine{SIRET: "55210055400013"}, true},
		"OtherCompany": {company, DirectoryLine{SIREN: "732829320"}, false}, "FacilityOfOther": {company, DirectoryLine{SIRET: "73282932000013"}, false},
		"Untold": {company, DirectoryLine{}, true}, "Facility": {facility, DirectoryLine{SIREN: "552100554", SIRET: "55210055400013"}, true},
		"WholeCompany": {facility, DirectoryLine{SIREN: "552100554"}, true}, "OtherFacility": {facility, DirectoryLine{SIRET: "55210055400021"}, false},
		"CompanyOfOther": {facility, DirectoryLine{SIREN: "732829320"}, false},
		"Suffix":         {DirectoryQuery{SIREN: "552100554", Suffix: "A"}, DirectoryLine{Suffix: "A"}, true},
		"NoSuffix":       {DirectoryQuery{SIREN: "552100554", Suffix: "A"}, DirectoryLine{}, false},
		"OtherRouting":   {DirectoryQuery{Routing: "R-0001"}, DirectoryLine{Routing: "R-0002"}, false},
		"OtherAddress":   {DirectoryQuery{Addressing: "552100554_A"}, DirectoryLine{Addressing: "552100554_B"}, false},
		"ShortSIRET":     {company, DirectoryLine{SIRET: "5521"}, false},
	} {
		kit.Want(t, name, r.asked.Matches(r.line), r.want)
	}
}

// I24: the page about the network lists the schemes and the types of files that
// a document may have, and says of each scheme whether its ids are checked.
func TestDocs_I24_SchemesAndTypes(t *testing.T) {
	page := kit.Value(os.ReadFile("../../docs/network.md"))(t)
	_, section, _ := strings.Cut(string(page), "### Schemes of endpoints\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| .*`([A-Z][^` ]*|:ORGNR)`.* \\| .* \\| (.*) \\|$").FindAllStringSubmatch(section, -1)
	kit.Want(t, "number of schemes", len(rows), 11)
	for _, row := range rows {
		scheme, told := row[1], row[2]
		if strings.Contains(row[0], "SE:ORGNR") {
			scheme = "SE:ORGNR"
		}
		_, isWrongScheme := checkIdentifier(scheme, "1")
		wrong, _ := checkIdentifier(scheme, "-")
		kit.Check(t, !isWrongScheme && (wrong != "") == (told != "no"),
			"scheme %s: got wrong scheme %v, fault %q of the id \"-\"; the page says checked: %s", scheme, isWrongScheme, wrong, told)
	}
	_, sentence, _ := strings.Cut(section, "names end with ")
	sentence, _, _ = strings.Cut(sentence, ", in small")
	told := strings.Split(strings.ReplaceAll(sentence, " and ", ", "), ", ")
	want := slices.Clone(Endings)
	slices.Sort(told)
	slices.Sort(want)
	kit.Want(t, "types on the page", told, want)
}

// packed returns a package with that document first, and its digest.
func packed(t *testing.T, document string) (archive.Package, archive.Digest) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.zip")
	file := kit.Value(os.Create(path))(t)
	z := zip.NewWriter(file)
	w, err := z.Create("document.json")
	if err == nil {
		_, err = w.Write([]byte(document))
	}
	kit.Need(t, err == nil && z.Close() == nil && file.Close() == nil,
		"err = %v, want no error, z.Close() = nil, file.Close() = nil", err)
	return archive.Package{Path: path}, archive.Sum([]byte(document))
}

// I32: whom the directory is asked about is who the document goes to, under the scheme that the directory lists, and nobody else.
func TestRecipientOf(t *testing.T) {
	check := kit.Value(NewRecipientCheck(client(t, calls.Says(500, "")), time.Now))(t)
	for preference, want := range map[string]archive.CompanyNumber{
		`{"sentTo":{"id":"552100554","schemeId":"FR:ORGNR"}}`: "SIREN 552100554", `{"sentTo":{"id":"55210055400013","schemeId":"FR:ORGNR"}}`: "SIRET 55210055400013",
		`{"sentTo":{"id":"552100554","schemeId":"DE:ORGNR"}}`: "", `{"sentTo":{"id":"552100554","schemeId":"DUNS"}}`: "", `{"sentTo":{"id":"5521005","schemeId":"FR:ORGNR"}}`: "",
		`{"sentTo":{"schemeId":"FR:ORGNR"}}`: "", `{"sentTo":{}}`: "", `{"sentTo":null}`: "", `{"sentTo":"552100554"}`: "", `{}`: "", `null`: "",
	} {
		p, digest := packed(t, fmt.Sprintf(`{"data":{"accountingCustomerParty":{"endpoint":{"id":"123456789","schemeId":"FR:ORGNR"}}},"processingPreference":%s}`, preference))
		got, err := check.RecipientOf(p, digest)
		kit.Check(t, got == want && err == nil, "%s: %q, %v, want got = %v, no error", preference, got, err, want)
		kit.Fails(t, preference+": another document was taken for the one that was sealed",
			kit.Err(check.RecipientOf(p, archive.Digest{1})))
	}
}

// I32: an answer with a valid line counts for a day, and no longer than its line. Any other answer counts for nothing.
func TestRecipientCheck_I32_HowLongAnswersCount(t *testing.T) {
	const siren = `[{"siren":"552100554"%s}]`
	asked := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	for name, r := range map[string]struct {
		status int
		body   string
		listed bool
		counts time.Duration
	}{
		"NoEnd":        {200, fmt.Sprintf(siren, ""), true, 24 * time.Hour},
		"EndsTomorrow": {200, fmt.Sprintf(siren, `,"dateTo":"2026-11-26"`), true, 24 * time.Hour},
		"EndsToday":    {200, fmt.Sprintf(siren, `,"dateTo":"2026-11-25"`), true, 11 * time.Hour}, // until midnight in France
		"Ended":        {200, fmt.Sprintf(siren, `,"dateTo":"2026-11-24"`), false, 0},
		"OfAnother":    {200, `[{"siren":"123456789"}]`, false, 0},
		"None":         {200, `[]`, false, 0},
		"Garbled":      {200, `[{`, false, 0},
		"Refused":      {403, ``, false, 0},
	} {
		now := asked
		check := kit.Value(NewRecipientCheck(client(t, calls.Says(r.status, r.body)), func() time.Time { return now }))(t)
		listed, err := check.Ask(t.Context(), "SIREN 552100554")
		kit.Check(t, listed == r.listed && (err == nil) == (r.status == 200 && name != "Garbled"),
			"%s: %v, %v, want listed = %v, (err == nil) = %v", name, listed, err, r.listed, (r.status == 200 && name != "Garbled"))
		for after, want := range map[time.Duration]bool{0: r.listed, r.counts - 1: r.listed, r.counts: false, -1: false} {
			if now = asked.Add(after); check.IsKnown("SIREN 552100554") != want {
				t.Errorf("%s: counts after %v: %v", name, after, !want)
			}
		}
		if now = asked; check.IsKnown("SIREN 123456789") {
			t.Errorf("%s: it counts for another company", name)
		}
	}
}

// An answer without a valid line ends what an earlier one said.
func TestRecipientCheck_I32_ANewAnswerCounts(t *testing.T) {
	body := `[{"siren":"552100554"}]`
	check, err := NewRecipientCheck(client(t, func(w http.ResponseWriter, r *http.Request) { calls.Says(200, body)(w, r) }), time.Now)
	kit.Must(t, err)
	for _, want := range []bool{true, false, true} {
		if listed, err := check.Ask(t.Context(), "SIREN 552100554"); listed != want || err != nil || check.IsKnown("SIREN 552100554") != want {
			t.Errorf(`%v, %v, want listed = %v, no error, check.IsKnown("SIREN 552100554") = %v`, listed, err, want, want)
		}
		body = map[bool]string{true: `[]`, false: `[{"siren":"552100554"}]`}[want]
	}
	check.client = client(t, calls.Says(422, ""))
	if _, err := check.Ask(t.Context(), "SIRET 55210055400013"); calls.Failed(t, err).Outcome != apicall.Refused {
		t.Errorf("422: %v, want calls.Failed(t, err).Outcome = apicall.Refused", err)
	}
}

// The answers that are kept are bounded: the oldest goes.
func TestRecipientCheck_KeepsNoMoreThanItsBound(t *testing.T) {
	now := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	check := kit.Value(NewRecipientCheck(client(t, calls.Says(500, "")), func() time.Time { return now }))(t)
	number := func(i int) archive.CompanyNumber { return archive.CompanyNumber(fmt.Sprintf("SIREN %09d", i)) }
	for i := range mostAnswers + 10 {
		now = now.Add(time.Millisecond)
		check.keep(number(i), knownAnswer{asked: now, until: now.Add(time.Hour)})
	}
	if len(check.answers) != mostAnswers || check.IsKnown(number(9)) || !check.IsKnown(number(10)) || !check.IsKnown(number(mostAnswers+9)) {
		t.Errorf("%d answers", len(check.answers))
	}
}

func FuzzReceived(f *testing.F) {
	for _, s := range []string{receivedInvoice, `{"data":{}}`, `{"data":{"taxTotal":[{"taxSubtotals":[{"taxableAmount":1e9}]}]}}`, "null", "", "[]"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		got, err := readReceived([]byte(body))
		if err != nil {
			return
		}
		kit.Check(t, isObject(got.Data), "%q has the data %q", body, got.Data)
		for _, file := range got.Files {
			kit.Want(t, fmt.Sprintf("%q has the file %q", body, file.ID),
				kit.Err(archive.ParseFileID(string(file.ID))), nil)
		}
		amount := got.Content.NetAmount
		kit.Check(t, amount == "" || amount.Rat() != nil, "%q has the amount %q", body, amount)
	})
}

func FuzzNotificationPage(f *testing.F) {
	for _, s := range []string{onePage(true, record("a"), record("a")), onePage(false, `{}`), `[` + record("a") + `]`, "null", `{"hasMoreItems":1,"notifications":[null]}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if calls.HasCanary(body) {
			return
		}
		got, err := client(t, calls.Says(200, body)).Notifications(t.Context(), Query{})
		if err != nil {
			calls.Failed(t, err)
		}
		kit.Check(t, !got.Whole || err == nil && got.Unreadable <= 0 && strings.Contains(body, "hasMoreItems"),
			"%q is whole", body)
		seen := map[archive.AcknowledgementID]bool{}
		for _, n := range got.Notifications {
			if seen[n.AcknowledgementID] || n.Document == "" || n.AcknowledgementID == "" || !json.Valid(n.Raw) || strings.ContainsFunc(n.Response+n.Action+n.DocumentType, unicode.IsControl) {
				t.Errorf("%q: %+v", body, n)
			}
			seen[n.AcknowledgementID] = true
		}
	})
}

func FuzzDirectory(f *testing.F) {
	for _, s := range []string{`[{"siren":"123456789","dateTo":null}]`, `{"items":[]}`, "null", `[{"legalUnit":[]}]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		lines, err := readDirectory([]byte(body))
		for _, l := range lines {
			kit.Check(t, err == nil && json.Valid(l.Raw) && !strings.ContainsFunc(l.SIREN+l.BusinessName, unicode.IsControl),
				"%q: %+v, %v", body, l, err)
		}
	})
}

func FuzzStoredFile(f *testing.F) {
	for _, s := range []string{`{"fileId":"a"}`, `{"fileId":{"id":"a"}}`, "", "\xef\xbb\xbf{}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		id, err := readStoredFile([]byte(body))
		kit.Check(t, err != nil || id != "" && !strings.ContainsAny(string(id), "/ \n"), "%q gives %q", body, id)
	})
}

func FuzzRefusal(f *testing.F) {
	f.Add(400, wrapped("error", "VALIDATION", "Error.003.0038"))
	f.Add(503, wrapped("errors", "TECHNICAL", "Error.001.0006"))
	f.Add(404, "<html>")
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 200 || status > 599 || calls.HasCanary(body) {
			return
		}
		err := client(t, calls.Says(status, body)).SendDocument(t.Context(), archive.NetworkInvoice, bumID, []byte("{}"))
		kit.Check(t, err != nil || status/100 == 2, "%d %q is a success", status, body)
		if err != nil {
			e := calls.Failed(t, err)
			kit.Check(t, e.Outcome.String() != "refused" || status/100 == 4 && status != 401,
				"%d %q rejects the document", status, body)
		}
	})
}

// What is found right is composed, and what is composed holds the document's own bytes and is JSON.
func FuzzDocument(f *testing.F) {
	for _, s := range []string{goodDocument, `{"data":{"documentCurrencyCode":"EUR","a":"\ud83d\ude00"}}`, `{"data":{"a":"\ud800"}}`, "{", "[]", `{"data":{},"data":{}}`, `{"data":{"":{"":[0]}}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		faults := CheckDocument(document)
		body, err := ComposeBody(document, []archive.FileID{"f-1"})
		kit.Check(t, len(faults) != 0 || err == nil, "%q has no fault, and is not composed: %v", document, err)
		for _, fault := range faults {
			if fault.Line < 1 || fault.Text == "" || strings.ContainsFunc(fault.Describe("d"), unicode.IsControl) {
				t.Errorf(`%q: %+v, want fault.Line >= 1, fault.Text other than "", not strings.ContainsFunc(fault.Describe("d"), unicode.IsControl)`, document, fault)
			}
		}
		kit.Check(t, err != nil || json.Valid(body), "%q gives %q", document, body)
	})
}
