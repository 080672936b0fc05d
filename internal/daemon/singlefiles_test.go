package daemon

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/operator"
	"vaultd/internal/packager"
	"vaultd/internal/test/kit"
)

// pdfFlow is a PDF service in memory that complains: of a request that is not the configured one, of bytes that are not the
// registered document's, and of a second delivery of one content.
type pdfFlow struct {
	t   *testing.T
	now func() archive.Instant
	mu  sync.Mutex

	slots    map[archive.RemoteID]archive.ID
	contents map[string]int // what was delivered, how often; guarded by mu
	mayTwice bool
}

func (s *pdfFlow) Register(_ context.Context, v archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const want = `{"receivingEmailAddress":"ap@in.example","notificationEmailAddress":"clerk@acme.example"}`
	kit.Check(s.t, v == "" && len(frozen) == 1 && string(frozen[0].Metadata) == want,
		"registered for vault %q: %q, want none and one with %s", v, frozen, want)
	r := archive.RemoteID(fmt.Sprintf("P-%d", len(s.slots)+1))
	s.slots[r] = frozen[0].ID
	return archive.RegisterResult{Tickets: map[archive.ID]archive.Ticket{frozen[0].ID: {Remote: r, URL: archive.PresignedURL("https://store.example/" + string(r)), Sent: s.now(), Validity: time.Hour}}}, nil
}

func (*pdfFlow) OmitsMD5(archive.PresignedURL) bool { return false }
func (*pdfFlow) HostsWithoutMD5() []string          { return nil }

func (s *pdfFlow) Upload(_ context.Context, t archive.Ticket, p archive.Package) (archive.Digest, string, error) {
	data, err := os.ReadFile(p.Path)
	if err != nil {
		return archive.Digest{}, "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := archive.Sum(data)
	if id := s.slots[t.Remote]; !s.mayTwice && id != archive.DerivePDFID("ap@in.example", sum) || sum != p.SHA256 {
		s.t.Errorf("slot %s got bytes with digest %s, want %s", t.Remote, sum, p.SHA256)
	}
	if s.contents[string(data)]++; s.contents[string(data)] > 1 && !s.mayTwice {
		s.t.Errorf("%q was delivered twice, want once", data)
	}
	return sum, "", nil
}

func (s *pdfFlow) delivered() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.contents)
}

// withPDFDrop runs a daemon whose drop folder takes single PDFs.
func withPDFDrop(t *testing.T, change func(*Config), test func(h *testDaemon, s *pdfFlow)) {
	s := &pdfFlow{t: t, slots: map[archive.RemoteID]archive.ID{}, contents: map[string]int{}}
	withConfiguredDaemon(t, func(c *Config) {
		s.now = c.Now
		c.Routes = map[ledger.Route]ingest.Route{ledger.PDF: {Client: s, Workers: 2, BatchSize: 1}}
		d := &c.Drops[0]
		*d = dropwork.Settings{Name: "ap-scans", Path: d.Path, Route: ledger.PDF, Receiving: "ap@in.example", Notify: "clerk@acme.example", MaxPDF: 1_000_000,
			Mode: d.Mode, Settle: d.Settle, Rescan: d.Rescan}
		if change != nil {
			change(c)
		}
	}, func(h *testDaemon) { test(h, s) })
}

// scan drops a PDF with some text in it.
func (h *testDaemon) scan(name, text string) {
	h.t.Helper()
	h.must(os.WriteFile(filepath.Join(h.path, name), []byte("%PDF-1.7\n"+text+"\n%%EOF\n"), 0o660))
}

// awaitTaken waits until something is taken. The first look at the drop folder may come before or after a test drops something; the next one
// comes a minute later.
func (h *testDaemon) awaitTaken() {
	h.t.Helper()
	for range 180 {
		if got, _ := h.entries(); len(got) > 0 {
			return
		}
		time.Sleep(time.Second)
		synctest.Wait()
	}
	h.t.Fatal("no file was taken within three minutes, want one")
}

func (h *testDaemon) reason(folder string) string {
	h.t.Helper()
	text := kit.Value(os.ReadFile(filepath.Join(h.path, folder, "_REASON.txt")))(h.t)
	return strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n")
}

