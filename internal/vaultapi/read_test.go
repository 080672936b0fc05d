package vaultapi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

func TestStatus(t *testing.T) {
	updated := time.Date(2026, 11, 20, 9, 30, 0, 0, time.UTC)
	rows := []struct {
		name, body string
		word       archive.ServiceStatus
		updated    time.Time
		ok         bool
	}{
		{"Waiting", `{"bumId":"r1","clientUUID":"` + idA.String() + `","lastUpdated":"2026-11-20T09:30:00Z","status":"WaitingForPackageUpload","message":null}`, archive.WaitingForPackage, updated, true},
		{"InProgress", `[{"bumId":"r1","status":"ArchivingInProgress","lastUpdated":"2026-11-20T10:30:00+01:00"}]`, archive.InProgress, updated, true},
		{"Successful", `{"status":"ArchivingSuccessful","lastUpdated":"2026-11-20T09:30:00"}`, archive.Successful, updated, true},
		{"Failed", `{"bumId":"r1","status":"ArchivingFailed","message":"no\u0000 package\n"}`, archive.Failed, time.Time{}, true},
		{"NeverHeard", `{"bumId":"r1","status":"Quantumised"}`, archive.Unfamiliar, time.Time{}, true},
		{"WordInOtherCase", `{"bumId":"r1","status":"ARCHIVINGSUCCESSFUL"}`, archive.Unfamiliar, time.Time{}, true},
		{"OtherNumberInCapitals", `{"bumId":"R1","status":"ArchivingSuccessful"}`, 0, time.Time{}, false},
		{"AnotherBumID", `{"bumId":"r2","status":"ArchivingSuccessful"}`, 0, time.Time{}, false},
		{"NoWord", `{"bumId":"r1"}`, 0, time.Time{}, false},
		{"Two", `[{"bumId":"r1","status":"ArchivingSuccessful"},{"bumId":"r1","status":"ArchivingFailed"}]`, 0, time.Time{}, false},
		{"FieldInCapitals", `{"bumId":"r1","status":"ArchivingInProgress","STATUS":"ArchivingSuccessful","Status":"x","BUMID":"r2"}`, archive.InProgress, time.Time{}, true},
		{"OnlyInCapitals", `{"bumId":"r1","STATUS":"ArchivingSuccessful"}`, 0, time.Time{}, false},
		{"TwoWords", `{"bumId":"r1","status":"ArchivingFailed","status":"ArchivingSuccessful"}`, 0, time.Time{}, false},
		{"OneWordTwice", `{"bumId":"r1","status":"ArchivingSuccessful","status":"ArchivingSuccessful"}`, archive.Successful, time.Time{}, true},
		{"EscapedName", `{"bumId":"r1","st\u0061tus":"ArchivingSuccessful"}`, archive.Successful, time.Time{}, true},
		{"OtherFieldTwice", `{"bumId":"r1","status":"ArchivingSuccessful","note":1,"note":2}`, archive.Successful, time.Time{}, true},
		{"HTML", `<html>`, 0, time.Time{}, false},
		{"Null", `null`, 0, time.Time{}, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			var uri string
			c, _ := client(t, func(w http.ResponseWriter, req *http.Request) { uri = req.RequestURI; io.WriteString(w, r.body) })
			rc, err := c.Status(context.Background(), "V", "r1")
			if !r.ok {
				e := calls.Failed(t, err)
				kit.Check(t, e.Outcome == apicall.OutcomeUnknown && e.Code == "unreadable", `%+v, want e.Outcome = apicall.OutcomeUnknown, e.Code = "unreadable"`, e)
				return
			}
			if err != nil || rc.Status != r.word || !rc.Updated.Equal(r.updated) || rc.Remote != "r1" || rc.Raw == "" || len(rc.Record) == 0 || uri != "/v1/vaults/V/documents/r1/status" {
				t.Errorf(`%v %+v %s, want no error, rc.Status = %v, rc.Updated = %v, rc.Remote = "r1", rc.Raw other than "", len(rc.Record) other than 0, uri = "/v1/vaults/V/documents/r1/status"`, err, rc, uri, r.word, r.updated)
			}
			kit.Check(t, r.name != "Failed" || rc.Message == "no package", "message %q", rc.Message)
		})
	}
	c, _ := client(t, calls.Says(404, `{"message":"unknown"}`))
	_, err := c.Status(context.Background(), "V", "r1")
	e := calls.Failed(t, err)
	kit.Check(t, e.Status == 404 && e.Outcome == apicall.NotProcessed, "%+v, want e.Status = 404, e.Outcome = apicall.NotProcessed", e)
}

