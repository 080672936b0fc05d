package main_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// Support finds the calls that archived a document: show, the receipt and its
// file name their ids as the service and the store saw them.
func TestRequests_I12_OfWhatIsArchived(t *testing.T) {
	t.Parallel()
	emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "demo", Secret: "demo", Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}},
		ArchiveMin: 50 * time.Millisecond, ArchiveMax: 100 * time.Millisecond})
	kit.Must(t, err)
	var mu sync.Mutex
	seen := map[string]string{} // last id of each kind of call
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		emu.ServeHTTP(w, r)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/documents"):
			seen["registration"] = r.Header.Get("X-SVC-REQUEST-ID")
		case r.Method == http.MethodPut:
			seen["upload"] = w.Header().Get("X-Amz-Request-Id")
		case strings.HasSuffix(r.URL.Path, "/status"):
			seen["status"] = r.Header.Get("X-SVC-REQUEST-ID")
		}
	}))
	t.Cleanup(func() { srv.Close(); kit.Must(t, emu.Close()) })
	s := newSite(t, srv.URL, fast)
	s.fill(1, 0)
	s.must(0, "run", "--once", "--wait")
	var row struct{ Key string }
	kit.Must(t, json.Unmarshal([]byte(s.must(0, "list", "--json")), &row))
	var shown struct{ Requests []ledger.Request }
	kit.Must(t, json.Unmarshal([]byte(s.must(0, "show", "--json", row.Key)), &shown))
	got := map[string]string{}
	for _, r := range shown.Requests {
		got[r.Call] = string(r.ID)
	}
	kit.Want(t, "requests", got, seen)
	all := []string{"registration " + seen["registration"], "upload " + seen["upload"], "status " + seen["status"]}
	kit.Holds(t, "show", s.must(0, "show", row.Key), all...)
	kit.Holds(t, "receipt", s.must(0, "receipt", row.Key), all...)
	written, err := filepath.Glob(filepath.Join(s.dir, "acme", "_archived", "*", "*", "_RECEIPT.json"))
	kit.Need(t, err == nil && len(written) == 1, "receipts: %q, %v", written, err)
	text := kit.Value(os.ReadFile(written[0]))(t)
	kit.Holds(t, "_RECEIPT.json", string(text), seen["registration"], seen["upload"], seen["status"])
}

// An entry that is open for too long is named with the request ids that support
// needs.
func TestRequests_I26_OfWhatIsOverdue(t *testing.T) {
	s := newShelf(t)
	seal, doc := sealed("Old", 1000)
	at := noon.Add(-49 * time.Hour)
	s.tell("Old", at, doc, seal)
	s.tell("Old", at.Add(time.Minute), nil, ledger.RegisterIntended{},
		ledger.TicketReceived{Ticket: archive.Ticket{Remote: "bum-9", URL: "https://store.example/x?X-Amz-Signature=canary", Sent: archive.Instant{Wall: at}, Request: "0f8fad5b-d9cb-469f-a165-70867728950e"}},
		ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal, Request: "4442587FB7D0A2F9"})
	s.tell("Old", at.Add(time.Hour), nil, ledger.StatusSeen{Receipt: archive.Receipt{Remote: "bum-9", Status: archive.InProgress, Request: "s-1, answered as \u202ex"}})
	out, _, _ := s.say("status")
	kit.Holds(t, "status", out, "open for longer than 48 h", "request ids: registration 0f8fad5b-d9cb-469f-a165-70867728950e, upload 4442587FB7D0A2F9, status s-1, answered as ")
	kit.Lacks(t, "status", out, "\u202e")
}

