package page

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/test/kit"
	"vaultd/internal/web"
)

// fill sets every text of a value to a secret word, and every list to one element.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString("SECRET")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint64:
		v.SetUint(7)
	case reflect.Struct:
		if _, isTime := v.Interface().(time.Time); isTime {
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Array: // a key
		for i := range v.Len() {
			v.Index(i).SetUint('S')
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	}
}

// secretsIn returns where a value holds the secret word.
func secretsIn(path string, v reflect.Value) (found []string) {
	switch v.Kind() {
	case reflect.String:
		if strings.Contains(v.String(), "SECRET") {
			return []string{path}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				found = append(found, secretsIn(path+"."+v.Type().Field(i).Name, v.Field(i))...)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			found = append(found, secretsIn(path, v.Index(i))...)
		}
	case reflect.Array:
		if !v.IsZero() {
			return []string{path}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			found = secretsIn(path, v.Elem())
		}
	}
	return found
}

// A visitor without the right to read gets no text that may name a document, a person or a path: only words of the program and
// ids of the configuration. A new text of the summary must be put on one of the two sides.
func TestStatus_I7_WithoutRightsOnlyCountsAndStates(t *testing.T) {
	var s present.StatusSummary
	fill(reflect.ValueOf(&s).Elem())
	allowed := map[string]bool{
		".Version": true, ".Environment": true, ".Needs.When": true, ".Needs.What": true, ".Needs.Turn": true, ".Pauses.Route": true, ".Pauses.Code": true, ".Balance.Text": true,
		".NotTaken.Drop": true, ".Head": true, ".NotTaken.Reason": true, ".Drops.Name": true, ".Drops.Vault": true, ".Drops.Mode": true, ".Drops.Route": true,
	}
	for _, path := range secretsIn("", reflect.ValueOf(withoutDocuments(s))) {
		kit.Check(t, allowed[path] || strings.HasPrefix(path, ".Billing."), "%s is told to everybody", path)
	}
	var h present.History
	fill(reflect.ValueOf(&h).Elem())
	for _, path := range secretsIn("", reflect.ValueOf(withoutReason(h))) {
		kit.Want(t, "of the history is told to everybody", path, ".Shares.Vault")
	}
	kit.Check(t, s.Needs[0].Text == "SECRET" && s.Drops[0].Paused == "SECRET", "the summary itself was changed")
}

// However many vaults there are, the page draws a dozen, and says how many it leaves out.
func TestStatus_I21_DrawsTheFullestVaults(t *testing.T) {
	h := present.History{Shares: []present.VaultShare{{Year: 2026}}}
	for i := range 2000 {
		h.Shares = append(h.Shares, present.VaultShare{Vault: "V-" + strconv.Itoa(i), Year: 2026, Used: []present.MonthShare{{Month: 1, Share: float64(i) / 1000}}})
	}
	c := drawCharts(frameOf("en"), h)
	if len(c.Shares) != mostShares || c.SharesLeftOut != 2001-mostShares || c.Shares[0].Vault != "" || c.Shares[1].Vault != "V-1989" || c.Shares[mostShares-1].Vault != "V-1999" {
		t.Errorf("%d drawn, %d left out", len(c.Shares), c.SharesLeftOut)
	}
	kit.Want(t, "shares of three", len(fullestShares(h.Shares[:3])), 3)
}

// Who has not signed in is not told which version runs.
func TestLogin_I7_TellsNoVersion(t *testing.T) {
	for _, maySignIn := range []bool{true, false} {
		f := frameOf("en")
		f.about.Version, f.Visitor.MaySignIn = "1.2.3-of-a-test", maySignIn
		w := httptest.NewRecorder()
		f.writePage(w, http.StatusOK, "refusal", "x", &Refusal{Text: "x"})
		kit.Check(t, strings.Contains(w.Body.String(), "1.2.3-of-a-test") != maySignIn,
			"may sign in %v: %s", maySignIn, w.Body)
	}
}

// The first line of the page says how many folders need a person, and how soon. Where something else needs one too, it counts things.
func TestStatus_Verdict(t *testing.T) {
	rejected, overdue, paused := present.Need{When: "soon", What: "rejected", Count: 4}, present.Need{When: "now", What: "overdue", Count: 2}, present.Need{When: "now", What: "paused", Count: 1}
	one, quarantined, extracts := present.Need{When: "soon", What: "rejected", Count: 1}, present.Need{When: "soon", What: "quarantined", Count: 1}, present.Need{When: "soon", What: "extracts", Count: 3}
	oneNow := present.Need{When: "now", What: "not-taken", Count: 1}
	for want, needs := range map[string][]present.Need{
		"All is well: nobody is needed":                 nil,
		"1 folder needs a person":                       {one},
		"1 folder needs a person now":                   {oneNow},
		"5 folders need a person":                       {rejected, quarantined},
		"7 folders need a person, 2 of them now":        {overdue, rejected, quarantined},
		"3 now, 4 soon: a person is needed":             {overdue, paused, rejected},
		"7 soon: a person is needed":                    {rejected, extracts},
		"Handlungsbedarf bei 5 Ordnern":                 {rejected, quarantined},
		"Handlungsbedarf: 1 sofort, 1 bald":             {paused, one},
		"Alles in Ordnung: Es ist nichts zu tun":        nil,
		"Handlungsbedarf bei 1 Ordner, und zwar sofort": {oneNow},
	} {
		language := "en"
		if strings.HasPrefix(want, "Handlung") || strings.HasPrefix(want, "Alles") {
			language = "de"
		}
		kit.Want(t, "the verdict", frameOf(language).Verdict(statusBody{StatusSummary: present.StatusSummary{Running: true, Needs: needs}}), want)
	}
	kit.Want(t, "the verdict", frameOf("en").Verdict(statusBody{}), "vaultd does not run")
}

