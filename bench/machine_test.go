package main

import (
	"os"
	"path/filepath"
	"testing"

	"vaultd/internal/test/kit"
)

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
