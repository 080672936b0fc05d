package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"slices"
	"strconv"
	"syscall"

	"vaultd/internal/present"
)

// rights are the user and the groups that the kernel checks when this process
// opens, makes or removes a file.
type rights struct {
	uid, gid int
	groups   []int
}

// isOwnProcess reports whether the process was started for this command alone.
// Only such a command changes the rights of the process.
func (a *app) isOwnProcess() bool { return a.stderr == io.Writer(os.Stderr) }

// isRoot reports whether this process was started for this command, and may
// read and write everything.
func (a *app) isRoot() bool { return a.isOwnProcess() && os.Geteuid() == 0 }

// ownerOf returns the rights of the user that state_dir belongs to, where that
// is another user than root and root gave the command.
func (a *app) ownerOf(stateDir string) (owner rights, differs bool) {
	var st syscall.Stat_t
	if !a.isRoot() || syscall.Stat(stateDir, &st) != nil || st.Uid == 0 {
		return rights{}, false
	}
	return rightsOf(st.Uid, st.Gid), true
}

// rightsOf returns the rights of a user with all of the user's groups. gid is
// the group of a user that this machine does not list.
func rightsOf(uid, gid uint32) rights {
	r := rights{uid: int(uid), gid: int(gid), groups: []int{int(gid)}}
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if err != nil {
		return r
	}
	if main, err := strconv.Atoi(u.Gid); err == nil {
		r.gid, r.groups = main, []int{main}
	}
	ids, _ := u.GroupIds() // without the list the main group remains
	for _, id := range ids {
		if n, err := strconv.Atoi(id); err == nil && !slices.Contains(r.groups, n) {
			r.groups = append(r.groups, n)
		}
	}
	return r
}

// asOwner calls do. If root gave the command, do works as the user that
// state_dir belongs to: the files that it makes there and in the drop folders
// can then be used by the daemon, and do sees what the daemon sees. The files
// that the command line names are opened before, or by asCaller.
func (a *app) asOwner(stateDir string, do func() error) (err error) {
	owner, differs := a.ownerOf(stateDir)
	if !differs {
		return do()
	}
	before, err := currentRights()
	if err == nil {
		err = owner.set()
	}
	if err != nil {
		return fail(exitRights, fmt.Errorf("work as %s, the owner of state_dir: %w", present.UserName(uint32(owner.uid)), err), "give the command as that user")
	}
	defer func() { err = errors.Join(err, before.set()) }()
	return do()
}

// asCaller calls do with the rights of the user who gave the command, also
// within asOwner.
func asCaller(do func() error) (err error) {
	if os.Geteuid() == os.Getuid() {
		return do()
	}
	before, err := currentRights()
	if err == nil {
		err = rights{os.Getuid(), os.Getgid(), []int{os.Getgid()}}.set()
	}
	if err != nil {
		return fmt.Errorf("work as the caller: %w", err)
	}
	defer func() { err = errors.Join(err, before.set()) }()
	return do()
}

func currentRights() (rights, error) {
	groups, err := os.Getgroups()
	return rights{os.Geteuid(), os.Getegid(), groups}, err
}

// set changes the effective rights of all threads. The real user stays the
// caller, who is recorded for what the command decides.
func (r rights) set() error {
	if r.uid == os.Geteuid() && r.gid == os.Getegid() {
		return nil
	}
	// Only root may change groups: the caller's user comes first.
	if err := syscall.Setresuid(-1, os.Getuid(), -1); err != nil {
		return err
	}
	if err := syscall.Setgroups(r.groups); err != nil {
		return err
	}
	if err := syscall.Setresgid(-1, r.gid, -1); err != nil {
		return err
	}
	return syscall.Setresuid(-1, r.uid, -1)
}

// becomeOwner gives up root for good where state_dir belongs to another user.
func (a *app) becomeOwner(stateDir string) (name string, err error) {
	owner, differs := a.ownerOf(stateDir)
	if !differs {
		return "", nil
	}
	name = present.UserName(uint32(owner.uid))
	if err = syscall.Setgroups(owner.groups); err == nil {
		err = syscall.Setresgid(owner.gid, owner.gid, owner.gid)
	}
	if err == nil {
		err = syscall.Setresuid(owner.uid, owner.uid, owner.uid)
	}
	if err != nil {
		return name, fail(exitRights, fmt.Errorf("work as %s, the owner of state_dir: %w", name, err), "start vaultd as that user")
	}
	return name, nil
}
