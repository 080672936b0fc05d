package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"
	"golang.org/x/sys/unix"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// lock is a service whose secret can be changed while it works: then no other is taken, and older tokens are dead.
type lock struct {
	http.Handler

	mu     sync.Mutex
	secret string          // guarded by mu
	tokens map[string]bool // guarded by mu: given since the secret was changed
	no     int             // how often it said 401; guarded by mu
}

func (l *lock) change(secret string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.secret, l.tokens = secret, map[string]bool{}
}

func (l *lock) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.no
}

func (l *lock) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	user, secret, basic := r.BasicAuth()
	token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if basic && secret != l.secret || bearer && !l.tokens[token] {
		l.no++
		http.Error(w, `{"error":"invalid_token"}`, http.StatusUnauthorized)
		return
	}
	if basic {
		r.SetBasicAuth(user, "demo")
	}
	rec := httptest.NewRecorder()
	l.Handler.ServeHTTP(rec, r)
	if m := tokenPattern.FindStringSubmatch(rec.Body.String()); m != nil {
		l.tokens[m[1]] = true
	}
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes())
}

// A renewed secret counts without a restart and without a reload, from a file and from a systemd credential.
func TestSecret_RenewedWhileItRuns(t *testing.T) {
	t.Parallel()
	kit.Rows(t, map[string]string{"BasicFile": "basic", "OAuthCredential": "oauth2"}, func(t *testing.T, method string) {
		t.Parallel()
		emu, err := emulator.New(emulator.Config{Dir: t.TempDir(), Username: "demo", Secret: "demo", ClientID: "client", ClientSecret: "demo",
			Scopes: []string{"s"}, Vaults: []emulator.Vault{{ID: "ACME"}, {ID: "BETA"}}, Window: 10 * time.Second, ArchiveMin: time.Millisecond, ArchiveMax: 50 * time.Millisecond})
		kit.Must(t, err)
		l := &lock{Handler: emu}
		l.change("CANARY-first-secret")
		srv := httptest.NewServer(l)
		t.Cleanup(func() { srv.Close(); emu.Close() })
		s := newSite(t, srv.URL, fast)
		file := filepath.Join(s.dir, "secret")
		write := func(text string) {
			kit.Must(t, os.WriteFile(file+".new", []byte(text+"\r\n"), 0o400))
			kit.Must(t, os.Rename(file+".new", file))
		}
		write("CANARY-first-secret")
		if method == "oauth2" {
			s.edit("{method: basic, username: demo, secret_file: "+file+"}", "{method: oauth2, username: client, secret_file: credential:secret, scopes: [s]}")
		}
		s.env = map[string]string{"CREDENTIALS_DIRECTORY": s.dir}
		p := s.start("run")
		s.drop("acme", "Otto 1", map[string][]byte{"a.pdf": []byte("one")}, numbered(1))
		kit.Await(t, "the first is archived", func() bool { return kept(s, "acme", "Otto 1") })
		l.change("CANARY-second-secret")
		s.drop("acme", "Otto 2", map[string][]byte{"a.pdf": []byte("two")}, numbered(2))
		kit.Await(t, "the old secret is refused", func() bool { return l.refusals() > 0 })
		write("CANARY-second-secret")
		kit.Await(t, "the second is archived", func() bool { return kept(s, "acme", "Otto 2") })
		p.stop(t)
		kit.Lacks(t, "a secret in the log", p.out.String(), "CANARY")
	})
}

func hashPassword(t *testing.T, input string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = program.Run(t.Context(), append([]string{"hash-password"}, args...), strings.NewReader(input), &stdout, &stderr, noEnv)
	return code, stdout.String(), stderr.String()
}