// numberA is a bumId as the specification wants it. Services may spell it in capitals.
const numberA = archive.RemoteID("46aa4caf-b373-11ed-bbfc-cfd535abf178")

// I2, I8: a UUID in capitals is the number that it is in small letters, in every answer, and it is asked for in small ones.
func TestAnswers_I2_I8_BumIDsInCapitals(t *testing.T) {
	ctx, loud := context.Background(), strings.ToUpper(string(numberA))
	record := `{"bumId":"` + loud + `","status":"ArchivingSuccessful"}`

	var uri string
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) { uri = r.RequestURI; io.WriteString(w, record) })
	if rc, err := c.Status(ctx, "V", numberA); err != nil || rc.Remote != numberA || uri != "/v1/vaults/V/documents/"+string(numberA)+"/status" {
		t.Errorf("status: %v %+v %s", err, rc, uri)
	}
	c, _ = client(t, calls.Says(200, `[`+record+`,{"bumId":"`+string(numberA)+`","status":"ArchivingSuccessful"}]`))
	list, err := c.StatusList(ctx, "V")
	kit.Check(t, err == nil && len(list) == 1 && list[0].Remote == numberA, "list: %v %+v", err, list)
	c, _ = client(t, calls.Says(200, `[`+record+`,{"bumId":"`+string(numberA)+`","status":"ArchivingFailed"},{"bumId":"other","status":"ArchivingFailed"}]`))
	if list, err := c.StatusList(ctx, "V"); err != nil || len(list) != 1 || list[0].Remote != "other" {
		t.Errorf("a list that says two things about one number: %v %+v", err, list)
	}
	c, _ = client(t, calls.Says(200, `{"documents":[{"archiveId":"a","bumid":"`+loud+`"}],"found":1}`))
	page, err := c.Index(ctx, "V", FirstPage, 10, "")
	kit.Check(t, err == nil && len(page.Records) == 1 && page.Records[0].Remote == numberA, "index: %v %+v", err, page)
	if reg := register(t, "["+strings.Replace(numbered(loud, idA), "one.zip", "two.zip", 1)+","+numbered(string(numberA), idB)+"]", idA, idB); len(reg.Crossed) != 2 {
		t.Errorf("one number for two documents: %+v", reg)
	}
	reg := register(t, "["+numbered(loud, idA)+"]", idA)
	kit.Check(t, reg.Tickets[idA].Remote == numberA, "registered: %+v", reg)
}

// numbered is a record with an upload address.
func numbered(remote string, id archive.ID) string {
	return fmt.Sprintf(`{"bumId":%q,"clientUUID":%q,"archiveFileURL":"https://bucket.example/one.zip?X-Amz-Signature=1"}`, remote, id)
}

func TestStatusList(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	c, _ := client(t, calls.Says(200, `[{"bumId":"a","clientUUID":"`+idA.String()+`","status":"ArchivingSuccessful"},7,null,{"bumId":"b"},
		{"bumId":"c","status":"ArchivingFailed","message":"`+long+`"},{"bumId":"two","status":"ArchivingSuccessful"},{"bumId":"two","status":"ArchivingFailed"},
		{"bumId":"a","clientUUID":"`+idA.String()+`","status":"ArchivingSuccessful"},{"bumId":"../x","status":"ArchivingSuccessful"}]`))
	list, err := c.StatusList(context.Background(), "V")
	kit.Need(t, err == nil && len(list) == 2 && list[0].Remote == "a" && list[0].ID == idA && list[1].Remote == "c",
		`%v %+v, want no error, len(list) = 2, list[0].Remote = "a", list[0].ID = %v, list[1].Remote = "c"`, err, list, idA)
	kit.Check(t, len(list[1].Record) == maxRecord && len(list[1].Message) == 500,
		"record of %d bytes, message of %d", len(list[1].Record), len(list[1].Message))
	c, _ = client(t, calls.Says(200, `[]`))
	kit.Len(t, "empty list", kit.Value(c.StatusList(context.Background(), "V"))(t), 0)
	for _, body := range []string{`{"message":"all is well"}`, `["a","b"]`, ``} {
		c, _ = client(t, calls.Says(200, body))
		kit.Fails(t, fmt.Sprintf("%q counts as an empty list", body), kit.Err(c.StatusList(context.Background(), "V")))
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
		kit.Check(t, err == nil && rc.Date.Equal(want), "%s: alone %v, %v", header, rc.Date, err)
		w, err := ask("["+record+"]").ReadStatusList(t.Context(), "V")
		kit.Check(t, err == nil && w.Whole && w.Date.Equal(want) && w.Receipts[0].Date.Equal(want),
			"%s: in the list %+v, %v", header, w, err)
	}
}

