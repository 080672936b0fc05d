package main_test

import (
	"vaultd/internal/test/kit"

	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/emulator"
)

// stopAfter ends a context at so many writes.
type stopAfter struct {
	bytes.Buffer
	writes int
	stop   context.CancelFunc
}

func (s *stopAfter) Write(b []byte) (int, error) {
	if s.writes--; s.writes == 0 {
		s.stop()
	}
	return s.Buffer.Write(b)
}

// The status comes at its interval until the person stops it, which is no failure, also where something needs a person.
func TestStatusWatch_PagesUntilStopped(t *testing.T) {
	s := filled(t)
	kit.Must(t, s.ledger.Close())
	path := writeConfig(t, smallConfig+"state_dir: "+s.cfg.StateDir+"\n")
	for name, args := range map[string][]string{"Text": {"--watch=3s"}, "JSON": {"--watch", "--json"}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				out, errs, began := &stopAfter{writes: 3, stop: cancel}, &bytes.Buffer{}, time.Now()
				code := program.Run(ctx, append([]string{"status", "--config", path}, args...), strings.NewReader(""), out, errs, os.LookupEnv)
				took, wanted := time.Since(began), 2*5*time.Second
				if name == "Text" {
					wanted = 6 * time.Second
				}
				if code != exitDone || errs.Len() > 0 || took != wanted {
					t.Errorf("exit %d after %v: %s", code, took, errs)
				}
				text := out.String()
				if name == "Text" && (strings.Count(text, "BALANCE ") != 3 || strings.Contains(text, "\x1b")) {
					t.Errorf("not three pages:\n%s", text)
				}
				if lines := strings.Split(strings.TrimSpace(text), "\n"); name == "JSON" && (len(lines) != 3 || !json.Valid([]byte(lines[2]))) {
					t.Errorf("not three lines:\n%s", text)
				}
			})
		})
	}
	for _, wrong := range []string{"--watch=10ms", "--watch=often"} {
		if _, errs, code := runHere("status", "--config", path, wrong); code != exitUsage {
			t.Errorf("%s: exit %d: %s", wrong, code, errs)
		}
	}
	if _, errs, code := runHere("status", "--config", path+"-away", "--watch"); code != exitConfig {
		t.Errorf("without a configuration: exit %d: %s", code, errs)
	}
}

// Beside a daemon the pages are the daemon's; that it starts anew in between ends nothing, and Ctrl-C ends with 0.
func TestStatusWatch_BesideDaemon(t *testing.T) {
	t.Parallel()
	_, address := serveEmulator(t, emulator.Config{})
	s := newSite(t, address, fast)
	d := s.begin()
	w := s.start("status", "--watch=1s", "--json")
	lines := func(what string) int { return strings.Count(w.out.String(), what) }
	waitFor(t, "a page", func() bool { return lines(`"running":true`) > 0 })
	d.stop(t)
	waitFor(t, "a page without it", func() bool { return lines(`"running":false`) > 0 })
	s.begin()
	was := lines(`"running":true`)
	waitFor(t, "another page", func() bool { return lines(`"running":true`) > was })
	if code := w.stop(t); code != exitDone {
		t.Errorf("Ctrl-C: exit %d", code)
	}
}
