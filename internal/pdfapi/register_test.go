package pdfapi

import (
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

const address = "https://bucket.example/in/46aa.pdf?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20261120T100000Z&X-Amz-Expires=3600&X-Amz-Signature=" + calls.Signature

// answer is a whole answer of 200 in the form that deployed services use.
var answer = fmt.Sprintf(`{"uploadUrl":%q,"bumId":"46AA4CAF-B373-11ED-BBFC-CFD535ABF178"}`, address)

func TestRegister_I10_SendsTheFrozenBytesOnce(t *testing.T) {
	kit.Rows(t, map[string]struct{ path, want string }{
		"Default":        {"", "/v2/pdf/invoiceUpload"},
		"Configured":     {"/v2/smartpdf/invoiceUpload", "/v2/smartpdf/invoiceUpload"},
		"WithoutSlashes": {"v2/pdf/x/", "/v2/pdf/x"},
	}, func(t *testing.T, row struct{ path, want string }) {
		var got []*http.Request
		var body []byte
		c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
			got = append(got, r)
			body, _ = io.ReadAll(r.Body)
			w.Header().Set("Date", "Fri, 20 Nov 2026 10:00:01 GMT")
			io.WriteString(w, answer)
		})
		c = New(Config{API: c.api, Store: c.store, Now: c.now, Path: row.path})
		ticket, err := register(t, c)
		kit.Need(t, err == nil && len(got) == 1, "%v after %d requests", err, len(got))
		r := got[0]
		if string(body) != string(frozen[0].Metadata) || r.ContentLength != int64(len(body)) || r.Method != http.MethodPost || r.RequestURI != row.want {
			t.Errorf("sent %s %s: %s", r.Method, r.RequestURI, body)
		}
		user, password, basic := r.BasicAuth()
		if !basic || user != "u" || password != calls.Secret || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("X-SVC-REQUEST-ID") == "" {
			t.Errorf("headers %v", r.Header)
		}
		want := archive.Ticket{Remote: "46aa4caf-b373-11ed-bbfc-cfd535abf178", URL: address, Sent: before, Date: before.Wall.Add(time.Second), SignedAt: before.Wall, Validity: time.Hour}
		kit.Check(t, string(ticket.URL) == address && fmt.Sprint(ticket) == fmt.Sprint(want),
			"got %+v, want %+v", ticket, want)
	})
}

// The token of this interface has its own scope, and goes with the POST alone.
func TestRegister_OAuth(t *testing.T) {
	var asked, bearer, put string
	srv := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/tokens":
			asked = r.FormValue("scope")
			io.WriteString(w, `{"access_token":"tok","token_type":"Bearer","expires_in":3600,"scope":"importDocuments.write"}`)
		case r.Method == http.MethodPut:
			put = strings.Join(r.Header.Values("Authorization"), ",")
			io.Copy(io.Discard, r.Body)
		default:
			bearer = r.Header.Get("Authorization")
			fmt.Fprintf(w, `{"uploadUrl":"https://%s/in/1.pdf?X-Amz-Signature=x"}`, r.Host)
		}
	})
	c := clientFor(t, srv, apicall.Config{Auth: apicall.Auth{Method: apicall.OAuth2, Username: "id", Secret: func() (string, error) { return calls.Secret, nil }, Scopes: []string{Scope}}})
	ticket := kit.Value(register(t, c))(t)
	_, _, err := c.Upload(t.Context(), ticket, sealed(t, []byte(pdfCanary)))
	kit.Need(t, err == nil, "error: %v", err)
	kit.Check(t, asked == "importDocuments.write" && bearer == "Bearer tok" && put == "",
		"scope %q, POST with %q, PUT with %q", asked, bearer, put)
}

