package drop

import (
	"errors"
	"fmt"
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

// Whatever somebody puts in place of a file, or of the whole folder, at any operation of a disposal: it is never removed.
func TestDispose_I18_ExchangedBetweenLookAndRemoval(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err == nil {
		t.Setenv("TMPDIR", "/dev/shm") // hundreds of syncs
	}
	const precious = "what nobody has archived"
	exchanges := map[string]func(dir string) error{
		"SwappedInode": func(d string) error {
			return swap(d+"/rechnung.pdf", func(p string) error { return os.WriteFile(p, []byte(precious), 0o660) })
		},
		"Link": func(d string) error {
			return swap(d+"/rechnung.pdf", func(p string) error { return os.Symlink("/etc/passwd", p) })
		},
		"FIFO": func(d string) error {
			return swap(d+"/rechnung.pdf", func(p string) error { return syscall.Mkfifo(p, 0o600) })
		},
		"Added": func(d string) error { return os.WriteFile(d+"/sub/neu.pdf", []byte(precious), 0o660) },
		"AnotherFolder": func(d string) error {
			return errors.Join(os.Rename(d, d+".alt"), os.Mkdir(d, 0o770), os.WriteFile(d+"/neu.pdf", []byte(precious), 0o660))
		},
		"LinkForFolder": func(d string) error { return errors.Join(os.Rename(d, d+".alt"), os.Symlink("/etc", d)) },
	}
	for name, exchange := range exchanges {
		for _, moves := range []bool{false, true} {
			done := 0
			for n := 1; ; n++ {
				path := share(t)
				c, rel, d := kept(t, path)
				if moves {
					d.To = path + ".out"
					put(t, d.To, "/")
				}
				cfg, count, armed := config(path), 0, false
				struck := errors.New("not yet")
				cfg.Hook = func(op, on string, do func() error) error {
					if count++; count == n && armed {
						struck = exchange(filepath.Join(path, rel))
					}
					return do()
				}
				f := open(t, cfg)
				count, armed = 0, true
				_, err := f.DisposeFolder(t.Context(), c, rel, d)
				if count < n {
					break
				}
				if struck != nil { // it was out of reach by then
					kit.Want(t, fmt.Sprintf("%s, %d", name, n), err, nil)
					continue
				}
				done++
				out, _ := exec.Command("grep", "-rlF", precious, path, path+".out").Output() // nothing found is an error
				switch left := string(out); {
				case (name == "SwappedInode" || name == "Added" || name == "AnotherFolder") && left == "":
					t.Errorf("%s, %d: what was put there is gone; %v", name, n, err)
				case name != "AnotherFolder" && name != "LinkForFolder" && err == nil && !moves && !strings.Contains(left, rel):
					// only what lies at the old place, made anew there, may have been left beside it
					kit.Check(t, left == "" && name != "Link" && name != "FIFO",
						"%s, %d: disposed of all the same: %q", name, n, left)
				}
			}
			kit.Check(t, done != 0, "%s: never struck: vacuous", name)
		}
	}
}

func swap(path string, put func(path string) error) error {
	if _, err := os.Lstat(path); err != nil {
		return err
	}
	return errors.Join(os.Remove(path), put(path))
}

// What cannot be read or compared stays what and where it was, however often it is tried.
func TestDispose_EnvironmentFaultsPutItBack(t *testing.T) {
	path := share(t)
	c, rel, d := kept(t, path)
	before := tree(t, path)
	cfg := config(path)
	faulty := true
	cfg.Hook = func(op, on string, do func() error) error {
		if faulty && (op == "unlink" || op == "rename" && strings.Contains(on, "out")) {
			return &os.PathError{Op: op, Path: on, Err: syscall.EIO}
		}
		return do()
	}
	f := open(t, cfg)
	for range 3 {
		kit.Fails(t, "DisposeFolder", kit.Err(f.DisposeFolder(t.Context(), c, rel, d)), syscall.EIO)
		kit.Want(t, "left", tree(t, path), before)
	}
	faulty = false
	d.To = path + "/nowhere"
	_, err := f.DisposeFolder(t.Context(), c, rel, d)
	kit.Check(t, errors.Is(err, fs.ErrNotExist) && strings.Contains(err.Error(), "nowhere"), "the place to move to vanished: %v", err)
	kit.Want(t, "left", tree(t, path), before)
}

// A drop folder that was put back from a backup has other inodes: its folders are known by what they hold.
func TestRecognise_I18_AnotherInodeSameContent(t *testing.T) {
	restore := func(t *testing.T, path string) *Folder {
		out, err := exec.Command("cp", "-a", path, path+".copy").CombinedOutput()
		kit.Need(t, err == nil, "%v: %s", err, out)
		for _, err := range []error{os.Rename(path, path+".old"), os.Rename(path+".copy", path)} {
			kit.Must(t, err)
		}
		return open(t, config(path))
	}
	t.Run("Claimed", func(t *testing.T) {
		path := share(t)
		c, rel, d := kept(t, path)
		kit.Must(t, errors.Join(os.Mkdir(path+"/.vaultd/claimed/"+c.Key.String(), 0o700), os.Rename(path+"/"+rel, path+"/.vaultd/claimed/"+c.Key.String()+"/"+c.Folder)))
		f := restore(t, path)
		kit.Fails(t, "a receipt for something unknown", f.PlaceFolder(c, rel, ReceiptNote("ok")), ErrFolderLost)
		again, err := f.RecogniseFolder(t.Context(), c, rel, d)
		kit.Need(t, err == nil && again.Inode.Ino != c.Inode.Ino,
			"%+v, %v, want no error, again.Inode.Ino other than %v", again, err, c.Inode.Ino)
		kit.Want(t, "the error of PlaceFolder", f.PlaceFolder(again, rel, ReceiptNote("ok")), nil)
		if again, err = f.RecogniseFolder(t.Context(), c, rel, d); err != nil { // we died before the commit
			t.Errorf("%+v, %v", again, err)
		}
		if _, err := f.DisposeFolder(t.Context(), c, rel, d); err != nil { // the ledger has the old inode
			t.Error(err)
		}
		kit.Fails(t, "RecogniseFolder", kit.Err(f.RecogniseFolder(t.Context(), c, rel, d)), ErrFolderLost)
	})
	t.Run("Changed", func(t *testing.T) {
		path := share(t)
		c, rel, d := kept(t, path)
		put(t, path+"/"+rel, "rechnung.pdf.neu")
		f := restore(t, path)
		_, err := f.DisposeFolder(t.Context(), c, rel, d)
		stray, ok := errors.AsType[*UnexpectedContentError](err)
		kit.Check(t, ok && stray.Path == "rechnung.pdf.neu", `%v, want ok, stray.Path = "rechnung.pdf.neu"`, err)
		kit.Must(t, errors.Join(os.Remove(path+"/"+rel+"/rechnung.pdf.neu"), os.Remove(path+"/"+rel+"/metadata.json")))
		_, err = f.DisposeFolder(t.Context(), c, rel, d)
		stray, ok = errors.AsType[*UnexpectedContentError](err)
		kit.Check(t, ok && strings.Contains(stray.Error(), "metadata.json is missing"), `%v, want ok, stray with "metadata.json is missing"`, err)
		kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+"/"+rel+"/rechnung.pdf")), nil)
	})
	t.Run("ReturnedWithoutContentKnown", func(t *testing.T) {
		path, f := opened(t)
		put(t, path, "Huber 88/metadata.json")
		c := claim(t, f, "Huber 88")
		kit.Must(t, f.Close())
		f = restore(t, path)
		c = kit.Value(f.RecogniseFolder(t.Context(), c, "_rejected/Huber 88", Disposal{}))(t)
		kit.Want(t, "the error of PlaceFolder",
			f.PlaceFolder(c, "_rejected/Huber 88", ReasonNote("NOT ARCHIVED.")), nil)
		kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+"/_rejected/Huber 88/_REASON.txt")), nil)
	})
}

