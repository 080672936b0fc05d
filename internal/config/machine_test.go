package config

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
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

// I27: a private file that clerks can read is refused, by its group or its
// access list. A group of vaultd's own and an access list for vaultd alone are
// good.
func TestCheckMachine_I27_SecretsThatClerksRead(t *testing.T) {
	grant := func(tag byte, id uint16, mode byte) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			list := []byte("\x02\x00\x00\x00\x01\x00\x06\x00\xff\xff\xff\xff\x02\x00\x06\x00????\x04\x00\x00\x00\xff\xff\xff\xff\x10\x00\x04\x00\xff\xff\xff\xff\x20\x00\x00\x00\xff\xff\xff\xff")
			list[12], list[14], list[16], list[17], list[18], list[19] = tag, mode, byte(id), byte(id>>8), 0, 0
			if tag == 8 { // named groups come after the group
				copy(list[12:28], append(append([]byte{}, list[20:28]...), list[12:20]...))
			}
			if err := unix.Setxattr(file, "system.posix_acl_access", list, 0); err != nil {
				kit.Missing(t, "a file system with access lists: "+err.Error())
			}
		}
	}
	ofClerks := func(mode fs.FileMode) func(t *testing.T, file string) {
		return func(t *testing.T, file string) {
			giveAway(t, file, -1, 4711)
			kit.Must(t, os.Chmod(file, mode))
		}
	}
	type row struct {
		make func(t *testing.T, file string)
		says string // empty: it is accepted
	}
	kit.Rows(t, map[string]row{
		"OwnGroup": {func(t *testing.T, file string) {
			giveAway(t, file, -1, 4712)
			kit.Must(t, os.Chmod(file, 0o640))
		}, ""},
		"GroupOfTheDrop":     {ofClerks(0o640), "can be read by clerks: its group gid 4711 is that of a drop folder"},
		"GroupMayNotRead":    {ofClerks(0o600), ""},
		"ListOfAClerk":       {grant(2, 4713, 4), "can be read by uid 4713: its access list"},
		"ListOfVaultd":       {grant(2, uint16(os.Geteuid()), 4), ""},
		"ListWithoutReading": {grant(2, 4713, 0), ""},
		"ListOfTheGroup":     {grant(8, 4711, 4), "its access list (getfacl) has the group gid 4711 of a drop folder"},
		"ListOfAnotherGroup": {grant(8, 4712, 4), ""},
	}, func(t *testing.T, row row) {
		folder, secret := t.TempDir(), secretFile(t, canary, 0o600)
		giveAway(t, folder, -1, 4711)
		text := strings.NewReplacer("/etc/vaultd/secret", secret, "/srv/invoices/acme-in", folder).Replace(smallConfig)
		cfg := mustLoad(t, text+"state_dir: "+filepath.Join(t.TempDir(), "state")+"\n")
		row.make(t, secret)
		err := cfg.CheckMachine(noEnv)
		if row.says == "" {
			kit.Must(t, err)
			return
		}
		kit.Need(t, err != nil, "accepted, want %q", row.says)
		kit.Holds(t, "error", err.Error(), row.says, "change the secret, then: chown root:vaultd", "secret_file")
		kit.Lacks(t, "error", err.Error(), canary)
	})
}

// I27: each private file is looked at, not the credentials of the archive alone.
func TestPrivateFiles_I27_All(t *testing.T) {
	c := Config{Service: Service{Auth: Auth{SecretFile: "/a"}, Accounts: map[string]Auth{"beta": {SecretFile: "/b"}}, ProxyAuth: ProxyAuth{Username: "u", SecretFile: "/c"}},
		PDF: PDF{BaseURL: "x", Auth: Auth{SecretFile: "/d"}}, Extracts: Extracts{BaseURL: "x", Auth: Auth{SecretFile: "/e"}}, Network: Network{BaseURL: "x", Auth: BasicAuth{SecretFile: "credential:f"}},
		HTTP: HTTP{KeyFile: "/g", Access: PageAccess{UsersFile: "/h", Proxy: PageProxy{SecretFile: "/i"}}}}
	kit.Want(t, "private files", strings.Join(slices.Sorted(maps.Values(c.privateFiles())), " "), "/a /b /c /d /e /g /h /i")
}

// I27: the group of a drop folder counts as others, also where vaultd itself
// runs with that group, unless it bears the name of vaultd's user.
func TestCheckMachine_I27_GroupOfTheDrop(t *testing.T) {
	const folder, games = "VAULTD_TEST_CLERKS", 5 // a user of Debian, whose group games has another number
	if dir := os.Getenv(folder); dir != "" {
		info := kit.Value(os.Stat(dir))(t)
		cfg := Config{Drops: []Drop{{Path: dir}}}
		kit.Want(t, "where it is the drop's", describeForeignWriters(info, cfg.clerkGroups()) != "", os.Geteuid() != games)
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
	program := kit.Value(os.ReadFile(os.Args[0]))(t)
	here := filepath.Join(filepath.Dir(dir), "test")
	kit.Must(t, os.WriteFile(here, program, 0o755))
	for _, as := range []syscall.Credential{{Uid: 4710, Gid: 4711}, {Uid: games, Gid: 60}} {
		giveAway(t, dir, int(as.Uid), int(as.Gid))
		kit.Must(t, os.Chmod(dir, 0o770))
		c := exec.Command(here, "-test.run=^TestCheckMachine_I27_GroupOfTheDrop$")
		c.Env, c.Dir = append(os.Environ(), folder+"="+dir), "/"
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &as}
		out, err := c.CombinedOutput()
		kit.Check(t, err == nil, "as %d: %v\n%s", as.Uid, err, out)
	}
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
