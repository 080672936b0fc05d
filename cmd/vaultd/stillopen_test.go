package main_test

import (
	"errors"
	"io"
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

// I17, I27: with exactly the right that the unit leaves it, vaultd sees that a clerk still has a file open, says so, and takes the folder once it
// is closed; doctor says whether it has that right.
func TestStillOpen_I17_I27_WithTheRightsOfTheUnit(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		kit.Missing(t, "needs root: files of several users")
	}
	for name, row := range map[string]struct {
		caps   []uintptr
		doctor string
	}{
		"WithCapLease": {[]uintptr{unix.CAP_LEASE}, `OK    open-files acme: the kernel tells which files are still open`},
		"Without":      {nil, `WARN  open-files acme: without CAP_LEASE`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := &plantedSite{site: &site{t: t}}
			p.at(emulator.Config{})
			p.runsWithoutRights(row.caps...)
			p.says("0 doctor", row.doctor)
			if row.caps == nil {
				return
			}
			staging := filepath.Join(t.TempDir(), "Huber 88")
			p.do(os.Mkdir(staging, 0o770), os.WriteFile(filepath.Join(staging, "metadata.json"), []byte(`{"documentType": "Invoice", "documentId": "88", "documentDate": "2026-10-31"}`), 0o660),
				os.WriteFile(filepath.Join(staging, "scan.pdf"), []byte("%PDF-1.7\npage 1\n%%EOF\n"), 0o660))
			writer := p.clerkWrites(filepath.Join(staging, "scan.pdf"))
			p.do(os.Rename(staging, filepath.Join(p.dir, "acme", "Huber 88")))
			p.says("0/3 status", `acme: still open 1`)
			p.says("page", `"scan.pdf" is still open in a program`)
			p.do(writer.Close())
			p.archives()
		})
	}
}

// clerkWrites gives a folder to a clerk of the daemon's group, who has the file in it open until what is returned is closed.
func (p *plantedSite) clerkWrites(file string) io.Closer {
	p.t.Helper()
	u, err := user.Lookup("daemon") // as whom the daemon runs
	kit.Must(p.t, err)
	gid, _ := strconv.Atoi(u.Gid)
	const clerk = 47_111
	dir := filepath.Dir(file)
	for _, at := range []string{dir, file, filepath.Join(dir, "metadata.json")} {
		p.do(os.Chown(at, clerk, gid))
	}
	p.do(os.Chmod(dir, 0o770), os.Chmod(file, 0o660), os.Chmod(filepath.Join(dir, "metadata.json"), 0o660), os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755))
	cmd := exec.Command("/bin/sh", "-c", `exec 3>>"$0" && echo open && read end`, file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: clerk, Gid: uint32(gid)}}
	in, err := cmd.StdinPipe()
	kit.Must(p.t, err)
	out, err := cmd.StdoutPipe()
	kit.Must(p.t, errors.Join(err, cmd.Start()))
	p.t.Cleanup(func() { _, _ = in.Close(), cmd.Wait() })
	_, err = io.ReadFull(out, make([]byte, len("open\n")))
	kit.Must(p.t, err)
	return in
}
