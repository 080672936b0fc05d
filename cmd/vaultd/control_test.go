package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/statedir"
)

// away is a service that nobody reaches.
type away struct{}

var errAway = errors.New("nobody is there")

func (away) Register(context.Context, archive.VaultID, []archive.RegisterRequest) (archive.RegisterResult, error) {
	return archive.RegisterResult{}, errAway
}

func (away) Upload(context.Context, archive.Ticket, archive.Package) (archive.Digest, string, error) {
	return archive.Digest{}, "", errAway
}

func (away) Status(context.Context, archive.VaultID, archive.RemoteID) (archive.Receipt, error) {
	return archive.Receipt{}, errAway
}

func (away) StatusList(context.Context, archive.VaultID) ([]archive.Receipt, error) {
	return nil, errAway
}

// shortDir is a directory whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "vd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, name := range []string{"spool", "ledger.db", "ledger.head", "vaultd.lock", "vaultd.sock", "config.yaml", "."} {
			os.Remove(filepath.Join(dir, name)) //nolint:errcheck // some are not there
		}
	})
	return dir
}

// startDaemon opens a real daemon without drops and answers on its socket until stop, or the end of the test.
func startDaemon(t *testing.T) (cfg config.Config, configPath string, stop func()) {
	t.Helper()
	dir := shortDir(t)
	configPath = filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(configPath, []byte(smallConfig+"state_dir: "+dir+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load(configPath, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	info := ledger.Info{ID: "L-1", Environment: "test", BaseURL: cfg.Service.BaseURL, Created: time.Now()}
	if err := boltledger.Create(dir, info); err != nil {
		t.Fatal(err)
	}
	now, err := daemon.Clock()
	if err != nil {
		t.Fatal(err)
	}
	d, err := daemon.Open(daemon.Config{
		StateDir: dir, Environment: "test", BaseURL: cfg.Service.BaseURL, Location: cfg.Location, Vault: away{}, Now: now,
		Log: slog.New(slog.DiscardHandler), SpoolMax: 1e9, Workers: 1, BatchSize: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	rs, err := d.Ledger().Apply(t.Context(), ledger.Change{Key: archive.NewKey(time.Now()), At: now(),
		Events: []ledger.Event{ledger.ClaimedFolder{Vault: "V-1", Drop: "acme-in", Folder: "Otto\x1b 19"}}})
	if err != nil || rs[0].Err != nil {
		t.Fatal(err, rs)
	}
	serve := func(ctx context.Context) error {
		l, err := listenControl(socketPath(cfg), nil)
		if err != nil {
			return errors.Join(err, d.Close())
		}
		enter := func(a *app) { a.inside, a.cfg = d, &cfg }
		return errors.Join(serveControl(ctx, l, enter, nil), d.Close())
	}
	return cfg, configPath, serveUntilTheEnd(t, serve, socketPath(cfg))
}

// serveUntilTheEnd runs serve until the test ends and waits for it, then for the socket to be there.
func serveUntilTheEnd(t *testing.T, serve func(context.Context) error, path string) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- serve(ctx) }()
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Error("serve:", err)
			}
		case <-time.After(10 * time.Second):
			t.Error("serve does not end")
		}
	}
	t.Cleanup(stop)
	for range 500 {
		if conn, err := net.Dial("unix", path); err == nil {
			conn.Close()
			return stop
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("nobody listens")
	return stop
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
			out = regexp.MustCompile(`"catalogNotCompared":"[^"]*"`).ReplaceAllString(out, "") // this daemon keeps no catalog
			all = append(all, fmt.Sprintf("%v: exit %d\n%s%s", c, code, out, errs))
		}
		return all
	}
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
		if inside[i] != beside[i] {
			t.Errorf("inside\n%s\nbeside\n%s", inside[i], beside[i])
		}
	}
	if got := inside[4]; !strings.Contains(got, "exit 1\n") || !strings.Contains(got, `nothing is known as "--json"`) {
		t.Errorf("an argument was taken for a flag: %s", got)
	}
}

// frames asks on a socket by hand.
func frames(t *testing.T, path, request string) (stdout, stderr string, code int) {
	t.Helper()
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(10 * time.Second)) //nolint:errcheck // the test would hang, no more
	io.WriteString(conn, request)                      //nolint:errcheck // refused early: the answer counts
	var out, errs bytes.Buffer
	if code, err = copyAnswer(conn, &out, &errs); err != nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), code
}

