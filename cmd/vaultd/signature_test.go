package main_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/emulator"
	"vaultd/internal/test/kit"
)

// forge writes a folder that looks archived, with the receipt of another one in
// which the given texts are replaced and which has lost its signature.
func (s *site) forge(from, to string, texts ...string) {
	s.t.Helper()
	kit.Must(s.t, os.MkdirAll(filepath.Join(s.dir, to), 0o770))
	for _, name := range []string{"scan.bin", "metadata.json", "_RECEIPT.json"} {
		text, err := os.ReadFile(filepath.Join(s.dir, from, name))
		kit.Must(s.t, err)
		if name == "_RECEIPT.json" {
			text, _, _ = bytes.Cut(text, []byte(",\n  \"publicKey\""))
			text = append(text, "\n}\n"...)
		}
		kit.Must(s.t, os.WriteFile(filepath.Join(s.dir, to, name), []byte(strings.NewReplacer(texts...).Replace(string(text))), 0o660))
	}
}

// kept waits until n folders of the first drop are archived and kept.
func (s *site) kept(n int) {
	s.t.Helper()
	waitFor(s.t, "the folders to be kept", func() bool {
		all, _ := filepath.Glob(filepath.Join(s.dir, "acme", "_archived", "*", "*"))
		return len(all) == n
	})
}

// I12, I3: the ledger is lost, and a clerk has put a folder with a receipt of
// their own among the archived ones. The receipts that vaultd signed count. The
// other one stays unconfirmed in rebuild, status and the audit.
func TestRebuild_I12_AForgedReceiptCallsNothingArchived(t *testing.T) {
	t.Parallel()
	emu, s := served(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond}, fast)
	s.dropped("acme", "kept", 2)
	p := s.start("run")
	s.kept(2)
	p.stop(t)
	kept := "acme/_archived/" + month(t, s, "acme") + "/kept 00"
	text, err := os.ReadFile(filepath.Join(s.dir, kept, "_RECEIPT.json"))
	kit.Must(t, err)
	var r struct{ Key, BumID, ClientUUID, DocumentID string }
	kit.Must(t, json.Unmarshal(text, &r))
	s.forge(kept, "acme/_archived/2014-03/forged", r.Key, "0c000000000000000000000000", r.BumID, "46aa4caf-0000-11ed-bbfc-cfd535abf178",
		r.ClientUUID, "46aa4caf-b373-51ed-bbfc-cfd535abf178", `"documentId": "kept 00"`, `"documentId": "FORGED-1"`, `\"kept 00\"`, `\"FORGED-1\"`)
	s.move("state", "lost")

	out := s.must(0, "rebuild", "--reason", "disk failed, no backup")
	kit.Holds(t, "rebuild", out, "ARCHIVED   2 by their receipts", "BY RECEIPT ALONE 1", "2014-03/forged")
	s.start("run")
	s.listens()
	out = s.must(0, "reconcile")
	kit.Holds(t, "reconcile", out, "safe mode is over")
	out, code := s.vaultd("show", "0c000000000000000000000000")
	kit.Want(t, "exit of show", code, 0)
	kit.Holds(t, "show", out, "by-receipt-alone", "BY RECEIPT ALONE")
	kit.Lacks(t, "show", out, "The archive itself said")
	out, code = s.vaultd("status")
	kit.Want(t, "exit of status", code, exitPerson)
	kit.Holds(t, "status", out, "receipt alone")
	out, code = s.vaultd("audit")
	kit.Holds(t, "audit", out, "NOT COMPLETE", "receipt alone")
	kit.Want(t, "exit of audit", code, exitDifferences)
	s.must(0, "verify")
	onceEach(t, emu, 2)
}

