package boltledger

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/test/kit"
)

func page(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("../../../docs/ledger.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// The worked example of the page is worked here.
func TestDocs_ChainExample(t *testing.T) {
	text := page(t)
	var h ledger.Head
	lines := regexp.MustCompile(`(?m)^    line \d+ +(.*)$`).FindAllStringSubmatch(text, -1)
	hashes := regexp.MustCompile(`(?m)^    h\d+ +(.*)$`).FindAllStringSubmatch(text, -1)
	if len(lines) != 2 || len(hashes) != 3 || hashes[0][1] != h.Hash.String() {
		t.Fatalf("%d lines, %d hashes", len(lines), len(hashes))
	}
	if first := string(ledger.FirstLine(info.ID, info.Environment, began).Encode()); lines[0][1] != first {
		t.Errorf("a first line is %s", first)
	}
	for i, line := range lines {
		if h = h.Next([]byte(line[1])); hashes[i+1][1] != h.Hash.String() {
			t.Errorf("h%d is %s", i+1, h.Hash)
		}
		if l, err := ledger.ParseLine([]byte(line[1])); err != nil || string(l.Encode()) != line[1] {
			t.Errorf("line %d is not one of ours: %v", i+1, err)
		}
	}
}

// The table of the page has the fields of a line, all of them and in their order.
func TestDocs_FieldsOfALine(t *testing.T) {
	var want []string
	for i := range reflect.TypeFor[ledger.Line]().NumField() {
		tag, _, _ := strings.Cut(reflect.TypeFor[ledger.Line]().Field(i).Tag.Get("json"), ",")
		want = append(want, tag)
	}
	_, table, _ := strings.Cut(page(t), "| field | meaning |")
	table, _, _ = strings.Cut(table, "\n\n")
	var got []string
	for _, m := range regexp.MustCompile("(?m)^\\| `(\\w+)` ").FindAllStringSubmatch(table, -1) {
		got = append(got, m[1])
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("described are\n%q, written are\n%q", got, want)
	}
	for _, b := range buckets {
		if !strings.Contains(page(t), fmt.Sprintf("| `%s` |", b)) {
			t.Errorf("bucket %s is not described", b)
		}
	}
	for _, s := range ledger.States() {
		if !strings.Contains(table, s.String()) {
			t.Errorf("state %s is not described", s)
		}
	}
	for s := ledger.Claimed; s <= ledger.Gone; s++ {
		if !strings.Contains(table, s.String()) {
			t.Errorf("source %s is not described", s)
		}
	}
}

func TestDocs_EventsOfALine(t *testing.T) {
	text := page(t)
	for _, ev := range proposals() {
		if !strings.Contains(text, "`"+ev.JournalName()+"`") {
			t.Errorf("event %s is not described", ev.JournalName())
		}
	}
	for _, ev := range []arrival.Event{arrival.Listed{}, arrival.FilesListed{}, arrival.DownloadIntended{}, arrival.FileHeld{}, arrival.Postponed{}, arrival.HeldWhole{},
		arrival.Adopted{}, arrival.HandedOn{}, arrival.AcknowledgeIntended{}, arrival.AcknowledgementTaken{}, arrival.LeftOut{}, arrival.Doubted{}, arrival.ListedAgain{}, arrival.Allowed{}, arrival.Abandoned{}} {
		if !strings.Contains(text, "`"+ev.JournalName()+"`") {
			t.Errorf("event %s is not described", ev.JournalName())
		}
	}
	for _, s := range arrival.States() {
		if !strings.Contains(text, s.String()) {
			t.Errorf("state %s is not described", s)
		}
	}
}

// The page's own program reads a ledger, and notices a changed one.
func TestDocs_I14_ProgramReadsALedger(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		kit.Missing(t, "python3, for the program in docs/ledger.md")
	}
	_, program, _ := strings.Cut(page(t), "```python\n")
	program, _, _ = strings.Cut(program, "```")
	dir, _ := filled(t)
	name := filepath.Join(dir, fileName)
	check := func() (string, error) {
		out, err := exec.CommandContext(t.Context(), python, "-c", program, name).CombinedOutput()
		return string(out), err
	}
	l := open(t, Config{Dir: dir})
	want := fmt.Sprintf("%d lines, %s\n", l.Head().N, l.Head().Hash)
	l.Close()
	if out, err := check(); err != nil || !strings.HasSuffix(out, want) || strings.Count(out, "\n") != int(l.Head().N)+1 {
		t.Errorf("%v\n%s\nwant %s", err, out, want)
	}
	deflated := 0
	edit(t, dir, func(tx *bbolt.Tx) error {
		return eachPair(tx, journalBucket, func(k, v []byte) error {
			if v[0] == codecDeflated {
				deflated++
			}
			return nil
		})
	})
	if deflated == 0 {
		t.Fatal("no block is deflated: vacuous")
	}
	edit(t, dir, func(tx *bbolt.Tx) error {
		k, v := tx.Bucket(journalBucket).Cursor().Last()
		return tx.Bucket(journalBucket).Put(bytes.Clone(k), flipped(v))
	})
	if out, err := check(); err == nil || !strings.Contains(out, "damaged record") {
		t.Errorf("a changed line passed: %v\n%.300s", err, out)
	}
	edit(t, dir, func(tx *bbolt.Tx) error {
		k, v := tx.Bucket(journalBucket).Cursor().Last()
		_, b, err := decodeBlock(k, flipped(v)) // back again
		if err != nil {
			return err
		}
		b.lines[0] = []byte(strings.Replace(string(b.lines[0]), `"rev":`, `"rev":1`, 1))
		return tx.Bucket(journalBucket).Put(bytes.Clone(k), blockForm.encodeDeflated(b.room(), &b))
	})
	if out, err := check(); err == nil || !strings.Contains(out, "does not end where the ledger says") {
		t.Errorf("a line that says something else passed: %v\n%.300s", err, out)
	}
}