// I18: a PDF goes from the drop folder to the service, and lies beside its note then, byte for byte.
func TestPDFDrop_I18_FromTheDropToItsNote(t *testing.T) {
	withPDFDrop(t, nil, func(h *testDaemon, s *pdfFlow) {
		h.scan("scan7.pdf", "seven")
		h.must(os.Mkdir(filepath.Join(h.path, "Mai"), 0o770))
		e := h.becomes("scan7.pdf delivered")[0]
		if e.Route != ledger.PDF || e.Vault != "" || e.Dest != "_delivered/2000-01/scan7.pdf" || e.Content != e.Package.SHA256 || s.delivered() != 1 {
			t.Errorf("entry = %+v after %d deliveries, want one of the PDF route in _delivered/2000-01 after 1", e, s.delivered())
		}
		for name, words := range map[string]string{"scan7.pdf": "seven", "_DELIVERED.txt": "ap@in.example", "_DELIVERED.json": e.Package.SHA256.String()} {
			text, err := os.ReadFile(filepath.Join(h.path, e.Dest, name))
			kit.Check(t, err == nil && strings.Contains(string(text), words), "%s = %q (error %v), want it to hold %q", name, text, err, words)
		}
		kit.Len(t, "left in the spool", kit.Value(os.ReadDir(filepath.Join(h.cfg.StateDir, "spool")))(t), 0)
		kit.Holds(t, "status file", h.status(), "is a folder; this drop takes single PDFs")
	})
}

// I2: the same PDF again, under any name, is not sent again, unless the drop says so.
func TestPDFDrop_I2_TheSamePDFAgain(t *testing.T) {
	t.Parallel()
	type row struct {
		sends bool
		want  string
	}
	kit.Rows(t, map[string]row{"Return": {false, "again.pdf duplicate"}, "Send": {true, "again.pdf delivered"}}, func(t *testing.T, row row) {
		withPDFDrop(t, func(c *Config) { c.Drops[0].SendsSamePDF = row.sends }, func(h *testDaemon, s *pdfFlow) {
			s.mayTwice = row.sends
			h.scan("scan7.pdf", "seven")
			h.pass()
			h.scan("again.pdf", "seven")
			h.becomes("scan7.pdf delivered", row.want)
			if !row.sends {
				kit.Holds(t, "reason", h.reason("_duplicates/again.pdf"), `ALREADY SENT on 1 Jan 2000 as "scan7.pdf". Nothing to do.`)
			}
		})
	})
}

