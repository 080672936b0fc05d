package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// archivedSite has n archived folders of drop acme, "inv 00" and so on, and a budget of downloads.
func archivedSite(t *testing.T, n int, extra string) (s *site, emu *emulator.Server, url string) {
	t.Helper()
	emu, url = serveEmulator(t, emulator.Config{ArchiveMax: 100 * time.Millisecond})
	s = newSite(t, url, fast+"\n"+extra)
	s.dropped("acme", "inv", n)
	s.must(0, "run", "--once", "--wait")
	return s, emu, url
}

// I29: downloads are paid for: the month's budget is checked before the archive is asked, in the daemon and beside none, and
// whatever was downloaded, by whichever command, counts and stands in the audit.
func TestFetch_I29_BudgetOfTheMonth(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]bool{"InsideTheDaemon": true, "BesideNone": false}, func(t *testing.T, inside bool) {
		t.Parallel()
		s, emu, _ := archivedSite(t, 5, "billing: {downloads_per_month: 4, download_price: 0.50}")
		emu.GrantDownloads(4)
		if inside {
			s.start("run")
			s.listens()
		}
		file := filepath.Join(s.dir, "got.zip")
		out := s.must(0, "fetch", "inv 01", "-o", file)
		kit.Holds(t, "fetch says", out, "the provider may charge EUR 0.50 for it", "1 download this month; billing.downloads_per_month allows 4")
		out = s.must(0, "verify", "--archive", "40%")
		kit.Check(t, strings.Count(out, "SAME      inv ") == 2 && !strings.Contains(out, "inv 01"),
			"verify --archive downloads what was compared, or the wrong number:\n%s", out)
		kit.Holds(t, "verify --archive", out,
			"2 documents downloaded, of 2 that were asked for", "RESULT    3 of 5 downloaded and compared, 0 differ",
		)
		var told struct {
			Documents []struct{ Folder, Outcome string }
			Asked     int
			Compared  int `json:"comparedDocuments"`
			Used      int `json:"downloadsThisMonth"`
			Stopped   string
		}
		kit.Must(t, json.Unmarshal([]byte(s.must(0, "verify", "--archive", "3", "--json")), &told))
		if len(told.Documents) != 1 || strings.Contains(out, told.Documents[0].Folder) || told.Documents[0].Folder == "inv 01" || told.Documents[0].Outcome != "same" || told.Asked != 3 || told.Used != 4 || told.Stopped == "" || told.Compared != 4 {
			t.Errorf(`%+v, want len(told.Documents) = 1, out without %q, told.Documents[0].Folder other than "inv 01", told.Documents[0].Outcome = "same", told.Asked = 3, told.Used = 4, told.Stopped other than "", told.Compared = 4`, told, told.Documents[0].Folder)
		}
		spent := "4 downloads this month, all that billing.downloads_per_month allows. Nothing was downloaded."
		again := filepath.Join(s.dir, "again.zip")
		for _, args := range [][]string{{"fetch", "inv 04", "-o", again}, {"fetch", "inv 04", "-o", "-"}, {"verify", "--archive", "1"}} {
			kit.Holds(t, fmt.Sprint(args), s.must(exitPerson, args...), spent)
		}
		kit.Fails(t, "a file of nothing", kit.Err(os.Lstat(again)), os.ErrNotExist)
		kit.Holds(t, "status",
			s.must(0, "status"), "BILLING  4 downloads this month; billing.downloads_per_month allows 4\n")
		kit.Holds(t, "verify", s.must(0, "verify"), "4 of 5 downloaded and compared, 0 differ")
		var audit struct {
			Unchanged struct {
				Text, Money, Currency string
				Downloads             int
			}
			Acts []struct{ Event, BumID string }
		}
		page := s.must(0, "audit", "--json", "-o", "-")
		kit.Must(t, json.Unmarshal([]byte(page[strings.IndexByte(page, '{'):strings.LastIndexByte(page, '}')+1]), &audit))
		if u := audit.Unchanged; u.Text != "4 of 5 downloaded and compared, 0 differ" || u.Downloads != 4 || u.Money != "2.00" || u.Currency != "EUR" {
			t.Errorf(`%+v, want u.Text = "4 of 5 downloaded and compared, 0 differ", u.Downloads = 4, u.Money = "2.00", u.Currency = "EUR"`, u)
		}
		kit.Check(t, len(audit.Acts) == 4 && audit.Acts[0].Event == "fetch-intended" && audit.Acts[0].BumID != "",
			`%+v, want len(audit.Acts) = 4, audit.Acts[0].Event = "fetch-intended", audit.Acts[0].BumID other than ""`, audit.Acts)
		for _, v := range emu.Violations() {
			t.Errorf("the service saw: %s", v)
		}
	})
}

