package drop

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/test/kit"
)

// recordOps appends the operations on the drop folder that have one of the
// names to ops, each with the last element of what it is about.
func recordOps(ops *[]string, names ...string) func(op, name string, do func() error) error {
	return func(op, name string, do func() error) error {
		if slices.Contains(names, op) {
			*ops = append(*ops, op+" "+filepath.Base(name))
		}
		return do()
	}
}

// TestPlace_I3_TheReceiptIsSyncedBeforeTheMove: the disposal relies on the
// receipt. A power loss must not leave a folder in _archived without it.
func TestPlace_I3_TheReceiptIsSyncedBeforeTheMove(t *testing.T) {
	path := share(t)
	cfg := config(path)
	var ops []string
	cfg.Hook = recordOps(&ops, "rename", "syncdir")
	f := open(t, cfg)
	put(t, path, "as dropped/x")
	c := claim(t, f, "as dropped")
	ops = nil
	kit.Must(t, f.PlaceFolder(c, "_archived/2026-11/as kept", ReceiptNote("ok")))
	receipt := slices.Index(ops, "rename _RECEIPT.txt")
	kit.Need(t, receipt >= 0, "operations = %q, want one that names the receipt", ops)
	kit.Want(t, "operations from the receipt on", ops[receipt:], []string{"rename _RECEIPT.txt", "syncdir as dropped", "rename as kept", "syncdir 2026-11", "syncdir " + c.Key.String()})
}

// TestDispose_I18_TheRemovalIsSynced: the ledger records that the folder is
// gone, also after a power loss.
func TestDispose_I18_TheRemovalIsSynced(t *testing.T) {
	path := share(t)
	c, rel, d := kept(t, path)
	cfg := config(path)
	var ops []string
	cfg.Hook = recordOps(&ops, "rmdir", "syncdir")
	f := open(t, cfg)
	ops = nil
	kit.Value(f.DisposeFolder(t.Context(), c, rel, d))(t)
	removal := slices.Index(ops, "rmdir "+c.Folder)
	kit.Need(t, removal >= 0, "operations = %q, want one that removes the folder", ops)
	kit.Want(t, "operations from the removal on", ops[removal:], []string{"rmdir " + c.Folder, "syncdir " + c.Key.String(), "rmdir " + c.Key.String()})
}

// TestDispose_I18_SomethingCameIntoTheEmptyFolder: a file that appears after
// the last removal keeps its folder from being removed, and the caller learns
// of it.
func TestDispose_I18_SomethingCameIntoTheEmptyFolder(t *testing.T) {
	path := share(t)
	c, rel, d := kept(t, path)
	cfg := config(path)
	cfg.Hook = func(op, name string, do func() error) error {
		if op == "rmdir" && name == c.Folder {
			put(t, path+"/.vaultd/claimed/"+c.Key.String()+"/"+c.Folder, "late.pdf")
		}
		return do()
	}
	f := open(t, cfg)
	_, err := f.DisposeFolder(t.Context(), c, rel, d)
	stray, ok := errors.AsType[*UnexpectedContentError](err)
	kit.Check(t, ok && stray.Path == "." && stray.Folder == rel,
		"error = %v, want an UnexpectedContentError about %q", err, rel)
	kit.Want(t, "the late file", kit.Err(os.Lstat(path+"/"+rel+"/late.pdf")), nil)
}

// TestDispose_I18_AChangeThatKeepsItsTime: a program that sets the time of
// change back after it wrote does not hide that the file is another one.
func TestDispose_I18_AChangeThatKeepsItsTime(t *testing.T) {
	path := share(t)
	c, rel, d := kept(t, path)
	const changed = "RECHNUNG.PDF"
	cfg, once := config(path), true
	cfg.Hook = func(op, name string, do func() error) error {
		if op == "unlink" && name != "rechnung.pdf" && once {
			once = false
			rewriteInSecret(t, path+"/.vaultd/claimed/"+c.Key.String()+"/"+c.Folder+"/rechnung.pdf", changed)
		}
		return do()
	}
	f := open(t, cfg)
	_, err := f.DisposeFolder(t.Context(), c, rel, d)
	stray, ok := errors.AsType[*UnexpectedContentError](err)
	kit.Check(t, ok && stray.Path == "rechnung.pdf", "error = %v, want an UnexpectedContentError about rechnung.pdf", err)
	got, _ := os.ReadFile(path + "/" + rel + "/rechnung.pdf")
	kit.Want(t, "content of the changed file", string(got), changed)
}

