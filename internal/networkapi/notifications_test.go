package networkapi

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/test/calls"
	"vaultd/internal/test/kit"
)

func record(ack string) string {
	return `{"bumid":"10D90000-0000-5000-8000-00000000000A","documentType":"CreditNode","acknowledgementId":"` + ack + `","responseCode":"TechnicalAccept","actionCode":"Delivered","notificationCreated":"1764000000"}`
}

// pages serves the given pages; the page behind the last one is the last one again.
func pages(all ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		io.WriteString(w, all[min(page, len(all))-1])
	}
}

func onePage(more bool, records ...string) string {
	return fmt.Sprintf(`{"hasMoreItems":%t,"notifications":[%s]}`, more, strings.Join(records, ","))
}

func TestNotifications_ReadsEachField(t *testing.T) {
	const full = `{"bumid":"10D90000-0000-5000-8000-00000000000A","documentType":"CreditNode","acknowledgementId":"a-1","responseCode":"TechnicalReject","responseType":"BCN:responsecode-v1","actionCode":"InvalidContent",
		"additionalActionProperties":[{"name":"ValidationFileReference","value":"ref-1"},{"value":"x"},7],"notificationCreated":1764000000123,"description":"bad\nIBAN","links":[{"href":"https://files.example/1?X-Amz-Signature=51gnature0canary0deadbeef"},{"rel":"validationFile","href":"https://files.example/2","method":"DELETE"}],"new":{"x":[1]}}`
	got, err := client(t, pages(onePage(false, full))).Notifications(t.Context(), Query{})
	kit.Need(t, err == nil && got.Whole && len(got.Notifications) == 1, "got %+v, %v", got, err)
	n := got.Notifications[0]
	if n.AcknowledgementID != "a-1" || n.Document != bumID || n.Kind != archive.NetworkCreditNote || n.DocumentType != "CreditNode" || n.Response != "TechnicalReject" || n.Action != "InvalidContent" ||
		n.Property("ValidationFileReference") != "ref-1" || !n.Created.Equal(time.UnixMilli(1764000000123)) || n.Description != "bad\nIBAN" || string(n.Raw) != full ||
		len(n.Links) != 2 || n.Links[0].Relation != "notification" || n.Links[0].Method != "GET" || n.Links[1].Method != "DELETE" {
		t.Errorf("got %+v", n)
	}
}

// I12: what a notification does not tell is not put in its place: without an action nothing is delivered.
func TestNotifications_I12_NothingIsPutInThePlaceOfWhatIsNotTold(t *testing.T) {
	for body, want := range map[string]string{
		`{"bumid":"x","acknowledgementId":"a"}`: "Invoice||",
		`{"bumid":"x","acknowledgementId":"a","documentType":"Order","responseCode":"New","actionCode":"Word"}`:                "|New|Word",
		`{"bumid":"x","acknowledgementId":"a","documentType":"CreditNote","responseCode":null,"actionCode":{"a":"Delivered"}}`: "CreditNote||",
	} {
		got, err := client(t, pages(onePage(false, body))).Notifications(t.Context(), Query{})
		kit.Need(t, err == nil && len(got.Notifications) == 1 && got.Whole,
			"%s: %+v, %v, want no error, len(got.Notifications) = 1, got.Whole", body, got, err)
		if n := got.Notifications[0]; fmt.Sprintf("%s|%s|%s", n.Kind, n.Response, n.Action) != want || string(n.Raw) != body {
			t.Errorf(`%s: %+v, want fmt.Sprintf("%%s|%%s|%%s", n.Kind, n.Response, n.Action) = %v, string(n.Raw) = %v`, body, n, want, body)
		}
	}
}

func TestNotifications_Query(t *testing.T) {
	for _, r := range []struct {
		q    Query
		size int
		want string
	}{
		{Query{}, 0, "page=1&pageSize=500"},
		{Query{Kind: archive.NetworkInvoice}, 7000, "documentType=Invoice&page=1&pageSize=5000"},
		{Query{Kind: archive.NetworkCreditNote, Received: true}, -1, "documentType=CreditNode&page=1&pageSize=1&type=DocumentsReceived"},
	} {
		c := New(Config{PageSize: r.size, API: api(t, apicall.Config{Transport: calls.Over(func(w http.ResponseWriter, q *http.Request) {
			kit.Check(t, q.URL.Path == "/v1.1/notifications" && q.URL.RawQuery == r.want, "got %s", q.URL)
			io.WriteString(w, onePage(false))
		})})})
		got, err := c.Notifications(t.Context(), r.q)
		kit.Check(t, err == nil && got.Whole && len(got.Notifications) == 0, "%+v, %v, want no error, got.Whole, len(got.Notifications) = 0", got, err)
	}
}

