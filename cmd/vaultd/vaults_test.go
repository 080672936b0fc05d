package main_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/emulator"
)

// check and status name a vault that the archive does not list, and end as they do without it. Where the archive is away
// they say nothing of it.
func TestVaults_AdviceInCheckAndStatus(t *testing.T) {
	t.Parallel()
	const want = `The archive lists ACME, BETA, not "ACNE". Compare drops[0].vault letter by letter.`
	emu, address := serveEmulator(t, emulator.Config{})
	s := newSite(t, address, fast)
	s.edit("vault: ACME", "vault: ACNE")
	out, code := s.vaultd("check")
	if code != 0 || !strings.Contains(out, "ADVICE   "+want+"\n") || strings.Count(out, "ADVICE") != 1 || emu.CountCalls("vaults") != 1 {
		t.Errorf("check: exit %d, asked %d times: %s", code, emu.CountCalls("vaults"), out)
	}
	out, code = s.vaultd("check", "--offline", "--json")
	var told struct {
		Good   bool
		Advice []string
	}
	if err := json.Unmarshal([]byte(out), &told); err != nil || code != 0 || !told.Good || told.Advice == nil || len(told.Advice) > 0 || emu.CountCalls("vaults") != 1 {
		t.Errorf("check --offline: exit %d, %v: %s", code, err, out)
	}

	p := s.begin()
	waitFor(t, "the advice", func() bool { return slices.Equal(s.status().Advice, []string{want}) })
	if out, code = s.vaultd("status"); code != 0 || !strings.Contains(out, "ADVICE   "+want+"\n") {
		t.Errorf("status: exit %d: %s", code, out)
	}
	if code := p.stop(t); code != 0 || !strings.Contains(p.out.String(), "letter by letter") {
		t.Errorf("run: exit %d, and the log says nothing of it: %s", code, p.out)
	}
	s.edit(address, "http://127.0.0.1:1")
	if out, code = s.vaultd("check"); code != 0 || strings.Contains(out, "ADVICE") {
		t.Errorf("check with an archive that is away: exit %d: %s", code, out)
	}
}
