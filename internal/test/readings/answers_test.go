package readings

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/vaultapi"
)

// An answer to a registration that leaves something out, or holds more than was asked for, under every form of URL.
func TestReading_I8_IncompleteAnswers(t *testing.T) {
	for name, row := range map[string]struct {
		kind emulator.Kind
		says string
	}{
		"MissingAnswer": {emulator.MissingAnswer, "the service's answer does not name this document; it is registered again"},
		"MissingURL":    {emulator.MissingURL, "it is registered again"},
		"ExtraAnswer":   {emulator.ExtraAnswer, "holds records nobody asked for; they are ignored"},
	} {
		for _, form := range []string{"object", "string"} {
			t.Run(name+"/"+form, func(t *testing.T) {
				s := setup{readings: emulator.Readings{URLForm: form}, faults: first(4, "register", emulator.Fault{Kind: row.kind})}
				virtual(t, s, func(t *testing.T, w *world) {
					w.archives(hour)
					w.says(row.says)
				})
			})
		}
	}
}

// A registration whose answer was lost, under each of the three behaviours toward a clientUUID that is known: the
// document is archived once, and only where the service refuses it does it go on under a new identity.
func TestReading_I2_RepeatAfterLostAnswer(t *testing.T) {
	for _, repeat := range []string{"new", "refuse", "same"} {
		for name, f := range map[string]emulator.Fault{
			"Aborted": {Kind: emulator.Abort, IsAfterWork: true},
			"500":     {Kind: emulator.Status, Status: 500, IsAfterWork: true},
			"504":     {Kind: emulator.Status, Status: 504, IsAfterWork: true},
			"HTML":    {Kind: emulator.HTML, IsAfterWork: true},
			"Cut":     {Kind: emulator.Cut},
			"Garbled": {Kind: emulator.Garble},
			"Empty":   {Kind: emulator.Empty},
		} {
			t.Run(repeat+"/"+name, func(t *testing.T) {
				virtual(t, setup{readings: emulator.Readings{Repeat: repeat}, faults: first(2, "register", f)}, func(t *testing.T, w *world) {
					w.archives(3 * hour)
					again := slices.ContainsFunc(w.entries(), func(e ledger.Entry) bool { return e.Generation > 0 })
					kit.Want(t, "a new identity is taken", again, (repeat == "refuse"))
				})
			})
		}
	}
}

// A proxy's page with 200 is no answer, whatever it was put in front of.
func TestReading_I12_ProxyPageIsNoAnswer(t *testing.T) {
	page := map[string]string{"token": "the token answer is an HTML page (a proxy's?): Gateway"}
	for op, calls := range map[string]int{"register": 6, "upload": 6, "status": 8, "status-list": 8, "token": 8} {
		for _, done := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/done=%v", op, done), func(t *testing.T) {
				s := setup{faults: first(calls, op, emulator.Fault{Kind: emulator.HTML, IsAfterWork: done})}
				if op == "token" {
					s.service, s.client = tokensOnly, withTokens
				}
				if op == "status" {
					s.folders = 1 // too few for the list to be asked
				}
				if op == "status-list" {
					s.folders = 8
				}
				virtual(t, s, func(t *testing.T, w *world) {
					w.archives(6 * hour)
					w.says(cmp.Or(page[op], "answered with a web page, as a proxy does"))
				})
			})
		}
	}
}

// A word never seen is as good as "in progress", is shown, and is reported once; another one again.
func TestReading_I12_UnknownWordIsNoSuccess(t *testing.T) {
	for _, words := range [][2]string{{"Verifying", "ArchivingPaused"}, {"archived", "SUCCESS"}} {
		t.Run(words[0], func(t *testing.T) {
			s := setup{readings: emulator.Readings{InProgressWord: words[0]},
				service: func(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = 3*hour, 4*hour }}
			virtual(t, s, func(t *testing.T, w *world) {
				alarms := func() int { return strings.Count(w.said(), "a status word that vaultd does not know") }
				w.pass(hour, time.Second, never)
				for _, e := range w.entries() {
					kit.Want(t, fmt.Sprintf("%q", e.Folder), e.State, ledger.Uploaded)
				}
				kit.Want(t, "alarms of one word", alarms(), 1)
				kit.Must(w.t, w.service.SetReadings(emulator.Readings{InProgressWord: words[1]}))
				w.pass(6*hour, time.Minute, w.allArchived)
				w.archives(hour)
				w.says("a status word that vaultd does not know", words[0], words[1])
				kit.Want(t, "alarms for two words", alarms(), 2)
			})
		})
	}
}

