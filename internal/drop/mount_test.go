package drop

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	c := kit.Value(y.f.ClaimFolder("Huber 88", time.Now()))(y.t)
	kit.Must(y.t, y.f.PlaceFolder(c, "_rejected/Huber 88", ReasonNote("no")))
	kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(filepath.Join(y.path, "_rejected/Huber 88/_REASON.txt"))), nil)
}

// I27: what a mount decides is accepted only where the configuration says so;
// write access for everybody or another group is always refused.
func TestMountModes_I27_WhoMayWrite(t *testing.T) {
	const group, other = 100, 101
	type row struct {
		seen     fs.FileMode
		chmodErr error
		gid      int
		accepted bool
		decides  bool
		mayWork  bool
		offers   bool // the key is named
	}
	kit.Rows(t, map[string]row{
		"ChmodWorks":            {triedMode, nil, group, false, false, true, false},
		"ChmodWorksAndSetgid":   {triedMode | fs.ModeSetgid, nil, group, false, false, true, false},
		"GroupReads":            {0o750, nil, group, false, true, true, false},
		"OtherGroupReads":       {0o750, nil, other, false, true, true, false},
		"EverybodyReads":        {0o755, nil, group, false, true, true, false},
		"VaultdAlone":           {0o700, nil, group, false, true, true, false},
		"GroupWrites":           {0o770, nil, group, false, true, false, true},
		"GroupWritesAccepted":   {0o770, nil, group, true, true, true, false},
		"GroupWritesNoEnter":    {0o720, nil, group, false, true, false, true},
		"OtherGroup":            {0o770, nil, other, false, true, false, false},
		"OtherGroupAccepted":    {0o770, nil, other, true, true, false, false},
		"EverybodyWrites":       {0o777, nil, group, true, true, false, false},
		"EverybodyButTheGroup":  {0o702, nil, group, true, true, false, false},
		"NoChmod":               {0o750, unix.ENOSYS, group, false, true, true, false},
		"ChmodNotSupported":     {triedMode, unix.ENOTSUP, group, false, true, true, false},
		"ChmodForbidden":        {0o770, unix.EPERM, group, true, true, true, false},
		"ChmodForbiddenToWrite": {0o777, unix.EPERM, group, true, true, false, false},
		"DiskFault":             {0o770, unix.EIO, group, true, false, true, false}, // leaves it open
	}, func(t *testing.T, row row) {
		m := newMountModes(triedMode, row.seen|fs.ModeDir, row.gid, row.chmodErr)
		kit.Want(t, "the mount decides", m.Decide, row.decides)
		var err error
		if m.Decide {
			err = m.Check("/srv/in", m.Mode, m.Gid, group, row.accepted)
		}
		kit.Want(t, "vaultd may work", err == nil, row.mayWork)
		if err == nil {
			return
		}
		fault, _ := errors.AsType[*ModesError](err)
		kit.Want(t, "the key is offered", fault.MayAccept, row.offers)
		kit.Holds(t, "the advice", fault.Advice(), "dir_mode=0750,file_mode=0640,nosuid", "docs/network-drives.md")
		if row.offers {
			kit.Holds(t, "the advice", fault.Advice(), `"modes: mount"`)
		} else {
			kit.Lacks(t, "the advice", fault.Advice(), "modes: mount")
		}
		kit.Lacks(t, "the error", fault.Error()+fault.Advice(), "chmod 700")
	})
}

// mountOf simulates a mount that gives all in the drop folder at path one mode,
// and answers chmod and chown with err.
func mountOf(t *testing.T, path string, mode fs.FileMode, err error) func(op, name string, do func() error) error {
	return func(op, _ string, do func() error) error {
		if op == "chmod" || op == "chown" {
			return err
		}
		defer filepath.WalkDir(path, func(p string, e fs.DirEntry, walkErr error) error {
			if walkErr != nil {
				return nil // gone meanwhile
			}
			want := mode
			if !e.IsDir() {
				want &^= 0o111
			}
			if info, err := e.Info(); err != nil || info.Mode().Perm() == want {
				return nil // gone, or done
			}
			err := os.Chmod(p, want)
			kit.Check(t, err == nil || errors.Is(err, fs.ErrNotExist), "error: %v", err)
			return nil
		})
		return do()
	}
}

// A drop whose mount decides the modes: vaultd works where it may, and
// otherwise says what to do.
func TestOpen_I27_MountDecidesModes(t *testing.T) {
	type row struct {
		mode     fs.FileMode
		chmodErr error
		accepts  bool
		works    bool
	}
	kit.Rows(t, map[string]row{
		"GroupReads":         {0o750, nil, false, true},
		"GroupReadsNoChmod":  {0o750, unix.ENOSYS, false, true},
		"ChmodForbidden":     {0o700, unix.EPERM, false, true},
		"GroupWrites":        {0o770, nil, false, false},
		"GroupWritesByKey":   {0o770, nil, true, true},
		"NoChmodByKey":       {0o770, unix.ENOTSUP, true, true},
		"ForbiddenByKey":     {0o770, unix.EPERM, true, true},
		"EverybodyWrites":    {0o777, nil, true, false},
		"EverybodyNoChmod":   {0o777, unix.ENOSYS, true, false},
		"KeyWhereNotNeeded":  {0o750, nil, true, true},
		"ForbiddenNoKeySaid": {0o770, unix.EPERM, false, false},
	}, func(t *testing.T, row row) {
		path := share(t)
		cfg := config(path)
		cfg.AcceptsMountModes, cfg.Hook = row.accepts, mountOf(t, path, row.mode, row.chmodErr)
		worksOnMount(t, cfg, row.works)
	})
}

