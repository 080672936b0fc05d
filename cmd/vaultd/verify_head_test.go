package main_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// A head that was kept is found in each form in which vaultd writes it, and the
// journal contains it as long as nobody writes the past anew.
func TestVerify_I14_KeptHeads(t *testing.T) {
	s := filled(t)
	var report struct {
		About struct {
			HeadLine uint64
			HeadHash string
		}
	}
	out, _, _ := s.say("audit", "--json")
	kit.Must(t, json.Unmarshal([]byte(out), &report))
	dir := t.TempDir()
	var status struct{ Head string }
	text, _, _ := s.say("status", "--json")
	kit.Must(t, json.Unmarshal([]byte(text), &status))
	page, _, _ := s.say("audit")
	receipt, _, _ := s.say("receipt", "Müller 4711", "--json")
	kept := map[string]string{"report.json": out, "report.html": page, "receipt.json": receipt, "vaultd.log": `{"msg":"vaultd started","head":"` + status.Head + `"}`}
	for name, text := range kept {
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	s.send("Later 1", noon, "bum-9")
	for name := range kept {
		out, errs, code := s.say("verify", "--head", filepath.Join(dir, name))
		kit.Check(t, code == exitDone && strings.Contains(out, "KEPT HEAD line "),
			"%s: exit %d, %s%s, want 0 and the kept head", name, code, out, errs)
	}
	line, hash, _ := strings.Cut(status.Head, ":")
	for name, row := range map[string]struct {
		head, says string
		code       int
	}{
		"Kept":         {status.Head, "KEPT HEAD line " + line, exitDone},
		"OtherHash":    {line + ":" + strings.Repeat("0", 63) + "1", "line " + line + " has not the hash", exitDifferences},
		"OtherLine":    {"1:" + hash, "line 1 has not the hash", exitDifferences},
		"LinesRemoved": {"4711:" + hash, "line 4711, whose hash", exitDifferences},
		"NoHead":       {filepath.Join(dir, "none"), "read a kept head", exitData},
		"FileWithout":  {s.config, "has 0 heads", exitData},
		"WithArchive":  {"1:" + hash + " --archive=1", "", exitUsage},
	} {
		args := append([]string{"verify", "--head"}, strings.Fields(row.head)...)
		out, errs, code := s.say(args...)
		kit.Check(t, code == row.code && strings.Contains(out+errs, row.says),
			"%s: exit %d, %s%s, want exit %d and %q", name, code, out, errs, row.code, row.says)
	}
}

// A running vaultd compares heads too, and reads no file for others.
func TestVerify_I14_KeptHeadThroughTheDaemon(t *testing.T) {
	cfg, path, _ := startDaemon(t)
	var status struct{ Head string }
	out, _, _ := runHere("--config", path, "status", "--json")
	kit.Must(t, json.Unmarshal([]byte(out), &status))
	file := filepath.Join(t.TempDir(), "head")
	kit.Must(t, os.WriteFile(file, []byte(status.Head), 0o600))
	if out, errs, code := runHere("--config", path, "verify", "--head", file); code != exitDone || !strings.Contains(out, "KEPT HEAD") {
		t.Errorf("exit %d, %s%s, want 0 and the kept head", code, out, errs)
	}
	if _, errs, code := frames(t, cfg.StateDir, `{"args":["verify","--head=/etc/passwd"]}`+"\n"); code != exitUsage || !strings.Contains(errs, "reads no files for others") {
		t.Errorf("exit %d, %s, want %d", code, errs, exitUsage)
	}
}
