package config

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

// I27: a configuration that others than root and this user own, may write or
// may replace is refused.
func TestCheckMachine_I27_ConfigurationOfClerks(t *testing.T) {
	for name, row := range map[string]struct {
		make func(t *testing.T, folder, file string)
		says string // empty: it is accepted
	}{
		"Good":           {func(*testing.T, string, string) {}, ""},
		"ReadableForAll": {func(t *testing.T, _, file string) { kit.Must(t, os.Chmod(file, 0o644)) }, ""},
		"ForAll":         {func(t *testing.T, _, file string) { kit.Must(t, os.Chmod(file, 0o602)) }, "it has rights 0602"},
		"OfAClerk":       {func(t *testing.T, _, file string) { giveAway(t, file, 4711, -1) }, "it belongs to uid 4711"},
		"OfTheirGroup": {func(t *testing.T, _, file string) {
			giveAway(t, file, -1, 4711)
			kit.Must(t, os.Chmod(file, 0o660))
		}, "it has rights 0660"},
		"GroupMayRead": {func(t *testing.T, _, file string) {
			giveAway(t, file, -1, 4711)
			kit.Must(t, os.Chmod(file, 0o640))
		}, ""},
		"AccessList": {func(t *testing.T, _, file string) {
			list := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x06\x00\x67\x12\x00\x00" +
				"\x04\x00\x00\x00\xff\xff\xff\xff\x10\x00\x06\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff") // u::rw-,u:4711:rw-,g::---,m::rw-,o::---
			if err := unix.Setxattr(file, "system.posix_acl_access", list, 0); err != nil {
				kit.Missing(t, "a file system with access lists: "+err.Error())
			}
		}, "access list"},
		"InAFolderForAll": {func(t *testing.T, folder, _ string) { kit.Must(t, os.Chmod(folder, 0o777)) }, "others could put another file in its place"},
		"InAClerksFolder": {func(t *testing.T, folder, _ string) { giveAway(t, folder, 4711, -1) }, "belongs to uid 4711"},
		"LinkInAFolderForAll": {func(t *testing.T, folder, file string) {
			real := filepath.Join(t.TempDir(), "real.yaml")
			kit.Must(t, errors.Join(os.Rename(file, real), os.Symlink(real, file), os.Chmod(folder, 0o777)))
		}, "others could put another file in its place"},
		"LinkToAClerksFile": {func(t *testing.T, _, file string) {
			real := filepath.Join(t.TempDir(), "real.yaml")
			kit.Must(t, errors.Join(os.Rename(file, real), os.Symlink(real, file)))
			giveAway(t, real, 4711, -1)
		}, "it belongs to uid 4711"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(smallConfig, "/etc/vaultd/secret", secretFile(t, canary, 0o600), 1)
			cfg := mustLoad(t, text+"state_dir: "+filepath.Join(t.TempDir(), "state")+"\n")
			row.make(t, filepath.Dir(cfg.doc.name), cfg.doc.name)
			err := cfg.CheckMachine(noEnv)
			if row.says == "" {
				kit.Must(t, err)
				return
			}
			kit.Need(t, err != nil, "accepted, want %q", row.says)
			kit.Holds(t, "error", err.Error(), row.says, "chown root:vaultd")
		})
	}
}

// I27: the group of a drop folder counts as others, also where vaultd itself runs with that group.
func TestCheckMachine_I27_GroupOfTheDrop(t *testing.T) {
	const folder = "VAULTD_TEST_CLERKS"
	if dir := os.Getenv(folder); dir != "" {
		info := kit.Value(os.Stat(dir))(t)
		cfg := Config{Drops: []Drop{{Path: dir}}}
		kit.Want(t, "where it is the drop's", describeForeignWriters(info, cfg.clerkGroups()) != "", true)
		kit.Want(t, "where it is not", describeForeignWriters(info, nil), "")
		return
	}
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to run as another user")
	}
	dir := filepath.Join(t.TempDir(), "drop")
	kit.Must(t, os.Mkdir(dir, 0o700))
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		kit.Must(t, os.Chmod(at, 0o755))
	}
	giveAway(t, dir, 4710, 4711)
	kit.Must(t, os.Chmod(dir, 0o770))
	program := kit.Value(os.ReadFile(os.Args[0]))(t)
	here := filepath.Join(filepath.Dir(dir), "test")
	kit.Must(t, os.WriteFile(here, program, 0o755))
	c := exec.Command(here, "-test.run=^TestCheckMachine_I27_GroupOfTheDrop$")
	c.Env, c.Dir = append(os.Environ(), folder+"="+dir), "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 4710, Gid: 4711}}
	out, err := c.CombinedOutput()
	kit.Check(t, err == nil, "%v\n%s", err, out)
}

// giveAway gives a file to another user or group.
func giveAway(t *testing.T, path string, uid, gid int) {
	t.Helper()
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give files away")
	}
	if err := os.Chown(path, uid, gid); err != nil {
		kit.Missing(t, "a file system whose files can be given away: "+err.Error())
	}
}