// The configured type of a package reaches the store.
func TestService_ContentType(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"application/octet-stream", "application/zip"} {
		t.Run(want, func(t *testing.T) {
			t.Parallel()
			emu, address := serveEmulator(t, emulator.Config{ArchiveMax: 50 * time.Millisecond})
			var mu sync.Mutex
			var sent []string // guarded by mu
			store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPut {
					mu.Lock()
					sent = append(sent, r.Header.Get("Content-Type"))
					mu.Unlock()
				}
				emu.ServeHTTP(w, r)
			}))
			t.Cleanup(store.Close)
			s := newSite(t, address, strings.Replace(fast, "upload: {", "upload: {content_type: "+want+", ", 1))
			s.edit(address, store.URL)
			s.must(0, "init")
			s.add("acme", "otto", 1)
			s.must(0, "run", "--once", "--wait")
			mu.Lock()
			defer mu.Unlock()
			kit.Check(t, len(sent) == 1 && sent[0] == want, "sent as %q, want %q", sent, want)
		})
	}
}

// A drop of the business network takes the document by its configured name, waits for its marker, and holds a number that came before; what the
// client would not send is refused with its place.
func TestWireDrops_Network(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	s.withNetwork(s.service)
	s.edit("drops:\n", "drops:\n  - {name: out, path: "+s.dir+"/out, route: network, document: invoice.json, complete: marker, same_number: hold, settle: 100ms}\n")
	put := func(folder, document string, isComplete bool) {
		writeIn(t, filepath.Join(s.dir, "out", folder), "invoice.json", document)
		if isComplete {
			writeIn(t, filepath.Join(s.dir, "out", folder), ".done", "")
		}
	}
	good := func(number string) string {
		return strings.Replace(networkGood, `"data": {`, `"data": {"externalDocumentIdentifier": {"id": "`+number+`"}, "issueDate": "2026-10-31", `, 1)
	}
	put("not yet", good("R-1"), false)
	put("first", good("R-2"), true)
	put("wrong", `{"data":{"documentCurrencyCode":"Euro"}}`, true)
	out, _ := s.vaultd("run", "--once")
	n := len(emu.SentDocuments())
	kit.Need(t, n == 1 && strings.Contains(out, "seen 2 new"), "%d documents were sent: %s", n, out)
	if reason, err := os.ReadFile(filepath.Join(s.dir, "out", "_rejected", "wrong", "_REASON.txt")); err != nil || !strings.Contains(string(reason), "documentCurrencyCode") {
		t.Errorf("%v\n%s\nwant no error, reason with \"documentCurrencyCode\"", err, reason)
	}
	put("second", strings.Replace(good("R-2"), "EUR", "CHF", 1), true)
	out, _ = s.vaultd("run", "--once")
	kit.Check(t, len(emu.SentDocuments()) == 1, "the same number was sent twice: %s", out)
	out, _ = s.vaultd("list")
	kit.Check(t, strings.Contains(out, "on hold"), "the second one is not held:\n%s", out)
}

// I24: the word of network.directory_fr decides whether recipients are checked, and what becomes of one that is not listed. Off is the default.
func TestWireRoutes_I24_DirectoryOfFrance(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]struct{ asks, sends bool }{"default": {false, true}, "off": {false, true}, "warn": {true, true}, "require": {true, false}} {
		t.Run(word, func(t *testing.T) {
			emu, s := served(t, emulator.Config{}, fast)
			s.withNetwork(s.service)
			s.edit("secret_file: "+s.dir+"/secret}}", "secret_file: "+s.dir+"/secret}, directory_fr: "+strings.Replace(word, "default", "off", 1)+"}")
			if word == "default" {
				s.edit(", directory_fr: off", "")
			}
			s.edit("drops:\n", "drops:\n  - {name: out, path: "+s.dir+"/out, route: network, settle: 100ms}\n")
			writeIn(t, filepath.Join(s.dir, "out", "one"), "document.json", `{"data": {"documentCurrencyCode": "EUR"}, "processingPreference": {"sentTo": {"id": "`+otto+`", "schemeId": "FR:ORGNR"}}}`)
			s.begin()
			kit.Await(t, "an outcome", func() bool {
				why, _ := s.vaultd("why", "one")
				return len(emu.SentDocuments()) > 0 || !want.sends && strings.Contains(why, "no valid line")
			})
			if asks, sends := emu.CountCalls("network-directory") > 0, len(emu.SentDocuments()) > 0; asks != want.asks || sends != want.sends {
				why, _ := s.vaultd("why", "one")
				t.Errorf("asks %v, sends %v, want %+v: %s", asks, sends, want, why)
			}
		})
	}
}