// The line that hash-password prints is one that the file of users takes, and its hash is the password's.
func TestHashPassword_PrintsALineForTheFile(t *testing.T) {
	t.Parallel()
	const password = "CANARY correct horse"
	code, line, errs := hashPassword(t, password+"\r\n", "anna", "--rights", "read,fetch")
	f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
	if code != 0 || len(f) != 3 || f[0] != "anna" || f[2] != "read,fetch" || bcrypt.CompareHashAndPassword([]byte(f[1]), []byte(password)) != nil || errs != "" {
		t.Fatalf(`%d %q %q, want code = 0, len(f) = 3, f[0] = "anna", f[2] = "read,fetch", bcrypt.CompareHashAndPassword([]byte(f[1]), []byte(password)) = nil, errs = ""`, code, line, errs)
	}
	s := newSite(t, "http://127.0.0.1:1", "")
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, "users"), []byte(line), 0o600))
	s.edit(`http: {listen: ""}`, `http: {listen: "", access: {users_file: `+s.dir+`/users}}`)
	if out, code := s.vaultd("check", "--offline"); code != 0 {
		t.Error("the line is refused:", out)
	}
	if code, hash, _ := hashPassword(t, password); code != 0 || !strings.HasPrefix(hash, f[1][:7]) || strings.Contains(hash, ":") {
		t.Errorf(`code = %v, hash = %v, want code = 0, hash that begins with %q, hash without ":"`, code, hash, f[1][:7])
	}
	code, told, _ := hashPassword(t, password, "--json", "bob")
	var o struct {
		Name, Hash string
		Rights     []string
	}
	if err := json.Unmarshal([]byte(told), &o); err != nil || code != 0 || o.Name != "bob" || len(o.Rights) != 1 || o.Rights[0] != "read" || !strings.HasPrefix(o.Hash, "$2") {
		t.Errorf(`code = %v, told = %v, err = %v, want no error, code = 0, o.Name = "bob", len(o.Rights) = 1, o.Rights[0] = "read", o.Hash that begins with "$2"`, code, told, err)
	}
}

// I7: what cannot be used is refused with the reason, and the password is not shown.
func TestHashPassword_I7_RefusesInWords(t *testing.T) {
	const good = "CANARY correct horse"
	type row struct {
		input string
		args  []string
		code  int
		says  string
	}
	kit.Rows(t, map[string]row{
		"Short":         {"CANARY\n", nil, exitData, "6 characters; at least 12"},
		"Empty":         {"", nil, exitData, "0 characters"},
		"Equal":         {strings.Repeat("C", 12) + "\n", nil, exitData, "too few different characters: 1; at least 5"},
		"Long":          {"CANARY" + strings.Repeat("x", 67), nil, exitData, "73 bytes; bcrypt looks at the first 72 alone"},
		"TwoLines":      {good + "\n" + good + "\n", nil, exitData, "more than one line"},
		"Huge":          {strings.Repeat(good, 1000), nil, exitData, "more than one line"},
		"WrongName":     {good, []string{"anna:x"}, exitUsage, "NAME has a name that is not"},
		"WrongRight":    {good, []string{"anna", "--rights", "write"}, exitUsage, "--rights has a right that is not known"},
		"FetchAlone":    {good, []string{"anna", "--rights=fetch"}, exitUsage, "fetch needs read too"},
		"RightsAlone":   {good, []string{"--rights=read"}, exitUsage, "with NAME only"},
		"TwoNames":      {good, []string{"anna", "bob"}, exitUsage, "unexpected argument"},
		"EmptyName":     {good, []string{""}, exitUsage, "NAME has a name"},
		"EmptyRight":    {good, []string{"anna", "--rights="}, exitUsage, "--rights"},
		"ControlInside": {"CANARY\x07correct horse", nil, exitData, "control character"},
	}, func(t *testing.T, row row) {
		code, out, errs := hashPassword(t, row.input, row.args...)
		kit.Check(t, code == row.code && out == "" && strings.Contains(errs, row.says) && !strings.Contains(errs, "CANARY"),
			`%d %q %q, want code = %v, out = "", errs with %q, errs without "CANARY"`, code, out, errs, row.code, row.says)
	})
}

