package main_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// suggested returns what a shell is offered behind the words of a command line.
func (s *shelf) suggested(words ...string) (all []string) {
	s.t.Helper()
	out, errs, code := s.say(append([]string{"__completeNoDesc"}, words...)...)
	kit.Check(s.t, code == exitDone, "%q: exit %d: %s", words, code, errs)
	for line := range strings.Lines(out) {
		if line = strings.TrimSuffix(line, "\n"); !strings.HasPrefix(line, ":") {
			all = append(all, line)
		}
	}
	return all
}

// Each command is offered what it can do something with, the newest first, and nothing that a terminal or a shell would not take.
func TestSuggest_WhatTheCommandCanTake(t *testing.T) {
	s := filled(t) // Müller 4711 archived, Huber 88 rejected, Kern (with an escape) quarantined, Otto 19 uploaded
	kern := s.keys["Kern\x1b[2J 6"].String()
	s.tell("-rf", noon, nil)
	dash := s.keys["-rf"].String()
	s.tell("Otto 19", noon, nil, ledger.Held{By: ledger.Operator{}})
	for name, row := range map[string]struct{ what, typed, want string }{
		"All":           {"show", "", dash + "|Otto 19|" + kern + "|Huber 88|Müller 4711"},
		"Prefix":        {"why", "Mü", "Müller 4711"},
		"WithBlank":     {"show", "Otto 1", "Otto 19"},
		"OtherCase":     {"show", "otto", ""},
		"Key":           {"show", kern[:8], ""}, // filled in below: all keys of one day begin alike
		"BumID":         {"show", "bum-1", "bum-1"},
		"TooShort":      {"show", "bu", ""},
		"Retry":         {"retry", "", "Huber 88"},
		"Close":         {"close", "", dash + "|" + kern + "|Huber 88"},
		"Release":       {"release", "", kern},
		"Hold":          {"hold", "", dash + "|" + kern + "|Huber 88|Müller 4711"},
		"Unhold":        {"unhold", "", "Otto 19"},
		"Receipt":       {"receipt", "", "Müller 4711"},
		"Fetch":         {"fetch", "", "Müller 4711"},
		"Drops":         {"list --drop", "ac", "acme-in"},
		"Vaults":        {"list --vault", "", "V-1"},
		"NothingOfThat": {"backup", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := s.suggested(append(strings.Fields(row.what), row.typed)...)
			if name == "Key" {
				kit.Check(t, len(got) != 0 && strings.HasPrefix(got[0], row.typed),
					"%q, want len(got) other than 0, got[0] that begins with %q", got, row.typed)
				return
			}
			kit.Want(t, fmt.Sprintf("%s %q: %q", row.what, row.typed, got), strings.Join(got, "|"), row.want)
		})
	}
}

// Of several folders with one name each is offered by its key; at most fifty are offered, the newest.
func TestSuggest_SameNameAndMany(t *testing.T) {
	s := newShelf(t)
	first := s.tell("Otto", noon, nil)
	delete(s.keys, "Otto")
	second := s.tell("Otto", noon.Add(time.Minute), nil)
	if got := s.suggested("show", ""); len(got) != 2 || got[0] != second.Key.String() || got[1] != first.Key.String() {
		t.Errorf("%q, want len(got) = 2, got[0] = %v, got[1] = %v", got, second.Key.String(), first.Key.String())
	}
	if got := s.suggested("show", "Ot"); len(got) != 1 || got[0] != "Otto" {
		t.Errorf(`%q, want len(got) = 1, got[0] = "Otto"`, got)
	}
	for i := range 55 {
		s.tell(fmt.Sprint("F", i), noon.Add(time.Hour+time.Duration(i)*time.Second), nil)
	}
	got := s.suggested("show", "")
	kit.Check(t, len(got) == 50 && got[0] == "F54", `%d: %q, want len(got) = 50, got[0] = "F54"`, len(got), got)
}