// worksOnMount opens a drop folder on a mount that decides the modes. In an
// accepted mount a folder goes its whole way, and the folder opens a second
// time.
func worksOnMount(t *testing.T, cfg Config, works bool) {
	t.Helper()
	f, err := Open(cfg)
	if !works {
		fault, ok := errors.AsType[*ModesError](err)
		kit.Need(t, ok, "error = %v, want one of modes", err)
		kit.Holds(t, "the error", fault.Error(), "chmod has no effect")
		left, _ := filepath.Glob(filepath.Join(cfg.Path, ".vaultd", "*"))
		for _, at := range left {
			kit.Want(t, at+" was left", filepath.Base(at), lockFile)
		}
		return
	}
	kit.Must(t, err)
	put(t, cfg.Path, "Huber 88/metadata.json", "Kern 6/metadata.json")
	kept, returned := claim(t, f, "Huber 88"), claim(t, f, "Kern 6")
	kit.Must(t, errors.Join(f.PlaceFolder(kept, "_archived/2026-11/Huber 88", ReceiptNote("yes")), f.PlaceFolder(returned, "_rejected/Kern 6", ReasonNote("no"))))
	kit.Must(t, errors.Join(f.WriteStatusFile("all is well"), f.WriteTemplate(NoteFile{Name: "metadata.json", Data: []byte("{}")}), f.CheckStillOurs(), f.Close()))
	f = kit.Value(Open(cfg))(t)
	defer f.Close()
	body := []byte("Huber 88/metadata.json")
	_, err = f.DisposeFolder(t.Context(), kept, "_archived/2026-11/Huber 88", Disposal{Files: []archive.File{{Path: "metadata.json", Size: int64(len(body)), SHA256: archive.Sum(body)}}})
	kit.Must(t, err)
	for at, want := range map[string]bool{"_archived/2026-11/Huber 88": false, "_rejected/Kern 6/_REASON.txt": true, statusFile: true, "_template/metadata.json": true} {
		_, err := os.Lstat(filepath.Join(cfg.Path, at))
		kit.Want(t, at+" is there", err == nil, want)
	}
}

// A folder of vaultd that others may write to is refused where chmod works,
// whatever the configuration says.
func TestOpen_I27_KeyDoesNotCoverChmod(t *testing.T) {
	path := share(t)
	cfg := config(path)
	cfg.AcceptsMountModes = true
	for _, at := range []string{".vaultd", ".vaultd/claimed"} {
		kit.Must(t, open(t, cfg).Close())
		kit.Must(t, os.Chmod(filepath.Join(path, at), 0o770))
		_, err := Open(cfg)
		kit.Need(t, err != nil, "opened with %s of mode 0770, want it refused", at)
		kit.Holds(t, "the error", err.Error(), "can be written by others (0770): chmod 700 it")
		kit.Must(t, os.Chmod(filepath.Join(path, at), 0o700))
	}
}

// I27: a real FUSE file system that decides the modes, tried before vaultd
// worked there and after.
func TestOpen_I27_RealMountDecidesModes(t *testing.T) {
	kit.NeedBindfs(t)
	if !kit.OwnMounts(t) {
		return
	}
	type row struct {
		perms   string
		options string
		accepts bool
		mode    fs.FileMode
		works   bool
	}
	kit.Rows(t, map[string]row{
		"GroupWrites":         {"u=rwX,g=rwX,o=", "--chmod-ignore", false, 0o770, false},
		"GroupWritesByKey":    {"u=rwX,g=rwX,o=", "--chmod-ignore", true, 0o770, true},
		"GroupReads":          {"u=rwX,g=rX,o=", "--chmod-ignore", false, 0o750, true},
		"ChmodDenied":         {"u=rwX,g=rX,o=", "--chmod-deny", false, 0o750, true},
		"ChmodAndChownDenied": {"u=rwX,g=rwX,o=", "--chmod-deny --chown-deny --chgrp-deny", true, 0o770, true},
		"EverybodyWrites":     {"a=rwX", "--chmod-ignore", true, 0o777, false},
	}, func(t *testing.T, row row) {
		path := share(t)
		kit.Bindfs(t, path, append(strings.Fields(row.options), "--perms="+row.perms)...)
		cfg := config(path)
		cfg.AcceptsMountModes = row.accepts
		defer func() {
			if row.works {
				later := OwnershipMark{LedgerID: cfg.LedgerID, Environment: cfg.Environment, Epoch: cfg.Epoch + 1}
				kit.Must(t, errors.Join(TryWrite(cfg.Path), TakeOverFolder(cfg.Path, later)))
			}
		}()
		for _, when := range []string{"before", "after"} {
			m, err := TryModes(cfg)
			kit.Want(t, "the mount decides "+when, m.Decide, true)
			kit.Want(t, "the mode "+when, m.Mode, row.mode)
			kit.Want(t, "it may work "+when, err == nil, row.works)
			if when == "before" {
				kit.Want(t, "names that were left", len(kit.Value(os.ReadDir(cfg.Path))(t)), 0)
				worksOnMount(t, cfg, row.works)
			}
		}
	})
}

// A try that is impossible leaves the answer open.
func TestTryModes_I32_CannotBeTried(t *testing.T) {
	path := share(t)
	for name, cfg := range map[string]Config{"Missing": config(filepath.Join(path, "gone")), "NoGroup": {Path: path, Group: "no such group"}} {
		_, err := TryModes(cfg)
		_, isFault := errors.AsType[*ModesError](err)
		kit.Check(t, err != nil && !isFault, "%s: error = %v, want one that is not of modes", name, err)
	}
}
