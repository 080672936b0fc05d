package main_test

import (
	"vaultd/internal/test/kit"

	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// site is one installation: a configuration with two drops against a service.
type site struct {
	t      *testing.T
	dir    string
	config string
	env    map[string]string // in addition to the environment of the tests
}

// newSite writes a configuration for the service at url and makes the ledger.
func newSite(t *testing.T, url, extra string) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, dir: dir, config: filepath.Join(dir, "config.yaml")}
	text := fmt.Sprintf(`service:
  environment: test
  base_url: %[2]s
  auth: {method: basic, username: demo, secret_file: %[1]s/secret}
state_dir: %[1]s/state
spool: {min_free: 1MB}
drops:
  - {name: acme, path: %[1]s/acme, vault: ACME, settle: 300ms, rescan: 1s}
  - {name: beta, path: %[1]s/beta, vault: BETA, settle: 300ms, rescan: 1s}
%[3]s
http: {listen: ""}
`, dir, url, extra)
	for _, err := range []error{
		os.WriteFile(s.config, []byte(text), 0o640),
		os.WriteFile(filepath.Join(dir, "secret"), []byte("demo\n"), 0o600),
		os.Mkdir(filepath.Join(dir, "acme"), 0o770), os.Mkdir(filepath.Join(dir, "beta"), 0o770),
	} {
		kit.Must(t, err)
	}
	if out, code := s.vaultd("init"); code != 0 {
		t.Fatalf("init: exit %d: %s", code, out)
	}
	return s
}

// fast is how quickly things go in these tests.
const fast = `upload: {batch_wait: 100ms, window: 10s}
status: {poll_min: 500ms, poll_max: 2s, unclear_grace: 20s}`

// serveEmulator runs the service in this process, so that tests see what it saw.
func serveEmulator(t *testing.T, cfg emulator.Config) (*emulator.Server, string) {
	t.Helper()
	cfg.Dir, cfg.Username, cfg.Secret = t.TempDir(), "demo", "demo"
	cfg.Vaults = []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}}
	emu, err := emulator.New(cfg)
	kit.Must(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	kit.Must(t, err)
	srv := &http.Server{Handler: emu}
	done := make(chan struct{})
	go func() { defer close(done); _ = srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		<-done
		if err := emu.Close(); err != nil {
			t.Error(err)
		}
	})
	return emu, "http://" + l.Addr().String()
}

// fill drops n folders of mixed size.
func (s *site) fill(n int, seed uint64) {
	s.t.Helper()
	r := rand.New(rand.NewChaCha8([32]byte{byte(seed)}))
	for i := range n {
		size := 500 + r.IntN(20_000)
		if i%40 == 7 {
			size = 300_000 + r.IntN(2_500_000)
		}
		content := make([]byte, size)
		for j := range content {
			content[j] = byte(r.Uint32())
		}
		s.drop([]string{"acme", "beta"}[i%2], fmt.Sprintf("Rechnung %04d", i), map[string][]byte{"scan.bin": content},
			map[string]any{"documentType": "Invoice", "documentId": fmt.Sprint("R-", i), "documentDate": "2026-10-31"})
	}
}

// drop makes one folder; its sidecar comes last.
func (s *site) drop(drop, folder string, files map[string][]byte, sidecar map[string]any) {
	s.t.Helper()
	dir := filepath.Join(s.dir, drop, folder)
	meta, err := json.Marshal(sidecar)
	if err == nil {
		err = os.Mkdir(dir, 0o770)
	}
	for name, content := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), content, 0o660)
		}
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "metadata.json"), meta, 0o660)
	}
	kit.Must(s.t, err)
}

// SIGTERM ends within ten seconds with 0, whatever is under way; I16: a second run on
// the same state ends at once and says who holds it.
func TestRun_I16_SignalAndSecondRun(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]emulator.Config{
		"WhileUploading":   {Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "upload", Rate: 1, Fault: emulator.Fault{DelayAfter: time.Minute}}}}},
		"WhileRegistering": {Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "register", Rate: 1, Fault: emulator.Fault{Delay: time.Minute}}}}},
		"WhileAsking":      {ArchiveMin: time.Hour, ArchiveMax: time.Hour, Faults: emulator.Faults{Rules: []emulator.Rule{{Op: "status", Rate: 1, Fault: emulator.Fault{Delay: time.Minute}}}}},
		"WhileIdle":        {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			emu, url := serveEmulator(t, cfg)
			s := newSite(t, url, fast)
			s.fill(3, 2)
			p := s.spawn("run", "-v")
			op := map[string]string{"WhileUploading": "upload", "WhileRegistering": "register", "WhileAsking": "status", "WhileIdle": "status"}[name]
			waitFor(t, "the service to be asked", func() bool { return emu.CountCalls(op) > 0 })
			began := time.Now()
			out, code := s.vaultd("run")
			if took := time.Since(began); code != exitTemporary || !strings.Contains(out, fmt.Sprint("process ", p.Process.Pid)) || took > 30*time.Second {
				t.Errorf("second run: exit %d after %v: %s", code, took, out)
			}
			began = time.Now()
			if code := p.stop(t); code != 0 {
				t.Errorf("SIGTERM: exit %d after %v", code, time.Since(began))
			}
			if out, code := s.vaultd("verify", "--whole"); code != 0 {
				t.Errorf("verify: exit %d\n%s", code, out)
			}
		})
	}
}