// Who tampers with what is claimed loses nothing of it, reaches nothing through it, and is named.
func TestClaimed_I19_TamperedWith(t *testing.T) {
	for name, row := range map[string]struct {
		tamper func(claim, folder string) error
		want   error
	}{
		"ReplacedByALink": {func(c, d string) error {
			return errors.Join(os.Rename(d, c+"/../../aside"), os.Symlink("../../aside", d))
		}, ErrUnexpectedItem},
		"ReplacedByAFile": {func(c, d string) error {
			return errors.Join(os.Rename(d, c+"/../../aside"), os.WriteFile(d, nil, 0o600))
		}, ErrUnexpectedItem},
		"AnotherBeside":    {func(c, _ string) error { return os.Mkdir(c+"/zweiter", 0o700) }, ErrUnexpectedItem},
		"MovedOut":         {func(c, d string) error { return os.Rename(d, c+"/../../aside") }, fs.ErrNotExist},
		"ClaimIsALink":     {func(c, _ string) error { return errors.Join(os.Rename(c, c+"/../../aside"), os.Symlink("../aside", c)) }, syscall.ENOTDIR},
		"ClaimIsGone":      {func(c, _ string) error { return os.Rename(c, c+"/../../aside") }, fs.ErrNotExist},
		"ClaimIsTheShares": {func(c, _ string) error { return errors.Join(os.Rename(c, c+"/../../aside"), os.Symlink("../..", c)) }, syscall.ENOTDIR},
	} {
		t.Run(name, func(t *testing.T) {
			path, f := opened(t)
			put(t, path, "Huber 88/metadata.json", "Otto 19/metadata.json")
			c := claim(t, f, "Huber 88")
			at := filepath.Join(path, ".vaultd/claimed", c.Key.String())
			kit.Must(t, row.tamper(at, at+"/Huber 88"))
			dir, _, err := f.OpenClaimed(c.Key)
			if err == nil {
				dir.Close()
			}
			kit.Fails(t, "opened", err, row.want)
			err = f.PlaceFolder(c, "_archived/2026-11/Huber 88", ReceiptNote("ok"))
			kit.Check(t, name == "AnotherBeside" || err != nil, "placed")
			for _, err := range f.AllClaims() {
				kit.Check(t, err == nil || errors.Is(err, ErrUnexpectedItem), "one stops them all: %v", err)
			}
			kit.Want(t, "a good neighbour", kit.Err(f.ClaimFolder("Otto 19", now)), nil)
			kit.Want(t, "2", strings.Count(string(kit.Value(exec.Command("find", path, "-name", "metadata.json").Output())(t)), "metadata.json"), 2)
		})
	}
}

