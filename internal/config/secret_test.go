package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"vaultd/internal/test/kit"
)

const canary = "hunter2"

func secretFile(t *testing.T, content string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	kit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	kit.Must(t, os.Chmod(path, mode))
	return path
}

func TestSecret_I7_NeverPrintsItself(t *testing.T) {
	s := Secret(canary)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("m", "s", s, "group", struct{ S Secret }{s})
	slog.New(slog.NewTextHandler(&log, nil)).Info("m", "s", s, "group", struct{ S Secret }{s})
	encoded := kit.Value(json.Marshal(map[string]any{"s": s, "list": []Secret{s}}))(t)
	shown := fmt.Sprintf("%s %v %q %x %d %#v %+v %v", s, s, s, s, s, s, struct{ S Secret }{s}, &s) + log.String() + string(encoded)
	kit.Lacks(t, "shown", shown, canary, fmt.Sprintf("%x", canary))
	kit.Want(t, "the secret itself is lost", string(s), canary)
}

func TestReadSecret(t *testing.T) {
	kit.Rows(t, map[string]struct{ content, want string }{
		"Plain":          {canary, canary},
		"UnixLine":       {canary + "\n", canary},
		"WindowsLine":    {canary + "\r\n", canary},
		"KeepsBlanks":    {" a b \n", " a b "},
		"Empty":          {"\n", ""},
		"TwoLines":       {canary + "\n" + canary + "\n", ""},
		"ByteOrderMark":  {"\ufeff" + canary, ""},
		"NoText":         {canary + "\x00", ""},
		"NotASecretFile": {strings.Repeat(canary, 2000), ""},
	}, func(t *testing.T, row struct{ content, want string }) {
		got, err := ReadSecret(secretFile(t, row.content, 0o640), noEnv)
		kit.Check(t, string(got) == row.want && (err == nil) == (row.want != ""), "%d bytes, %v", len(got), err)
		kit.Check(t, err == nil || !strings.Contains(err.Error(), canary), "secret in %v", err)
	})
}

func TestReadSecret_I27_TooOpenIsRefused(t *testing.T) {
	for mode, ok := range map[fs.FileMode]bool{
		0o400: true, 0o600: true, 0o440: true, 0o640: true,
		0o644: false, 0o660: false, 0o604: false, 0o666: false, 0o641: false,
	} {
		_, err := ReadSecret(secretFile(t, canary, mode), noEnv)
		var rights *SecretRightsError
		if ok != (err == nil) || (!ok && (!errors.As(err, &rights) || rights.Mode.Perm() != mode)) {
			if ok && os.Geteuid() != 0 && errors.Is(err, fs.ErrPermission) {
				continue // a file of mode 0 bits for us: not the question here
			}
			t.Errorf("%#o: %v", mode, err)
		}
	}
}

func TestReadSecret_Credential(t *testing.T) {
	path := secretFile(t, canary, 0o400)
	dir := envOf(map[string]string{"CREDENTIALS_DIRECTORY": filepath.Dir(path)})
	got, err := ReadSecret("credential:secret", dir)
	kit.Check(t, string(got) == canary && err == nil, "err = %v, want string(got) = %v, no error", err, canary)
	kit.Fails(t, "err", kit.Err(ReadSecret("credential:secret", noEnv)), errNoCredentials)
	kit.Fails(t, "err", kit.Err(ReadSecret("credential:other", dir)), fs.ErrNotExist)
	kit.Fails(t, "left the directory of credentials",
		kit.Err(ReadSecret("credential:../"+filepath.Base(filepath.Dir(path))+"/secret", dir)))
}

func TestReadSecret_NotAFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		kit.Missing(t, "a file system with FIFOs: "+err.Error())
	}
	for _, path := range []string{fifo, filepath.Dir(fifo)} {
		_, err := ReadSecret(path, noEnv)
		kit.Check(t, err != nil && strings.Contains(err.Error(), "not a regular file"), `%s: %v, want an error, err with "not a regular file"`, path, err)
	}
}