// A command of root works as the user that state_dir belongs to: whatever it
// makes in state_dir and in the drop folders is that user's, and a later
// command of that user can work with it. Files that the command line names are
// read and written as root. The journal names root as who decided.
func TestRights_I16_I27_RootWorksAsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give commands for the daemon of another user")
	}
	_, s := served(t, emulator.Config{}, fast)
	const uid, gid = 65534, 65534 // nobody
	s.drop("acme", "Otto 1", map[string][]byte{"a.pdf": []byte("one")}, numbered(1))
	s.drop("acme", "Otto 2", map[string][]byte{"a.pdf": []byte("two")}, map[string]any{"documentType": "Nonsense"})
	own := func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, gid)
	}
	kit.Must(t, filepath.WalkDir(s.dir, own))
	for _, dir := range []string{s.dir, filepath.Dir(s.dir), filepath.Dir(realProgram(t))} {
		kit.Must(t, os.Chmod(dir, 0o755)) // so that vaultd's user reaches it
	}
	roots := filepath.Join(t.TempDir(), "of root")
	kit.Must(t, os.Mkdir(roots, 0o700))

	do := func(want int, args ...string) string {
		t.Helper()
		out, err := s.command(args...).CombinedOutput()
		code := exitOf(err)
		kit.Need(t, code == want, "%q: exit %d, want %d:\n%s", args, code, want, out)
		s.eachOwnedBy(uid)
		return string(out)
	}
	kit.Holds(t, "check", do(exitDone, "check"), "CHECKED AS   nobody", "configuration is good")
	kit.Holds(t, "doctor", do(exitDone, "doctor"), "all this is tried as nobody")
	kit.Holds(t, "run --once", do(exitPerson, "run", "--once", "--wait"), "archived 1, rejected 1", "root started vaultd, which works as the owner of state_dir")
	do(exitDone, "retry", "Otto 2", "--reason", "a try")
	do(exitDone, "fetch", "Otto 1", "--output", filepath.Join(roots, "otto.zip"))
	do(exitDifferences, "audit", "--output", filepath.Join(roots, "audit.html"), "--force")
	do(exitDone, "backup", filepath.Join(roots, "copy.db"))
	do(exitDone, "restore", filepath.Join(roots, "copy.db"), "--reason", "a drill")
	do(exitDone, "reconcile")
	do(exitDone, "verify", "--whole")
	do(exitDone, "hold", "Otto 2", "--reason", "a drill")
	kit.Holds(t, "who held it", do(exitDone, "show", "Otto 2"), "by root (uid 0)")
	for _, name := range []string{"ledger.db", "ledger.head.1"} {
		kit.Must(t, os.Rename(filepath.Join(s.dir, "state", name), filepath.Join(s.dir, name)))
	}
	do(exitDone, "rebuild", "--reason", "a drill")
	do(exitDone, "reconcile")
	names := kit.Value(filepath.Glob(roots + "/*"))(t)
	for _, name := range names {
		kit.Want(t, "owner of "+name, ownerOf(t, name), 0)
	}
	kit.Check(t, len(names) >= 3, "files of root: %q, want a download, a report and a backup", names)

	// the user itself: what only root reads gets a hint that fits
	c := s.command("restore", filepath.Join(roots, "copy.db"), "--reason", "a drill")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	out, err := c.CombinedOutput()
	kit.Want(t, "restore as the owner: exit code", exitOf(err), exitRights)
	kit.Holds(t, "restore as the owner", string(out), "sudo vaultd restore FILE")
	c = s.command("reconcile")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	out, err = c.CombinedOutput()
	kit.Want(t, "reconcile as the owner: exit code and text "+string(out), exitOf(err), exitDone)
}

// A vaultd of root that has no other user's state_dir says so in its log, in
// status and in doctor; check says that root sees more.
func TestRights_I27_RootIsTold(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to run as root")
	}
	_, s := served(t, emulator.Config{}, fast)
	out, err := s.command("check").CombinedOutput()
	kit.Want(t, "check: exit code", exitOf(err), exitDone)
	kit.Holds(t, "check", string(out), "CHECKED AS   root, which may read and write everything")
	p := s.beginProcess()
	for _, command := range []string{"status", "doctor"} {
		out, _ := s.vaultd(command)
		kit.Holds(t, command, out, "vaultd runs as root, which may read and write everything", "user of vaultd's own")
	}
	p.stop(t)
	kit.Holds(t, "the log", p.out.String(), `"level":"WARN","msg":"vaultd runs as root, which may read and write everything"`)
}

