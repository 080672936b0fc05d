package readings

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/dropwork"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
	"vaultd/internal/test/outside"
	"vaultd/internal/vaultapi"
	"vaultd/internal/watch"
)

const (
	apiHost   = "archive.example"
	storeHost = "store.example"
	user      = "vaultd-client"
	password  = "S3cr3t+/=!:%25 canary"
)

func TestMain(m *testing.M) { os.Exit(kit.MainOfManyFiles(m)) }

// setup is how a world differs from the most likely reading. The zero value is that reading.
type setup struct {
	readings emulator.Readings
	faults   func(op string, n int) emulator.Fault
	service  func(*emulator.Config)
	client   func(*apicall.Config)
	vaultapi func(*vaultapi.Config)
	daemon   func(*daemon.Config)
	network  func(w *world) // makes the sockets, where there are any
	between  func(r *http.Request, next http.RoundTripper) (*http.Response, error)
	secret   string   // that vaultd starts with; empty: the right one
	vaults   []string // that vaultd sends to; nil: those that the service has
	folders  int      // for each vault; default 3
	pdf      *pdfDrop // nil: there is no drop of single PDFs
}

// world is a service, two drop folders and the daemon between them.
type world struct {
	t       *testing.T
	dir     string
	vaults  []string
	service *emulator.Server
	client  *vaultapi.Client
	daemon  *daemon.Daemon
	halt    func() // ends the daemon's work; its ledger stays open
	settled func() // waits until nothing is under way at this instant
	log     kit.Text
	dropped []outside.Folder

	read            []ledger.Entry // as they were at that line of the journal
	readAt, heardAt uint64

	mu    sync.Mutex
	calls []sent          // guarded by mu
	heard map[string]bool // every cause that a person could have read so far; guarded by mu
}

// sent is one request that left, seen where it arrived.
type sent struct {
	at         time.Time
	method     string
	host, path string
	authorized bool // it carried an Authorization header
	md5        bool // it carried a Content-MD5 header
}

// virtualStart is the time at which each bubble begins: a fault that is set up before may say by it when it ends.
var virtualStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// virtual runs f in a bubble of virtual time, with a daemon that works already. Of a table the race detector sees every third row: it takes minutes
// for all, which make test runs without it.
func virtual(t *testing.T, s setup, f func(t *testing.T, w *world)) {
	t.Helper()
	if _, row, is := strings.Cut(t.Name(), "/"); is && kit.Race && archive.Sum([]byte(row))[0]%3 != 0 {
		t.Skip("this row is tried without the race detector")
	}
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		w.settled = synctest.Wait
		f(t, w)
	})
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), vaults: s.vaults, heard: map[string]bool{}}
	if w.vaults == nil {
		w.vaults = []string{"ACME", "BETA"}
	}
	if s.secret == "" {
		s.secret = password
	}
	w.setSecret(s.secret)
	w.openService(s)
	if s.network != nil {
		s.network(w)
	}
	cc := apicall.Config{BaseURL: "https://" + apiHost, Transport: w.wire(s.between),
		Auth: apicall.Auth{Method: apicall.Basic, Username: user, Secret: w.readSecret}}
	if s.client != nil {
		s.client(&cc)
	}
	api, store, err := apicall.New(cc)
	kit.Must(w.t, err)
	boot := time.Now()
	now := func() archive.Instant {
		return archive.Instant{Wall: time.Now(), Boot: time.Since(boot) + time.Hour, BootID: "boot"}
	}
	vc := vaultapi.Config{API: api, Store: store, Now: now}
	if s.vaultapi != nil {
		s.vaultapi(&vc)
	}
	w.client = vaultapi.New(vc)
	w.openDaemon(s, cc.BaseURL, now)
	for i := range cmp.Or(s.folders, 3) {
		for v := range w.vaults {
			w.drop(v, fmt.Sprintf("Müller %d-%d", v, i), fmt.Sprintf("R-%d/%d", v, i))
		}
	}
	w.run()
	w.settled = w.halt // on real time there is no such instant but the end
	return w
}

