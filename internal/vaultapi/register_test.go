package vaultapi

import (
	"context"
	"encoding/json"
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

const signed = "https://bucket.example/k/%s.zip?X-Amz-Algorithm=AWS4-HMAC-SHA256\\u0026X-Amz-Date=20260303T121201Z\\u0026X-Amz-Expires=900\\u0026x=a%%2Fb%%20c\\u0026X-Amz-Signature=" + calls.Signature

func record(remote string, id archive.ID) string {
	return fmt.Sprintf(`{"bumId":%q,"documentId":"INV-1","clientUUID":%q,"archiveFileURL":{"url":"`+signed+`"},"new":[1]}`, remote, id, remote)
}

// oldForm is a record whose address has the older signature, which is another for each number.
func oldForm(remote, key string, id archive.ID) string {
	return fmt.Sprintf(`{"bumId":%q,"clientUUID":%q,"archiveFileURL":"https://bucket.example/k/%s.zip?AWSAccessKeyId=A&Expires=1&Signature=%s"}`, remote, id, key, remote)
}

// inQuery is a record of a store that names the object in the query.
func inQuery(remote string, id archive.ID) string {
	return fmt.Sprintf(`{"bumId":%q,"clientUUID":%q,"archiveFileURL":"https://bucket.example/put?key=%s&X-Amz-Signature=%s"}`, remote, id, remote, remote)
}

func register(t *testing.T, answer string, ids ...archive.ID) archive.RegisterResult {
	t.Helper()
	c, _ := client(t, calls.Says(200, answer))
	reg := kit.Value(c.Register(context.Background(), "V", requests(ids...)))(t)
	tell := disjoint(t, reg)
	kit.Check(t, tell <= len(ids), "%d IDs were asked for, the result speaks of %d: %+v", len(ids), tell, reg)
	return reg
}

// disjoint demands that no ID stands in two of a result's maps, and returns how many IDs it speaks of.
func disjoint(t *testing.T, reg archive.RegisterResult) int {
	t.Helper()
	all := map[archive.ID]bool{}
	for id := range reg.Tickets {
		all[id] = true
	}
	for id := range reg.Barred {
		all[id] = true
	}
	for id := range reg.Crossed {
		all[id] = true
	}
	kit.Check(t, len(all) == len(reg.Tickets)+len(reg.Barred)+len(reg.Crossed), "an ID stands in two places: %+v", reg)
	return len(all)
}

func TestFreeze_I10_IdentityBeforeTheMetadata(t *testing.T) {
	id := kit.Value(archive.ParseID("46AA4CAF-b373-11ed-bbfc-cfd535abf178"))(t)
	metadata := archive.Document{Type: "Invoice", Amount: "9007199254740993.10"}.Metadata()
	body := freezeRequest(archive.RegisterRequest{ID: id, Metadata: metadata})
	want := `{"clientUUID":"46aa4caf-b373-11ed-bbfc-cfd535abf178",` + string(metadata[1:])
	kit.Check(t, string(body) == want && json.Valid(body), "frozen %s", body)
	b := freezeRequest(archive.RegisterRequest{ID: id, Metadata: []byte("{}")})
	kit.Check(t, json.Valid(b), "frozen without metadata: %s", b)
}

func TestRegister_I10_SendsFrozenBytesOnce(t *testing.T) {
	var got *http.Request
	var body []byte
	n := 0
	c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
		n++
		got = r
		body, _ = io.ReadAll(r.Body)
		w.Header().Set("Date", "Tue, 03 Mar 2026 12:12:00 GMT")
		io.WriteString(w, "["+record("r2", idB)+","+record("r1", idA)+"]")
	})
	reg := kit.Value(c.Register(context.Background(), "V 1/2", requests(idA, idB)))(t)
	frozen := requests(idA, idB)
	if want := "[" + string(freezeRequest(frozen[0])) + "," + string(freezeRequest(frozen[1])) + "]"; string(body) != want || got.ContentLength != int64(len(want)) {
		t.Errorf("sent %s\nwant %s", body, want)
	}
	kit.Check(t, n == 1 && got.RequestURI == "/v1/vaults/V%201%2F2/documents" && got.Header.Get("Content-Type") == "application/json",
		"%d requests, %s, %v", n, got.RequestURI, got.Header)
	ticket := reg.Tickets[idA]
	want := archive.Ticket{Remote: "r1", URL: ticket.URL, Sent: before, Date: time.Date(2026, 3, 3, 12, 12, 0, 0, time.UTC),
		SignedAt: time.Date(2026, 3, 3, 12, 12, 1, 0, time.UTC), Validity: 15 * time.Minute}
	kit.Check(t, fmt.Sprint(ticket) == fmt.Sprint(want) && reg.Tickets[idB].Remote == "r2", "tickets %+v", reg.Tickets)
	kit.Want(t, "URL", string(ticket.URL), "https://bucket.example/k/r1.zip?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20260303T121201Z&X-Amz-Expires=900&x=a%2Fb%20c&X-Amz-Signature="+calls.Signature)
}

