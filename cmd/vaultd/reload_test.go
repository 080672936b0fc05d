package main_test

import (
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
	"vaultd/internal/selfcheck"
	"vaultd/internal/test/kit"
)

// manager stands for systemd: it keeps what vaultd tells it.
type manager struct {
	path string

	mu   sync.Mutex
	said []string // guarded by mu
}

func newManager(t *testing.T) *manager {
	t.Helper()
	dir, err := os.MkdirTemp("", "vaultd-n-") // t.TempDir is too long for a socket
	kit.Must(t, err)
	m := &manager{path: filepath.Join(dir, "notify")}
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: m.path, Net: "unixgram"})
	kit.Must(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		b := make([]byte, 64<<10)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			m.mu.Lock()
			m.said = append(m.said, string(b[:n]))
			m.mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		c.Close()
		<-done
		os.RemoveAll(dir)
	})
	return m
}

// count says how many messages hold a text.
func (m *manager) count(text string) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.said {
		if strings.Contains(s, text) {
			n++
		}
	}
	return n
}

func (m *manager) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.said[len(m.said)-1]
}

func (m *manager) await(t *testing.T, text string, times int) {
	t.Helper()
	kit.Await(t, fmt.Sprintf("%q said %d times", text, times), func() bool { return m.count(text) >= times })
}

func (s *site) edit(old, text string) {
	s.t.Helper()
	b, err := os.ReadFile(s.config)
	kit.Need(s.t, err == nil && strings.Contains(string(b), old), "no %q in the configuration: %v", old, err)
	kit.Must(s.t, os.WriteFile(s.config, []byte(strings.Replace(string(b), old, text, 1)), 0o640))
}

func numbered(n int) map[string]any {
	return map[string]any{"documentType": "Invoice", "documentId": fmt.Sprint("R-", n), "documentDate": "2026-10-31"}
}

// freeAddress is an address of this machine that nobody listens on.
func freeAddress(t *testing.T) string {
	t.Helper()
	l := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	return l.Addr().String()
}

func getPage(t *testing.T, address, path string) (int, string) {
	t.Helper()
	res := kit.Value(http.Get("http://" + address + path))(t)
	defer res.Body.Close()
	body := kit.Value(io.ReadAll(res.Body))(t)
	return res.StatusCode, string(body)
}

