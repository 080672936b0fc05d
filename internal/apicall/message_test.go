package apicall

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/sanitize"
	"vaultd/internal/test/kit"
)

func TestExplain(t *testing.T) {
	rows := []struct{ name, body, code, want string }{
		{"Message", `{"message":"Unauthorized"}`, "", "Unauthorized"},
		{"CapitalMessage", `{"Message":"User is not authorized to do this"}`, "", "User is not authorized to do this"},
		{"Detail", `{"detail":"vault unknown"}`, "", "vault unknown"},
		{"DetailList", `{"detail":[{"loc":["body",0,"amount"],"msg":"not a number","type":"t"},{"loc":["body"],"msg":"two"}]}`, "", "body.0.amount: not a number; body: two"},
		{"OAuthError", `{"error":"invalid_client"}`, "invalid_client", "invalid_client"},
		{"OAuthDescription", `{"error":"invalid_request","error_description":"grant missing"}`, "invalid_request", "grant missing; invalid_request"},
		{"ErrorMessages", `{"requestId":"1","hasError":true,"errorMessages":[{"type":"VALIDATION","code":"E1","message":"too long"}]}`, "", "too long"},
		{"ErrorsObject", `{"version":"1.0","errors":{"id":"1","type":"T","code":"C","message":"bad","info":"more","validationErrors":[{"fieldId":"amount","fieldMessage":"missing"}]}}`, "", "bad; more; amount: missing"},
		{"ErrorObject", `{"error":{"id":"1","type":"T","message":"no","code":"C7","info":""}}`, "", "no"},
		{"XML", `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message><StringToSign>` + signatureCanary + `</StringToSign></Error>`, "AccessDenied", "Request has expired"},
		{"Empty", "", "", "no explanation given"},
		{"Blank", " \r\n ", "", "no explanation given"},
		{"HTML", "<!DOCTYPE html><html><head><title>502 Bad\nGateway</title></head><body>x</body></html>", "", "an HTML page (a proxy's?): 502 Bad Gateway"},
		{"HTMLWithoutTitle", "<html><body>x</body></html>", "", "an HTML page (a proxy's?)"},
		{"Text", "upstream\tfailed\x1b[31m\r\n", "", "upstream failed [31m"},
		{"JSONString", `"nope"`, "", "nope"},
		{"BrokenJSON", `{"message":"cut o`, "", `{"message":"cut o`},
		{"Binary", "\x00\x01\x02", "", "an explanation that is not text"},
		{"Bidi", "pay \u202eevil\u202c", "", "pay evil"},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			e := explainAnswer("", []byte(r.body), nil)
			code, got := e.code, e.message
			kit.Check(t, got == r.want && (r.code == "" || code == r.code),
				"got %q %q, want %q %q", code, got, r.code, r.want)
		})
	}
}

func TestScrub_I7(t *testing.T) {
	for _, text := range []string{
		"PUT https://b.example/k.zip?X-Amz-Signature=" + signatureCanary + " failed",
		`got "Authorization: Bearer ` + signatureCanary + `"`,
		"Basic " + signatureCanary,
		`{"access_token":"` + signatureCanary + `"}`,
		"X-Amz-Security-Token=" + signatureCanary + "&x=1",
		"known " + signatureCanary,
		"known " + signatureCanary[:9] + "\u200b" + signatureCanary[9:],
	} {
		kit.Lacks(t, "the text", hideSecrets(text, []string{"known", signatureCanary}, 500), signatureCanary)
	}
	kit.Lacks(t, "the text", hideSecrets("The request signature we calculated does not match the signature you provided.", nil, 500), "hidden")
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	rows := []struct {
		name, value, date string
		want              time.Duration // with 429
	}{
		{"Seconds", "7", "", 7 * time.Second},
		{"Fraction", "1.5", "", 1500 * time.Millisecond},
		{"Zero", "0", "", 0},
		{"Negative", "-5", "", 0},
		{"NaN", "NaN", "", 0},
		{"Huge", "99999999999999", "", time.Hour},
		{"BeyondNumbers", "1e999", "", time.Hour},
		{"Infinite", "Inf", "", time.Hour},
		{"ADay", "86400", "", time.Hour},
		{"Spaces", " 7 ", "", 7 * time.Second},
		{"FarDate", "Fri, 20 Nov 9999 10:00:30 GMT", "", time.Hour},
		{"FarDateOnAClockWithoutBattery", "Fri, 20 Nov 2026 10:00:30 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", time.Hour},
		{"Date", "Fri, 20 Nov 2026 10:00:30 GMT", "", 30 * time.Second},
		{"DateOnTheirClock", "Fri, 20 Nov 2026 12:00:30 GMT", "Fri, 20 Nov 2026 12:00:00 GMT", 30 * time.Second},
		{"PastDate", "Fri, 20 Nov 2020 10:00:30 GMT", "", 0},
		{"Garbage", "soon", "", 0},
		{"None", "", "", 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			h := http.Header{"Retry-After": {r.value}}
			if r.date != "" {
				h.Set("Date", r.date)
			}
			for status, longest := range map[int]time.Duration{429: time.Hour, 503: 15 * time.Minute, 500: 0, 502: 0, 403: 0, 307: 0, 200: 0} {
				kit.Want(t, fmt.Sprintf("%d", status), retryAfter(status, h, now), min(r.want, longest))
			}
		})
	}
}

