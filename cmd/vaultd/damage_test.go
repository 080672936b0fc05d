package main_test

import (
	"vaultd/internal/test/kit"

	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// I15: damage that a command meets inside the daemon stops it at once, not at the next daily check; and status says so instead
// of failing. Each command reads another part: status reads the entries that it names, and no archived one.
func TestVerify_I15_DamageStopsTheDaemonAtOnce(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"verify", "list", "status"} {
		t.Run(command, func(t *testing.T) {
			emu, url := serveEmulator(t, emulator.Config{})
			s := newSite(t, url, fast)
			s.dropped("acme", "Otto", 3)
			s.drop("acme", "Zu 7", map[string][]byte{"a.pdf": []byte("%PDF")}, map[string]any{"documentDate": "never"}) // rejected
			s.start("run")
			waitFor(t, "all to be archived", func() bool { return len(archivedAt(emu)) == 3 })
			waitFor(t, "their folders to be kept", func() bool { // what is still to be moved meets the damage by itself
				text, _ := s.vaultd("list", "--json")
				return strings.Count(strings.ReplaceAll(text, " ", ""), `"source":"kept"`) == 3
			})
			waitFor(t, "what is wrong to be given back", func() bool {
				_, err := os.Stat(filepath.Join(s.dir, "acme", "_rejected", "Zu 7", "_REASON.txt"))
				return err == nil
			})
			word := map[string]string{"verify": "Otto 01", "list": "Otto 01", "status": "Zu 7"}[command]
			spoil(t, filepath.Join(s.dir, "state", "ledger.db"), word)
			out, code := s.vaultd(command)
			if want := map[string]int{"verify": exitDifferences, "list": exitIO, "status": exitPerson}[command]; code != want {
				t.Errorf("exit %d, want %d:\n%s", code, want, out)
			}
			waitFor(t, "safe mode", func() bool {
				var got present.StatusSummary
				out, code = s.vaultd("status", "--json")
				return code == exitPerson && json.Unmarshal([]byte(out), &got) == nil && got.Safe != nil && got.Safe.Word == ledger.MarkDamaged
			})
		})
	}
}

func spoil(t *testing.T, name, word string) {
	t.Helper()
	text, err := os.ReadFile(name)
	kit.Must(t, err)
	f, err := os.OpenFile(name, os.O_WRONLY, 0)
	kit.Must(t, err)
	defer f.Close()
	for at := 0; ; at++ {
		i := bytes.Index(text[at:], []byte(word))
		if i < 0 {
			return
		}
		at += i
		if _, err := f.WriteAt([]byte("X"), int64(at)); err != nil {
			t.Fatal(err)
		}
	}
}
