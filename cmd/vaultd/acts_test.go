package main_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

// The same decision is committed inside the daemon and, when that is down, beside it, with who asked.
func TestActs_I29_InsideAndBeside(t *testing.T) {
	shelf := newShelf(t)
	shelf.forDaemon()
	shelf.edit("drops:", "spool: {min_free: 9000TB}\ndrops:") // nothing is packed
	shelf.tell("Otto\x1b 19", time.Now(), nil)
	path, stop := shelf.config, shelf.daemon()
	const otto = "Otto\x1b 19"
	do := func(want int, args ...string) string {
		t.Helper()
		out, errs, code := runHere(append([]string{"--config", path}, args...)...)
		kit.Check(t, code == want && !strings.Contains(out, "\x1b"),
			"%q: exit %d, want %d\n%s%s", args, code, want, out, errs)
		return out + errs
	}
	both := func(running bool) {
		t.Helper()
		has := func(text, part string) {
			t.Helper()
			kit.Holds(t, "text", text, part)
		}
		has(do(0, "hold", otto, "--reason", fmt.Sprintf("because (%v)", running)), "It is on hold")
		has(do(0, "why", otto), "Next          nothing by itself")
		has(do(1, "hold", otto), "on hold already")
		has(do(1, "release", otto, "--reason", "x"), "discovered")
		has(do(64, "unhold", otto), "needs --reason")
		has(do(0, "unhold", otto, "--reason", fmt.Sprintf("corrected (%v)", running)), "Next: pack it.")
		why := do(0, "why", otto)
		has(why, fmt.Sprintf("because (%v)", running))
		kit.Check(t, strings.Contains(why, "it is not running") != running, "running %v\n%s", running, why)
		has(do(1, "receipt", otto), "there is no receipt")
		has(do(64, "close", otto), "needs --reason")
	}
	both(true)
	stop()
	shelf.edit("min_free: 9000TB", "min_free: 1MB") // and the catalog may grow
	both(false)
	var shown present.ShowJSON
	kit.Must(t, json.Unmarshal([]byte(do(0, "show", otto, "--json")), &shown))
	if len(shown.Reasons) != 4 || *shown.Reasons[0].UID != int64(os.Getuid()) || shown.Reasons[0].Text != "because (true)" || shown.Reasons[0].Act != "held" {
		t.Errorf(`%+v, want len(shown.Reasons) = 4, *shown.Reasons[0].UID = %v, shown.Reasons[0].Text = "because (true)", shown.Reasons[0].Act = "held"`, shown.Reasons, int64(os.Getuid()))
	}
	n := strings.Count(do(0, "show", otto), "by "+present.UserName(uint32(os.Getuid())))
	kit.Check(t, n >= 4, "who acted is named %d times", n)
	do(0, "verify")
}

// unclear is a folder of which nobody knows whether it arrived, with n answers of the archive an hour apart.
func (s *shelf) unclear(folder string, n int) ledger.Entry {
	s.t.Helper()
	at := noon.Add(-10 * time.Hour)
	seal, doc := sealed(folder, 1_000_000)
	s.tell(folder, at, doc, seal)
	remote := archive.RemoteID("bum-" + folder)
	e := s.tell(folder, at, nil, ledger.RegisterIntended{}, fill.Ticket(remote, at, ledger.Vault),
		ledger.UploadIntended{}, ledger.UploadUnanswered{Cause: ledger.Cause{Code: "timeout"}}, ledger.WindowClosed{})
	for i := range n {
		e = s.tell(folder, at.Add(time.Duration(i+1)*time.Hour), nil, ledger.StatusSeen{Grace: 24 * time.Hour, NotBefore: noon.Add(30 * time.Minute),
			Receipt: archive.Receipt{Remote: remote, Status: archive.WaitingForPackage, Raw: "x", Record: []byte("{}")}})
	}
	return e
}