// rewriteInSecret writes other content of the same length into a file and sets
// its time of modification back. It repeats that until the kernel has noted
// another time of change, which may be some milliseconds coarse.
func rewriteInSecret(t *testing.T, name, content string) {
	t.Helper()
	before, err := os.Lstat(name)
	kit.Need(t, err == nil && before.Size() == int64(len(content)),
		"%v, %v: want a file of %d bytes", before, err, len(content))
	for begun := time.Now(); time.Since(begun) < 10*time.Second; {
		kit.Must(t, errors.Join(os.WriteFile(name, []byte(content), 0o660), os.Chtimes(name, time.Time{}, before.ModTime())))
		after := kit.Value(os.Lstat(name))(t)
		if sysStat(after).Ctim != sysStat(before).Ctim {
			kit.Want(t, "time of modification", after.ModTime(), before.ModTime())
			return
		}
	}
	t.Fatal("the kernel notes no new time of change")
}

// TestRecognise_I18_APartOfTheContent: a folder that lacks a file may be
// another one than the one that was archived.
func TestRecognise_I18_APartOfTheContent(t *testing.T) {
	path := share(t)
	c, rel, d := kept(t, path)
	kit.Must(t, os.Remove(path+"/"+rel+"/rechnung.pdf"))
	f := open(t, config(path))
	claimed := path + "/.vaultd/claimed/" + c.Key.String()
	kit.Must(t, errors.Join(os.Mkdir(claimed, 0o700), os.Rename(path+"/"+rel, claimed+"/"+c.Folder)))
	_, err := f.RecogniseFolder(t.Context(), c, rel, d)
	if _, ok := errors.AsType[*UnexpectedContentError](err); !ok || !strings.Contains(err.Error(), "rechnung.pdf is missing") {
		t.Errorf("error = %v, want an UnexpectedContentError about the missing rechnung.pdf", err)
	}
}

// I17, I18: what differs from what was archived is named, in the claim and, after a crash, where the folder is kept; nothing else is.
func TestDifferences_I17_InTheClaimAndKept(t *testing.T) {
	for name, row := range map[string]struct {
		change func(dir string) error
		want   string
	}{
		"Nothing":     {func(string) error { return nil }, ""},
		"Missing":     {func(dir string) error { return os.Remove(dir + "/rechnung.pdf") }, ""},
		"SameSize":    {func(dir string) error { return os.WriteFile(dir+"/rechnung.pdf", []byte("RECHNUNG.pdf"), 0o660) }, "rechnung.pdf has another content than when it was archived"},
		"Longer":      {func(dir string) error { return os.WriteFile(dir+"/sub/deep/b.pdf", []byte("long"), 0o660) }, "sub/deep/b.pdf has another size than when it was archived"},
		"Sidecar":     {func(dir string) error { return os.WriteFile(dir+"/metadata.json", []byte("{}"), 0o660) }, "metadata.json has another size than when it was archived"},
		"Added":       {func(dir string) error { return os.WriteFile(dir+"/neu.pdf", nil, 0o660) }, "neu.pdf was not archived"},
		"Link":        {func(dir string) error { return os.Symlink("/etc/passwd", dir+"/x") }, "x is a link or another thing that was not archived"},
		"NoRight":     {func(dir string) error { return os.Chmod(dir+"/rechnung.pdf", 0) }, "rechnung.pdf may not be read any more"},
		"NoRightToIt": {func(dir string) error { return os.Chmod(dir+"/sub/deep", 0) }, "sub/deep may not be read any more"},
	} {
		t.Run(name, func(t *testing.T) {
			path := share(t)
			c, rel, d := kept(t, path)
			f := open(t, config(path))
			at := filepath.Join(path, rel)
			kit.Must(t, row.change(at))
			defer os.Chmod(at+"/sub/deep", 0o770)
			look := func(where string) {
				t.Helper()
				found, err := f.FindDifferences(t.Context(), c, rel, d)
				var words []string
				for _, d := range found {
					words = append(words, d.Path+" "+d.What)
				}
				want := row.want
				if os.Getuid() == 0 && strings.HasPrefix(name, "NoRight") {
					want = "" // root reads it all the same
				}
				kit.Check(t, err == nil && strings.Join(words, ", ") == want,
					"%s: %q %v, want %q", where, words, err, want)
			}
			look("kept")
			claim := filepath.Join(path, ".vaultd/claimed", c.Key.String())
			kit.Must(t, os.MkdirAll(claim, 0o700))
			kit.Must(t, os.Rename(at, filepath.Join(claim, c.Folder)))
			look("claimed")
			kit.Must(t, os.Rename(claim, path+".away"))
			if found, err := f.FindDifferences(t.Context(), c, rel, d); len(found) > 0 || err != nil {
				t.Errorf("in neither place: %v %v", found, err)
			}
			defer os.Chmod(path+".away/"+c.Folder+"/sub/deep", 0o770)
		})
	}
}
