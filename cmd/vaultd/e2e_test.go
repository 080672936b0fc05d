package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// binary builds the real program once for all tests that need a process of its own.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "vaultd-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "vaultd")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build: %w: %s", err, out)
	}
	return path, nil
})

// site is one installation: a configuration with two drops against a service.
type site struct {
	t      *testing.T
	dir    string
	config string
	bin    string
}

// newSite writes a configuration for the service at url and makes the ledger.
func newSite(t *testing.T, url, extra string) *site {
	t.Helper()
	bin, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s := &site{t: t, dir: dir, config: filepath.Join(dir, "config.yaml"), bin: bin}
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
		if err != nil {
			t.Fatal(err)
		}
	}
	if out, code := s.vaultd("init"); code != 0 {
		t.Fatalf("init: exit %d: %s", code, out)
	}
	return s
}

// fast is how quickly things go in these tests.
const fast = `upload: {batch_wait: 100ms, window: 10s}
status: {poll_min: 500ms, poll_max: 2s, unclear_grace: 20s}`

// vaultd runs a command to its end and returns what it printed and its exit code.
func (s *site) vaultd(args ...string) (string, int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.bin, append([]string{"--config", s.config}, args...)...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		s.t.Fatalf("vaultd %v: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// start runs a command in the background; what it logs is shown when the test fails.
func (s *site) start(args ...string) *process {
	s.t.Helper()
	return startProcess(s.t, s.command(args...))
}

func (s *site) command(args ...string) *exec.Cmd {
	return exec.Command(s.bin, append([]string{"--config", s.config}, args...)...)
}

type process struct {
	*exec.Cmd
	out  *sharedText
	done chan struct{}
}

// sharedText is what a process has written so far, for those who read it while it writes.
type sharedText struct {
	mu   sync.Mutex
	text bytes.Buffer // guarded by mu
}

func (s *sharedText) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *sharedText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd, out: &sharedText{}, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.out, p.out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the exit code is in ProcessState
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-p.done
		if t.Failed() {
			t.Logf("%v:\n%s", cmd.Args, tail(p.out.String(), 4000))
		}
	})
	return p
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// end waits for the process and returns its exit code.
func (p *process) end(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
		return p.ProcessState.ExitCode()
	case <-time.After(within):
		t.Fatalf("%v still runs after %v", p.Args, within)
		return -1
	}
}

// serveEmulator runs the service in this process, so that tests see what it saw.
func serveEmulator(t *testing.T, cfg emulator.Config) (*emulator.Server, string) {
	t.Helper()
	cfg.Dir, cfg.Username, cfg.Secret = t.TempDir(), "demo", "demo"
	cfg.Vaults = []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}}
	emu, err := emulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		s.t.Fatal(err)
	}
}

func exactlyOnce(t *testing.T, emu *emulator.Server, n int) {
	t.Helper()
	archived := map[string]int{}
	for _, seen := range emu.Registrations() {
		if seen.State == "ArchivingSuccessful" {
			archived[seen.ClientUUID]++
		}
	}
	for id, times := range archived {
		if times != 1 {
			t.Errorf("%s is archived %d times", id, times)
		}
	}
	if len(archived) != n {
		t.Errorf("%d documents are archived, dropped were %d", len(archived), n)
	}
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
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
			p := s.start("run", "-v")
			op := map[string]string{"WhileUploading": "upload", "WhileRegistering": "register", "WhileAsking": "status", "WhileIdle": "status"}[name]
			waitFor(t, "the service to be asked", func() bool { return emu.CountCalls(op) > 0 })
			began := time.Now()
			out, code := s.vaultd("run")
			if took := time.Since(began); code != exitTemporary || !strings.Contains(out, fmt.Sprint("process ", p.Process.Pid)) || took > 30*time.Second {
				t.Errorf("second run: exit %d after %v: %s", code, took, out)
			}
			began = time.Now()
			if err := p.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := p.end(t, 40*time.Second); code != 0 {
				t.Errorf("SIGTERM: exit %d after %v", code, time.Since(began))
			}
			if out, code := s.vaultd("verify", "--whole"); code != 0 {
				t.Errorf("verify: exit %d\n%s", code, out)
			}
		})
	}
}

func waitFor(t *testing.T, what string, ready func() bool) {
	t.Helper()
	const patience = 2 * time.Minute // other tests may keep the machine busy
	for began := time.Now(); time.Since(began) < patience; {
		if ready() {
			return
		}
		time.Sleep(50 * time.Millisecond) // a process of its own has no virtual time
	}
	t.Fatalf("waited %v in vain for %s", patience, what)
}