// What was typed leads to a folder by the catalog, whatever the newer ones are like; the ledger is walked where that leads to nothing.
func TestSuggest_ByTheCatalog(t *testing.T) {
	s := newShelf(t)
	s.forDaemon()
	s.edit("drops:", "spool: {min_free: 9000TB}\ndrops:")
	key := s.tell("Rechnung 0815 Müller", noon, nil).Key.String()
	for i := range 20 {
		s.tell(fmt.Sprint("Beleg ", i), noon.Add(time.Hour+time.Duration(i)*time.Second), nil)
	}
	s.daemon()
	awaitCatalog(t, s.config)
	suggested := func(typed string) []string {
		out, _, _ := runHere("__completeNoDesc", "--config", s.config, "show", typed)
		return slices.DeleteFunc(strings.Split(out, "\n"), func(line string) bool { return line == "" || strings.HasPrefix(line, ":") })
	}
	for typed, want := range map[string]int{"": 21, " ": 0, key[:4]: 21, "rechnung": 0, "R": 1} {
		kit.Len(t, fmt.Sprintf("%q", typed), suggested(typed), want)
	}
	spoil(t, filepath.Join(s.cfg.StateDir, "ledger.db"), "Beleg 19") // a walk ends here
	for typed, want := range map[string]string{"Rechnung 08": "Rechnung 0815 Müller", "Rechnung 0815 Mü": "Rechnung 0815 Müller", key[:8]: key} {
		got := suggested(typed)
		kit.Check(t, len(got) == 1 && got[0] == want, "%q: %q, want %q", typed, got, want)
	}
	kit.Len(t, "a walk over a damaged entry gives", suggested("rechnung"), 0)
}

// Where no daemon runs the ledger is looked at and not changed, and whatever is missing or broken suggests nothing, in
// silence.
func TestSuggest_WithoutDaemon(t *testing.T) {
	s := filled(t)
	path := writeConfig(t, smallConfig+"state_dir: "+s.cfg.StateDir+"\n")
	ask := func() (string, string) {
		out, errs, code := runHere("__completeNoDesc", "--config", path, "show", "M")
		kit.Check(t, code == exitDone, "exit %d: %s", code, errs)
		return out, strings.ReplaceAll(errs, "Completion ended with directive: ShellCompDirectiveNoFileComp, ShellCompDirectiveKeepOrder\n", "")
	}
	const nothing = ":36\n"
	if out, errs := ask(); out != nothing || errs != "" { // this process has it open
		t.Errorf("in use: %q %q", out, errs)
	}
	kit.Must(t, s.ledger.Close())
	name := filepath.Join(s.cfg.StateDir, "ledger.db")
	before := dated(t, name)
	if out, errs := ask(); out != "Müller 4711\n"+nothing || errs != "" {
		t.Errorf("at rest: %q %q", out, errs)
	}
	kit.Want(t, "the ledger was changed", dated(t, name), before)
	kit.Must(t, os.WriteFile(name, []byte("no ledger"), 0o600))
	if out, errs := ask(); out != nothing || errs != "" {
		t.Errorf("damaged: %q %q", out, errs)
	}
	kit.Must(t, os.Remove(name))
	if out, errs := ask(); out != nothing || errs != "" {
		t.Errorf("missing: %q %q", out, errs)
	}
	if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Error("a ledger was made:", err)
	}
	err := boltledger.ReadWhileStopped(s.cfg.StateDir, func(*boltledger.Ledger) error { return nil })
	kit.Check(t, errors.Is(err, ledger.ErrMissing), "err = %v, want error ledger.ErrMissing", err)
}

func dated(t *testing.T, name string) string {
	t.Helper()
	info := kit.Value(os.Stat(name))(t)
	return fmt.Sprint(info.Size(), info.ModTime(), info.Mode())
}

// A daemon that does not answer keeps nobody from typing on.
func TestSuggest_DaemonThatHangs(t *testing.T) {
	dir := t.TempDir()
	l := kit.Value(net.Listen("unix", filepath.Join(dir, "vaultd.sock")))(t)
	defer l.Close()
	began := time.Now()
	out, errs, code := runHere("__completeNoDesc", "--config", writeConfig(t, smallConfig+"state_dir: "+dir+"\n"), "show", "")
	if took := time.Since(began); code != 0 || out != ":36\n" || strings.Contains(errs, "vaultd:") || took > 5*time.Second {
		t.Errorf("exit %d after %v: %q %q", code, took, out, errs)
	}
}

