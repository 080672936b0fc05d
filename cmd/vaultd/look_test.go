package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/selfcheck"
	"vaultd/internal/test/kit"
)

func changeFile(t *testing.T, path, text string) {
	t.Helper()
	b := kit.Value(os.ReadFile(path))(t)
	n := bytes.Count(b, []byte(text))
	kit.Need(t, n != 0, "%q is not in %s", text, path)
	kit.Must(t, os.WriteFile(path, bytes.ReplaceAll(b, []byte(text), []byte("X"+text[1:])), 0o600))
}

func TestList_TableNewestFirst(t *testing.T) {
	s := filled(t)
	out, _, code := s.say("list")
	want := `FOLDER         STATE        DOCUMENTID      DROP     SINCE  BUMID  REASON
Otto 19        uploaded     NR Otto 19      acme-in  13:33  bum-2
Kern\x1b[2J 6  quarantined                  acme-in  12:32         the answer named\x1b]0;pwned\x07 another
Huber 88       rejected                     acme-in  11:32         amount not understood
Müller 4711    archived     NR Müller 4711  acme-in  10:32  bum-1
`
	kit.Check(t, code == 0 && out == want, "exit %d\n%s", code, out)
}

// Scripts read these keys, in this order, in every object.
func TestList_JSONKeysNeverChange(t *testing.T) {
	s := filled(t)
	out, _, _ := s.say("list", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	kit.Need(t, len(lines) == 4, "%d lines\n%s", len(lines), out)
	want := strings.Split("key, clientUUID, bumId, vault, drop, folder, documentId, state, source, sha256, size, seenAt, registeredAt, uploadedAt, archivedAt, reason, asRead, first, warnings, route, deliveredAt, recipient, means", ", ")
	for _, line := range lines {
		kit.Want(t, "keys", keysOf(t, line), want)
	}
	if !strings.Contains(lines[3], `"archivedAt":"2026-11-20T09:32:00Z","reason":null`) || !strings.Contains(lines[2], `"clientUUID":null,"bumId":null`) {
		t.Errorf("out = %v, want lines[3] with `\"archivedAt\":\"2026-11-20T09:32:00Z\",\"reason\":null`, lines[2] with `\"clientUUID\":null,\"bumId\":null`", out)
	}
}

// keysOf lists the keys of one object in their order.
func keysOf(t *testing.T, object string) (keys []string) {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(object))
	kit.Value(dec.Token())(t)
	for dec.More() {
		k := kit.Value(dec.Token())(t)
		var skip any
		kit.Must(t, dec.Decode(&skip))
		keys = append(keys, k.(string))
	}
	return keys
}

func TestList_Filters(t *testing.T) {
	s := filled(t)
	type row struct {
		args []string
		want []string
		more bool
	}
	kit.Rows(t, map[string]row{
		"OneState":     {args: []string{"--state=rejected"}, want: []string{"Huber 88"}},
		"SeveralAsOne": {args: []string{"--state=Rejected, archived"}, want: []string{"Huber 88", "Müller 4711"}},
		"Open":         {args: []string{"--state=open"}, want: []string{"Otto 19"}},
		"Limit":        {args: []string{"--limit=1"}, want: []string{"Otto 19"}, more: true},
		"LimitOfAll":   {args: []string{"--limit=4"}, want: []string{"Otto 19", "Kern\x1b[2J 6", "Huber 88", "Müller 4711"}},
		"OtherDrop":    {args: []string{"--drop=beta-in"}},
		"OtherVault":   {args: []string{"--vault=V-2"}},
		"LimitCounted": {args: []string{"--state=archived", "--limit=1", "--drop=acme-in", "--vault=V-1"}, want: []string{"Müller 4711"}},
	}, func(t *testing.T, row row) {
		got, more := s.folders(row.args...)
		kit.Check(t, slices.Equal(got, row.want) && more == row.more, "%q, more %v; want %q, %v", got, more, row.want, row.more)
	})
}

