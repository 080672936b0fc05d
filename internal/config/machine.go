package config

import (
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"vaultd/internal/statedir"
)

// CheckMachine holds the configuration against this machine: the state directory on a local disk and no link in it, no folder of
// the configuration reached by two ways, and the secret and the certificates readable with the rights they need. It changes nothing. Faults come as a *Error with their
// places in the file; rights that are too wide carry a *SecretRightsError.
func (c *Config) CheckMachine(env Env) error {
	d := &document{name: "configuration", wrong: map[string]bool{}}
	if c.doc != nil { // nil: made by the program itself, for a trial
		d.name, d.lines, d.values, d.hide = c.doc.name, c.doc.lines, c.doc.values, c.doc.hide
	}
	look := func(value string, loc ...string) bool { return value != "" && (c.doc == nil || c.doc.hasNoFault(loc)) }
	refuse := func(loc location, problem, hint string, cause error) {
		d.addFaultAt(loc, problem, hint)
		d.faults[len(d.faults)-1].Err = cause
	}
	if look(c.StateDir, "state_dir") {
		problem, err := CheckLedgerDisk(c.StateDir, c.Service.Environment == "production")
		if err != nil {
			problem = "cannot be looked at: " + err.Error()
		}
		if problem != "" {
			refuse(location{"state_dir"}, problem, "write a path on a local disk, such as /var/lib/vaultd", err)
		}
		if own, ok := errors.AsType[*statedir.OwnFolderError](statedir.CheckFolders(c.StateDir)); ok {
			refuse(location{"state_dir"}, own.Error(), own.Advice(), own)
		}
	}
	c.findAliases(func(pair placePair, problem string) {
		if look(pair.place.path, pair.place.loc...) && look(pair.other.path, pair.other.loc...) {
			refuse(pair.place.loc, problem, pair.place.hint, nil)
		}
	})
	if c.doc != nil {
		if why := c.describeWriters(d.name); why != "" { // who may write it chooses where the secret is sent
			refuse(nil, why, "chown root:vaultd "+d.name+" && chmod 0640 "+d.name+", in a folder where root alone may write, such as /etc/vaultd", nil)
		}
	}
	for loc, auth := range c.allCredentials() {
		loc = loc.child("secret_file")
		if _, err := ReadSecret(auth.SecretFile, env); err != nil && look(auth.SecretFile, loc...) {
			refuse(loc, err.Error(), secretHint(err), err)
		}
	}
	_, faults := c.HTTP.ReadPortSecrets(env)
	for _, f := range faults {
		if loc := locationOf("http." + f.Key); look(f.Key, loc...) {
			refuse(loc, f.Err.Error(), f.Hint, f.Err)
		}
	}
	clerks := c.clerkGroups()
	for key, path := range c.privateFiles() {
		if why := describeClerkReaders(path, clerks); why != "" && look(path, locationOf(key)...) {
			refuse(locationOf(key), why, fmt.Sprintf("change the secret, then: chown root:vaultd %s && chmod 0640 %s; vaultd is a group of vaultd's own, with no clerk in it", path, path), &SecretRightsError{Path: path, Why: why})
		}
	}
	if socket := c.HTTP.Access.Proxy.Socket; look(socket, "http", "access", "proxy", "socket") {
		if err := CheckSocketFolder(socket); err != nil {
			refuse(locationOf("http.access.proxy.socket"), err.Error(), "write a path in a folder of vaultd's own, such as /run/vaultd/pages.sock with RuntimeDirectory=vaultd in the unit", err)
		}
	}
	if look(c.Service.CAFile, "service", "ca_file") {
		if problem, hint, err := checkCAFile(c.Service.CAFile); problem != "" {
			refuse(location{"service", "ca_file"}, problem, hint, err)
		}
	}
	return d.faultsAsError()
}

// checkCAFile says what is wrong with a file of certificates, and what to do;
// empty: nothing is. err is the cause, where there is one.
func checkCAFile(name string) (problem, hint string, err error) {
	pem, err := os.ReadFile(name)
	switch {
	case err != nil:
		return "cannot be read: " + err.Error(), "it must be readable for the daemon's user", err
	case !x509.NewCertPool().AppendCertsFromPEM(pem):
		return "holds no certificate", "it must be a PEM file with at least one CERTIFICATE block", nil
	}
	return "", "", nil
}

