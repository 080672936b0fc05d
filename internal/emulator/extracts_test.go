package emulator

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// newExtract is a service over a network, with an extract of one large file, and the address of the file.
func newExtract(t *testing.T, size int, r ExtractReadings) (*Server, *httptest.Server, string) {
	t.Helper()
	s := kit.Value(New(Config{Dir: t.TempDir(), Username: "u", Secret: "s", Vaults: []Vault{{ID: "V"}}, Readings: Readings{Extracts: r}}))(t)
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		s.Close()
	})
	kit.Must(t, s.PublishExtract(PublishedExtract{ID: "e1", Files: []PublishedFile{{Table: "T", Name: "t.zip", Content: bytes.Repeat([]byte("books"), size/5)}}}))
	return s, web, web.URL + "/v1/dataExtracts/e1/files/0"
}

// askFor makes a call with credentials and the time.
func askFor(t *testing.T, method, url, body string) *http.Response {
	t.Helper()
	r := kit.Value(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	r.SetBasicAuth("u", "s")
	r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	resp := kit.Value(http.DefaultClient.Do(r))(t)
	return resp
}

// A client that hangs up in the middle of a file did not get it: when it acknowledges, that is seen.
func TestExtract_I30_HangsUpInTheMiddle(t *testing.T) {
	s, web, file := newExtract(t, 32<<20, ExtractReadings{Download: "bytes"})
	resp := askFor(t, "GET", file, "")
	kit.Value(io.CopyN(io.Discard, resp.Body, 1<<20))(t)
	resp.Body.Close()
	askFor(t, "POST", web.URL+"/v1/dataExtracts/e1/acknowledge", `{"succeeded":true}`).Body.Close()
	if s.PublishedExtracts()[0].Files[0].WasSent || !s.PublishedExtracts()[0].IsAcknowledged {
		t.Errorf("%+v, want not s.PublishedExtracts()[0].Files[0].WasSent, s.PublishedExtracts()[0].IsAcknowledged", s.PublishedExtracts())
	}
	if v := s.Violations(); len(v) != 1 || !strings.Contains(v[0], `before its file "t.zip" was sent`) {
		t.Errorf("%q, want len(v) = 1, v[0] with `before its file \"t.zip\" was sent`", v)
	}
}

// Whoever has read the last byte may acknowledge at once: the file counts as sent by then, in each reading.
func TestExtract_I30_SentWithTheLastByte(t *testing.T) {
	for _, form := range []string{"bytes", "redirect"} {
		for _, size := range []int{5, 100, 3 << 20} {
			s, web, file := newExtract(t, size, ExtractReadings{Download: form})
			client := *http.DefaultClient
			client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
				r.Header.Del("Authorization")
				return nil
			}
			r := kit.Value(http.NewRequestWithContext(t.Context(), "GET", file, http.NoBody))(t)
			r.SetBasicAuth("u", "s")
			r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
			resp := kit.Value(client.Do(r))(t)
			got, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			askFor(t, "POST", web.URL+"/v1/dataExtracts/e1/acknowledge", `{"succeeded":true}`).Body.Close()
			v := s.Violations()
			kit.Check(t, err == nil && len(got) == size/5*5 && len(v) == 0, "%s of %d bytes: %d came, %v, %q", form, size, len(got), err, v)
		}
	}
}

// A fault that leaves the bytes of a file as they are leaves it sent, and one that spoils them does not.
func TestExtract_I30_SentUnderFaults(t *testing.T) {
	for kind, isSent := range map[Kind]bool{None: true, Trickle: true, RevokeTokens: true, Cut: false, Truncate: false, Garble: false, Empty: false, HTML: false, Abort: false} {
		s, _, file := newExtract(t, 1000, ExtractReadings{Download: "bytes"})
		kit.Must(t, s.SetFaults(Faults{Rules: []Rule{{Op: "extract-download", Rate: 1, Fault: Fault{Kind: kind, IsAfterWork: kind == HTML || kind == Abort}}}}))
		r := kit.Value(http.NewRequestWithContext(t.Context(), "GET", file, http.NoBody))(t)
		r.SetBasicAuth("u", "s")
		r.Header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
		if resp, err := http.DefaultClient.Do(r); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // some of them end early
			resp.Body.Close()
		}
		kit.Want(t, fmt.Sprint(kind), s.PublishedExtracts()[0].Files[0].WasSent, isSent)
	}
}