// A mount that comes while a folder with something strange in it goes back hides neither: the one says why nothing more of it is removed, the other where it lies.
func TestDispose_I18_StrayAndMountAreBothTold(t *testing.T) {
	path := share(t)
	c, rel, d := kept(t, path)
	put(t, path+"/"+rel, "rechnung.pdf.neu")
	cfg, looks := config(path), 0
	cfg.Hook = func(op, name string, do func() error) error {
		if op == "mount" && name == c.Folder {
			if looks++; looks == 3 { // before it goes into its claim, in it, and before it goes back
				return &durable.MountError{Path: name}
			}
		}
		return do()
	}
	f := open(t, cfg)
	_, err := f.DisposeFolder(t.Context(), c, rel, d)
	stray, ok := errors.AsType[*UnexpectedContentError](err)
	kit.Check(t, ok && stray.Path == "rechnung.pdf.neu", "the stray file is not told: %v", err)
	mount, ok := errors.AsType[*durable.MountError](err)
	kit.Check(t, ok && mount.Path == claimPath(c), "the mount is not told: %v", err)
	kit.Want(t, "it left its claim with a mount in it",
		kit.Err(os.Lstat(path+"/"+claimPath(c)+"/rechnung.pdf.neu")), nil)
	_, err = f.DisposeFolder(t.Context(), c, rel, d) // nothing is mounted any more
	stray, ok = errors.AsType[*UnexpectedContentError](err)
	kit.Check(t, ok && stray.Folder == rel, "%v, want ok, stray.Folder = %v", err, rel)
	kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(path+"/"+rel+"/rechnung.pdf.neu")), nil)
}
