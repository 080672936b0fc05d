package main

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// zipOf packs files given as path and content in turn.
func zipOf(t *testing.T, method uint16, files ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(files); i += 2 {
		w, err := z.CreateHeader(&zip.FileHeader{Name: files[i], Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, files[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// store is an archive that gives one package, and only for what it belongs to.
type store struct {
	t    *testing.T
	zip  []byte
	err  error
	asks int
}

func (s *store) Download(_ context.Context, v archive.VaultID, r archive.RemoteID, w io.Writer) (int64, archive.Digest, error) {
	if s.asks++; v != "V-1" || r != "bum-1" {
		s.t.Errorf("asked for %s in %s", r, v)
	}
	n, err := w.Write(s.zip)
	return int64(n), archive.Sum(s.zip), errors.Join(err, s.err)
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
		ledger.TicketReceived{Ticket: archive.Ticket{Remote: "bum-1", URL: urlCanary}}, ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal})
	return s.says("Müller 4711", noon, "bum-1", archive.Successful)
}

func TestDownload_I4_IdenticalOrSaysWhatDiffers(t *testing.T) {
	t.Parallel()
	sent := []string{"rechnung.pdf", strings.Repeat("pdf", 1000), "Anlagen/zähler.csv", "a;b"}
	pack := zipOf(t, zip.Deflate, sent...)
	huge := zipOf(t, zip.Deflate, "rechnung.pdf", strings.Repeat("0", 50<<20), sent[2], sent[3])
	for name, row := range map[string]struct {
		got  []byte
		code int
		says string
	}{
		"Identical":      {pack, exitDone, "identical with what was sent"},
		"PackedAnew":     {zipOf(t, zip.Store, sent...), exitDone, "the container differs, it was packed anew"},
		"OtherOrder":     {zipOf(t, zip.Store, sent[2], sent[3], sent[0], sent[1]), exitDone, "all 2 files inside have the recorded content"},
		"OtherNameForm":  {zipOf(t, zip.Store, sent[0], sent[1], "Anlagen/za\u0308hler.csv", sent[3]), exitDone, "packed anew"},
		"OtherContent":   {zipOf(t, zip.Store, sent[0], strings.Repeat("PDF", 1000), sent[2], sent[3]), exitDifferences, `"rechnung.pdf" has another content`},
		"Longer":         {zipOf(t, zip.Store, sent[0], sent[1]+"x", sent[2], sent[3]), exitDifferences, "another content"},
		"Missing":        {zipOf(t, zip.Store, sent[0], sent[1]), exitDifferences, `"Anlagen/zähler.csv" is missing`},
		"More":           {zipOf(t, zip.Store, append([]string{"more\x1b.txt", "x"}, sent...)...), exitDifferences, `"more\x1b.txt" is more than what was sent`},
		"Twice":          {zipOf(t, zip.Store, append([]string{sent[2], "a;b"}, sent...)...), exitDifferences, "more than what was sent"},
		"NoZIP":          {[]byte("not a zip at all"), exitDifferences, "cannot be read"},
		"CutOff":         {pack[:len(pack)-10], exitDifferences, "cannot be read"},
		"Nothing":        {nil, exitDifferences, "cannot be read"},
		"GrowsUnpacked":  {huge, exitDifferences, "another content"},
		"DamagedContent": {bytes.Replace(zipOf(t, zip.Store, sent...), []byte("a;b"), []byte("a,b"), 1), exitDifferences, "cannot be read"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			e := stored(t, s, pack, sent...)
			from := &store{t: t, zip: row.got}
			var out, errs bytes.Buffer
			a := &app{stdout: &out, stderr: &errs}
			code := exitDone
			if err := a.downloadAndCompare(t.Context(), s.view, from, archivedDownload(e), &out); err != nil {
				code = a.reportError(err)
			}
			if code != row.code || !strings.Contains(errs.String(), row.says) || !bytes.Equal(out.Bytes(), row.got) || from.asks != 1 {
				t.Errorf("exit %d, %d bytes\n%s", code, out.Len(), &errs)
			}
			if !strings.Contains(errs.String(), "may charge") {
				t.Error("says nothing about money")
			}
			if left, err := os.ReadDir(filepath.Join(s.cfg.StateDir, "spool")); err != nil || len(left) > 0 {
				t.Errorf("left behind %v, %v", left, err)
			}
		})
	}
}

func TestDownload_ErasedListCannotBeCompared(t *testing.T) {
	words, outcome := compareDownload(bytes.NewReader(nil), 3, archive.Digest{1}, ledger.Entry{Package: archive.Package{Size: 2}}, ledger.Document{})
	if outcome != ledger.FetchDiffers || !strings.Contains(words, "erased") {
		t.Error(words)
	}
}

func TestDownload_FailuresByCause(t *testing.T) {
	for name, row := range map[string]struct {
		err  error
		code int
	}{
		"NotThere":    {&apicall.Error{Outcome: apicall.NotProcessed, Status: 404, Text: "404"}, exitFailed},
		"Refused":     {&apicall.Error{Outcome: apicall.NotProcessed, Denied: true, Text: "403"}, exitRights},
		"Busy":        {&apicall.Error{Outcome: apicall.NotProcessed, Status: 503, Text: "503"}, exitTemporary},
		"Unreachable": {&apicall.Error{Outcome: apicall.NotSent, Text: "dial"}, exitUnavailable},
		"BrokenOff":   {&apicall.Error{Outcome: apicall.OutcomeUnknown, Text: "reset"}, exitUnavailable},
		"Stopped":     {context.Canceled, exitTemporary},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShelf(t)
			e := stored(t, s, []byte("PK"))
			dir := t.TempDir()
			a := &app{stdout: io.Discard, stderr: io.Discard}
			err := a.intoFile(fetchFlags{output: filepath.Join(dir, "x.zip")}, func(w io.Writer) error {
				return a.downloadAndCompare(t.Context(), s.view, &store{t: t, zip: []byte("PK"), err: row.err}, archivedDownload(e), w)
			})
			if code, _ := exitCodeOf(err); code != row.code {
				t.Errorf("exit %d, %v", code, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind %v, %v", left, err)
			}
		})
	}
}

func TestFetch_WritesWholeFilesAndNeverOver(t *testing.T) {
	differs := fail(exitDifferences, errors.New("it differs"), "")
	for name, row := range map[string]struct {
		before map[string]string
		force  bool
		result error
		code   int
		after  map[string]string
	}{
		"New":             {nil, false, nil, exitDone, map[string]string{"x.zip": "new"}},
		"There":           {map[string]string{"x.zip": "old"}, false, nil, exitCreate, map[string]string{"x.zip": "old"}},
		"Forced":          {map[string]string{"x.zip": "old"}, true, nil, exitDone, map[string]string{"x.zip": "new"}},
		"Differs":         {nil, false, differs, exitDifferences, map[string]string{"x.zip.differs": "new"}},
		"DiffersForced":   {map[string]string{"x.zip": "old"}, true, differs, exitDifferences, map[string]string{"x.zip": "old", "x.zip.differs": "new"}},
		"DiffersTwice":    {map[string]string{"x.zip.differs": "old"}, false, differs, exitCreate, map[string]string{"x.zip.differs": "old"}},
		"Failed":          {nil, false, errors.New("no"), exitFailed, nil},
		"FailedForced":    {map[string]string{"x.zip": "old"}, true, errors.New("no"), exitFailed, map[string]string{"x.zip": "old"}},
		"DifferedInside":  {nil, false, failSilently(exitDifferences), exitDifferences, map[string]string{"x.zip.differs": "new"}},
		"RefusedByDaemon": {nil, false, failSilently(exitRights), exitRights, nil},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for n, content := range row.before {
				if err := os.WriteFile(filepath.Join(dir, n), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			a := &app{stdout: io.Discard, stderr: io.Discard}
			asked := false
			err := a.intoFile(fetchFlags{output: filepath.Join(dir, "x.zip"), force: row.force}, func(w io.Writer) error {
				asked = true
				_, err := io.WriteString(w, "new")
				return errors.Join(err, row.result)
			})
			code := exitDone
			if err != nil {
				code, _ = exitCodeOf(err)
			}
			if code != row.code || name == "There" && asked {
				t.Errorf("exit %d, %v, asked %v", code, err, asked)
			}
			left, err := os.ReadDir(dir)
			if err != nil || len(left) != len(row.after) {
				t.Errorf("there are %v, %v", left, err)
			}
			for n, want := range row.after {
				if got, err := os.ReadFile(filepath.Join(dir, n)); string(got) != want {
					t.Errorf("%s holds %q, %v", n, got, err)
				}
			}
		})
	}
}

func TestFetch_NameFitsEverywhere(t *testing.T) {
	for folder, want := range map[string]string{
		"Müller 4711": "Müller 4711.zip", "../../etc/passwd": "_.._etc_passwd.zip", "-rf": "rf.zip", ".hidden": "hidden.zip",
		"a:b*c?\"<>|\\": "a_b_c______.zip", "x\x1b[2J\u202e": "x_[2J_.zip", "\xff": "_.zip",
	} {
		if got := fileName(ledger.Entry{Folder: folder}); got != want {
			t.Errorf("%q: %q, want %q", folder, got, want)
		}
	}
	if got := fileName(ledger.Entry{Folder: strings.Repeat("ä", 300)}); len(got) > 204 || !strings.HasSuffix(got, "ä.zip") {
		t.Error(got)
	}
	key := archive.NewKey(noon)
	if got := fileName(ledger.Entry{Key: key, Folder: "..."}); got != key.String()+".zip" {
		t.Error(got)
	}
}