func TestControl_OnlyWhatReads(t *testing.T) {
	cfg, path, _ := startDaemon(t)
	line := func(args ...string) string {
		b, err := json.Marshal(controlRequest{Args: args})
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + "\n"
	}
	for name, request := range map[string]string{
		"NotAllowed":     line("init"),
		"AnotherDaemon":  line("run", "--once"),
		"FlagFirst":      line("--config", "/etc/passwd", "init"),
		"Nothing":        line(),
		"NoJSON":         "list\n",
		"TooLong":        line("list", strings.Repeat("x", maxRequest)),
		"WritesAFile":    line("fetch", "Otto 19", "--output="+filepath.Join(cfg.StateDir, "config.yaml"), "--force"),
		"DefaultFile":    line("fetch", "Otto 19"),
		"UnknownFlag":    line("list", "--nonsense"),
		"CompletionTrap": line("__complete", "list"),
		"EndlessWatch":   line("status", "--watch"),
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := frames(t, socketPath(cfg), request)
			if code != exitUsage || out != "" || !strings.HasPrefix(errs, "vaultd: ") {
				t.Errorf("exit %d: %q %q", code, out, errs)
			}
		})
	}
	if b, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(b), "service:") {
		t.Error("the configuration was written over")
	}
	if info, err := os.Stat(socketPath(cfg)); err != nil || info.Mode().Perm() != 0o660 {
		t.Error(info.Mode(), err)
	}
	if _, err := listenControl(socketPath(cfg), nil); err == nil {
		t.Error("two daemons on one socket")
	}
}

// listen serves commands that the test makes up.
func listen(t *testing.T, s *commandServer) (path string, stop func()) {
	t.Helper()
	path = filepath.Join(shortDir(t), "vaultd.sock")
	if s.peerOf == nil {
		s.peerOf = func(*net.UnixConn) (peer, error) { return peer{uid: 0}, nil }
	}
	return path, serveUntilTheEnd(t, func(ctx context.Context) error {
		l, err := listenControl(path, nil)
		if err != nil {
			return err
		}
		return s.serveClients(ctx, l)
	}, path)
}

func TestControl_I27_OthersAreRefused(t *testing.T) {
	for name, row := range map[string]struct {
		who peer
		ok  bool
	}{
		"Root":            {peer{uid: 0}, true},
		"DaemonsOwn":      {peer{uid: 990, groups: []uint32{990}}, true},
		"Member":          {peer{uid: 1001, groups: []uint32{100, 2000}}, true},
		"Stranger":        {peer{uid: 1001, groups: []uint32{100}}, false},
		"UIDIsNoGroup":    {peer{uid: 2000, groups: []uint32{100}}, false},
		"RootsGroupIsNot": {peer{uid: 1001, groups: []uint32{0}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			ran := make(chan peer, 1)
			path, _ := listen(t, &commandServer{
				uid: 990, groups: []uint32{2000}, peerOf: func(*net.UnixConn) (peer, error) { return row.who, nil },
				execute: func(_ context.Context, p peer, _ []string, _ io.Reader, _, _ io.Writer) int {
					ran <- p
					return exitDone
				},
			})
			_, errs, code := frames(t, path, `{"args":["list"],"uid":0}`+"\n")
			if row.ok {
				if p := <-ran; code != exitDone || p.uid != row.who.uid {
					t.Errorf("exit %d, uid %d", code, p.uid)
				}
				return
			}
			if code != exitRights || !strings.Contains(errs, "may not give commands") || len(ran) > 0 {
				t.Errorf("exit %d: %s", code, errs)
			}
		})
	}
}

func TestControl_PeerAsTheKernelKnowsHim(t *testing.T) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(shortDir(t), "vaultd.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	conn, err := l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	p, err := peerOf(conn)
	if err != nil || p.uid != uint32(os.Getuid()) || !slices.Contains(p.groups, uint32(os.Getegid())) {
		t.Errorf("%+v, %v", p, err)
	}
	own, err := os.Getgroups()
	for _, g := range own {
		if err != nil || !slices.Contains(p.groups, uint32(g)) {
			t.Errorf("group %d is not in %v, %v", g, p.groups, err)
		}
	}
}

// Whatever a command writes arrives unchanged, and so does its exit code.
func TestControl_BinaryAndExitCode(t *testing.T) {
	all := bytes.Repeat([]byte("\x00\xff\n\r{\"exit\":0}\n\xf0\x9f"), 20_000)
	path, _ := listen(t, &commandServer{execute: func(_ context.Context, _ peer, args []string, _ io.Reader, stdout, stderr io.Writer) int {
		io.WriteString(stderr, strings.Join(args, "|")) //nolint:errcheck // the test looks at what arrives
		stdout.Write(all)                               //nolint:errcheck // as above
		return 42
	}})
	var out, errs bytes.Buffer
	args := []string{"list", "--drop=a b\n", "--", "\u202e"}
	code, err := callControl(t.Context(), path, args, &out, &errs)
	if err != nil || code != 42 || !bytes.Equal(out.Bytes(), all) || errs.String() != strings.Join(args, "|") {
		t.Errorf("exit %d, %v, %d bytes, %q", code, err, out.Len(), errs.String())
	}
}

