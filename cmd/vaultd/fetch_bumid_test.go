package main_test

import (
	"vaultd/internal/test/kit"

	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// journal returns the lines of the ledger's journal, while no daemon runs.
func (s *site) journal() string {
	s.t.Helper()
	l, err := boltledger.Open(boltledger.Config{Dir: filepath.Join(s.dir, "state"), Location: time.UTC})
	kit.Must(s.t, err)
	var lines strings.Builder
	err = l.Lines(1, func(_ uint64, line []byte) error {
		lines.Write(append(line, '\n'))
		return nil
	})
	kit.Must(s.t, errors.Join(err, l.Close()))
	return lines.String()
}

// What this ledger does not know is downloaded by its number, paid from the same budget and journaled like any other; a known
// one says what it is compared with, and no file is ever written over.
func TestFetch_ByNumber(t *testing.T) {
	t.Parallel()
	theirs, emu, url := archivedSite(t, 2, "billing: {downloads_per_month: 3}")
	var bumIDs []string
	for _, seen := range emu.Registrations() {
		bumIDs = append(bumIDs, seen.BumID)
	}
	emu.GrantDownloads(2)
	ours := newSite(t, url, fast+"\nbilling: {downloads_per_month: 1}")
	file := filepath.Join(ours.dir, "found.zip")
	args := []string{"fetch", "--vault", "ACME", "--bumid", strings.ToUpper(bumIDs[0]), "-o", file}
	out := ours.must(0, args...)
	kit.Holds(t, "out", out,
		"this ledger does not know bumId "+bumIDs[0]+": there is nothing to compare it with", "the provider may charge", "not compared, for the ledger does not know what was sent: ", "1 download this month",
	)
	if b, err := os.ReadFile(file); err != nil || !bytes.HasPrefix(b, []byte("PK")) {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	lines := ours.journal()
	kit.Holds(t, "the journal", lines, `"event":"fetch-intended","rev":1,"vault":"ACME","bumId":"`+bumIDs[0]+`"`, `"cause":"not-compared"`)
	ours.must(exitCreate, args...)
	ours.must(exitUsage, append(args, "--force")...)
	ours.must(exitPerson, "fetch", "--vault", "ACME", "--bumid", bumIDs[1], "-o", filepath.Join(ours.dir, "spent.zip"))
	for _, wrong := range [][]string{{"fetch", "--bumid", bumIDs[0]}, {"fetch", "--vault", "ACME"}, {"fetch", "x", "--vault", "ACME", "--bumid", bumIDs[0]}, {"fetch", "--vault", "A/B", "--bumid", bumIDs[0]}, {"fetch", "--vault", "ACME", "--bumid", "a/b"}} {
		ours.must(exitUsage, wrong...)
	}
	out = theirs.must(0, "fetch", "--vault", "ACME", "--bumid", bumIDs[1], "-o", filepath.Join(theirs.dir, "known.zip"))
	kit.Holds(t, "a known one", out, `(acme), archived; it is compared with what was sent`, "identical with what was sent")
	if out := theirs.must(exitFailed, "fetch", "--vault", "BETA", "--bumid", bumIDs[1], "-o", filepath.Join(theirs.dir, "other.zip")); !strings.Contains(out, "which goes to vault ACME, not BETA") {
		t.Errorf("another vault:\n%s", out)
	}
	for _, v := range emu.Violations() {
		t.Errorf("the service saw: %s", v)
	}
}

// What is quarantined or contradicted is compared with the ZIP of its folder, and why and fetch tell how to get it.
func TestFetch_ByNumber_QuarantinedAndContradicted(t *testing.T) {
	for name, row := range map[string]struct {
		live func(s *shelf)
		says string
	}{
		"Quarantined": {func(s *shelf) {
			s.tell("Otto 19", noon, nil, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "cross-wired", Text: "x"}})
		}, `a registration of "Otto 19" (acme-in), which is quarantined here and not archived under this number; it is compared with the ZIP of that folder`},
		"Contradicted": {func(s *shelf) {
			s.says("Otto 19", noon, "bum-1", archive.Successful)
			s.says("Otto 19", noon, "bum-1", archive.Failed)
		}, `is "Otto 19" (acme-in), archived`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			s.send("Otto 19", noon, "bum-1")
			row.live(s)
			out, _, _ := s.say("why", "Otto 19")
			if want := "vaultd fetch --vault V-1 --bumid bum-1"; !strings.Contains(out, want) {
				t.Errorf("why does not offer %q:\n%s", want, out)
			}
			from := &store{t: t, zip: zipOf(t, 0, "rechnung.pdf", pdfOf("Otto 19"))}
			s.archiveIs(from.ServeHTTP)
			got, errs, code := s.reach("fetch", "--vault=V-1", "--bumid=bum-1", "-o", "-")
			if code != exitDone || !strings.Contains(errs, row.says) || !strings.Contains(errs, "the container differs, it was packed anew") || got != string(from.zip) {
				t.Errorf("exit %d, %d bytes:\n%s", code, len(got), errs)
			}
		})
	}
}