func (w *world) openService(s setup) {
	w.t.Helper()
	ec := emulator.Config{Dir: filepath.Join(w.dir, "service"), StoreURL: func() string { return "https://" + storeHost + "/packages" },
		Username: user, Secret: password, Vaults: []emulator.Vault{{ID: "ACME", Name: "Acme GmbH"}, {ID: "BETA", Name: "Beta AG"}},
		Seed: 7, ArchiveMin: time.Minute, ArchiveMax: 10 * time.Minute, Readings: s.readings, Faults: emulator.Faults{Hook: s.faults}}
	if s.pdf != nil {
		ec.PDF = emulator.PDF{Account: emulator.Account{Name: pdfUser, Secret: password}, Receiving: []string{receiving}}
	}
	if s.service != nil {
		s.service(&ec)
	}
	var err error
	w.service, err = emulator.New(ec)
	kit.Must(w.t, err)
	w.service.GrantDownloads(0) // it may cost money: vaultd downloads nothing by itself
	w.t.Cleanup(func() { kit.Must(w.t, w.service.Close()) })
}

func (w *world) openDaemon(s setup, baseURL string, now func() archive.Instant) {
	w.t.Helper()
	state := filepath.Join(w.dir, "state")
	kit.Must(w.t, os.Mkdir(state, 0o700))
	kit.Must(w.t, boltledger.Create(state, ledger.Info{ID: "readings", Environment: "test", BaseURL: baseURL, Schema: boltledger.Schema, Created: time.Now()}))
	dc := daemon.Config{StateDir: state, Environment: "test", BaseURL: baseURL, Location: time.UTC, Vault: w.client, Archive: w.client, Now: now,
		Log:      slog.New(slog.NewTextHandler(&w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		SpoolMax: 20_000_000_000, SpoolMinFree: 1, Workers: 4, BatchSize: 50, BatchWait: 2 * time.Second,
		PollMin: time.Minute, PollMax: 10 * time.Minute, Grace: 2 * time.Hour,
		ProbeEvery: 10 * time.Minute} // half a minute costs a third of a run's time
	for i, v := range w.vaults {
		kit.Must(w.t, os.Mkdir(w.path(i), 0o770))
		dc.Drops = append(dc.Drops, dropwork.Settings{Name: dropName(i), Path: w.path(i), Vault: archive.VaultID(v), Mode: watch.Poll,
			Rules: packager.Rules{Sidecar: "metadata.json", Compression: "fast"}, Settle: time.Second, Rescan: 2 * time.Minute})
	}
	if s.pdf != nil {
		w.addPDFDrop(s, &dc)
	}
	if s.daemon != nil {
		s.daemon(&dc)
	}
	var err error
	w.daemon, err = daemon.Open(context.Background(), dc)
	kit.Must(w.t, err)
}

// run lets the daemon work until the end of the test.
func (w *world) run() {
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.daemon.Run(ctx) }()
	w.halt = sync.OnceFunc(func() {
		stop()
		kit.Want(w.t, "the daemon ended", <-ended, nil)
	})
	w.t.Cleanup(func() {
		w.halt()
		kit.Must(w.t, w.daemon.Close())
		if w.t.Failed() {
			text := w.log.String()
			w.t.Logf("the end of the log:\n%s", text[max(0, len(text)-12_000):])
		}
	})
}

func dropName(i int) string        { return fmt.Sprintf("drop-%d", i) }
func (w *world) path(i int) string { return filepath.Join(w.dir, dropName(i)) }
func (w *world) setSecret(text string) {
	kit.Must(w.t, os.WriteFile(filepath.Join(w.dir, "secret"), []byte(text), 0o600))
}

func (w *world) readSecret() (string, error) {
	b, err := os.ReadFile(filepath.Join(w.dir, "secret"))
	return string(b), err
}

// drop makes a folder aside and moves it in.
func (w *world) drop(vault int, folder, number string) {
	w.t.Helper()
	aside := filepath.Join(w.dir, "aside")
	kit.Must(w.t, os.Mkdir(aside, 0o770))
	kit.Must(w.t, os.WriteFile(filepath.Join(aside, "rechnung.pdf"), bytes.Repeat([]byte(folder), 500), 0o660))
	kit.Must(w.t, os.WriteFile(filepath.Join(aside, "metadata.json"), fmt.Appendf(nil,
		`{"documentType":"Invoice","documentId":%q,"documentDate":"2026-10-31","senderName":"Müller & Söhne","amount":119.00,"currencyCode":"EUR"}`, number), 0o660))
	kit.Must(w.t, os.Rename(aside, filepath.Join(w.path(vault), folder)))
	w.dropped = append(w.dropped, outside.Folder{Drop: dropName(vault), Path: folder})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// wire leads every host's requests to the service and notes what arrives.
func (w *world) wire(between func(*http.Request, http.RoundTripper) (*http.Response, error)) http.RoundTripper {
	arrive := roundTripper(func(r *http.Request) (*http.Response, error) {
		w.mu.Lock()
		w.calls = append(w.calls, sent{time.Now(), r.Method, r.URL.Host, r.URL.Path, r.Header.Get("Authorization") != "", r.Header.Get("Content-MD5") != ""})
		w.mu.Unlock()
		return w.service.Transport().RoundTrip(r)
	})
	if between == nil {
		return arrive
	}
	return roundTripper(func(r *http.Request) (*http.Response, error) { return between(r, arrive) })
}

// sentTo returns what arrived at a host.
func (w *world) sentTo(host string) (all []sent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.calls {
		if c.host == host {
			all = append(all, c)
		}
	}
	return all
}

// entries are read anew where a line was added to the journal.
func (w *world) entries() (all []ledger.Entry) {
	w.t.Helper()
	head := w.daemon.Ledger().Head().N
	if head == w.readAt {
		return w.read
	}
	defer func() { w.read, w.readAt = all, head }()
	kit.Must(w.t, w.daemon.Ledger().EntriesOldestFirst(func(e ledger.Entry) error {
		all = append(all, e)
		return nil
	}))
	return all
}

// listen takes note of what a person could read just now. Nothing is new unless the journal is longer.
func (w *world) listen() {
	w.t.Helper()
	head := w.daemon.Ledger().Head().N
	if head == w.heardAt {
		return
	}
	w.heardAt = head
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.entries() {
		w.heard[e.Cause.Text] = true
		if e.Route == ledger.PDF {
			w.checkPDFWords(e.Cause.Text)
		}
	}
	for _, p := range w.daemon.State().Pauses {
		w.heard[p.Target.String()+": "+p.Cause.Text] = true
	}
}

// pass lets time pass, or less where until holds earlier. It reports whether until held.
func (w *world) pass(d, step time.Duration, until func() bool) bool {
	w.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(step)
		w.listen()
		if until() {
			return true
		}
	}
	return false
}

func never() bool { return false }

// allArchived reports whether everything that was dropped is archived and out of the way.
func (w *world) allArchived() bool {
	es := w.entries()
	return len(es) == len(w.dropped) && !slices.ContainsFunc(es, func(e ledger.Entry) bool {
		return e.State != ledger.Archived || e.Source != ledger.Kept
	})
}

// archives waits until everything is archived and holds the run to its promises.
func (w *world) archives(within time.Duration) {
	w.t.Helper()
	if !w.pass(within, step(within), w.allArchived) {
		w.t.Errorf("not all is archived after %v:", within)
		for _, e := range w.entries() {
			w.t.Logf("%q is %s/%s since attempt %d, due %v: %+v", e.Folder, e.State, e.Source, e.Attempt, e.NotBefore, e.Cause)
		}
	}
	w.proven()
}

// step is how often a wait of that length looks. No failed attempt is repeated sooner than after half a second, so what
// stands as its cause is heard.
func step(within time.Duration) time.Duration {
	if within < 10*time.Minute { // on real time
		return 20 * time.Millisecond
	}
	return 500 * time.Millisecond
}
