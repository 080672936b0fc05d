package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"vaultd/internal/config"
	"vaultd/internal/drop"
	"vaultd/internal/present"
)

// troubleAt says why the user who asks could not work in a drop folder as it lies there now; "" when nothing speaks
// against it. It is no fault of the configuration: a file system may be mounted later.
func troubleAt(path string) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + " is not there: mount it or make it (docs/samba.md)"
	case err != nil:
		return "cannot be looked at: " + err.Error()
	case !info.IsDir():
		return path + " is not a folder"
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if err := unix.Access(path, unix.W_OK); errors.Is(err, syscall.EROFS) {
		readOnly := &drop.ReadOnlyError{Path: path}
		return readOnly.Error() + ". " + readOnly.Advice()
	}
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.R_OK|unix.W_OK|unix.X_OK, unix.AT_EACCESS); err != nil {
		return fmt.Sprintf("%s cannot work in %s, which belongs to %s with rights %04o (%v); see docs/samba.md", present.UserName(uint32(os.Geteuid())),
			path, present.UserName(owner), info.Mode().Perm(), err)
	}
	if uid := os.Geteuid(); info.Mode()&fs.ModeSticky != 0 && uid != 0 && uint32(uid) != owner {
		return fmt.Sprintf("%s has the sticky bit and belongs to %s, so that nothing can be taken out of it; give it to %s", path,
			present.UserName(owner), present.UserName(uint32(uid)))
	}
	return ""
}

// saneSettle is how long a share's writer may well pause: a stalled network, a busy export, a person between two files.
const saneSettle = 10 * time.Second

// noRetention warns of a drop whose documents are called missing for ever once the archive has removed them.
const noRetention = "retention is not known: what the archive removes at its end will be called MISSING by reconcile. Write retention: 10y, or what your contract says"

// hasteOf warns of a drop that may take a folder whose writer only pauses; "" when it waits long enough or knows better.
func hasteOf(d config.Drop) string {
	if d.Complete != "quiet" || d.Settle >= saneSettle {
		return ""
	}
	return fmt.Sprintf("settle is %v, and complete is quiet: a writer that pauses longer may be taken before it is done, and cut off. Write settle: 30s, or complete: list or marker", d.Settle)
}