// I12: the keys of a lost ledger come from the drop folders. A mark that others
// could write is ignored for receipts.
func TestRebuild_I12_KeysThatOthersCouldWriteCountForNothing(t *testing.T) {
	t.Parallel()
	_, s := served(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond}, fast)
	s.dropped("acme", "kept", 2)
	p := s.start("run")
	s.kept(2)
	p.stop(t)
	s.move("state", "lost")
	for _, name := range []string{"acme", "beta"} { // one mark that only vaultd could write would be enough
		kit.Must(t, os.Chmod(filepath.Join(s.dir, name, ".vaultd/drop.json"), 0o666))
	}
	out := s.must(0, "rebuild", "--reason", "disk failed, no backup")
	kit.Holds(t, "rebuild", out, "ARCHIVED   0 by their receipts", "BY RECEIPT ALONE 2", "KEYS       drop acme: .vaultd/drop.json was written by user")
	s.start("run")
	s.listens()
	kit.Holds(t, "reconcile", s.must(0, "reconcile"), "safe mode is over")
	s.calm(2) // the archive's own answers
	out, code := s.vaultd("audit")
	kit.Want(t, "exit of audit", code, 0)
	kit.Holds(t, "audit", out, "COMPLETE AS DROPPED", "2 are archived")
	s.must(0, "verify")
}

// I12: the signature of a receipt is checked with the ledger, with a report and
// with the mark of a drop folder, also through the daemon, which leaves reading
// the files to the command.
func TestVerify_I12_SignatureOfAReceipt(t *testing.T) {
	s := filled(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		kit.Must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
		return filepath.Join(dir, name)
	}
	text, _, _ := s.say("receipt", "Müller 4711", "--json")
	receipt := write("receipt.json", text)
	page, _, _ := s.say("audit")
	object, _, _ := s.say("audit", "--json")
	key := s.ledger.Info().ReceiptKeys[0]
	for name, row := range map[string]struct {
		args string
		says string
		code int
	}{
		"OfThisLedger":   {receipt, "of this ledger", exitDone},
		"WithAReport":    {receipt + " --key " + write("report.html", page), "SIGNATURE holds", exitDone},
		"WithItsJSON":    {receipt + " --key " + write("report.json", object), "SIGNATURE holds", exitDone},
		"WithAMark":      {receipt + " --key " + write("drop.json", `{"ledger":"L","receiptKeys":["`+key+`"]}`), "SIGNATURE holds", exitDone},
		"WithTheKey":     {receipt + " --key " + key, "SIGNATURE holds", exitDone},
		"WithAnotherKey": {receipt + " --key MCowBQYDK2VwAyEA" + strings.Repeat("A", 43) + "=", "another key", exitDifferences},
		"WithNoKey":      {receipt + " --key " + s.config, "has no key of receipts", exitData},
		"Changed":        {write("changed.json", strings.Replace(text, "4711", "4712", 1)), "was changed after it was signed", exitDifferences},
		"Unsigned":       {write("unsigned.json", text[:strings.Index(text, ",\n  \"publicKey\"")]+"\n}\n"), "has no signature", exitDifferences},
		"NoFile":         {filepath.Join(dir, "none"), "read ", exitData},
		"WithAHead":      {receipt + " --head 1:" + strings.Repeat("0", 64), "", exitUsage},
		"KeyAlone":       {"--key " + key, "", exitUsage},
	} {
		args := append([]string{"verify", "--receipt"}, strings.Fields(row.args)...)
		if name == "KeyAlone" {
			args = append([]string{"verify"}, strings.Fields(row.args)...)
		}
		out, errs, code := s.say(args...)
		if code != row.code || !strings.Contains(out+errs, row.says) {
			t.Errorf("%s: exit %d, %s%s, want exit %d and %q", name, code, out, errs, row.code, row.says)
		}
	}

	cfg, path, _ := startDaemon(t)
	_, errs, code := runHere("--config", path, "verify", "--receipt", receipt)
	if code != exitDifferences || !strings.Contains(errs, "a key that is not one of this ledger") {
		t.Errorf("exit %d, %s, want %d: another ledger's receipt", code, errs, exitDifferences)
	}
	if _, errs, code := frames(t, cfg.StateDir, `{"args":["verify","--receipt=/etc/passwd"]}`+"\n"); code != exitUsage || !strings.Contains(errs, "reads no files for others") {
		t.Errorf("exit %d, %s, want %d", code, errs, exitUsage)
	}
}
