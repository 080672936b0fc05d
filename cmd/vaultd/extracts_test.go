package main_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/arrivals"
	"vaultd/internal/emulator"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/statedir"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// I30: a real daemon takes extracts in, is killed in the middle, goes on, and acknowledges each once everything of it is held. The service sees
// nothing that it forbids, and the ledger verifies.
func TestExtracts_I30_KilledInTheMiddle(t *testing.T) {
	emu, s := served(t, emulator.Config{}, fast)
	custody := filepath.Join(s.dir, "custody")
	kit.Must(t, mkdirPrivate(custody))
	s.edit("drops:", "extracts: {base_url: "+s.service+", custody: "+custody+", every: 1m, acknowledge: true, auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
	slow := emulator.Faults{Hook: func(op string, n int) emulator.Fault {
		if op == "extract-fetch" && n == 3 {
			return emulator.Fault{Delay: 20 * time.Second} // the third file is under way when the daemon dies
		}
		return emulator.Fault{}
	}}
	kit.Must(t, emu.SetFaults(slow))
	publishExtract(t, emu, "4711")
	publishExtract(t, emu, "4712")
	p := s.beginProcess()
	kit.Await(t, "two files", func() bool { return countSent(emu) >= 2 })
	p.kill(t)
	kit.Must(t, emu.SetFaults(emulator.Faults{}))
	p = s.begin()
	kit.Await(t, "both extracts to be acknowledged", func() bool {
		all := emu.PublishedExtracts()
		return all[0].IsAcknowledged && all[1].IsAcknowledged
	})
	s.must(0, "extracts") // through the daemon
	if code := p.stop(t); code != 0 {
		t.Errorf("exit %d", code)
	}
	for _, id := range []string{"4711", "4712"} {
		_, err := os.Stat(filepath.Join(custody, "extracts", id, "manifest.json"))
		kit.Check(t, err == nil, "error: %v", err)
	}
	s.must(0, "verify")
	s.asksAboutExtracts(custody)
	kit.Len(t, "violations", emu.Violations(), 0)
}

// asksAboutExtracts asks what people ask, and damages one file: that is found.
func (s *site) asksAboutExtracts(custody string) {
	s.t.Helper()
	for _, row := range []struct {
		code int
		args []string
		want string
	}{
		{0, []string{"extracts"}, "acknowledged  2 of 2"},
		{0, []string{"extracts", "--json"}, `"need":""`},
		{0, []string{"extracts", "show", "4711"}, "one.zip  IA_INVOICE"},
		{0, []string{"extracts", "show", "4711"}, "request ids   fetch "},
		{0, []string{"extracts", "show", "4711"}, ", when it was announced"},
		{0, []string{"extracts", "verify"}, "2 extracts with 4 files read, 0 differ"},
		{exitFailed, []string{"extracts", "show", "9999"}, "no extract has the ID"},
		{exitFailed, []string{"extracts", "close", "4711", "--reason", "x"}, "nothing is left to decide"},
		{exitUsage, []string{"extracts", "close", "4711"}, "needs --reason"},
		{exitUsage, []string{"extracts", "remove", "4711"}, "known are show, verify, retry, close"},
		{exitUsage, []string{"extracts", "show"}, "needs the ID"},
	} {
		out := s.must(row.code, row.args...)
		kit.Check(s.t, strings.Contains(out, row.want), "%v: %s, want out with %q", row.args, out, row.want)
	}
	path := filepath.Join(custody, "extracts", "4711", "files", "0001-one.zip")
	b := kit.Value(os.ReadFile(path))(s.t)
	b[40] ^= 1
	kit.Must(s.t, os.WriteFile(path, b, 0o600))
	kit.Holds(s.t, "extracts verify", s.must(exitDifferences, "extracts", "verify"), "extract 4711 DIFFERS", "1 differs")
}

// publishExtract makes the service offer an extract of two files.
func publishExtract(t *testing.T, emu *emulator.Server, id string) {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("IA_INVOICE.json")
	if err == nil {
		_, err = w.Write([]byte(`[{"NUMBER":"R-` + id + `"}]`))
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		file := func(name string) emulator.PublishedFile {
			return emulator.PublishedFile{Table: "IA_INVOICE", Name: name, Content: b.Bytes()}
		}
		err = emu.PublishExtract(emulator.PublishedExtract{ID: id, Type: "Delta", Made: time.Now(), Files: []emulator.PublishedFile{file("one.zip"), file("two.zip")}})
	}
	kit.Must(t, err)
}

// countSent counts the files that were sent to their last byte.
func countSent(emu *emulator.Server) (n int) {
	for _, e := range emu.PublishedExtracts() {
		for _, f := range e.Files {
			if f.WasSent {
				n++
			}
		}
	}
	return n
}

// I26, I29: an extract that used up its downloads, and one whose year ends, need a person: status says so and ends with 3. What the person decides is
// journaled.
func TestExtracts_I26_NeedAPerson(t *testing.T) {
	_, s := served(t, emulator.Config{}, fast)
	s.edit("drops:", "extracts: {base_url: "+s.service+", custody: "+s.dir+"/custody, max_downloads: 2, auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
	s.must(0, "extracts")
	now := time.Now()
	s.addArrival("4711", now, arrival.FilesListed{Files: []archive.ExtractFile{{Table: "IA_INVOICE", Name: "one.zip"}}},
		arrival.DownloadIntended{File: "one.zip"}, arrival.DownloadIntended{File: "one.zip"})
	berlin, err := time.LoadLocation("Europe/Berlin") // time_zone where none is configured
	kit.Must(t, err)
	made := now.AddDate(-1, 0, 10)
	s.addArrival("4710", made)
	out := s.must(exitPerson, "status")
	kit.Holds(t, "out", out, "2 extracts need you", "4711: one.zip was downloaded 2 times without success; left: 48. Look at the proxy, then: vaultd extracts retry 4711",
		"4710: Delta of "+made.In(berlin).Format("2 Jan 2006")+" is not held and ends in ", "see vaultd extracts")
	s.must(0, "extracts", "retry", "4711")
	kit.Holds(t, "status", s.must(exitPerson, "status"), "1 extract needs you")
	s.must(0, "extracts", "close", "4710", "--reason", "too old for the books")
	s.must(0, "status")
	kit.Holds(t, "extracts --json", s.must(0, "extracts", "--json"), `"state":"given-up"`)
	s.must(0, "verify")
	if journal := s.journal(); !strings.Contains(journal, `"event":"given-up"`) || !strings.Contains(journal, `"event":"downloads-allowed"`) || strings.Contains(journal, "too old for the books") {
		t.Errorf("journal = %v, want journal with `\"event\":\"given-up\"`, journal with `\"event\":\"downloads-allowed\"`, journal without \"too old for the books\"", journal)
	}
}

// I26: an extract that stands still for a day is a need with its cause, and so
// is one whose folder custody has lost and the service has no more.
func TestExtracts_I26_StandsStill(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://127.0.0.1:1", fast)
	s.edit("drops:", "extracts: {base_url: http://127.0.0.1:1, custody: "+s.dir+"/custody, auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
	now := time.Now()
	failed := arrival.Postponed{Until: now, Cause: ledger.Cause{Code: "files-not-clear", Text: "The service said that it has 6 files, and lists 4."}}
	s.addArrivalAt(now.Add(-23*time.Hour), "4711", now, failed)
	s.addArrivalAt(now.Add(-25*time.Hour), "4712", now) // it waits for its turn
	s.must(0, "status")
	s.addArrivalAt(now.Add(-25*time.Hour), "4713", now, failed)
	kit.Holds(t, "status", s.must(exitPerson, "status"), "1 extract needs you", "4713: Delta of ", "is not held after more than a day. The service said that it has 6 files, and lists 4.")
	sum := archive.Sum([]byte("x"))
	s.addArrivalAt(now.Add(-time.Hour), "4714", now, arrival.FilesListed{Files: []archive.ExtractFile{{Name: "a"}}}, arrival.DownloadIntended{File: "a"},
		arrival.FileHeld{File: "a", Stored: "0001-a", SHA256: sum}, arrival.HeldWhole{Again: []archive.ExtractFile{{Name: "a"}}, Manifest: sum}, arrival.CustodyLost{},
		arrival.LeftOut{}, arrival.Abandoned{Cause: ledger.Cause{Code: arrivals.CauseCustodyLost, Text: "Its folder in custody is lost."}})
	kit.Holds(t, "status", s.must(exitPerson, "status"), "2 extracts need you", "4714: Its folder in custody is lost.")
	s.must(0, "verify")
}

// I26: many downloads of all files of one extract are told, though each file has some left: the service does not say what its limit is of.
func TestExtracts_I26_SumOfDownloads(t *testing.T) {
	t.Parallel()
	type row struct {
		files, each, more int // downloads of each file, and more of the first
		says              string
	}
	kit.Rows(t, map[string]row{"Of36": {9, 4, 0, ""}, "Of41": {9, 4, 5, "downloaded 41 times in all"}, "Of60FilesOnceEach": {60, 1, 0, ""}}, func(t *testing.T, row row) {
		s := newSite(t, "http://127.0.0.1:1", fast)
		s.edit("drops:", "extracts: {base_url: http://127.0.0.1:1, custody: "+s.dir+"/custody, max_downloads: 10, auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
		listed := arrival.FilesListed{}
		var downloads []arrival.Event
		for i := range row.files {
			file := fmt.Sprint(i, ".zip")
			listed.Files = append(listed.Files, archive.ExtractFile{Table: "IA_INVOICE", Name: file})
			for range row.each {
				downloads = append(downloads, arrival.DownloadIntended{File: file})
			}
		}
		for range row.more {
			downloads = append(downloads, arrival.DownloadIntended{File: "0.zip"})
		}
		s.addArrival("4711", time.Now(), append([]arrival.Event{listed}, downloads...)...)
		if out, code := s.vaultd("status"); strings.Contains(out, "4711") != (row.says != "") || !strings.Contains(out, row.says) || (code == exitPerson) != (row.says != "") {
			t.Errorf("exit %d, without %q:\n%s", code, row.says, out)
		}
	})
}

// I26: what is held and does not get into the drop folder that archives it is told, with the cause.
func TestExtracts_I26_NotInTheDrop(t *testing.T) {
	t.Parallel()
	s := newSite(t, "http://127.0.0.1:1", fast)
	s.edit("drops:", "extracts: {base_url: http://127.0.0.1:1, custody: "+s.dir+"/custody, to_drop: acme, to_drop_type: Invoice, auth: {method: basic, username: demo, secret_file: "+s.dir+"/secret}}\ndrops:")
	sum := archive.Sum([]byte("x"))
	files := []archive.ExtractFile{{Table: "IA_INVOICE", Name: "one.zip"}}
	held := []arrival.Event{arrival.FilesListed{Files: files}, arrival.DownloadIntended{File: "one.zip"},
		arrival.FileHeld{File: "one.zip", Stored: "0001-one.zip", Size: 1, SHA256: sum}, arrival.HeldWhole{Manifest: sum, Again: files}}
	s.addArrival("4711", time.Now(), held...)
	if out, code := s.vaultd("status"); strings.Contains(out, "4711") {
		t.Errorf("not tried yet: exit %d\n%s", code, out)
	}
	s.addArrival("4712", time.Now(), append(held, arrival.Postponed{Until: time.Now().Add(time.Hour), Cause: ledger.Cause{Code: "drop-full", Text: "no space left on device"}})...)
	if out := s.must(exitPerson, "status"); !strings.Contains(out, "4712: It is held, and its files do not get into the drop acme") || !strings.Contains(out, "no space left") {
		t.Errorf(`out = %v, want out with "4712: It is held, and its files do not get into the drop acme", out with "no space left"`, out)
	}
	s.addArrival("4713", time.Now(), append(held, arrival.Postponed{Until: time.Now().Add(time.Hour), Cause: ledger.Cause{Code: "drop-full", Text: "x"}}, arrival.HandedOn{})...)
	out, _ := s.vaultd("status")
	kit.Check(t, !strings.Contains(out, "4713"), "handed on:\n%s", out)
}

// addArrival puts an extract into the ledger while no daemon runs.
func (s *site) addArrival(id archive.ExtractID, made time.Time, more ...arrival.Event) {
	s.t.Helper()
	s.addArrivalAt(time.Now(), id, made, more...)
}

func (s *site) addArrivalAt(at time.Time, id archive.ExtractID, made time.Time, more ...arrival.Event) {
	s.t.Helper()
	l, release, err := statedir.OpenLedger(filepath.Join(s.dir, "state"), time.UTC, nil)
	kit.Must(s.t, err)
	listed := arrival.Listed{Kind: arrival.Extract, Extract: archive.Extract{ID: id, Type: archive.DeltaExtract, Made: made, Files: 1}}
	_, err = l.ApplyArrival(s.t.Context(), arrival.Change{Key: archive.NewKey(time.Now()), Events: append([]arrival.Event{listed}, more...), At: archive.Instant{Wall: at}})
	kit.Must(s.t, errors.Join(err, release()))
}

// A store keeps a package that it calls refused, and the service archives both. The ledger knew of one: the comparison
// names them, until a person has seen to it.
func TestReconcile_I2_NamesWhatIsArchivedTwice(t *testing.T) {
	t.Parallel()
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: 100 * time.Millisecond, ArchiveMax: 200 * time.Millisecond,
		Faults: emulator.Faults{Hook: func(op string, n int) emulator.Fault {
			if op == "upload" && n == 1 {
				return emulator.Fault{Kind: emulator.Status, Status: 409, IsAfterWork: true}
			}
			return emulator.Fault{}
		}}})
	s := newSite(t, url, fast)
	s.dropped("acme", "twice", 1)
	s.start("run")
	copies := func() (bumIDs []string) {
		for _, seen := range emu.Registrations() {
			if seen.State == "ArchivingSuccessful" {
				bumIDs = append(bumIDs, seen.BumID)
			}
		}
		return bumIDs
	}
	kit.Await(t, "both to be archived", func() bool { return len(copies()) == 2 })
	s.calm(1)
	// An entry that moves on during a comparison is left to the next one. The folder moves before that is committed.
	kit.Await(t, "the folder to be kept", func() bool {
		out, _ := s.vaultd("list", "--json")
		return strings.Contains(out, `"source":"kept"`)
	})
	for range 2 { // it stays until somebody closes it
		out := s.must(exitDifferences, "reconcile")
		for _, want := range append(copies(), "TWICE", "archived 2 times") {
			kit.Holds(t, "reconcile", out, want)
		}
	}
	for command, want := range map[string]string{
		"status": "1 document is archived more than once", "list": "archived TWICE", "verify": "1 is possibly double at the archive",
		"why twice 00": "ask the provider to remove all but one of", "show twice 00": "ARCHIVED TWICE",
	} {
		name, arg, _ := strings.Cut(command, " ")
		args := []string{name}
		if arg != "" {
			args = append(args, arg)
		}
		out, _ := s.vaultd(args...)
		kit.Check(t, strings.Contains(out, want), "%s does not say %q:\n%s", command, want, out)
	}
	s.must(0, "verify")
	s.must(0, "close", "twice 00", "--reason", "the provider removed the second one")
	kit.Holds(t, "after it was closed", s.must(0, "reconcile"), "nothing differs")
	kit.Lacks(t, "after it was closed", s.must(0, "status"), "more than once")
}

// Nothing is released unasked: inside the daemon and beside none.
func TestRelease_I2_AsksBeforeItSends(t *testing.T) {
	t.Parallel()
	lost := emulator.Rule{Op: "upload", Rate: 1, Fault: emulator.Fault{Kind: emulator.Abort}}
	away := emulator.Rule{Op: "status", Rate: 1, Fault: emulator.Fault{Kind: emulator.Abort}}
	emu, url := serveEmulator(t, emulator.Config{ArchiveMin: time.Millisecond, ArchiveMax: time.Millisecond, Faults: emulator.Faults{Rules: []emulator.Rule{lost}}})
	s := newSite(t, url, strings.Replace(fast, "20s", "24h", 1))
	s.dropped("acme", "lost", 1)
	p := s.start("run")
	state := func(want string) bool { out, _ := s.vaultd("list"); return strings.Contains(out, want) }
	kit.Await(t, "it to be unclear", func() bool { return state("unclear") })
	kit.Must(t, emu.SetFaults(emulator.Faults{Rules: []emulator.Rule{lost, away}}))
	registered := emu.CountCalls("register")
	refused := func(where string) {
		out := s.must(exitUnavailable, "release", "lost 00", "--reason", "nothing arrived")
		if !strings.Contains(out, "the archive must be asked first") || !state("unclear") || emu.CountCalls("register") != registered {
			t.Errorf("%s the daemon:\n%s", where, out)
		}
	}
	refused("inside")
	p.stop(t)
	refused("beside")
	kit.Must(t, emu.SetFaults(emulator.Faults{}))
	kit.Holds(t, "out", s.must(0, "release", "lost 00", "--reason", "nothing arrived"), "possibly double for ever")
	s.start("run")
	kit.Await(t, "it to be archived", func() bool { return state("archived") })
	s.must(0, "verify")
}

// I32: sixteen years on, documents that the archive has removed are expected to
// be gone where the contract's years are configured, and the audit counts them.
// Otherwise they are missing.
func TestReconcile_I32_SixteenYearsOn(t *testing.T) {
	t.Parallel()
	_, url := serveEmulator(t, emulator.Config{}) // its archive is empty: all has left it
	s := newSite(t, url, fast)
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: filepath.Join(s.dir, "state")}))(t)
	then := time.Now().AddDate(-16, 0, 0)
	seal, doc := sealed("Otto 19", 1000)
	rs, err := l.Apply(t.Context(), ledger.Change{Key: archive.NewKey(then), At: archive.Instant{Wall: then}, Document: doc, Events: []ledger.Event{
		ledger.ClaimedFolder{Route: ledger.Vault, Vault: "ACME", Drop: "acme", Folder: "Otto 19"}, seal, ledger.RegisterIntended{},
		fill.Ticket("bum-1", then, ledger.Vault), ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal},
		ledger.StatusSeen{Receipt: archive.Receipt{Remote: "bum-1", Status: archive.Successful, Updated: then, Record: []byte("{}")}, Grace: time.Hour},
		ledger.PlaceIntended{Dest: "_archived/x"}, ledger.Placed{}}})
	kit.Need(t, err == nil && rs[0].Err == nil, "err = %v, rs = %v, want no error, rs[0].Err = nil", err, rs)
	kit.Must(t, l.Close())
	out := s.must(exitDifferences, "reconcile")
	kit.Check(t, strings.Contains(out, "  MISSING    1\n") && !strings.Contains(out, "ended"), "retention is not known:\n%s", out)
	text := kit.Value(os.ReadFile(s.config))(t)
	kit.Must(t, os.WriteFile(s.config, []byte(strings.ReplaceAll(string(text), "settle: 300ms", "settle: 300ms, retention: 10y")), 0o640))
	if out := s.must(0, "reconcile"); !strings.Contains(out, "  ended      1 document: not in the index any more, and the retention is over\n") || !strings.Contains(out, "nothing differs") {
		t.Errorf("ten years:\n%s", out)
	}
	kit.Holds(t, "ten years", s.must(0, "reconcile", "--json"), `"retentionEnded":1`)
	s.must(0, "verify")
	if out := s.must(exitDifferences, "audit", "--json"); !strings.Contains(out, `"retentionEnded":1`) || !strings.Contains(out, "The retention of 1 archived document is over") {
		t.Errorf("audit:\n%s", out)
	}
}