// A client that goes away ends its command, and so does the end of the daemon; neither hangs, whoever reads slowly.
func TestControl_I21_NobodyIsHeldUp(t *testing.T) {
	began, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	wait := &commandServer{execute: func(ctx context.Context, _ peer, _ []string, _ io.Reader, _, _ io.Writer) int {
		began <- struct{}{}
		<-ctx.Done()
		ended <- struct{}{}
		return exitDone
	}}
	flood := &commandServer{execute: func(_ context.Context, _ peer, _ []string, _ io.Reader, stdout, _ io.Writer) int {
		began <- struct{}{}
		for {
			if _, err := stdout.Write(make([]byte, 1<<20)); err != nil {
				ended <- struct{}{}
				return exitDone
			}
		}
	}}
	for name, row := range map[string]struct {
		s    *commandServer
		stop bool // the daemon, not the client
	}{"ClientGoesWhileItWaits": {wait, false}, "DaemonStopsWhileItWaits": {wait, true}, "ClientGoesInTheFlood": {flood, false}, "DaemonStopsInTheFlood": {flood, true}} {
		t.Run(name, func(t *testing.T) {
			path, stop := listen(t, row.s)
			conn, err := net.Dial("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			io.WriteString(conn, `{"args":["list"]}`+"\n") //nolint:errcheck // else nothing begins
			<-began
			if row.stop {
				stop()
			} else {
				conn.Close()
			}
			select {
			case <-ended:
			case <-time.After(10 * time.Second):
				t.Fatal("the command goes on")
			}
		})
	}
}

func TestControl_ClientStopsWithItsContext(t *testing.T) {
	began := make(chan struct{}, 1)
	path, _ := listen(t, &commandServer{execute: func(ctx context.Context, _ peer, _ []string, _ io.Reader, _, _ io.Writer) int {
		began <- struct{}{}
		<-ctx.Done()
		return exitDone
	}})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	_, err := callControl(ctx, path, []string{"list"}, io.Discard, io.Discard)
	if code, _ := exitCodeOf(err); !errors.Is(err, context.Canceled) || code != exitTemporary {
		t.Errorf("exit %d, %v", code, err)
	}
}

// A stop that comes while the command is still being sent ends it with the same words.
func TestControl_ClientStopsWhileItSends(t *testing.T) {
	path := filepath.Join(shortDir(t), "vaultd.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() { // reads one byte, and then nothing
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		conn.Read(make([]byte, 1)) //nolint:errcheck // the client tells
		cancel()
		<-t.Context().Done()
	}()
	_, err = callControlWithInput(ctx, path, []string{"report"}, make([]byte, 8<<20), io.Discard, io.Discard)
	if code, _ := exitCodeOf(err); !errors.Is(err, context.Canceled) || code != exitTemporary {
		t.Errorf("exit %d, %v", code, err)
	}
}

func TestControl_AMistakeEndsTheCommandAlone(t *testing.T) {
	path, _ := listen(t, &commandServer{execute: func(context.Context, peer, []string, io.Reader, io.Writer, io.Writer) int { panic("oops") }})
	for range 2 {
		if _, errs, code := frames(t, path, `{"args":["list"]}`+"\n"); code != exitInternal || !strings.Contains(errs, "internal error") {
			t.Errorf("exit %d: %s", code, errs)
		}
	}
}

func TestControl_TooManyAtOnce(t *testing.T) {
	began, release := make(chan struct{}), make(chan struct{})
	path, _ := listen(t, &commandServer{execute: func(context.Context, peer, []string, io.Reader, io.Writer, io.Writer) int {
		began <- struct{}{}
		<-release
		return exitDone
	}})
	for range maxCommands {
		go callControl(t.Context(), path, []string{"list"}, io.Discard, io.Discard) //nolint:errcheck // only takes a place
		<-began
	}
	if _, errs, code := frames(t, path, `{"args":["list"]}`+"\n"); code != exitTemporary {
		t.Errorf("exit %d: %s", code, errs)
	}
	close(release)
}

func TestControl_I16_OnlyADeadSocketIsRemoved(t *testing.T) {
	dir := shortDir(t)
	path := filepath.Join(dir, "vaultd.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listenControl(path, nil); err == nil {
		t.Fatal("took a socket that somebody listens on")
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := callControl(t.Context(), path, []string{"list"}, io.Discard, io.Discard); !errors.Is(err, errNoDaemon) {
		t.Errorf("a dead socket: %v", err)
	}
	l, err = listenControl(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	if err := os.WriteFile(path, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := listenControl(path, nil); err == nil {
		t.Error("removed what is no socket")
	}
	if b, err := os.ReadFile(path); string(b) != "mine" {
		t.Error(err)
	}
	if _, err := listenControl(filepath.Join(dir, strings.Repeat("x", 120)), nil); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Error(err)
	}
}

// Files' rights let in those who may ask; the ledger beside the socket stays closed to them.
func TestControl_I27_RightsOfTheSocket(t *testing.T) {
	own := uint32(os.Getegid())
	for name, row := range map[string]struct {
		groups      []uint32
		socket, dir os.FileMode
	}{
		"Nobody":        {nil, 0o660, 0o700},
		"OneGroup":      {[]uint32{own}, 0o660, 0o710},
		"SeveralGroups": {[]uint32{own, 2000}, 0o666, 0o711},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(shortDir(t), "vaultd.sock")
			l, err := listenControl(path, row.groups)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			for p, want := range map[string]os.FileMode{path: row.socket, filepath.Dir(path): row.dir} {
				if info, err := os.Stat(p); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s: %v, %v", p, info.Mode(), err)
				}
			}
		})
	}
}

