package main_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// zipOf packs files given as path and content in turn.
func zipOf(t *testing.T, method uint16, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w := kit.Value(z.CreateHeader(&zip.FileHeader{Name: files[i], Method: method}))(t)
		_, err := io.WriteString(w, files[i+1])
		kit.Need(t, err == nil, "error: %v", err)
	}
	kit.Must(t, z.Close())
	return b.Bytes()
}

// store is an archive that gives one package, and only for what it belongs to.
type store struct {
	t      *testing.T
	zip    []byte
	status int  // zero: 200
	hangUp bool // in the middle of the answer
	asks   int
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.asks++; r.URL.Path != "/v1/vaults/V-1/documents/bum-1" {
		s.t.Errorf("asked for %s", r.URL.Path)
	}
	if s.status != 0 {
		w.WriteHeader(s.status)
		return
	}
	w.Write(s.zip)
	if s.hangUp {
		http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
}

// stored is an archived entry whose package has these bytes.
func stored(t *testing.T, s *shelf, pack []byte, files ...string) ledger.Entry {
	t.Helper()
	seal, doc := sealed("Müller 4711", int64(len(pack)))
	doc.Files = nil
	for i := 0; i < len(files); i += 2 {
		doc.Files = append(doc.Files, archive.File{Path: files[i], Size: int64(len(files[i+1])), SHA256: archive.Sum([]byte(files[i+1]))})
	}
	seal.Package.SHA256 = archive.Sum(pack)
	seal.Seal = doc.Seal(seal.Package)
	s.tell("Müller 4711", noon, doc, seal)
	s.tell("Müller 4711", noon, nil, ledger.RegisterIntended{},
		fill.Ticket("bum-1", noon, ledger.Vault), ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal})
	return s.says("Müller 4711", noon, "bum-1", archive.Successful)
}

func TestDownload_I4_IdenticalOrSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	sent := []string{"rechnung.pdf", strings.Repeat("pdf", 1000), "Anlagen/zähler.csv", "a;b"}
	pack := zipOf(t, zip.Deflate, sent...)
	huge := zipOf(t, zip.Deflate, "rechnung.pdf", strings.Repeat("0", 50<<20), sent[2], sent[3])
	type row struct {
		got  []byte
		code int
		says string
	}
	kit.Rows(t, map[string]row{
		"Identical":      {pack, exitDone, "identical with what was sent"},
		"PackedAnew":     {zipOf(t, zip.Store, sent...), exitDone, "the container differs, it was packed anew"},
		"OtherOrder":     {zipOf(t, zip.Store, sent[2], sent[3], sent[0], sent[1]), exitDone, "all 2 files inside have the recorded content"},
		"OtherNameForm":  {zipOf(t, zip.Store, sent[0], sent[1], "Anlagen/za\u0308hler.csv", sent[3]), exitDone, "packed anew"},
		"OtherContent":   {zipOf(t, zip.Store, sent[0], strings.Repeat("PDF", 1000), sent[2], sent[3]), exitDifferences, `"rechnung.pdf" has another content`},
		"Longer":         {zipOf(t, zip.Store, sent[0], sent[1]+"x", sent[2], sent[3]), exitDifferences, "another content"},
		"Missing":        {zipOf(t, zip.Store, sent[0], sent[1]), exitDifferences, `"Anlagen/zähler.csv" is missing`},
		"More":           {zipOf(t, zip.Store, append([]string{"more\x1b.txt", "x"}, sent...)...), exitDifferences, `"more\x1b.txt" is more than what was sent`},
		"Twice":          {zipOf(t, zip.Store, append([]string{sent[2], "a;b"}, sent...)...), exitDifferences, "more than what was sent"},
		"NoZIP":          {[]byte("not a zip at all"), exitUnavailable, "what came is not a ZIP file"},
		"CutOff":         {pack[:len(pack)-10], exitDifferences, "cannot be read"},
		"Nothing":        {nil, exitUnavailable, "what came is not a ZIP file"},
		"GrowsUnpacked":  {huge, exitDifferences, "another content"},
		"DamagedContent": {bytes.Replace(zipOf(t, zip.Store, sent...), []byte("a;b"), []byte("a,b"), 1), exitDifferences, "cannot be read"},
	}, func(t *testing.T, row row) {
		s := newShelf(t)
		stored(t, s, pack, sent...)
		from := &store{t: t, zip: row.got}
		s.archiveIs(from.ServeHTTP)
		out, errs, code := s.reach("fetch", "Müller 4711", "-o", "-")
		if row.code == exitUnavailable { // what came is thrown away
			row.got = nil
		}
		kit.Check(t, code == row.code && strings.Contains(errs, row.says) && out == string(row.got) && from.asks == 1,
			"exit %d, %d bytes\n%s", code, len(out), errs)
		kit.Holds(t, "says nothing about money", errs, "may charge")
		left, err := os.ReadDir(filepath.Join(s.cfg.StateDir, "spool"))
		kit.Check(t, err == nil && len(left) == 0, "left behind %v, %v", left, err)
	})
}