func TestShow_TellsEverything(t *testing.T) {
	s := filled(t)
	type row struct {
		x    string
		want []string
	}
	kit.Rows(t, map[string]row{
		"ArchivedByFolder": {"Müller 4711", []string{
			"State         archived\n  The archive itself said", "kept with its receipt: drop acme-in, _archived/2026-11/Müller 4711",
			"Folder of     root (uid 0)", "bumId         bum-1", "archived    2026-11-20 10:32:00 CET", "1000000 bytes (1.0 MB), SHA-256 ",
			"rechnung.pdf  19 bytes, SHA-256 ", `senderName         Müller\u{202e} GmbH`, "amount             119.00 EUR",
			"REGISTRATIONS (1 asked for, 1 answered)\n  bum-1  archived; current; sent 1 time", "HISTORY (9)",
			"status-seen         archived/claimed, bumId bum-1, archive says successful",
		}},
		"RejectedByPlace": {"_rejected/Huber 88", []string{
			"Not archived; certainly nothing of it", "Why           amount-not-understood\n  NOT ARCHIVED. metadata.json, line 9", "\n  Write 1234.56.\n",
			"given back to people: drop acme-in, _rejected/Huber 88",
		}},
		"QuarantinedByKey": {s.keys["Kern\x1b[2J 6"].String(), []string{`Kern\x1b[2J 6` + "\nState         quarantined", "A person must decide"}},
		"OpenByBumID":      {"bum-2", []string{"State         uploaded", "Next          ask the archive"}},
		"AnyCase":          {"OTTO 19", []string{"State         uploaded"}},
		"WithDrop":         {"acme-in/Otto 19", []string{"State         uploaded"}},
	}, func(t *testing.T, row row) {
		out, errs, code := s.say("show", row.x)
		kit.Need(t, code == 0, "exit %d: %s", code, errs)
		for _, w := range row.want {
			kit.Holds(t, "out", out, w)
		}
	})
}

func TestShow_ByClientUUIDAndJSON(t *testing.T) {
	s := filled(t)
	e, _, err := s.ledger.Entry(s.keys["Müller 4711"])
	kit.Must(t, err)
	out, _, code := s.say("show", "--json", strings.ToUpper(e.ID.String()))
	var got present.ShowJSON
	err = json.Unmarshal([]byte(out), &got)
	kit.Need(t, err == nil && code == 0, "err = %v, code = %v, want no error, code = 0", err, code)
	if got.Folder != "Müller 4711" || len(got.Files) != 1 || len(got.History) != 9 || got.Registrations[0].Fate != "archived" || *got.Record == "" || got.Cause != nil {
		t.Errorf(`%+v, want got.Folder = "Müller 4711", len(got.Files) = 1, len(got.History) = 9, got.Registrations[0].Fate = "archived", *got.Record other than "", got.Cause = nil`, got)
	}
	if keys := keysOf(t, out); keys[0] != "key" || keys[15] != "reason" || keys[18] != "warnings" || keys[20] != "deliveredAt" || keys[22] != "means" || keys[23] != "meaning" {
		t.Errorf("keys %v", keys)
	}
}

func TestShow_NotUniqueOrNotThere(t *testing.T) {
	s := filled(t)
	again := archive.NewKey(noon)
	s.keys["Huber 88"], s.keys["first"] = again, s.keys["Huber 88"]
	rs, err := s.ledger.Apply(t.Context(), ledger.Change{Key: again, Events: []ledger.Event{ledger.ClaimedFolder{Vault: "V-1", Drop: "acme-in", Folder: "Huber 88"}}, At: archive.Instant{Wall: noon}})
	kit.Need(t, err == nil && rs[0].Err == nil, "err = %v, rs = %v, want no error, rs[0].Err = nil", err, rs)
	_, errs, code := s.say("show", "Huber 88")
	if code != exitFailed || !strings.Contains(errs, again.String()) || !strings.Contains(errs, s.keys["first"].String()) || !strings.Contains(errs, "2 are known as") {
		t.Errorf("exit %d\n%s", code, errs)
	}
	_, errs, code = s.say("show", "\x1b[31mnobody")
	kit.Check(t, code == exitFailed && !strings.Contains(errs, "\x1b"), "exit %d\n%s", code, errs)
}

