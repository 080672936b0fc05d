package extractapi

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

var published = time.Date(2026, 11, 20, 3, 0, 0, 0, time.UTC)

// filesURL is the host to which downloads are sent on where the reading says so.
const filesURL = "https://files.example"

// service is an emulator with an extract of two files, and the client of it.
type service struct {
	*Client
	*emulator.Server
	now time.Time
}

const definition = `[{"Table name":"IA_INVOICE","Columns":[{"Column name":"NUMBER","Data Type":"NVARCHAR"}]}]`

func newService(t *testing.T, readings emulator.ExtractReadings, change func(*emulator.Config)) *service {
	t.Helper()
	s := &service{now: published.Add(time.Hour)}
	own := emulator.Account{Name: "books", Secret: calls.Secret}
	cfg := emulator.Config{Dir: t.TempDir(), Username: "u", Secret: "s", ClientID: "main", ClientSecret: "s", Vaults: []emulator.Vault{{ID: "V"}},
		Clock: func() time.Time { return s.now }, Extracts: emulator.Extracts{Account: own, FilesURL: filesURL}, Readings: emulator.Readings{Extracts: readings}}
	if change != nil {
		change(&cfg)
	}
	var err error
	if s.Server, err = emulator.New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Server.Close() })
	api, _, err := apicall.New(apicall.Config{BaseURL: "https://books.example", AllowedHosts: []string{"files.example"}, Transport: s.Transport(), Now: func() time.Time { return s.now },
		Auth: apicall.Auth{Method: apicall.OAuth2, Username: own.Name, Secret: func() (string, error) { return own.Secret, nil }, Scopes: []string{ReadScope, WriteScope}}})
	kit.Must(t, err)
	s.Client = New(api)
	for _, id := range []string{"e1", "e2"} {
		s.publish(t, emulator.PublishedExtract{ID: id, Type: archive.DeltaExtract, Name: "books", Start: published.AddDate(0, 0, -1), End: published, Made: published,
			Files: []emulator.PublishedFile{{Table: "IA_INVOICE", Name: "IA_INVOICE_1.zip", Content: []byte(zipped(t))}, {Table: "ADM_SUPPLIER", Name: "s.json.gz", Content: []byte(gzipped(t))}}})
	}
	kit.Must(t, s.SetTableDefinition([]byte(definition)))
	return s
}

func (s *service) publish(t *testing.T, e emulator.PublishedExtract) {
	t.Helper()
	kit.Must(t, s.PublishExtract(e))
}

// fetchAll downloads every file of an extract.
func (s *service) fetchAll(t *testing.T, id archive.ExtractID) (contents []string) {
	t.Helper()
	files := kit.Value(s.Files(t.Context(), id))(t)
	for _, f := range files {
		var got bytes.Buffer
		kit.Value(s.Download(t.Context(), f, &got))(t)
		contents = append(contents, got.String())
	}
	return contents
}