// The field that an answer is about, for who knows what it sent there.
func TestExplainAnswer_Field(t *testing.T) {
	for body, want := range map[string]string{
		`{"detail":[{"loc":["body","lines",0,"amount"],"msg":"no number"},{"loc":["body","x"],"msg":"y"}]}`: "lines.0.amount",
		`{"detail":[{"loc":["body"],"msg":"missing"},{"loc":["body","x"],"msg":"y"}]}`:                      "x",
		`{"errors":{"message":"bad","validationErrors":[{"fieldId":"amount","fieldMessage":"missing"}]}}`:   "amount",
		`{"detail":"x is missing"}`:                  "",
		`{"loc":"a\u001b[31m"}`:                      "a [31m",
		`<Error><Code>C</Code></Error>`:              "",
		`{"loc":"` + strings.Repeat("x", 500) + `"}`: strings.Repeat("x", 99) + "…",
	} {
		kit.Want(t, body+" is about", explainAnswer("", []byte(body), nil).field, want)
	}
}

// The number of an error and its class, for support and for clients that know the classes of their service.
func TestExplainAnswer_NumberAndClass(t *testing.T) {
	for body, want := range map[string]explanation{
		`{"error":{"id":"e-1","type":"VALIDATION","message":"m","code":"Error.004.0003","info":"i"}}`:      {id: "e-1", class: "VALIDATION", code: "Error.004.0003"},
		`{"version":"1.0","errors":{"id":"e-2","type":"TECHNICAL","code":"Error.001.0006","message":"m"}}`: {id: "e-2", class: "TECHNICAL", code: "Error.001.0006"},
		`{"requestId":"r","hasError":true,"errorMessages":[{"type":"BUSINESS","code":"c","message":"m"}]}`: {class: "BUSINESS", code: "c"},
		`{"detail":[{"loc":["x"],"msg":"m","type":"value_error"}]}`:                                        {},
		`{"id":"document-1","message":"m"}`:                                                                {},
		`<Error><Code>C</Code><Id>1</Id></Error>`:                                                          {code: "C"},
		``: {},
	} {
		got := explainAnswer("", []byte(body), nil)
		kit.Check(t, got.id == want.id && got.class == want.class && got.code == want.code, "%s says %+v", body, got)
	}
	e := &Error{Op: "send", Method: "POST", Host: "h", Path: "/p", Status: 400, Sent: true, RequestID: "r-1", ErrorID: "e-1", Message: "no"}
	kit.Want(t, "the error", e.Error(), "send: POST h/p: 400 Bad Request: no (request id r-1, error id e-1)")
}

func FuzzExplain(f *testing.F) {
	f.Add([]byte(`{"detail":[{"loc":["a"],"msg":"m"}]}`), "hide")
	f.Add([]byte(`<Error><Code>x</Code>`), "x")
	f.Add([]byte("\xff\x00<html"), "")
	f.Fuzz(func(t *testing.T, body []byte, hide string) {
		e := explainAnswer("", body, []string{hide})
		message := e.message
		for _, s := range []string{e.code, e.class, e.id, message, e.field} {
			kit.Check(t, utf8.ValidString(s) && utf8.RuneCountInString(s) <= maxWords && !strings.ContainsFunc(s, unicode.IsControl),
				"not fit for a log: %q", s)
		}
		if len(hide) >= 8 && !strings.Contains("[hidden] no explanation given an HTML page (a proxy's?) that is not text", hide) &&
			strings.Contains(message, hide) && sanitize.Message(hide, 500) == hide {
			t.Errorf("%q shows in %q", hide, message)
		}
	})
}

const busy = "HTTP/1.1 503 Slow Down\r\nRetry-After: 7\r\nContent-Length: 2\r\n\r\nno"

