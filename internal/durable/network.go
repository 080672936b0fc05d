package durable

import "golang.org/x/sys/unix"

// networkFileSystems names the file systems where other machines change things
// without local events, or events are not to be relied on.
var networkFileSystems = map[uint32]string{
	unix.NFS_SUPER_MAGIC: "nfs", unix.CIFS_SUPER_MAGIC: "cifs", unix.SMB2_SUPER_MAGIC: "smb", unix.SMB_SUPER_MAGIC: "smb",
	unix.FUSE_SUPER_MAGIC: "fuse", unix.V9FS_MAGIC: "9p", unix.CEPH_SUPER_MAGIC: "ceph", unix.AFS_SUPER_MAGIC: "afs",
	unix.AFS_FS_MAGIC: "afs", unix.CODA_SUPER_MAGIC: "coda", unix.NCP_SUPER_MAGIC: "ncp", unix.OCFS2_SUPER_MAGIC: "ocfs2",
	0x47504653: "gpfs", 0x01161970: "gfs2", 0x0BD00BD0: "lustre", 0x19830326: "beegfs", 0x786f4256: "vboxsf", 0xBACBACBC: "vmhgfs",
}

// NetworkFileSystem returns the name of the network file system that path lies
// on. It is empty for a local one.
func NetworkFileSystem(path string) (string, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return "", err
	}
	return networkFileSystems[uint32(st.Type)], nil
}

// NetworkFileSystem returns the name of the network file system that d lies on.
// It is empty for a local one.
func (d *Dir) NetworkFileSystem() (string, error) {
	var st unix.Statfs_t
	err := d.hook.runOp("statfs", ".", func() error {
		return d.withDescriptor(func(fd int) error { return unix.Fstatfs(fd, &st) })
	})
	return networkFileSystems[uint32(st.Type)], err
}