// The whole life under a service manager: ready, status, a good reload that adds a drop and takes one out, a faulty one
// that changes nothing, one that cannot be, the watchdog, and the end. Work goes on all the while and no folder is lost.
func TestRun_I26_ReadyReloadWatchdogStop(t *testing.T) {
	emu, s := served(t, emulator.Config{Window: 10 * time.Second, ArchiveMin: 50 * time.Millisecond, ArchiveMax: 300 * time.Millisecond}, fast)
	address := freeAddress(t)
	s.edit(`http: {listen: ""}`, `http: {listen: "`+address+`"}`)
	m := newManager(t)
	run := s.command("run")
	run.Env = append(os.Environ(), "NOTIFY_SOCKET="+m.path, "WATCHDOG_USEC=3000000")
	// A process that was killed leaves the ledger open: the probe of its pages may take longer than a start may.
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, "state", "ledger.opening"), nil, 0o600))
	p := startProcess(t, run)
	m.await(t, "STATUS=the pages of the ledger are checked", 1)
	m.await(t, fmt.Sprint("EXTEND_TIMEOUT_USEC=", (selfcheck.Longest+10*time.Minute).Microseconds()), 1)
	m.await(t, "READY=1", 1)
	s.drop("acme", "Otto 1", map[string][]byte{"a.pdf": []byte("one")}, numbered(1))
	m.await(t, "last archived", 1)
	m.await(t, "WATCHDOG=1", 2)

	// beta goes, gamma comes, and both kinds of work are under way meanwhile
	s.drop("beta", "Otto 2", map[string][]byte{"a.pdf": []byte("two")}, numbered(2))
	s.edit("{name: beta, path: "+s.dir+"/beta", "{name: gamma, path: "+s.dir+"/gamma")
	kit.Must(t, os.Mkdir(filepath.Join(s.dir, "gamma"), 0o770))
	s.drop("gamma", "Otto 3", map[string][]byte{"a.pdf": []byte("three")}, numbered(3))
	p.hup(t)
	m.await(t, "RELOADING=1\nMONOTONIC_USEC=", 1)
	m.await(t, "STATUS=configuration reloaded", 1)
	kit.Await(t, "gamma's folder is archived", func() bool { return kept(s, "gamma", "Otto 3") })

	// a faulty one: everything is said, nothing changes
	s.edit("settle: 300ms", "settle: soon")
	p.hup(t)
	m.await(t, "READY=1\nSTATUS=configuration NOT reloaded, the one before goes on: "+s.config+":8:", 1)
	s.drop("acme", "Otto 4", map[string][]byte{"a.pdf": []byte("four")}, numbered(4))
	kit.Await(t, "work goes on under the old configuration", func() bool { return kept(s, "acme", "Otto 4") })
	if _, body := getPage(t, address, "/metrics"); !strings.Contains(body, "vaultd_config_reload_success 0\n") || !strings.Contains(body, `vaultd_folders{state="archived"} `) {
		t.Errorf("body = %v, want body with \"vaultd_config_reload_success 0\\n\", body with `vaultd_folders{state=\"archived\"} `", body)
	}

	// what belongs to the ledger cannot change
	s.edit("settle: soon", "settle: 300ms")
	s.edit("environment: test", "environment: production")
	p.hup(t)
	m.await(t, "configuration NOT reloaded, the one before goes on: "+s.config+":2:", 1)
	kit.Holds(t, "status: exit", s.must(exitPerson, "status"), "the one before goes on", "TEST, NO EVIDENCE")

	// the first drop is put back: what was taken from it before goes on
	s.edit("environment: production", "environment: test")
	s.edit("drops:\n", "drops:\n  - {name: beta, path: "+s.dir+"/beta, vault: BETA, settle: 300ms, rescan: 1s}\n")
	p.hup(t)
	m.await(t, "STATUS=configuration reloaded", 2)
	kit.Await(t, "beta's folder is archived", func() bool { return kept(s, "beta", "Otto 2") })
	out, _ := s.vaultd("status")
	kit.Check(t, !strings.Contains(out, "the one before goes on"), "status still complains:\n%s", out)
	code, body := getPage(t, address, "/readyz")
	kit.Check(t, code == 200, "readyz: %d %s", code, body)

	kit.Want(t, "exit", p.stop(t), 0)
	kit.Await(t, "STOPPING=1", func() bool { return m.count("STOPPING=1") == 1 })
	kit.Check(t, m.count("RELOADING=1") == 4 && m.count("READY=1") == 5 && m.last() == "STOPPING=1",
		"said:\n%q", m.said)
	s.must(0, "verify")
	onceEach(t, emu, 4)
}

func kept(s *site, drop, folder string) bool {
	found, err := filepath.Glob(filepath.Join(s.dir, drop, "_archived", "*", folder))
	return err == nil && len(found) == 1
}

