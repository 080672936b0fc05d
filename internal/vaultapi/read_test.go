package vaultapi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

func TestStatus(t *testing.T) {
	updated := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	rows := []struct {
		name, body string
		word       archive.Word
		updated    time.Time
		ok         bool
	}{
		{"Waiting", `{"bumId":"r1","clientUUID":"` + idA.String() + `","lastUpdated":"2026-11-20T09:30:00Z","status":"WaitingForPackageUpload","message":null}`, archive.WaitingForPackage, updated, true},
		{"InProgress", `[{"bumId":"R1","status":"ArchivingInProgress","lastUpdated":"2026-11-20T10:30:00+01:00"}]`, archive.InProgress, updated, true},
		{"Successful", `{"status":"ArchivingSuccessful","lastUpdated":"2026-11-20T09:30:00"}`, archive.Successful, updated, true},
		{"Failed", `{"bumId":"r1","status":"ArchivingFailed","message":"no\u0000 package\n"}`, archive.Failed, time.Time{}, true},
		{"NeverHeard", `{"bumId":"r1","status":"Quantumised"}`, archive.Unfamiliar, time.Time{}, true},
		{"WordInOtherCase", `{"bumId":"r1","status":"ARCHIVINGSUCCESSFUL"}`, archive.Unfamiliar, time.Time{}, true},
		{"AnotherBumID", `{"bumId":"r2","status":"ArchivingSuccessful"}`, 0, time.Time{}, false},
		{"NoWord", `{"bumId":"r1"}`, 0, time.Time{}, false},
		{"Two", `[{"bumId":"r1","status":"ArchivingSuccessful"},{"bumId":"r1","status":"ArchivingFailed"}]`, 0, time.Time{}, false},
		{"HTML", `<html>`, 0, time.Time{}, false},
		{"Null", `null`, 0, time.Time{}, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var uri string
			c, _ := client(t, func(w http.ResponseWriter, req *http.Request) { uri = req.RequestURI; io.WriteString(w, r.body) })
			rc, err := c.Status(context.Background(), "V", "r1")
			if !r.ok {
				if e := failed(t, err); e.Outcome != Unanswered || e.Code != "unreadable" {
					t.Errorf("%+v", e)
				}
				return
			}
			if err != nil || rc.Word != r.word || !rc.Updated.Equal(r.updated) || rc.Remote != "r1" || rc.Raw == "" || len(rc.Record) == 0 || uri != "/v1/vaults/V/documents/r1/status" {
				t.Errorf("%v %+v %s", err, rc, uri)
			}
			if r.name == "Failed" && rc.Message != "no package" {
				t.Errorf("message %q", rc.Message)
			}
		})
	}
	c, _ := client(t, says(404, `{"message":"unknown"}`))
	_, err := c.Status(context.Background(), "V", "r1")
	if e := failed(t, err); !e.Missing || e.Outcome != TurnedAway {
		t.Errorf("%+v", e)
	}
}

func TestStatusList(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	c, _ := client(t, says(200, `[{"bumId":"a","clientUUID":"`+idA.String()+`","status":"ArchivingSuccessful"},7,null,{"bumId":"b"},
		{"bumId":"c","status":"ArchivingFailed","message":"`+long+`"},{"bumId":"two","status":"ArchivingSuccessful"},{"bumId":"two","status":"ArchivingFailed"},
		{"bumId":"a","clientUUID":"`+idA.String()+`","status":"ArchivingSuccessful"},{"bumId":"../x","status":"ArchivingSuccessful"}]`))
	list, err := c.StatusList(context.Background(), "V")
	if err != nil || len(list) != 2 || list[0].Remote != "a" || list[0].ID != idA || list[1].Remote != "c" {
		t.Fatalf("%v %+v", err, list)
	}
	if len(list[1].Record) != maxRecord || len(list[1].Message) != 500 {
		t.Errorf("record of %d bytes, message of %d", len(list[1].Record), len(list[1].Message))
	}
	c, _ = client(t, says(200, `[]`))
	if list, err := c.StatusList(context.Background(), "V"); err != nil || len(list) != 0 {
		t.Errorf("empty list: %v %v", list, err)
	}
	for _, body := range []string{`{"message":"all is well"}`, `["a","b"]`, ``} {
		c, _ = client(t, says(200, body))
		if _, err := c.StatusList(context.Background(), "V"); err == nil {
			t.Errorf("%q counts as an empty list", body)
		}
	}
}

