package apicall

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

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
