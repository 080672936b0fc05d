package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// I23, I26, I27: the mount of one drop lets its group write, and chmod is
// ignored there. init, check, doctor and status say what to set, the other drop
// works meanwhile, and one key makes this one work as well.
func TestMountModes_I26_I27_OneKey(t *testing.T) {
	kit.NeedBindfs(t)
	if !apart(t) {
		return
	}
	emu, s := served(t, emulator.Config{Window: time.Minute, ArchiveMin: 2 * time.Second, ArchiveMax: 3 * time.Second}, fast)
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
	waitFor(t, "the other drop's to be archived", s.inState("archived", 2))
	kit.Holds(t, "doctor", s.must(1, "doctor"), append(advice, "FAIL  drop acme: ")...)
	out, code := s.vaultd("status")
	kit.Want(t, "exit code of status", code, exitPerson)
	kit.Holds(t, "status", out, "chmod has no effect")

	s.edit("vault: ACME, ", "vault: ACME, modes: mount, ")
	s.must(0, "reload")
	waitFor(t, "all to be archived", s.inState("archived", 4))
	waitFor(t, "all to lie in their place", func() bool {
		receipts, err := filepath.Glob(filepath.Join(s.dir, "*", "_archived", "*", "*", "_RECEIPT.json"))
		return err == nil && len(receipts) == 4
	})
	d := s.diagnose(0)
	kit.Holds(t, "doctor on modes", d.found("modes", "acme"), "OK the mount decides them (0770): all of its group can change what vaultd took, as modes: mount accepts")
	kit.Holds(t, "doctor on the mount", d.found("mount", "acme"), "OK a network drive or FUSE (fuse): events do not count there")
	kit.Want(t, "doctor on the modes of the other drop", d.found("modes", "beta"), "")
	if places := d.found("drop", "acme"); strings.Contains(places, "chmod") {
		t.Errorf("doctor advises chmod, which has no effect: %s", places)
	}
	kit.Lacks(t, "check", s.must(0, "check", "--offline"), "the mount of")
	s.ends(p, emu, 4)
}
