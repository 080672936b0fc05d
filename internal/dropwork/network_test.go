package dropwork

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/networkapi"
	"vaultd/internal/packager"
	"vaultd/internal/spool"
	"vaultd/internal/test/kit"
	"vaultd/internal/watch"
)

const networkDocument = `{"documentType": "Invoice",
 "data": {"externalDocumentIdentifier": {"id": "RE-4711"}, "issueDate": "2026-10-31", "documentCurrencyCode": "EUR",
  "accountingSupplierParty": {"partyName": "Müller"}, "accountingCustomerParty": {"partyName": "Acme"}},
 "processingPreference": {"sentTo": {"id": "4012345000009", "schemeId": "GLN"}}}`

// networkChecks are those of the client of the network, as the program has them.
var networkChecks = packager.NetworkRules{
	Check: func(document []byte) (faults []packager.DocumentFault) {
		for _, f := range networkapi.CheckDocument(document) {
			faults = append(faults, packager.DocumentFault(f))
		}
		return faults
	},
	Read: networkapi.ReadMetadata, CheckFileName: networkapi.CheckFileName, MaxDocument: networkapi.MaxDocument,
}

// networkDrop is a drop folder of the business network at work, with a real ledger and a real spool.
type networkDrop struct {
	*Drop
	t       *testing.T
	path    string
	claimed chan ledger.Entry
}

func openNetworkDrop(t *testing.T, change func(s *Settings)) *networkDrop {
	t.Helper()
	state, began := t.TempDir(), time.Now()
	now := func() archive.Instant {
		return archive.Instant{Wall: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).Add(time.Since(began))}
	}
	kit.Must(t, boltledger.Create(state, ledger.Info{ID: "L", Environment: "test", Created: now().Wall}))
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: state}))(t)
	t.Cleanup(func() { l.Close() })
	packages := kit.Value(spool.Open(spool.Config{StateDir: state, Max: 1e9, Shares: 1}))(t)
	t.Cleanup(func() { packages.Close() })
	kit.Must(t, packages.CountAll(t.Context(), func(archive.Key) (string, bool, error) { return "", false, nil }))
	n := &networkDrop{t: t, path: t.TempDir(), claimed: make(chan ledger.Entry, 10)}
	log := slog.New(slog.DiscardHandler)
	end := func(err error) { t.Errorf("the process would end (%v), want it to continue", err) }
	shared := &Shared{StateDir: state, Environment: "test", Now: now, Log: log, Ledger: l, Takeover: NewTakeover(state, l, log, end), EndProcess: end,
		Spool: packages, Disk: spool.NewDisk(state, 0, l, func() time.Time { return now().Wall }, log), Returned: NewReturned(),
		HeldReason: func() string { return "" }, OnChange: func(string) {},
		EnterClaimed: func(k archive.Key, ev ledger.ClaimedFolder, _ ...ledger.Change) {
			n.claimed <- ledger.Entry{Key: k, State: ledger.Discovered, Source: ledger.Claimed, Route: ev.Route, Drop: ev.Drop, Folder: ev.Folder, Owner: ev.Owner, Node: ev.Node}
		}}
	shared.Scans = NewScans(shared)
	kit.Must(t, shared.Returned.Load(l))
	settings := Settings{Name: "acme-out", Path: n.path, Route: ledger.Network, Mode: watch.Poll, Settle: time.Second, Rescan: time.Second,
		Rules: packager.Rules{Sidecar: "document.json", Complete: "quiet", Compression: "default"}, Network: networkChecks}
	if change != nil {
		change(&settings)
	}
	n.Drop = kit.Value(New(settings, shared))(t)
	t.Cleanup(func() { n.Close() })
	return n
}

func (n *networkDrop) write(name, content string) {
	n.t.Helper()
	path := filepath.Join(n.path, name)
	kit.Must(n.t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(content), 0o644)))
}

