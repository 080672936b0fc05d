package drop

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"vaultd/internal/durable"
	"vaultd/internal/test/kit"
)

// keep claims a folder and keeps it with a receipt.
func keep(t *testing.T, f *Folder, name string) error {
	t.Helper()
	return f.PlaceFolder(claim(t, f, name), "_archived/2026-11/"+name, ReceiptNote("ARCHIVED."))
}

// I26: what a clerk made in the place of vaultd's own is refused, told with
// root's line, and stops nothing once it is gone.
func TestPlaces_I26_OfAClerk(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "needs root: folders of several users")
	}
	for rel, isFile := range map[string]bool{"_archived": false, "_archived/2026-11": false, "_archived/2031-01": false, "_rejected": false, "_duplicates": false, "_template": false, "_STATUS.txt": true} {
		t.Run(strings.ReplaceAll(rel, "/", " "), func(t *testing.T) {
			path := share(t)
			put(t, path, "Huber 88/metadata.json")
			f := open(t, config(path))
			at := filepath.Join(path, rel)
			os.Remove(at)
			if isFile {
				kit.Must(t, os.WriteFile(at, nil, 0o600))
			} else {
				kit.Must(t, os.Mkdir(at, 0o777))
			}
			kit.Must(t, os.Lchown(at, clerk, clerks))
			faults := kit.Value(CheckPlaces(path))(t)
			kit.Need(t, len(faults) == 1 && faults[0].IsForeign, "faults = %+v, want one that is foreign", faults)
			kit.Holds(t, "what is wrong", faults[0].Text, at, "was made by user 47111, not by vaultd")
			kit.Holds(t, "what root does", faults[0].Do, "mv -n "+at)
			if rel == "_archived" || rel == "_archived/2026-11" {
				c := claim(t, f, "Huber 88")
				err := f.PlaceFolder(c, "_archived/2026-11/Huber 88", ReceiptNote("ARCHIVED."))
				kit.Check(t, err != nil, "it was put into a folder of a clerk, want an error")
				kit.Must(t, os.Remove(at))
				kit.Must(t, f.PlaceFolder(c, "_archived/2026-11/Huber 88", ReceiptNote("ARCHIVED.")))
			}
		})
	}
}

// A link, and a file in the place of a folder, are as foreign as another user's
// folder. What root made is not.
func TestPlaces_I26_OfAnotherKind(t *testing.T) {
	path := share(t)
	open(t, config(path)).Close()
	kit.Must(t, os.Symlink("/tmp", filepath.Join(path, "_rejected")))
	put(t, path, "_duplicates")
	faults := kit.Value(CheckPlaces(path))(t)
	kit.Want(t, "faults", len(faults), 2)
	for _, f := range faults {
		kit.Check(t, f.IsForeign, "%+v, want it to be foreign", f)
	}
}

// A folder that an earlier setting left with rights for everybody is told with
// the line that mends it.
func TestPlaces_I18_OtherModes(t *testing.T) {
	path := share(t)
	put(t, path, "Huber 88/metadata.json")
	f := open(t, config(path))
	kit.Must(t, keep(t, f, "Huber 88"))
	if faults, err := CheckPlaces(path); err != nil || len(faults) > 0 {
		t.Errorf("faults = %+v, %v, want none", faults, err)
	}
	kit.Must(t, os.Chmod(filepath.Join(path, "_archived"), fs.ModeSetgid|0o770))
	kit.Must(t, os.Chmod(filepath.Join(path, "_archived/2026-11"), fs.ModeSetgid|0o770))
	faults := kit.Value(CheckPlaces(path))(t)
	kit.Need(t, len(faults) == 2 && !faults[0].IsForeign && !faults[1].IsForeign,
		"faults = %+v, want two that are not foreign", faults)
	kit.Holds(t, "root's line", faults[0].Do, "chmod 3770 "+path+"/_archived")
	kit.Holds(t, "root's line", faults[1].Do, "chmod 2750 "+path+"/_archived/2026-11")
}

