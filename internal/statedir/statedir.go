package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"vaultd/internal/durable"
)

// The folders that vaultd has in state_dir.
const (
	SpoolFolder = "spool" // sealed packages
	DropsFolder = "drops" // which drop folders this ledger has worked in

	ReceivedFolder = "received" // documents that came in over the business network, until they are archived
)

// OwnFolders gives the paths of the folders that vaultd has in stateDir. Each may be a mount.
func OwnFolders(stateDir string) []string {
	return []string{filepath.Join(stateDir, SpoolFolder), filepath.Join(stateDir, DropsFolder), filepath.Join(stateDir, ReceivedFolder)}
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

// CheckFolders reports whether vaultd can have its folders in stateDir. It changes nothing, and the state directory need not exist. The
// error joins an [*OwnFolderError] for each that is in the way.
func CheckFolders(stateDir string) error {
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

// OpenFolder opens a folder of vaultd's own in stateDir, and makes it where it is missing. The path to stateDir may lead through links,
// and stateDir may be one: an administrator wrote that path. What lies in it is opened without following any. The folder may be a mount.
// The error is an [*OwnFolderError] where a link or something else lies there.
func OpenFolder(stateDir, name string, fault durable.Hook) (*durable.Dir, error) {
	state, err := durable.Open(stateDir, fault)
	if err != nil {
		return nil, err
	}
	defer state.Close() // nothing in it is changed
	dir, err := state.OpenDirOrMount(name)
	if errors.Is(err, fs.ErrNotExist) {
		// A crash after this line leaves an empty folder, and the next start opens it.
		if err := makeFolder(stateDir, name); err != nil {
			return nil, err
		}
		dir, err = state.OpenDirOrMount(name)
	}
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, errors.Join(CheckFolders(stateDir), err)
	}
	return dir, err
}

// makeFolder makes a folder in stateDir, and makes that durable.
func makeFolder(stateDir, name string) error {
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