// A service that answers with another word each time is logged up to a bound,
// then once more, and never again.
func TestReading_I21_EverNewWordsAreBounded(t *testing.T) {
	s := setup{folders: 1, readings: emulator.Readings{InProgressWord: "Step%d"},
		service: func(c *emulator.Config) { c.ArchiveMin, c.ArchiveMax = 300*hour, 301*hour }}
	virtual(t, s, func(t *testing.T, w *world) {
		w.pass(250*hour, 10*time.Minute, never)
		n := w.service.CountCalls("status") + w.service.CountCalls("status-list")
		kit.Check(t, n >= 100, "the service was asked %d times, want more than 100", n)
		kit.Want(t, "words that are logged", strings.Count(w.said(), "a status word that vaultd does not know"), 32)
		kit.Want(t, "lines at the bound", strings.Count(w.said(), "many status words that vaultd does not know"), 1)
		w.archives(100 * hour)
	})
}

// Every form of an error answer reaches a person in words: in the folder that came back, and in the pause of a route.
func TestReading_ErrorBodiesInWords(t *testing.T) {
	for form, words := range map[string][2]string{
		"message": {"bad request", "forbidden"}, "Message": {"bad request", "forbidden"},
		"detail": {"bad request", "forbidden"}, "detail-list": {"body.0: bad request", "body.0: forbidden"},
		"error": {"bad request", "forbidden"}, "oauth": {"bad request; ServiceFault", "forbidden; ServiceFault"},
		"service": {"ServiceFault: bad request", "ServiceFault: forbidden"}, "network": {"ServiceFault: bad request", "ServiceFault: forbidden"},
		"wrapped": {"ServiceFault: bad request", "ServiceFault: forbidden"}, "xml": {"ServiceFault: bad request", "ServiceFault: forbidden"},
		"empty": {"no explanation given", "no explanation given"}, "html": {"an HTML page (a proxy's?)", "an HTML page (a proxy's?)"},
	} {
		t.Run(form, func(t *testing.T) {
			s := setup{readings: emulator.Readings{ErrorBody: form}, daemon: func(c *daemon.Config) { c.BatchSize = 1 }}
			s.faults = func(op string, n int) emulator.Fault {
				if op != "register" || n > 2 {
					return emulator.Fault{}
				}
				return emulator.Fault{Kind: emulator.Status, Status: []int{400, 403}[n-1]}
			}
			virtual(t, s, func(t *testing.T, w *world) {
				w.pass(hour, time.Second, func() bool { return w.count(ledger.Archived) == len(w.dropped)-1 && w.count(ledger.Rejected) == 1 })
				if a, r := w.count(ledger.Archived), w.count(ledger.Rejected); a != len(w.dropped)-1 || r != 1 {
					t.Fatalf("%d archived, %d rejected", a, r)
				}
				w.pass(time.Minute, time.Second, never) // for the folders to be put where they belong
				kit.Holds(t, "reason", w.reason(), "NOT ARCHIVED. ", "400 Bad Request: "+words[0])
				w.says("403 Forbidden: " + words[1])
				w.proven()
			})
		})
	}
}

func (w *world) count(s ledger.State) (n int) {
	w.t.Helper()
	for _, e := range w.entries() {
		if e.State == s {
			n++
		}
	}
	return n
}

