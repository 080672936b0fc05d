package main

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// leaveNoDump keeps what is in memory (secrets, tokens, documents) from being written to a disk when the process dies,
// and from other processes of the same user: no core, however cores are collected, and whatever GOTRACEBACK
// asks for. Root can still look.
func leaveNoDump() error {
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("forbid core files: %w", err)
	}
	return nil
}