// The way through one extract, in each reading of what the specification leaves open. The service sees nothing that it forbids.
func TestReading_I30_AnExtractFromEndToEnd(t *testing.T) {
	rows := map[string]emulator.ExtractReadings{
		"AsKnown": {}, "RFC3339": {Times: "rfc3339"}, "Wrapped": {List: "wrapped"}, "Parts": {List: "parts"}, "Bytes": {Download: "bytes"}, "OtherHostWantsHeaders": {Download: "redirect-auth"},
		"Singular": {Acknowledge: "singular"}, "BothPaths": {Acknowledge: "both"}, "ExportedByDownload": {Exported: "download"},
	}
	for name, readings := range rows {
		t.Run(name, func(t *testing.T) {
			s := newService(t, readings, nil)
			list, err := s.List(t.Context(), "")
			want := archive.Extract{ID: "e1", Type: archive.DeltaExtract, Name: "books", Start: published.AddDate(0, 0, -1), End: published, Made: published, Files: 2, Status: "WaitingForExport"}
			kit.Need(t, err == nil && list.Whole && len(list.Extracts) == 2 && list.Extracts[0] == want,
				"%+v, %v, want no error, list.Whole, len(list.Extracts) = 2, list.Extracts[0] = %v", list, err, want)
			got := s.fetchAll(t, "e1")
			kit.Check(t, len(got) == 2 && got[0] == zipped(t) && got[1] == gzipped(t), "%d files", len(got))
			if d, err := s.Definition(t.Context()); err != nil || string(d.Raw) != definition || len(d.Tables) != 1 {
				t.Errorf("%+v, %v, want no error, string(d.Raw) = %v, len(d.Tables) = 1", d, err, definition)
			}
			for range 2 { // the second one says that it is done already
				kit.Want(t, "the error of Acknowledge", s.Acknowledge(t.Context(), "e1", "held"), nil)
			}
			if list, err := s.List(t.Context(), ""); err != nil || len(list.Extracts) != 1 || list.Extracts[0].ID != "e2" {
				t.Errorf(`%+v, %v, want no error, len(list.Extracts) = 1, list.Extracts[0].ID = "e2"`, list, err)
			}
			kit.Want(t, "an acknowledged extract is asked for by its number", kit.Err(s.Files(t.Context(), "e1")), nil)
			kit.Len(t, "len(v)", s.Violations(), 0)
		})
	}
}

// I9: the service counts every download that it answered, and refuses the 51st.
func TestDownload_I9_FiftyTimes(t *testing.T) {
	s := newService(t, emulator.ExtractReadings{}, nil)
	files := kit.Value(s.Files(t.Context(), "e1"))(t)
	for n := 1; n <= 51; n++ {
		_, err := s.Download(t.Context(), files[0], io.Discard)
		kit.Check(t, (err == nil) == (n <= 50), "download %d: %v", n, err)
	}
	if known := s.PublishedExtracts()[0]; known.Files[0].Downloads != 50 || known.Files[1].Downloads != 0 || !known.Files[0].WasSent || known.Files[1].WasSent {
		t.Errorf("%+v, want known.Files[0].Downloads = 50, known.Files[1].Downloads = 0, known.Files[0].WasSent, not known.Files[1].WasSent", known)
	}
}

// What a correct client never does is a violation, and the end of the year is the end of an extract.
func TestEmulator_I30_Violations(t *testing.T) {
	type row struct {
		do   func(t *testing.T, s *service)
		says string
	}
	kit.Rows(t, map[string]row{
		"AcknowledgedBeforeTheLastFile": {func(t *testing.T, s *service) {
			files, _ := s.Files(t.Context(), "e1")
			s.Download(t.Context(), files[0], io.Discard)
			s.Acknowledge(t.Context(), "e1", "")
		}, `before its file "s.json.gz" was sent`},
		"AcknowledgedAfterACut": {func(t *testing.T, s *service) {
			kit.Must(t, s.SetFaults(firstOf("extract-fetch", 1, emulator.Fault{Kind: emulator.Cut})))
			files, _ := s.Files(t.Context(), "e1")
			for _, f := range files {
				s.Download(t.Context(), f, io.Discard)
			}
			s.Acknowledge(t.Context(), "e1", "")
		}, `before its file "IA_INVOICE_1.zip" was sent`},
	}, func(t *testing.T, r row) {
		s := newService(t, emulator.ExtractReadings{}, nil)
		r.do(t, s)
		kit.Holds(t, "the violations", fmt.Sprint(s.Violations()), r.says)
	})
	s := newService(t, emulator.ExtractReadings{}, nil)
	s.now = published.AddDate(1, 0, 0)
	kit.Len(t, "len(list.Extracts)", kit.Value(s.List(t.Context(), ""))(t).Extracts, 0)
	_, err := s.Files(t.Context(), "e1")
	kit.Check(t, apicall.AsError(err).Status == 404, "err = %v, want apicall.AsError(err).Status = 404", err)
}

