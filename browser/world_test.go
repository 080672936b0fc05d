package browser

import (
	"vaultd/internal/test/kit"

	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/emulator"
)

// buildProgram builds vaultd as it is delivered, and returns its path.
func buildProgram(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "vaultd")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-o", path, "./cmd/vaultd")
	cmd.Dir = ".." // the versions of that module's go.mod count, not those of this one
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	out, err := cmd.CombinedOutput()
	kit.Need(t, err == nil, "build vaultd: %v\n%s", err, out)
	return path
}

// world is a service, a drop folder and a daemon on this machine, in a folder of their own.
type world struct {
	t       *testing.T
	program string
	dir     string
	url     string // of the pages
	service *emulator.Server
	daemon  *exec.Cmd // nil: none runs
}

// newWorld returns a world without users, whose daemon does not run yet; newWorldWithUsers one whose pages ask who is there, and that has books.
func newWorld(t *testing.T, program string) *world {
	t.Helper()
	return makeWorld(t, program, func(_, _ string) string { return "" })
}

func newWorldWithUsers(t *testing.T, program string) *world {
	t.Helper()
	w := makeWorld(t, program, func(dir, service string) string { return usersFile(dir) + booksConfig(dir, service) })
	w.addUsers()
	return w
}

// makeWorld makes a world. more gives what the configuration says below http beside the address, and behind http.
func makeWorld(t *testing.T, program string, more func(dir, service string) string) *world {
	t.Helper()
	w := &world{t: t, program: program, dir: t.TempDir()}
	service, err := emulator.New(emulator.Config{
		Dir: filepath.Join(w.dir, "service"), Username: "demo", Secret: "demo", Vaults: []emulator.Vault{{ID: "ACME", Name: "Acme GmbH"}},
		ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond,
	})
	kit.Must(t, err)
	w.service = service
	server := httptest.NewServer(service)
	t.Cleanup(func() {
		server.Close()
		err := service.Close()
		kit.Check(t, err == nil, "error: %v", err)
	})
	address := freeAddress(t)
	w.url = "http://" + address
	w.write("secret", "demo\n", 0o600)
	w.write("config.yaml", w.config(server.URL, address)+more(w.dir, server.URL), 0o640)
	for _, folder := range []string{"acme-in", "state"} {
		kit.Must(t, os.Mkdir(filepath.Join(w.dir, folder), 0o770))
	}
	w.run("init")
	return w
}

func (w *world) config(service, address string) string {
	return fmt.Sprintf(`service:
  environment: test
  base_url: %[2]s
  auth: {method: basic, username: demo, secret_file: %[1]s/secret}
state_dir: %[1]s/state
spool: {min_free: 1MB}
drops:
  - {name: acme-in, path: %[1]s/acme-in, vault: ACME, settle: 200ms, rescan: 500ms}
upload: {batch_wait: 100ms, window: 1m}
status: {poll_min: 1s, poll_max: 2s, unclear_grace: 1m}
billing: {price_per_transaction: 0.08, currency: EUR}
http:
  listen: %[3]s
`, w.dir, service, address)
}

// freeAddress returns a loopback address that nothing listens on. The pages must have the same one after a restart.
func freeAddress(t *testing.T) string {
	t.Helper()
	l := kit.Value(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	kit.Must(t, l.Close())
	return l.Addr().String()
}

func (w *world) write(name, text string, mode os.FileMode) {
	w.t.Helper()
	kit.Must(w.t, os.WriteFile(filepath.Join(w.dir, name), []byte(text), mode))
}

// run runs a command of vaultd and returns what it prints. A command that says that a person is needed has not failed.
func (w *world) run(args ...string) string {
	w.t.Helper()
	var out, talk bytes.Buffer
	cmd := exec.CommandContext(w.t.Context(), w.program, append([]string{"--config", filepath.Join(w.dir, "config.yaml")}, args...)...)
	cmd.Stdout, cmd.Stderr = &out, &talk
	const needsPerson, notComplete = 3, 4
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && (!errors.As(err, &exit) || exit.ExitCode() != needsPerson && exit.ExitCode() != notComplete) {
		w.t.Fatalf("vaultd %s: %v\n%s%s", strings.Join(args, " "), err, &out, &talk)
	}
	return out.String()
}

// start starts the daemon and waits until it answers. A daemon that still runs when the test ends is killed.
func (w *world) start() {
	w.t.Helper()
	log, err := os.OpenFile(filepath.Join(w.dir, "vaultd.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	kit.Must(w.t, err)
	defer log.Close()
	// Not of the test's context: it ends before the cleanups, and the daemon would be killed with the last answer half-way.
	cmd := exec.CommandContext(context.WithoutCancel(w.t.Context()), w.program, "--config", filepath.Join(w.dir, "config.yaml"), "run")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	kit.Must(w.t, cmd.Start())
	w.daemon = cmd
	w.t.Cleanup(w.kill)
	client := http.Client{Timeout: 5 * time.Second}
	w.await("the daemon answers", func() bool {
		answer, err := client.Get(w.url + "/livez")
		if err != nil {
			return false
		}
		_, err = io.Copy(io.Discard, answer.Body)
		return errors.Join(err, answer.Body.Close()) == nil && answer.StatusCode == http.StatusOK
	})
}

// kill ends the daemon as kill -9 does, if it runs.
func (w *world) kill() {
	if w.daemon == nil {
		return
	}
	err := w.daemon.Process.Kill()
	kit.Check(w.t, err == nil, "kill the daemon: %v", err)
	_ = w.daemon.Wait() // says that it was killed
	w.daemon = nil
	if w.t.Failed() {
		if log, err := os.ReadFile(filepath.Join(w.dir, "vaultd.log")); err == nil {
			w.t.Logf("the daemon's log ends so:\n%s", log[max(0, len(log)-4000):])
		}
	}
}

// await asks again and again until something is so, for at most a minute.
func (w *world) await(what string, isSo func() bool) {
	w.t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for begun := time.Now(); !isSo(); <-tick.C {
		kit.Need(w.t, time.Since(begun) <= time.Minute, "not within a minute: %s", what)
	}
}

// listed is one line of "vaultd list --json".
type listed struct {
	Key, Folder, State, Source string
}

// list returns the entries by folder.
func (w *world) list() map[string]listed {
	w.t.Helper()
	entries := map[string]listed{}
	for d := json.NewDecoder(strings.NewReader(w.run("list", "--json"))); d.More(); {
		var l listed
		kit.Must(w.t, d.Decode(&l))
		entries[l.Folder] = l
	}
	return entries
}

// breakService lets every call to the service fail; mendService ends that.
func (w *world) breakService() {
	w.t.Helper()
	rule, err := emulator.ParseRule("*:503:1")
	if err == nil {
		err = w.service.SetFaults(emulator.Faults{Rules: []emulator.Rule{rule}})
	}
	kit.Must(w.t, err)
}

func (w *world) mendService() {
	w.t.Helper()
	kit.Must(w.t, w.service.SetFaults(emulator.Faults{}))
}