// reason is what the one rejected folder says to a person.
func (w *world) reason() string {
	w.t.Helper()
	found := kit.Value(filepath.Glob(filepath.Join(w.dir, "drop-*", "_rejected", "*", "_REASON.txt")))(w.t)
	kit.Need(w.t, len(found) == 1, "found %q", found)
	b := kit.Value(os.ReadFile(found[0]))(w.t)
	return string(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
}

// Downloads come as bytes, behind a redirect to a pre-signed address, or as JSON that names one; before the end, 404.
func TestReading_I4_DownloadsInThreeForms(t *testing.T) {
	for _, form := range []string{"bytes", "redirect", "json"} {
		t.Run(form, func(t *testing.T) {
			virtual(t, setup{readings: emulator.Readings{Download: form}}, func(t *testing.T, w *world) {
				w.archives(hour)
				w.service.GrantDownloads(len(w.entries()))
				for _, e := range w.entries() {
					var got bytes.Buffer
					n, sum, err := w.client.Download(t.Context(), e.Vault, e.ArchivedRemote, &got)
					kit.Check(t, err == nil && n == e.Package.Size && sum == e.Package.SHA256 && archive.Sum(got.Bytes()) == sum,
						"%q: %d bytes, %s: %v", e.Folder, n, sum, err)
				}
				gets := 0
				for _, c := range w.sentTo(storeHost) {
					if c.method == "GET" {
						gets++
					}
				}
				kit.Want(t, "downloads from the store", gets, map[string]int{"redirect": len(w.dropped), "json": len(w.dropped)}[form])
				w.proven() // no credentials went along
			})
		})
	}
}

// The list of vaults in its three forms, and an index whose numbers are of either type.
func TestReading_ListsOfEachForm(t *testing.T) {
	for name, row := range map[string]struct {
		readings emulator.Readings
		name     string
	}{
		"Objects": {emulator.Readings{VaultList: "objects"}, "Acme GmbH"}, "IDs": {emulator.Readings{VaultList: "ids"}, ""},
		"Wrapped": {emulator.Readings{VaultList: "wrapped", NumbersAsStrings: true}, "Acme GmbH"},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, setup{readings: row.readings}, func(t *testing.T, w *world) {
				w.archives(hour)
				vaults, err := w.client.Vaults(t.Context(), "ACME")
				if err != nil || len(vaults) != 2 || vaults[0].ID != "ACME" || vaults[0].Name != row.name || vaults[1].ID != "BETA" {
					t.Errorf("vaults %+v: %v", vaults, err)
				}
				page, err := w.client.Index(t.Context(), "ACME", vaultapi.FirstPage, 100, "archiveDate asc")
				kit.Need(t, err == nil && len(page.Records) == 3 && page.Found == 3, "page %+v: %v", page, err)
				for _, r := range page.Records {
					if r.Remote == "" || strings.TrimRight(strings.TrimRight(string(r.Document.Amount), "0"), ".") != "119" {
						t.Errorf("record %s", r.Raw)
					}
				}
			})
		})
	}
}

// Answers about one document that are far larger than a record is are not read to their end: the document is asked about
// again and archived, and while they come it stays as it is.
func TestReading_I21_HugeStatusAnswers(t *testing.T) {
	for _, chunked := range []bool{false, true} {
		t.Run(fmt.Sprintf("chunked=%v", chunked), func(t *testing.T) {
			s := setup{folders: 1, faults: first(4, "status", emulator.Fault{Kind: emulator.Huge, PaddingSize: 1 << 20, Chunked: chunked})} // too few for the list to be asked
			virtual(t, s, func(t *testing.T, w *world) {
				w.archives(6 * hour)
				w.says("the answer is larger than its limit")
			})
		})
	}
}

// hour is long enough for every reading that shows all.
const hour = time.Hour

// first makes the first calls of an op fail in a way.
func first(calls int, op string, f emulator.Fault) func(string, int) emulator.Fault {
	return func(is string, n int) emulator.Fault {
		if is == op && n <= calls {
			return f
		}
		return emulator.Fault{}
	}
}

