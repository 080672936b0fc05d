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

// I17, I27: with exactly the right that the unit leaves it, vaultd sees that a
// clerk still has a file open, says so, and takes the folder once it is closed.
// Without that right it sees what is opened in a folder that it knows. Doctor
// says which.
func TestStillOpen_I17_I27_WithTheRightsOfTheUnit(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		kit.Missing(t, "needs root: files of several users")
	}
	for name, row := range map[string]struct {
		caps    []uintptr
		doctor  string
		isKnown bool // the folder is seen before the file is opened
	}{
		"WithCapLease": {[]uintptr{unix.CAP_LEASE}, `OK    open-files acme: the kernel tells which files are still open`, false},
		"Without":      {nil, `WARN  open-files acme: without CAP_LEASE only files count as open that were opened`, true},
	} {
		t.Run(name, func(t *testing.T) {
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
