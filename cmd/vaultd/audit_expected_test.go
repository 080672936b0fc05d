package main_test

import (
	"vaultd/internal/test/kit"

	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A list that is no regular file is refused at once: nobody may ever write to a pipe that has a name.
func TestAudit_I23_AListThatIsNoFile(t *testing.T) {
	s := newShelf(t)
	dir := t.TempDir()
	fifo := filepath.Join(dir, "list.csv")
	kit.Must(t, unix.Mkfifo(fifo, 0o600))
	link := filepath.Join(dir, "link.csv")
	kit.Must(t, os.Symlink(fifo, link))
	for path, want := range map[string]string{fifo: "is a pipe", link: "is a pipe", dir: "is a folder", "/dev/zero": "is a device"} {
		if _, errs, code := s.audit("--expected", path); code != exitData || !strings.Contains(errs, want) || !strings.Contains(errs, "--expected -") {
			t.Errorf("%s: exit %d, %s", path, code, errs)
		}
	}
}

// What another program writes comes by standard input, and is the same list.
func TestAudit_AListFromStandardInput(t *testing.T) {
	const text = "Belegnummer;Betrag\nRE 1;1,00\n"
	s := filled(t)
	file := filepath.Join(t.TempDir(), "standard input")
	kit.Must(t, os.WriteFile(file, []byte(text), 0o600))
	want, errs, code := s.audit("--json", "--whole", "--expected", file)
	if code != exitDifferences || !strings.Contains(errs, "1 listed document is not archived") {
		t.Fatalf("exit %d: %s", code, errs)
	}
	s.stdin = text
	if got, errs, code := s.audit("--json", "--whole", "--expected", "-"); code != exitDifferences || got != want {
		t.Errorf("exit %d: %s\n%s\n%s", code, errs, got, want)
	}
}