// archives lets a package of that size be archived in a vault.
func (s *shelf) archives(vault archive.VaultID, folder string, size int64, at time.Time) {
	s.t.Helper()
	i := s.ledger.Add(fill.Item{Name: folder, Vault: vault, Size: size})
	i.Store(at)
	i.Apply(at, fill.Seen(archive.RemoteID("bum-"+folder), archive.Successful, at))
}

// Two vaults, two documents each. By hand: the customer's four documents may have 4,000,000 bytes together, each
// vault's two may have 2,000,000; the price is 0.185 for each megabyte beyond. The average is shown for each vault and
// for the customer, and the words grow at 80, 90 and 100 percent of either.
func TestStatus_BillingWarnings(t *testing.T) {
	type row struct {
		first, second int64 // bytes of each of a vault's two documents
		want          []string
	}
	kit.Rows(t, map[string]row{
		"Calm": {799_999, 100_000, []string{
			"all vaults: 4 documents, average 0.45 MB, 44.9 % of what is included; 2.2 MB left",
			"vault V-1: 2 documents, average 0.799999 MB, 79.9 % of what is included; 400 kB left",
			"vault V-2: 2 documents, average 0.1 MB, 10 % of what is included; 1.8 MB left"}},
		"Near": {800_000, 800_000, []string{
			"all vaults: 4 documents, average 0.8 MB, 80 % of what is included; NEAR THE LIMIT; 800 kB left",
			"vault V-1: 2 documents, average 0.8 MB, 80 % of what is included; NEAR THE LIMIT; 400 kB left",
			"vault V-2: 2 documents, average 0.8 MB, 80 % of what is included; NEAR THE LIMIT; 400 kB left"}},
		"Nearer": {900_000, 899_999, []string{
			"all vaults: 4 documents, average 0.9 MB, 89.9 % of what is included; NEAR THE LIMIT",
			"vault V-1: 2 documents, average 0.9 MB, 90 % of what is included; VERY NEAR THE LIMIT",
			"vault V-2: 2 documents, average 0.899999 MB, 89.9 % of what is included; NEAR THE LIMIT"}},
		"Reached": {1_000_000, 999_999, []string{
			"all vaults: 4 documents, average 1 MB, 99.9 % of what is included; VERY NEAR THE LIMIT; 2 bytes left",
			"vault V-1: 2 documents, average 1 MB, 100 % of what is included; LIMIT REACHED; 0 bytes left",
			"vault V-2: 2 documents, average 0.999999 MB, 99.9 % of what is included; VERY NEAR THE LIMIT"}},
		// 2 × 1,234,567 − 2,000,000 = 469,134 beyond in the one vault, × 0.185 = 0.08678979; 2,869,134 of 4,000,000 in all.
		"OneVaultBeyond": {1_234_567, 200_000, []string{
			"all vaults: 4 documents, average 0.717284 MB, 71.7 % of what is included; 1.1 MB left",
			"vault V-1: 2 documents, average 1.234567 MB, 123.4 % of what is included; LIMIT REACHED; 0.469134 transactions beyond it, EUR 0.08678979",
			"vault V-2: 2 documents, average 0.2 MB, 20 % of what is included; 1.6 MB left"}},
		// 2 × 2,000,000 + 2 × 500,000 − 4,000,000 = 1,000,000 beyond for the customer, 2,000,000 for the one vault.
		"CustomerBeyond": {2_000_000, 500_000, []string{
			"all vaults: 4 documents, average 1.25 MB, 125 % of what is included; LIMIT REACHED; 1 transaction",
			"vault V-1: 2 documents, average 2 MB, 200 % of what is included; LIMIT REACHED; 2 transactions beyond it, EUR 0.37",
			"vault V-2: 2 documents, average 0.5 MB, 50 % of what is included; 1.0 MB left"}},
	}, func(t *testing.T, row row) {
		s := newShelf(t)
		s.edit("drops:", "billing: {price_per_transaction: 0.185}\ndrops:")
		for i, size := range []int64{row.first, row.first, row.second, row.second} {
			vault := []archive.VaultID{"V-1", "V-2"}[i/2]
			s.archives(vault, string(vault)+string(rune('a'+i)), size, noon.Add(-time.Hour))
		}
		s.archives("V-1", "last year", 50_000_000, noon.AddDate(-1, 0, 0))
		out, _, _ := s.say("status")
		for _, line := range row.want {
			kit.Holds(t, fmt.Sprintf("missing %q in", line), out, "BILLING  2026 "+line)
		}
	})
}