// A status list that tells of records which it does not hold proves nothing by what it leaves out.
func TestStatusList_I32_ThatTellsOfMore(t *testing.T) {
	const one = `{"bumId":"r1","status":"ArchivingSuccessful"}`
	for body, whole := range map[string]bool{
		`[` + one + `]`:                         true,
		`[]`:                                    true,
		`{"documents":[` + one + `]}`:           true,
		`{"documents":[` + one + `],"found":1}`: true,
		`{"documents":[` + one + `],"found":"2"}`:                false,
		`{"documents":[` + one + `],"cursor":"next"}`:            false,
		"\xef\xbb\xbf" + `{"documents":[` + one + `],"found":2}`: false,
		`[` + one + `,{"bumId":"r2"}]`:                           false,
		`{"documents":[` + one + `],"FOUND":2,"Cursor":"next"}`:  true, // fields of other names
		`{"documents":[` + one + `],"found":1,"found":2}`:        false,
	} {
		c, _ := client(t, calls.Says(200, body))
		w, err := c.ReadStatusList(t.Context(), "V")
		kit.Check(t, err == nil && w.Whole == whole, "%s: whole %v, %v", body, w.Whole, err)
	}
}

func TestIndex_WalksToTheEnd(t *testing.T) {
	pages := map[string]string{
		"initial": `{"cursor":"p2","found":"3","start":2,"documents":[{"archiveId":"1","bumid":"a","archiveDate":"2026-11-20T09:30:00.5Z","documentId":4711,"amount":"9007199254740993.10","senderIds":["x",7],"additionalParameters":[{"key":"k","value":1}]},{"bumId":"b","amount":12.50,"senderIds":"solo"}]}`,
		"p2":      `{"cursor":"p3","found":3,"start":3,"documents":[{"bumid":"c","amount":null}]}`,
	}
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		kit.Check(t, r.URL.Path == "/v1/vaults/V/index" && r.URL.Query().Get("size") == "1000" && r.URL.Query().Get("sort") == "archiveDate asc",
			"asked for %s", r.RequestURI)
		io.WriteString(w, pages[r.URL.Query().Get("cursor")])
	})
	var all []archive.IndexRecord
	walk := newIndexWalk()
	for cursor, more := walk.nextCursor(); more; cursor, more = walk.nextCursor() {
		p := kit.Value(c.Index(context.Background(), "V", cursor, 1000, "archiveDate asc"))(t)
		all = append(all, walk.addPage(p)...)
	}
	if r := walk.result; !r.Complete || r.Read != 3 || r.Found != 3 || r.Request == "" {
		t.Errorf(`%+v, want r.Complete, r.Read = 3, r.Found = 3, r.Request other than ""`, r)
	}
	kit.Need(t, len(all) == 3 && all[0].Remote == "a" && all[1].Remote == "b" && all[2].Remote == "c",
		`%+v, want len(all) = 3, all[0].Remote = "a", all[1].Remote = "b", all[2].Remote = "c"`, all)
	d := all[0].Document
	if d.Amount != "9007199254740993.10" || d.Number != "4711" || fmt.Sprint(d.SenderIDs, d.Parameters) != "[x 7] [{k 1}]" || all[0].ArchivedAt.IsZero() {
		t.Errorf(`%+v, want d.Amount = "9007199254740993.10", d.Number = "4711", fmt.Sprint(d.SenderIDs, d.Parameters) = "[x 7] [{k 1}]", not all[0].ArchivedAt.IsZero()`, all[0])
	}
	if all[1].Document.Amount != "12.50" || all[2].Document.Amount != "" || fmt.Sprint(all[1].Document.SenderIDs) != "[solo]" {
		t.Errorf(`%+v %+v, want all[1].Document.Amount = "12.50", all[2].Document.Amount = "", fmt.Sprint(all[1].Document.SenderIDs) = "[solo]"`, all[1].Document, all[2].Document)
	}
}