func TestStatus_NeedsAPerson(t *testing.T) {
	s := filled(t)
	out, errs, code := s.say("status")
	kit.Check(t, code == exitPerson && errs == "", "exit %d: %s", code, errs)
	kit.Holds(t, "out", out,
		"TEST vault.example  20 Nov 14:32 CET\nTEST, NO EVIDENCE: what a test environment archives proves nothing\n",
		"NEEDS YOU: 1 now, 2 soon     last success 10:32, 4 h ago\n",
		"NOW      vaultd is not running, and 1 folder waits",
		"SOON     1 document was rejected: it did not come to its destination\n           Huber 88 (acme-in): amount not understood\n",
		`           Kern\x1b[2J 6 (acme-in): the answer named`,
		"BALANCE  seen 4 = archived 1 + delivered 0 + rejected 1 + quarantined 1 + duplicate 0 + open 1  agrees\n",
		"OPEN 1  at service 1; oldest 1 h (limit 48 h)\n",
		"BILLING  2026 all vaults: 1 document, average 1 MB, 100 % of what is included; LIMIT REACHED; 0 bytes left\n",
		"BILLING  2026 vault V-1: 1 document",
	)
	if got := s.summary(); len(got.Needs) != 3 || got.Open.Total != 1 || got.Running {
		t.Errorf("%+v, want len(got.Needs) = 3, got.Open.Total = 1, not got.Running", got)
	}
}

// What a person must see is found in every entry, however long ago it came to rest.
func TestStatus_I26_Loud(t *testing.T) {
	type row struct {
		more func(s *shelf)
		want string // the words of what is needed; may be empty
	}
	kit.Rows(t, map[string]row{
		"AllIsWell":         {func(*shelf) {}, ""},
		"ResolvedRejection": {func(s *shelf) { s.tell("R", noon, nil, ledger.Refused{}, ledger.Closed{}) }, ""},
		"Contradicted": {func(s *shelf) {
			s.says("Müller 4711", noon, "bum-1", archive.Failed)
		}, "contradicted"},
		"Overdue": {func(s *shelf) { s.send("Old", noon.Add(-49*time.Hour), "bum-9") }, "not-running overdue"},
		"InTime":  {func(s *shelf) { s.send("Young", noon.Add(-47*time.Hour), "bum-9") }, "not-running"},
		"Held": {func(s *shelf) {
			seal, doc := sealed("Twin", 1)
			seal.SameContent = s.keys["Müller 4711"]
			s.tell("Twin", noon, doc, seal, ledger.Held{})
		}, "not-running undecided"},
		"HeldByHand": {func(s *shelf) { s.tell("Mine", noon, nil, ledger.Held{}) }, "not-running"},
	}, func(t *testing.T, row row) {
		s := newShelf(t)
		s.send("Müller 4711", noon.Add(-5*time.Hour), "bum-1")
		s.says("Müller 4711", noon.Add(-4*time.Hour), "bum-1", archive.Successful)
		row.more(s)
		var words []string
		for _, n := range s.summary().Needs {
			words = append(words, n.What)
		}
		kit.Want(t, fmt.Sprintf("needs %v", words), strings.Join(words, " "), row.want)
		_, _, code := s.say("status")
		kit.Want(t, "exit", map[bool]int{true: exitDone, false: exitPerson}[row.want == ""], code)
	})
}