// "vaultd reload" waits for the running vaultd's answer and fails with the
// reason of a rejected configuration, whichever check finds it. A file that
// cannot be parsed, or that names another state_dir, still leads to the vaultd
// of the unit, by $STATE_DIRECTORY. The one before stays in use.
func TestReload_I26_FailsWithTheReason(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{})
	s, other := newSite(t, url, fast), newSite(t, url, fast)
	good := kit.Value(os.ReadFile(s.config))(t)
	kit.Want(t, "reload without a running vaultd", s.exit("reload"), exitFailed)
	run, of := s.begin(), other.begin()
	s.env = map[string]string{"STATE_DIRECTORY": "/nowhere:" + s.dir + "/state"}
	secret := s.dir + "/secret"
	for name, row := range map[string]struct {
		old, text string
		prepare   func() error
		says      string
	}{
		"Value":         {"settle: 300ms", "settle: soon", nil, "settle"},
		"Syntax":        {"service:\n", "service:\n\t- {\n", nil, s.config + ":2"},
		"NoStateDir":    {"state_dir: " + s.dir + "/state", "state_dir: [", nil, s.config},
		"Binding":       {"environment: test", "environment: production", nil, "service.environment: cannot change while vaultd runs"},
		"Address":       {url, "http://127.0.0.1:1", nil, "service.base_url: cannot change while vaultd runs"},
		"OtherStateDir": {s.dir + "/state", other.dir + "/state", nil, "state_dir: cannot change while vaultd runs"},
		"Secret":        {"", "", func() error { return os.Chmod(secret, 0o644) }, secret + " has rights 0644"},
		"Credential":    {secret, "credential:none", nil, "CREDENTIALS_DIRECTORY is not set"},
		"Group":         {"vault: BETA,", "vault: BETA, group: no-such-group,", nil, "no-such-group"},
		"Gone":          {"", "", func() error { return os.Remove(s.config) }, "does not exist"},
	} {
		kit.Must(t, os.WriteFile(s.config, []byte(strings.Replace(string(good), row.old, row.text, 1)), 0o640))
		if row.prepare != nil {
			kit.Must(t, row.prepare())
		}
		out, code := s.vaultd("reload")
		kit.Want(t, name+": exit code", code, exitConfig)
		kit.Holds(t, name+": reload", out, "configuration not reloaded, the one before stays in use", row.says)
		kit.Must(t, os.Chmod(secret, 0o600))
	}
	kit.Must(t, os.WriteFile(s.config, good, 0o640))
	out, code := s.vaultd("reload")
	kit.Want(t, "reload of a good one", fmt.Sprint(code, " ", out), "0 configuration reloaded\n")
	kit.Lacks(t, "the other one's log", of.out.String(), "reloaded")
	kit.Want(t, "run: exit", run.stop(t), 0)
}

// The program itself refuses a wrong configuration with the code that systemd
// does not try again, and names what is wrong with file and machine at once.
func TestRun_I26_ChecksTheConfigurationItself(t *testing.T) {
	s := newSite(t, "http://127.0.0.1:1", fast)
	s.edit("settle: 300ms", "settle: soon")
	kit.Must(t, os.Chmod(s.dir+"/secret", 0o644))
	out, code := s.vaultd("run")
	kit.Want(t, "exit code", code, exitConfig)
	kit.Holds(t, "run", out, "settle", "has rights 0644", "2 faults in the configuration")
}

func (s *site) exit(args ...string) int {
	_, code := s.vaultd(args...)
	return code
}

// otherServices are the sections that have an address besides service.
var otherServices = map[string]string{
	"pdf":      "pdf: {base_url: %s, auth: {method: basic, username: demo, secret_file: DIR/secret}}",
	"extracts": "extracts: {base_url: %s, custody: DIR/custody, auth: {method: basic, username: demo, secret_file: DIR/secret}}",
	"network":  "network: {base_url: %s, auth: {method: basic, username: demo, secret_file: DIR/secret}}",
}

