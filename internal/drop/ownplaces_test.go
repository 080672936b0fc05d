package drop

import (
	"errors"
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
	kit.Must(t, keep(t, open(t, config(path)), "Huber 88"))
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
		kit.Want(t, "group of "+rel, sysStat(kit.Value(os.Lstat(filepath.Join(path, rel)))(t)).Gid, uint32(clerks))
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
		kit.Check(t, !durable.IsUnfinished(e.Name()), "%s is left, want nothing", e.Name())
	}
}

func TestTemplate_RefreshedOnlyWhenOurs(t *testing.T) {
	path, f := opened(t)
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
	os.Remove(path + "/.vaultd/template.json") // as after a crash: the owner is unknown
	write("six")
	want(help, "help five\r\n")
	kit.Want(t, "info.Mode().Perm()", kit.Value(os.Stat(path+"/_template"))(t).Mode().Perm(), 0o750)
	kit.Check(t, IsOwnName("_template") && !IsOwnName("_Template") && IsReservedName("_Template"),
		"its name is not kept")
}

// What may not be read in a claimed folder is named with its owner and mode, at any depth.
func TestUnreadable_NamesTheFile(t *testing.T) {
	base := t.TempDir()
	os.Chmod(base, 0o755)
	os.Chmod(filepath.Dir(base), 0o755)
	path := base + "/in"
	f := func() *Folder {
		os.Mkdir(path, 0o770)
		return open(t, config(path))
	}()
	put(t, path, "Huber 88/metadata.json", "Huber 88/sub/b.pdf", "Huber 88/sub/c.pdf")
	c := claim(t, f, "Huber 88")
	kit.Want(t, "all can be read", f.FindUnreadable(c.Key), nil)
	inside := path + "/.vaultd/claimed/" + c.Key.String() + "/Huber 88/"
	os.Chmod(inside+"sub/b.pdf", 0)
	if os.Getuid() != 0 {
		if err := f.FindUnreadable(c.Key); err == nil || !strings.Contains(err.Error(), `"sub/b.pdf" (owner `) || !strings.Contains(err.Error(), "0000)") {
			t.Errorf("%v, want an error, err with `\"sub/b.pdf\" (owner `, err with \"0000)\"", err)
		}
		return
	}
	filepath.WalkDir(path, func(p string, _ fs.DirEntry, _ error) error { return os.Chown(p, 65534, 65534) })
	os.Chown(inside+"sub/b.pdf", 0, 0)
	os.Chmod(inside+"sub/b.pdf", 0o600)
	asNobody(t, func() {
		if err := f.FindUnreadable(c.Key); err == nil || err.Error() != `cannot be read: "sub/b.pdf" (owner root, 0600)` {
			t.Errorf("%v, want an error, err.Error() = `cannot be read: \"sub/b.pdf\" (owner root, 0600)`", err)
		}
		os.Chmod(inside, 0) // ours, but even so
		if err := f.FindUnreadable(c.Key); err == nil || !strings.Contains(err.Error(), `"Huber 88" (owner nobody, 0000)`) {
			t.Errorf("%v, want an error, err with `\"Huber 88\" (owner nobody, 0000)`", err)
		}
		os.Chmod(inside, 0o770)
	})
}

func TestNoRight_SaysWhose(t *testing.T) {
	path, f := opened(t)
	put(t, path, "Huber 88/metadata.json")
	os.Chmod(path+"/Huber 88", 0o755)
	var claim *ClaimError
	err := f.DescribeNoRight("Huber 88")
	if !errors.As(err, &claim) || !errors.Is(err, fs.ErrPermission) || !strings.Contains(err.Error(), `no right to take "Huber 88" (owner `) || !strings.Contains(err.Error(), "0755)") {
		t.Errorf("%v, want errors.As(err, &claim), error fs.ErrPermission, err with `no right to take \"Huber 88\" (owner `, err with \"0755)\"", err)
	}
}

// A returned folder is known by its inode: another one at its place is not it.
func TestOpenReturned_OnlyTheSame(t *testing.T) {
	path, f := opened(t)
	put(t, path, "Huber 88/metadata.json")
	c := claim(t, f, "Huber 88")
	kit.Must(t, f.PlaceFolder(c, "_rejected/Huber 88", ReasonNote("x")))
	dir := kit.Value(f.OpenPlaced("_rejected/Huber 88", c.Inode))(t)
	dir.Close()
	os.Rename(path+"/_rejected/Huber 88", path+"/Huber 88")
	kit.Fails(t, "gone", kit.Err(f.OpenPlaced("_rejected/Huber 88", c.Inode)), fs.ErrNotExist)
	put(t, path, "_rejected/Huber 88/")
	kit.Fails(t, "another", kit.Err(f.OpenPlaced("_rejected/Huber 88", c.Inode)), fs.ErrNotExist)
	os.Remove(path + "/_rejected/Huber 88")
	os.Symlink(path+"/Huber 88", path+"/_rejected/Huber 88")
	kit.Fails(t, "a link", kit.Err(f.OpenPlaced("_rejected/Huber 88", c.Inode)), fs.ErrNotExist)
	kit.Fails(t, "left the drop folder", kit.Err(f.OpenPlaced("../Huber 88", c.Inode)))
}

// A folder that came back, was put right and is archived now does not say any more that it is not.
func TestPlace_OldReasonGoesWhenArchived(t *testing.T) {
	path, f := opened(t)
	put(t, path, "Huber 88/metadata.json", "Huber 88/_REASON.txt", "Kern 6/_REASON.txt/x")
	for name, left := range map[string]bool{"Huber 88": false, "Kern 6": true} {
		kit.Must(t, f.PlaceFolder(claim(t, f, name), "_archived/2026-11/"+name, ReceiptNote("ARCHIVED.")))
		_, err := os.Lstat(path + "/_archived/2026-11/" + name + "/_REASON.txt")
		kit.Check(t, (err == nil) == left, "%s: _REASON.txt: %v", name, err)
	}
}
