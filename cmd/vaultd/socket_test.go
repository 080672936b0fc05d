package main_test

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/statedir"
	"vaultd/internal/test/kit"
)

// startDaemon runs a daemon that knows of one folder and packs nothing, for that
// is held. It runs until stop, or the end of the test.
func startDaemon(t *testing.T) (cfg config.Config, configPath string, stop func()) {
	t.Helper()
	s := newShelf(t)
	s.forDaemon()
	s.edit("drops:", "spool: {min_free: 1MB}\ndrops:")
	s.tell("Otto\x1b 19", time.Now(), nil, ledger.Held{By: ledger.Operator{UID: 7}})
	return s.cfg, s.config, s.daemon()
}

// forDaemon completes the configuration and binds the ledger, which must be
// empty, so that a daemon starts and reaches nothing.
func (s *shelf) forDaemon() {
	s.t.Helper()
	s.edit("https://vault.example", "http://127.0.0.1:1")
	s.edit("/etc/vaultd/secret", secretFile(s.t, "demo\n", 0o600))
	s.edit("/srv/invoices/acme-in", s.t.TempDir())
	s.edit("drops:", "http: {listen: \"\"}\ndrops:")
	out, errs, code := s.reach("init")
	kit.Need(s.t, code == exitDone, "init: exit %d: %s%s", code, out, errs)
}

// daemon runs the daemon of a shelf until stop, or the end of the test.
func (s *shelf) daemon() (stop func()) {
	s.t.Helper()
	kit.Must(s.t, s.ledger.Close())
	p := (&site{t: s.t, config: s.config}).start("run")
	p.awaitSocket(s.t, s.cfg.StateDir)
	return func() {
		s.t.Helper()
		code := p.stop(s.t)
		kit.Check(s.t, code == exitDone, "the daemon ends with %d: %s", code, p.out)
	}
}

// frames asks on the socket by hand.
func frames(t *testing.T, stateDir, request string) (stdout, stderr string, code int) {
	t.Helper()
	return program.FramesAt(t, filepath.Join(stateDir, "vaultd.sock"), request)
}

// The same command gives the same answer inside the daemon and, when that is down, beside it.
func TestControl_SameCommandInsideAndBeside(t *testing.T) {
	_, path, stop := startDaemon(t)
	commands := [][]string{
		{"list", "--limit", "3"}, {"list", "--json", "--state=open"}, {"show", "Otto\x1b 19"}, {"verify", "--whole", "--json"},
		{"show", "--", "--json"}, {"list", "--state=archved"}, {"fetch", "Otto\x1b 19", "-o", "-"},
	}
	answers := func() (all []string) {
		for _, c := range commands {
			out, errs, code := runHere(append([]string{"--config", path}, c...)...)
			all = append(all, fmt.Sprintf("%v: exit %d\n%s%s", c, code, out, errs))
		}
		return all
	}
	awaitCatalog(t, path)
	inside := answers()
	if out, _, _ := runHere("--config", path, "status"); strings.Contains(out, "not running") {
		t.Errorf("status did not run inside\n%s", out)
	}
	stop()
	beside := answers()
	if out, _, _ := runHere("--config", path, "status"); !strings.Contains(out, "not running") {
		t.Errorf("the daemon was stopped\n%s", out)
	}
	for i := range commands {
		kit.Want(t, "inside", inside[i], beside[i])
	}
	kit.Holds(t, "an argument was taken for a flag", inside[4], "exit 1\n", `nothing is known as "--json"`)
}

func TestControl_OnlyWhatReads(t *testing.T) {
	cfg, path, _ := startDaemon(t)
	line := func(args ...string) string {
		b := kit.Value(json.Marshal(map[string][]string{"args": args}))(t)
		return string(b) + "\n"
	}
	kit.Rows(t, map[string]string{
		"NotAllowed":     line("init"),
		"AnotherDaemon":  line("run", "--once"),
		"FlagFirst":      line("--config", "/etc/passwd", "init"),
		"Nothing":        line(),
		"NoJSON":         "list\n",
		"TooLong":        line("list", strings.Repeat("x", 64<<10)),
		"WritesAFile":    line("fetch", "Otto 19", "--output="+filepath.Join(cfg.StateDir, "config.yaml"), "--force"),
		"DefaultFile":    line("fetch", "Otto 19"),
		"UnknownFlag":    line("list", "--nonsense"),
		"CompletionTrap": line("__complete", "list"),
		"EndlessWatch":   line("status", "--watch"),
	}, func(t *testing.T, request string) {
		out, errs, code := frames(t, cfg.StateDir, request)
		kit.Check(t, code == exitUsage && out == "" && strings.HasPrefix(errs, "vaultd: "),
			"exit %d: %q %q", code, out, errs)
	})
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "service:") {
		t.Error("the configuration was written over")
	}
	kit.Want(t, "info.Mode()", kit.Value(os.Stat(filepath.Join(cfg.StateDir, "vaultd.sock")))(t).Mode().Perm(), 0o660)
}

// Two commands at once, without a daemon: the second waits for the first.
func TestReach_WaitsForAnotherCommand(t *testing.T) {
	cfg, path, stop := startDaemon(t)
	stop()
	_, closeLedger, err := statedir.OpenLedger(cfg.StateDir, cfg.Location, nil)
	kit.Must(t, err)
	released := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { released <- closeLedger() })
	out, errs, code := runHere("--config", path, "list", "--json")
	kit.Check(t, code == exitDone && strings.Count(out, "\n") == 1, "exit %d\n%s%s", code, out, errs)
	kit.Want(t, "the error", <-released, nil)
}

