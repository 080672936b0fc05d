package drop

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// yard is a drop folder with one folder in it, and files elsewhere that must stay as they are.
type yard struct {
	t           *testing.T
	path, other string
	f           *Folder
}

func newYard(t *testing.T) *yard {
	t.Helper()
	base := t.TempDir()
	y := &yard{t: t, path: filepath.Join(base, "in"), other: filepath.Join(base, "other")}
	kit.Must(y.t, errors.Join(os.MkdirAll(filepath.Join(y.path, "Huber 88/Anlagen"), 0o770), os.Mkdir(y.other, 0o770)))
	for _, file := range []string{y.path + "/Huber 88/rechnung.pdf", y.path + "/Huber 88/Anlagen/vertrag.pdf", y.other + "/vertrag.pdf"} {
		kit.Must(y.t, os.WriteFile(file, []byte("%PDF the same bytes"), 0o660))
	}
	kit.Must(y.t, os.WriteFile(y.path+"/Huber 88/metadata.json", []byte(`{"documentType":"Invoice","documentId":"88","documentDate":"2026-10-31"}`), 0o660))
	var err error
	y.f, err = Open(Config{Path: y.path, Name: "acme", LedgerID: "L", Environment: "test"})
	kit.Must(y.t, err)
	t.Cleanup(func() {
		y.f.Close()
		text, err := os.ReadFile(filepath.Join(y.other, "vertrag.pdf"))
		kit.Check(t, err == nil && string(text) == "%PDF the same bytes", "a foreign file is %q: %v", text, err)
	})
	return y
}

// bind mounts the foreign folder, or its file, in a folder of the yard.
func (y *yard) bind(folder string, file bool) (done func()) {
	y.t.Helper()
	from, to := y.other, filepath.Join(y.path, folder, "Anlagen")
	if file {
		from, to = filepath.Join(from, "vertrag.pdf"), filepath.Join(to, "vertrag.pdf")
	}
	kit.Must(y.t, unix.Mount(from, to, "", unix.MS_BIND, ""))
	gone := false
	done = func() {
		if !gone { // the folder may have been moved, and the mount with it
			gone = true
			found, _ := filepath.Glob(filepath.Join(y.path, "*", "Anlagen"))
			for _, pattern := range []string{"_*/Huber 88/Anlagen", "_archived/*/Huber 88/Anlagen", ".vaultd/claimed/*/Huber 88/Anlagen"} {
				more, _ := filepath.Glob(filepath.Join(y.path, pattern))
				found = append(found, more...)
			}
			for _, at := range found {
				_ = unix.Unmount(at, unix.MNT_DETACH)
				_ = unix.Unmount(filepath.Join(at, "vertrag.pdf"), unix.MNT_DETACH)
			}
		}
	}
	y.t.Cleanup(done)
	return done
}

// found wants a mount to have been found.
func (y *yard) found(what string, err error) {
	y.t.Helper()
	_, is := errors.AsType[*durable.MountError](err)
	kit.Check(y.t, is, "%s: %v, want a mount", what, err)
}

func (y *yard) lies(at string) {
	y.t.Helper()
	kit.Want(y.t, "the folder was moved", kit.Err(os.Lstat(filepath.Join(y.path, at))), nil)
}

