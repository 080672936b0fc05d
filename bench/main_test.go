package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/test/kit"
)

// TestMain lets this program be its own stand-in of the service, as vaultbench is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "fake" {
		os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// quickBench is a bench in a directory of its own.
func quickBench(t *testing.T) *bench {
	t.Helper()
	return &bench{work: t.TempDir(), quick: true, pairs: 1, seed: 1, log: slog.New(slog.DiscardHandler), weights: map[string]weight{}}
}

// must ends a test at an error.
func must(t *testing.T, err error) {
	t.Helper()
	kit.Must(t, err)
}

// Two builds of one version are two programs: figures of both do not stand in one table.
func TestLook_KnowsTheProgramByItsBytes(t *testing.T) {
	b := quickBench(t)
	b.vaultd = filepath.Join(b.work, "vaultd")
	look := func(text string) machine {
		must(t, os.WriteFile(b.vaultd, []byte(text), 0o700))
		return b.describeMachine(t.Context())
	}
	one, other := look("#!/bin/sh\necho vaultd devel\n"), look("#!/bin/sh\necho vaultd devel # other\n")
	kit.Need(t, one.Version == "vaultd devel" && other.Version == one.Version,
		"versions %q and %q", one.Version, other.Version)
	kit.Check(t, one.Program == "6e2b079b7693", "program %q", one.Program)
	kit.Check(t, !one.isLike(other) && one.isLike(one), "%q is like %q", one.Program, other.Program)
}