func TestRegister_AnswerForms(t *testing.T) {
	const url = "https://b.example/k?X-Amz-Signature=1"
	long := strings.Repeat("v", 8000)
	rows := []struct {
		name, record, headers string
	}{
		{"ObjectWithURL", `{"bumId":"r","clientUUID":"%s","archiveFileURL":{"url":"` + url + `"}}`, "[]"},
		{"String", `{"bumId":"r","clientUUID":"%s","archiveFileURL":"` + url + `"}`, "[]"},
		{"NumberAsBumID", `{"bumId":4711,"clientUUID":"%s","archiveFileURL":"` + url + `"}`, "[]"},
		{"UpperCaseID", `{"bumId":"r","clientUUID":"` + strings.ToUpper(idA.String()) + `","archiveFileURL":"` + url + `","x":"%s"}`, "[]"},
		{"Headers", `{"bumId":"r","clientUUID":"%s","archiveFileURL":{"url":"` + url + `","headers":{"content-type":"application/zip","x-amz-server-side-encryption":"aws:kms"}}}`,
			"[{Content-Type application/zip} {X-Amz-Server-Side-Encryption aws:kms}]"},
		{"Fields", `{"bumId":"r","clientUUID":"%s","archiveFileURL":{"url":"` + url + `","fields":{"x-amz-meta-n":7}}}`, "[{X-Amz-Meta-N 7}]"},
		{"OfOtherStores", `{"bumId":"r","clientUUID":"%s","archiveFileURL":{"url":"` + url + `","headers":{"x-ms-blob-type":"BlockBlob","X-Goog-Acl":"private","If-None-Match":"*","x-tier":"` + long + `"}}}`,
			"[{If-None-Match *} {X-Goog-Acl private} {X-Ms-Blob-Type BlockBlob} {X-Tier " + long + "}]"},
		{"FieldsBeside", `{"bumId":"r","clientUUID":"%s","archiveFileURL":"` + url + `","fields":{"Cache-Control":"no-store"}}`, "[{Cache-Control no-store}]"},
		{"EmptyFields", `{"bumId":"r","clientUUID":"%s","archiveFileURL":{"url":"` + url + `","headers":null,"fields":[]}}`, "[]"},
		{"OursAreIgnored", `{"bumId":"r","clientUUID":"%s","archiveFileURL":{"url":"` + url + `","headers":{"Host":"B.example","content-md5":"x"}}}`, "[]"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			text := fmt.Sprintf(r.record, idA)
			for _, answer := range []string{"[" + text + "]", text, `{"documents":[` + text + `]}`} {
				ticket, ok := register(t, answer, idA).Tickets[idA]
				kit.Check(t, ok && string(ticket.URL) == url && fmt.Sprint(ticket.Headers) == r.headers,
					"%s gave %v %q %v", answer, ok, string(ticket.URL), ticket.Headers)
			}
		})
	}
}

