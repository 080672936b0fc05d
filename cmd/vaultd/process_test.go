package main_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/test/kit"
)

// built is the real program, made once for all tests that need a process.
var built = sync.OnceValues(func() (string, error) {
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

// realProgram returns the path of the real program.
func realProgram(t *testing.T) string {
	t.Helper()
	path := kit.Value(built())(t)
	return path
}

// vaultd runs a command to its end, in this process, and returns what it
// printed and its exit code.
func (s *site) vaultd(args ...string) (string, int) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 5*time.Minute)
	defer cancel()
	var out sharedText
	code := program.Run(ctx, s.line(args), strings.NewReader(""), &out, &out, s.lookup)
	return out.String(), code
}

// runHere runs a command line to its end, in this process.
func runHere(args ...string) (stdout, stderr string, code int) {
	var out, errs bytes.Buffer
	code = program.Run(context.Background(), args, strings.NewReader(""), &out, &errs, os.LookupEnv)
	return out.String(), errs.String(), code
}

// start runs a command in the background, in this process. What it prints is
// shown when the test fails.
func (s *site) start(args ...string) *process {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p := &process{name: strings.Join(args, " "), out: &sharedText{}, done: make(chan struct{}), interrupt: func() error { cancel(); return nil }}
	go func() {
		defer close(p.done)
		p.code = program.Run(ctx, s.line(args), strings.NewReader(""), p.out, p.out, s.lookup)
	}()
	s.t.Cleanup(func() {
		cancel()
		p.end(s.t, time.Minute)
		p.show(s.t)
	})
	return p
}

// spawn runs a command in the background in a process. A process is needed for
//
//   - kill -9: the crash rows of the catalog, the books, the extracts, the
//     single PDFs, restore and rebuild;
//   - signals: TestRun_I16_SignalAndSecondRun, where a second process asks for
//     the lock, TestRun_I26_ReadyReloadWatchdogStop and the reload of
//     TestPDF_I24_AddressCorrectedByReload;
//   - another user: TestHostile_I19_I21_I23, TestSamba and the rows of
//     TestFaults_EachIsTold that lack a right;
//   - memory and descriptors, read in /proc: TestCanary_I7_NothingGetsOut,
//     TestHostile_I19_I21_I23;
//   - other programs that start it: bash (TestSuggest_InBash), make install, the
//     pages for newcomers.
//
// Tests that mount run once more as a process, see apart; the commands run
// inside that one.
func (s *site) spawn(args ...string) *process {
	s.t.Helper()
	return startProcess(s.t, s.command(args...))
}

// command returns the process of a command, which is not started.
func (s *site) command(args ...string) *exec.Cmd {
	s.t.Helper()
	return exec.Command(realProgram(s.t), s.line(args)...)
}

func (s *site) line(args []string) []string { return append([]string{"--config", s.config}, args...) }

func (s *site) lookup(name string) (string, bool) {
	if value, ok := s.env[name]; ok {
		return value, true
	}
	return os.LookupEnv(name)
}

// process is a command in the background: in this process, or in its own.
type process struct {
	*exec.Cmd        // nil: it runs in this process
	name      string // of the command
	out       *sharedText
	done      chan struct{}
	code      int          // once done is closed
	interrupt func() error // asks it to end
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
	p := &process{Cmd: cmd, name: strings.Join(cmd.Args, " "), out: &sharedText{}, done: make(chan struct{})}
	p.interrupt = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.Stdout, cmd.Stderr = p.out, p.out
	kit.Must(t, cmd.Start())
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // the exit code is in ProcessState
		p.code = cmd.ProcessState.ExitCode()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		<-p.done
		p.show(t)
	})
	return p
}

// show logs what the process printed where the test failed.
func (p *process) show(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.Logf("%s:\n%s", p.name, tail(p.out.String(), 4000))
	}
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// stop asks the process to end, as SIGTERM does, and returns its exit code.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	if err := p.interrupt(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	return p.end(t, 40*time.Second)
}

// end waits for the process and returns its exit code.
func (p *process) end(t *testing.T, within time.Duration) int {
	t.Helper()
	select {
	case <-p.done:
	case <-time.After(within):
		t.Fatalf("%s still runs after %v", p.name, within)
	}
	return p.code
}

// kill ends a process at once.
func (p *process) kill(t *testing.T) {
	t.Helper()
	kit.Must(t, p.Process.Kill())
	<-p.done
}

func (p *process) hup(t *testing.T) {
	t.Helper()
	kit.Must(t, p.Process.Signal(syscall.SIGHUP))
}

// waitFor is kit.Await.
func waitFor(t *testing.T, what string, ready func() bool) { t.Helper(); kit.Await(t, what, ready) }

// awaitSocket waits until the process listens on its socket: one that was
// killed leaves its own.
func (p *process) awaitSocket(t *testing.T, stateDir string) {
	t.Helper()
	kit.Await(t, "the daemon", func() bool {
		select {
		case <-p.done:
			t.Fatalf("%s ended with %d: %s", p.name, p.code, p.out)
		default:
		}
		conn, err := net.Dial("unix", filepath.Join(stateDir, "vaultd.sock"))
		if err != nil {
			return false
		}
		conn.Close()
		return true
	})
}