// I16, I19: what is in the place of the socket is removed only when it is the socket of a daemon that is gone.
func TestControl_I16_OnlyADeadSocketIsRemoved(t *testing.T) {
	cfg, path, stop := startDaemon(t)
	socket := filepath.Join(cfg.StateDir, "vaultd.sock")
	out, errs, code := runHere("--config", path, "run")
	kit.Check(t, code == exitTemporary, "beside a daemon: exit %d: %s%s", code, out, errs)
	stop()
	for name, put := range map[string]func() error{
		"File": func() error { return os.WriteFile(socket, []byte("mine"), 0o600) },
		"Link": func() error { return os.Symlink("/etc/passwd", socket) },
		"FIFO": func() error { return syscall.Mkfifo(socket, 0o600) },
	} {
		kit.Must(t, put())
		before := kit.Value(os.Lstat(socket))(t)
		out, errs, code := runHere("--config", path, "run")
		kit.Check(t, code != exitDone && strings.Contains(errs, "vaultd.sock"), "%s: exit %d: %s%s", name, code, out, errs)
		after, err := os.Lstat(socket)
		kit.Check(t, err == nil && os.SameFile(before, after), "%s was removed: %v", name, err)
		kit.Must(t, os.Remove(socket))
	}
	dead := kit.Value(net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"}))(t)
	dead.SetUnlinkOnClose(false)
	dead.Close()
	out, errs, code = runHere("--config", path, "list", "--json")
	kit.Check(t, code == exitDone && strings.Contains(out, "Otto"), "beside a dead socket: exit %d: %s%s", code, out, errs)
	(&site{t: t, config: path}).start("run").awaitSocket(t, cfg.StateDir)
	if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 || info.Mode().Type() != os.ModeSocket {
		t.Errorf("info.Mode() = %v, err = %v, want no error, info.Mode().Perm() = 0o660, info.Mode().Type() = os.ModeSocket", info.Mode(), err)
	}
}

// The path of a socket has a limit of the kernel's.
func TestControl_PathTooLong(t *testing.T) {
	s := newShelf(t)
	s.edit("/etc/vaultd/secret", secretFile(t, "demo\n", 0o600))
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	s.edit(s.cfg.StateDir, long)
	kit.Must(t, s.ledger.Close())
	kit.Must(t, os.Rename(s.cfg.StateDir, long))
	out, errs, code := runHere("--config", s.config, "run")
	kit.Check(t, code == exitConfig && strings.Contains(errs, "longer than"), "exit %d: %s%s", code, out, errs)
}

// Files' rights let in those who may ask; the ledger beside the socket stays closed to them.
func TestControl_I27_RightsOfTheSocket(t *testing.T) {
	for groups, rights := range map[string][2]os.FileMode{
		"": {0o660, 0o700},
		fmt.Sprintf("%q", fmt.Sprint(os.Getegid())): {0o660, 0o710},
		fmt.Sprintf(`"%d", "2000"`, os.Getegid()):   {0o666, 0o711},
	} {
		s := newShelf(t)
		s.forDaemon()
		s.edit("drops:", "access: {groups: ["+groups+"]}\ndrops:")
		stop := s.daemon()
		// The socket is there before the rights are: until then state_dir is closed.
		for i, path := range []string{filepath.Join(s.cfg.StateDir, "vaultd.sock"), s.cfg.StateDir} {
			kit.Await(t, fmt.Sprintf("groups [%s]: %s to have the rights %v", groups, path, rights[i]), func() bool {
				info, err := os.Stat(path)
				return err == nil && info.Mode().Perm() == rights[i]
			})
		}
		stop()
	}
}

// awaitCatalog waits until the daemon has made its catalog.
func awaitCatalog(t *testing.T, config string) {
	t.Helper()
	kit.Await(t, "the catalog", func() bool {
		out, _, _ := runHere("--config", config, "doctor")
		return strings.Contains(out, "OK    catalog")
	})
}

// uncounted is a number in front of a plural that nobody has counted: one of them would be "1 bytes".
var uncounted = regexp.MustCompile(`%d (?:bytes|lines|entries|folders|documents|files|registrations|times)\b`)

// What a person reads says "1 byte" and "2 bytes": counted things go through FormatCount.
func TestWords_OneIsNoPlural(t *testing.T) {
	limits := []string{"the path is longer than %d bytes", "at most %d files", "has %d files; one invoice", "is %d bytes; the service takes", "archived %d times"} // never one
	for _, dir := range []string{".", "../../internal/daemon", "../../internal/dropwork", "../../internal/operator", "../../internal/statusfile", "../../internal/packager", "../../internal/report", "../../internal/present", "../../internal/recovery"} {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		kit.Need(t, err == nil && len(names) != 0,
			"err = %v, dir = %v, want no error, len(names) other than 0", err, dir)
		for _, name := range names {
			for line := range strings.Lines(readPage(t, name)) {
				told := uncounted.MatchString(line) && !strings.Contains(line, "fmt.Errorf") && !strings.HasSuffix(name, "_test.go")
				if told && !slices.ContainsFunc(limits, func(l string) bool { return strings.Contains(line, l) }) {
					t.Errorf("%s: a plural for any number: %s", name, strings.TrimSpace(line))
				}
			}
		}
	}
}