func TestIndex_I32_WhatAPageTells(t *testing.T) {
	for body, want := range map[string]string{
		`{"cursor":"next","found":9,"documents":[]}`:             `9 "next" 0`,
		`{"cursor":7,"found":"9","documents":[{"bumid":"a"}]}`:   `9 "7" 1`,
		`{"found":null,"documents":[{"bumid":"a"}]}`:             `-1 "" 1`,
		`{"cursor":null,"documents":[]}`:                         `-1 "" 0`,
		`{"found":-3,"documents":[{"bumid":"a"}]}`:               `-1 "" 1`,
		`{"found":"many","documents":[{"bumid":"a"}]}`:           `-1 "" 1`,
		`{"found":99999999999999999999,"documents":[{"x":"a"}]}`: `-1 "" 1`,
		`{"found":0,"documents":null}`:                           `0 "" 0`,
		`{"found":5,"start":0}`:                                  `5 "" 0`,
	} {
		c, _ := client(t, calls.Says(200, body))
		p, err := c.Index(context.Background(), "V", "now", 100, "archiveDate asc")
		got := fmt.Sprintf("%d %q %d", p.Found, p.Cursor, len(p.Records))
		kit.Check(t, err == nil && got == want && p.Request != "", "%s: %v: %s, want %s", body, err, got, want)
	}
	for _, body := range []string{`[]x`, `{"documents":[7]}`, `{"documents":`, `{}`, `{"documents":null}`, `{"message":"try later"}`} {
		c, _ := client(t, calls.Says(200, body))
		_, err := c.Index(context.Background(), "V", "now", 100, "archiveDate asc")
		kit.Check(t, err != nil, "%q was taken for a page", body)
	}
}

// Every call for a vault carries the credentials of that vault's account, and those of no other.
func TestClient_EachVaultWithItsAccount(t *testing.T) {
	var asked []string
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := r.BasicAuth()
		asked = append(asked, name)
		w.WriteHeader(http.StatusNotFound)
	})
	beta, err := c.api.WithAuth(apicall.Auth{Method: apicall.Basic, Username: "beta-user", Secret: func() (string, error) { return "S3cr3t-beta", nil }})
	kit.Must(t, err)
	c = New(Config{API: c.api, Store: c.store, Now: c.now, Accounts: map[archive.VaultID]*apicall.API{"BETA": beta}})
	for vault, want := range map[archive.VaultID]string{"BETA": "beta-user", "ACME": "u"} {
		for call, do := range map[string]func() error{
			"register": func() error {
				_, err := c.Register(t.Context(), vault, []archive.RegisterRequest{{ID: idA, Metadata: []byte("{}")}})
				return err
			},
			"status":   func() error { _, err := c.Status(t.Context(), vault, "r"); return err },
			"list":     func() error { _, err := c.ReadStatusList(t.Context(), vault); return err },
			"index":    func() error { _, err := c.Index(t.Context(), vault, FirstPage, 1, "archiveDate asc"); return err },
			"download": func() error { _, _, err := c.Download(t.Context(), vault, "r", io.Discard); return err },
			"vaults":   func() error { _, err := c.Vaults(t.Context(), vault); return err },
		} {
			asked = nil
			err := do()
			kit.Check(t, err != nil && slices.Equal(asked, []string{want}), "%s of %s: asked as %q, want %q; error %v", call, vault, asked, want, err)
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
		c, _ := client(t, calls.Says(200, body))
		kit.Want(t, body, fmt.Sprint(kit.Value(c.Vaults(context.Background(), "V"))(t)), want)
	}
}