// An entry that was made from the archive's index has no known size: it counts, and does not make the average smaller. The
// forecast stands on a line of its own. By hand: two documents of 1.5 MB came in October, half a megabyte too large each,
// and none of known size since. 41.4 days are left. As October's 31.04 days (an hour is twice in it) 2.67 more come, 1.33 MB
// beyond: 1 + 1.33 is 3 transactions. As the 19.6 days of November none come: 1. As both together, 1.63 more and 0.82 MB: 2.
func TestStatus_BillingOfUnknownSize(t *testing.T) {
	s := newShelf(t)
	for _, name := range []string{"a", "b"} {
		s.archives("V-1", name, 1_500_000, noon.AddDate(0, -1, 0))
	}
	s.keys["found"] = archive.NewKey(noon.Add(-time.Hour))
	s.tell("found", noon, nil, ledger.Recovered{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: "x", ID: archive.ID{15: 9}, Remote: "R9", SuccessRecord: []byte("{}"),
		State: ledger.Archived, Source: ledger.Gone, SeenAt: noon.Add(-time.Hour), ArchivedAt: noon.Add(-time.Hour)}, ledger.Reconciled{})
	out, _, _ := s.say("status")
	kit.Holds(t, "out", out,
		"BILLING  2026 vault V-1: 3 documents (1 of unknown size, left out of what follows), average 1.5 MB, 150 % of what is included; LIMIT REACHED; 1 transaction beyond it\n",
		"BILLING  2026 vault V-1, forecast: average 1.5 MB on 31 December (1.5 to 1.5); 2 transactions beyond what is included (1 to 3)\n",
	)
	out, _, _ = s.say("status", "--json")
	kit.Holds(t, "out", out, `"unsized":1`, `"lowestMB":"1.5"`)
}

// tunnel is a CONNECT proxy that leads every host to one address.
type tunnel struct {
	to    string
	mu    sync.Mutex
	asked map[string]bool // guarded by mu
}

