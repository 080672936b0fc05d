package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/test/kit"
)

func hashPassword(t *testing.T, input string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = program.Run(t.Context(), append([]string{"hash-password"}, args...), strings.NewReader(input), &stdout, &stderr, noEnv)
	return code, stdout.String(), stderr.String()
}

// The line that hash-password prints is one that the file of users takes, and its hash is the password's.
func TestHashPassword_PrintsALineForTheFile(t *testing.T) {
	t.Parallel()
	const password = "CANARY correct horse"
	code, line, errs := hashPassword(t, password+"\r\n", "anna", "--rights", "read,fetch")
	f := strings.Split(strings.TrimSuffix(line, "\n"), ":")
	if code != 0 || len(f) != 3 || f[0] != "anna" || f[2] != "read,fetch" || bcrypt.CompareHashAndPassword([]byte(f[1]), []byte(password)) != nil || errs != "" {
		t.Fatalf(`%d %q %q, want code = 0, len(f) = 3, f[0] = "anna", f[2] = "read,fetch", bcrypt.CompareHashAndPassword([]byte(f[1]), []byte(password)) = nil, errs = ""`, code, line, errs)
	}
	s := newSite(t, "http://127.0.0.1:1", "")
	kit.Must(t, os.WriteFile(filepath.Join(s.dir, "users"), []byte(line), 0o600))
	s.edit(`http: {listen: ""}`, `http: {listen: "", access: {users_file: `+s.dir+`/users}}`)
	if out, code := s.vaultd("check", "--offline"); code != 0 {
		t.Error("the line is refused:", out)
	}
	if code, hash, _ := hashPassword(t, password); code != 0 || !strings.HasPrefix(hash, f[1][:7]) || strings.Contains(hash, ":") {
		t.Errorf(`code = %v, hash = %v, want code = 0, hash that begins with %q, hash without ":"`, code, hash, f[1][:7])
	}
	code, told, _ := hashPassword(t, password, "--json", "bob")
	var o struct {
		Name, Hash string
		Rights     []string
	}
	if err := json.Unmarshal([]byte(told), &o); err != nil || code != 0 || o.Name != "bob" || len(o.Rights) != 1 || o.Rights[0] != "read" || !strings.HasPrefix(o.Hash, "$2") {
		t.Errorf(`code = %v, told = %v, err = %v, want no error, code = 0, o.Name = "bob", len(o.Rights) = 1, o.Rights[0] = "read", o.Hash that begins with "$2"`, code, told, err)
	}
}

// I7: what cannot be used is refused with the reason, and the password is not shown.
func TestHashPassword_I7_RefusesInWords(t *testing.T) {
	const good = "CANARY correct horse"
	for name, row := range map[string]struct {
		input string
		args  []string
		code  int
		says  string
	}{
		"Short":         {"CANARY\n", nil, exitData, "6 characters; at least 12"},
		"Empty":         {"", nil, exitData, "0 characters"},
		"Equal":         {strings.Repeat("C", 12) + "\n", nil, exitData, "too few different characters: 1; at least 5"},
		"Long":          {"CANARY" + strings.Repeat("x", 67), nil, exitData, "73 bytes; bcrypt looks at the first 72 alone"},
		"TwoLines":      {good + "\n" + good + "\n", nil, exitData, "more than one line"},
		"Huge":          {strings.Repeat(good, 1000), nil, exitData, "more than one line"},
		"WrongName":     {good, []string{"anna:x"}, exitUsage, "NAME has a name that is not"},
		"WrongRight":    {good, []string{"anna", "--rights", "write"}, exitUsage, "--rights has a right that is not known"},
		"FetchAlone":    {good, []string{"anna", "--rights=fetch"}, exitUsage, "fetch needs read too"},
		"RightsAlone":   {good, []string{"--rights=read"}, exitUsage, "with NAME only"},
		"TwoNames":      {good, []string{"anna", "bob"}, exitUsage, "unexpected argument"},
		"EmptyName":     {good, []string{""}, exitUsage, "NAME has a name"},
		"EmptyRight":    {good, []string{"anna", "--rights="}, exitUsage, "--rights"},
		"ControlInside": {"CANARY\x07correct horse", nil, exitData, "control character"},
	} {
		t.Run(name, func(t *testing.T) {
			code, out, errs := hashPassword(t, row.input, row.args...)
			if code != row.code || out != "" || !strings.Contains(errs, row.says) || strings.Contains(errs, "CANARY") {
				t.Errorf(`%d %q %q, want code = %v, out = "", errs with %q, errs without "CANARY"`, code, out, errs, row.code, row.says)
			}
		})
	}
}