func TestDownload_ThreeForms(t *testing.T) {
	content := append([]byte("PK\x03\x04"), bytes.Repeat([]byte("zip"), 100_000)...)
	for _, form := range []string{"bytes", "redirect", "json", "jsonObject", "jsonString"} {
		t.Run(form, func(t *testing.T) {
			c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
				link := "http://" + r.Host + "/k.zip?X-Amz-Signature=" + calls.Signature
				switch {
				case r.URL.Path == "/k.zip":
					kit.Want(t, "credentials at the object store", r.Header.Get("Authorization"), "")
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
			kit.Check(t, err == nil && n == int64(len(content)) && sum == archive.Sum(content) && bytes.Equal(got.Bytes(), content),
				"%d bytes, %v", n, err)
		})
	}
}

type fullDisk struct{ err error }

func (f fullDisk) Write([]byte) (int, error) { return 0, f.err }

func TestDownload_Faults(t *testing.T) {
	type row struct {
		h    http.HandlerFunc
		code string
	}
	kit.Rows(t, map[string]row{
		"NotYet":     {calls.Says(404, ""), "http-404"},
		"HTML":       {calls.Says(200, "<html>login</html>"), "unreadable"},
		"Empty":      {calls.Says(200, ""), "unreadable"},
		"ForeignURL": {calls.Says(200, `{"url":"https://10.0.0.1/k?X-Amz-Signature=`+calls.Signature+`"}`), "policy"},
		"LinkToHTML": {func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/k" {
				calls.Says(200, "<html>")(w, r)
				return
			}
			fmt.Fprintf(w, `{"url":"http://%s/k?X-Amz-Signature=%s"}`, r.Host, calls.Signature)
		}, "unreadable"},
		"CutInTheMiddle": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, "PK\x03\x04 and no more")
		}, "unreadable"},
	}, func(t *testing.T, r row) {
		c, _ := client(t, r.h)
		_, _, err := c.Download(context.Background(), "V", "r", io.Discard)
		e := calls.Failed(t, err)
		kit.Check(t, e.Code == r.code, "%s: %v, want e.Code = %v", e.Code, e, r.code)
	})
	full := errors.New("no space left")
	c, _ := client(t, calls.Says(200, "PK\x03\x04 content"))
	_, _, err := c.Download(context.Background(), "V", "r", fullDisk{full})
	e := calls.Failed(t, err)
	kit.Check(t, e.Code == "local" && errors.Is(err, full), `%s: %v, want e.Code = "local", error %v`, e.Code, e, full)
	out := &packageWriter{w: io.Discard, hash: nopHash{}}
	kit.Fails(t, "endless package",
		out.copyZIP(bufio.NewReader(io.MultiReader(strings.NewReader("PK\x03\x04"), endless{}))), apicall.ErrTooLarge)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type nopHash struct{}

func (nopHash) Write(p []byte) (int, error) { return len(p), nil }
func (nopHash) Sum([]byte) []byte           { return nil }
func (nopHash) Reset()                      {}
func (nopHash) Size() int                   { return 0 }
func (nopHash) BlockSize() int              { return 1 }

// What an answer may have follows from what was asked: a word about one document is small, and a list has room for all.
func TestAnswers_I21_BoundedByWhatIsAsked(t *testing.T) {
	ctx := context.Background()
	record := `{"bumId":"r1","status":"ArchivingInProgress"}`
	list := "[" + strings.Repeat(`{"bumId":"r1","status":"ArchivingInProgress","message":"`+strings.Repeat("x", 20_000)+`"},`, listed-1) + record + "]"
	type row struct {
		body string
		ask  func(c *Client) error
		fits bool
	}
	kit.Rows(t, map[string]row{
		"Record":     {strings.Repeat(" ", recordAnswer-len(record)) + record, func(c *Client) error { _, err := c.Status(ctx, "V", "r1"); return err }, true},
		"HugeRecord": {strings.Repeat(" ", recordAnswer) + record, func(c *Client) error { _, err := c.Status(ctx, "V", "r1"); return err }, false},
		"List":       {list, func(c *Client) error { _, err := c.ReadStatusList(ctx, "V"); return err }, true},
		"HugeList":   {strings.Repeat(" ", int(answerLimit(listed))) + list, func(c *Client) error { _, err := c.ReadStatusList(ctx, "V"); return err }, false},
		"Vaults":     {`["V"]`, func(c *Client) error { _, err := c.Vaults(ctx, "V"); return err }, true},
		"HugeVaults": {strings.Repeat(" ", vaultsAnswer) + `["V"]`, func(c *Client) error { _, err := c.Vaults(ctx, "V"); return err }, false},
		"Index":      {`{"documents":[],"cursor":"x"}`, func(c *Client) error { _, err := c.Index(ctx, "V", FirstPage, 1, "archiveDate asc"); return err }, true},
		"HugeIndex": {strings.Repeat(" ", int(answerLimit(1))) + `{"documents":[],"cursor":"x"}`, func(c *Client) error {
			_, err := c.Index(ctx, "V", FirstPage, 1, "archiveDate asc")
			return err
		}, false},
		"HugeGrants": {strings.Repeat(" ", int(answerLimit(1))) + "[]", func(c *Client) error {
			_, err := c.Register(ctx, "V", []archive.RegisterRequest{{ID: idA, Metadata: []byte("{}")}})
			return err
		}, false},
	}, func(t *testing.T, row row) {
		c, _ := client(t, calls.Says(200, row.body))
		err := row.ask(c)
		kit.Check(t, row.fits == (err == nil) && (row.fits || errors.Is(err, apicall.ErrTooLarge)), "error: %v", err)
	})
}