func (p *tunnel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	p.asked[r.Method+" "+r.Host] = true
	p.mu.Unlock()
	there, err := net.Dial("tcp", p.to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	defer there.Close()
	here, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer here.Close()
	fmt.Fprint(here, "HTTP/1.1 200 Connection established\r\n\r\n")
	done := make(chan struct{}, 2)
	go func() { _, _ = io.Copy(there, buffered); there.Close(); done <- struct{}{} }()
	go func() { _, _ = io.Copy(here, there); here.Close(); done <- struct{}{} }()
	<-done
	<-done
}

// behindProxy is a service with tokens alone, its own authority, and hosts that
// only the proxy knows.
func behindProxy(t *testing.T, secret string) (emu *emulator.Server, proxy *tunnel, service string) {
	t.Helper()
	emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), ClientID: "client", ClientSecret: secret, TokenLife: 2 * time.Second,
		Scopes: []string{"importDocuments.write"}, RequireScope: "importDocuments.write", ArchiveMax: 300 * time.Millisecond,
		Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}}, StoreURL: func() string { return "https://store.example.com/packages" },
		Readings: emulator.Readings{BasicEncoding: "rfc6749"}})
	kit.Must(t, err)
	tls := httptest.NewTLSServer(emu)
	proxy = &tunnel{to: tls.Listener.Addr().String(), asked: map[string]bool{}}
	front := httptest.NewServer(proxy)
	t.Cleanup(func() {
		front.Close()
		tls.CloseClientConnections()
		tls.Close()
		kit.Want(t, "the error of Close", emu.Close(), nil)
	})
	ca := filepath.Join(t.TempDir(), "ca.pem")
	kit.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: tls.Certificate().Raw}), 0o600))
	return emu, proxy, fmt.Sprintf("  ca_file: %s\n  proxy: %s\n", ca, front.URL)
}

// An installation behind a proxy, at a service with its own authority, with tokens that live two seconds and an escaped
// secret that is wrong at first: status names it, the corrected file is enough while vaultd runs, and fetch understands
// each form of a download.
func TestReading_I24_CorrectedWhileRunning(t *testing.T) {
	t.Parallel()
	const secret = "S3cr3t=/+!:% canary"
	emu, proxy, service := behindProxy(t, secret)
	s := newSite(t, "https://archive.example.com", "upload: {batch_wait: 100ms}\nstatus: {poll_min: 500ms, poll_max: 2s}")
	text := kit.Value(os.ReadFile(s.config))(t)
	auth := fmt.Sprintf("  auth: {method: basic, username: demo, secret_file: %s/secret}\n", s.dir)
	changed := strings.Replace(string(text), auth, service+fmt.Sprintf(
		"  auth: {method: oauth2, username: client, secret_file: %s/secret, scopes: [importDocuments.write], basic_encoding: rfc6749}\n", s.dir), 1)
	kit.Need(t, changed != string(text), "the configuration has no line %q", auth)
	kit.Must(t, os.WriteFile(s.config, []byte(changed), 0o640))
	s.fill(4, 9)
	p := s.start("run", "-v")
	kit.Await(t, "status to name the wrong secret", func() bool {
		out, _ := s.vaultd("status")
		return strings.Contains(out, "NOW      vault ACME paused since") && strings.Contains(out, "get a token") && strings.Contains(out, "invalid_client")
	})
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, "secret"), []byte(secret+"\n"), 0o600))
	kit.Await(t, "all to be archived", func() bool {
		out, _ := s.vaultd("status", "--json")
		return strings.Contains(out, `"archived":4`)
	})
	for _, form := range []string{"bytes", "redirect", "json"} {
		kit.Must(t, emu.SetReadings(emulator.Readings{BasicEncoding: "rfc6749", Download: form}))
		file := filepath.Join(t.TempDir(), form+".zip")
		out, code := s.vaultd("fetch", "Rechnung 0001", "-o", file)
		if info, err := os.Stat(file); code != 0 || err != nil || info.Size() == 0 || !strings.Contains(out, "identical with what was sent") {
			t.Errorf("fetch as %s: exit %d, %v: %s", form, code, err, out)
		}
	}
	code := p.stop(t)
	kit.Check(t, code == 0 && !strings.Contains(p.out.String(), "canary"), "exit %d, or the secret was logged", code)
	s.must(0, "verify")
	onceEach(t, emu, 4)
	proxy.mu.Lock()
	defer proxy.mu.Unlock()
	for _, host := range []string{"CONNECT archive.example.com:443", "CONNECT store.example.com:443"} {
		kit.Check(t, proxy.asked[host], "the proxy was asked for %v", proxy.asked)
	}
}