// I3, I4, I26: what is archived after an upload without Content-MD5 and without
// an answer is a need until a download was compared and is the same. A download
// that differs is another need, of every surface, until one is the same.
func TestDownload_I4_I26_EndsTheWaitForAComparison(t *testing.T) {
	t.Parallel()
	sent := []string{"rechnung.pdf", strings.Repeat("pdf", 1000)}
	pack := zipOf(t, zip.Deflate, sent...)
	type row struct {
		got  []byte
		ends bool
	}
	kit.Rows(t, map[string]row{"Same": {pack, true}, "PackedAnew": {zipOf(t, zip.Store, sent...), true}, "Other": {zipOf(t, zip.Store, sent[0], "x"), false}}, func(t *testing.T, row row) {
		s := newShelf(t)
		seal, doc := sealed("Müller 4711", int64(len(pack)))
		doc.Files = []archive.File{{Path: sent[0], Size: int64(len(sent[1])), SHA256: archive.Sum([]byte(sent[1]))}}
		seal.Package.SHA256 = archive.Sum(pack)
		seal.Seal = doc.Seal(seal.Package)
		s.tell("Müller 4711", noon, doc, seal)
		s.tell("Müller 4711", noon, nil, ledger.RegisterIntended{}, fill.Ticket("bum-1", noon, ledger.Vault),
			ledger.UploadIntended{WithoutMD5: true}, ledger.UploadUnanswered{})
		s.says("Müller 4711", noon, "bum-1", archive.Successful)
		needed := func() (what []string) {
			for _, n := range s.summary().Needs {
				if n.What != "binding" { // the archive answers at another address
					what = append(what, fmt.Sprint(n.What, " ", n.Count))
				}
			}
			return what
		}
		kit.Want(t, "needed before", needed(), []string{"not-compared 1"})
		out, _, code := s.say("status")
		kit.Want(t, "exit code of status", code, exitPerson)
		kit.Holds(t, "status", out, "archived after an upload without an answer", "vaultd fetch X")
		why, _, _ := s.say("why", "Müller 4711")
		kit.Holds(t, "why", why, "NOT COMPARED", "vaultd fetch")
		from := &store{t: t, zip: row.got}
		s.archiveIs(from.ServeHTTP)
		s.reach("fetch", "Müller 4711", "-o", "-")
		if !row.ends {
			kit.Want(t, "needed after", needed(), []string{"download-differs 1"})
			out, _, code := s.say("audit", "--format", "json")
			kit.Want(t, "exit code of the audit", code, exitDifferences)
			kit.Holds(t, "the audit", out, `"code":"not-complete"`, `"what":"download-differs"`, "1 differ")
			from.zip = pack
			s.reach("fetch", "Müller 4711", "-o", "-")
		}
		kit.Want(t, "needed at the end", len(needed()), 0)
	})
}

func TestDownload_ErasedListCannotBeCompared(t *testing.T) {
	s := newShelf(t)
	stored(t, s, []byte("PK\x03\x04 sent"))
	from := &store{t: t, zip: []byte("PK\x03\x04 other")}
	s.archiveIs(from.ServeHTTP)
	if _, errs, code := s.reach("fetch", "Müller 4711", "-o", "-"); code != exitDifferences || !strings.Contains(errs, "the list of its files is erased") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

func TestDownload_FailuresByCause(t *testing.T) {
	type row struct {
		from store
		code int
	}
	kit.Rows(t, map[string]row{
		"NotThere":  {store{status: http.StatusNotFound}, exitFailed},
		"Refused":   {store{status: http.StatusForbidden}, exitRights},
		"Busy":      {store{status: http.StatusServiceUnavailable}, exitTemporary},
		"BrokenOff": {store{zip: []byte("PK\x03\x04 a part"), hangUp: true}, exitUnavailable},
	}, func(t *testing.T, row row) {
		s := newShelf(t)
		stored(t, s, []byte("PK"))
		row.from.t = t
		s.archiveIs(row.from.ServeHTTP)
		dir := t.TempDir()
		_, errs, code := s.reach("fetch", "Müller 4711", "-o", filepath.Join(dir, "x.zip"))
		kit.Check(t, code == row.code, "exit %d, want %d: %s", code, row.code, errs)
		left, err := os.ReadDir(dir)
		kit.Check(t, err == nil && len(left) == 0, "left behind %v, %v", left, err)
	})
	s := newShelf(t)
	stored(t, s, []byte("PK"))
	s.archiveIs(nil)
	s.edit("http://127.0.0.1:", "http://127.0.0.1:1 #")
	refused(s.reach("fetch", "Müller 4711", "-o", "-"))(t, "unreachable", exitUnavailable)
}

func TestFetch_WritesWholeFilesAndNeverOver(t *testing.T) {
	for name, row := range map[string]struct {
		before map[string]string
		force  bool
		daemon int // the exit code of the daemon
		code   int
		after  map[string]string
	}{
		"New":             {nil, false, exitDone, exitDone, map[string]string{"x.zip": "new"}},
		"There":           {map[string]string{"x.zip": "old"}, false, exitDone, exitCreate, map[string]string{"x.zip": "old"}},
		"Forced":          {map[string]string{"x.zip": "old"}, true, exitDone, exitDone, map[string]string{"x.zip": "new"}},
		"Differs":         {nil, false, exitDifferences, exitDifferences, map[string]string{"x.zip.differs": "new"}},
		"DiffersForced":   {map[string]string{"x.zip": "old"}, true, exitDifferences, exitDifferences, map[string]string{"x.zip": "old", "x.zip.differs": "new"}},
		"DiffersTwice":    {map[string]string{"x.zip.differs": "old"}, false, exitDifferences, exitCreate, map[string]string{"x.zip.differs": "old"}},
		"Failed":          {nil, false, exitFailed, exitFailed, nil},
		"FailedForced":    {map[string]string{"x.zip": "old"}, true, exitFailed, exitFailed, map[string]string{"x.zip": "old"}},
		"RefusedByDaemon": {nil, false, exitRights, exitRights, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s, dir := newShelf(t), t.TempDir()
			for n, content := range row.before {
				kit.Must(t, os.WriteFile(filepath.Join(dir, n), []byte(content), 0o600))
			}
			asked := false
			s.standIn(func(out io.Writer) int {
				asked = true
				_, _ = io.WriteString(out, "new") // the client tells
				return row.daemon
			})
			code, _, errs := s.ask(t, "fetch", "x", "-o", filepath.Join(dir, "x.zip"), fmt.Sprint("--force=", row.force))
			kit.Check(t, code == row.code && (name != "There" || !asked),
				"exit %d, want %d, %s, asked %v", code, row.code, errs, asked)
			left, err := os.ReadDir(dir)
			kit.Check(t, err == nil && len(left) == len(row.after), "there are %v, %v", left, err)
			for n, want := range row.after {
				got, err := os.ReadFile(filepath.Join(dir, n))
				kit.Check(t, string(got) == want, "%s holds %q, %v", n, got, err)
			}
		})
	}
}

