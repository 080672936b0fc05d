package networkapi

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
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
