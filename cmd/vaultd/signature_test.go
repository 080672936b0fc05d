package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

// forge writes a folder that looks archived, with the receipt of another one in
// which the given texts are replaced and which has lost its signature.
func (s *site) forge(from, to string, texts ...string) {
	s.t.Helper()
	kit.Must(s.t, os.MkdirAll(filepath.Join(s.dir, to), 0o770))
	for _, name := range []string{"scan.bin", "metadata.json", "_RECEIPT.json"} {
		text := kit.Value(os.ReadFile(filepath.Join(s.dir, from, name)))(s.t)
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
	kit.Await(s.t, "the folders to be kept", func() bool {
		all, _ := filepath.Glob(filepath.Join(s.dir, "acme", "_archived", "*", "*"))
		return len(all) == n
	})
}

// I12, I3: the ledger is lost, and a clerk has put a folder with a receipt of
// their own among the archived ones. The receipts that vaultd signed count. The
// other one stays unconfirmed in rebuild, status and the audit.
func TestRebuild_I12_AForgedReceiptCallsNothingArchived(t *testing.T) {
	emu, s := served(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond}, fast)
	s.dropped("acme", "kept", 2)
	p := s.start("run")
	s.kept(2)
	p.stop(t)
	kept := "acme/_archived/" + month(t, s, "acme") + "/kept 00"
	text := kit.Value(os.ReadFile(filepath.Join(s.dir, kept, "_RECEIPT.json")))(t)
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
		kit.Check(t, code == row.code && strings.Contains(out+errs, row.says),
			"%s: exit %d, %s%s, want exit %d and %q", name, code, out, errs, row.code, row.says)
	}

	cfg, path, _ := startDaemon(t)
	_, errs, code := runHere("--config", path, "verify", "--receipt", receipt)
	kit.Check(t, code == exitDifferences && strings.Contains(errs, "a key that is not one of this ledger"),
		"exit %d, %s, want %d: another ledger's receipt", code, errs, exitDifferences)
	if _, errs, code := frames(t, cfg.StateDir, `{"args":["verify","--receipt=/etc/passwd"]}`+"\n"); code != exitUsage || !strings.Contains(errs, "reads no files for others") {
		t.Errorf("exit %d, %s, want %d", code, errs, exitUsage)
	}
}

// onABadDisk is a ledger of which one record was changed on the disk, with the configuration that leads to it.
func onABadDisk(t *testing.T) (s *shelf, config string) {
	t.Helper()
	s = filled(t)
	kit.Must(t, s.ledger.Close())
	changeFile(t, filepath.Join(s.cfg.StateDir, "ledger.db"), "_rejected/Huber 88")
	config = filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(config, []byte(smallConfig+"state_dir: "+s.cfg.StateDir+"\n"), 0o600))
	return s, config
}

// A copy of a damaged ledger is damaged: backup says so, names what is wrong, and keeps it, for there may be no better one.
func TestBackup_I15_OfADamagedLedgerIsNotCalledWhole(t *testing.T) {
	_, config := onABadDisk(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	out, errs, code := runHere("--config", config, "backup", copied)
	if code != exitDifferences || strings.Contains(out, "is whole") || !strings.Contains(out, "DIFFERS  open: ") || !strings.Contains(errs, "is damaged") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	kit.Want(t, "the error of Stat", kit.Err(os.Stat(copied+".damaged")), nil)
	kit.Fails(t, "the copy under the name of a good one", kit.Err(os.Lstat(copied)), os.ErrNotExist)
	out, _, code = runHere("--config", config, "backup", copied+"2", "--json")
	var b struct {
		Whole    bool
		Problems []string
	}
	err := json.Unmarshal([]byte(out), &b)
	kit.Check(t, err == nil && code == exitDifferences && !b.Whole && len(b.Problems) != 0, "exit %d %v %+v", code, err, b)
}

// I15, I26: the running daemon has a copy checked before it sends the first byte.
// The file of a damaged copy is named for that, "-" says it by its exit code, and
// the daemon continues.
func TestBackup_I15_OfADamagedLedgerThroughTheDaemon(t *testing.T) {
	s := newShelf(t)
	s.forDaemon()
	s.edit("drops:", "spool: {min_free: 1MB}\ndrops:")
	s.tell("Huber 88", noon, nil, ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}})
	s.tell("Huber 88", noon, nil, ledger.PlaceIntended{Dest: "_rejected/Huber 88"}, ledger.Placed{})
	s.damage("_rejected/Huber 88")
	s.daemon()
	copied := filepath.Join(t.TempDir(), "copy.db")
	code, out, errs := s.ask(t, "backup", copied)
	ended(out+errs, code)(t, "backup", exitDifferences, "BACKUP   "+copied+".damaged, ", "DIFFERS  open: ", "the ledger is damaged: ", "so is this copy of it", "do not restore this copy")
	kit.Fails(t, "the copy under the name of a good one", kit.Err(os.Lstat(copied)), os.ErrNotExist)
	code, out, errs = s.ask(t, "backup", "-")
	kit.Check(t, code == exitDifferences && len(out) > 4096 && strings.Contains(errs, "the ledger is damaged"), "backup -: exit %d, %d bytes: %s", code, len(out), errs)
	code, out, errs = s.ask(t, "status")
	ended(out+errs, code)(t, "status", exitPerson, "SAFE MODE")
}

