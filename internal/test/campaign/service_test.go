package campaign

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/extractapi"
	"vaultd/internal/test/kit"
)

const (
	user     = "campaign"
	secret   = "campaign-secret"
	scope    = "documents"
	pdfScope = "importDocuments.write"

	receiving = "ap@in.example"
)

// service is the archive, which lives through the whole campaign and can kill who calls it.
type service struct {
	*emulator.Server
	dir, url string

	mu  sync.Mutex
	aim *aim // guarded by mu; nil: nobody
}

// aim is a point of a call to the service at which the caller is killed.
type aim struct {
	op   string
	when string // before, body, after, answered
	left int    // calls of op until it strikes
	kill func()
}

var (
	aimedOps = []string{"token", "register", "upload", "status", "pdf-register", "pdf-upload", "extract-list", "extract-files", "extract-fetch", "extract-acknowledge",
		"network-file", "network-send", "network-notices", "network-acknowledge", "network-fetch", "network-fetch-file"}
	aimedWhens = []string{"before", "body", "after", "answered"}
)

// faults are a fifth of all calls, of every class.
// The long ones let a window pass, or make a document unclear.
func faults(long bool) emulator.Faults {
	var rules []emulator.Rule
	add := func(op string, rate float64, fs ...emulator.Fault) {
		for _, f := range fs {
			rules = append(rules, emulator.Rule{Op: op, Rate: rate, Fault: f})
		}
	}
	status := func(code int, done bool) emulator.Fault {
		return emulator.Fault{Kind: emulator.Status, Status: code, IsAfterWork: done, RetryAfter: time.Second}
	}
	add("register", 0.015, emulator.Fault{VisibleAfter: window / 2}, emulator.Fault{Kind: emulator.Abort, IsAfterWork: true, VisibleAfter: window / 2},
		emulator.Fault{Kind: emulator.MissingAnswer}, emulator.Fault{Kind: emulator.MissingURL})
	add("extract-fetch", 0.03, emulator.Fault{Kind: emulator.Cut}, emulator.Fault{Kind: emulator.Truncate}, emulator.Fault{Kind: emulator.Trickle, DelayAfter: time.Second})
	add("extract-acknowledge", 0.1, emulator.Fault{Kind: emulator.Abort, IsAfterWork: true})
	add("upload", 0.02, emulator.Fault{Kind: emulator.CutRequest}, emulator.Fault{Kind: emulator.Trickle, DelayAfter: window / 4})
	add("network-send", 0.05, emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, emulator.Fault{Kind: emulator.CutRequest}, emulator.Fault{Kind: emulator.Coded, Code: "Error.001.0010", IsAfterWork: true},
		emulator.Fault{Kind: emulator.Coded, Code: "Error.003.0032"})
	add("network-file", 0.03, emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, emulator.Fault{Kind: emulator.CutRequest}, emulator.Fault{Kind: emulator.Coded, Code: "Error.001.0006"})
	add("network-acknowledge", 0.05, emulator.Fault{Kind: emulator.Abort, IsAfterWork: true})
	// The network tells neither length nor digest of a file, so nobody can see that it came garbled: nothing of that kind befalls one.
	add("network-fetch-file", 0.03, emulator.Fault{Kind: emulator.Abort}, emulator.Fault{Kind: emulator.Cut}, emulator.Fault{Kind: emulator.Trickle, DelayAfter: time.Second}, status(500, false), status(503, false))
	add("network-fetch-file", 1, emulator.Fault{})
	add("pdf-register", 0.03, emulator.Fault{Kind: emulator.MissingURL}, emulator.Fault{Kind: emulator.DoubleBumID})
	add("pdf-upload", 0.03, emulator.Fault{Kind: emulator.CutRequest}, emulator.Fault{Kind: emulator.Trickle, DelayAfter: window / 4}, emulator.Fault{Kind: emulator.DeadToken})
	if long {
		add("upload", 0.01, emulator.Fault{Kind: emulator.DeadToken}, emulator.Fault{Kind: emulator.Vanish},
			emulator.Fault{Kind: emulator.Abort, IsAfterWork: true, VisibleAfter: window}, emulator.Fault{Delay: window}, emulator.Fault{DelayAfter: window})
	}
	add("", 0.013, emulator.Fault{Kind: emulator.Abort}, emulator.Fault{Kind: emulator.Abort, IsAfterWork: true}, status(429, false), status(500, false),
		status(503, false), status(504, true), emulator.Fault{Kind: emulator.Cut}, emulator.Fault{Kind: emulator.HTML},
		emulator.Fault{Kind: emulator.Garble}, emulator.Fault{Kind: emulator.Truncate}, emulator.Fault{Kind: emulator.Empty},
		emulator.Fault{Delay: time.Second, DelayAfter: time.Second}, emulator.Fault{Kind: emulator.Trickle, DelayAfter: time.Second})
	add("", 0.002, status(401, false), status(403, false), status(404, false), status(502, false))
	return emulator.Faults{Rules: rules}
}