func TestRegister_AnswerForms(t *testing.T) {
	const (
		url   = "https://b.example/in/k?X-Amz-Signature=1"
		local = "address-f0465550e767bb0537adf4a4a7416953"
	)
	kit.Rows(t, map[string]struct{ body, remote, headers string }{
		"Deployed":             {`{"uploadUrl":"` + url + `","bumId":"r1"}`, "r1", "[]"},
		"WithoutNumber":        {`{"uploadUrl":"` + url + `"}`, local, "[]"},
		"NullNumber":           {`{"uploadUrl":"` + url + `","bumId":null}`, local, "[]"},
		"NumberThatIsAnObject": {`{"uploadUrl":"` + url + `","bumId":{}}`, local, "[]"},
		"NumberThatIsAPath":    {`{"uploadUrl":"` + url + `","bumId":"../../x"}`, local, "[]"},
		"NumberAsNumber":       {`{"uploadUrl":"` + url + `","bumId":4711}`, "4711", "[]"},
		"SmallD":               {`{"uploadUrl":"` + url + `","bumid":"r1"}`, "r1", "[]"},
		"NameOfURL":            {`{"url":"` + url + `","bumId":"r1"}`, "r1", "[]"},
		"CapitalURL":           {`{"uploadURL":"` + url + `"}`, local, "[]"},
		"NullBeside":           {`{"uploadUrl":null,"url":"` + url + `"}`, local, "[]"},
		"SameTwice":            {`{"uploadUrl":"` + url + `","url":"` + url + `"}`, local, "[]"},
		"Object":               {`{"uploadUrl":{"url":"` + url + `"},"bumId":"r1"}`, "r1", "[]"},
		"ObjectUnderURL":       {`{"url":{"url":"` + url + `","new":[1]},"new":{}}`, local, "[]"},
		"HeadersInside":        {`{"uploadUrl":{"url":"` + url + `","headers":{"content-type":"application/pdf","x-amz-meta-n":7}}}`, local, "[{Content-Type application/pdf} {X-Amz-Meta-N 7}]"},
		"FieldsInside":         {`{"uploadUrl":{"url":"` + url + `","fields":{"cache-control":"no-store"}}}`, local, "[{Cache-Control no-store}]"},
		"HeadersBeside":        {`{"url":"` + url + `","headers":{"X-Amz-Server-Side-Encryption":"aws:kms"}}`, local, "[{X-Amz-Server-Side-Encryption aws:kms}]"},
		"NoHeaders":            {`{"url":"` + url + `","headers":null,"fields":[]}`, local, "[]"},
		"AddressAlone":         {`"` + url + `"`, local, "[]"},
		"InAnArray":            {`[{"uploadUrl":"` + url + `","bumId":"r1"}]`, "r1", "[]"},
		"EscapedAmpersand":     {`{"uploadUrl":"` + url + `\u0026x-id=PutObject"}`, "", "[]"},
		"ByteOrderMark":        {"\xef\xbb\xbf" + `{"uploadUrl":"` + url + `","bumId":"r1"}`, "r1", "[]"},
	}, func(t *testing.T, row struct{ body, remote, headers string }) {
		ticket := kit.Value(register(t, answering(t, 200, http.Header{}, row.body)))(t)
		if row.remote != "" && string(ticket.Remote) != row.remote || fmt.Sprint(ticket.Headers) != row.headers || ticket.Life() != untoldLife ||
			strings.TrimSuffix(string(ticket.URL), "&x-id=PutObject") != url {
			t.Errorf("gave %q %q %v, for %v", ticket.Remote, string(ticket.URL), ticket.Headers, ticket.Life())
		}
	})
}

// A 2xx that does not say where to upload is no refusal: there may be a slot that nobody has the address of.
func TestRegister_UnreadableIsUnknown(t *testing.T) {
	kit.Rows(t, map[string]string{
		"NoAddress":      `{"bumId":"r1"}`,
		"EmptyAddress":   `{"uploadUrl":"","bumId":"r1"}`,
		"NullAddress":    `{"uploadUrl":null}`,
		"AddressIsAList": `{"uploadUrl":["` + address + `"]}`,
		"TwoAddresses":   `{"uploadUrl":"` + address + `","url":"https://b.example/other?X-Amz-Signature=1"}`,
		"TwiceOneField":  `{"uploadUrl":"https://b.example/a","uploadUrl":"https://b.example/b"}`,
		"TwoNumbers":     `{"uploadUrl":"` + address + `","bumId":"r1","bumid":"r2"}`,
		"TwoGrants":      "[" + answer + "," + answer + "]",
		"EmptyArray":     `[]`,
		"EmptyObject":    `{}`,
		"Empty":          "",
		"Null":           "null",
		"Number":         "7",
		"Cut":            answer[:60],
		"TwoAnswers":     answer + answer,
		"WebPage":        "<!DOCTYPE html><title>Sign in</title>",
		"TooLarge":       `{"x":"` + strings.Repeat("x", registerAnswer) + `","uploadUrl":"` + address + `"}`,
	}, func(t *testing.T, body string) {
		ticket, err := register(t, answering(t, 200, http.Header{}, body))
		if e := calls.Failed(t, err); e.Outcome != apicall.OutcomeUnknown || e.Code != "unreadable" || e.Status != 200 || !e.Sent || ticket.URL != "" || !strings.Contains(e.Error(), e.RequestID) {
			t.Errorf(`%v %s %v, want e.Outcome = apicall.OutcomeUnknown, e.Code = "unreadable", e.Status = 200, e.Sent, ticket.URL = "", e with %q`, e.Outcome, e.Code, e, e.RequestID)
		}
	})
}