// The balance says of how many rejected and quarantined folders somebody has to see to, so that it does not seem to contradict what needs a person.
// Where the archive contradicts what was booked it says nothing of the rest: it may be in any state.
func TestStatus_BalanceSaysHowManyWait(t *testing.T) {
	balance := present.Balance{States: map[string]uint64{"archived": 1900, "rejected": 77, "quarantined": 1, "duplicate": 3}}
	needs := []present.Need{{What: "rejected", Count: 4}, {What: "quarantined", Count: 1}}
	f := frameOf("en")
	told := func(more ...present.Need) map[string]string {
		all := map[string]string{}
		for _, c := range (statusBody{StatusSummary: present.StatusSummary{Balance: balance, Needs: append(more, needs...)}}).BalanceStates() {
			all[c.State] = f.DescribeSplit(c)
		}
		return all
	}
	kit.Want(t, "the split", told(), map[string]string{"archived": "", "rejected": "needs a person: 4; closed or corrected: 73", "quarantined": "needs a person: 1", "duplicate": ""})
	for _, what := range []string{"contradicted", "archived-twice"} {
		got := told(present.Need{What: what, Count: 1})
		kit.Check(t, got["rejected"] == "" && got["quarantined"] == "", `%s: %q, want got["rejected"] = "", got["quarantined"] = ""`, what, got)
	}
	needs[0].Count = 78 // it was rejected between the two counts
	got := told()
	kit.Check(t, got["rejected"] == "" && got["quarantined"] != "", `%q, want got["rejected"] = "", got["quarantined"] other than ""`, got)
}

// needySource has one rejected folder of many, and one thing that is no folder.
type needySource struct{ oneDocument }

func (s needySource) Status(context.Context) (present.StatusSummary, error) {
	why := "documentDate is <b>no date"
	return present.StatusSummary{Needs: []present.Need{
		{When: "soon", What: "rejected", Count: 4, Text: "4 rejected", Do: "put them right as _REASON.txt says", Names: []string{"Huber <88> (acme): " + why},
			Entries: []present.NamedEntry{{Key: s.dossier.Entry.Key, Folder: "Huber <88>", Drop: "acme", Why: why}}},
		{When: "soon", What: "extracts", Count: 1, Text: "1 extract needs you", Do: "see vaultd extracts", Names: []string{"E-1: gone"}},
	}}, nil
}

func (needySource) History(context.Context) (present.History, error) { return present.History{}, nil }

// Under what needs a person each folder leads to the page of its document, and the words are those for a reader of the page. Nothing is said twice. Who
// may not read sees the kinds and their counts alone.
func TestStatus_NeedsLeadToTheirDocuments(t *testing.T) {
	key := archive.NewKey(time.Now())
	pages := New(needySource{oneDocument{dossier: present.Dossier{Entry: ledger.Entry{Key: key}}}}, slog.New(slog.DiscardHandler))
	body := visit(t, pages, web.Rights{Read: true}, "en", http.MethodGet, "/").Body.String()
	kit.Holds(t, "the page", body,
		`<a href="/document/`+key.String()+`"><bdi>Huber &lt;88&gt;</bdi></a> (<bdi>acme</bdi>)<span lang="en">: documentDate is &lt;b&gt;no date</span>`,
		"and 3 more", "Open each one to see why. Put it right, and drop it again.", "<bdi>E-1: gone</bdi>", "1 extract needs you", "see vaultd extracts",
	)
	kit.Lacks(t, "the page", body, "4 rejected", "_REASON.txt", "and 0 more")
	body = visit(t, pages, web.Rights{}, "en", http.MethodGet, "/").Body.String()
	kit.Lacks(t, "the page", body, "Huber", key.String(), "no date", "Open each one", "more</p>", "E-1")
	kit.Holds(t, "the page", body, "Rejected", ">4<")
}

// No words of the page send a reader to "vaultd why X": a reader has no terminal, and no X.
func TestStatus_AdviceIsForReaders(t *testing.T) {
	var s present.StatusSummary
	s.Attention = present.EntryCounts{}
	for _, k := range present.NeedKinds() {
		if len(k.Classes) > 0 {
			c := s.Attention.Of(k.What)
			c.Count = 1
			c.Add(ledger.Entry{Key: archive.NewKey(time.Now()), Folder: "Huber 88"}, "")
		}
	}
	s.Balance.Agrees = true
	s.AddNeeds(present.Clock{Location: time.UTC})
	f := frameOf("en")
	f.Visitor.Rights.Read = true
	kit.Need(t, len(s.Needs) >= 15, "%d needs: the test sees nothing", len(s.Needs))
	for _, n := range s.Needs {
		if f.NeedAdvice(n) == "" || strings.Contains(f.NeedAdvice(n), " X") || len(f.NeedNames(n)) != 1 || f.NeedNames(n)[0].Path == "" {
			t.Errorf(`%s: %q, %v, want f.NeedAdvice(n) other than "", f.NeedAdvice(n) without " X", len(f.NeedNames(n)) = 1, f.NeedNames(n)[0].Path other than ""`, n.What, f.NeedAdvice(n), f.NeedNames(n))
		}
	}
}