func TestRegister_I8_CrossWiring(t *testing.T) {
	a, b := record("ra", idA), record("rb", idB)
	rows := []struct {
		name, answer              string
		tickets, missing, crossed []archive.ID
		foreign                   int
	}{
		{"Shuffled", b + "," + a, []archive.ID{idA, idB}, nil, nil, 0},
		{"OneMissing", b, []archive.ID{idB}, []archive.ID{idA}, nil, 0},
		{"NoURL", b + `,{"bumId":"ra","clientUUID":"` + idA.String() + `"}`, []archive.ID{idB}, []archive.ID{idA}, nil, 0},
		{"NullURL", b + `,{"bumId":"ra","clientUUID":"` + idA.String() + `","archiveFileURL":null}`, []archive.ID{idB}, []archive.ID{idA}, nil, 0},
		{"NoBumID", b + `,{"clientUUID":"` + idA.String() + `","archiveFileURL":"https://b.example/x"}`, []archive.ID{idB}, []archive.ID{idA}, nil, 0},
		{"ForeignID", a + "," + b + "," + record("rc", idC), []archive.ID{idA, idB}, nil, nil, 1},
		{"ForeignInsteadOfOurs", b + "," + record("rc", idC), []archive.ID{idB}, []archive.ID{idA}, nil, 1},
		{"SameIDTwice", a + "," + b + "," + record("rx", idA), []archive.ID{idB}, nil, []archive.ID{idA}, 0},
		{"SameRecordTwice", a + "," + b + "," + a, []archive.ID{idB}, nil, []archive.ID{idA}, 0},
		{"OneBumIDForTwo", record("ra", idA) + "," + strings.Replace(record("rz", idB), `"rz"`, `"ra"`, 1), nil, nil, []archive.ID{idA, idB}, 0},
		{"OneAddressForTwo", a + "," + strings.Replace(a, `"bumId":"ra","documentId":"INV-1","clientUUID":"`+idA.String(), `"bumId":"rb","documentId":"INV-1","clientUUID":"`+idB.String(), 1), nil, nil, []archive.ID{idA, idB}, 0},
		{"OneObjectForTwo", a + "," + strings.Replace(record("rb", idB), "https://bucket.example/k/rb.zip", "https://BUCKET.example.:443/k/%72a.zip", 1), nil, nil, []archive.ID{idA, idB}, 0},
		{"OneObjectSignedAnewInTheOldForm", oldForm("ra", "ra", idA) + "," + oldForm("rb", "ra", idB), nil, nil, []archive.ID{idA, idB}, 0},
		{"KeysInTheQuery", inQuery("ra", idA) + "," + inQuery("rb", idB), []archive.ID{idA, idB}, nil, nil, 0},
		{"OneKeyInTheQueryForTwo", inQuery("ra", idA) + "," + strings.Replace(inQuery("rb", idB), "key=rb", "key=ra", 1), nil, nil, []archive.ID{idA, idB}, 0},
		{"ForeignHasOurBumID", a + "," + b + "," + strings.Replace(record("rc", idC), `"rc"`, `"ra"`, 1), []archive.ID{idB}, nil, []archive.ID{idA}, 1},
		{"NamelessHasOurBumID", `{"bumId":"ra"},` + a + "," + b, []archive.ID{idB}, nil, []archive.ID{idA}, 1},
		{"Garbage", `null,7,"x",[],{},` + a + "," + b, []archive.ID{idA, idB}, nil, nil, 5},
		{"Empty", "", nil, []archive.ID{idA, idB}, nil, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			reg := register(t, "["+r.answer+"]", idA, idB)
			for _, id := range []archive.ID{idA, idB} {
				_, ticket := reg.Tickets[id]
				_, crossed := reg.Crossed[id]
				_, barred := reg.Barred[id]
				missing := !ticket && !crossed && !barred
				if ticket != slices.Contains(r.tickets, id) || crossed != slices.Contains(r.crossed, id) || missing != slices.Contains(r.missing, id) {
					t.Errorf("%s: ticket %v, crossed %v, missing %v", id, ticket, crossed, missing)
				}
			}
			kit.Want(t, "foreign", reg.Foreign, r.foreign)
		})
	}
}