// An address that the policy forbids, or that would take headers which no answer may set, is never used.
func TestRegister_I20_AddressesThatAreNotUsed(t *testing.T) {
	kit.Rows(t, map[string]string{
		"PlainHTTP":      `{"uploadUrl":"http://bucket.example/k"}`,
		"WithAUser":      `{"uploadUrl":"https://a:` + calls.Signature + `@bucket.example/k"}`,
		"PrivateAddress": `{"uploadUrl":"https://10.0.0.1/k?X-Amz-Signature=` + calls.Signature + `"}`,
		"NotAURL":        `{"uploadUrl":"::"}`,
		"Authorization":  `{"uploadUrl":{"url":"https://bucket.example/k","headers":{"Authorization":"Basic x"}}}`,
		"PublicForAll":   `{"uploadUrl":"https://bucket.example/k","headers":{"x-amz-acl":"public-read"}}`,
		"Endless":        `{"uploadUrl":"https://bucket.example/` + strings.Repeat("k", 9000) + `"}`,
	}, func(t *testing.T, body string) {
		got, err := answering(t, 200, http.Header{}, body).Register(t.Context(), "", frozen)
		why := got.Barred[document]
		if err != nil || len(got.Tickets) != 0 || !strings.HasPrefix(why, "upload ") || !strings.Contains(why, "(request id ") || strings.Contains(why, calls.Signature) {
			t.Errorf(`%+v, %v, want no error, len(got.Tickets) = 0, why that begins with "upload ", why with "(request id ", why without %q`, got, err, calls.Signature)
		}
	})
}

// A ticket is used as long as its address says, at most an hour, and 15 minutes where it says nothing.
func TestRegister_I6_LifeOfATicket(t *testing.T) {
	type row struct {
		query, date string
		want        time.Duration
	}
	kit.Rows(t, map[string]row{
		"AnHour":              {"X-Amz-Date=20261120T100000Z&X-Amz-Expires=3600", "Fri, 20 Nov 2026 10:00:00 GMT", time.Hour - time.Second},
		"SignedBefore":        {"X-Amz-Date=20261120T095000Z&X-Amz-Expires=3600", "Fri, 20 Nov 2026 10:00:00 GMT", 50*time.Minute - time.Second},
		"Short":               {"X-Amz-Date=20261120T100000Z&X-Amz-Expires=60", "Fri, 20 Nov 2026 10:00:00 GMT", 59 * time.Second},
		"OverWhenItComes":     {"X-Amz-Date=20261120T080000Z&X-Amz-Expires=3600", "Fri, 20 Nov 2026 10:00:00 GMT", -time.Hour - time.Second},
		"AWeek":               {"X-Amz-Date=20261120T100000Z&X-Amz-Expires=604800", "Fri, 20 Nov 2026 10:00:00 GMT", time.Hour},
		"Absurd":              {"X-Amz-Date=20261120T100000Z&X-Amz-Expires=99999999999", "Fri, 20 Nov 2026 10:00:00 GMT", untoldLife},
		"ServiceTellsNoTime":  {"X-Amz-Date=20261120T100000Z&X-Amz-Expires=1800", "", 30 * time.Minute},
		"LifeWithoutADate":    {"X-Amz-Expires=1800", "Fri, 20 Nov 2026 10:00:00 GMT", 30 * time.Minute},
		"OlderSignature":      {"Signature=x&Expires=" + fmt.Sprint(before.Wall.Add(20*time.Minute).Unix()), "Fri, 20 Nov 2026 10:00:00 GMT", 20*time.Minute - time.Second},
		"OlderWithoutOurTime": {"Signature=x&Expires=1", "", untoldLife},
		"Untold":              {"X-Amz-Signature=1", "Fri, 20 Nov 2026 10:00:00 GMT", untoldLife},
		"SignedAtAlone":       {"X-Amz-Date=20261120T090000Z", "Fri, 20 Nov 2026 10:00:00 GMT", untoldLife},
	}, func(t *testing.T, row row) {
		h := http.Header{}
		if row.date != "" {
			h.Set("Date", row.date)
		}
		ticket, err := register(t, answering(t, 200, h, `{"uploadUrl":"https://b.example/k?`+row.query+`"}`))
		if err != nil || ticket.Life() != row.want {
			t.Errorf("used for %v (%v), want %v", ticket.Life(), err, row.want)
		}
	})
}

