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
		kit.Want(t, at, strings.TrimPrefix(string(kit.Value(os.ReadFile(at))(t)), "\ufeff"), text)
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
	kit.Want(t, "a link was replaced or followed", kit.Value(os.Readlink(form))(t), "/etc/passwd")
	os.Remove(path + "/.vaultd/template.json") // as after a crash: whose it is cannot be told
	write("six")
	want(help, "help five\r\n")
	kit.Want(t, "info.Mode().Perm()", kit.Value(os.Stat(path+"/_template"))(t).Mode().Perm(), 0o750)
	kit.Check(t, IsOwnName("_template") && !IsOwnName("_Template") && IsReservedName("_Template"),
		"its name is not kept")
}
