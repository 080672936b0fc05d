package main_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/ledger"
	"vaultd/internal/selfcheck"
	"vaultd/internal/test/kit"
)

// In script tests the program is this test binary under another name.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == selfcheck.ChildCommand { // a daemon in this process had itself started
		selfcheck.PrepareChild()
		os.Exit(selfcheck.RunChild(context.Background(), os.Stdin, os.Stdout))
	}
	debug.SetGCPercent(400) // many daemons in one process: it is short of time, not of memory
	testscript.Main(m, map[string]func(){"vaultd": func() {
		os.Exit(program.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.LookupEnv))
	}})
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"expand": expand,
			"code":   code,
		},
	})
}

// expand puts the script's directory where a file says WORK.
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, name := range args {
		text := strings.ReplaceAll(ts.ReadFile(name), "WORK", ts.Getenv("WORK"))
		ts.Check(os.WriteFile(ts.MkAbs(name), []byte(text), 0o600))
	}
}

// code runs a program that must end with an exit code: code N program arguments.
func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("run: %v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// A ledger of an unknown form ends every command with 78 and the next step to
// take.
func TestExit_I28_AFormThatIsNotKnown(t *testing.T) {
	for schema, hint := range map[string]string{"99": "install the newer vaultd", "1": "vaultd rebuild"} {
		s := newShelf(t)
		kit.Must(t, s.ledger.Close())
		db, err := bbolt.Open(filepath.Join(s.cfg.StateDir, "ledger.db"), 0o600, nil)
		kit.Must(t, err)
		err = db.Update(func(tx *bbolt.Tx) error {
			meta := tx.Bucket([]byte("meta"))
			return errors.Join(meta.Put([]byte("schema"), []byte(schema)), meta.Put([]byte("form"), []byte("another one")))
		})
		kit.Must(t, errors.Join(err, db.Close()))
		for _, command := range []string{"list", "status", "verify"} {
			if out, errs, code := runHere("--config", s.config, command); code != exitConfig || !strings.Contains(errs, hint) {
				t.Errorf("schema %s: %s: exit %d: %s%s", schema, command, code, out, errs)
			}
		}
	}
}

// terminal is the end of a pseudo terminal that a program writes to, with so
// many rows, and what was written.
func terminal(t *testing.T, rows uint16) (tty *os.File, shown func() string) {
	t.Helper()
	other := kit.Value(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	n, err := unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(other.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: rows, Col: 400})
	}
	if err == nil {
		tty, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	kit.Must(t, err)
	var text kit.Text
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(&text, other) // ends with an error when nobody has the terminal open
	}()
	t.Cleanup(func() {
		tty.Close()
		other.Close()
		<-done
	})
	return tty, text.String
}

// Times in the log are in the operator's zone with its offset for a person at a terminal, and in UTC for a program.
func TestLog_TimesHaveTheirZone(t *testing.T) {
	s := newShelf(t)
	s.forDaemon()
	kit.Must(t, s.ledger.Close())
	tty, shown := terminal(t, 25)
	run := func(stderr io.Writer, said func() string, want string) {
		t.Helper()
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- program.Run(ctx, []string{"--config", s.config, "run"}, strings.NewReader(""), io.Discard, stderr, noEnv)
		}()
		kit.Await(t, "the first line", func() bool { return strings.Contains(said(), "vaultd started") })
		stop()
		if code := <-ended; code != exitDone {
			t.Errorf("exit %d: %s", code, said())
		}
		line, _, _ := strings.Cut(said(), "\n")
		kit.Check(t, regexp.MustCompile(want).MatchString(line), "%s, want %s", line, want)
	}
	run(tty, shown, `^time=20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+0[12]:00 `)
	var program kit.Text
	run(&program, program.String, `^\{"time":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z","level"`)
}