func TestWhy_UnclearShowsTheEvidence(t *testing.T) {
	s := newShelf(t)
	s.unclear("Zoll 1", 2)
	out, _, code := s.say("why", "Zoll 1")
	for _, want := range []string{
		"State         unclear, since 04:32",
		"nobody knows whether it arrived",
		"Next          ask the archive, not before 15:02 CET (in 30 min)",
		"Evidence      bumId bum-Zoll 1: bytes may have arrived",
		"at 2026-11-20 06:32:00 CET, that it still waits for the content",
		"2 of 3 equal answers that prove that nothing is there; not believed before 2026-11-21 04:32:00 CET",
		"vaultd release " + s.keys["Zoll 1"].String() + ` --reason "…"`,
		"vaultd close " + s.keys["Zoll 1"].String() + ` --reason "…"`,
	} {
		kit.Check(t, code == 0 && strings.Contains(out, want), "exit %d, no %q in\n%s", code, want, out)
	}
}

func TestActs_ClosedInDoubt(t *testing.T) {
	s := newShelf(t)
	s.unclear("Zoll 1", 0)
	out, errs, code := s.say("close", "Zoll 1", "--reason", "asked the provider")
	kit.Check(t, code == 0 && strings.Contains(out, "rejected in doubt"), "exit %d %s%s", code, out, errs)
	out, errs, code = s.say("release", "Zoll 1", "--reason", "asked the provider")
	kit.Check(t, code == exitFailed && strings.Contains(errs, "it is rejected"), "exit %d %s%s", code, out, errs)
	one, _, _ := s.ledger.Entry(s.keys["Zoll 1"])
	kit.Check(t, one.State == ledger.Rejected && one.InDoubt && one.Resolved,
		"%+v, want one.State = ledger.Rejected, one.InDoubt, one.Resolved", one)
	kit.Want(t, "notes[one.Rev].Text", kit.Value(s.ledger.Notes(one.Key))(t)[one.Rev].Text, "asked the provider")
}

func TestFind_WhatPeopleRemember(t *testing.T) {
	s := filled(t)
	for query, want := range map[string]string{
		"Müller 4711": "Müller 4711", "mueller 4711": "Müller 4711", "MULLER 4711": "Müller 4711", "bum-2": "Otto 19", "otto gmbh": "Otto 19",
		"_archived/2026-11": "Müller 4711", "kern 6": `Kern\x1b[2J 6`, "müller 4712": "", "4711 otto": "", "Mu\u0308ller 4711": "Müller 4711",
	} {
		out, _, code := s.say(append([]string{"find", "--limit=1"}, strings.Fields(query)...)...)
		found := strings.HasPrefix(out, want+" (acme-in)")
		kit.Check(t, found == (want != "") && found == (code == 0), "%q: exit %d\n%s", query, code, out)
	}
	out, _, _ := s.say("find", "--limit=1", "müller", "4711")
	kit.Holds(t, "out", out, "archived 2026-11-20 10:32:00 CET, bumId bum-1")
	out, errs, _ := s.say("find", "--limit=1", "--json", "gmbh")
	if strings.Count(out, "\n") != 1 || !strings.Contains(out, `"folder":"Otto 19"`) || !strings.Contains(errs, "--limit 0 shows all") {
		t.Errorf("%s%s, want strings.Count(out, \"\\n\") = 1, out with `\"folder\":\"Otto 19\"`, errs with \"--limit 0 shows all\"", out, errs)
	}
}

func TestFolded(t *testing.T) {
	for a, b := range map[string]string{"Straße": "STRASSE", "Müller": "mueller", "mueller": "Müller", "Öztürk": "ozturk", "José": "JOSE", "Ægir 1": "ægir 1"} {
		kit.Check(t, catalog.NewQuery([]string{a}).OccursIn(b), "%q does not find %q", a, b)
	}
	kit.Check(t, !catalog.NewQuery([]string{"Maier"}).OccursIn("Meier"), "Maier is Meier")
}