func TestFetch_BudgetOfZeroForbids(t *testing.T) {
	s := newShelf(t)
	stored(t, s, []byte("PK"))
	s.edit("drops:", "billing: {downloads_per_month: 0}\ndrops:")
	from := &store{t: t, zip: []byte("PK")}
	s.archiveIs(from.ServeHTTP)
	_, errs, code := s.reach("fetch", "Müller 4711", "-o", "-")
	if code != exitPerson || from.asks != 0 || !strings.Contains(errs, "billing.downloads_per_month is 0: it forbids downloads. Nothing was downloaded.") || strings.Contains(errs, "downloading") {
		t.Errorf("exit %d, %d calls:\n%s", code, from.asks, errs)
	}
}

// What differs, or does not come, is told for each document; a fault of the service as a whole ends it.
func TestVerifyArchive_WhatIsWrong(t *testing.T) {
	type row struct {
		from    store
		code    int
		says    []string
		outcome string
	}
	kit.Rows(t, map[string]row{
		"Differs": {store{zip: zipOf(t, 0, "rechnung.pdf", "other")}, exitDifferences, []string{"DIFFERS   Müller 4711", "1 of 1 downloaded and compared, 1 differ", "1 document is not what was sent"}, ledger.FetchDiffers},
		"Missing": {store{status: http.StatusNotFound}, exitFailed, []string{"FAILED    Müller 4711", "0 of 1 downloaded and compared", "1 document could not be downloaded"}, ledger.FetchFailed},
		"NoZIP":   {store{zip: []byte("no ZIP")}, exitFailed, []string{"FAILED    Müller 4711"}, ledger.FetchFailed},
		"Denied":  {store{status: http.StatusForbidden}, exitRights, []string{"403"}, ledger.FetchFailed},
		"Away":    {store{zip: []byte("PK\x03\x04"), hangUp: true}, exitUnavailable, nil, ledger.FetchFailed},
	}, func(t *testing.T, row row) {
		s := newShelf(t)
		stored(t, s, []byte("PK"), "rechnung.pdf", "pdf")
		from := row.from
		from.t = t
		s.archiveIs(from.ServeHTTP)
		out, errs, code := s.reach("verify", "--archive", "5")
		for _, want := range row.says {
			kit.Holds(t, "out+errs", out+errs, want)
		}
		var last ledger.Line
		err := s.ledger.Lines(s.ledger.Head().N, func(_ uint64, line []byte) (err error) {
			last, err = ledger.ParseLine(line)
			return err
		})
		if code != row.code || from.asks != 1 || err != nil || last.Event != ledger.MarkFetched || last.Cause != row.outcome {
			t.Errorf("exit %d, %d calls, %+v, %v\n%s%s", code, from.asks, last, err, out, errs)
		}
	})
}

func TestVerifyArchive_HowMany(t *testing.T) {
	s := newShelf(t)
	var all []ledger.Change
	for n := range 300 {
		all = append(all, ledger.Change{Key: archive.NewKey(noon), At: archive.Instant{Wall: noon}, Events: []ledger.Event{ledger.Recovered{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: fmt.Sprint("F", n),
			ID: archive.ID{1, 14: byte(n >> 8), 15: byte(n)}, Remote: archive.RemoteID(fmt.Sprint("R", n)), SuccessRecord: []byte("{}"), State: ledger.Archived, Source: ledger.Gone, SeenAt: noon, ArchivedAt: noon}, ledger.Reconciled{}}})
	}
	if rs, err := s.ledger.Apply(t.Context(), all...); err != nil || rs[0].Err != nil {
		t.Fatalf("err = %v, rs[0].Err = %v, want no error, rs[0].Err = nil", err, rs[0].Err)
	}
	s.edit("drops:", "billing: {downloads_per_month: 0}\ndrops:")
	s.archiveIs(func(http.ResponseWriter, *http.Request) { t.Error("the archive was asked") })
	for text, want := range map[string]int{"1": 1, "60": 60, "5%": 15, "0.1%": 1, "100%": 300, "33.4%": 101, "0": -1, "-1": -1, "0%": -1, "101%": -1, "x": -1, "": -1, "%": -1, "1.5": -1, "5 %": -1} {
		out, errs, code := s.reach("verify", "--json", "--archive="+text)
		var told struct{ Asked int }
		if err := json.Unmarshal([]byte(out), &told); want == -1 && code != exitUsage || want != -1 && (err != nil || told.Asked != want) {
			t.Errorf("%q: exit %d, %d, %v; want %d: %s%s", text, code, told.Asked, err, want, out, errs)
		}
	}
}