// On a terminal a page takes the place of the one before, and never scrolls.
func TestStatusWatch_Redraw(t *testing.T) {
	s := filled(t)
	kit.Must(t, s.ledger.Close())
	for _, rows := range []uint16{60, 6} {
		tty, shown := terminal(t, rows)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() {
			ended <- program.Run(ctx, []string{"--config", s.config, "status", "--watch=1s"}, strings.NewReader(""), tty, tty, noEnv)
		}()
		kit.Await(t, "two pages", func() bool { return strings.Count(shown(), "\x1b[J") >= 2 })
		stop()
		kit.Want(t, "exit", <-ended, exitDone)
		page, _, _ := strings.Cut(shown()[strings.Index(shown(), "\x1b[H"):], "\x1b[J")
		lines := strings.Split(page, "\x1b[K\r\r\n")
		isCut := strings.Contains(page, " more lines: make the window larger, or vaultd status")
		kit.Check(t, len(lines) >= 3 && len(lines) <= int(rows) && isCut == (rows == 6) && strings.HasPrefix(page, "\x1b[H"),
			"%d rows: %d lines: %q", rows, len(lines), page)
	}
}

// Under --json an error is an object, with its hint and the exit code, and nothing stands on the standard output.
func TestJSON_ErrorsAreObjects(t *testing.T) {
	config := writeConfig(t, "")
	for _, args := range [][]string{{"status"}, {"show", "nosuch"}, {"list"}, {"fetch", "nosuch", "-o", "-"}, {"check", "--schema", "nosuch"}} {
		out, errs, code := runHere(append(args, "--json", "--config", config)...)
		var one struct {
			Error, Hint string
			Code        int
		}
		if args[0] == "check" { // the schema is asked for without a configuration
			out, errs, code = runHere(append(args, "--json")...)
		}
		if err := json.Unmarshal([]byte(errs), &one); err != nil || one.Code != code || code == 0 || one.Error == "" || out != "" || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: exit %d, %q, %q: %v", args, code, out, errs, err)
		}
	}
}

func TestVersion_AsAFlag(t *testing.T) {
	flag, _, code := runHere("--version")
	word, _, _ := runHere("version")
	kit.Check(t, code == 0 && flag == word, "exit %d: %q, and the command says %q", code, flag, word)
}

// TestInit_I27_TightensTheStateDirectory: what is in state_dir is for vaultd's
// user alone. A group may keep the right to reach the socket.
func TestInit_I27_TightensTheStateDirectory(t *testing.T) {
	t.Parallel()
	for mode, want := range map[fs.FileMode]fs.FileMode{0o755: 0o700, 0o750: 0o700, 0o711: 0o700, 0o710: 0o710, 0o700: 0o700} {
		dir := filepath.Join(t.TempDir(), "state")
		kit.Must(t, os.Mkdir(dir, 0o700))
		kit.Must(t, os.Chmod(dir, mode))
		out, errs, code := runHere("init", "--config", writeConfig(t, smallConfig+"state_dir: "+dir+"\n"))
		kit.Need(t, code == exitDone, "exit code = %d, want %d\n%s%s", code, exitDone, out, errs)
		info := kit.Value(os.Lstat(dir))(t)
		kit.Want(t, fmt.Sprintf("rights of a directory that had %04o", mode), info.Mode().Perm(), want)
	}
}

// I12, I26: status and why say that a rejected folder is not in its place any more, and
// propose no command for a path that is gone. The exit code stays.
func TestMissing_I12_I26_RejectedFolderIsGone(t *testing.T) {
	s := newShelf(t)
	e := s.tell("Huber 88", noon.Add(-2*time.Hour), nil, ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}}, ledger.PlaceIntended{Dest: "_rejected/Huber 88"}, ledger.Placed{})
	for name, row := range map[string]struct {
		missing     []ledger.MissingFolder
		holds, lack string
	}{
		"There": {nil, "vaultd validate", "no longer in _rejected"},
		"Gone":  {[]ledger.MissingFolder{{Key: e.Key, Since: noon.Add(-time.Hour)}}, "no longer in _rejected since", "vaultd validate"},
	} {
		kit.Must(t, s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon, Missing: row.missing}))
		why, _, _ := s.say("why", "Huber 88")
		kit.Holds(t, name+": why", why, row.holds, "vaultd close")
		kit.Lacks(t, name+": why", why, row.lack)
		status, _, code := s.say("status")
		kit.Want(t, name+": exit code of status", code, exitPerson)
		if row.missing != nil {
			kit.Holds(t, name+": status", status, "Huber 88 (acme-in): no longer in _rejected since 13:32")
		}
	}
}