// I32: a list is whole only where its last page came and each record was read.
func TestNotifications_I32_Whole(t *testing.T) {
	for _, r := range []struct {
		name       string
		pages      []string
		want       int
		whole      bool
		unreadable int
	}{
		{"OnePage", []string{onePage(false, record("a"), record("b"))}, 2, true, 0},
		{"ThreePages", []string{onePage(true, record("a")), onePage(true, record("b")), onePage(false, record("c"))}, 3, true, 0},
		{"LastPageIsEmpty", []string{onePage(true, record("a")), onePage(false)}, 1, true, 0},
		{"WordsForBooleans", []string{`{"hasMoreItems":"true","notifications":[` + record("a") + `]}`, `{"hasMoreItems":"false","notifications":null}`}, 1, true, 0},
		{"PagesShiftedBack", []string{onePage(true, record("a"), record("b")), onePage(true, record("b"), record("c")), onePage(false, record("c"))}, 3, true, 0},
		{"OnePageRepeatsTheOther", []string{onePage(true, record("a")), onePage(true, record("a")), onePage(false, record("b"))}, 2, true, 0},
		{"RepeatsForEver", []string{onePage(true, record("a"))}, 1, false, 0},
		{"EmptyForEver", []string{onePage(true)}, 0, false, 0},
		{"DoesNotSayWhetherItEnds", []string{`{"notifications":[` + record("a") + `]}`}, 1, false, 0},
		{"SaysNullForItsEnd", []string{`{"hasMoreItems":null,"notifications":[]}`}, 0, false, 0},
		{"Bare", []string{`[` + record("a") + `]`}, 1, false, 0},
		{"OneWithoutNumber", []string{onePage(false, record("a"), `{"bumid":"x"}`)}, 1, false, 1},
		{"OneWithoutDocument", []string{onePage(false, record("a"), `{"acknowledgementId":"x"}`)}, 1, false, 1},
		{"OneIsAText", []string{onePage(false, record("a"), `"x"`, `"x"`)}, 1, false, 1},
		{"OneNumberTwoEvents", []string{onePage(false, record("a"), strings.Replace(record("a"), "Delivered", "Undelivered", 1), record("a"), record("b"))}, 1, false, 2},
		{"OneNumberInAnotherOrder", []string{onePage(false, record("a"), strings.Replace(record("a"), `"responseCode":"TechnicalAccept","actionCode":"Delivered"`, `"actionCode":"Delivered","responseCode":"TechnicalAccept"`, 1))}, 1, true, 0},
	} {
		t.Run(r.name, func(t *testing.T) {
			got, err := client(t, pages(r.pages...)).Notifications(t.Context(), Query{})
			kit.Check(t, err == nil && len(got.Notifications) == r.want && got.Whole == r.whole && got.Unreadable == r.unreadable,
				"got %+v, %v", got, err)
		})
	}
}

// I32: what is no list is no empty list, and a list that broke off keeps what it had.
func TestNotifications_I32_BreaksOff(t *testing.T) {
	for _, second := range []string{"", "null", "<html>sign in</html>", `{"message":"ok"}`, `{"hasMoreItems":false}`, `{"hasMoreItems":false,"notifications":{}}`, `{"hasMoreItems":false,"notifications":"x"}`,
		`{"hasMoreItems":false,"hasMoreItems":true,"notifications":[]}`, `{"hasMoreItems":false,"notifications":[`} {
		got, err := client(t, pages(onePage(true, record("a")), second)).Notifications(t.Context(), Query{})
		e := calls.Failed(t, err)
		kit.Check(t, e.Outcome == apicall.OutcomeUnknown && len(got.Notifications) == 1 && !got.Whole, "%q gives %+v, %v", second, got, err)
	}
}