func TestValidate_WhichDrop(t *testing.T) {
	top := t.TempDir()
	drops := "drops:\n  - {name: a, path: TOP/a, vault: V}\n  - {name: ab, path: TOP/ab, vault: V}\n  - {name: c, path: TOP/c, vault: V}\n"
	config := func(drops string) string {
		return writeConfig(t, strings.ReplaceAll(smallConfig[:strings.Index(smallConfig, "drops:")]+drops+"state_dir: TOP/state\n", "TOP", top))
	}
	which := func(config, folder string, args ...string) string {
		path := filepath.Join(top, folder)
		writeIn(t, path, "metadata.json", `{"documentType": "Invoice", "documentId": "1", "documentDate": "2026-10-31"}`)
		writeIn(t, path, "a.pdf", "%PDF")
		out, _, code := runHere(append([]string{"validate", "--json", "--config", config, path}, args...)...)
		var v validatedShown
		err := json.Unmarshal([]byte(out), &v)
		kit.Check(t, code != exitDone || err == nil, "error: %v", err)
		return v.Drop
	}
	three := config(drops)
	for _, row := range []struct{ folder, name, want string }{
		{"a/Huber 88", "", "a"}, {"ab/Huber 88", "", "ab"}, {"a/_rejected/Huber 88", "", "a"}, {"abc/x", "", ""},
		{"tmp/x", "", ""}, {"tmp/x", "c", "c"}, {"a/x", "c", "c"}, {"a/x", "d", ""},
	} {
		got := which(three, row.folder, "--drop", row.name)
		kit.Check(t, got == row.want, "%+v: %q, want got = %v", row, got, row.want)
	}
	kit.Want(t, "the only drop", which(config(drops[:strings.Index(drops, "  - {name: ab")]), "tmp/x"), "a")
}

// A copy through the daemon is the ledger as it stands; the daemon itself writes no file for whoever asks.
func TestBackup_ThroughTheDaemon(t *testing.T) {
	shelf := newShelf(t)
	shelf.forDaemon()
	shelf.edit("drops:", "spool: {min_free: 1MB}\ndrops:")
	shelf.daemon()
	cfg, path := shelf.cfg, shelf.config
	copied := filepath.Join(t.TempDir(), "copy.db")
	out, errs, code := runHere("--config", path, "backup", copied, "--json")
	var b struct {
		Ledger   string `json:"ledgerId"`
		HeadLine uint64
		Size     int64 `json:"bytes"`
	}
	err := json.Unmarshal([]byte(out), &b)
	kit.Check(t, err == nil && code == 0 && b.Ledger == "L-1" && b.HeadLine > 0, "exit %d %v %+v %s", code, err, b, errs)
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 || info.Size() != b.Size {
		t.Errorf("info = %v, err = %v, want no error, info.Mode().Perm() = 0o600, info.Size() = %v", info, err, b.Size)
	}
	elsewhere := filepath.Join(cfg.StateDir, "ledger.copy")
	line := kit.Value(json.Marshal(map[string][]string{"args": {"backup", "--", elsewhere}}))(t)
	if out, errs, code := frames(t, cfg.StateDir, string(line)+"\n"); code != exitUsage || out != "" || !strings.Contains(errs, "writes no files for others") {
		t.Errorf("exit %d %q %s", code, out, errs)
	}
	kit.Fails(t, "it was written", kit.Err(os.Lstat(elsewhere)))
}

