package main_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/test/kit"
	"vaultd/testdata"
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
	var out kit.Text
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
	p := &process{name: strings.Join(args, " "), out: &kit.Text{}, done: make(chan struct{}), interrupt: func() error { cancel(); return nil }}
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
	out       *kit.Text
	done      chan struct{}
	code      int          // once done is closed
	interrupt func() error // asks it to end
}

func startProcess(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd, name: strings.Join(cmd.Args, " "), out: &kit.Text{}, done: make(chan struct{})}
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
	err := p.interrupt()
	kit.Need(t, err == nil || errors.Is(err, os.ErrProcessDone), "error: %v", err)
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

// The demo drops every sample there is, and each ends as it was made to end: a clerk's mistake, a repetition, a refusal of the archive and a
// rejection after the delivery are among them. What was booked is compared, and one invoice was never dropped.
func TestDemo_EachSampleEndsAsItWasMadeTo(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	dir := filepath.Join(t.TempDir(), "demo")
	if code := program.Run(t.Context(), []string{"demo", "--dir", dir}, strings.NewReader(""), &out, &errs, noEnv); code != exitDone {
		t.Fatalf("exit %d: %s%s", code, &out, &errs)
	}
	kit.Lacks(t, "the demo's times", out.String(), " UTC")
	sums, _, _ := runHere("--config", filepath.Join(dir, "config.yaml"), "books", "--from", "2026-10-01", "--to", "2026-10-31")
	kit.Holds(t, "books", sums, "EUR")
	huge := regexp.MustCompile(`\d,\d{3},\d{3}`).FindString(sums)
	kit.Check(t, huge == "", "sum = %s, want one of an invoice:\n%s", huge, sums)
	states := map[string]string{}
	listed, _, code := runHere("--config", filepath.Join(dir, "config.yaml"), "list", "--json")
	for line := range strings.Lines(listed) {
		var row struct{ Drop, Folder, State string }
		err := json.Unmarshal([]byte(line), &row)
		kit.Need(t, err == nil, "exit %d, %v: %s", code, err, line)
		states[row.Drop+"/"+row.Folder] = row.State
	}
	want := map[string]string{
		"ap-scans/scan1 nochmal.pdf": "duplicate", "acme-in/Otto 19 Kopie": "duplicate", "acme-in/Schulz 3": "rejected", "acme-in/Kern 6": "quarantined", "acme-out/GS 12": "rejected",
		"acme-out/RE 5001": "delivered", "acme-out/RE 5002": "delivered",
	}
	for files, pattern := range map[*embed.FS]string{&testdata.Drops: "*/*", &testdata.Network: "acme-out/*"} {
		names, err := fs.Glob(files, pattern)
		kit.Need(t, err == nil && len(names) >= 3, "names = %v, err = %v, want no error, len(names) >= 3", names, err)
		for _, name := range names {
			kit.Want(t, name, states[name], cmp.Or(want[name], "archived"))
		}
	}
	said := regexp.MustCompile(`[0-9.,]+ [kM]?B`).ReplaceAllString(out.String(), "SIZE")
	kit.Holds(t, "said", said,
		"BALANCE  seen 24 = archived 13 + delivered 5 + rejected 3 + quarantined 1 + duplicate 2 + open 0  agrees",
		"NETWORK  1 delivered, 1 REJECTED AFTER DELIVERY, 1 refused before anything was sent", `"sentTo.id": a GLN has 13 digits, this has 12.`, "2 came in",
		"see _rejected/Schulz 3/_REASON.txt: documentDate not understood", "archiving refused by configuration of the vault; a person must decide",
		"BOOKED   1 Oct 2026 to 31 Oct 2026: 12 invoices, 9 archived, 3 not", "No delta covers 30 Oct 2026",
		"S-2026-118      Sommer Druck      2026-10-28  never dropped", "rejected, see Schulz 3", "quarantined, see Kern 6",
	)
}

// What the README shows of a sample is in testdata, letter by letter.
func TestSamples_AsTheReadmeShowsThem(t *testing.T) {
	const shown = "acme-in/Müller 4711"
	readme := kit.Value(os.ReadFile("../../README.md"))(t)
	meta := kit.Value(testdata.Drops.ReadFile(shown + "/metadata.json"))(t)
	indented := "    " + strings.ReplaceAll(strings.TrimSpace(string(meta)), "\n", "\n    ")
	if text := string(readme); !strings.Contains(text, "testdata/"+shown) || !strings.Contains(text, indented) {
		t.Errorf("the README does not show testdata/%s as it is:\n%s", shown, indented)
	}
}

// standIn answers on the socket of a shelf in place of a daemon, with what
// answer writes and the exit code that it returns.
func (s *shelf) standIn(answer func(out io.Writer) (exit int)) {
	s.t.Helper()
	l := kit.Value(net.Listen("unix", filepath.Join(s.cfg.StateDir, "vaultd.sock")))(s.t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			if _, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				frames := json.NewEncoder(conn)
				exit := answer(framed{frames})
				_ = frames.Encode(map[string]int{"exit": exit}) // the client tells
			}
			conn.Close()
		}
	}()
	s.t.Cleanup(func() { l.Close(); <-done })
}

// framed writes each piece of output as the socket's protocol says.
type framed struct{ to *json.Encoder }

func (f framed) Write(b []byte) (int, error) {
	return len(b), f.to.Encode(map[string][]byte{"out": b})
}

// ask runs a command in real time and returns its exit code and what it wrote.
func (s *shelf) ask(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	stdout, stderr, code = runHere(append([]string{"--config", s.config}, args...)...)
	return code, stdout, stderr
}

// archiveIs lets the commands of a shelf reach an archive that answers with h.
func (s *shelf) archiveIs(h http.HandlerFunc) {
	s.t.Helper()
	srv := httptest.NewServer(h)
	s.t.Cleanup(srv.Close)
	s.edit("https://vault.example", srv.URL)
	s.edit("/etc/vaultd/secret", secretFile(s.t, "demo\n", 0o600))
}

// reach runs a command in real time with the ledger closed: what waits for the network
// cannot wait in a bubble.
func (s *shelf) reach(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	kit.Must(s.t, s.ledger.Close())
	stdout, stderr, code = runHere(append([]string{"--config", s.config}, args...)...)
	s.ledger.Open()
	checkOutput(s.t, nil, []byte(stderr))
	return stdout, stderr, code
}

// ended takes what a command wrote and its exit code. The check that it gives
// fails the test unless the code is as wanted and the parts are in the text.
func ended(text string, code int) func(t *testing.T, what string, want int, parts ...string) {
	return func(t *testing.T, what string, want int, parts ...string) {
		t.Helper()
		kit.Check(t, code == want, "%s: exit %d, want %d:\n%s", what, code, want, text)
		kit.Holds(t, what, text, parts...)
	}
}

// answered looks into what a command wrote to its output.
func answered(stdout, _ string, code int) func(*testing.T, string, int, ...string) {
	return ended(stdout, code)
}

// refused looks into what a command wrote to its error output.
func refused(_, stderr string, code int) func(*testing.T, string, int, ...string) {
	return ended(stderr, code)
}
