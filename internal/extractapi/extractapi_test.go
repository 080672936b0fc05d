package extractapi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

// client returns a client whose requests h answers, for every host.
func client(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	api, _ := calls.New(t, apicall.Config{Transport: calls.Over(h)})
	return New(api)
}

const twoExtracts = `[{"id":"a1","type":"Initial","startDate":"01/01/2024, 00:00:00","endDate":"28/03/2024, 10:17:02","fileCount":3,"processingStatus":"WaitingForExport","extractDate":"28/03/2024, 11:00:00","extractName":"books"},
	{"id":4712,"type":"Delta","startDate":"2024-03-28T10:17:02Z","endDate":"2024-03-29T10:17:02Z","fileCount":"2","extractName":null,"new":{"field":[1]}}]`

func TestList_ReadsEachForm(t *testing.T) {
	initial := archive.Extract{ID: "a1", Type: archive.InitialExtract, Start: time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC), End: time.Date(2024, 3, 28, 10, 17, 2, 0, time.UTC),
		Made: time.Date(2024, 3, 28, 11, 0, 0, 0, time.UTC), Files: 3, Status: "WaitingForExport", Name: "books"}
	delta := archive.Extract{ID: "4712", Type: archive.DeltaExtract, Start: initial.End, End: initial.End.AddDate(0, 0, 1), Files: 2}
	rows := []struct {
		name, body string
		want       []archive.Extract
		whole      bool
	}{
		{"Bare", twoExtracts, []archive.Extract{initial, delta}, true},
		{"Wrapped", `{"dataExtracts":` + twoExtracts + `}`, []archive.Extract{initial, delta}, true},
		{"MarkOfOrder", "\xef\xbb\xbf" + twoExtracts, []archive.Extract{initial, delta}, true},
		{"NoExtracts", `[]`, nil, true},
		{"NothingButANumber", `[{"id":"x"}]`, []archive.Extract{{ID: "x", Files: -1}}, true},
		{"SameRecordTwice", `[{"id":"x"},{"id":"x"}]`, []archive.Extract{{ID: "x", Files: -1}}, true},
		{"OneNumberTwoExtracts", `[{"id":"x","type":"Delta"},{"id":"y"},{"id":"x"}]`, []archive.Extract{{ID: "y", Files: -1}}, false},
		{"OneUnreadable", `[{"id":"../x"},{"id":"y"}]`, []archive.Extract{{ID: "y", Files: -1}}, false},
		{"WithoutNumber", `[{"type":"Delta"},{"id":"y"}]`, []archive.Extract{{ID: "y", Files: -1}}, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got, err := client(t, calls.Says(200, r.body)).List(t.Context(), "")
			kit.Check(t, err == nil && fmt.Sprint(got.Extracts) == fmt.Sprint(r.want) && got.Whole == r.whole,
				"got %+v, %v", got, err)
		})
	}
}

// I32: what is no list is no empty list.
func TestList_I32_IsNeverEmptyByMistake(t *testing.T) {
	for _, body := range []string{"", "null", "<html>sign in</html>", `"x"`, `[{"id":"a/b"}]`, `[7]`, `{"message":"ok"}`, `[{"id":"x","id":"y"}]`} {
		got, err := client(t, calls.Says(200, body)).List(t.Context(), "")
		e := apicall.AsError(err)
		kit.Check(t, err != nil && e.Outcome == apicall.OutcomeUnknown && len(got.Extracts) == 0 && !got.Whole, "%q gives %+v, %v", body, got, err)
	}
}

// The parts of a list are asked for one after the other; a list that goes in a circle has no end.
func TestList_I32_InParts(t *testing.T) {
	parts := func(next func(string) string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			asked := r.Header.Get(continuation)
			if to := next(asked); to != "" {
				w.Header().Set(continuation, to)
			}
			fmt.Fprintf(w, `[{"id":"after-%s"}]`, asked)
		}
	}
	got, err := client(t, parts(func(at string) string { return map[string]string{"": "t1", "t1": "t2"}[at] })).List(t.Context(), "")
	kit.Check(t, err == nil && got.Whole && len(got.Extracts) == 3 && got.Extracts[2].ID == "after-t2",
		"got %+v, %v", got, err)
	got, err = client(t, parts(func(at string) string { return "t1" })).List(t.Context(), "")
	kit.Check(t, err != nil && !got.Whole, "got %+v of a list that does not end", got)
}