// What is wrong with a backup is not said of the ledger, and the advice is not to restore a backup.
func TestRestore_I15_TheBackupIsDamaged(t *testing.T) {
	s, config := onABadDisk(t)
	copied := filepath.Join(t.TempDir(), "copy.db")
	runHere("--config", config, "backup", copied)
	garbage := filepath.Join(t.TempDir(), "garbage.db")
	kit.Must(t, os.WriteFile(garbage, []byte(strings.Repeat("no ledger ", 5000)), 0o600))
	before := kit.Value(os.ReadFile(filepath.Join(s.cfg.StateDir, "ledger.db")))(t)
	for _, file := range []string{copied + ".damaged", garbage} {
		out, errs, code := runHere("--config", config, "restore", file)
		if code != exitIO || !strings.Contains(errs, "the backup "+file+" is damaged: ") || !strings.Contains(errs, "; nothing was changed\n") ||
			!strings.Contains(errs, "use an older backup; without any, vaultd rebuild") || strings.Contains(errs, "ledger is damaged") {
			t.Errorf("exit %d\n%s%s", code, out, errs)
		}
	}
	after, err := os.ReadFile(filepath.Join(s.cfg.StateDir, "ledger.db"))
	kit.Check(t, err == nil && string(after) == string(before), "it was changed %v", err)
}

// A ledger that does not know everything is not called sound without saying so.
func TestVerify_I15_SaysSafeModeAndWhatIsInDoubt(t *testing.T) {
	s := filled(t)
	s.tell("Otto 19", noon, nil, ledger.ReconcileRequired{})
	kit.Must(t, s.ledger.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkRestored, At: noon}, nil))
	out, _, code := s.say("verify", "--whole")
	for _, want := range []string{
		"SAFE MODE the ledger was put back from a backup; what was done after 2026-11-20 14:32:00 CET is not known\n",
		"  1 is in doubt: what happened to it since the ledger was put back is not known\n    " + s.keys["Otto 19"].String(),
		"it does not know everything",
	} {
		kit.Check(t, code == 0 && strings.Contains(out, want), "exit %d, no %q in\n%s", code, want, out)
	}
	page, errs, code := s.audit("--format=html")
	if !strings.Contains(page, "SAFE MODE: the ledger was put back from a backup; what was done after 2026-11-20 14:32:00 CET is not known") || !strings.HasPrefix(errs, "TEST, NO EVIDENCE\nSAFE MODE") {
		t.Errorf("exit %d %s", code, errs)
	}
	kit.Must(t, s.ledger.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkReconciled, At: noon}, nil))
	out, _, _ = s.say("verify", "--whole")
	if strings.Contains(out, "SAFE MODE") || !strings.Contains(out, "the ledger was put back") || !strings.Contains(out, "RESULT    nothing differs\n") {
		t.Errorf("out = %v, want out without \"SAFE MODE\", out with \"the ledger was put back\", out with \"RESULT nothing differs\\n\"", out)
	}
}

// What could not be checked is not said to agree.
func TestVerify_I14_DamageKeepsThePromisesFromBeingChecked(t *testing.T) {
	s := filled(t)
	s.damage("_rejected/Huber 88")
	out, _, code := s.say("verify", "--whole")
	if code != exitDifferences || !strings.Contains(out, "PROMISES  could not be checked\n") || strings.Contains(out, "0 entries") || strings.Contains(out, "nothing differs") {
		t.Errorf("exit %d\n%s", code, out)
	}
}

func TestList_NamesThatAreLongOrEndInABlank(t *testing.T) {
	for name, want := range map[string]string{
		"Wagner 5":               "Wagner 5",
		"Wagner 5 ":              `"Wagner 5 "`,
		" Wagner 5":              `" Wagner 5"`,
		strings.Repeat("ä", 40):  strings.Repeat("ä", 40),
		strings.Repeat("ä", 255): strings.Repeat("ä", 39) + "…",
	} {
		kit.Want(t, fmt.Sprintf("%q", name), present.FolderCell(name), want)
	}
	s := newShelf(t)
	long := strings.Repeat("lang ", 40) + " "
	s.tell(long, noon, nil)
	if out, _, _ := s.say("list"); strings.Contains(out, strings.Repeat("lang ", 9)) {
		t.Errorf("out = %v, want out without %q", out, strings.Repeat("lang ", 9))
	}
	out, _, _ := s.say("list", "--json")
	kit.Check(t, strings.Contains(out, `"`+long+`"`), "out = %v, want out with %q", out, `"`+long+`"`)
}

