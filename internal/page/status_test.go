package page

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"vaultd/internal/present"
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
		".Version": true, ".Environment": true, ".Needs.When": true, ".Needs.What": true, ".Pauses.Route": true, ".Pauses.Code": true, ".Balance.Text": true,
		".NotTaken.Drop": true, ".NotTaken.Reason": true, ".Drops.Name": true, ".Drops.Vault": true, ".Drops.Mode": true, ".Drops.Route": true,
	}
	for _, path := range secretsIn("", reflect.ValueOf(withoutDocuments(s))) {
		if !allowed[path] && !strings.HasPrefix(path, ".Billing.") {
			t.Errorf("%s is told to everybody", path)
		}
	}
	var h present.History
	fill(reflect.ValueOf(&h).Elem())
	for _, path := range secretsIn("", reflect.ValueOf(withoutReason(h))) {
		if path != ".Shares.Vault" {
			t.Errorf("%s of the history is told to everybody", path)
		}
	}
	if s.Needs[0].Text != "SECRET" || s.Drops[0].Paused != "SECRET" {
		t.Error("the summary itself was changed")
	}
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
	if few := fullestShares(h.Shares[:3]); len(few) != 3 {
		t.Error(few)
	}
}

// Who has not signed in is not told which version runs.
func TestLogin_I7_TellsNoVersion(t *testing.T) {
	for _, maySignIn := range []bool{true, false} {
		f := frameOf("en")
		f.about.Version, f.Visitor.MaySignIn = "1.2.3-of-a-test", maySignIn
		w := httptest.NewRecorder()
		f.writePage(w, http.StatusOK, "refusal", "x", &Refusal{Text: "x"})
		if strings.Contains(w.Body.String(), "1.2.3-of-a-test") == maySignIn {
			t.Errorf("may sign in %v: %s", maySignIn, w.Body)
		}
	}
}

// The first line of the page says whether a person is needed, and how soon.
func TestStatus_Verdict(t *testing.T) {
	for want, b := range map[string]statusBody{
		"All is well: nobody is needed":     {StatusSummary: present.StatusSummary{Running: true}},
		"vaultd does not run":               {},
		"2 soon: a person is needed":        {Later: 2},
		"1 now, 3 soon: a person is needed": {Urgent: 1, Later: 3},
	} {
		if got := frameOf("en").Verdict(b); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
	if got := frameOf("de").Verdict(statusBody{Urgent: 1}); !strings.Contains(got, "sofort") {
		t.Error(got)
	}
}