func TestRegister_I20_BarredTickets(t *testing.T) {
	rows := map[string]string{
		"PlainHTTP":      `"http://bucket.example/k"`,
		"User":           `"https://a:b@bucket.example/k"`,
		"Private":        `"https://10.0.0.1/k"`,
		"NotAURL":        `"::"`,
		"Newline":        `"https://bucket.example/k\r\nX: y"`,
		"Authorization":  `{"url":"https://bucket.example/k","headers":{"Authorization":"Basic x"}}`,
		"TransferCoding": `{"url":"https://bucket.example/k","headers":{"Transfer-Encoding":"chunked"}}`,
		"Cookie":         `{"url":"https://bucket.example/k","headers":{"cookie":"x"}}`,
		"CopySource":     `{"url":"https://bucket.example/k","headers":{"X-Amz-Copy-Source":"/other/key"}}`,
		"PublicACL":      `{"url":"https://bucket.example/k","headers":{"x-amz-acl":"public-read"}}`,
		"Grant":          `{"url":"https://bucket.example/k","fields":{"x-amz-grant-read":"id=1"}}`,
		"HeaderBreak":    `{"url":"https://bucket.example/k","headers":{"x-amz-meta-a":"b\r\nc: d"}}`,
		"HeaderName":     `{"url":"https://bucket.example/k","headers":{"x-amz-meta-a: b":"c"}}`,
		"FormPolicy":     `{"url":"https://bucket.example/k","fields":{"policy":"x"}}`,
		"TwoValues":      `{"url":"https://bucket.example/k","headers":{"Content-Type":"a","content-type":"b"}}`,
		"NamedTwice":     `{"url":"https://bucket.example/k","headers":{"Content-Type":"a","Content-Type":"b"}}`,
		"NamedTwiceBack": `{"url":"https://bucket.example/k","fields":{"x-amz-meta-a":"a","x-amz-meta-\u0061":"b","x-amz-meta-a":"a"}}`,
		"ForbiddenOnce":  `{"url":"https://bucket.example/k","headers":{"x-amz-acl":"public-read","x-amz-acl":"private"}}`,
		"FieldsAsList":   `{"url":"https://bucket.example/k","fields":["x"]}`,
		"Endless":        `"https://bucket.example/` + strings.Repeat("k", 8192) + `"`,
	}
	for _, name := range []string{"Connection", "Keep-Alive", "TE", "Trailer", "Upgrade", "Proxy-Connection", "Proxy-Authorization", "Host", "Content-Length",
		"Content-Encoding", "x-ms-blob-content-encoding", "Content-Range", "Expect", "Forwarded", "X-Forwarded-Host", "x_forwarded_for", "X-Real-IP", "Set-Cookie",
		"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL", "x-ms-copy-source", "X-Goog-Copy-Source", "X-Copy-From", "Destination",
		"x-obs-grant-read", "x-cos-website-redirect-location", "X-Object-Manifest", "x-oss-symlink-target", "x-ms-blob-public-access", "na me", "ü", ""} {
		rows["Header "+name] = `{"url":"https://bucket.example/k","headers":{"` + name + `":"x"}}`
	}
	for name, value := range map[string]string{"x-goog-acl": "publicRead", "x-oss-object-acl": "public-read-write", "X-Obs-Acl": "everyone", "acl": "allUsers", "x_amz_acl": "authenticated-read"} {
		rows[name] = `{"url":"https://bucket.example/k","fields":{"` + name + `":"` + value + `"}}`
	}
	for n, value := range map[int]string{33: "v", 2: strings.Repeat("v", 4096)} {
		var fields []string
		for i := range n {
			fields = append(fields, fmt.Sprintf(`"x-n-%d":%q`, i, value))
		}
		rows[fmt.Sprint(n, " headers")] = `{"url":"https://bucket.example/k","headers":{` + strings.Join(fields, ",") + `}}`
	}
	for name, address := range rows {
		t.Run(name, func(t *testing.T) {
			reg := register(t, `[{"bumId":"r","clientUUID":"`+idA.String()+`","archiveFileURL":`+address+`},`+record("rb", idB)+`]`, idA, idB)
			kit.Check(t, reg.Barred[idA] != "" && len(reg.Tickets) == 1,
				`%+v, want reg.Barred[idA] other than "", len(reg.Tickets) = 1`, reg)
		})
	}
	reg := register(t, `[{"bumId":"r","clientUUID":"`+idA.String()+`","archiveFileURL":"https://bucket.example/k","headers":{"Content-Type":"a","Content-Type":"a"}}]`, idA)
	got := reg.Tickets[idA].Headers
	kit.Check(t, len(reg.Barred) == 0 && len(got) == 1 && got[0].Value == "a", "twice the same: %+v", reg)
	reg = register(t, `[{"bumId":"../../x","clientUUID":"`+idA.String()+`","archiveFileURL":"https://b.example/k"}]`, idA)
	kit.Holds(t, "the text", reg.Barred[idA], "bumId")
}