// A file comes in exactly two parts; everything else is refused with its code.
func TestNetworkFile_Refused(t *testing.T) {
	id := bumID(1)
	request := fmt.Sprintf(`{"bumId":%q,"fileType":"imageFile"}`, id)
	file := fileParts(request, "a.pdf", "%PDF")[1]
	for name, row := range map[string]struct {
		parts []filePart
		want  string
	}{
		"Good":          {fileParts(request, "a.pdf", "%PDF"), "200"},
		"CapitalEnding": {fileParts(request, "a.TIFF", "II"), "200"},
		"OneField":      {fileParts(`{"bumId":"`+id+`"}`, "a.pdf", "%PDF"), "400 004.0002"},
		"ThreeFields":   {fileParts(strings.Replace(request, "{", `{"name":"a",`, 1), "a.pdf", "%PDF"), "400 004.0002"},
		"NoObject":      {fileParts(`[]`, "a.pdf", "%PDF"), "400 004.0004"},
		"v7":            {fileParts(strings.Replace(request, id, "01890000-0000-7000-8000-000000000001", 1), "a.pdf", "%PDF"), "400 004.0003"},
		"FileType":      {fileParts(strings.Replace(request, "imageFile", "image", 1), "a.pdf", "%PDF"), "400 003.0020"},
		"Ending":        {fileParts(request, "a.heic", "x"), "400 004.0005"},
		"NoName":        {fileParts(request, "", "x"), "400 004.0005"},
		"TooLarge":      {fileParts(request, "a.pdf", strings.Repeat("x", 101)), "413 004.0012"},
		"Virus":         {fileParts(request, "a.pdf", "%PDF "+VirusMarker), "400 002.0004"},
		"OtherOrder":    {[]filePart{file, fileParts(request, "", "")[0]}, "400 004.0004"},
		"OnlyRequest":   {fileParts(request, "", "")[:1], "400 004.0004"},
		"ThirdPart":     {append(fileParts(request, "a.pdf", "%PDF"), file), "400 004.0004"},
		"TextRequest":   {[]filePart{{`form-data; name="request"`, "text/plain", request}, file}, "400 004.0004"},
	} {
		w := newNetworkWorld(t, func(c *Config) { c.Network.MaxFile = 100 })
		kit.Want(t, name, w.codeOf(w.postParts(row.parts)), row.want)
		w.wantNoViolations()
	}
	w := newNetworkWorld(t, nil)
	for _, header := range []string{"multipart/form-data; boundary=x", "multipart/mixed", "application/json"} {
		kit.Want(t, header, w.codeOf(w.net("POST", "/v2/files", "--x--", "Content-Type: "+header)), "400 004.0004")
	}
}

// The marker is found wherever the pieces end in which a body is read.
func TestMarkerScanner(t *testing.T) {
	text := "begin " + VirusMarker + " end"
	for size := 1; size < len(text); size++ {
		m := &markerScanner{marker: []byte(VirusMarker)}
		for at := 0; at < len(text); at += size {
			_, _ = m.Write([]byte(text[at:min(at+size, len(text))]))
		}
		kit.Check(t, m.found, "pieces of %d bytes: not found", size)
	}
}

// A stored file can be fetched from both versions, as bytes or in Base64. Parts of it cannot.
func TestNetworkFile_Fetched(t *testing.T) {
	content := strings.Repeat("%PDF-1.7 content ", 10)
	for _, form := range []string{"binary", "base64"} {
		w := newNetworkWorld(t, func(c *Config) { c.Readings.Network.Files = form })
		ref := w.mustStore(bumID(1), "a.pdf", content)
		for _, version := range []string{"/v1", "/v2"} {
			a := w.net("GET", version+"/files/"+ref, "", "Range: bytes=5-9")
			got := a.body
			if form == "base64" {
				raw := kit.Value(base64.StdEncoding.DecodeString(a.body))(t)
				got = string(raw)
			}
			kit.Check(t, a.status == 200 && got == content && a.header.Get("Content-Type") == "application/pdf;charset=utf-8",
				`%s: %+v, want a.status = 200, got = %v, a.header.Get("Content-Type") = "application/pdf;charset=utf-8"`, form, a, content)
		}
		kit.Want(t, "an unknown file", w.codeOf(w.net("GET", "/v2/files/none", "")), "404 003.0001")
	}
}

// A file may come in Base64, and is kept as what that means. A damaged one is refused.
func TestNetworkFile_Base64Upload(t *testing.T) {
	w := newNetworkWorld(t, nil)
	post := func(content string) answer {
		body := strings.Join([]string{"--x", `Content-Disposition: form-data; name="request"`, "Content-Type: application/json", "",
			fmt.Sprintf(`{"bumId":%q,"fileType":"dataFile"}`, bumID(1)), "--x", `Content-Disposition: form-data; name="file"; filename="a.xml"`,
			"Content-Transfer-Encoding: base64", "", content, "--x--", ""}, "\r\n")
		return w.net("POST", "/v2/files", body, "Content-Type: multipart/mixed; boundary=x")
	}
	a := post(base64.StdEncoding.EncodeToString([]byte("<a/>")))
	var got struct{ FileID string }
	w.decode(a, &got)
	file := w.net("GET", "/v2/files/"+got.FileID, "")
	kit.Check(t, file.body == "<a/>" && strings.HasPrefix(file.header.Get("Content-Type"), "application/xml"), "file: %+v", file)
	kit.Want(t, "damaged", w.codeOf(post("no base64!")), "400 004.0004")
}

