package drop

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// incomingDir is where folders that vaultd itself puts into the drop folder are written, in .vaultd. No watcher looks there.
const incomingDir = "incoming"

// ErrSourceDiffers says that a file to be written is not what was recorded of it. Nothing is put into the drop folder then.
var ErrSourceDiffers = errors.New("what is read of it is not what was recorded")

// PutFolder writes a folder that vaultd itself puts there, as if a person had dropped it, into .vaultd/incoming/<key> and moves it whole into the drop folder, and returns the name that it got there: a
// name that is taken gets " (2)". When it returns without an error the folder is durable in its place.
//
// The call can be repeated. A folder of an earlier call that still lies in the drop folder is left alone; one that was claimed meanwhile
// is written again, so whoever archives it must know it by its identity. What an earlier call left in .vaultd/incoming is removed, file by
// file. An error that wraps [durable.ErrSync] means that nobody knows where the folder is; after any other the call is made again later.
func (f *Folder) PutFolder(ctx context.Context, in archive.DropFolder) (name string, err error) {
	if err := checkIncoming(in); err != nil {
		return "", fmt.Errorf("put %q into drop %s: %w", in.Name, f.cfg.Name, err)
	}
	// One folder at a time: everything else in .vaultd/incoming is then of a life that ended.
	f.putting.Lock()
	defer f.putting.Unlock()
	if name, err = f.putFolder(ctx, in); err != nil {
		return "", fmt.Errorf("put %q into drop %s: %w", in.Name, f.cfg.Name, err)
	}
	return name, nil
}

// checkIncoming refuses names that a leftover could not be recognised by, or that the drop folder does not take.
func checkIncoming(in archive.DropFolder) error {
	switch {
	case in.Key.IsZero() || path.Base(in.Name) != in.Name || in.Name == "." || in.Name == ".." || len(in.Name) > maxNameLength || strings.Contains(in.Name, "\x00"):
		return errors.New("not a name for a folder")
	case IsReservedName(in.Name):
		return ErrReservedName
	case path.Base(in.SidecarName) != in.SidecarName || in.SidecarName == "." || in.SidecarName == "..":
		return errors.New("not a name for a sidecar")
	}
	for _, file := range in.Files {
		if !IsPlainName(file.Path) || IsNoteName(file.Path) || strings.EqualFold(file.Path, in.SidecarName) {
			return fmt.Errorf("%q is not a name for a file", file.Path)
		}
	}
	return nil
}

// isOwn reports whether a file of that name in the folder of in, or of another call, is what a call left there. Of other calls only names that no
// person gives are known; such a folder is cleared by the call that made it, which is made again.
func isOwn(in archive.DropFolder, name string) bool {
	return name == in.SidecarName || isMadeName(name) || slices.ContainsFunc(in.Files, func(f archive.DropFile) bool { return name == f.Path })
}

// isMadeName reports whether a name is one of those that programs make: letters, digits, points, dashes and underscores.
func isMadeName(s string) bool {
	return IsPlainName(s) && strings.IndexFunc(s, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("._-", r)
	}) < 0
}

// IsPlainName reports whether a name has nothing that a system, a person or a drop folder could take for something else than a file.
func IsPlainName(s string) bool {
	return s != "" && utf8.ValidString(s) && len(s) <= maxNameLength-len("..tmp") && !strings.ContainsAny(s[:1], ".~ ") && !strings.ContainsAny(s[len(s)-1:], ". ") &&
		!strings.ContainsAny(s, `<>:"/\|?*`) && strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0
}

// putFolder is PutFolder for whoever holds putting.
func (f *Folder) putFolder(ctx context.Context, in archive.DropFolder) (string, error) {
	incoming, err := f.openPrivateDir(f.vaultd, incomingDir)
	if err != nil {
		return "", err
	}
	defer incoming.Close() // the renames sync it
	// The rename below must stay on one file system.
	if err := f.checkSameDevice(incoming, vaultdDir+"/"+incomingDir); err != nil {
		return "", err
	}
	if err := clearIncoming(incoming, in); err != nil {
		return "", err
	}
	name, isThere, err := f.findPlaceFor(ctx, in)
	if err != nil {
		return "", err
	}
	if isThere {
		// The rename of an earlier call may never have been synced. The new place comes first, as in a rename.
		if err := f.root.Sync(); err != nil {
			return "", err
		}
		return name, incoming.Sync()
	}
	if err := f.stageFolder(ctx, incoming, in); err != nil {
		return "", errors.Join(err, clearAfter(incoming, in, err))
	}
	// A crash before this rename leaves the folder in .vaultd/incoming; the next call removes it and writes it again. A crash after it
	// leaves the folder in the drop folder, where the next call finds it, or the watcher takes it. It replaces nothing: where somebody took
	// the name since the look, the next call chooses another one.
	if err := moveEntry(incoming, in.Key.String(), f.root, name); err != nil {
		return "", errors.Join(err, clearAfter(incoming, in, err))
	}
	return name, nil
}

// clearAfter removes what a call that failed with err has written: a full disk
// gets its room back. What it cannot remove the next call removes. If it is not
// known what is on disk nothing is touched.
func clearAfter(incoming *durable.Dir, in archive.DropFolder, err error) error {
	if errors.Is(err, durable.ErrSync) {
		return nil
	}
	if err := clearIncoming(incoming, in); errors.Is(err, durable.ErrSync) {
		return err
	}
	return nil
}

