package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// share is a real smbd on a loopback port, serving the drop folders of a site as docs/samba.md says.
type share struct {
	t      *testing.T
	ctx    context.Context // the day ends, however it goes
	dir    string
	conf   string
	port   string
	clerk  *user.User // of the share's group
	local  string     // the clerk's own disk
	vaultd *user.User
}

const clerkPassword = "drop-it-here"

// needsSamba ends the test where it cannot run.
func needsSamba(t *testing.T) {
	t.Helper()
	why := ""
	for _, program := range []string{"smbd", "smbclient", "smbpasswd"} {
		if _, err := exec.LookPath(program); err != nil {
			why = program + " is missing: apt-get install samba smbclient"
		}
	}
	if os.Geteuid() != 0 {
		why = "smbd must be root to become the clerk"
	}
	if why != "" {
		kit.Missing(t, "the clerk's day over a real share: "+why)
	}
}

// newShare turns the site's drop folders into shares. Accounts that every Debian has stand for the clerk and for vaultd,
// the clerk's group for the group invoices: nothing is added to the machine.
func newShare(t *testing.T, s *site) *share {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // other tests may keep the machine busy
	t.Cleanup(cancel)
	h := &share{t: t, ctx: ctx, dir: filepath.Join(s.dir, "samba"), local: filepath.Join(s.dir, "clerk")}
	var err error
	if h.clerk, err = user.Lookup("games"); err != nil {
		t.Fatal(err)
	}
	if h.vaultd, err = user.Lookup("daemon"); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Dir(s.dir), s.dir, filepath.Dir(realProgram(t))} {
		h.must(os.Chmod(dir, 0o755))
	}
	h.must(os.Mkdir(h.local, 0o755))
	h.must(os.Mkdir(h.dir, 0o755))
	uid, gid := h.id(h.vaultd.Uid), h.id(h.clerk.Gid)
	for _, drop := range []string{"acme", "beta"} { // as the page says
		h.must(os.Chown(filepath.Join(s.dir, drop), uid, gid))
		h.must(os.Chmod(filepath.Join(s.dir, drop), 0o770|os.ModeSetgid|os.ModeSticky))
	}
	h.must(filepath.WalkDir(filepath.Join(s.dir, "state"), func(p string, _ os.DirEntry, err error) error {
		h.must(err)
		return os.Chown(p, uid, h.id(h.vaultd.Gid))
	}))
	text := kit.Value(os.ReadFile(s.config))(h.t)
	calmer := strings.Replace(string(text), "settle: 300ms", "settle: 800ms", 1) // the slow copy must not look finished
	h.must(os.WriteFile(s.config, []byte(calmer), 0o640))
	for _, file := range []string{"config.yaml", "secret"} {
		h.must(os.Chown(filepath.Join(s.dir, file), uid, h.id(h.vaultd.Gid)))
	}
	h.configure(s)
	h.serve()
	return h
}

func (h *share) must(err error) {
	h.t.Helper()
	kit.Must(h.t, err)
}

func (h *share) id(s string) int {
	n := kit.Value(strconv.Atoi(s))(h.t)
	return n
}

// configure writes smb.conf from the page, and a share with Samba's own masks beside it.
func (h *share) configure(s *site) {
	h.t.Helper()
	page := kit.Value(os.ReadFile("../../docs/samba.md"))(h.t)
	block := regexp.MustCompile("(?s)```ini\n(.*?)```").FindSubmatch(page)
	kit.Need(h.t, block != nil, "docs/samba.md has no smb.conf")
	l := kit.Value(net.Listen("tcp", "127.0.0.1:0"))(h.t)
	h.port = strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	h.must(l.Close())
	var b strings.Builder
	fmt.Fprintf(&b, "[global]\n server role = standalone server\n smb ports = %s\n bind interfaces only = yes\n interfaces = 127.0.0.1\n disable netbios = yes\n"+
		" load printers = no\n printing = bsd\n printcap name = /dev/null\n disable spoolss = yes\n smb2 max write = 65536\n log level = 1\n log file = %s/log.smbd\n", h.port, h.dir)
	for _, option := range []string{"private dir", "state directory", "cache directory", "lock directory", "pid directory", "ncalrpc dir"} {
		fmt.Fprintf(&b, " %s = %s\n", option, h.dir)
	}
	section := func(name, drop, text string) {
		text = strings.ReplaceAll(text, "[acme-in]", "["+name+"]")
		text = strings.ReplaceAll(text, "/srv/invoices/acme-in", filepath.Join(s.dir, drop))
		b.WriteString(strings.ReplaceAll(text, "@invoices", "@"+h.clerk.Username) + "\n")
	}
	section("acme", "acme", string(block[1]))
	section("beta", "beta", string(block[1]))
	section("stock", "acme", regexp.MustCompile(`(?m)^.*(mask|mode) =.*$`).ReplaceAllString(string(block[1]), ""))
	h.conf = filepath.Join(h.dir, "smb.conf")
	h.must(os.WriteFile(h.conf, []byte(b.String()), 0o644))
}

