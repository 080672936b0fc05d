package durable

import (
	"golang.org/x/sys/unix"
)

// FreeBytes returns the bytes that an ordinary process may still write at path; -1: unknown.
func FreeBytes(path string) int64 {
	var st unix.Statfs_t
	if unix.Statfs(path, &st) != nil {
		return -1
	}
	return int64(st.Bavail) * st.Bsize
}