// I2: whatever the service says of a registration bears the time of its clock, by which that is believed.
func TestStatus_I2_BearsTheServicesTime(t *testing.T) {
	date := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	for header, want := range map[string]time.Time{date.Format(http.TimeFormat): date, "yesterday": {}} {
		ask := func(body string) *Client {
			c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Date", header)
				io.WriteString(w, body)
			})
			return c
		}
		record := `{"bumId":"r1","status":"ArchivingFailed"}`
		rc, err := ask(record).Status(t.Context(), "V", "r1")
		if err != nil || !rc.Date.Equal(want) {
			t.Errorf("%s: alone %v, %v", header, rc.Date, err)
		}
		w, err := ask("["+record+"]").StatusWindow(t.Context(), "V")
		if err != nil || !w.Whole || !w.Date.Equal(want) || !w.Receipts[0].Date.Equal(want) {
			t.Errorf("%s: in the list %+v, %v", header, w, err)
		}
	}
}

func TestIndex_WalksToTheEnd(t *testing.T) {
	pages := map[string]string{
		"initial": `{"cursor":"p2","found":"3","start":2,"documents":[{"archiveId":"1","bumid":"a","archiveDate":"2026-11-20T09:30:00.5Z","documentId":4711,"amount":"9007199254740993.10","senderIds":["x",7],"additionalParameters":[{"key":"k","value":1}]},{"bumId":"b","amount":12.50,"senderIds":"solo"}]}`,
		"p2":      `{"cursor":"p3","found":3,"start":3,"documents":[{"bumid":"c","amount":null}]}`,
	}
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/vaults/V/index" || r.URL.Query().Get("size") != "1000" || r.URL.Query().Get("sort") != "archiveDate asc" {
			t.Errorf("asked for %s", r.RequestURI)
		}
		io.WriteString(w, pages[r.URL.Query().Get("cursor")])
	})
	var all []IndexRecord
	for cursor, last := FirstPage, false; !last; {
		p, err := c.Index(context.Background(), "V", cursor, 1000, "archiveDate asc")
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p.Records...)
		cursor, last = p.Cursor, p.Last
	}
	if len(all) != 3 || all[0].Remote != "a" || all[1].Remote != "b" || all[2].Remote != "c" {
		t.Fatalf("%+v", all)
	}
	d := all[0].Document
	if d.Amount != "9007199254740993.10" || d.Number != "4711" || fmt.Sprint(d.SenderIDs, d.Parameters) != "[x 7] [{k 1}]" || all[0].ArchivedAt.IsZero() {
		t.Errorf("%+v", all[0])
	}
	if all[1].Document.Amount != "12.50" || all[2].Document.Amount != "" || fmt.Sprint(all[1].Document.SenderIDs) != "[solo]" {
		t.Errorf("%+v %+v", all[1].Document, all[2].Document)
	}
}

func TestIndex_Ends(t *testing.T) {
	for name, body := range map[string]string{
		"EmptyPage":       `{"cursor":"next","found":9,"start":3,"documents":[]}`,
		"UnchangedCursor": `{"cursor":"now","documents":[{"bumid":"a"}]}`,
		"NoCursor":        `{"documents":[{"bumid":"a"}]}`,
		"StartIsFound":    `{"cursor":"next","found":1,"start":"1","documents":[{"bumid":"a"}]}`,
	} {
		c, _ := client(t, says(200, body))
		if p, err := c.Index(context.Background(), "V", "now", 100, "archiveDate asc"); err != nil || !p.Last {
			t.Errorf("%s: %v %+v", name, err, p)
		}
	}
	for _, body := range []string{`[]x`, `{"documents":[7]}`, `{"documents":`} {
		c, _ := client(t, says(200, body))
		if _, err := c.Index(context.Background(), "V", "now", 100, "archiveDate asc"); err == nil {
			t.Errorf("%q was taken", body)
		}
	}
}

