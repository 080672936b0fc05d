package drop

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
)

// ErrNotFile says that a name is a link, a folder or something else, but not a regular file.
var ErrNotFile = errors.New("not a regular file")

// isSameState reports whether a claimed file is in the state in which it was
// seen. It compares inode, size and mtime: the rename of the claim changes the
// ctime, and neither owner nor rights are content.
func isSameState(claimed, seen durable.FileID) bool {
	return claimed.Ino == seen.Ino && claimed.Size == seen.Size && claimed.Mtime == seen.Mtime
}

// ClaimFile takes the single file name out of the drop folder, under a new key made from now. The claimed folder is made for it:
// it has the file's name and holds the file alone, as in .vaultd/claimed/<key>/scan7.pdf/scan7.pdf. From then on it is a claimed
// folder like any other.
//
// seen is the state in which the file had settled. hasChanged reports that another state was claimed, because somebody wrote
// to the file or exchanged it meanwhile. That file is claimed all the same, and must settle again.
//
// When ClaimFile returns without an error the claim is durable. The error is a [*ClaimError], which may wrap [ErrNotFile]. One
// that wraps [durable.ErrSync] leaves the file claimed.
func (f *Folder) ClaimFile(name string, seen durable.FileID, now time.Time) (c ClaimedFolder, hasChanged bool, err error) {
	// The lock keeps the new claim, which is empty at first, from being removed by readClaim.
	f.claiming.RLock()
	defer f.claiming.RUnlock()
	if IsReservedName(name) || IsNoteName(name) {
		// A note that is written into the folder of the claim would replace a file of its name.
		return c, false, f.newClaimError(name, nil, ErrReservedName)
	}
	if path.Base(name) != name || name == ".." || name == "." {
		return c, false, f.newClaimError(name, nil, ErrNotFile)
	}
	info, err := f.root.Lstat(name)
	if _, is := errors.AsType[*durable.MountError](err); is {
		err = &durable.MountError{Path: "."}
	}
	if err != nil {
		return c, false, f.newClaimError(name, nil, err)
	}
	if !info.Mode().IsRegular() {
		return c, false, f.newClaimError(name, info, ErrNotFile)
	}
	key := archive.NewKey(now)
	claim, folder, err := f.makeFileClaim(key, name)
	if err != nil {
		f.removeEmptyFileClaim(key, name)
		return c, false, f.newClaimError(name, nil, fmt.Errorf("make %s/%s/%s: %w", vaultdDir, claimedDir, key, maskPermission(err)))
	}
	defer claim.Close()
	defer folder.Close()
	// A crash after this rename leaves a claimed folder without a ledger entry. The next start finds it and adopts it under its key.
	if err := moveIntoOwn(f.root, name, folder, name); err != nil {
		// rmdir removes empty folders alone, not one whose file may have arrived without being synced.
		f.removeEmptyFileClaim(key, name)
		return c, false, f.newClaimError(name, info, err)
	}
	return f.describeFileClaim(claim, folder, key, name, seen)
}

// makeFileClaim makes the claim of key, and in it the empty folder that a file of that name is moved into.
func (f *Folder) makeFileClaim(key archive.Key, name string) (claim, folder *durable.Dir, err error) {
	// A crash after this mkdir leaves an empty claim. The next start removes it, and the file is still in its place.
	if err := f.claimed.Mkdir(key.String(), 0o700, -1); err != nil {
		return nil, nil, err
	}
	if claim, err = f.openClaimDir(key); err != nil {
		return nil, nil, err
	}
	// People get this folder back, so it is made for them. A crash after this mkdir leaves a claim with an empty folder. The next
	// start removes both, and the file is still in its place.
	err = claim.Mkdir(name, sharedDirMode, f.gid)
	if err == nil {
		folder, err = claim.OpenDir(name)
	}
	if err != nil {
		return nil, nil, errors.Join(err, claim.Close())
	}
	return claim, folder, nil
}

// describeFileClaim describes what was really moved: somebody may have put a link or another file in its place since the look.
func (f *Folder) describeFileClaim(claim, folder *durable.Dir, key archive.Key, name string, seen durable.FileID) (c ClaimedFolder, hasChanged bool, err error) {
	c, err = describeClaimed(claim, key, name)
	if err != nil {
		return ClaimedFolder{}, false, f.newClaimError(name, nil, err)
	}
	moved, err := folder.Root().Lstat(name)
	if err != nil {
		return ClaimedFolder{}, false, f.newClaimError(name, nil, err)
	}
	if moved.Mode().IsRegular() {
		c.Owner = sysStat(moved).Uid
		return c, !isSameState(durable.IDOf(moved), seen), nil
	}
	// After a crash here the next start adopts what was moved; packing refuses it, and it goes back to people.
	if err := folder.Rename(name, f.root, name); err != nil {
		return ClaimedFolder{}, false, f.newClaimError(name, nil, errors.Join(ErrNotFile, err))
	}
	f.removeEmptyFileClaim(key, name)
	return ClaimedFolder{}, false, f.newClaimError(name, nil, ErrNotFile)
}

// removeEmptyFileClaim removes a claim that the file never reached. Its errors do not matter: the next start removes it.
func (f *Folder) removeEmptyFileClaim(key archive.Key, name string) {
	if claim, err := f.openClaimDir(key); err == nil {
		_ = claim.Rmdir(name)
		_ = claim.Close()
	}
	f.removeEmptyClaim(key)
}

// finishFileClaim looks into a claimed folder that was made for a single file. It returns c with the owner of the file. When a crash
// came before the file was moved, it removes the empty folder, and the error wraps fs.ErrNotExist.
func finishFileClaim(claim *durable.Dir, c ClaimedFolder) (ClaimedFolder, error) {
	folder, err := claim.OpenDir(c.Folder)
	if err != nil {
		return c, durable.PrefixMountPath(path.Dir(claimPath(c)), err)
	}
	defer folder.Close() // read-only
	info, err := folder.Root().Lstat(c.Folder)
	if err == nil {
		c.Owner = sysStat(info).Uid
		return c, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	// rmdir is itself the check that the folder is empty. One that holds anything else was returned to people before and taken again.
	if err := claim.Rmdir(c.Folder); err != nil {
		return c, nil // it holds something, so it is a claimed folder
	}
	return c, &fs.PathError{Op: "find the claimed file", Path: claimPath(c), Err: fs.ErrNotExist}
}