// A service that was killed knows its extracts, its counts and who acknowledged.
func TestEmulator_I5_RemembersExtracts(t *testing.T) {
	dir := t.TempDir()
	s := newService(t, emulator.ExtractReadings{}, func(c *emulator.Config) { c.Dir = dir })
	s.fetchAll(t, "e1")
	s.publish(t, emulator.PublishedExtract{ID: "e2", ToldFiles: 5, Files: []emulator.PublishedFile{{Table: "T", Name: "added.zip", Content: []byte(zipped(t))}}})
	kit.Must(t, s.Acknowledge(t.Context(), "e1", ""))
	before := fmt.Sprint(s.PublishedExtracts())
	kit.Must(t, s.Server.Close())
	again := kit.Value(emulator.New(emulator.Config{Dir: dir, Username: "u", Secret: "s", Vaults: []emulator.Vault{{ID: "V"}}}))(t)
	defer again.Close()
	after := fmt.Sprint(again.PublishedExtracts())
	kit.Check(t, after == before && strings.Contains(after, "added.zip"), "before %s\nafter  %s", before, after)
}

// A client that follows a redirect without the headers of its first call is refused, and the service says what it lacked.
func TestEmulator_I30_HeadersDropped(t *testing.T) {
	s := newService(t, emulator.ExtractReadings{Download: "redirect-auth"}, func(c *emulator.Config) {
		c.Extracts.Account = emulator.Account{}
		c.Extracts.FilesURL = "https://unlisted.example"
	})
	for lacks, has := range map[string]http.Header{"Authorization": {"Date": {published.Format(http.TimeFormat)}}, "Date": {"Authorization": {"Basic dTpz"}}} {
		r := kit.Value(http.NewRequestWithContext(t.Context(), "GET", filesURL+"/v1/dataExtractFiles/e1/0", http.NoBody))(t)
		r.Header = has
		resp := kit.Value(s.Transport().RoundTrip(r))(t)
		resp.Body.Close()
		if v := fmt.Sprint(s.Violations()); resp.StatusCode != http.StatusForbidden || !strings.Contains(v, "headers dropped: the redirect to files.example was followed without "+lacks) {
			t.Errorf("without %s: %s, %s", lacks, resp.Status, v)
		}
	}
}

// Credentials go to no host that nobody named: the redirect is not followed, and the error names the host.
func TestDownload_I20_RedirectToAnUnknownHost(t *testing.T) {
	s := newService(t, emulator.ExtractReadings{Download: "redirect-auth"}, func(c *emulator.Config) { c.Extracts.FilesURL = "https://unlisted.example" })
	files, err := s.Files(t.Context(), "e1")
	kit.Must(t, err)
	_, err = s.Download(t.Context(), files[0], io.Discard)
	if e := apicall.AsError(err); e == nil || e.Code != "policy" || !strings.Contains(e.Error(), "unlisted.example") || s.CountCalls("extract-fetch") != 0 {
		t.Errorf("%v, %d calls", err, s.CountCalls("extract-fetch"))
	}
}

// firstOf makes the first calls of an operation fail.
func firstOf(op string, calls int, f emulator.Fault) emulator.Faults {
	return emulator.Faults{Hook: func(of string, n int) emulator.Fault {
		if of == op && n <= calls {
			return f
		}
		return emulator.Fault{}
	}}
}

// Three downloads at once are more than the service takes.
func TestEmulator_I21_AtOnce(t *testing.T) { synctest.Test(t, threeAtOnce) }

func threeAtOnce(t *testing.T) {
	s := newService(t, emulator.ExtractReadings{}, nil)
	files := kit.Value(s.Files(t.Context(), "e1"))(t)
	kit.Must(t, s.SetFaults(firstOf("extract-fetch", 3, emulator.Fault{Delay: time.Second})))
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() { s.Download(t.Context(), files[0], io.Discard) })
	}
	all.Wait()
	kit.Holds(t, "the violations", fmt.Sprint(s.Violations()), "3 calls at once")
}
