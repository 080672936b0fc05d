package apicall

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

func TestLifetime(t *testing.T) {
	date := time.Date(2026, 3, 3, 12, 0, 0, 0, time.UTC)
	rows := []struct {
		name, query string
		signed      time.Time
		validity    time.Duration
	}{
		{"V4", "X-Amz-Date=20260303T121201Z&X-Amz-Expires=900", date.Add(12*time.Minute + time.Second), 15 * time.Minute},
		{"V4WithoutDate", "X-Amz-Expires=60", time.Time{}, time.Minute},
		{"V4Absurd", "X-Amz-Date=20260303T121201Z&X-Amz-Expires=-1", date.Add(12*time.Minute + time.Second), 0},
		{"V4Endless", "X-Amz-Date=yesterday&X-Amz-Expires=99999999999", time.Time{}, 0},
		{"V2", fmt.Sprintf("Signature=x&Expires=%d", date.Add(10*time.Minute).Unix()), date, 10 * time.Minute},
		{"None", "x=y", time.Time{}, 0},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			s, v := readLifetime("https://b.example/k?"+r.query, date)
			kit.Check(t, s.Equal(r.signed) && v == r.validity, "got %v %v", s, v)
		})
	}
}

func TestMD5Tag(t *testing.T) {
	md5 := strings.Repeat("0a", 16)
	for _, r := range []struct{ tag, header, value, want string }{
		{`"` + strings.ToUpper(md5) + `"`, "", "", md5},
		{`"` + md5 + `"`, "X-Amz-Server-Side-Encryption", "AES256", md5},
		{`"` + md5 + `"`, "X-Amz-Server-Side-Encryption", "aws:kms", ""},
		{`"` + md5 + `"`, "X-Amz-Server-Side-Encryption-Customer-Algorithm", "AES256", ""},
		{`"` + md5 + `-2"`, "", "", ""},
		{`W/"` + md5 + `"`, "", "", ""},
		{"", "", "", ""},
	} {
		h := http.Header{"Etag": {r.tag}}
		if r.header != "" {
			h.Set(r.header, r.value)
		}
		kit.Want(t, "md5FromETag(h)", md5FromETag(h), r.want)
	}
}

// What a ticket must not ask for is refused, however it is written.
func FuzzTicket(f *testing.F) {
	f.Add([]byte(`{"url":"https://b.example/k","headers":{"Content-Type":"a","x-amz-meta-a":"b"}}`), []byte(`{"x-amz-acl":"public-read"}`))
	f.Add([]byte(`"https://b.example/k?X-Amz-Date=20261120T100000Z&X-Amz-Expires=900"`), []byte(`[]`))
	f.Add([]byte(`{"url":"https://b.example/k","fields":{"Host":"evil","Authorization":"x","content-md5":"\r\nX: y"}}`), []byte(`null`))
	_, store, err := New(Config{BaseURL: "https://archive.example", Auth: basicAuth()})
	kit.Must(f, err)
	signed := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, url, headers []byte) {
		ticket, err := store.ReadTicket(archive.Ticket{Date: signed}, url, Fields{"headers": headers})
		if err != nil {
			if strings.ContainsFunc(err.Error(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) {
				t.Errorf("not fit for a log: %q", err)
			}
			return
		}
		for i, h := range ticket.Headers {
			low := strings.ToLower(h.Name)
			if low == "authorization" || low == "host" || low == "content-length" || strings.HasPrefix(low, "proxy-") || strings.Contains(low, "copy-source") {
				t.Errorf("%q: %q", h.Name, h.Value)
			}
			if strings.ContainsAny(h.Name, "\r\n: ") || strings.ContainsAny(h.Value, "\r\n\x00") || i > 0 && h.Name == ticket.Headers[i-1].Name {
				t.Errorf("%q: %q", h.Name, h.Value)
			}
		}
		kit.Check(t, ticket.Validity >= 0 && ticket.Validity <= 7*24*time.Hour,
			"%v %v, want ticket.Validity >= 0, ticket.Validity <= 7*24*time.Hour", ticket.SignedAt, ticket.Validity)
		kit.Check(t, ticket.URL == "" || store.CheckURL(string(ticket.URL)) == nil,
			"a ticket against policy: %q", string(ticket.URL))
	})
}