// serve runs smbd in a group of its own, so that its children end with it and nothing else does.
func (h *share) serve() {
	h.t.Helper()
	cmd := exec.Command("smbpasswd", "-c", h.conf, "-s", "-a", h.clerk.Username)
	cmd.Stdin = strings.NewReader(clerkPassword + "\n" + clerkPassword + "\n")
	out, err := cmd.CombinedOutput()
	kit.Need(h.t, err == nil, "smbpasswd: %v: %s", err, out)
	smbd := exec.Command("smbd", "--foreground", "--no-process-group", "--configfile="+h.conf)
	smbd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started, ended := make(chan error, 1), make(chan struct{})
	go func() {
		defer close(ended)
		// The kernel sends Pdeathsig when the thread ends that started the child. Any thread may be the one
		// that another test locks and ends with: this one waits here as long as smbd lives.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := smbd.Start()
		started <- err
		if err == nil {
			_ = smbd.Wait()
		}
	}()
	h.must(<-started)
	h.t.Cleanup(func() {
		_ = syscall.Kill(-smbd.Process.Pid, syscall.SIGKILL) // the group that began above
		<-ended
		if log, err := os.ReadFile(filepath.Join(h.dir, "log.smbd")); err == nil && h.t.Failed() {
			h.t.Logf("smbd:\n%s", tail(string(log), 3000))
		}
	})
	kit.Await(h.t, "smbd to answer", func() bool {
		c, err := net.DialTimeout("tcp", "127.0.0.1:"+h.port, time.Second)
		if err != nil {
			return false
		}
		c.Close()
		return true
	})
}

// smb runs commands on a share, as the clerk at his desk.
func (h *share) smb(name, commands string) (string, error) {
	out, err := h.client(name, commands).CombinedOutput()
	return string(out), err
}

func (h *share) client(name, commands string) *exec.Cmd {
	cmd := exec.CommandContext(h.ctx, "smbclient", "//127.0.0.1/"+name, "-p", h.port, "-s", h.conf, "-m", "SMB3", "-U", h.clerk.Username+"%"+clerkPassword, "-c", commands)
	cmd.Dir, cmd.Env = h.local, append(os.Environ(), "LC_ALL=C.UTF-8")
	return cmd
}

func (h *share) mustSMB(name, commands string) {
	h.t.Helper()
	out, err := h.smb(name, commands)
	kit.Need(h.t, err == nil && !strings.Contains(out, "NT_STATUS_"), "smbclient %s: %v: %s", commands, err, out)
}

// read gets a file over SMB, which must be one that Notepad shows well.
func (h *share) read(name, path string) string {
	h.t.Helper()
	local := filepath.Join(h.local, "got.txt")
	h.mustSMB(name, fmt.Sprintf(`get "%s" got.txt`, path))
	data := kit.Value(os.ReadFile(local))(h.t)
	text, marked := bytes.CutPrefix(data, []byte("\xef\xbb\xbf"))
	kit.Check(h.t, marked && bytes.Count(text, []byte("\n")) == bytes.Count(text, []byte("\r\n")),
		"%s is not as Notepad likes it: %q", path, data)
	return string(text)
}

// says waits until _STATUS.txt of a drop matches.
func (h *share) says(name, pattern string) string {
	h.t.Helper()
	re, text, unread := regexp.MustCompile(pattern), "", ""
	for h.ctx.Err() == nil {
		if out, err := h.smb(name, "get _STATUS.txt status.txt"); err != nil || strings.Contains(out, "NT_STATUS_") {
			unread = fmt.Sprintf("%s: it could not be read: %v, %s", time.Now().Format(time.TimeOnly), err, out)
		} else {
			text = h.status()
			if re.MatchString(strings.ReplaceAll(text, "\r\n", "\n")) {
				return text
			}
		}
		time.Sleep(250 * time.Millisecond) // real processes, real time
	}
	h.t.Fatalf("_STATUS.txt of %s never said %q, but:\n%s\n%s", name, pattern, text, unread)
	return ""
}

func (h *share) status() string {
	data := kit.Value(os.ReadFile(filepath.Join(h.local, "status.txt")))(h.t)
	return strings.TrimPrefix(string(data), "\ufeff")
}