// I18, I27: clerks read and copy what is kept and the notes, and neither change
// nor remove them. All of it has their group, without a call that sets an
// owner, which the unit refuses.
func TestPlaces_I18_I27_ClerksReadAndCopy(t *testing.T) {
	path := clerkShare(t, "Huber 88/metadata.json")
	kit.Must(t, os.Chmod(path, fs.ModeSetgid|fs.ModeSticky|0o770))
	defer syscall.Umask(syscall.Umask(0o007))
	cfg := config(path)
	cfg.Hook = func(op, name string, do func() error) error {
		kit.Check(t, op != "chown", "chown of %s, want none", name)
		return do()
	}
	asUser(t, vaultdUser, clerks, func() {
		f := kit.Value(Open(cfg))(t)
		defer f.Close()
		kit.Must(t, f.WriteStatusFile("all is well"))
		kit.Must(t, f.WriteTemplate(NoteFile{Name: "_HELP.txt", Data: []byte("help")}))
		kit.Must(t, keep(t, f, "Huber 88"))
	})
	kept := filepath.Join(path, "_archived/2026-11/Huber 88")
	for _, rel := range []string{"_STATUS.txt", "_template/_HELP.txt", "_archived/2026-11/Huber 88/_RECEIPT.txt", "_archived", "_archived/2026-11", "_template"} {
		info := kit.Value(os.Lstat(filepath.Join(path, rel)))(t)
		kit.Want(t, "group of "+rel, sysStat(info).Gid, uint32(clerks))
	}
	for command, want := range map[string]bool{
		"cat _STATUS.txt '" + kept + "/_RECEIPT.txt' '" + kept + "/metadata.json'": true,
		"cp -r '" + kept + "' ../copy":                                             true,
		"cp _template/_HELP.txt mine.txt":                                          true,
		"mv '" + kept + "' .":                                                      false,
		"rmdir _archived/2026-11 || mv _archived/2026-11 x":                        false,
		"mv _archived x":                                                           false,
		"echo forged >> '" + kept + "/_RECEIPT.txt'":                               false,
		"echo forged >> _STATUS.txt":                                               false,
		"rm -f _STATUS.txt":                                                        false,
		"echo forged >> _template/_HELP.txt":                                       false,
		"rm -f _template/_HELP.txt":                                                false,
		"mkdir _template/mine":                                                     false,
	} {
		cmd := exec.Command("/bin/sh", "-c", command)
		cmd.Dir = path
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: clerk + 1, Gid: clerks}} // a colleague
		if want && strings.HasPrefix(command, "cp -r") {
			kit.Must(t, os.Chmod(filepath.Dir(path), 0o777))
		}
		out, err := cmd.CombinedOutput()
		kit.Check(t, (err == nil) == want, "%s: %v %s, want it to work: %t", command, err, out, want)
	}
}

// I26: names in people's way of writing stop no note: it is made in .vaultd.
// What a crash left of one goes at the next start.
func TestNotes_I26_NamesInTheWay(t *testing.T) {
	path := share(t)
	put(t, path, "._STATUS.txt.tmp/", "Huber 88/metadata.json", "Huber 88/._RECEIPT.txt.tmp/", "Huber 88/_RECEIPT.txt.tmp")
	f := open(t, config(path))
	kit.Must(t, f.WriteStatusFile("all is well"))
	kit.Must(t, keep(t, f, "Huber 88"))
	left := kit.Value(f.root.CreateIn(f.vaultd, statusFile, 0o640))(t)
	kit.Must(t, left.File.Close()) // the process dies here
	kit.Must(t, f.Close())
	open(t, config(path)).Close()
	names := kit.Value(os.ReadDir(filepath.Join(path, vaultdDir)))(t)
	for _, e := range names {
		if durable.IsUnfinished(e.Name()) {
			t.Errorf("%s is left, want nothing", e.Name())
		}
	}
}

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
