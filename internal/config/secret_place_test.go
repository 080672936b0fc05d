package config

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

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
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Error("the secret is in", err)
		}
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
		if err != nil && strings.Contains(err.Error(), "CANARY") {
			t.Error("a secret in", err)
		}
	})
}