// An answer that takes its time takes it from the ticket's life; one that takes too long is no answer.
func TestRegister_I6_ATicketCountsFromBeforeItsPOST(t *testing.T) {
	for took, lost := range map[time.Duration]bool{50 * time.Second: false, 5 * time.Minute: true} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			posts := 0
			c := newClient(t, apicall.Config{Transport: calls.Transport(func(r *http.Request) (*http.Response, error) {
				posts++
				select {
				case <-time.After(took):
				case <-r.Context().Done():
					return nil, r.Context().Err()
				}
				return &http.Response{StatusCode: 200, Header: http.Header{}, Request: r, Body: io.NopCloser(strings.NewReader(answer))}, nil
			})})
			c.now = func() archive.Instant { return archive.Instant{Wall: time.Now(), Boot: time.Since(began), BootID: "b"} }
			ticket, err := register(t, c)
			switch {
			case posts != 1:
				t.Errorf("%d POSTs", posts)
			case lost:
				if e := calls.Failed(t, err); e.Outcome != apicall.OutcomeUnknown || e.Code != "timeout" || time.Since(began) != time.Minute {
					t.Errorf("%v %s after %v", e.Outcome, e.Code, time.Since(began))
				}
			case err != nil || ticket.Sent.Boot != 0 || !ticket.Sent.Wall.Equal(began):
				t.Errorf("the ticket counts from %+v (%v); its POST left at %v", ticket.Sent, err, began)
			}
		})
	}
}

// Without a number from the service, two registrations have one number if they lead to one object.
func TestRegister_I8_NumberFromTheAddress(t *testing.T) {
	remote := func(address string) archive.RemoteID {
		ticket := kit.Value(register(t, answering(t, 200, http.Header{}, `{"uploadUrl":"`+address+`"}`)))(t)
		if _, err := archive.ParseRemoteID(string(ticket.Remote)); err != nil || !strings.HasPrefix(string(ticket.Remote), "address-") {
			t.Errorf(`%q: %v, want no error, ticket.Remote that begins with "address-"`, ticket.Remote, err)
		}
		return ticket.Remote
	}
	one := remote("https://b.example/in/k.pdf?X-Amz-Date=20261120T100000Z&X-Amz-Expires=3600&X-Amz-Signature=1")
	kit.Want(t, "the number of an address signed again", remote("https://B.example:443/in/%6b.pdf?X-Amz-Expires=900&X-Amz-Date=20261120T110000Z&X-Amz-Signature=2"), one)
	for _, other := range []string{"https://b.example/in/l.pdf?X-Amz-Signature=1", "https://c.example/in/k.pdf?X-Amz-Signature=1", "https://b.example/in/k.pdf?key=2&X-Amz-Signature=1"} {
		kit.Check(t, remote(other) != one, "%s has the same number", other)
	}
}