// A ledger belongs to one environment and to one address of each service. The
// address of a section is bound by init, or by the first run with that section;
// then every command refuses another one in the same words, until the ledger is
// rebuilt.
func TestBinding_I24_EachServiceHasOneAddress(t *testing.T) {
	t.Parallel()
	for name, form := range otherServices {
		t.Run(name, func(t *testing.T) {
			_, s := served(t, emulator.Config{}, fast)
			kit.Must(t, os.Mkdir(filepath.Join(s.dir, "custody"), 0o700))
			plain := kit.Value(os.ReadFile(s.config))(t)
			at := func(environment, address string) {
				text := strings.Replace(string(plain), "environment: test", "environment: "+environment, 1)
				if address != "" {
					text += strings.ReplaceAll(fmt.Sprintf(form, address), "DIR", s.dir) + "\n"
				}
				kit.Must(t, os.WriteFile(s.config, []byte(text), 0o640))
			}
			s.must(0, "run", "--once") // a ledger from before the section
			at("test", "http://127.0.0.1:1")
			s.vaultd("run", "--once") // the section's service is silent: the binding holds all the same
			copied := filepath.Join(s.dir, "copy.db")
			s.must(0, "backup", copied)
			out, _ := s.vaultd("doctor")
			kit.Holds(t, "doctor", out, name+".base_url http://127.0.0.1:1")
			// Without the section any address is right; the ledger keeps its
			// own.
			at("test", "")
			s.must(0, "run", "--once")

			at("test", "http://127.0.0.1:2")
			words := "the ledger was made for " + name + `.base_url "http://127.0.0.1:1", the configuration says "http://127.0.0.1:2"`
			for args, code := range map[string]int{"run --once": exitConfig, "status": exitPerson, "check --offline": 0, "doctor": exitFailed,
				"reconcile": exitConfig, "restore --reason x " + copied: exitConfig} {
				out, got := s.vaultd(strings.Fields(args)...)
				kit.Want(t, args+": exit code", got, code)
				kit.Holds(t, args, out, words, "use another state_dir")
			}
			at("production", "http://127.0.0.1:1")
			out, code := s.vaultd("status") // run would refuse a state_dir in memory first
			kit.Want(t, "production: exit code", code, exitConfig)
			kit.Holds(t, "production", out, `the ledger was made for environment "test", the configuration says "production"`)

			// The step that a change of service.base_url needs, too.
			at("test", "http://127.0.0.1:2")
			for _, file := range []string{"ledger.db", "ledger.head.1"} {
				kit.Must(t, os.Rename(filepath.Join(s.dir, "state", file), filepath.Join(s.dir, file)))
			}
			s.must(0, "rebuild", "--reason", "wrong base_url")
			s.must(0, "reconcile")
			at("test", "http://127.0.0.1:1")
			kit.Holds(t, "after the rebuild", s.must(exitConfig, "run", "--once"), name+`.base_url "http://127.0.0.1:2"`)
		})
	}
}

// A reload may add a service, which binds the ledger to its address. It refuses
// another address, also where the section was absent in between.
func TestReload_I24_AServiceKeepsItsAddress(t *testing.T) {
	t.Parallel()
	for name, form := range otherServices {
		t.Run(name, func(t *testing.T) {
			_, s := served(t, emulator.Config{}, fast)
			kit.Must(t, os.Mkdir(filepath.Join(s.dir, "custody"), 0o700))
			plain := kit.Value(os.ReadFile(s.config))(t)
			run := s.begin()
			for _, step := range []struct {
				address, says string
				code          int
			}{
				{"http://127.0.0.1:1", "configuration reloaded", 0},
				{"http://127.0.0.1:2", name + ".base_url: cannot change while vaultd runs", exitConfig},
				{"", "configuration reloaded", 0},
				{"http://127.0.0.1:2", "the ledger was made for " + name + ".base_url", exitConfig},
				{"http://127.0.0.1:1", "configuration reloaded", 0},
			} {
				text := string(plain)
				if step.address != "" {
					text += strings.ReplaceAll(fmt.Sprintf(form, step.address), "DIR", s.dir) + "\n"
				}
				kit.Must(t, os.WriteFile(s.config, []byte(text), 0o640))
				out, code := s.vaultd("reload")
				kit.Want(t, fmt.Sprintf("reload with %q: exit code", step.address), code, step.code)
				kit.Holds(t, fmt.Sprintf("reload with %q", step.address), out, step.says)
				kit.Await(t, "the binding", func() bool {
					out, _ := s.vaultd("doctor")
					return strings.Contains(out, name+".base_url http://127.0.0.1:1")
				})
			}
			kit.Want(t, "exit code of run", run.stop(t), 0)
		})
	}
}

// The extracts have an API user of their own: check names another section that
// has it too.
func TestCheck_I24_ExtractsHaveTheirOwnUser(t *testing.T) {
	for user, isNamed := range map[string]bool{"u": true, "books": false} {
		secret := secretFile(t, canary, 0o600)
		text := strings.Replace(smallConfig, "/etc/vaultd/secret", secret, 1) +
			"extracts: {base_url: \"https://books.acme.test\", custody: " + t.TempDir() + ", auth: {method: basic, username: " + user + ", secret_file: " + secret + "}}\n"
		out, _, _ := runHere("check", "--offline", "--config", writeConfig(t, text))
		kit.Want(t, user, strings.Contains(out, "LOOK AT  extracts.auth.username: service.auth has this user too"), isNamed)
	}
}
