package main

import (
	"context"
	"fmt"
	"path/filepath"
)

// program returns the path of the vaultd that is measured, and builds it the first time, as it is delivered. The commit is
// not written into it, so that one which changes no code gives the same program.
func (b *bench) program(ctx context.Context) (string, error) {
	if b.vaultd != "" {
		return b.vaultd, nil
	}
	bin := filepath.Join(b.work, "vaultd")
	cmd := child(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", bin, "vaultd/cmd/vaultd")
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build vaultd, for want of one named by -vaultd: %w: %s", err, tail(out))
	}
	b.vaultd = bin
	return bin, nil
}