// I21, I32: a service whose pages never end fills no memory, on virtual time: GETs are repeated with pauses.
func TestNotifications_I21_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, asked := 0, 0
		c := client(t, func(w http.ResponseWriter, _ *http.Request) {
			if asked++; asked%3 == 0 {
				w.WriteHeader(503) // passes
				return
			}
			var all []string
			for range 1000 {
				n++
				all = append(all, strings.Replace(record(strconv.Itoa(n)), "{", `{"new":"`+strings.Repeat("x", 1000)+`",`, 1))
			}
			io.WriteString(w, onePage(true, all...))
		})
		got, err := c.Notifications(t.Context(), Query{})
		held := 0
		for _, one := range got.Notifications {
			held += len(one.Raw)
		}
		kit.Check(t, err == nil && !got.Whole && got.HasMore && held >= maxCollected && held <= maxCollected+2<<20,
			"%d notifications, %d bytes, whole %v, %v", len(got.Notifications), held, got.Whole, err)
	})
}

// I12, I21: a backlog that is kept already takes no memory, and hides nothing that is behind it.
func TestNotifications_I12_BehindABacklog(t *testing.T) {
	const backlog, size = 20, 1 << 20
	sifted := 0
	got, err := client(t, func(w http.ResponseWriter, r *http.Request) {
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		if page > backlog {
			io.WriteString(w, onePage(false, record("new"), record("1")))
			return
		}
		io.WriteString(w, onePage(true, strings.Replace(record(strconv.Itoa(page)), "{", `{"new":"`+strings.Repeat("x", size)+`",`, 1)))
	}).Notifications(t.Context(), Query{Sift: func(page []archive.Notification) (held []archive.Notification, err error) {
		for _, n := range page {
			if sifted++; n.AcknowledgementID == "new" {
				held = append(held, n)
			}
		}
		return held, nil
	}})
	kit.Check(t, err == nil && got.Whole && len(got.Notifications) == 1 && got.Notifications[0].AcknowledgementID == "new" && sifted >= backlog,
		"%d are held of %d, %+v, %v", len(got.Notifications), sifted, got, err)
}

// I30: whether one notification waits is asked for with one GET of one item, and never acknowledges it.
func TestHasNotifications_I30(t *testing.T) {
	for name, r := range map[string]struct {
		status      int
		body        string
		waits, fail bool
	}{
		"None": {200, onePage(false), false, false}, "One": {200, onePage(false, record("a")), true, false}, "Many": {200, onePage(true, record("a")), true, false},
		"MoreThanAskedFor": {200, onePage(false, record("a"), record("b")), true, false}, "OneThatCannotBeRead": {200, onePage(false, `{}`), true, false}, "NoneButMore": {200, onePage(true), true, false},
		"DoesNotSayWhetherItEnds": {200, `{"notifications":[]}`, false, true}, "Bare": {200, `[]`, false, true}, "Page": {200, "<html></html>", false, true}, "Empty": {200, "", false, true},
		"Denied": {403, "", false, true}, "NotEnabled": {400, wrapped("error", "BUSINESS", "Error.001.0012"), false, true}, "AnotherCode": {400, wrapped("error", "BUSINESS", "Error.001.0001"), false, true},
	} {
		asked := 0
		waits, err := client(t, func(w http.ResponseWriter, q *http.Request) {
			if asked++; q.Method != http.MethodGet || q.URL.Path != "/v1.1/notifications" || q.URL.RawQuery != "page=1&pageSize=1" {
				t.Errorf(`%s: %s %s, want q.Method = http.MethodGet, q.URL.Path = "/v1.1/notifications", q.URL.RawQuery = "page=1&pageSize=1"`, name, q.Method, q.URL)
			}
			calls.Says(r.status, r.body)(w, q)
		}).HasNotifications(t.Context())
		kit.Check(t, waits == r.waits && (err != nil) == r.fail && asked == 1 && IsNotEnabled(err) == (name == "NotEnabled"),
			"%s: %v, %v, %d calls", name, waits, err, asked)
		if err != nil {
			calls.Failed(t, err)
		}
	}
}