// Each misuse of a file is a violation.
func TestNetworkFile_Violations(t *testing.T) {
	type row struct {
		act  func(w *world)
		want string
	}
	kit.Rows(t, map[string]row{
		"Capitals": {func(w *world) {
			w.postFile(strings.ToUpper(bumID(1)), "imageFile", "a.pdf", "%PDF")
		}, "which has capitals"},
		"NeverStored": {func(w *world) {
			w.net("POST", invoicesPath+"/"+bumID(1), invoice("", "aaaaaaaaaaaaaaaaaaaaaaaa"))
		}, "which was never stored"},
		"OfAnother": {func(w *world) {
			w.net("POST", invoicesPath+"/"+bumID(1), invoice("", w.mustStore(bumID(2), "a.pdf", "%PDF")))
		}, "which was stored for " + bumID(2)},
		"OfAReceivedOne": {func(w *world) {
			w.mustPublish(ReceivedDocument{Data: []byte(`{}`), Files: []ReceivedFile{{Name: "a.pdf"}}})
			w.net("POST", invoicesPath+"/"+bumID(1), invoice("", w.ReceivedDocuments()[0].Files[0].ID))
		}, "which was never stored"},
	}, func(t *testing.T, row row) {
		w := newNetworkWorld(t, nil)
		row.act(w)
		w.wantViolation(row.want)
		kit.Want(t, "the document was accepted", len(w.SentDocuments()), 0)
	})
}

// What a document says in its note becomes of it, and notifications come in that order, each at its time.
func TestNetwork_OutcomeByNote(t *testing.T) {
	const taken, delivered = "TechnicalAccept/ReceivedForProcessing", "TechnicalAccept/Delivered"
	for note, want := range map[string][]string{
		"":                                    {taken, delivered},
		"emulate:undelivered":                 {taken, "TechnicalReject/Undelivered"},
		"a emulate:invalid b":                 {taken, "TechnicalReject/InvalidContent"},
		"emulate:delayed":                     {taken, "TechnicalInformation/DeliveryDelayed", delivered},
		"emulate:unknown-pair":                {taken, "TechnicalInformation/ConversionStarted", delivered},
		"emulate:rejected-by-recipient":       {taken, delivered, "BusinessReject/DocumentRejected"},
		"emulate:accepted-by-recipient":       {taken, delivered, "BusinessAccept/DocumentAccepted"},
		"emulate:late-reject":                 {taken, delivered, "TechnicalReject/Undelivered"},
		"emulate:silent":                      nil,
		"emulate:delayed emulate:silent":      nil,
		"emulate:delayed emulate:undelivered": {taken, "TechnicalInformation/DeliveryDelayed", "TechnicalReject/Undelivered"},
		"emulate:services": {taken, delivered, "BusinessInformation/EligibleForEarlyPayment", "BusinessInformation/NotEligibleForEarlyPayment",
			"BusinessAccept/RequestForEarlyPayment", "BusinessInformation/DiscountCreditNoteAvailable", "BusinessReject/RepaymentFailed"},
	} {
		w := newNetworkWorld(t, nil)
		w.mustSend(1, note)
		w.now = w.now.Add(time.Hour + 72*time.Hour - time.Second)
		if note == "emulate:late-reject" {
			w.wantPairs(want[:2]...)
		}
		w.now = w.now.Add(time.Second)
		w.wantPairs(want...)
	}
}

// Delivered names the channel. InvalidContent names a file that says why, which can be fetched.
func TestNetwork_PropertiesOfNotices(t *testing.T) {
	w := newNetworkWorld(t, nil)
	for n, note := range []string{"", "emulate:email", "emulate:mail", "emulate:invalid"} {
		w.mustSend(n, note)
	}
	w.now = w.now.Add(time.Hour)
	var got []string
	for _, n := range w.list("page=1&pageSize=100").Notifications {
		for _, p := range n.AdditionalActionProperties {
			if p.Name == "DeliveryMeansCode" {
				got = append(got, p.Value)
				continue
			}
			link := n.Links[len(n.Links)-1]
			if a := w.net("GET", "/files/"+p.Value, ""); a.status != 200 || !strings.Contains(a.body, bumID(3)) || link.Rel != "validationFile" || link.Href != "http://api.test/files/"+p.Value {
				t.Errorf("validation file: %+v, link %+v", a, link)
			}
		}
	}
	kit.Want(t, "channels", got, []string{"ElectronicDelivery", "EmailDelivery", "MailDelivery"})
	a := w.net("GET", "/files/none", "")
	kit.Check(t, w.codeOf(a) == "404 003.0001", "an unknown reference: %+v", a)
}

// Without a word in the note the outcome is drawn, by the seed alone.
func TestNetwork_OutcomesAreDrawnBySeed(t *testing.T) {
	draw := func(seed uint64) (undelivered int) {
		w := newNetworkWorld(t, func(c *Config) {
			c.Seed = seed
			c.Network.Outcomes = []OutcomeRate{{"undelivered", 0.5}, {"silent", 1}}
		})
		for n := range 40 {
			w.mustSend(n, "")
		}
		for i, d := range w.SentDocuments() {
			if slices.Equal(d.Outcomes, []string{"undelivered"}) {
				undelivered += 1 << (i % 30)
			}
		}
		return undelivered
	}
	if one, same, other := draw(1), draw(1), draw(2); one == 0 || one != same || one == other {
		t.Errorf("drawn: %d, %d, %d", one, same, other)
	}
}