// stageFolder writes the folder into .vaultd/incoming/<key> and makes it durable there.
func (f *Folder) stageFolder(ctx context.Context, incoming *durable.Dir, in archive.DropFolder) error {
	name := in.Key.String()
	// A crash from here on leaves a folder with some of the files; the next call removes them one by one, and begins anew.
	if err := incoming.Mkdir(name, sharedDirMode, f.gid); err != nil {
		return err
	}
	dir, err := incoming.OpenDir(name)
	if err != nil {
		return err
	}
	defer dir.Close() // synced below
	for _, file := range in.Files {
		if err := f.writeIncomingFile(ctx, dir, file); err != nil {
			return fmt.Errorf("write %s: %w", file.Path, err)
		}
	}
	// The sidecar comes last, as with a person who drops a folder: without it a folder is never taken.
	if err := f.writeFile(dir, sharedMode, NoteFile{Name: in.SidecarName, Data: in.Sidecar}); err != nil {
		return fmt.Errorf("write %s: %w", in.SidecarName, err)
	}
	// One sync for all names. It comes before the rename that shows the folder.
	return dir.Sync()
}

// writeIncomingFile writes one file, and compares it with what was recorded while it does. It does not sync dir.
func (f *Folder) writeIncomingFile(ctx context.Context, dir *durable.Dir, in archive.DropFile) error {
	source, err := in.Open()
	if err != nil {
		return err
	}
	defer source.Close() // read-only
	file, err := f.createShared(dir, in.Path, sharedMode, nil)
	if err != nil {
		return err
	}
	defer file.Discard()
	sum := sha256.New()
	// One byte more than recorded shows a source that has grown.
	n, err := io.Copy(io.MultiWriter(file, sum), io.LimitReader(readWhile{ctx, source}, in.Size+1))
	if err != nil {
		return err
	}
	if n != in.Size || archive.Digest(sum.Sum(nil)) != in.SHA256 {
		return ErrSourceDiffers
	}
	// A crash before the file has its name leaves it under its temporary one, and the next call removes that.
	return file.CommitWithoutDirSync()
}

// readWhile ends a reading when ctx ends.
type readWhile struct {
	ctx context.Context
	r   io.Reader
}

func (r readWhile) Read(b []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(b)
}

// findPlaceFor returns the name that the folder gets in the drop folder: the
// first that is free. If it finds the very folder, which an earlier call put
// there, isThere is true. Names that differ only in case or in how accents are
// stored count as taken.
func (f *Folder) findPlaceFor(ctx context.Context, in archive.DropFolder) (name string, isThere bool, err error) {
	taken := map[string]bool{}
	if err := f.root.EachName(func(name string) error { taken[archive.FoldName(name)] = true; return nil }); err != nil {
		return "", false, err
	}
	for n := 1; ; n++ {
		name := withNumber(in.Name, n)
		if !taken[archive.FoldName(name)] {
			return name, false, nil
		}
		if isThere, err := f.isPut(ctx, name, in); err != nil || isThere {
			return name, isThere, err
		}
	}
}

// isPut reports whether the folder name in the drop folder has the files of in, byte for byte, and no others.
func (f *Folder) isPut(ctx context.Context, name string, in archive.DropFolder) (bool, error) {
	all := Disposal{Files: []archive.File{{Path: in.SidecarName, Size: int64(len(in.Sidecar)), SHA256: archive.Sum(in.Sidecar)}}}
	for _, file := range in.Files {
		all.Files = append(all.Files, file.File)
	}
	_, err := recogniseByContent(newInspection(ctx, name, all), f.root, name)
	_, another := errors.AsType[*UnexpectedContentError](err)
	_, mount := errors.AsType[*durable.MountError](err)
	switch {
	case err == nil:
		return true, nil
	case another, mount, errors.Is(err, ErrUnexpectedItem), errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.ELOOP):
		// Somebody else's, or it was claimed since the look. Either way another one is put there.
		return false, nil
	}
	return false, err
}

// clearIncoming removes what earlier calls left: regular files of names that calls give, and folders by rmdir. It fails where
// something else lies in the folder of in; in other folders it leaves that alone.
func clearIncoming(incoming *durable.Dir, in archive.DropFolder) error {
	return incoming.EachName(func(name string) error {
		key, err := archive.ParseKey(name)
		if err != nil || key.String() != name {
			return nil // calls make and remove only names of this form
		}
		err = clearStaged(incoming, name, in)
		if key == in.Key || errors.Is(err, durable.ErrSync) {
			return err
		}
		return nil
	})
}

// clearStaged removes the folder name of .vaultd/incoming with what a call wrote into it.
func clearStaged(incoming *durable.Dir, name string, in archive.DropFolder) error {
	where := path.Join(vaultdDir, incomingDir, name)
	dir, err := incoming.OpenDir(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return durable.PrefixMountPath(path.Dir(where), err)
	}
	defer dir.Close() // what it loses is synced with it by the next folder, or comes back and is removed again
	err = dir.EachName(func(file string) error {
		info, err := dir.Lstat(file)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() || !isOwn(in, file) {
			return fmt.Errorf("%s/%q: %w", where, file, ErrUnexpectedItem)
		}
		// A crash after this unlink leaves the other files, which the next call removes. The file is a copy: its source is in custody.
		return dir.Unlink(file)
	})
	if err != nil {
		return err
	}
	// rmdir is itself the check that the folder is empty.
	return incoming.Rmdir(name)
}