// I2: an upload that asks first, and is answered with an error before any byte of its content has left, has stored nothing for
// certain. No byte leaves after that, however the two sides are timed. Once a byte has left, nobody knows.
func TestPut_I2_KeptBackUntilItIsWelcome(t *testing.T) {
	const all = -1
	for name, r := range map[string]struct {
		acts   []any // texts are said; a number is how many bytes of the content are read
		want   Outcome
		status int
	}{
		"Busy":             {[]any{busy}, NotSent, 503},
		"BusyAndClosed":    {[]any{strings.Replace(busy, "Retry", "Connection: close\r\nRetry", 1)}, NotSent, 503},
		"TooMany":          {[]any{strings.Replace(busy, "503", "429", 1)}, NotSent, 429},
		"Faulty":           {[]any{strings.Replace(busy, "503", "500", 1)}, NotSent, 500},
		"Forbidden":        {[]any{strings.Replace(busy, "503", "403", 1)}, NotProcessed, 403},
		"NoAnswer":         {nil, NotSent, 0},
		"NotHTTP":          {[]any{"SSH-2.0-OpenSSH\r\n\r\n"}, NotSent, 0},
		"CutAnswer":        {[]any{"HTTP/1.1 503 Slow"}, NotSent, 0},
		"YesAtOnce":        {[]any{yes}, OutcomeUnknown, 200},
		"BusyAfterAll":     {[]any{goOn, all, busy}, OutcomeUnknown, 503},
		"BusyAfterAPart":   {[]any{goOn, 1, busy}, OutcomeUnknown, 503},
		"NoAnswerAfterAll": {[]any{goOn, all}, OutcomeUnknown, 0},
		"NeverAsked":       {[]any{all, busy}, OutcomeUnknown, 503},
	} {
		for _, overTLS := range []bool{false, true} {
			for _, size := range []int{2, 300_000, expectAbove + 300_000} {
				t.Run(fmt.Sprint(name, "/TLS=", overTLS, "/", size), func(t *testing.T) {
					t.Parallel()
					left := make(chan int64, 1)
					cfg := answering(t, overTLS, func(c net.Conn, body io.Reader) {
						n := int64(0)
						for _, act := range r.acts {
							switch act := act.(type) {
							case string:
								io.WriteString(c, act)
							case int:
								if act == all {
									act = size
								}
								read, _ := io.CopyN(io.Discard, body, int64(act))
								n += read
							}
						}
						if r.want != OutcomeUnknown && r.status != 0 { // a connection that stays open shows whether anything still comes
							_ = c.SetReadDeadline(time.Now().Add(300 * time.Millisecond))
							read, _ := io.Copy(io.Discard, body)
							n += read
						}
						left <- n
					})
					_, store := clients(t, cfg)
					content := strings.Repeat("z", size)
					_, err := store.put(context.Background(), upload{Op: "upload", URL: cfg.BaseURL + "/k", Size: int64(size), SHA256: sum(content),
						Open: bodyOf(content), AsksFirst: true, Stall: 20 * time.Second})
					if ce := failure(t, err); ce.Outcome != r.want || ce.Status != r.status && r.want != OutcomeUnknown || ce.Status == 503 && ce.RetryAfter != 7*time.Second {
						t.Errorf("%v, status %d: %v", ce.Outcome, ce.Status, ce)
					}
					if n := <-left; r.want != OutcomeUnknown && n > 0 {
						t.Errorf("%d bytes of the content left", n)
					}
				})
			}
		}
	}
}

// I2: once the first byte of an answer has come, nothing passes, and nothing left of the content. One of the kind 1xx opens the gate again.
func TestPut_I2_NothingPassesAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for is1xx, want := range map[bool]error{false: errKeptBack, true: nil} {
			g, trace := newGate(t.Context()), httptrace.ClientTrace{}
			g.watchAnswer(&trace)
			trace.GotFirstResponseByte()
			passed := make(chan error, 1)
			go func() { passed <- g.pass() }()
			if synctest.Wait(); len(passed) > 0 {
				t.Error("the content passes after the first byte of an answer")
			}
			if is1xx {
				kit.Want(t, "the error of Got1xxResponse", trace.Got1xxResponse(http.StatusContinue, nil), nil)
			} else if !g.keepBack() {
				t.Error("content may have left, although nothing passed")
			}
			if synctest.Wait(); is1xx != (len(passed) > 0) {
				t.Errorf("an answer of the kind 1xx: %v; passed: %v", is1xx, len(passed) > 0)
			}
			g.release()
			err := <-passed
			kit.Check(t, err == want, "it ends with %v", err)
		}
	})
}

// I2: a hop that got content leaves it open what it has, whatever the next one answers.
func TestPut_I2_ContentThatLeftOnAnEarlierHop(t *testing.T) {
	for reads, want := range map[bool]Outcome{false: NotSent, true: OutcomeUnknown} {
		end := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) })
		start := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if reads {
				io.Copy(io.Discard, r.Body)
			}
			w.Header().Set("Location", end.URL+"/there")
			w.WriteHeader(http.StatusTemporaryRedirect)
		})
		_, store := clients(t, Config{BaseURL: start.URL, AllowedHosts: []string{strings.TrimPrefix(end.URL, "http://")}})
		_, err := store.put(context.Background(), upload{Op: "upload", URL: start.URL + "/here", Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY"), AsksFirst: true})
		ce := failure(t, err)
		kit.Check(t, ce.Outcome == want && ce.Status == 503, "reads=%t: %v: %v", reads, ce.Outcome, ce)
	}
}