func newService(t *testing.T, dir string, seed uint64, vaults int) *service {
	t.Helper()
	cfg := emulator.Config{Dir: dir, ClientID: user, ClientSecret: secret, Scopes: []string{scope, pdfScope, extractapi.ReadScope, extractapi.WriteScope}, RequireScope: scope,
		TokenLife: 15 * time.Second, Window: window, ArchiveMin: 100 * time.Millisecond, ArchiveMax: window / 4, Seed: seed, PDF: emulator.PDF{Window: 2 * window}, Network: network}
	for v := range vaults {
		cfg.Vaults = append(cfg.Vaults, emulator.Vault{ID: vaultID(v)})
	}
	emu := kit.Value(emulator.New(cfg))(t)
	l := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	s := &service{Server: emu, dir: dir, url: "http://" + l.Addr().String()}
	srv := &http.Server{Handler: s}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		<-done
		kit.Must(t, emu.Close())
	})
	return s
}

// take aims at whoever calls next; nil: at nobody any more.
func (s *service) take(a *aim) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.aim = a
}

func (s *service) hit(op string) *aim {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.aim
	if a == nil || a.op != op {
		return nil
	}
	if a.left--; a.left > 0 {
		return nil
	}
	s.aim = nil
	return a
}

func opOf(r *http.Request) string {
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokens"):
		return "token"
	case strings.HasPrefix(r.URL.Path, "/v2/pdf/"):
		return "pdf-register"
	case strings.HasSuffix(r.URL.Path, ".pdf"):
		return "pdf-upload"
	case strings.HasSuffix(r.URL.Path, ".extract"):
		return "extract-fetch"
	case strings.HasSuffix(r.URL.Path, "/acknowledge"):
		return "extract-acknowledge"
	case strings.HasSuffix(r.URL.Path, "/dataExtracts"):
		return "extract-list"
	case strings.Contains(r.URL.Path, "/dataExtracts/"):
		return "extract-files"
	case strings.HasSuffix(r.URL.Path, "/v2/files"):
		return "network-file"
	case strings.HasSuffix(r.URL.Path, "/notifications"):
		return "network-notices"
	case strings.Contains(r.URL.Path, "/notifications/"):
		return "network-acknowledge"
	case strings.Contains(r.URL.Path, "/v2/files/"):
		return "network-fetch-file"
	case r.Method == http.MethodGet && (strings.Contains(r.URL.Path, "/v2/invoices/") || strings.Contains(r.URL.Path, "/v2/creditNotes/")):
		return "network-fetch"
	case strings.Contains(r.URL.Path, "/v2/invoices/"), strings.Contains(r.URL.Path, "/v2/creditNotes/"):
		return "network-send"
	case r.Method == http.MethodPost:
		return "register"
	case r.Method == http.MethodPut:
		return "upload"
	}
	return "status"
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := s.hit(opOf(r))
	if a == nil {
		s.Server.ServeHTTP(w, r)
		return
	}
	defer a.kill()
	switch a.when {
	case "before":
		a.kill()
		panic(http.ErrAbortHandler)
	case "body":
		r.Body = &deadly{ReadCloser: r.Body, left: r.ContentLength / 2, kill: a.kill}
		s.Server.ServeHTTP(w, r)
	case "after": // it was done and noted; what was to be answered still lies here
		s.Server.ServeHTTP(w, r)
		a.kill()
		panic(http.ErrAbortHandler)
	case "answered":
		s.Server.ServeHTTP(w, r)
		_ = http.NewResponseController(w).Flush()
	}
}

// deadly kills who sends it, half way through.
type deadly struct {
	io.ReadCloser
	left int64
	kill func()
}

func (d *deadly) Read(p []byte) (int, error) {
	if d.left <= 0 {
		d.kill()
	}
	n, err := d.ReadCloser.Read(p[:min(int64(len(p)), max(d.left, 1))])
	d.left -= int64(n)
	return n, err
}

// archived counts the documents that are in the archive.
func (s *service) archived() (n int) {
	for _, g := range s.Registrations() {
		if !g.ArchivedAt.IsZero() {
			n++
		}
	}
	return n
}

// account counts the calls and faults that the service's journal names.
func (s *service) account(t *testing.T) (calls int, fired map[string]int) {
	t.Helper()
	f := kit.Value(os.Open(filepath.Join(s.dir, "journal.jsonl")))(t)
	defer f.Close()
	fired = map[string]int{}
	for in := json.NewDecoder(bufio.NewReader(f)); ; {
		var l struct{ Kind, Op, Fault string }
		if err := in.Decode(&l); errors.Is(err, io.EOF) {
			return calls, fired
		} else {
			kit.Must(t, err)
		}
		if l.Kind != "call" {
			continue
		}
		calls++
		if l.Fault != "" {
			fired[fmt.Sprintf("%s %s", l.Op, l.Fault)]++
		}
	}
}
