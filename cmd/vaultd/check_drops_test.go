package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/ingest"
)

func TestCheck_TroubleAtDrops(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		dir:                        "",
		filepath.Join(dir, "away"): "is not there",
		file:                       "is not a folder",
	} {
		if got := troubleAt(path); got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("%s: %q; want %q", path, got, want)
		}
	}
}

func TestCheck_HastySettle(t *testing.T) {
	for d, warned := range map[*dropConfig]bool{
		{Complete: "quiet", Settle: 2 * time.Second}:  true,
		{Complete: "quiet", Settle: 30 * time.Second}: false,
		{Complete: "list", Settle: time.Second}:       false,
	} {
		if got := hasteOf(*d); strings.Contains(got, "settle is 2s") != warned || (got != "") != warned {
			t.Errorf("%+v: %q", d, got)
		}
	}
}

func TestUsage_NamesTheCommandsOwnHelp(t *testing.T) {
	var out, errs bytes.Buffer
	if code := run(context.Background(), []string{"close", "X"}, &out, &errs); code != exitUsage || !strings.Contains(errs.String(), `see "vaultd help close"`) {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

func TestExit_DeniedBeforeAnythingLeft(t *testing.T) {
	for _, o := range []ingest.Outcome{ingest.NotSent, ingest.TurnedAway} {
		if code := remoteCode(&ingest.RemoteError{Outcome: o, Denied: true}); code != exitRights {
			t.Errorf("%v: exit %d; want %d", o, code, exitRights)
		}
	}
}
