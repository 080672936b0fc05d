package readings

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

// mostCalls is more calls for index pages than any walk of this test needs.
const mostCalls = 500

// An index of which every page is there is read whole, whatever its pages give as found and however short they are. From
// an index that may have ended early nothing is concluded, and no walk goes on for ever.
func TestReading_I32_AnIndexThatMayHaveEndedEarlyProvesNothing(t *testing.T) {
	always := func(k emulator.Kind) func(int) emulator.Kind { return func(int) emulator.Kind { return k } }
	once := func(k emulator.Kind) func(int) emulator.Kind {
		return func(n int) emulator.Kind {
			if n == 2 { // of the first vault
				return k
			}
			return emulator.None
		}
	}
	type row struct {
		found    string
		page     int // documents; each vault has 6
		fault    func(n int) emulator.Kind
		complete bool
	}
	kit.Rows(t, map[string]row{
		"FoundTold_OnePage":            {"all", 0, nil, true},
		"FoundTold_PageJustFull":       {"all", 6, nil, true},
		"FoundTold_ShorterPages":       {"all", 4, nil, true},
		"FoundTold_EqualPages":         {"all", 3, nil, true},
		"NoFound":                      {"none", 4, nil, true},
		"NoFound_OnePage":              {"none", 0, nil, true},
		"FoundIsOfThePage":             {"page", 3, nil, true},
		"FoundIsOfThePage_OnePage":     {"page", 0, nil, true},
		"FoundIsOfWhatWasRead":         {"read", 2, nil, true},
		"FoundIsOfWhatIsLeft":          {"left", 2, nil, true},
		"FoundIsZero":                  {"zero", 4, nil, true},
		"FoundIsNegative":              {"negative", 4, nil, true},
		"FoundIsTooLarge":              {"more", 4, nil, false},
		"FoundIsTooLarge_OnePage":      {"more", 0, nil, false},
		"ShortPage_CursorUnmoved":      {"all", 0, always(emulator.ShortPage), false},
		"ShortPage_NoFound":            {"none", 0, always(emulator.ShortPage), false},
		"ShortPage_FoundIsOfThePage":   {"zero", 0, always(emulator.ShortPage), false},
		"ShortPage_InTheMiddle":        {"all", 2, once(emulator.ShortPage), false},
		"CirclingCursors":              {"more", 4, always(emulator.CirclePage), false},
		"CirclingCursors_NoFound":      {"none", 4, always(emulator.CirclePage), false},
		"CirclingCursors_FoundIsRight": {"all", 2, always(emulator.CirclePage), false},
		"EmptyPageInTheMiddle":         {"all", 2, once(emulator.EmptyPage), true},
		"EmptyPages":                   {"all", 2, always(emulator.EmptyPage), false},
		"RepeatedPage":                 {"all", 2, once(emulator.RepeatPage), true},
		"RepeatedPage_NoFound":         {"none", 2, once(emulator.RepeatPage), true},
		"RepeatedPages":                {"all", 2, always(emulator.RepeatPage), false},
		"RepeatedPages_NoFound":        {"none", 2, always(emulator.RepeatPage), false},
	}, func(t *testing.T, row row) {
		t.Parallel()
		faults := func(op string, n int) emulator.Fault {
			switch {
			case op != "index":
				return emulator.Fault{}
			case n > mostCalls:
				t.Errorf("the walk does not end")
				return emulator.Fault{Kind: emulator.Status, Status: 404}
			case row.fault == nil:
				return emulator.Fault{}
			}
			return emulator.Fault{Kind: row.fault(n)}
		}
		virtual(t, setup{readings: emulator.Readings{IndexFound: row.found, IndexPage: row.page}, faults: faults, between: hideStatusList, folders: 6}, func(t *testing.T, w *world) {
			w.archives(time.Hour)
			time.Sleep(time.Hour) // the index must show by now what is archived
			c := kit.Value(w.daemon.Reconcile(t.Context(), operator.Person{UID: 7}))(w.t)
			kit.Want(t, "differences", c.Differences(), 0)
			for i, v := range c.Vaults {
				complete := row.complete || i > 0 && row.fault != nil && row.fault(mostCalls) == emulator.None
				if v.Index.Complete != complete || v.Indexed > 6 || complete && v.Indexed != 6 || v.Indexed != v.Index.Read || v.Index.Request == "" {
					t.Errorf("vault %s: %d of 6, %+v", v.Vault, v.Indexed, v.Index)
				}
			}
			if c.Complete() != row.complete || len(c.Why) > 0 == row.complete {
				t.Errorf("complete: %v, %q", c.Complete(), c.Why)
			}
		})
	})
}

// hideStatusList empties the list of the last registrations, as if those here were made long ago: the index alone shows them.
func hideStatusList(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	resp, err := next.RoundTrip(r)
	if err == nil && strings.HasSuffix(r.URL.Path, "/documents/status") {
		resp.Body, resp.ContentLength = io.NopCloser(strings.NewReader("[]")), 2
	}
	return resp, err
}
