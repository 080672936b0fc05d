package drop

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

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
	path := share(t)
	f := open(t, config(path))
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
	path := share(t)
	f := open(t, config(path))
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
	path := share(t)
	f := open(t, config(path))
	put(t, path, "Huber 88/metadata.json", "Huber 88/_REASON.txt", "Kern 6/_REASON.txt/x")
	for name, left := range map[string]bool{"Huber 88": false, "Kern 6": true} {
		c := claim(t, f, name)
		kit.Must(t, f.PlaceFolder(c, "_archived/2026-11/"+name, ReceiptNote("ARCHIVED.")))
		_, err := os.Lstat(path + "/_archived/2026-11/" + name + "/_REASON.txt")
		kit.Check(t, (err == nil) == left, "%s: _REASON.txt: %v", name, err)
	}
}