// A person who reads a refusal knows which setting to correct.
func TestRegister_RefusalNamesTheField(t *testing.T) {
	type row struct {
		status             int
		body, field, words string
	}
	kit.Rows(t, map[string]row{
		"List":         {422, `{"detail":[{"loc":["body","receivingEmailAddress"],"msg":"value is not a valid email address","type":"value_error.email"}]}`, receivingField, `the service refuses receivingEmailAddress "ap@…": value is not a valid email address (422, request id `},
		"OtherField":   {422, `{"detail":[{"loc":["body","notificationEmailAddress"],"msg":"field required","type":"value_error.missing"}]}`, notificationField, `the service refuses notificationEmailAddress "clerk@…": field required (422, request id `},
		"FirstOfTwo":   {422, `{"detail":[{"loc":["body","notificationEmailAddress"],"msg":"a"},{"loc":["body","receivingEmailAddress"],"msg":"b"}]}`, notificationField, `"clerk@…": a; body.receivingEmailAddress: b (422`},
		"Text":         {400, `{"detail":"receivingEmailAddress is not known"}`, receivingField, `refuses receivingEmailAddress "ap@…": receivingEmailAddress is not known (400`},
		"Validation":   {400, `{"errors":{"message":"bad","validationErrors":[{"fieldId":"receivingEmailAddress","fieldMessage":"unknown"}]}}`, receivingField, `"ap@…": bad; receivingEmailAddress: unknown (400`},
		"TextWithBoth": {400, `{"detail":"receivingEmailAddress and notificationEmailAddress are of two companies"}`, "", "are of two companies"},
		"NoField":      {400, `{"detail":"no such flow"}`, "", "no such flow"},
		"AnotherField": {422, `{"detail":[{"loc":["query","x"],"msg":"y"}]}`, "query.x", "query.x: y"},
		"Nothing":      {422, "", "", "no explanation given"},
		"WebPage":      {400, "<html><title>Bad</title></html>", "", "an HTML page"},
		"Escapes":      {422, `{"detail":[{"loc":["body","receivingEmailAddress"],"msg":"\u001b[31mno\r\n"}]}`, receivingField, `"ap@…": [31mno (422`},
	}, func(t *testing.T, row row) {
		var id string
		c, _ := client(t, func(w http.ResponseWriter, r *http.Request) {
			id = r.Header.Get("X-SVC-REQUEST-ID")
			calls.Says(row.status, row.body)(w, r)
		})
		_, err := register(t, c)
		e := calls.Failed(t, err)
		if e.Outcome != apicall.Refused || e.Denied || e.Field != row.field || !strings.Contains(e.Error(), row.words) || !strings.Contains(e.Error(), id) || id == "" {
			t.Errorf("%v, field %q: %v", e.Outcome, e.Field, e)
		}
	})
}

func TestRegister_RefusalShowsTheAddressInShort(t *testing.T) {
	for body, want := range map[string]string{
		`{"receivingEmailAddress":"ap@in.example"}`:                      `"ap@…"`,
		`{"receivingEmailAddress":"a\"\u001b@b"}`:                        `"a\"\x1b@…"`,
		`{"receivingEmailAddress":"` + strings.Repeat("ä", 100) + `@b"}`: `"` + strings.Repeat("ä", 64) + `…@…"`,
		`{"receivingEmailAddress":"no address"}`:                         `"no address"`,
		`{"receivingEmailAddress":""}`:                                   `""`,
		`{}`:                                                             `""`,
		`{"receivingEmailAddress":"a@b","receivingEmailAddress":"c@d"}`:  `""`,
		`no JSON`: `""`,
	} {
		kit.Want(t, body+" gives", shortAddress([]byte(body), receivingField), want)
	}
}

// A 400 and a 422 refuse the addresses. Every other answer is about the account,
// the path or the service.
func TestRegister_Outcomes(t *testing.T) {
	for status, want := range map[int]apicall.Outcome{
		400: apicall.Refused, 422: apicall.Refused,
		401: apicall.NotProcessed, 403: apicall.NotProcessed, 404: apicall.NotProcessed, 405: apicall.NotProcessed, 409: apicall.NotProcessed, 413: apicall.NotProcessed,
		429: apicall.OutcomeUnknown, 500: apicall.OutcomeUnknown, 503: apicall.OutcomeUnknown,
	} {
		_, err := register(t, answering(t, status, http.Header{}, ""))
		kit.Want(t, fmt.Sprint("the outcome of ", status), calls.Failed(t, err).Outcome, want)
	}
}

func TestRegister_NotSent(t *testing.T) {
	c, _ := client(t, func(http.ResponseWriter, *http.Request) { t.Error("got a request, want none") })
	for _, bad := range [][]archive.RegisterRequest{nil, {{ID: document}}, append(frozen[:1:1], frozen...)} {
		_, err := c.Register(t.Context(), "", bad)
		e := calls.Failed(t, err)
		kit.Check(t, e.Outcome == apicall.NotSent && e.Code == "request", `%v %v, want e.Outcome = apicall.NotSent, e.Code = "request"`, e.Outcome, e)
	}
}