// The harmless readings: all is archived, once.
func TestReading_I2_I12_ArchivesUnderEach(t *testing.T) {
	oauth := func(c *emulator.Config) {
		c.Username, c.Secret, c.ClientID, c.ClientSecret = "", "", user, password
	}
	bearer := func(c *apicall.Config) { c.Auth.Method = apicall.OAuth2 }
	kit.Rows(t, map[string]setup{
		"MostLikely":               {},
		"UsualProbeInterval":       {daemon: func(c *daemon.Config) { c.ProbeEvery = 0 }},
		"URLIsObject":              {readings: emulator.Readings{URLForm: "object"}},
		"URLIsString":              {readings: emulator.Readings{URLForm: "string"}},
		"URLHasHeaders":            {readings: emulator.Readings{URLForm: "headers"}},
		"URLHasFields":             {readings: emulator.Readings{URLForm: "fields"}},
		"AnswersInOrder":           {readings: emulator.Readings{InOrder: true}},
		"NumbersAreStrings":        {readings: emulator.Readings{NumbersAsStrings: true}},
		"NumbersAreStringsInToken": {readings: emulator.Readings{NumbersAsStrings: true}, service: oauth, client: bearer},
		"NamesInOtherCase":         {readings: emulator.Readings{TwinFields: true}},
		"NamesInOtherCaseInToken":  {readings: emulator.Readings{TwinFields: true}, service: oauth, client: bearer},
		"BumIDsInCapitals":         {readings: emulator.Readings{BumIDCase: "capital"}},
		"BumIDsInCapitalsLater":    {readings: emulator.Readings{BumIDCase: "mixed"}},
		"ETagIsMD5":                {readings: emulator.Readings{ETag: "md5"}},
		"ETagIsNoMD5":              {readings: emulator.Readings{ETag: "kms"}},
		"NoETag":                   {readings: emulator.Readings{ETag: "none"}},
		"RepeatGivesNew":           {readings: emulator.Readings{Repeat: "new"}},
		"RepeatGivesSame":          {readings: emulator.Readings{Repeat: "same"}},
		"RepeatIsRefused":          {readings: emulator.Readings{Repeat: "refuse"}},
	}, func(t *testing.T, s setup) {
		virtual(t, s, func(t *testing.T, w *world) { w.archives(hour) })
	})
}

// I11: a rejected folder whose return is blocked for a while is returned with
// the reason of its rejection alone.
func TestReading_I11_ReasonOutlivesWhatIsInTheWay(t *testing.T) {
	virtual(t, setup{}, func(t *testing.T, w *world) {
		inTheWay := filepath.Join(w.path(0), "_rejected")
		kit.Must(w.t, os.WriteFile(inTheWay, nil, 0o600))
		aside := filepath.Join(w.dir, "aside")
		kit.Must(w.t, os.Mkdir(aside, 0o770))
		kit.Must(w.t, os.WriteFile(filepath.Join(aside, "a.pdf"), []byte("%PDF-1.7"), 0o660))
		kit.Must(w.t, os.WriteFile(filepath.Join(aside, "metadata.json"), []byte("{"), 0o660))
		kit.Must(w.t, os.Rename(aside, filepath.Join(w.path(0), "broken")))
		rejected := func() (e ledger.Entry) {
			for _, one := range w.entries() {
				if one.State == ledger.Rejected {
					e = one
				}
			}
			return e
		}
		w.pass(2*hour, time.Minute, never)
		e := rejected()
		kit.Check(t, e.Source == ledger.Claimed && e.Attempt != 0,
			"%+v, want e.Source = ledger.Claimed, e.Attempt other than 0", e)
		kit.Must(w.t, os.Remove(inTheWay))
		w.pass(2*hour, time.Minute, func() bool { return rejected().Source == ledger.Returned })
		if text := w.reason(); !strings.Contains(text, "metadata.json") || strings.Contains(text, "_rejected\"") || rejected().Cause != e.Cause {
			t.Errorf("the reason is:\n%s\n%+v", text, e.Cause)
		}
	})
}
