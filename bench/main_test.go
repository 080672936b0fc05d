package main

import (
	"vaultd/internal/test/kit"

	"context"
	"log/slog"
	"os"
	"testing"
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
