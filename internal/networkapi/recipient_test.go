package networkapi

import (
	"archive/zip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

// packed returns a package with that document first, and its digest.
func packed(t *testing.T, document string) (archive.Package, archive.Digest) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.zip")
	file, err := os.Create(path)
	kit.Must(t, err)
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
		check, err := NewRecipientCheck(client(t, calls.Says(r.status, r.body)), func() time.Time { return now })
		kit.Must(t, err)
		listed, err := check.Ask(t.Context(), "SIREN 552100554")
		if listed != r.listed || (err == nil) != (r.status == 200 && name != "Garbled") {
			t.Errorf("%s: %v, %v, want listed = %v, (err == nil) = %v", name, listed, err, r.listed, (r.status == 200 && name != "Garbled"))
		}
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