func TestRegister_Outcomes(t *testing.T) {
	rows := []struct {
		name     string
		status   int
		body     string
		want     apicall.Outcome
		code     string
		overload bool
		denied   bool
	}{
		{"Schema", 400, `{"detail":[{"loc":["body",0,"amount"],"msg":"no number"}]}`, apicall.Refused, "field-not-accepted", false, false},
		{"NumberOfOurs", 400, `{"detail":[{"loc":["body",0,"clientUUID"],"msg":"no UUID"}]}`, apicall.Refused, "not-accepted", false, false},
		{"Conflict", 409, "", apicall.Refused, "not-accepted", false, false},
		{"TooLarge", 413, "", apicall.Refused, "metadata-too-large", false, false},
		{"Unprocessable", 422, "", apicall.Refused, "not-accepted", false, false},
		{"Unauthorized", 401, "", apicall.NotProcessed, "http-401", false, true},
		{"Forbidden", 403, "", apicall.NotProcessed, "http-403", false, true},
		{"NoSuchVault", 404, "", apicall.NotProcessed, "http-404", false, false},
		{"TooMany", 429, "", apicall.OutcomeUnknown, "http-429", true, false},
		{"Unavailable", 503, "<html>", apicall.OutcomeUnknown, "http-503", true, false},
		{"BadGateway", 502, "", apicall.OutcomeUnknown, "http-502", false, false},
		{"Garbled", 200, "<html>welcome to the proxy</html>", apicall.OutcomeUnknown, "unreadable", false, false},
		{"Nothing", 200, "", apicall.OutcomeUnknown, "unreadable", false, false},
		{"Cut", 200, "[" + record("r", idA)[:40], apicall.OutcomeUnknown, "unreadable", false, false},
		{"TwoAnswers", 200, "[][]", apicall.OutcomeUnknown, "unreadable", false, false},
		{"Null", 200, "null", apicall.OutcomeUnknown, "unreadable", false, false},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			n := 0
			c, _ := client(t, func(w http.ResponseWriter, req *http.Request) {
				n++
				w.Header().Set("Retry-After", "7")
				calls.Says(r.status, r.body)(w, req)
			})
			_, err := c.Register(context.Background(), "V", requests(idA))
			e := calls.Failed(t, err)
			kit.Check(t, (e.Plain != nil) == (r.want == apicall.Refused),
				"words for whoever dropped it = %+v, want some only where the document is refused", e.Plain)
			kit.Check(t, e.Outcome == r.want && e.Code == r.code && e.Overloaded() == r.overload && e.Denied == r.denied && n == 1,
				"after %d requests: %v %s %+v", n, e.Outcome, e.Code, e)
			kit.Check(t, (e.RetryAfter == 7*time.Second) == (r.status == 429 || r.status == 503),
				"%+v, want (e.RetryAfter == 7*time.Second) = %v", e, (r.status == 429 || r.status == 503))
		})
	}
}