// A copy that broke off gets no name and leaves nothing behind.
func TestBackup_BrokenOff(t *testing.T) {
	s, dir := newShelf(t), t.TempDir()
	var whole bytes.Buffer
	kit.Value(s.ledger.Backup(t.Context(), &whole, nil))(t)
	var sent []byte
	exit := exitDone
	s.standIn(func(out io.Writer) int {
		_, _ = out.Write(sent) // the client tells
		return exit
	})
	for name, row := range map[string]struct {
		sent []byte
		exit int
		good bool
	}{
		"Half": {[]byte("half of a ledger"), exitDone, false}, "Empty": {nil, exitDone, false}, "Failed": {nil, exitTemporary, false}, "Good": {whole.Bytes(), exitDone, true},
	} {
		sent, exit = row.sent, row.exit
		code, out, errs := s.ask(t, "backup", filepath.Join(dir, name))
		kit.Check(t, (code == exitDone) == row.good, "%s: exit %d: %s%s", name, code, out, errs)
	}
	names, err := os.ReadDir(dir)
	kit.Check(t, err == nil && len(names) == 1 && names[0].Name() == "Good",
		`%v %v, want no error, len(names) = 1, names[0].Name() = "Good"`, names, err)
}

func TestCompletion_StatesAndDrops(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(path, []byte(smallConfig+"state_dir: /var/lib/vaultd\n"), 0o600))
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"list", "--state", "rejected,qu"}, "rejected,quarantined\n"},
		{[]string{"list", "--config", path, "--drop", ""}, "acme-in\n"},
		{[]string{"validate", "--config", path, "--drop", "ac"}, "acme-in\n"},
		{[]string{"completion", ""}, "fish\n"},
		{[]string{"unh"}, "unhold\tlet a folder on hold go on\n"},
	} {
		out, _, code := runHere(append([]string{"__complete"}, row.args...)...)
		kit.Check(t, code == 0 && strings.Contains(out, row.want), "%q: exit %d\n%s", row.args, code, out)
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		out, _, code := runHere("completion", shell)
		kit.Check(t, code == 0 && len(out) >= 1000, "%s: exit %d, %d bytes", shell, code, len(out))
	}
	_, errs, code := runHere("completion", "tcsh")
	kit.Check(t, code == exitUsage && strings.Contains(errs, "known are bash"), "exit %d %s", code, errs)
}

// What lies in a drop and is not taken yet is shown behind what was found, as the page shows it, whatever the limit: a second folder of the
// same name may wait for its sidecar.
func TestFind_NotTakenBesideHits(t *testing.T) {
	s := filled(t)
	err := s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon, Pending: []ledger.PendingItem{
		{Name: "Müller 4711 b", Reason: string(watch.NoSidecar), Since: noon.Add(-time.Hour), NeedsPerson: true},
		{Name: "Kern 6", Reason: string(watch.NoSidecar), Since: noon.Add(-time.Hour), NeedsPerson: true},
	}})
	kit.Must(t, err)
	type row struct {
		words       string
		limit, code int
		json        bool
		want        []string // in this order
		not, errs   string
	}
	kit.Rows(t, map[string]row{
		"Both":        {words: "mueller", want: []string{"Müller 4711 (acme-in)  archived", "Müller 4711 b (acme-in)", "not taken, seen since"}, not: "Kern"},
		"BothLimited": {words: "4", limit: 1, want: []string{"Müller 4711 (acme-in)  archived", "Müller 4711 b (acme-in)", "not taken, seen since"}},
		"Limited":     {words: "r", limit: 1, want: []string{"Otto 19 (acme-in)", "Müller 4711 b (acme-in)", "Kern 6 (acme-in)"}, not: "Müller 4711 (acme-in)", errs: "the newest 1; --limit 0 shows all"},
		"JSON":        {words: "mueller", json: true, want: []string{`"folder":"Müller 4711"`, `"folder":"Müller 4711 b","drop":"acme-in","state":"not-taken"`}},
		"TakenAlone":  {words: "otto", want: []string{"Otto 19 (acme-in)"}, not: "not taken"},
	}, func(t *testing.T, row row) {
		out, errs, code := s.say("find", fmt.Sprint("--limit=", row.limit), fmt.Sprint("--json=", row.json), row.words)
		rest := out
		for _, want := range row.want {
			var found bool
			if _, rest, found = strings.Cut(rest, want); !found {
				t.Errorf("%q is missing, or not in its place", want)
			}
		}
		kit.Check(t, code == row.code && (row.not == "" || !strings.Contains(out, row.not)) && strings.Contains(errs, row.errs),
			"exit %d: %s\n%s", code, errs, out)
	})
}

