package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A list that is no regular file is refused at once: nobody may ever write to a pipe that has a name.
func TestAudit_I23_AListThatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "list.csv")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link.csv")
	if err := os.Symlink(fifo, link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{fifo: "is a pipe", link: "is a pipe", dir: "is a folder", "/dev/zero": "is a device"} {
		_, err := (&app{}).readExpected(auditFlags{expected: path})
		code, hint := exitCodeOf(err)
		if code != exitData || !strings.Contains(err.Error(), want) || !strings.Contains(hint, "--expected -") {
			t.Errorf("%s: exit %d, %v, %q", path, code, err, hint)
		}
	}
}

// What another program writes comes by standard input, and is the same list.
func TestAudit_AListFromStandardInput(t *testing.T) {
	const text = "Belegnummer;Betrag\nRE 1;1,00\n"
	file := filepath.Join(t.TempDir(), "standard input")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	want, err := (&app{}).readExpected(auditFlags{expected: file})
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	go func() { defer w.Close(); _, _ = w.WriteString(text) }()
	got, err := (&app{stdin: r}).readExpected(auditFlags{expected: "-"})
	if err != nil || string(got) != string(want) {
		t.Errorf("%s, %v", got, err)
	}
}