// Whoever reads it must think of the proxy, not of the archive.
func TestUnreadable_WebPageIsNamed(t *testing.T) {
	for name, page := range map[string]string{"HTML": "<html>please sign in</html>", "Declared": "\ufeff \n<!DOCTYPE HTML><title>x</title>"} {
		c, _ := client(t, calls.Says(200, page))
		_, register := c.Register(context.Background(), "V", requests(idA))
		_, one := c.Status(context.Background(), "V", "r")
		_, list := c.StatusList(context.Background(), "V")
		_, index := c.Index(context.Background(), "V", FirstPage, 10, "archiveDate asc")
		for _, err := range []error{register, one, list, index} {
			if e := calls.Failed(t, err); e.Outcome != apicall.OutcomeUnknown || e.Code != "unreadable" || !strings.Contains(e.Error(), "web page") || strings.Contains(e.Error(), "sign in<") {
				t.Errorf(`%s: %v, want e.Outcome = apicall.OutcomeUnknown, e.Code = "unreadable", e with "web page", e without "sign in<"`, name, e)
			}
		}
	}
}

func TestRegister_NotSent(t *testing.T) {
	c, _ := client(t, calls.Says(500, ""))
	for _, bad := range [][]archive.RegisterRequest{nil, requests(idA, idA)} {
		_, err := c.Register(context.Background(), "V", bad)
		e := calls.Failed(t, err)
		kit.Check(t, e.Outcome == apicall.NotSent, "%v, want e.Outcome = apicall.NotSent", e)
	}
}

func FuzzRegisterAnswer(f *testing.F) {
	f.Add("[" + record("ra", idA) + "," + record("rb", idB) + "]")
	f.Add(`{"documents":[{"clientUUID":1,"bumId":{},"archiveFileURL":[]}]}`)
	f.Add(`[{"bumId":"r","clientUUID":"` + idA.String() + `","archiveFileURL":{"url":"https://b.example/k","headers":{"":""}}}]`)
	f.Fuzz(func(t *testing.T, answer string) {
		list, err := apicall.ReadRecords([]byte(answer), "documents")
		if err != nil {
			return
		}
		c := clientWith(t, apicall.Config{})
		m := matching{asked: map[archive.ID]bool{idA: true, idB: true}, store: c.store}
		reg := m.matchRecords(list)
		n := disjoint(t, reg)
		kit.Check(t, n <= 2, "the result speaks of %d IDs: %+v", n, reg)
		a, b := reg.Tickets[idA], reg.Tickets[idB]
		kit.Check(t, a.Remote == "" || a.Remote != b.Remote && a.URL != b.URL, "two documents share %q", a.Remote)
		for _, ticket := range reg.Tickets {
			kit.Check(t, c.store.CheckURL(string(ticket.URL)) == nil, "a ticket against policy: %q", string(ticket.URL))
		}
	})
}

// A ticket carries how long it is used: as long as its address says, and never longer than the window.
func TestRegister_I6_ATicketIsUsedNoLongerThanTheWindow(t *testing.T) {
	type row struct {
		window time.Duration
		query  string
		want   time.Duration
	}
	kit.Rows(t, map[string]row{
		"Told":             {0, "X-Amz-Date=20261120T100000Z&X-Amz-Expires=300", 299 * time.Second},
		"ToldLonger":       {0, "X-Amz-Date=20261120T100000Z&X-Amz-Expires=3600", 15 * time.Minute},
		"ShorterWindow":    {time.Minute, "X-Amz-Date=20261120T100000Z&X-Amz-Expires=900", time.Minute},
		"Untold":           {0, "", 15 * time.Minute},
		"UntoldAndShorter": {time.Minute, "", time.Minute},
	}, func(t *testing.T, row row) {
		c, _ := client(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", "Fri, 20 Nov 2026 10:00:00 GMT")
			fmt.Fprintf(w, `[{"bumId":"r1","clientUUID":%q,"archiveFileURL":%q}]`, idA, "https://b.example/k?"+row.query+"&X-Amz-Signature=1")
		})
		c = New(Config{API: c.api, Store: c.store, Now: c.now, Window: row.window})
		kit.Want(t, "the life of the ticket", kit.Value(c.Register(t.Context(), "V", requests(idA)))(t).Tickets[idA].Life(), row.want)
	})
}