// A store that takes the content has it whole, whether it answers the question or ignores it, and the connection is used again.
func TestPut_AsksFirst(t *testing.T) {
	for _, size := range []int{1, 70_000, expectAbove + 1} {
		var asked string
		srv := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			asked = r.Header.Get("Expect")
			io.Copy(io.Discard, r.Body)
		})
		_, store := clients(t, Config{BaseURL: srv.URL})
		content := strings.Repeat("z", size)
		for range 20 {
			ans, err := store.put(context.Background(), upload{Op: "upload", URL: srv.URL + "/k", Size: int64(size), SHA256: sum(content), Open: bodyOf(content), AsksFirst: true})
			if err != nil || ans.Sent != sum(content) || asked != "100-continue" {
				t.Fatalf(`size = %v, asked = %v, err = %v, want no error, ans.Sent = %v, asked = "100-continue"`, size, asked, err, sum(content))
			}
		}
	}
	cfg := answering(t, false, func(c net.Conn, body io.Reader) {
		if n, _ := io.CopyN(io.Discard, body, 4); n == 4 {
			io.WriteString(c, yes)
		}
	})
	_, store := clients(t, cfg)
	if _, err := store.put(context.Background(), upload{Op: "upload", URL: cfg.BaseURL + "/k", Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY"), AsksFirst: true}); err != nil {
		t.Error("a store that ignores the question:", err)
	}
}

// Support finds a call by its id: vaultd's own at a service, with another one
// that the service answers with, and the store's own of an upload. An id from
// the other side is bounded and safe to show, and only the final answer counts.
func TestNoteRequests_I7_I12_IDsOfCallsThatSucceed(t *testing.T) {
	long := strings.Repeat("z", 4<<10)
	for name, row := range map[string]struct {
		header, value string
		want          string // behind the id of the call
	}{
		"Absent":     {"X-Other", "a", ""},
		"Other":      {"X-SVC-REQUEST-ID", "srv-1", ", answered as srv-1"},
		"Long":       {"X-SVC-REQUEST-ID", long, ", answered as " + strings.Repeat("z", 63) + "…"},
		"Characters": {"X-SVC-REQUEST-ID", "a\x1b[31m\u202eb\tc", ", answered as a [31mb c"},
		"Empty":      {"X-SVC-REQUEST-ID", " ", ""},
	} {
		net := &network{hosts: map[string]http.HandlerFunc{
			"https://archive.example": func(w http.ResponseWriter, r *http.Request) {
				w.Header()[http.CanonicalHeaderKey(row.header)] = []string{row.value}
				if r.URL.Path == "/first" {
					w.Header().Set("X-SVC-REQUEST-ID", "of the redirect")
					http.Redirect(w, r, "/final", http.StatusFound)
				}
			},
		}}
		api, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: net})
		ctx, note := NoteRequests(t.Context())
		kit.Value(api.Do(ctx, Request{Op: "ask", Method: http.MethodGet, Path: []string{"first"}}))(t)
		kit.Want(t, name, note.Last(), archive.RequestID(net.log[len(net.log)-1].id+row.want))
	}

	for header, want := range map[string]string{"X-Amz-Request-Id": "4442587FB7D0A2F9", "X-Ms-Request-Id": "m-1", "X-Guploader-Uploadid": "g-1", "X-Request-Id": long[:63] + "…", "X-Other": ""} {
		_, store := clients(t, Config{BaseURL: "https://archive.example", Transport: inProcess(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			w.Header().Set(header, strings.Replace(want, long[:63]+"…", long, 1))
		})})
		ctx, note := NoteRequests(t.Context())
		_, err := store.put(ctx, upload{Op: "upload", URL: "https://store.example/k?X-Amz-Signature=" + signatureCanary, Size: 4, SHA256: sum("BODY"), Open: bodyOf("BODY")})
		kit.Must(t, err)
		kit.Want(t, header, note.Last(), archive.RequestID(want))
	}

	refusing, _ := clients(t, Config{BaseURL: "https://archive.example", Transport: inProcess(answer(500, "no"))})
	ctx, note := NoteRequests(t.Context())
	if _, err := refusing.Do(ctx, Request{Op: "ask", Method: http.MethodPost, Path: []string{"x"}}); err == nil || note.Last() != "" {
		t.Errorf("a call that failed: %v, noted %q", err, note.Last())
	}
}
