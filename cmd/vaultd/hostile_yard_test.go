package main_test

import (
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// yard is a site with a running vaultd that is not root, so that rights count.
type yard struct {
	*site
	uid, gid int
	staging  string
	outside  string // what links lead to: nothing of it may be read, moved or changed
	daemon   *process
	base     string // address of the status page
	next     int
	deadline time.Time // for every ending
}

func (y *yard) must(err error) {
	y.t.Helper()
	kit.Must(y.t, err)
}

const secretOutside = "SECRET-OF-ANOTHER"

func newYard(t *testing.T) (*yard, *emulator.Server) {
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 50 * time.Millisecond, ArchiveMax: 300 * time.Millisecond})
	y := &yard{site: newSite(t, url, fast)}
	l, err := net.Listen("tcp", "127.0.0.1:0") // an address that nobody listened on just now
	y.must(err)
	y.base = "http://" + l.Addr().String()
	y.must(l.Close())
	text, err := os.ReadFile(y.config)
	y.must(err)
	y.must(os.WriteFile(y.config, []byte(strings.NewReplacer("rescan: 1s}", "rescan: 500ms, remind_after: 1s}", "  - {name: beta", fmt.Sprintf(`  - {name: names, path: %[1]s/names, vault: ACME, settle: 300ms, rescan: 500ms, remind_after: 1s}
  - {name: sidecars, path: %[1]s/sidecars, vault: ACME, settle: 300ms, rescan: 500ms, remind_after: 1s}
  - {name: rights, path: %[1]s/rights, vault: ACME, settle: 300ms, rescan: 500ms, remind_after: 1s}
  - {name: beta`, y.dir),
		`listen: ""`, "listen: "+l.Addr().String()).Replace(string(text))), 0o640))
	for _, drop := range []string{"names", "sidecars", "rights"} {
		y.must(os.Mkdir(filepath.Join(y.dir, drop), 0o770))
	}
	y.staging, y.outside = filepath.Join(y.dir, "staging"), filepath.Join(y.dir, "outside")
	y.must(os.Mkdir(y.staging, 0o755))
	y.must(os.MkdirAll(filepath.Join(y.outside, "folder"), 0o755))
	for name, content := range map[string]string{"secret.txt": secretOutside, "folder/rechnung.pdf": secretOutside,
		"folder/metadata.json": `{"documentType": "Invoice", "documentId": "OUTSIDE", "documentDate": "2026-10-31"}`} {
		y.must(os.WriteFile(filepath.Join(y.outside, name), []byte(content), 0o644))
	}
	y.uid, y.gid = os.Geteuid(), os.Getegid()
	if y.uid == 0 {
		y.becomeNobody()
	}
	return y, emu
}

// becomeNobody gives the site to an account that every Debian has: as root vaultd could read everything.
func (y *yard) becomeNobody() {
	y.t.Helper()
	u, err := user.Lookup("daemon")
	y.must(err)
	y.uid, err = strconv.Atoi(u.Uid)
	y.must(err)
	y.gid, err = strconv.Atoi(u.Gid)
	y.must(err)
	for _, dir := range []string{filepath.Dir(y.dir), y.dir, filepath.Dir(realProgram(y.t))} {
		y.must(os.Chmod(dir, 0o755))
	}
	for _, top := range []string{"state", "acme", "beta", "names", "sidecars", "rights", "config.yaml", "secret"} {
		y.must(filepath.WalkDir(filepath.Join(y.dir, top), func(p string, _ os.DirEntry, err error) error {
			if err == nil {
				err = os.Lchown(p, y.uid, y.gid)
			}
			return err
		}))
	}
}

func (y *yard) start() {
	cmd := y.command("run", "-v")
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(y.uid), Gid: uint32(y.gid)}}
	}
	y.daemon = startProcess(y.t, cmd)
	kit.Await(y.t, "the drop folder to be opened", func() bool { _, err := os.Stat(filepath.Join(y.dir, "acme/_STATUS.txt")); return err == nil })
}

// moveIn moves what lies at staging into a drop folder, whole.
func (y *yard) moveIn(drop, folder string) {
	y.t.Helper()
	y.must(os.Rename(filepath.Join(y.staging, folder), filepath.Join(y.dir, drop, folder)))
}

// give makes a path the group's, as setgid folders and masks of a share do.
func (y *yard) give(at string) {
	if os.Geteuid() == 0 {
		y.must(os.Lchown(at, -1, y.gid))
	}
}

// write makes a file and the folders above it.
func (y *yard) write(at, content string) {
	y.t.Helper()
	y.folder(filepath.Dir(at))
	y.must(os.WriteFile(at, []byte(content), 0o660))
	y.must(os.Chmod(at, 0o660))
	y.give(at)
}

func (y *yard) folder(at string) {
	if _, err := os.Lstat(at); err == nil || len(at) <= len(y.staging) {
		return
	}
	y.folder(filepath.Dir(at))
	y.must(os.Mkdir(at, 0o770))
	y.must(os.Chmod(at, 0o770))
	y.give(at)
}

// invoice makes a folder with which nothing is wrong; no two are alike.
func (y *yard) invoice(at string) {
	y.next++
	y.write(at+"/rechnung.pdf", fmt.Sprint("%PDF-1.4 ", y.next, "\n%%EOF\n"))
	y.write(at+"/metadata.json", fmt.Sprintf(`{"documentType": "Invoice", "documentId": "H-%d", "documentDate": "2026-10-31"}`, y.next))
}

// neighbours drops good folders into both drop folders and tells where.
func (y *yard) neighbours(round string, n int) (paths []string) {
	for i := range n {
		for _, drop := range []string{"acme", "beta"} {
			name := fmt.Sprintf("Gut %s %d", round, i)
			y.invoice(filepath.Join(y.staging, name))
			y.moveIn(drop, name)
			paths = append(paths, filepath.Join(drop, name))
		}
	}
	return paths
}