// prepare makes an invoice folder on the clerk's disk.
func (h *share) prepare(folder string, sidecar map[string]any, files map[string][]byte) {
	h.t.Helper()
	h.must(os.MkdirAll(filepath.Join(h.local, folder), 0o755))
	meta := kit.Value(json.MarshalIndent(sidecar, "", "  "))(h.t)
	h.must(os.WriteFile(filepath.Join(h.local, folder, "metadata.json"), meta, 0o644))
	for name, content := range files {
		path := filepath.Join(h.local, folder, name)
		h.must(os.MkdirAll(filepath.Dir(path), 0o755))
		h.must(os.WriteFile(path, content, 0o644))
	}
}

func bill(number string) map[string]any {
	return map[string]any{"documentType": "Invoice", "documentId": number, "documentDate": "2026-10-31", "amount": 119.00, "currencyCode": "EUR"}
}

// run starts the daemon as its own user with the tightest umask there is.
func (h *share) run(s *site) *process {
	cmd := exec.Command("/bin/sh", "-c", `umask 0077; exec "$0" "$@"`, realProgram(h.t), "--config", s.config, "run")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(h.id(h.vaultd.Uid)), Gid: uint32(h.id(h.vaultd.Gid)), Groups: []uint32{uint32(h.id(h.clerk.Gid))}}}
	return startProcess(h.t, cmd)
}

// I23, I26, I27: the mount of one drop lets its group write, and chmod is
// ignored there. init, check, doctor and status say what to set, the other drop
// works meanwhile, and one key makes this one work as well.
func TestMountModes_I26_I27_OneKey(t *testing.T) {
	kit.NeedBindfs(t)
	if !apart(t) {
		return
	}
	emu, s := newServed(t, emulator.Config{Window: time.Minute, ArchiveMin: 2 * time.Second, ArchiveMax: 3 * time.Second}, fast)
	acme := filepath.Join(s.dir, "acme")
	kit.Bindfs(t, acme, "--perms=u=rwX,g=rwX,o=", "--chmod-ignore")
	s.edit("state_dir: "+s.dir+"/state", "state_dir: "+s.dir+"/second")
	advice := []string{"the mount of", "(0770, group ", "chmod has no effect", "uid=vaultd,gid=GROUP,dir_mode=0750,file_mode=0640,nosuid", `"modes: mount"`, "docs/network-drives.md"}
	for _, args := range [][]string{{"init"}, {"check", "--offline"}} {
		out := s.must(0, args...)
		kit.Holds(t, args[0], out, append(advice, "LOOK AT  drop acme: ")...)
		kit.Lacks(t, args[0], out, "LOOK AT  drop beta: the mount", "chmod 700")
	}
	if left, err := os.ReadDir(acme); err != nil || len(left) > 0 {
		t.Errorf("left in the drop folder: %v, %v, want nothing", left, err)
	}
	s.edit("state_dir: "+s.dir+"/second", "state_dir: "+s.dir+"/state")

	p := s.begin()
	s.add("acme", "mine", 2)
	s.add("beta", "other", 2)
	kit.Await(t, "the other drop's to be archived", s.inState("archived", 2))
	kit.Holds(t, "doctor", s.must(1, "doctor"), append(advice, "FAIL  drop acme: ")...)
	out, code := s.vaultd("status")
	kit.Want(t, "exit code of status", code, exitPerson)
	kit.Holds(t, "status", out, "chmod has no effect")

	s.edit("vault: ACME, ", "vault: ACME, modes: mount, ")
	s.must(0, "reload")
	kit.Await(t, "all to be archived", s.inState("archived", 4))
	kit.Await(t, "all to lie in their place", func() bool {
		receipts, err := filepath.Glob(filepath.Join(s.dir, "*", "_archived", "*", "*", "_RECEIPT.json"))
		return err == nil && len(receipts) == 4
	})
	d := s.diagnose(0)
	kit.Holds(t, "doctor on modes", d.found("modes", "acme"), "OK the mount decides them (0770): all of its group can change what vaultd took, as modes: mount accepts")
	kit.Holds(t, "doctor on the mount", d.found("mount", "acme"), "OK a network drive or FUSE (fuse): events do not count there")
	kit.Want(t, "doctor on the modes of the other drop", d.found("modes", "beta"), "")
	places := d.found("drop", "acme")
	kit.Check(t, !strings.Contains(places, "chmod"), "doctor advises chmod, which has no effect: %s", places)
	kit.Lacks(t, "check", s.must(0, "check", "--offline"), "the mount of")
	s.ends(p, emu, 4)
}
