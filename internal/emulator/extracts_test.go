package emulator

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
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