func TestVaults_Forms(t *testing.T) {
	for body, want := range map[string]string{
		`[{"vaultId":"V1","name":"Acme"},{"vaultId":2}]`: "[{V1 Acme} {2 }]",
		`["V1","V2"]`: "[{V1 } {V2 }]",
		`{"vaults":[{"vaultId":"V1","name":"Acme\u202e"}]}`: "[{V1 Acme}]",
		`{"vaults":["V1",null,{}]}`:                         "[{V1 }]",
		`[]`:                                                "[]",
	} {
		c, _ := client(t, says(200, body))
		if got, err := c.Vaults(context.Background()); err != nil || fmt.Sprint(got) != want {
			t.Errorf("%s gave %v, %v", body, got, err)
		}
	}
}

func TestDownload_ThreeForms(t *testing.T) {
	content := append([]byte("PK\x03\x04"), bytes.Repeat([]byte("zip"), 100_000)...)
	for _, form := range []string{"bytes", "redirect", "json", "jsonObject", "jsonString"} {
		t.Run(form, func(t *testing.T) {
			c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
				link := "http://" + r.Host + "/k.zip?X-Amz-Signature=" + signatureCanary
				switch {
				case r.URL.Path == "/k.zip":
					if r.Header.Get("Authorization") != "" {
						t.Error("credentials at the object store")
					}
					w.Write(content)
				case form == "bytes":
					w.Write(content)
				case form == "redirect":
					http.Redirect(w, r, link, http.StatusFound)
				case form == "json":
					fmt.Fprintf(w, `{"url":%q}`, link)
				case form == "jsonObject":
					fmt.Fprintf(w, ` {"bumId":"r","archiveFileURL":{"url":%q}}`, link)
				default:
					fmt.Fprintf(w, "%q", link)
				}
			})
			var got bytes.Buffer
			n, sum, err := c.Download(context.Background(), "V", "r", &got)
			if err != nil || n != int64(len(content)) || sum != archive.Sum(content) || !bytes.Equal(got.Bytes(), content) {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}

type fullDisk struct{ err error }

func (f fullDisk) Write([]byte) (int, error) { return 0, f.err }

func TestDownload_Faults(t *testing.T) {
	rows := map[string]struct {
		h    http.HandlerFunc
		code string
	}{
		"NotYet":     {says(404, ""), "http-404"},
		"HTML":       {says(200, "<html>login</html>"), "unreadable"},
		"Empty":      {says(200, ""), "unreadable"},
		"ForeignURL": {says(200, `{"url":"https://10.0.0.1/k?X-Amz-Signature=`+signatureCanary+`"}`), "policy"},
		"LinkToHTML": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/k" {
				says(200, "<html>")(w, r)
				return
			}
			fmt.Fprintf(w, `{"url":"http://%s/k?X-Amz-Signature=%s"}`, r.Host, signatureCanary)
		}, "unreadable"},
		"CutInTheMiddle": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "PK\x03\x04 and no more")
		}, "unreadable"},
	}
	for name, r := range rows {
		t.Run(name, func(t *testing.T) {
			c, _ := client(t, r.h)
			_, _, err := c.Download(context.Background(), "V", "r", io.Discard)
			if e := failed(t, err); e.Code != r.code {
				t.Errorf("%s: %v", e.Code, e)
			}
		})
	}
	full := errors.New("no space left")
	c, _ := client(t, says(200, "PK\x03\x04 content"))
	_, _, err := c.Download(context.Background(), "V", "r", fullDisk{full})
	if e := failed(t, err); e.Code != "local" || !errors.Is(err, full) {
		t.Errorf("%s: %v", e.Code, e)
	}
	out := &digested{w: io.Discard, hash: nopHash{}}
	if _, err := out.take(io.MultiReader(strings.NewReader("PK\x03\x04"), endless{}), false); !errors.Is(err, apicall.ErrTooLarge) {
		t.Errorf("endless package: %v", err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type nopHash struct{}

func (nopHash) Write(p []byte) (int, error) { return len(p), nil }
func (nopHash) Sum([]byte) []byte           { return nil }
func (nopHash) Reset()                      {}
func (nopHash) Size() int                   { return 0 }
func (nopHash) BlockSize() int              { return 1 }
