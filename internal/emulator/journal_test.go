package emulator

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// What was answered is known after a restart, also when the last line was torn by the end of the process.
func TestRestartForgetsNothing(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.ArchiveMin, c.ArchiveMax = time.Hour, 9*time.Hour })
	for n := range 5 {
		ticket := w.register(n, `,"amount":1.10`)
		if n > 0 {
			w.mustPut(ticket, zipOf(strings.Repeat("a", n)))
		}
		w.now = w.now.Add(time.Minute)
	}
	open := w.register(9)
	w.register(9, " ")
	var before []RegistrationRecord
	for range 3 {
		before = w.Registrations()
		violations := w.Violations()
		w.close()
		path := filepath.Join(w.cfg.Dir, "journal.jsonl")
		f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteString(`{"kind":"registered","bum`)
			f.Close()
		}
		kit.Must(t, err)
		w.Server = nil
		w.restart()
		if after := w.Registrations(); !slices.Equal(before, after) || !slices.Equal(violations, w.Violations()) {
			t.Errorf("before %+v\nafter %+v", before, after)
		}
		w.register(int(w.now.Unix() % 1000)) // new ids do not repeat old ones
		w.now = w.now.Add(3 * time.Minute)
	}
	w.mustPut(open, zipOf("later")) // a URL outlives the server that gave it
	w.now = w.now.Add(24 * time.Hour)
	_, ids := w.walk("size=2")
	kit.Check(t, len(ids) == 5, "archived in the end: %v", ids)
	bumIDs := map[string]bool{}
	for _, s := range w.Registrations() {
		bumIDs[s.BumID] = true
	}
	kit.Want(t, "a bumId came twice", len(bumIDs), len(w.Registrations()))
}

// I7 secrecy: the journal and the answers to errors hold no credential, no signature and no package.
func TestClaim_I7_JournalHoldsNoSecret(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Readings.Download = "redirect" })
	ticket := w.register(1)
	w.mustPut(ticket, zipOf("the content of a file"))
	w.call("GET", docs+"/"+ticket.bumID, "")
	w.token("x")
	w.put(ticket, "x", "Content-MD5: bad")
	raw := kit.Value(os.ReadFile(filepath.Join(w.cfg.Dir, "journal.jsonl")))(t)
	for _, secret := range []string{"X-Amz", "s3=cret", "cl%secret", w.keys.SecretKey, w.keys.SessionToken, "the content", "access_token"} {
		kit.Check(t, !bytes.Contains(raw, []byte(secret)), "the journal holds %q", secret)
	}
	var calls, stored int
	for l := range bytes.Lines(raw) {
		var rec map[string]any
		err := json.Unmarshal(l, &rec)
		kit.Need(t, err == nil, "line %s: %v", l, err)
		if rec["kind"] == "call" {
			calls++
		}
		if rec["kind"] == "call" && rec["op"] == "upload" && rec["sha256"] == digest([]byte(zipOf("the content of a file"))) && rec["status"] == 200.0 {
			stored++
		}
	}
	kit.Check(t, calls == 5 && stored == 1, "%d calls, %d stored: %s", calls, stored, raw)
}

// API and Store can stand on two listeners; neither serves the other's paths.
func TestTwoHosts(t *testing.T) {
	var store *httptest.Server
	w := newWorld(t, func(c *Config) { c.StoreURL = func() string { return store.URL } })
	store = httptest.NewServer(w.Store())
	defer store.Close()
	api := httptest.NewServer(w.API())
	defer api.Close()
	req := w.request("POST", api.URL+docs, batch(document(1)), "Content-Type: application/json")
	req.SetBasicAuth("user", "s3=cret/+")
	ticket := w.tickets(wireSend(t, req))[0]
	a := wireSend(t, w.request("PUT", ticket.url, zipOf("a")))
	kit.Check(t, a.status == 200, "PUT: %+v", a)
	a = wireSend(t, w.request("PUT", strings.Replace(ticket.url, store.URL, api.URL, 1), zipOf("a")))
	kit.Check(t, a.status == 502, "PUT at the API: %+v", a)
	a = wireSend(t, w.request("GET", store.URL+"/v1/vaults", ""))
	kit.Check(t, a.status == http.StatusForbidden, "API call at the store: %+v", a)
	w.wantNoViolations()
}