// People write passwords where they do not belong; the fault that says so must not carry them into a log.
func TestConfigFaults_I7_HideWhatMayBeSecret(t *testing.T) {
	kit.Rows(t, map[string]string{
		"InPlaceOfFile":     "service: {auth: {secret_file: hunter2}}",
		"OnTheNextLine":     "service:\n  auth:\n    secret_file:\n      hunter2",
		"OfTheWrongKind":    "service:\n  auth:\n    secret_file: [hunter2]",
		"UnknownKey":        "service: {auth: {password: hunter2, username: x}}",
		"AnyKeyOfAuth":      "service:\n  auth:\n    clientkey: hunter2",
		"InAnAddress":       "service:\n  base_url: https://u:hunter2@vault.example",
		"InTheProxy":        "service:\n  proxy: http://u:hunter2@proxy",
		"InTokenURL":        "service: {auth: {method: oauth2, token_url: 'https://u:hunter2@x'}}",
		"Elsewhere":         "client_secret: hunter2",
		"BesideAFault":      "service: {auth: {method: x, api-key: hunter2}}",
		"BrokenSyntax":      "service: {auth: {secret: \"hunter2",
		"AfterAGoodFile":    "service: {auth: {secret_file: /etc/s, password: 'hunter2', x: 1}}",
		"TwiceInAuth":       "service:\n  auth:\n    username: a\n    username: hunter2",
		"PlainWordForAuth":  "service:\n  auth: hunter2",
		"TheSecretItself":   "hunter2",
		"SecretAndMore":     "- hunter2\n- x",
		"InPlaceOfPassword": "http: {password_file: hunter2}",
		"InPlaceOfUsers":    "http: {access: {users_file: hunter2}}",
		"InPlaceOfAccess":   "http: {access: hunter2}",
		"InPlaceOfKey":      "http:\n  key_file: |\n    hunter2",
		"CommentOfPassword": "service: {}  # password: hunter2",
	}, func(t *testing.T, text string) {
		_, faults := load(t, text, nil)
		kit.Need(t, len(faults) != 0, "no fault")
		kit.Lacks(t, "shown", (&Error{Faults: faults}).Error(), canary)
	})
}

func TestCheckDisk(t *testing.T) {
	state := filepath.Join(t.TempDir(), "not", "yet", "made")
	check := func(t *testing.T, secretPath, more string) error {
		t.Helper()
		text := strings.Replace(smallConfig, "/etc/vaultd/secret", secretPath, 1)
		text = strings.Replace(text, "  auth", more+"  auth", 1)
		cfg := mustLoad(t, text+"state_dir: "+state+"\n")
		return cfg.CheckMachine(noEnv)
	}
	kit.Want(t, "all is right, but", check(t, secretFile(t, canary, 0o600), ""), nil)
	var rights *SecretRightsError
	open := secretFile(t, canary, 0o644)
	err := check(t, open, "")
	kit.Check(t, errors.As(err, &rights) && rights.Path == open, "too open: %v", err)
	var wrong *Error
	kit.Check(t, errors.As(err, &wrong) && wrong.Faults[0].Line == 3 && wrong.Faults[0].Key == "service.auth.secret_file", "no place: %v", err)
	noPEM := secretFile(t, "no certificate", 0o600)
	err = check(t, "credential:none", "  ca_file: "+noPEM+"\n")
	made := Config{StateDir: state, Service: Service{Auth: Auth{SecretFile: open}}}
	if err := made.CheckMachine(noEnv); !errors.As(err, &rights) {
		t.Errorf("without a file: %v", err)
	}
	kit.Check(t, errors.Is(err, errNoCredentials) && errors.As(err, &wrong) && len(wrong.Faults) == 2,
		"credential and certificates: %v", err)
}

func TestLedgerOnLocalDiskOnly(t *testing.T) {
	for magic, fit := range map[int64]bool{
		unix.EXT4_SUPER_MAGIC: true, unix.XFS_SUPER_MAGIC: true, unix.BTRFS_SUPER_MAGIC: true,
		unix.NFS_SUPER_MAGIC: false, unix.CIFS_SUPER_MAGIC: false, unix.SMB2_SUPER_MAGIC: false, unix.FUSE_SUPER_MAGIC: false,
		int64(int32(-0x00acb2be)): false, // CIFS where the kernel's field is signed and of 32 bits
	} {
		got := unfitFileSystem(magic, false)
		kit.Check(t, (got == "") == fit, `%#x: %q, want (got == "") = %v`, magic, got, fit)
	}
	kit.Check(t, unfitFileSystem(unix.TMPFS_MAGIC, false) == "" && unfitFileSystem(unix.TMPFS_MAGIC, true) != "",
		"memory is fit for trials, and only for them")
}
