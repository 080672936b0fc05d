package readings

import (
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/catalog"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/test/kit"
)

// What the archive removes once its retention is over is no difference, sixteen years on, where the contract's years are
// configured. Where they are not, or say more, it is missing. Nothing of it is asked about or sent again meanwhile.
func TestReading_I32_RetentionThatIsOverIsNoAlarm(t *testing.T) {
	const day = 24 * time.Hour
	began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // of every bubble
	ten := began.AddDate(10, 0, 0).Sub(began)
	type row struct {
		years          archive.Retention
		after          time.Duration // since the bubble began
		ended, missing int           // of the six documents
	}
	kit.Rows(t, map[string]row{
		"AYearOn":                     {10, 365 * day, 0, 0},
		"TheDayBefore":                {10, ten - day, 0, 0},
		"TheDayOfTheEnd":              {10, ten + 2*time.Hour, 6, 0}, // the last hour has archived them
		"TheDayAfter":                 {10, ten + day, 6, 0},
		"SixteenYearsOn":              {10, began.AddDate(16, 0, 0).Sub(began), 6, 0},
		"SixteenYearsOn_NotKnown":     {0, began.AddDate(16, 0, 0).Sub(began), 0, 6},
		"TheContractSaysMore_TooSoon": {15, began.AddDate(11, 0, 0).Sub(began), 0, 6},
	}, func(t *testing.T, row row) {
		s := setup{readings: emulator.Readings{Retention: ten}, daemon: func(c *daemon.Config) {
			for i := range c.Drops {
				c.Drops[i].Retention = row.years
			}
		}}
		virtual(t, s, func(t *testing.T, w *world) {
			w.archives(time.Hour)
			w.halt() // nobody looks for folders for so long
			calls := len(w.sentTo(apiHost))
			time.Sleep(row.after - time.Since(began))
			c := kit.Value(w.daemon.Reconcile(t.Context(), operator.Person{UID: 7}))(w.t)
			ended, missing := 0, 0
			for _, v := range c.Vaults {
				ended, missing = ended+v.Ended, missing+v.Missing.Count
				want := 3 - v.Ended - v.Missing.Count
				kit.Check(t, v.Index.Complete && v.Indexed == want && v.Listed == want, "vault %s: %+v", v.Vault, v)
			}
			if ended != row.ended || missing != row.missing || c.Differences() != row.missing || !c.Complete() {
				t.Errorf("%d ended, %d missing, %d differences", ended, missing, c.Differences())
			}
			for _, e := range w.entries() {
				if e.Contradicted || e.NeedsReconcile || !e.IsAtRest() {
					t.Errorf("%q: contradicted %t, in doubt %t, at rest %t", e.Folder, e.Contradicted, e.NeedsReconcile, e.IsAtRest())
				}
			}
			for _, one := range w.sentTo(apiHost)[calls:] {
				if one.method != "GET" || !strings.HasSuffix(one.path, "/documents/status") && !strings.HasSuffix(one.path, "/index") {
					t.Errorf("%s %s", one.method, one.path)
				}
			}
			w.proven()
		})
	})
}

// The bill is made of what the service archived, in the calendar year of its
// own word, per vault and for the customer; empty registrations, and content
// that was sent twice, are left out.
func TestReading_BillCountsWhatTheServiceArchived(t *testing.T) {
	type row struct {
		fault emulator.Fault
		zone  *time.Location
		year  int // the world begins with 2000, UTC
	}
	kit.Rows(t, map[string]row{
		"Calm":            {emulator.Fault{}, time.UTC, 2000},
		"StillLastYear":   {emulator.Fault{}, time.FixedZone("west", -2*3600), 1999},
		"SentTwice":       {emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, time.UTC, 2000},
		"RegisteredTwice": {emulator.Fault{Kind: emulator.DeadToken}, time.UTC, 2000},
	}, func(t *testing.T, row row) {
		s := setup{faults: first(3, "upload", row.fault), daemon: func(c *daemon.Config) { c.Location = row.zone }}
		virtual(t, s, func(t *testing.T, w *world) {
			w.archives(hour)
			want := map[archive.VaultID]ledger.Total{}
			for _, r := range w.service.Registrations() {
				if r.ArchivedAt.IsZero() {
					continue
				}
				for _, v := range []archive.VaultID{"", archive.VaultID(r.Vault)} {
					sum := want[v]
					want[v] = ledger.Total{Documents: sum.Documents + 1, Bytes: sum.Bytes + uint64(r.Size)}
				}
			}
			c := catalog.OpenStopped(catalog.Config{StateDir: t.TempDir(), Ledger: w.daemon.Ledger(), Location: row.zone, Log: slog.New(slog.DiscardHandler)})
			lacks, err := c.CatchUp(w.t.Context())
			kit.Need(w.t, err == nil && lacks == "", "the figures lack something: %s (%v)", lacks, err)
			totals := kit.Value(c.Totals(w.t.Context(), time.Time{}))(w.t)
			kit.Must(w.t, c.Close())
			bills := kit.Value(billing.Bills(totals, billing.Rule{}, time.Time{}))(w.t)
			kit.Need(t, len(bills) == 3 && want[""].Documents == uint64(len(w.dropped)), "%+v for %+v", bills, want)
			for _, b := range bills {
				kit.Check(t, b.Year == row.year && b.Documents == want[b.Vault].Documents && b.Bytes == want[b.Vault].Bytes,
					"billed %+v, archived %+v", b, want[b.Vault])
			}
		})
	})
}

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
