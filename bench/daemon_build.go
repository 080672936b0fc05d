package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
)

// program returns the path of the vaultd that is measured, and builds it the first time, as it is delivered. The commit is
// not written into it, so that one which changes no code gives the same program.
func (b *bench) program(ctx context.Context) (string, error) {
	var err error
	if b.vaultd == "" {
		b.vaultd, err = b.build(ctx, "vaultd", "")
	}
	return b.vaultd, err
}

// slowProgram is the same, but for a ledger each of whose syncs takes 5 ms more.
func (b *bench) slowProgram(ctx context.Context) (string, error) {
	var err error
	if b.slow == "" {
		b.slow, err = b.build(ctx, "vaultd-slow", "slowdisk")
	}
	return b.slow, err
}

func (b *bench) build(ctx context.Context, name, tags string) (string, error) {
	list := child(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "vaultd")
	root, err := list.Output()
	if err != nil {
		return "", fmt.Errorf("find the module vaultd: %w; run this in the folder bench, or name a program with -vaultd", err)
	}
	bin := filepath.Join(b.work, name)
	cmd := child(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-tags", tags, "-ldflags", "-s -w", "-o", bin, "./cmd/vaultd")
	cmd.Dir = strings.TrimSpace(string(root)) // the versions of that module's go.mod count, not those of this one
	cmd.Env = append(cmd.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build vaultd, for want of one named by -vaultd: %w: %s", err, lastLines(out))
	}
	return bin, nil
}