// run has the drop folder watched until the test ends.
func (n *networkDrop) run() {
	ctx, stop := context.WithCancel(n.t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	n.t.Cleanup(func() {
		stop()
		kit.Want(n.t, "the error", <-done, nil)
	})
}

// take waits for the next claim.
func (n *networkDrop) take() ledger.Entry {
	n.t.Helper()
	select {
	case e := <-n.claimed:
		return e
	case <-time.After(time.Minute):
		n.t.Fatal("no folder was taken in a minute, want one")
	}
	return ledger.Entry{}
}

// A folder is taken once its document is there and nothing changes any more. It is sealed as a document with its files, and lies in _delivered
// in the end, with its note.
func TestNetwork_FromTheDropToDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNetworkDrop(t, nil)
		n.write("RE 4711/rechnung.pdf", "%PDF-1.7 %%EOF")
		n.write("RE 4712/document.json.txt", networkDocument)
		n.run()
		time.Sleep(time.Minute) // virtual: long enough for both to be seen
		var pending []string
		for _, p := range n.StateWithScan().Scan.Pending {
			pending = append(pending, p.Name+": "+p.Detail)
		}
		if len(n.claimed) > 0 || !slices.Equal(pending, []string{"RE 4711: no document.json", "RE 4712: has document.json.txt: rename it to document.json (Explorer: View > File name extensions)"}) {
			t.Errorf("pending = %q, want RE 4711 without document.json and RE 4712 with document.json.txt", pending)
		}
		n.write("RE 4711/document.json", networkDocument)
		e := n.take()
		kit.Need(t, e.Folder == "RE 4711" && e.Route == ledger.Network,
			"taken = %+v, want RE 4711 by the network route", e)
		forEngine := n.ForEngine()
		kit.Check(t, forEngine.Request == nil && !forEngine.SendsAgain, "drop of the engine = %+v, want no request, not sent again", forEngine)
		p := kit.Value(forEngine.Packer.Pack(t.Context(), e))(t)
		s, doc := p.Sealed, p.Document
		digest := archive.Sum([]byte(networkDocument))
		if s.Metadata != digest || s.Content != archive.NetworkContent(doc.Files, digest) || s.ID != archive.DeriveNetworkID(s.Content, digest) || s.Seal != doc.Seal(s.Package) || s.Number.IsZero() || s.StrangeDate {
			t.Errorf("sealed = %+v, want the identity of its files and its document, with a number", s)
		}
		if len(doc.Files) != 1 || doc.Files[0].Path != "rechnung.pdf" || len(doc.ControlFiles) != 1 || doc.ControlFiles[0].SHA256 != digest || !strings.HasPrefix(string(doc.Metadata), `{"documentType":"Invoice","documentId":"RE-4711",`) {
			t.Errorf("document = %+v, metadata %s, want rechnung.pdf and document.json", doc, doc.Metadata)
		}
		if names := zipNames(t, s.Package.Path); !slices.Equal(names, []string{"document.json", "rechnung.pdf"}) || filepath.Base(s.Package.Path) != e.Key.String()+".zip" {
			t.Errorf("package %s holds %q, want document.json and rechnung.pdf, named for the key", s.Package.Path, names)
		}
		e.State, e.Source, e.ID, e.Package, e.UploadedAt = ledger.Delivered, ledger.Keeping, s.ID, s.Package, n.shared.Now().Wall
		e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: "10d90000-0000-5000-8000-00000000000a"}, Fate: ledger.Succeeded}}
		note := n.place(forEngine.Mover, &e, doc)
		if e.Dest != "_delivered/2026-11/RE 4711" || !strings.HasPrefix(note, "DELIVERED. The business network has delivered this document") ||
			!strings.Contains(note, "To              Acme, 4012345000009\r\n") || strings.Contains(note, "PDF; it") {
			t.Errorf("in %s: %s, want it delivered to Acme, in _delivered/2026-11", e.Dest, note)
		}
	})
}

// I12: whose files are in a folder of somebody else is recorded, and in its note.
func TestNetwork_I12_OwnersOfFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		kit.Missing(t, "root, to give files to another user")
	}
	synctest.Test(t, func(t *testing.T) {
		n := openNetworkDrop(t, nil)
		n.write("RE 4711/rechnung.pdf", "%PDF-1.7 %%EOF")
		n.write("RE 4711/document.json", networkDocument)
		kit.Must(t, os.Chown(filepath.Join(n.path, "RE 4711/document.json"), 47_111, -1))
		n.run()
		e, forEngine := n.take(), n.ForEngine()
		p := kit.Value(forEngine.Packer.Pack(t.Context(), e))(t)
		kit.Want(t, "owners of files", p.Document.FileOwners, []uint32{47_111})
		e.State, e.Source, e.Package, e.UploadedAt = ledger.Delivered, ledger.Keeping, p.Sealed.Package, n.shared.Now().Wall
		e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: "10d90000-0000-5000-8000-00000000000a"}, Fate: ledger.Succeeded}}
		n.place(forEngine.Mover, &e, p.Document)
		record := kit.Value(os.ReadFile(filepath.Join(n.path, e.Dest, "_DELIVERED.json")))(t)
		kit.Holds(t, "_DELIVERED.json", string(record), "\"fileOwners\": [\n    47111\n  ]")
	})
}