func TestReadEpoch(t *testing.T) {
	want := time.Date(2025, 11, 24, 16, 0, 0, 0, time.UTC)
	for text, at := range map[string]time.Time{
		"1764000000": want, "1764000000000": want, "1764000000000000": want, "1764000000000000000": want, " 1764000000 ": want, "1.764E9": want, "1764000000.5": want.Add(500 * time.Millisecond),
		"1764000000123": want.Add(123 * time.Millisecond), "2025-11-24T16:00:00Z": want, "1000000000": time.Unix(1000000000, 0).UTC(),
		"": {}, "0": {}, "-1": {}, "soon": {}, "1e999": {}, "e": {}, "99999999999999999999999": {}, strings.Repeat("1", 1000): {},
	} {
		got := readEpoch(text)
		kit.Check(t, got.Equal(at), "%q is %v, want %v", text, got, at)
	}
}

// I30: one DELETE acknowledges one notification; one that is not there is acknowledged.
func TestAcknowledge_I30(t *testing.T) {
	for _, r := range []struct {
		status int
		body   string
		want   bool
	}{
		{200, "", true}, {204, "", true}, {200, "{}", true}, {404, "", true}, {404, wrapped("error", "VALIDATION", "Error.003.0001"), true},
		{200, "<html>sign in</html>", false}, {404, "<html>not found</html>", false}, {401, "", false}, {403, "", false}, {500, "", false}, {503, "", false},
	} {
		asked := 0
		err := client(t, func(w http.ResponseWriter, q *http.Request) {
			asked++
			kit.Check(t, q.Method == http.MethodDelete && q.URL.Path == "/v1.1/notifications/a-1",
				`%s %s, want q.Method = http.MethodDelete, q.URL.Path = "/v1.1/notifications/a-1"`, q.Method, q.URL)
			calls.Says(r.status, r.body)(w, q)
		}).Acknowledge(t.Context(), "a-1")
		kit.Check(t, (err == nil) == r.want && asked == 1, "%d %s: %v, %d calls", r.status, r.body, err, asked)
	}
	e := calls.Failed(t, client(t, calls.Says(200, "")).Acknowledge(t.Context(), "../x"))
	kit.Check(t, e.Outcome == apicall.NotSent, "%v, want e.Outcome = apicall.NotSent", e)
}

func TestPostNotification(t *testing.T) {
	n := archive.Notification{Document: bumID, Kind: archive.NetworkCreditNote, Response: "BusinessReject", Action: "DocumentRejected", Created: time.Unix(1764000000, 5), Description: "wrong <price>",
		AcknowledgementID: "never sent", Links: []archive.Link{{Address: "https://x.example"}}, Raw: []byte("never")}
	const want = `{"bumid":"10d90000-0000-5000-8000-00000000000a","documentType":"CreditNode","responseCode":"BusinessReject","actionCode":"DocumentRejected","notificationCreated":"1764000000","description":"wrong \u003cprice\u003e"}`
	asked := 0
	err := client(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		got, _ := io.ReadAll(r.Body)
		if string(got) != want || r.Method != http.MethodPost || r.URL.Path != "/v1.1/notifications" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf(`%s %s %s, want string(got) = %v, r.Method = http.MethodPost, r.URL.Path = "/v1.1/notifications", r.Header.Get("Content-Type") = "application/json"`, r.Method, r.URL, got, want)
		}
		w.WriteHeader(http.StatusCreated)
	}).PostNotification(t.Context(), n)
	kit.Check(t, err == nil && asked == 1, "%v, %d calls", err, asked)
	for name, change := range map[string]func(*archive.Notification){
		"NoDocument": func(n *archive.Notification) { n.Document = "" }, "NoTime": func(n *archive.Notification) { n.Created = time.Time{} },
		"Delivered": func(n *archive.Notification) { n.Response, n.Action = "TechnicalAccept", "Delivered" }, "NoAction": func(n *archive.Notification) { n.Action = "" },
		"Crossed": func(n *archive.Notification) { n.Response = "BusinessAccept" }, "Long": func(n *archive.Notification) { n.Description = strings.Repeat("x", 5000) },
	} {
		bad := n
		change(&bad)
		e := calls.Failed(t, client(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }).PostNotification(t.Context(), bad))
		kit.Check(t, e.Outcome == apicall.NotSent, "%s: %v, want e.Outcome = apicall.NotSent", name, e)
	}
	e := calls.Failed(t, client(t, calls.Says(400, wrapped("error", "VALIDATION", "Error.003.0001"))).PostNotification(t.Context(), n))
	kit.Check(t, e.Outcome == apicall.Refused, "%v, want e.Outcome = apicall.Refused", e.Outcome)
}