// What can be searched is told to those who ask for nothing, or for everything.
func TestFind_NothingToSearch(t *testing.T) {
	for args, says := range map[string]string{"": "WORDS are missing", "  ": "WORDS are missing", "*": "* stands for nothing", "% ?": "stands for nothing"} {
		if _, errs, code := runHere("find", args); code != exitUsage || !strings.Contains(errs, says) || !strings.Contains(errs, "vaultd find Müller 4711") {
			t.Errorf("find %q: exit %d: %s", args, code, errs)
		}
	}
}

// countedLines counts the lines of the journal that are read.
type countedLines struct {
	*boltledger.Ledger
	read int
}

func (c *countedLines) Lines(from uint64, fn func(uint64, []byte) error) error {
	return c.Ledger.Lines(from, func(n uint64, line []byte) error {
		c.read++
		return fn(n, line)
	})
}

// The history of a folder is whole and found soon, also where the lines of many others stand between its archiving and its removal.
func TestShow_G15_HistoryOfARemovedFolder(t *testing.T) {
	const others = 30_000
	s := newShelf(t)
	s.send("Otto 1", noon, "bum-1")
	key := s.keys["Otto 1"]
	s.says("Otto 1", noon.Add(time.Minute), "bum-1", archive.Successful)
	s.tell("Otto 1", noon.Add(2*time.Minute), nil, ledger.PlaceIntended{Dest: "_archived/Otto 1"}, ledger.Placed{DisposeAt: noon.AddDate(0, 0, 90)})
	busy := slices.Repeat([]ledger.Event{ledger.Held{}, ledger.Unheld{}}, others/20)
	for day := range 10 {
		s.tell("Busy", noon.AddDate(0, 0, 1+day), nil, busy...)
	}
	for _, steps := range []int{0, 1, 2} { // kept, then its removal announced, then removed
		if steps == 1 {
			s.tell("Otto 1", noon.AddDate(0, 0, 90).Add(time.Second), nil, ledger.DisposeIntended{})
		} else if steps == 2 {
			s.tell("Otto 1", noon.AddDate(0, 0, 90).Add(2*time.Second), nil, ledger.Disposed{})
		}
		e, _, err := s.ledger.Entry(key)
		kit.Must(t, err)
		counted := &countedLines{Ledger: s.ledger.Ledger}
		d, err := present.ReadDossier(t.Context(), counted, e, time.UTC)
		kit.Check(t, err == nil && len(d.History) == int(e.Rev) && counted.read <= others/2,
			"%d: %d lines of %d revisions, %d lines read, %v", steps, len(d.History), e.Rev, counted.read, err)
	}
}

// The history of a folder is whole, wherever its lines stand in the journal: also where the clock was set back before and after it was taken.
func TestShow_I14_HistoryIsWhole(t *testing.T) {
	s := newShelf(t)
	for i, at := range []time.Duration{0, 9 * time.Hour, -9 * time.Hour, time.Hour, -time.Hour, 2 * time.Hour} {
		folder := fmt.Sprint("Otto ", i)
		s.send(folder, noon.Add(at), archive.RemoteID(fmt.Sprint("bum-", i)))
	}
	for folder, key := range s.keys {
		s.tell(folder, noon.Add(-5*time.Hour), nil, ledger.Held{By: ledger.Operator{UID: 0}})
		e, _, err := s.ledger.Entry(key)
		kit.Must(t, err)
		d, err := present.ReadDossier(t.Context(), s.ledger.Ledger, e, time.UTC)
		kit.Check(t, err == nil && len(d.History) == int(e.Rev),
			"%s: %d lines of %d revisions, %v", folder, len(d.History), e.Rev, err)
		for i, l := range d.History {
			kit.Check(t, l.Key == key.String() && l.Rev == uint32(i+1), "%s: line %d is %+v", folder, i, l)
		}
	}
}
