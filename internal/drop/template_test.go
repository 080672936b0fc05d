package drop

import (
	"os"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

func TestTemplate_RefreshedOnlyWhenOurs(t *testing.T) {
	path := share(t)
	f := open(t, config(path))
	form, help := path+"/_template/metadata.json", path+"/_template/_HELP.txt"
	write := func(text string) {
		t.Helper()
		kit.Must(t, f.WriteTemplate(NoteFile{"metadata.json", []byte(text)}, NoteFile{"_HELP.txt", []byte("help " + text + "\n")}))
	}
	want := func(at, text string) {
		t.Helper()
		if got, err := os.ReadFile(at); err != nil || strings.TrimPrefix(string(got), "\ufeff") != text {
			t.Errorf("%s: %q, %v; want %q", at, got, err, text)
		}
	}
	write("one")
	want(form, "one")
	want(help, "help one\r\n")
	write("two") // the configuration has other defaults
	want(form, "two")
	kit.Must(t, os.WriteFile(form, []byte("a clerk's own"), 0o660))
	write("three")
	want(form, "a clerk's own")
	want(help, "help three\r\n")
	os.Remove(form)
	write("four")
	want(form, "four")
	os.Remove(form)
	os.Symlink("/etc/passwd", form)
	write("five")
	if to, err := os.Readlink(form); err != nil || to != "/etc/passwd" {
		t.Errorf("a link was replaced or followed: %q, %v", to, err)
	}
	os.Remove(path + "/.vaultd/template.json") // as after a crash: whose it is cannot be told
	write("six")
	want(help, "help five\r\n")
	if info, err := os.Stat(path + "/_template"); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("%v, %v, want no error, info.Mode().Perm() = 0o750", info, err)
	}
	if !IsOwnName("_template") || IsOwnName("_Template") || !IsReservedName("_Template") {
		t.Error("its name is not kept")
	}
}