// A bind mount of the same file system, on a folder or on a file: nothing is looked through it, claimed, packed, returned, kept, moved
// or removed with it, at each moment of the folder's life.
func TestMount_I18_I19_SameFileSystem(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	kit.Rows(t, map[string]bool{"OnAFolder": false, "OnAFile": true}, func(t *testing.T, file bool) {
		y := newYard(t)
		rules := packager.Rules{Vault: "V"}

		done := y.bind("Huber 88", file)
		look, err := watch.Rules{Sidecar: "metadata.json"}.ScanFolder(y.f.root.Root(), "Huber 88")
		kit.Check(t, err == nil && errors.Is(look.Problem, syscall.EXDEV),
			"looked at before the claim: %v, %v", look.Problem, err)
		_, err = y.f.ClaimFolder("Huber 88", time.Now())
		y.found("claim", err)
		kit.Holds(t, "the error", err.Error(), "is a mount")
		y.lies("Huber 88")
		done()

		c := kit.Value(y.f.ClaimFolder("Huber 88", time.Now()))(y.t)
		in := filepath.Join(".vaultd/claimed", c.Key.String(), "Huber 88")
		dir, _, err := y.f.OpenClaimed(c.Key)
		kit.Must(y.t, err)
		done = y.bind(in, file)
		y.found("find", dir.FindMount())
		_, err = packager.ValidateFolder(t.Context(), dir.Root(), rules)
		y.found("pack", err)
		y.found("return", y.f.PlaceFolder(c, "_rejected/Huber 88", ReasonNote("no")))
		y.found("keep", y.f.PlaceFolder(c, "_archived/2026-11/Huber 88", ReceiptNote("yes")))
		y.lies(in)
		kit.Fails(t, "a note was written",
			kit.Err(os.Lstat(filepath.Join(y.path, in, "_REASON.txt"))), fs.ErrNotExist)
		done()

		sealed := kit.Value(packager.ValidateFolder(t.Context(), dir.Root(), rules))(y.t)
		kit.Must(y.t, dir.Close())
		const rel = "_archived/2026-11/Huber 88"
		kit.Must(y.t, y.f.PlaceFolder(c, rel, ReceiptNote("yes")))
		done = y.bind(rel, file)
		for _, to := range []string{"", t.TempDir()} {
			_, err = y.f.DisposeFolder(t.Context(), c, rel, Disposal{Files: append(sealed.Files, sealed.Others...), To: to})
			y.found("dispose", err)
		}
		y.lies(rel)
		done()
		kit.Value(y.f.DisposeFolder(t.Context(), c, rel, Disposal{Files: append(sealed.Files, sealed.Others...)}))(y.t)
	})
}

// A mount that comes while the folder is being removed stops that: what lies behind it stays, and the folder does not go back to people.
func TestMount_I18_WhileItIsRemoved(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	for name, file := range map[string]bool{"OnAFolder": false, "OnAFile": true} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			c, err := y.f.ClaimFolder("Huber 88", time.Now())
			kit.Must(y.t, err)
			const rel = "_archived/2026-11/Huber 88"
			kit.Must(y.t, y.f.PlaceFolder(c, rel))
			in := filepath.Join(".vaultd/claimed", c.Key.String(), "Huber 88")
			body := []byte("%PDF the same bytes")
			d := Disposal{Junk: []string{"metadata.json"}}
			for _, p := range []string{"rechnung.pdf", "Anlagen/vertrag.pdf"} {
				d.Files = append(d.Files, archive.File{Path: p, Size: int64(len(body)), SHA256: archive.Sum(body)})
			}
			kit.Must(y.t, y.f.Close())
			mounted := false
			y.f, err = Open(Config{Path: y.path, Name: "acme", LedgerID: "L", Environment: "test", Hook: func(op, name string, do func() error) error {
				err := do()
				if op == "rename" && name == "Huber 88" && !mounted { // into its claim
					mounted = true
					y.bind(in, file)
				}
				return err
			}})
			kit.Must(y.t, err)
			_, err = y.f.DisposeFolder(t.Context(), c, rel, d)
			y.found("dispose", err)
			y.lies(in + "/rechnung.pdf")
			kit.Check(t, mounted, "vacuous")
		})
	}
}

// The drop folder may be a mount, and so may what lies above it.
func TestMount_I19_TheDropFolderItself(t *testing.T) {
	if !kit.OwnMounts(t) {
		return
	}
	y := newYard(t)
	at := t.TempDir()
	kit.Must(y.t, y.f.Close())
	kit.Must(y.t, unix.Mount(y.path, at, "", unix.MS_BIND, ""))
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	var err error
	y.f, err = Open(Config{Path: at, Name: "acme", LedgerID: "L", Environment: "test"})
	kit.Must(y.t, err)
	c, err := y.f.ClaimFolder("Huber 88", time.Now())
	kit.Must(y.t, err)
	kit.Must(y.t, y.f.PlaceFolder(c, "_rejected/Huber 88", ReasonNote("no")))
	kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(filepath.Join(y.path, "_rejected/Huber 88/_REASON.txt"))), nil)
}