// The file that fetch writes where none is named has the folder's name, as every system takes it.
func TestFetch_NameFitsEverywhere(t *testing.T) {
	s := newShelf(t)
	n := 0
	name := func(folder string) string {
		n++
		remote := archive.RemoteID(fmt.Sprint("bum-", n))
		s.send(folder, noon, remote)
		s.says(folder, noon, remote, archive.Successful)
		out, errs, code := s.say("fetch", "--print-name", s.keys[folder].String())
		kit.Check(t, code == exitDone, "%q: exit %d: %s", folder, code, errs)
		return out
	}
	for folder, want := range map[string]string{
		"Müller 4711": "Müller 4711.zip", "../../etc/passwd": "_.._etc_passwd.zip", "-rf": "rf.zip", ".hidden": "hidden.zip",
		"a:b*c?\"<>|\\": "a_b_c______.zip", "x\x1b[2J\u202e": "x_[2J_.zip", "\xff": "_.zip",
	} {
		if got := name(folder); got != want {
			t.Errorf("%q: %q, want %q", folder, got, want)
		}
	}
	if got := name(strings.Repeat("ä", 300)); len(got) > 204 || !strings.HasSuffix(got, "ä.zip") {
		t.Errorf(`got = %v, want len(got) <= 204, got that ends with "ä.zip"`, got)
	}
	if got := name("..."); got != s.keys["..."].String()+".zip" {
		t.Errorf("got = %v, want got = %v", got, s.keys["..."].String()+".zip")
	}
}

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
	b, err := os.ReadFile(file)
	kit.Check(t, err == nil && bytes.HasPrefix(b, []byte("PK")), "%d bytes, %v", len(b), err)
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
	type row struct {
		live func(s *shelf)
		says string
	}
	kit.Rows(t, map[string]row{
		"Quarantined": {func(s *shelf) {
			s.tell("Otto 19", noon, nil, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "cross-wired", Text: "x"}})
		}, `a registration of "Otto 19" (acme-in), which is quarantined here and not archived under this number; it is compared with the ZIP of that folder`},
		"Contradicted": {func(s *shelf) {
			s.says("Otto 19", noon, "bum-1", archive.Successful)
			s.says("Otto 19", noon, "bum-1", archive.Failed)
		}, `is "Otto 19" (acme-in), archived`},
	}, func(t *testing.T, row row) {
		s := newShelf(t)
		s.send("Otto 19", noon, "bum-1")
		row.live(s)
		out, _, _ := s.say("why", "Otto 19")
		want := "vaultd fetch --vault V-1 --bumid bum-1"
		kit.Check(t, strings.Contains(out, want), "why does not offer %q:\n%s", want, out)
		from := &store{t: t, zip: zipOf(t, 0, "rechnung.pdf", pdfOf("Otto 19"))}
		s.archiveIs(from.ServeHTTP)
		got, errs, code := s.reach("fetch", "--vault=V-1", "--bumid=bum-1", "-o", "-")
		if code != exitDone || !strings.Contains(errs, row.says) || !strings.Contains(errs, "the container differs, it was packed anew") || got != string(from.zip) {
			t.Errorf("exit %d, %d bytes:\n%s", code, len(got), errs)
		}
	})
}