// A person types the beginning of a name in bash and presses TAB: what bash makes of it is the folder, whatever is in its
// name, and what several names have in common is quoted too.
func TestSuggest_InBash(t *testing.T) {
	_, err := exec.LookPath("bash")
	kit.Need(t, err == nil, "bash is missing: %v", err)
	_, s := served(t, emulator.Config{}, fast)
	for i, folder := range []string{"Müller 4711", "Müller 4712", "O'Neil & Söhne $1", "Say \"now\"", "a:b=c", "plain"} {
		s.drop("acme", folder, map[string][]byte{"scan.bin": []byte(folder)}, map[string]any{"documentType": "Invoice", "documentId": fmt.Sprint(i), "documentDate": "2026-10-31"})
	}
	s.begin()
	kit.Await(t, "all to be taken", func() bool { return s.status().Balance.Seen == 6 })
	sh := startShell(t, s)
	for _, row := range [][2]string{
		{`Mü` + "\t" + `2`, "Müller 4712"},
		{`"Mü` + "\t" + `1"`, "Müller 4711"},
		{`O` + "\t", `O'Neil & Söhne $1`},
		{`'Say` + "\t", `Say "now"`},
		{`a:` + "\t", "a:b=c"},
		{`pl` + "\t", "plain"},
	} {
		// A suggestion that comes late is left out by design: on a busy machine the
		// key is pressed again.
		var out string
		for range 20 {
			if out = sh.run(t, "vaultd show "+row[0]); strings.Contains(out, "\n"+row[1]+"\nState ") {
				break
			}
		}
		kit.Holds(t, fmt.Sprintf("%q", row[0]), out, "\n"+row[1]+"\nState ")
	}
	kit.Holds(t, "a flag's value", sh.run(t, "vaultd list --drop=ac\t --state pack\t\b\b --limit 1"), "--drop=acme")
}

// shell is an interactive bash on a terminal of its own.
type shell struct {
	term *os.File
	all  chan []byte
	n    int
}

func startShell(t *testing.T, s *site) *shell {
	t.Helper()
	term := kit.Value(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	n, err := unix.IoctlGetInt(int(term.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(term.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(term.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 50, Col: 400})
	}
	kit.Must(t, err)
	tty := kit.Value(os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	cmd := exec.Command("bash", "--noprofile", "--norc", "-i")
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "TERM=dumb", "PS1=", "INPUTRC=/dev/null", "HISTFILE=", "PATH="+filepath.Dir(realProgram(t))+":"+os.Getenv("PATH"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.Dir = tty, tty, tty, s.dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	kit.Must(t, cmd.Start())
	tty.Close()
	sh := &shell{term: term, all: make(chan []byte, 1000)}
	go func() {
		defer close(sh.all)
		for {
			buf := make([]byte, 4096)
			n, err := term.Read(buf)
			if n > 0 {
				sh.all <- buf[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		term.Close()
	})
	sh.run(t, "source <(vaultd completion bash); bind 'set bell-style none'; bind 'set enable-bracketed-paste off'")
	return sh
}

// run types a line and gives what the terminal showed until its command had ended.
func (sh *shell) run(t *testing.T, line string) string {
	t.Helper()
	sh.n++
	line = strings.Replace(line, "vaultd ", "vaultd --config config.yaml ", 1)
	kit.Value(io.WriteString(sh.term, line+"\necho end$((0)).$(("+fmt.Sprint(sh.n)+"))\n"))(t)
	var out strings.Builder
	patience := time.After(30 * time.Second)
	for !strings.Contains(out.String(), fmt.Sprintf("end0.%d\r", sh.n)) {
		select {
		case b := <-sh.all:
			out.Write(b)
		case <-patience:
			t.Fatalf("%q does not end: %q", line, out.String())
		}
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}