func TestFiles(t *testing.T) {
	got, err := client(t, calls.Says(200, `[{"extractId":"e1","tableName":"IA_INVOICE","fileName":"IA_INVOICE_1.zip","downloadUrl":"https://files.example/1?X-Amz-Signature=s","startDate":"28/03/2024, 10:17:02"},
		{"fileName":"b.json.gz","downloadUrl":{"url":"https://files.example/2"}}]`)).Files(t.Context(), "e1")
	if err != nil || len(got) != 2 || got[0].Table != "IA_INVOICE" || got[0].Extract != "e1" || got[1].Name != "b.json.gz" || string(got[1].URL) != "https://files.example/2" || got[0].Start.Hour() != 10 {
		t.Errorf("got %+v, %v", got, err)
	}
	for name, body := range map[string]string{
		"OfAnotherExtract": `[{"extractId":"e2","fileName":"a","downloadUrl":"https://files.example/1"}]`,
		"NoAddress":        `[{"fileName":"a"}]`,
		"NoName":           `[{"downloadUrl":"https://files.example/1"}]`,
		"OneOfTwo":         `[{"fileName":"a","downloadUrl":"https://files.example/1"},{}]`,
		"TwoAddresses":     `[{"fileName":"a","downloadUrl":"https://files.example/1","downloadURL":"https://files.example/2"}]`,
		"NoList":           `null`,
	} {
		if got, err := client(t, calls.Says(200, body)).Files(t.Context(), "e1"); err == nil || got != nil {
			t.Errorf("%s: got %+v", name, got)
		} else if strings.Contains(err.Error(), "files.example/") {
			t.Errorf("%s: the error holds an address: %v", name, err)
		}
	}
}

func zipped(t *testing.T) string {
	t.Helper()
	return "PK\x03\x04" + strings.Repeat("content ", 5000)
}

func gzipped(t *testing.T) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, "records")
	w.Close()
	return b.String()
}

// I30: what is no file of an extract is not written, and a download that fails is not begun again in silence.
func TestDownload_I30_WhatIsNoFile(t *testing.T) {
	for name, body := range map[string]string{"PageOfAProxy": "<html>sign in</html>", "Nothing": "", "JSON": `{"message":"later"}`, "Text": "number;amount\n"} {
		gets := 0
		var got bytes.Buffer
		n, err := client(t, func(w http.ResponseWriter, _ *http.Request) { gets++; io.WriteString(w, body) }).
			Download(t.Context(), archive.ExtractFile{Table: "IA_INVOICE", Name: "IA_INVOICE.zip", URL: "https://service.example/f"}, &got)
		kit.Check(t, errors.Is(err, ErrNotExtract) && n == 0 && got.Len() == 0 && gets == 1,
			"%s: %d bytes after %d downloads, %v", name, n, gets, err)
	}
	for name, row := range map[string]struct {
		body string
		kept bool
	}{"readme.txt": {"made by the export", true}, "_SUCCESS": {"", true}, "sums.json": {`{"files":2}`, true}, "notes.html": {"<html>notes</html>", true},
		"readme.md": {" <!DOCTYPE html><title>sign in", false}, "data.GZ": {"made by the export", false}} {
		var got bytes.Buffer
		_, err := client(t, calls.Says(200, row.body)).Download(t.Context(), archive.ExtractFile{Name: name, URL: "https://service.example/f"}, &got)
		kit.Check(t, (err == nil) == row.kept && (!row.kept || got.String() == row.body),
			"%s: %q, %v, want it taken as it came: %v", name, got.String(), err, row.kept)
	}
	if n, err := client(t, calls.Says(200, gzipped(t))).Download(t.Context(), archive.ExtractFile{URL: "https://service.example/f"}, io.Discard); err != nil || n == 0 {
		t.Errorf("gzip: %d bytes, %v", n, err)
	}
	synctest.Test(t, func(t *testing.T) {
		gets := 0
		_, err := client(t, func(w http.ResponseWriter, _ *http.Request) { gets++; w.WriteHeader(503) }).
			Download(t.Context(), archive.ExtractFile{URL: "https://service.example/f"}, io.Discard)
		kit.Check(t, apicall.AsError(err).Status == 503 && gets == 1, "%d downloads left for one intent: %v", gets, err)
	})
	full := errors.New("no space left on device")
	_, err := client(t, calls.Says(200, zipped(t))).Download(t.Context(), archive.ExtractFile{URL: "https://service.example/f"}, writeFunc(func([]byte) (int, error) { return 0, full }))
	e := apicall.AsError(err)
	kit.Check(t, e.Code == "local" && errors.Is(err, full), `%q: %v, want e.Code = "local", error %v`, e.Code, err, full)
}

type writeFunc func([]byte) (int, error)

func (f writeFunc) Write(p []byte) (int, error) { return f(p) }