// Every answer gives its memory back: a thousand calls are more than there is room for at once.
func TestAnswers_I21_MemoryIsGivenBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	c := clientWith(t, apicall.Config{Transport: calls.Answering(200, http.Header{}, `{"bumId":"r1","status":"ArchivingInProgress","documents":[]}`)}) // tells no length
	for range 1000 {
		_, err := c.Status(ctx, "V", "r1")
		_, err2 := c.ReadStatusList(ctx, "V")
		_, err3 := c.Vaults(ctx, "V")
		_, err4 := c.Index(ctx, "V", FirstPage, 1000, "archiveDate asc")
		_, err5 := c.Register(ctx, "V", []archive.RegisterRequest{{ID: idA, Metadata: []byte("{}")}})
		kit.Must(t, errors.Join(err, err2, err3, err4, err5))
	}
}

// The names of fields match letter for letter in every answer, but for the two spellings of the index's number.
func TestAnswers_I8_NamesMatchExactly(t *testing.T) {
	ctx := context.Background()
	c, _ := client(t, calls.Says(200, `{"cursor":"next","Cursor":"x","found":2,"FOUND":1,"documents":[
		{"archiveId":"1","bumid":"r1","BUMID":"r9","amount":"1.00","Amount":"2.00"},{"archiveId":"2","bumId":"r2"},{"BumId":"r3"}],"Documents":[]}`))
	p, err := c.Index(ctx, "V", FirstPage, 100, "archiveDate asc")
	kit.Need(t, err == nil && len(p.Records) == 3 && p.Cursor == "next" && p.Found == 2,
		`%+v %v, want no error, len(p.Records) = 3, p.Cursor = "next", p.Found = 2`, p, err)
	if p.Records[0].Remote != "r1" || p.Records[0].Document.Amount != "1.00" || p.Records[1].Remote != "r2" || p.Records[2].Remote != "" {
		t.Errorf(`%+v, want p.Records[0].Remote = "r1", p.Records[0].Document.Amount = "1.00", p.Records[1].Remote = "r2", p.Records[2].Remote = ""`, p.Records)
	}
	for name, body := range map[string]string{
		"TwoSpellings": `{"cursor":"next","documents":[{"bumid":"r1","bumId":"r2"}]}`,
		"TwoLists":     `{"cursor":"next","documents":[{"bumid":"r1"}],"documents":[]}`,
	} {
		c, _ := client(t, calls.Says(200, body))
		kit.Fails(t, name, kit.Err(c.Index(ctx, "V", FirstPage, 100, "archiveDate asc")), apicall.ErrTwice)
	}
	c, _ = client(t, calls.Says(200, `[{"vaultId":"V1","VAULTID":"V9","name":"one","NAME":"nine"}]`))
	if vs, err := c.Vaults(ctx, "V"); err != nil || len(vs) != 1 || vs[0].ID != "V1" || vs[0].Name != "one" {
		t.Errorf(`%+v %v, want no error, len(vs) = 1, vs[0].ID = "V1", vs[0].Name = "one"`, vs, err)
	}
	const url = "https://b.example/k?X-Amz-Signature=1"
	good := `[{"bumId":"r1","clientUUID":"` + idA.String() + `","archiveFileURL":{"url":"` + url + `","URL":"https://evil.example/"},"BUMID":"r9","CLIENTUUID":"` + idB.String() + `","ArchiveFileUrl":"https://evil.example/"}]`
	ticket := register(t, good, idA).Tickets[idA]
	kit.Check(t, ticket.Remote == "r1" && string(ticket.URL) == url, `%+v, want ticket.Remote = "r1", string(ticket.URL) = %v`, ticket, url)
	c, _ = client(t, calls.Says(200, `[{"bumId":"r1","bumId":"r2","clientUUID":"`+idA.String()+`","archiveFileURL":"`+url+`"}]`))
	if r, err := c.Register(ctx, "V", []archive.RegisterRequest{{ID: idA, Metadata: []byte("{}")}}); !errors.Is(err, apicall.ErrTwice) || calls.Failed(t, err).Outcome != apicall.OutcomeUnknown {
		t.Errorf("%+v %v, want error apicall.ErrTwice, calls.Failed(t, err).Outcome = apicall.OutcomeUnknown", r, err)
	}
}