func TestVerify_I14_SaysWhatDiffers(t *testing.T) {
	s := filled(t)
	out, errs, code := s.say("verify", "--whole")
	if code != 0 || !strings.Contains(out, "RESULT    nothing differs") || !strings.Contains(out, "4 entries held against the journal: nothing differs") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	kit.Rows(t, map[string]func(s *shelf){
		"JournalLineChanged": (*shelf).damageJournal,
		"EntryChanged":       func(s *shelf) { s.damage("_rejected/Huber 88") },
	}, func(t *testing.T, spoil func(s *shelf)) {
		s := filled(t)
		spoil(s)
		out, errs, code := s.say("verify", "--whole")
		if code != exitDifferences || !regexp.MustCompile(`(?m)^DIFFERS   `).MatchString(out) || strings.Contains(out, "RESULT") || !strings.Contains(errs, "found") {
			t.Errorf("exit %d\n%s%s", code, out, errs)
		}
		if out, _, code = s.say("verify", "--whole", "--json"); code != exitDifferences || !strings.Contains(out, `"ok":false`) {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
}

// TestVerify_I9_LostAnswersAreCounted: what cannot be guaranteed is printed,
// with its number.
func TestVerify_I9_LostAnswersAreCounted(t *testing.T) {
	s := newShelf(t)
	seal, doc := sealed("Otto", 1)
	s.tell("Otto", noon, doc, seal, ledger.RegisterIntended{}, ledger.RegisterUnanswered{}, ledger.RegisterIntended{}, ledger.RegisterUnanswered{})
	out, errs, code := s.say("verify")
	kit.Want(t, "exit code", code, exitDone)
	kit.Holds(t, "verify", out+errs, "2 answers to registrations were lost: at most so many unused registrations are unknown")
}

// A verification that did not read everything says so first, and its result claims no more.
func TestVerify_I14_ClaimsNoMoreThanItDid(t *testing.T) {
	s := filled(t)
	verify := func(args ...string) string {
		t.Helper()
		out, errs, code := s.say(append([]string{"verify"}, args...)...)
		kit.Need(t, code == 0, "exit %d\n%s%s", code, out, errs)
		return out
	}
	line := fmt.Sprint(s.ledger.Head().N)
	first, second := verify(), verify()
	for _, whole := range []string{first, verify("--whole")} {
		if strings.Contains(whole, "RESTS ON") || !strings.Contains(whole, "RESULT    nothing differs\n") || !strings.Contains(whole, line+" lines replayed") {
			t.Errorf("the whole:\n%s", whole)
		}
	}
	kit.Holds(t, "second", second,
		"RESTS ON  line "+line+" with hash "+s.ledger.Head().Hash.String(), "not read again", "--whole reads everything",
		"JOURNAL   0 lines replayed", "RESULT    nothing differs in what came behind line "+line+"; what came before rests on",
	)
	kit.Must(t, os.WriteFile(filepath.Join(s.cfg.StateDir, selfcheck.CheckpointName), []byte("x"), 0o600))
	kit.Holds(t, "out", verify(), "WHOLE     everything was read: the checkpoint was not used: it is damaged")
}

func TestCommands_StopWithTheirContext(t *testing.T) {
	s := filled(t)
	kit.Must(t, s.ledger.Close())
	ctx, stop := context.WithCancel(t.Context())
	out := &stopAfter{writes: 1, stop: stop}
	run := func(args ...string) int {
		return program.Run(ctx, append([]string{"--config", s.config}, args...), strings.NewReader(""), out, io.Discard, noEnv)
	}
	code := run("list", "--json")
	kit.Check(t, code == exitTemporary && strings.Count(out.String(), "\n") == 1, "exit %d\n%s", code, out)
	for _, args := range [][]string{{"list"}, {"show", "Müller 4711"}, {"status"}, {"verify"}} {
		kit.Want(t, fmt.Sprintf("%v: exit", args), run(args...), exitTemporary)
	}
}

// I12: the ledger has the folder's owner and up to eight other owners of files
// in it, whatever becomes of the folder. show, why and the receipt name them,
// and so does a ledger that was rebuilt from receipts.
func TestOwners_I12_FilesOfOthers(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give files to other users")
	}
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{})
	s := newSite(t, url, fast)
	s.addPDFDrop(url)
	// given drops a folder of the clerk, in which some files are of others.
	given := func(folder, number, documentType string, others map[string]int) {
		files := map[string][]byte{"a.pdf": []byte("a " + number), "b.pdf": []byte("b " + number)}
		for name := range others {
			if name != "metadata.json" {
				files[name] = []byte(name[:1] + " " + number)
			}
		}
		s.drop("acme", folder, files, map[string]any{"documentType": documentType, "documentId": number, "documentDate": "2026-10-31"})
		dir := filepath.Join(s.dir, "acme", folder)
		kit.Must(t, filepath.WalkDir(dir, func(path string, _ fs.DirEntry, _ error) error { return os.Chown(path, clerk, -1) }))
		for name, uid := range others {
			kit.Must(t, os.Chown(filepath.Join(dir, name), uid, -1))
		}
	}
	many := map[string]int{}
	for i := range 10 {
		many[fmt.Sprintf("%d.xml", i)] = clerk + 1 + i
	}
	given("Alone", "1", "Invoice", nil)
	given("Changed", "2", "Invoice", map[string]int{"a.pdf": clerk + 2, "b.pdf": clerk + 2, "metadata.json": 0})
	given("Many", "3", "Invoice", many)
	given("Refused", "4", "Nonsense", map[string]int{"a.pdf": clerk + 2})
	s.dropPDF("scan.pdf", 1)
	kit.Must(t, os.Chown(filepath.Join(s.dir, "scans", "scan.pdf"), clerk+2, -1))
	s.must(exitPerson, "run", "--once", "--wait")
	given("Again", "1", "Invoice", map[string]int{"b.pdf": clerk + 2})
	s.must(exitDone, "run", "--once", "--wait")

	want := map[string][]int{"Alone": {}, "Changed": {0, clerk + 2}, "Many": {clerk + 1, clerk + 2, clerk + 3, clerk + 4, clerk + 5, clerk + 6, clerk + 7, clerk + 8},
		"Refused": {clerk + 2}, "scan.pdf": {}, "Again": {clerk + 2}}
	owners := func(folder string) (got []int) {
		var shown struct{ FileOwners []int }
		kit.Must(t, json.Unmarshal([]byte(s.must(exitDone, "show", "--json", folder)), &shown))
		return shown.FileOwners
	}
	for folder, uids := range want {
		kit.Want(t, "owners of files of "+folder, owners(folder), uids)
	}
	kit.Holds(t, "show", s.must(exitDone, "show", "Changed"), "Folder of     uid 47111\nFiles also of root (uid 0), uid 47113\n")
	kit.Holds(t, "show", s.must(exitDone, "show", "Many"), "uid 47119, perhaps others\n")
	kit.Lacks(t, "show", s.must(exitDone, "show", "Alone"), "Files also of")
	kit.Holds(t, "why", s.must(exitDone, "why", "Changed"), "a folder of uid 47111, with files of root (uid 0), uid 47113")
	kit.Holds(t, "receipt", s.must(exitDone, "receipt", "Changed"), "Files also of   root (uid 0), uid 47113")
	written := kit.Value(os.ReadFile(filepath.Join(s.dir, "acme/_archived", month(t, s, "acme"), "Changed", "_RECEIPT.json")))(t)
	kit.Holds(t, "_RECEIPT.json", string(written), "\"fileOwners\": [\n    0,\n    47113\n  ]")

	s.move("state", "lost")
	s.must(exitDone, "rebuild", "--reason", "disk failed, no backup")
	for _, folder := range []string{"Alone", "Changed", "Many"} {
		kit.Want(t, "owners of files of "+folder+" from the receipt", owners(folder), want[folder])
	}
}