// eachOwnedBy fails the test where something in state_dir or in a drop folder
// belongs to another user.
func (s *site) eachOwnedBy(uid uint32) {
	s.t.Helper()
	for _, dir := range []string{"state", "acme", "beta"} {
		kit.Must(s.t, filepath.WalkDir(filepath.Join(s.dir, dir), func(path string, _ fs.DirEntry, err error) error {
			if err == nil && ownerOf(s.t, path) != uid {
				err = fmt.Errorf("%s belongs to user %d, want %d", path, ownerOf(s.t, path), uid)
			}
			return err
		}))
	}
}

func exitOf(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil {
		return -1
	}
	return exitDone
}

func ownerOf(t *testing.T, path string) uint32 {
	t.Helper()
	info := kit.Value(os.Lstat(path))(t)
	return info.Sys().(*syscall.Stat_t).Uid
}

// I17, I27: with exactly the right that the unit leaves it, vaultd sees that a
// clerk still has a file open, says so, and takes the folder once it is closed.
// Without that right it sees what is opened in a folder that it knows. Doctor
// says which.
func TestStillOpen_I17_I27_WithTheRightsOfTheUnit(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		kit.Missing(t, "needs root: files of several users")
	}
	type row struct {
		caps    []uintptr
		doctor  string
		isKnown bool // the folder is seen before the file is opened
	}
	kit.Rows(t, map[string]row{
		"WithCapLease": {[]uintptr{unix.CAP_LEASE}, `OK    open-files acme: the kernel tells which files are still open`, false},
		"Without":      {nil, `WARN  open-files acme: without CAP_LEASE only files count as open that were opened`, true},
	}, func(t *testing.T, row row) {
		t.Parallel()
		p := &plantedSite{site: &site{t: t}}
		p.at(emulator.Config{})
		p.runsWithoutRights(row.caps...)
		p.says("0 doctor", row.doctor)
		staging, folder := filepath.Join(t.TempDir(), "Huber 88"), filepath.Join(p.dir, "acme", "Huber 88")
		p.do(os.Mkdir(staging, 0o770), os.WriteFile(filepath.Join(staging, "scan.pdf"), []byte("%PDF-1.7\npage 1\n%%EOF\n"), 0o660))
		gid := p.giveToClerk(staging, "scan.pdf")
		writer := io.Closer(nil)
		if row.isKnown {
			p.do(os.Rename(staging, folder))
			p.says("0/3 status", `acme: no sidecar 1`)
			writer = p.clerkWrites(gid, filepath.Join(folder, "scan.pdf"))
		} else {
			writer = p.clerkWrites(gid, filepath.Join(staging, "scan.pdf"))
			p.do(os.Rename(staging, folder))
		}
		sidecar := filepath.Join(folder, "metadata.json")
		p.do(os.WriteFile(sidecar, []byte(`{"documentType": "Invoice", "documentId": "88", "documentDate": "2026-10-31"}`), 0o660), os.Chmod(sidecar, 0o664))
		p.says("0/3 status", `acme: still open 1`)
		p.says("page", `"scan.pdf" is still open in a program`)
		p.do(writer.Close())
		p.archives()
	})
}

// clerk is a user without an account.
const clerk = 47_111

// giveToClerk gives a folder and a file in it to a clerk and the daemon's group, which it returns.
func (p *plantedSite) giveToClerk(dir, file string) (gid int) {
	p.t.Helper()
	u, err := user.Lookup("daemon") // as whom the daemon runs
	kit.Must(p.t, err)
	gid, _ = strconv.Atoi(u.Gid)
	file = filepath.Join(dir, file)
	p.do(os.Chown(dir, clerk, gid), os.Chown(file, clerk, gid), os.Chmod(dir, 0o770), os.Chmod(file, 0o660),
		os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755))
	return gid
}

// clerkWrites has the clerk write into a file, and keep it open until what is returned is closed.
func (p *plantedSite) clerkWrites(gid int, file string) io.Closer {
	p.t.Helper()
	cmd := exec.Command("/bin/sh", "-c", `exec 3>>"$0" && echo "% page 2" >&3 && echo open && read end`, file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: clerk, Gid: uint32(gid)}}
	in := kit.Value(cmd.StdinPipe())(p.t)
	out, err := cmd.StdoutPipe()
	kit.Must(p.t, errors.Join(err, cmd.Start()))
	p.t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	kit.Value(io.ReadFull(out, make([]byte, len("open\n"))))(p.t)
	return in
}