// I25, I12: a rejection that comes before the delivered folder is in its place. The folder goes there all the same, and its notes say both.
func TestMover_I25_RejectedBeforeItsFolderIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNetworkDrop(t, nil)
		n.write("RE 4711/rechnung.pdf", "%PDF-1.7 %%EOF")
		n.write("RE 4711/document.json", networkDocument)
		n.run()
		e, forEngine := n.take(), n.ForEngine()
		p := kit.Value(forEngine.Packer.Pack(t.Context(), e))(t)
		now := n.shared.Now().Wall
		e.State, e.Source, e.Package, e.UploadedAt, e.Contradicted = ledger.Delivered, ledger.Keeping, p.Sealed.Package, now, true
		e.Registrations = []ledger.Registration{{Ticket: archive.Ticket{Remote: "10d90000-0000-5000-8000-00000000000a"}, Fate: ledger.Lapsed, ClosedAt: now}}
		note := n.place(forEngine.Mover, &e, p.Document)
		record, err := os.ReadFile(filepath.Join(n.path, e.Dest, "_DELIVERED.json"))
		if err != nil || !strings.Contains(string(record), `"rejectedAt": "`) || !strings.Contains(note, "REJECTED LATER: the business network rejected it after it had delivered it.") {
			t.Errorf("record = %s (error %v), want a time of rejection, and a note that says so:\n%s", record, err, note)
		}
	})
}

// place moves the folder of an ended entry, and returns what a person reads in it.
func (n *networkDrop) place(m ingest.Mover, e *ledger.Entry, doc ledger.Document) string {
	n.t.Helper()
	dest := kit.Value(m.Destination(*e, n.shared.Now().Wall))(n.t)
	e.Dest = dest
	kit.Must(n.t, m.Place(n.t.Context(), *e, doc))
	for _, name := range []string{"_DELIVERED.txt", "_REASON.txt"} {
		if text, err := os.ReadFile(filepath.Join(n.path, dest, name)); err == nil {
			return strings.TrimPrefix(string(text), "\ufeff")
		}
	}
	return ""
}

func zipNames(t *testing.T, path string) (names []string) {
	t.Helper()
	z := kit.Value(zip.OpenReader(path))(t)
	defer z.Close()
	for _, f := range z.File {
		names = append(names, f.Name)
		r, err := f.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
		}
		kit.Must(t, err)
	}
	return names
}

// A folder whose document is wrong comes back with the place of each mistake. Put right and moved back, it corrects the first.
func TestNetwork_RefusedAndPutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNetworkDrop(t, nil)
		n.write("RE 4711/document.json", strings.Replace(networkDocument, "4012345000009", "401234500000", 1))
		n.run()
		e := n.take()
		_, err := n.ForEngine().Packer.Pack(t.Context(), e)
		refused, is := errors.AsType[*ingest.RefusedError](err)
		kit.Need(t, is && refused.Known.AsRead.Number == "RE-4711" && refused.Cause.Code == "document.json-not-accepted",
			"error = %+v, want document.json not accepted, with number RE-4711", err)
		e.State, e.Source, e.Cause = ledger.Rejected, ledger.Returning, refused.Cause
		note := n.place(n.ForEngine().Mover, &e, ledger.Document{})
		if e.Dest != "_rejected/RE 4711" || !strings.HasPrefix(note, `NOT SENT. document.json, line 4, "sentTo.id": a GLN has 13 digits, this has 12. Put it right, then move this whole folder back to acme-out (where _STATUS.txt lies).`) {
			t.Errorf("in %s: %s, want it not sent because of its GLN, in _rejected", e.Dest, note)
		}
		if left, err := os.ReadDir(filepath.Join(n.shared.StateDir, "spool")); err != nil || len(left) > 0 {
			t.Errorf("the spool holds %v (error %v), want nothing", left, err)
		}
		// Moved back and put right it is taken again; its note goes with it.
		n.write("_rejected/RE 4711/document.json", networkDocument)
		kit.Must(t, os.Rename(filepath.Join(n.path, e.Dest), filepath.Join(n.path, "RE 4711")))
		p, err := n.ForEngine().Packer.Pack(t.Context(), n.take())
		kit.Check(t, err == nil && len(p.Document.Files) == 0 && slices.Equal(p.Document.Junk, []string{"_REASON.txt"}),
			"document = %+v (error %v), want no file, and _REASON.txt as junk", p.Document, err)
	})
}