// I17, I26: status names a kept folder that differs from what was archived
// until an operator closes it, and a receipt that is made again says it, before
// and after that. An unchanged folder next to it is left out.
func TestStatus_I17_I26_AKeptFolderThatDiffers(t *testing.T) {
	const what = `the folder changed after it was packed, and the archive has what was packed: "rechnung.pdf" has another content;`
	s := newShelf(t)
	for folder, remote := range map[string]string{"Otto 19": "bum-1", "Kern 6": "bum-2"} {
		s.send(folder, noon.Add(-5*time.Hour), archive.RemoteID(remote))
		s.says(folder, noon.Add(-4*time.Hour), archive.RemoteID(remote), archive.Successful)
	}
	s.tell("Kern 6", noon.Add(-4*time.Hour), nil, ledger.PlaceIntended{Dest: "_archived/2026-11/Kern 6"}, ledger.Placed{})
	s.tell("Otto 19", noon.Add(-4*time.Hour), nil, ledger.PlaceIntended{Dest: "_archived/2026-11/Otto 19"}, ledger.Placed{},
		ledger.DisposalStopped{Cause: ledger.Cause{Code: ledger.CauseSourceChanged, Text: what}})
	named := func() (present.Need, bool) {
		st := s.summary()
		i := slices.IndexFunc(st.Needs, func(n present.Need) bool { return n.What == "kept-differs" })
		if i < 0 {
			return present.Need{}, false
		}
		return st.Needs[i], true
	}
	if n, is := named(); !is || n.Count != 1 || len(n.Names) != 1 || !strings.Contains(n.Names[0], "Otto 19") || n.When != "soon" || !strings.Contains(n.Do, "vaultd close") {
		t.Errorf("status: %+v", n)
	}
	answered(s.say("status"))(t, "status", exitPerson, "1 kept folder is not what was archived")
	receipt := func(folder string) (rc proof.Receipt, page string) {
		out, errs, code := s.say("receipt", "--json", s.keys[folder].String())
		err := json.Unmarshal([]byte(out), &rc)
		kit.Need(t, err == nil && code == 0, "err = %v, code = %v, errs = %v, want no error, code = 0", err, code, errs)
		page, _, _ = s.say("receipt", s.keys[folder].String())
		return rc, page
	}
	says := func() {
		t.Helper()
		if rc, page := receipt("Otto 19"); len(rc.Differs) != 1 || rc.Differs[0].What != what || !strings.Contains(page, "KEPT FOLDER") || !strings.Contains(page, `"rechnung.pdf" has another content`) {
			t.Errorf("receipt: %+v\n%s", rc.Differs, page)
		}
	}
	says()
	if rc, page := receipt("Kern 6"); len(rc.Differs) != 0 || strings.Contains(page, "KEPT FOLDER") {
		t.Errorf("receipt of the unchanged one: %+v\n%s", rc.Differs, page)
	}
	s.tell("Otto 19", noon.Add(-time.Hour), nil, ledger.Closed{By: ledger.Operator{UID: 7}})
	if n, is := named(); is {
		t.Errorf("closed: %+v", n)
	}
	says()
}

// I15: damage that a command meets inside the daemon stops it at once, before
// the next daily check; and status says so instead of failing. Each command
// reads another part: status reads the entries that it names, and these are
// open.
func TestVerify_I15_DamageStopsTheDaemonAtOnce(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"verify", "list", "status"} {
		t.Run(command, func(t *testing.T) {
			emu, s := served(t, emulator.Config{}, fast)
			s.dropped("acme", "Otto", 3)
			s.drop("acme", "Zu 7", map[string][]byte{"a.pdf": []byte("%PDF")}, map[string]any{"documentDate": "never"}) // rejected
			s.start("run")
			kit.Await(t, "all to be archived", func() bool { return len(archivedAt(emu)) == 3 })
			kit.Await(t, "their folders to be kept", func() bool { // the next move meets the damage
				text, _ := s.vaultd("list", "--json")
				return strings.Count(strings.ReplaceAll(text, " ", ""), `"source":"kept"`) == 3
			})
			kit.Await(t, "what is wrong to be given back", func() bool {
				_, err := os.Stat(filepath.Join(s.dir, "acme", "_rejected", "Zu 7", "_REASON.txt"))
				return err == nil
			})
			word := map[string]string{"verify": "Otto 01", "list": "Otto 01", "status": "Zu 7"}[command]
			spoil(t, filepath.Join(s.dir, "state", "ledger.db"), word)
			out, code := s.vaultd(command)
			want := map[string]int{"verify": exitDifferences, "list": exitIO, "status": exitPerson}[command]
			kit.Check(t, code == want, "exit %d, want %d:\n%s", code, want, out)
			kit.Await(t, "safe mode", func() bool {
				var got present.StatusSummary
				out, code = s.vaultd("status", "--json")
				return code == exitPerson && json.Unmarshal([]byte(out), &got) == nil && got.Safe != nil && got.Safe.Word == ledger.MarkDamaged
			})
		})
	}
}

func spoil(t *testing.T, name, word string) {
	t.Helper()
	text := kit.Value(os.ReadFile(name))(t)
	f := kit.Value(os.OpenFile(name, os.O_WRONLY, 0))(t)
	defer f.Close()
	for at := 0; ; at++ {
		i := bytes.Index(text[at:], []byte(word))
		if i < 0 {
			return
		}
		at += i
		kit.Value(f.WriteAt([]byte("X"), int64(at)))(t)
	}
}
