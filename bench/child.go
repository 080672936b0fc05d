package main

import (
	"context"
	"os/exec"
	"syscall"
)

// child is a command that ends with this process, however that ends: a bench that is killed leaves nothing running.
func child(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}