// Each hostile file has its verdict, in words that a clerk understands, and delays no good neighbour (I23).
func TestPDFDrop_I23_HostileFiles(t *testing.T) {
	const refused, stays, delivered = "rejected", "", "delivered"
	write := func(content string) func(h *testDaemon, at string) error {
		return func(_ *testDaemon, at string) error { return os.WriteFile(at, []byte(content), 0o660) }
	}
	rows := map[string]struct {
		make func(h *testDaemon, at string) error
		want string
		says string
	}{
		"empty.pdf":  {write(""), refused, `NOT SENT. "empty.pdf" is empty`},
		"brief.docx": {write("PK\x03\x04 words"), refused, `NOT SENT. "brief.docx" is no PDF. Save it as PDF, then move the PDF back to ap-scans (where _STATUS.txt lies).`},
		"cut.pdf":    {write("%PDF-1.7\n"), refused, `NOT SENT. "cut.pdf" is no PDF.`},
		"blank.pdf":  {write(strings.Repeat("\x00", 4096)), refused, `NOT SENT. "blank.pdf" is no PDF.`},
		"big.pdf":    {write("%PDF-1.7" + strings.Repeat("x", 1_000_000) + "%%EOF"), refused, "the service takes 1.0 MB"},
		"sparse.pdf": {func(_ *testDaemon, at string) error {
			return errors.Join(write("%PDF-")(nil, at), os.Truncate(at, 100_000_000_000))
		}, refused, "Save it as a smaller PDF"},
		"hard.pdf": {func(h *testDaemon, at string) error {
			return errors.Join(write("%PDF-1 hard %%EOF")(h, at), os.Link(at, h.path+"-hard"))
		}, refused, "is a hard link"},
		"a\nb.pdf":               {write("%PDF-1 newline %%EOF"), refused, "line break"},
		"\x1b[2J.pdf":            {write("%PDF-1 escape %%EOF"), refused, "control character"},
		"a\xff.pdf":              {write("%PDF-1 invalid %%EOF"), refused, "UTF-8"},
		`..\x.pdf`:               {write("%PDF-1 backslash %%EOF"), refused, "backslash"},
		"a\u202ef":               {write("%PDF-1 turned %%EOF"), refused, "reading direction"},
		"link.pdf":               {func(h *testDaemon, at string) error { return os.Symlink(h.path+"/good.pdf", at) }, stays, "a link: copy the PDF itself here"},
		"fifo.pdf":               {func(_ *testDaemon, at string) error { return syscall.Mkfifo(at, 0o660) }, stays, "is no file"},
		"Mai":                    {func(_ *testDaemon, at string) error { return os.Mkdir(at, 0o770) }, stays, "is a folder; this drop takes single PDFs"},
		"_status.TXT":            {write("%PDF-1 reserved %%EOF"), stays, "rename the file"},
		"x.pdf.part":             {write("%PDF-1 part %%EOF"), stays, "x.pdf.part"},
		"CON":                    {write("%PDF-1 con %%EOF"), delivered, ""},
		"-rf":                    {write("%PDF-1 dash %%EOF"), delivered, ""},
		"GOOD.PDF":               {write("%PDF-1 twin %%EOF"), delivered, ""},
		"_scan.pdf":              {write("%PDF-1 underscore %%EOF"), delivered, ""},
		"<b>.pdf":                {write("%PDF-1 html %%EOF"), delivered, ""},
		"Mu\u0308.pdf":           {write("%PDF-1 nfd %%EOF"), delivered, ""},
		strings.Repeat("L", 255): {write("%PDF-1 long %%EOF"), delivered, ""},
	}
	withPDFDrop(t, nil, func(h *testDaemon, s *pdfFlow) {
		for name, row := range rows {
			h.must(row.make(h, filepath.Join(h.path, name)))
		}
		h.scan("good.pdf", "good")
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		_, all := h.entries()
		good := false
		for _, e := range all {
			good = good || e.Folder == "good.pdf" && e.State == ledger.Delivered
		}
		kit.Check(t, good, "good.pdf is not delivered, want it delivered before the others end")
		h.pass()
		status := h.status()
		byName := map[string]ledger.Entry{}
		_, all = h.entries()
		for _, e := range all {
			byName[e.Folder] = e
		}
		for name, row := range rows {
			e, taken := byName[name]
			switch {
			case row.want == stays:
				if _, err := os.Lstat(filepath.Join(h.path, name)); taken || err != nil || !strings.Contains(status, row.says) {
					t.Errorf("%q: taken %t (%v), want it left, and the status file to hold %q:\n%s", name, taken, err, row.says, status)
				}
			case !taken || e.State.String() != row.want:
				t.Errorf("%q: taken %t, %s (%s), want it taken and %s", name, taken, e.State, e.Cause.Text, row.want)
			case row.want == refused:
				kit.Holds(t, "reason of "+name, h.reason(e.Dest), row.says)
				kit.Lacks(t, "reason of "+name, h.reason(e.Dest), "ARCHIVED")
				kit.Value(os.Lstat(filepath.Join(h.path, e.Dest, name)))(t)
			}
		}
		kit.Want(t, "deliveries", s.delivered(), 8)
	})
}