// A folder of a list waits until all is there.
func TestNetwork_WaitsForItsList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := openNetworkDrop(t, func(s *Settings) { s.Rules.Complete = "list" })
		n.write("RE 1/document.json", networkDocument)
		n.write("RE 1/manifest-sha256.txt", archive.Sum([]byte("<a/>")).String()+"  a.xml\n")
		n.run()
		time.Sleep(time.Minute) // virtual
		if pending := n.StateWithScan().Scan.Pending; len(n.claimed) > 0 || len(pending) != 1 || pending[0].Detail != "waits for a.xml, named in its list" {
			t.Errorf("pending = %+v, want one that waits for a.xml", pending)
		}
		n.write("RE 1/a.xml", "<a/>")
		p, err := n.ForEngine().Packer.Pack(t.Context(), n.take())
		kit.Check(t, err == nil && len(p.Document.Files) == 1 && len(p.Document.ControlFiles) == 2,
			"document = %+v (error %v), want one file and two control files", p.Document, err)
	})
}

// What the network refuses after it had the document is told otherwise than what was never sent.
func TestNetwork_RejectionText(t *testing.T) {
	m := &Mover{&Handle{Settings: Settings{Name: "acme-out", Route: ledger.Network}}}
	for name, row := range map[string]struct {
		e    ledger.Entry
		want string
	}{
		"ByTheNetwork": {ledger.Entry{UploadedAt: time.Now(), Cause: ledger.Cause{Text: "The recipient is not known."}}, "NOT DELIVERED. The recipient is not known.\nPut it right, then move this whole folder back to acme-out (where _STATUS.txt lies).\n"},
		"BeforeIt":     {ledger.Entry{Cause: ledger.Cause{Text: "The network does not take it."}}, "NOT SENT. The network does not take it.\nPut it right, then move this whole folder back to acme-out (where _STATUS.txt lies).\n"},
		"InDoubt":      {ledger.Entry{InDoubt: true, Cause: ledger.Cause{Text: "x"}}, ledger.ClosedInDoubt + ". Nobody could tell whether this was delivered. Ask IT before it is dropped again.\nx\n"},
	} {
		row.e.Route = ledger.Network
		kit.Want(t, name, m.rejectionText(row.e), row.want)
	}
}

// I12: a folder of the business network is recognised by the number and sender of its
// document, and by its other files.
func TestNetwork_I12_TracesOfADocument(t *testing.T) {
	dir := t.TempDir()
	kit.Must(t, errors.Join(os.WriteFile(filepath.Join(dir, "document.json"), []byte(networkDocument), 0o600), os.WriteFile(filepath.Join(dir, "r.pdf"), []byte("%PDF"), 0o600)))
	root := kit.Value(os.OpenRoot(dir))(t)
	defer root.Close() // read-only
	x := kit.Value(documents{}.readTraces(t.Context(), Settings{Network: networkChecks}, root))(t)
	files := kit.Value(x.Files(t.Context()))(t)
	kit.Want(t, "number, files", []any{x.AsRead.Number, len(files), files[0].Path}, []any{"RE-4711", 1, "r.pdf"})
	kit.Check(t, (archive.Document{SenderName: "Müller", Date: "2026-10-31T00:00:00Z"}).NetworkNumberDigest().IsZero(),
		"documents without a number have a digest in common, want none")
}

// A drop without the checks of the network is a mistake of the program, found before anything is taken.
func TestNetwork_NoChecks(t *testing.T) {
	_, err := New(Settings{Name: "a", Path: "/srv/a", Route: ledger.Network, Rules: packager.Rules{Sidecar: "document.json"}}, &Shared{Now: func() archive.Instant { return archive.Instant{} }})
	kit.Check(t, err != nil && strings.Contains(err.Error(), "drop a: route has no check"),
		"error = %v, want one that says that the route has no check", err)
}
