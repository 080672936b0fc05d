package daemon

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"

	"vaultd/internal/durable"
)

// The folders that vaultd has in state_dir.
const (
	spoolDir = "spool" // sealed packages
	dropsDir = "drops" // which drop folders this ledger has worked in
)

// OwnFolders gives the paths of the folders that vaultd has in stateDir. Each may be a mount.
func OwnFolders(stateDir string) []string {
	return []string{filepath.Join(stateDir, spoolDir), filepath.Join(stateDir, dropsDir)}
}

// OwnFolderError says that something else lies where vaultd has a folder of its own in state_dir.
type OwnFolderError struct {
	Path string
	Link bool // it is a link; else a file or something else
}

// Error implements error.
func (e *OwnFolderError) Error() string {
	if e.Link {
		return fmt.Sprintf("%s is a link, and vaultd follows no link to a folder of its own: it makes and removes files there", e.Path)
	}
	return fmt.Sprintf("%s is not a folder, and vaultd needs a folder of its own there", e.Path)
}

// Advice says what to do about it.
func (e *OwnFolderError) Advice() string {
	if e.Link {
		return fmt.Sprintf("remove the link; where the disk is too small, mount the larger one there (mkdir %s && mount --bind /bigdisk/FOLDER %s), or set state_dir to a folder on the larger disk", e.Path, e.Path)
	}
	return "move it away"
}

// CheckStateDir looks whether vaultd can have its folders in stateDir. It changes nothing, and the state directory need not exist. The
// error joins an [*OwnFolderError] for each that is in the way.
func CheckStateDir(stateDir string) error {
	var errs []error
	for _, path := range OwnFolders(stateDir) {
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case !info.IsDir():
			errs = append(errs, &OwnFolderError{Path: path, Link: info.Mode()&fs.ModeSymlink != 0})
		}
	}
	return errors.Join(errs...)
}

// openOwn opens a folder of vaultd's own in stateDir, and makes it where it is missing. The way to stateDir may lead through links, and
// stateDir may be one: an administrator wrote that path. What lies in it is opened without following any. The folder may be a mount.
func openOwn(stateDir, name string, fault durable.Hook) (*durable.Dir, error) {
	state, err := durable.Open(stateDir, fault)
	if err != nil {
		return nil, err
	}
	defer state.Close() // nothing in it is changed
	dir, err := state.OpenDirOrMount(name)
	if errors.Is(err, fs.ErrNotExist) {
		// After a crash behind this the folder is there and empty, and the next start opens it.
		if err := makeOwn(stateDir, name); err != nil {
			return nil, err
		}
		dir, err = state.OpenDirOrMount(name)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, errors.Join(CheckStateDir(stateDir), err)
	}
	return dir, err
}

// makeOwn makes a folder in stateDir, and makes that durable.
func makeOwn(stateDir, name string) error {
	state, err := durable.Open(stateDir, nil)
	if err != nil {
		return err
	}
	defer state.Close() // synced by Mkdir
	if err := state.Mkdir(name, 0o700, -1); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// OpenSpool opens the folder for packages in stateDir, and makes it where it is missing. The error is an [*OwnFolderError] where a link
// or something else lies there.
func OpenSpool(stateDir string, fault durable.Hook) (*durable.Dir, error) {
	dir, err := openOwn(stateDir, spoolDir, fault)
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return dir, nil
}

// NamelessFile makes a file in the spool of stateDir, the only place for contents, and takes its name away: it is gone when it is closed.
func NamelessFile(stateDir string) (*os.File, error) {
	spool, err := OpenSpool(stateDir, nil)
	if err != nil {
		return nil, err
	}
	defer spool.Close() // nothing in it is to last
	name := downloadName(rand.Uint64())
	f, err := spool.Root().OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make a file for the download: %w", err)
	}
	// After a crash here the next start of the daemon removes it; a daemon that starts just now may be faster.
	if err := spool.Unlink(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errors.Join(fmt.Errorf("make a file for the download: %w", err), f.Close())
	}
	return f, nil
}
