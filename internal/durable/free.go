package durable

import (
	"errors"

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

// IsFull reports whether an error means that the disk or the quota is full.
func IsFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, unix.EFBIG)
}
