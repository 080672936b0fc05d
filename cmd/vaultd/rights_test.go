package main_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// A command of root works as the user that state_dir belongs to: whatever it
// makes in state_dir and in the drop folders is that user's, and a later
// command of that user can work with it. Files that the command line names are
// read and written as root. The journal names root as who decided.
func TestRights_I16_I27_RootWorksAsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give commands for the daemon of another user")
	}
	t.Parallel()
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
	for _, name := range []string{"ledger.db", "ledger.head"} {
		kit.Must(t, os.Rename(filepath.Join(s.dir, "state", name), filepath.Join(s.dir, name)))
	}
	do(exitDone, "rebuild", "--reason", "a drill")
	do(exitDone, "reconcile")
	names, err := filepath.Glob(roots + "/*")
	kit.Must(t, err)
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
	t.Parallel()
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
	in, err := cmd.StdinPipe()
	kit.Must(p.t, err)
	out, err := cmd.StdoutPipe()
	kit.Must(p.t, errors.Join(err, cmd.Start()))
	p.t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	kit.Value(io.ReadFull(out, make([]byte, len("open\n"))))(p.t)
	return in
}