// I17: a file that goes on growing after it was taken, where the kernel does
// not tell that it is open, settles once more, and is sent whole.
func TestPDFDrop_I17_GrowsAfterItWasTaken(t *testing.T) {
	var held *os.File
	withPDFDrop(t, withoutLeases, func(h *testDaemon, s *pdfFlow) {
		time.Sleep(time.Second)
		h.scan("scan7.pdf", "first page")
		var err error
		held, err = os.OpenFile(filepath.Join(h.path, "scan7.pdf"), os.O_WRONLY|os.O_APPEND, 0)
		h.must(err)
		defer held.Close()
		for range 100 { // it is taken when two looks after its last change found it the same
			time.Sleep(2 * time.Second)
			if _, all := h.entries(); len(all) == 1 {
				break
			}
		}
		h.want("scan7.pdf discovered")
		for range 5 { // its writer holds it open, and pauses for longer than settle
			_, err = held.WriteString("another page\n%%EOF\n")
			h.must(err)
			time.Sleep(25 * time.Second)
			h.want("scan7.pdf discovered")
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		h.want("scan7.pdf delivered")
		for text := range s.contents {
			kit.Want(t, "pages that were sent", strings.Count(text, "another page"), 5)
		}
	})
}

// I1: a process that dies at any step of a claim has lost nothing: the next one takes the file once, and leaves no empty claim.
func TestPDFDrop_I1_DiesWhileItClaims(t *testing.T) {
	t.Parallel()
	for _, done := range []bool{false, true} {
		for _, at := range []string{"mkdir key", "mkdir folder", "rename", "syncdir"} {
			t.Run(fmt.Sprintf("%s/%v", at, done), func(t *testing.T) {
				withPDFDrop(t, nil, func(h *testDaemon, s *pdfFlow) {
					h.pass()
					var died, renamed atomic.Bool
					hook := durable.Hook(func(op, name string, do func() error) error {
						_, err := archive.ParseKey(name)
						isFile := name == "scan7.pdf"
						isStep := map[string]bool{
							"mkdir key": op == "mkdir" && err == nil, "mkdir folder": op == "mkdir" && isFile,
							"rename": op == "rename" && isFile, "syncdir": op == "syncdir" && renamed.Load(),
						}[at]
						if op == "rename" && isFile {
							renamed.Store(true)
						}
						switch {
						case died.Load(): // nothing is done any more
							return syscall.EIO
						case isStep && died.CompareAndSwap(false, true):
							if done {
								_ = do()
							}
							return syscall.EIO
						}
						return do()
					})
					h.files.Store(&hook)
					h.scan("scan7.pdf", "seven")
					time.Sleep(2 * time.Minute)
					synctest.Wait()
					kit.Need(t, died.Load(),
						"the step was never reached, want the process to die there: the test shows nothing")
					h.stop()
					<-h.ended // it may have ended by itself, because nobody knows what is on disk
					_ = h.d.Close()
					h.files.Store(nil)
					h.again()
					h.pass()
					kit.Want(t, "deliveries", s.delivered(), 1)
					h.want("scan7.pdf delivered")
					left, err := os.ReadDir(filepath.Join(h.path, ".vaultd", "claimed"))
					kit.Check(t, err == nil && len(left) == 0,
						"left in the claimed folder: %v (error %v), want nothing", left, err)
				})
			})
		}
	}
}

// The same PDF resolves what came back. Another one does not, whatever its name and
// place: nothing shows that it is the same document.
func TestPDFDrop_I1_CorrectionResolvesAndNothingElseDoes(t *testing.T) {
	t.Parallel()
	type row struct {
		again func(h *testDaemon) error
		want  []string
	}
	kit.Rows(t, map[string]row{
		"MovedBack": {func(h *testDaemon) error {
			return os.Rename(filepath.Join(h.path, "_rejected", "scan7.pdf", "scan7.pdf"), filepath.Join(h.path, "again.pdf"))
		}, []string{"scan7.pdf rejected resolved", "again.pdf rejected"}},
		"ScannedAgain": {func(h *testDaemon) error {
			at := filepath.Join(h.path, "_rejected", "scan7.pdf", "scan7.pdf")
			return errors.Join(os.WriteFile(at, []byte("%PDF-1.7 whole %%EOF"), 0o660), os.Rename(at, filepath.Join(h.path, "scan7.pdf")))
		}, []string{"scan7.pdf rejected", "scan7.pdf delivered"}},
		"AnotherOfThatName": {func(h *testDaemon) error { h.scan("scan7.pdf", "another"); return nil }, []string{"scan7.pdf rejected", "scan7.pdf delivered"}},
	}, func(t *testing.T, row row) {
		withPDFDrop(t, nil, func(h *testDaemon, _ *pdfFlow) {
			h.must(os.WriteFile(filepath.Join(h.path, "scan7.pdf"), []byte("no PDF yet"), 0o660))
			h.becomes("scan7.pdf rejected")
			h.must(row.again(h))
			h.becomes(row.want...)
		})
	})
}

// A rejected PDF that was put right where it lies is taken again from there, under whatever place it was given.
func TestPDFDrop_I1_RetryTakesTheReturnedPDF(t *testing.T) {
	withPDFDrop(t, nil, func(h *testDaemon, s *pdfFlow) {
		for _, half := range []string{"half", "another half"} { // the second one lies in _rejected/scan7.pdf (2)
			h.must(os.WriteFile(filepath.Join(h.path, "scan7.pdf"), []byte("no PDF yet, "+half), 0o660))
			h.pass()
		}
		old := h.want("scan7.pdf rejected", "scan7.pdf rejected")[1]
		kit.Want(t, "place of the file", old.Dest, "_rejected/scan7.pdf (2)")
		h.must(os.WriteFile(filepath.Join(h.path, old.Dest, "scan7.pdf"), []byte("%PDF-1.7 whole %%EOF"), 0o660))
		next, err := h.d.Actions().Retry(t.Context(), old, operator.Person{UID: 8})
		h.must(err)
		e := h.becomes("scan7.pdf rejected", "scan7.pdf rejected resolved", "scan7.pdf (2) delivered")[2]
		if e.Key != next.Key || e.Route != ledger.PDF || s.delivered() != 1 || e.Dest != "_delivered/2000-01/scan7.pdf (2)" {
			t.Errorf("entry = %+v after %d deliveries, want the one taken again, in _delivered/2000-01, after 1", e, s.delivered())
		}
		if left, err := os.ReadDir(filepath.Join(h.path, e.Dest)); err != nil || len(left) != 3 { // the old reason is gone: it is no longer true
			t.Errorf("files next to the PDF = %v (error %v), want 3", left, err)
		}
	})
}

// I17: a file that is exchanged at the moment of the claim settles again in its claim, and what was there at the end is sent.
func TestPDFDrop_I17_ExchangedAtTheClaim(t *testing.T) {
	withPDFDrop(t, nil, func(h *testDaemon, s *pdfFlow) {
		var once atomic.Bool
		hook := durable.Hook(func(op, name string, do func() error) error {
			if op == "mkdir" && name == "scan7.pdf" && once.CompareAndSwap(false, true) {
				at := filepath.Join(h.path, name)
				kit.Must(t, errors.Join(os.Rename(at, at+".part"), os.WriteFile(at, []byte("%PDF-1.7 another %%EOF"), 0o660)))
			}
			return do()
		})
		h.files.Store(&hook)
		h.scan("scan7.pdf", "settled")
		h.awaitTaken()
		if e := h.want("scan7.pdf discovered")[0]; !once.Load() || !e.Fingerprint.IsZero() {
			t.Errorf("exchanged %t, fingerprint = %s, want true and none: it is not the file that was quiet", once.Load(), e.Fingerprint)
		}
		h.becomes("scan7.pdf delivered")
		kit.Want(t, "deliveries by content", s.contents, map[string]int{"%PDF-1.7 another %%EOF": 1})
		kit.Want(t, "the error of Lstat", kit.Err(os.Lstat(filepath.Join(h.path, "scan7.pdf.part"))), nil)
	})
}

// I8: a drop that takes folders now does not touch what it took as single files, and goes on when its route is put back.
func TestPDFDrop_I8_RouteChangedUnderWay(t *testing.T) {
	withPDFDrop(t, nil, func(h *testDaemon, s *pdfFlow) {
		h.scan("scan7.pdf", "seven")
		h.awaitTaken()
		h.want("scan7.pdf discovered")
		h.halt()
		single := h.cfg.Drops[0]
		folders := single
		folders.Route, folders.Vault, folders.Rules = ledger.Vault, "V", packager.Rules{Sidecar: "metadata.json", Compression: "fast"}
		h.cfg.Drops = []dropwork.Settings{folders}
		h.again()
		kit.Want(t, "route", h.becomes("scan7.pdf discovered")[0].Route, ledger.PDF)
		kit.Want(t, "deliveries", s.delivered(), 0)
		h.halt()
		h.cfg.Drops = []dropwork.Settings{single}
		h.again()
		h.becomes("scan7.pdf delivered")
	})
}

// I24: a PDF that nobody may read stays, and says so; it is no fault of the PDF.
func TestPDFDrop_I24_UnreadableIsNotRefused(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything; TestFiles_I24_UnreadableStays simulates it")
	}
	withPDFDrop(t, nil, func(h *testDaemon, _ *pdfFlow) {
		h.scan("scan7.pdf", "seven")
		h.must(os.Chmod(filepath.Join(h.path, "scan7.pdf"), 0))
		h.becomes()
		_, err := os.Lstat(filepath.Join(h.path, "scan7.pdf"))
		h.must(err)
		kit.Holds(t, "status file", h.status(), "no right")
	})
}