// Two commands at once, without a daemon: the second waits for the first.
func TestReach_WaitsForAnotherCommand(t *testing.T) {
	cfg, path, stop := startDaemon(t)
	stop()
	_, closeLedger, err := statedir.OpenLedger(cfg.StateDir, cfg.Location)
	if err != nil {
		t.Fatal(err)
	}
	released := make(chan error, 1)
	time.AfterFunc(300*time.Millisecond, func() { released <- closeLedger() })
	out, errs, code := runHere("--config", path, "list", "--json")
	if code != exitDone || strings.Count(out, "\n") != 1 {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if err := <-released; err != nil {
		t.Error(err)
	}
}

// Input reaches the command that reads it, whole, and one that does not read it ends all the same. Only audit takes any.
func TestControl_Input(t *testing.T) {
	path, _ := listen(t, &commandServer{execute: func(_ context.Context, _ peer, args []string, input io.Reader, stdout, _ io.Writer) int {
		if len(args) > 1 {
			return exitPerson
		}
		b, err := io.ReadAll(input)
		fmt.Fprint(stdout, len(b), " ", archive.Sum(b), " ", err)
		return exitDone
	}})
	for _, size := range []int{0, 1, 300, maxRequest, 3 << 20} {
		input := bytes.Repeat([]byte("x\n"), size)
		var out bytes.Buffer
		code, err := callControlWithInput(t.Context(), path, []string{"audit"}, input, &out, io.Discard)
		if want := fmt.Sprint(len(input), " ", archive.Sum(input), " <nil>"); err != nil || code != exitDone || out.String() != want {
			t.Errorf("%d: exit %d, %v, %q", size, code, err, &out)
		}
		if code, err := callControlWithInput(t.Context(), path, []string{"audit", "reads nothing"}, input, &out, io.Discard); err != nil || code != exitPerson {
			t.Errorf("%d, not read: exit %d, %v", size, code, err)
		}
	}
	for _, request := range []string{`{"args":["list"],"input":3}`, `{"args":["audit"],"input":-1}`, `{"args":["audit"],"input":999999999999}`} {
		if _, errs, code := frames(t, path, request+"\nabc"); code != exitUsage || !strings.Contains(errs, "no such input") {
			t.Errorf("%s: exit %d, %s", request, code, errs)
		}
	}
}

// A refusal in words arrives, also where the client is still sending a list that nobody reads.
func TestControl_RefusalArrivesBeforeTheInput(t *testing.T) {
	path, _ := listen(t, &commandServer{execute: func(context.Context, peer, []string, io.Reader, io.Writer, io.Writer) int { return exitDone }})
	for range 20 {
		var errs bytes.Buffer
		code, err := callControlWithInput(t.Context(), path, []string{"list"}, make([]byte, 8<<20), io.Discard, &errs)
		if err != nil || code != exitUsage || !strings.Contains(errs.String(), "takes no such input") {
			t.Fatalf("exit %d, %v, %s", code, err, &errs)
		}
	}
}

// Input that breaks off is no shorter input: a list that lost its end would pass as a whole one.
func TestControl_InputThatBreaksOff(t *testing.T) {
	got := make(chan error, 1)
	path, _ := listen(t, &commandServer{execute: func(_ context.Context, _ peer, _ []string, input io.Reader, _, _ io.Writer) int {
		_, err := io.ReadAll(input)
		got <- err
		return exitDone
	}})
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprint(conn, `{"args":["audit"],"input":9}`+"\n[1]\n")
	if err := conn.(*net.UnixConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
}
