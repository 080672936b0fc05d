package config

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// I27: a secret counts as private only where nobody else can read it, own it, or put another file in its place.
func TestReadSecret_I27_PlaceAndOwner(t *testing.T) {
	put := func(t *testing.T, dir string) string {
		path := filepath.Join(dir, "secret")
		kit.Must(t, os.WriteFile(path, []byte(canary+"\n"), 0o600))
		return path
	}
	chmod := func(t *testing.T, path string, mode fs.FileMode) {
		kit.Must(t, os.Chmod(path, mode))
	}
	type row struct {
		make func(t *testing.T, dir string) (path string)
		says string // empty: it is read
	}
	kit.Rows(t, map[string]row{
		"Good": {put, ""},
		"FolderForAll": {func(t *testing.T, dir string) string {
			chmod(t, dir, 0o777)
			return put(t, dir)
		}, "others could put another file in its place"},
		"FolderForAllSticky": {func(t *testing.T, dir string) string {
			chmod(t, dir, 0o777|fs.ModeSticky)
			return put(t, dir)
		}, ""},
		"FolderAboveForAll": {func(t *testing.T, dir string) string {
			below := filepath.Join(dir, "below")
			kit.Must(t, os.Mkdir(below, 0o700))
			chmod(t, dir, 0o777)
			return put(t, below)
		}, "others could put another file in its place"},
		"FolderOfAnotherGroup": {func(t *testing.T, dir string) string {
			giveAway(t, dir, -1, 4711)
			chmod(t, dir, 0o770)
			return put(t, dir)
		}, "others could put another file in its place"},
		"FolderOfAnother": {func(t *testing.T, dir string) string {
			path := put(t, dir)
			giveAway(t, dir, 4711, -1)
			return path
		}, "belongs to uid 4711"},
		"FileOfAnother": {func(t *testing.T, dir string) string {
			path := put(t, dir)
			giveAway(t, path, 4711, -1)
			return path
		}, "belongs to uid 4711"},
		"GroupMayRead": {func(t *testing.T, dir string) string {
			path := put(t, dir)
			chmod(t, path, 0o640)
			return path
		}, ""},
		"Link": {func(t *testing.T, dir string) string {
			link := filepath.Join(dir, "link")
			kit.Must(t, os.Symlink(put(t, dir), link))
			return link
		}, "is a link; name the file itself"},
		"LinkedFolder": {func(t *testing.T, dir string) string {
			real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
			kit.Must(t, errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, link)))
			put(t, real)
			return filepath.Join(link, "secret")
		}, ""},
		"LinkedFolderForAll": {func(t *testing.T, dir string) string {
			real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
			kit.Must(t, errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, link)))
			put(t, real)
			chmod(t, real, 0o777)
			return filepath.Join(link, "secret")
		}, "others could put another file in its place"},
		"FolderAboveALinkedOneForAll": {func(t *testing.T, dir string) string {
			above, link := filepath.Join(dir, "above"), filepath.Join(dir, "link")
			real := filepath.Join(above, "real")
			kit.Must(t, errors.Join(os.MkdirAll(real, 0o700), os.Symlink(real, link)))
			put(t, real)
			chmod(t, above, 0o777)
			return filepath.Join(link, "secret")
		}, "others could put another file in its place"},
		"Missing": {func(_ *testing.T, dir string) string { return filepath.Join(dir, "none") }, "no such file"},
	}, func(t *testing.T, row row) {
		path := row.make(t, t.TempDir())
		got, err := ReadSecret(path, noEnv)
		if row.says == "" && (err != nil || string(got) != canary) || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
		kit.Check(t, err == nil || !strings.Contains(err.Error(), canary), "the secret is in %v", err)
	})
}

// writePair makes a certificate and its key in dir.
func writePair(t *testing.T, dir string) (cert, key string) {
	t.Helper()
	k := kit.Value(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "files01"}, NotAfter: time.Now().Add(time.Hour)}
	der := kit.Value(x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k))(t)
	private := kit.Value(x509.MarshalPKCS8PrivateKey(k))(t)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der}, key: {Type: "PRIVATE KEY", Bytes: private}} {
		kit.Must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return cert, key
}

// What other machines may reach needs TLS and users; each fault stands at its key.
func TestConfigHTTP_I20_OthersNeedTLSAndUsers(t *testing.T) {
	dir := t.TempDir()
	cert, key := writePair(t, dir)
	_, foreign := writePair(t, t.TempDir())
	good, old := secretFile(t, "anna:"+someHash+":read\n", 0o600), secretFile(t, "CANARY-port-password\n", 0o600)
	open, wrong := secretFile(t, "anna:"+someHash+":read\n", 0o644), secretFile(t, "# people\n\nanna:CANARY-port-password:read\n", 0o600)
	secret := secretFile(t, canary, 0o600)
	kit.Rows(t, map[string]struct{ http, says string }{
		"All":           {"listen: 0.0.0.0:8970, cert_file: " + cert + ", key_file: " + key + ", access: {users_file: " + good + "}", ""},
		"LocalUsers":    {"access: {users_file: " + good + "}", ""},
		"LocalTLS":      {"cert_file: " + cert + ", key_file: " + key, ""},
		"NoTLS":         {"listen: ':8970', access: {users_file: " + good + "}", "http.listen: can be reached from other machines, and needs TLS too"},
		"NoUsers":       {"listen: ':8970', cert_file: " + cert + ", key_file: " + key, "http.listen: can be reached from other machines, and needs users too"},
		"NoKey":         {"cert_file: " + cert, "http.key_file: is missing, and cert_file is there"},
		"NoCertificate": {"key_file: " + key, "http.cert_file: is missing, and key_file is there"},
		"ForeignKey":    {"cert_file: " + cert + ", key_file: " + foreign, "http.cert_file: certificate and key are no pair"},
		"NoPEM":         {"cert_file: " + good + ", key_file: " + key, "http.cert_file: certificate and key are no pair"},
		"OpenUsers":     {"access: {users_file: " + open + "}", "http.access.users_file: secret file " + open + " has rights 0644"},
		"OldFile":       {"access: {users_file: " + old + "}", "http.access.users_file: holds one password; it now holds users, one a line: NAME:BCRYPT:RIGHTS; vaultd hash-password makes the hash"},
		"WrongLine":     {"access: {users_file: " + wrong + "}", "http.access.users_file: line 3: has no hash of bcrypt in its second field"},
		"UsersMissing":  {"access: {users_file: /nowhere/users}", "http.access.users_file: open secret file"},
		"OldKey":        {"password_file: " + good, "http.password_file: is a key of an older version"},
		"KeyIsMissing":  {"cert_file: " + cert + ", key_file: /nowhere/key", "http.key_file: open secret file"},
	}, func(t *testing.T, row struct{ http, says string }) {
		path := filepath.Join(t.TempDir(), "yaml")
		text := strings.Replace(smallConfig, "/etc/vaultd/secret", secret, 1) + "state_dir: " + dir + "/state\nhttp: {" + row.http + "}\n"
		kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
		_, err := Check(path, noEnv)
		if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
			t.Error(err)
		}
		kit.Check(t, err == nil || !strings.Contains(err.Error(), "CANARY"), "a secret in %v", err)
	})
}