// describeWriters says why others than root and this user can change the file
// of the configuration, or put another one in its place; empty: they cannot. A
// file that cannot be looked at is not this function's question.
func (c *Config) describeWriters(name string) string {
	path, err := filepath.Abs(name)
	if err != nil {
		return ""
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	clerks := c.clerkGroups()
	for _, at := range []string{path, real} {
		info, err := os.Stat(at)
		if err != nil {
			return ""
		}
		if why := describeForeignWriters(info, clerks); why != "" {
			return "can be changed by others: it " + why
		}
		if hasAccessList(at) && info.Mode().Perm()&0o020 != 0 {
			return "can be changed by others: it has an access list (getfacl) with which others may write it"
		}
		if _, why, _ := describeReplacers(filepath.Dir(at), clerks); why != "" {
			return why
		}
	}
	return ""
}

// hasAccessList reports whether a file has more rights than its mode shows. Its
// group's right to write is then the most that any user or group of the list
// has.
func hasAccessList(path string) bool {
	n, err := unix.Getxattr(path, "system.posix_acl_access", nil)
	return err == nil && n > 0
}

// privateFiles returns the files whose content is secret, by their keys.
// Credentials of systemd are its own affair.
func (c *Config) privateFiles() map[string]string {
	files := map[string]string{"http.key_file": c.HTTP.KeyFile, "http.access.users_file": c.HTTP.Access.UsersFile, "http.access.proxy.secret_file": c.HTTP.Access.Proxy.SecretFile}
	for loc, auth := range c.allCredentials() {
		files[strings.Join(loc.child("secret_file"), ".")] = auth.SecretFile
	}
	maps.DeleteFunc(files, func(_, path string) bool { return !filepath.IsAbs(path) })
	return files
}

// describeClerkReaders says why clerks can read a private file: by its group,
// which is that of a drop folder, or by an access list. Empty: they cannot, or
// the file cannot be looked at, which its reader reports.
func describeClerkReaders(path string, clerks []uint32) string {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o040 == 0 { // of an access list, these bits are the most that it gives
		return ""
	}
	gid := statOwner(info).Gid
	if slices.Contains(clerks, gid) {
		return fmt.Sprintf("secret file %s can be read by clerks: its group %s is that of a drop folder", path, groupName(gid))
	}
	list := make([]byte, 4096)
	n, err := unix.Getxattr(path, "system.posix_acl_access", list)
	const version, entry = 4, 8 // bytes; an entry is a tag, the rights and a number
	for at := version; err == nil && at+entry <= n; at += entry {
		tag, rights, id := binary.LittleEndian.Uint16(list[at:]), binary.LittleEndian.Uint16(list[at+2:]), binary.LittleEndian.Uint32(list[at+4:])
		const namedUser, namedGroup, read = 2, 8, 4
		switch {
		case rights&read == 0:
		case tag == namedUser && id != 0 && int(id) != os.Geteuid():
			return fmt.Sprintf("secret file %s can be read by %s: its access list (getfacl) says so", path, userName(id))
		case tag == namedGroup && slices.Contains(clerks, id):
			return fmt.Sprintf("secret file %s can be read by clerks: its access list (getfacl) has the group %s of a drop folder", path, groupName(id))
		}
	}
	return ""
}

// clerkGroups returns the groups of the drop folders. A group with the number or
// the name of this user is the user's own.
func (c *Config) clerkGroups() (groups []uint32) {
	for _, d := range c.Drops {
		if info, err := os.Stat(d.Path); err == nil {
			groups = append(groups, statOwner(info).Gid)
		}
		if g, err := user.LookupGroup(d.Group); err == nil {
			gid, _ := strconv.ParseUint(g.Gid, 10, 32) // a system's own number
			groups = append(groups, uint32(gid))
		}
	}
	us, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	return slices.DeleteFunc(groups, func(gid uint32) bool {
		return int(gid) == os.Geteuid() || err == nil && int(gid) == os.Getegid() && groupName(gid) == us.Username
	})
}

func secretHint(err error) string {
	var rights *SecretRightsError
	switch {
	case errors.As(err, &rights) && rights.Why != "":
		return "keep it where root alone may write, such as /etc/vaultd: owner root:vaultd, rights 0640"
	case errors.As(err, &rights):
		return fmt.Sprintf("change the secret, then: chown root:vaultd %s && chmod 0640 %s", rights.Path, rights.Path)
	case errors.Is(err, errNoCredentials):
		return "add LoadCredential= to the unit, or start vaultd through systemd"
	case errors.Is(err, fs.ErrNotExist):
		return "make the file: owner root:vaultd, rights 0640"
	case errors.Is(err, fs.ErrPermission):
		return "it must be readable for the daemon's user: owner root:vaultd, rights 0640"
	}
	return oneSecretHint
}

// oneSecretHint is the hint for a file whose content is wrong.
const oneSecretHint = "the file holds the secret alone, in one line"

// Locks and memory maps do not hold, or not for long, on these.
var remoteFileSystems = map[int64]string{
	unix.NFS_SUPER_MAGIC:  "NFS",
	unix.SMB_SUPER_MAGIC:  "SMB",
	unix.CIFS_SUPER_MAGIC: "SMB",
	unix.SMB2_SUPER_MAGIC: "SMB",
	unix.CODA_SUPER_MAGIC: "Coda",
	unix.AFS_SUPER_MAGIC:  "AFS",
	unix.AFS_FS_MAGIC:     "AFS",
	unix.V9FS_MAGIC:       "9p",
	unix.CEPH_SUPER_MAGIC: "Ceph",
	unix.FUSE_SUPER_MAGIC: "FUSE",
	0x0bd00bd0:            "Lustre",
	0x47504653:            "GPFS",
	0x01161970:            "GFS2",
	0x19830326:            "BeeGFS",
	0x786f4256:            "a VirtualBox share",
}

// CheckLedgerDisk says why a directory, which need not exist yet, must not hold the ledger; "" when it may. Memory is
// fit for trials, never for production.
func CheckLedgerDisk(dir string, production bool) (string, error) {
	for {
		var st unix.Statfs_t
		err := unix.Statfs(dir, &st)
		switch {
		case err == nil:
			return unfitFileSystem(int64(st.Type), production), nil
		case errors.Is(err, fs.ErrNotExist) && dir != "/":
			dir = filepath.Dir(dir)
		default:
			return "", &fs.PathError{Op: "statfs", Path: dir, Err: err}
		}
	}
}

func unfitFileSystem(magic int64, production bool) string {
	magic &= 0xffffffff // some magics are negative in 32 bits
	if name, ok := remoteFileSystems[magic]; ok {
		return "lies on a file system that is not local (" + name + ")"
	}
	if production && (magic == unix.TMPFS_MAGIC || magic == unix.RAMFS_MAGIC) {
		return "lies in memory, and is gone after a power cut"
	}
	return ""
}