func TestAcknowledge(t *testing.T) {
	rows := []struct {
		name   string
		answer func(path string) (int, string)
		fails  bool
		posts  int
	}{
		{"Done", func(string) (int, string) { return 200, `{"succeeded":true,"message":"ok"}` }, false, 1},
		{"NoContent", func(string) (int, string) { return 204, "" }, false, 1},
		{"DoneBefore", func(string) (int, string) { return 405, "" }, false, 1},
		{"SaysNo", func(string) (int, string) { return 200, `{"succeeded":false,"message":"locked"}` }, true, 1},
		{"PageOfAProxy", func(string) (int, string) { return 200, "<html>" }, true, 1},
		{"NoRight", func(string) (int, string) { return 403, "" }, true, 1},
		{"Unanswered", func(string) (int, string) { return 500, "" }, true, 1},
		{"NoSuchExtract", func(string) (int, string) { return 404, "" }, true, 2},
		{"OtherPath", func(path string) (int, string) {
			if strings.Contains(path, "dataExtracts/") {
				return 404, ""
			}
			return 200, ""
		}, false, 2},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			posts := 0
			var body string
			c := client(t, func(w http.ResponseWriter, req *http.Request) {
				b, _ := io.ReadAll(req.Body)
				body = string(b)
				posts++
				status, answer := r.answer(req.URL.Path)
				w.WriteHeader(status)
				io.WriteString(w, answer)
			})
			err := c.Acknowledge(t.Context(), "e1", "held by vaultd")
			kit.Check(t, (err != nil) == r.fails && posts == r.posts && body == `{"succeeded":true,"message":"held by vaultd"}`,
				"%v after %d calls with %s", err, posts, body)
			if r.name == "OtherPath" {
				if posts = 0; c.Acknowledge(t.Context(), "e2", "") != nil || posts != 1 {
					t.Errorf("%d calls once the path is known", posts)
				}
			}
		})
	}
}

func TestDefinition(t *testing.T) {
	const deployed = `[{"Table name":"IA_INVOICE","Columns":[{"Column name":"INVOICE_ID","Data Type":"NVARCHAR","Field definition":"the key","Example value":"1"},{"Column name":"GROSS_SUM"}]}]`
	d, err := client(t, calls.Says(200, deployed)).Definition(t.Context())
	table, ok := d.FindTable("IA_INVOICE")
	if err != nil || !ok || string(d.Raw) != deployed || len(table.Columns) != 2 || table.Columns[0] != (archive.Column{Name: "INVOICE_ID", Type: "NVARCHAR", Definition: "the key", Example: "1"}) {
		t.Errorf("got %+v, %v", d, err)
	}
	for name, body := range map[string]string{"Other": `{"IA_INVOICE":["INVOICE_ID"]}`, "OneTableUnreadable": `[{"Table name":"A","Columns":[]},{"Columns":[]}]`, "Text": `"see the manual"`} {
		if d, err := client(t, calls.Says(200, body)).Definition(t.Context()); err != nil || len(d.Tables) != 0 || string(d.Raw) != body {
			t.Errorf("%s: %+v, %v, want no error, len(d.Tables) = 0, string(d.Raw) = %v", name, d, err, body)
		}
	}
	kit.Fails(t, "a page is taken for a table definition",
		kit.Err(client(t, calls.Says(200, "<html>sign in</html>")).Definition(t.Context())))
}

// Whatever a list says, its extracts can stand in a path, each once, and no error holds what is secret.
func FuzzList(f *testing.F) {
	f.Add(twoExtracts)
	f.Add(`{"extracts":[{"id":"x","fileCount":-3,"endDate":"31/02/2024, 99:00:00"}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		got, err := client(t, calls.Says(200, body)).List(t.Context(), "")
		kit.Check(t, err == nil || !strings.Contains(err.Error(), calls.Secret) || strings.Contains(body, calls.Secret),
			"error: %v", err)
		seen := map[archive.ExtractID]bool{}
		for _, e := range got.Extracts {
			_, err := archive.ParseExtractID(string(e.ID))
			kit.Check(t, err == nil && !seen[e.ID] && e.Files >= -1, "%+v, want no error, not seen[e.ID], e.Files >= -1", e)
			seen[e.ID] = true
		}
	})
}

// Whatever the list of files says, each file has a name and an address, and belongs to the extract.
func FuzzFiles(f *testing.F) {
	f.Add(`[{"extractId":"e1","tableName":"T","fileName":"a","downloadUrl":"https://files.example/1"}]`)
	f.Add(`{"files":[{"fileName":"\u0000","downloadUrl":{"url":"x"}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		got, _ := client(t, calls.Says(200, body)).Files(t.Context(), "e1")
		for _, file := range got {
			if file.Name == "" || file.URL == "" || file.Extract != "e1" || strings.ContainsFunc(file.Name+file.Table, func(r rune) bool { return r < ' ' }) {
				t.Errorf("%+v", file)
			}
		}
	})
}

// Whatever the definition says, it is kept as it came, and no table of it is half read.
func FuzzDefinition(f *testing.F) {
	f.Add(`[{"Table name":"T","Columns":[{"Column name":"C"}]}]`)
	f.Add(`[[]]`)
	f.Fuzz(func(t *testing.T, body string) {
		d, err := client(t, calls.Says(200, body)).Definition(t.Context())
		if err != nil {
			return
		}
		kit.Want(t, fmt.Sprintf("kept %q", d.Raw), string(d.Raw), body)
		for _, table := range d.Tables {
			kit.Check(t, table.Name != "", `%+v, want table.Name other than ""`, d.Tables)
		}
	})
}
