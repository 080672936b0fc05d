package main

import (
	"bytes"
	"encoding/hex"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
)

// shelf is a real ledger with entries in several states, and the view that commands have of it.
type shelf struct {
	view
	t    *testing.T
	keys map[string]archive.Key // by folder
}

// noon is when everything is looked at.
var noon = time.Date(2026, 11, 20, 13, 32, 0, 0, time.UTC)

func newShelf(t *testing.T) *shelf {
	t.Helper()
	cfg := mustLoad(t, smallConfig+"state_dir: "+t.TempDir()+"\n")
	info := ledger.Info{ID: "L-1", Environment: "test", BaseURL: cfg.Service.BaseURL, Created: noon}
	if err := boltledger.Create(cfg.StateDir, info); err != nil {
		t.Fatal(err)
	}
	s := &shelf{t: t, keys: map[string]archive.Key{}}
	s.view = view{Clock: present.Clock{Now: noon, Location: cfg.Location}, cfg: cfg, ledger: s.open(cfg)}
	if err := s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shelf) open(cfg config.Config) *boltledger.Ledger {
	l, err := boltledger.Open(boltledger.Config{Dir: cfg.StateDir, Location: cfg.Location})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { l.Close() })
	return l
}

// tell lets an entry live through events, the first of which claims its folder.
func (s *shelf) tell(folder string, at time.Time, doc *ledger.Document, evs ...ledger.Event) ledger.Entry {
	s.t.Helper()
	key, known := s.keys[folder]
	if !known {
		key = archive.NewKey(at)
		s.keys[folder] = key
		evs = append([]ledger.Event{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V-1", Drop: "acme-in", Folder: folder, Owner: 0}}, evs...)
	}
	e, _, err := s.ledger.Entry(key)
	if err != nil {
		s.t.Fatal(err)
	}
	rs, err := s.ledger.Apply(s.t.Context(), ledger.Change{Key: key, Rev: e.Rev, Events: evs, Document: doc, At: archive.Instant{Wall: at}})
	if err != nil || rs[0].Err != nil {
		s.t.Fatal(err, rs)
	}
	return rs[0].Entry
}

// pdfOf is what the invoice of a folder holds: no two are the same.
func pdfOf(folder string) string { return "pdf of " + folder }

// sealed is a folder that was packed: the event and its document, whose invoice number is the folder's name.
func sealed(folder string, size int64) (ledger.Sealed, *ledger.Document) {
	meta := archive.Document{Type: "Invoice", Number: "NR " + folder, Date: "2026-10-31T00:00:00Z", SenderName: "Müller\u202e GmbH", Amount: "119.00", Currency: "EUR"}
	doc := &ledger.Document{Metadata: meta.Metadata(), Files: []archive.File{{Path: "rechnung.pdf", Size: int64(len(pdfOf(folder))), SHA256: archive.Sum([]byte(pdfOf(folder)))}}}
	content := archive.ContentDigest(doc.Files)
	p := archive.Package{Path: "x.zip", Size: size, SHA256: archive.Sum([]byte(folder))}
	return ledger.Sealed{
		ID: archive.DeriveID("V-1", content, archive.Sum(doc.Metadata)), Content: content, Metadata: archive.Sum(doc.Metadata), Package: p, Seal: doc.Seal(p),
	}, doc
}

const urlCanary = "https://store.example/x?X-Amz-Signature=canary"

// send takes a folder as far as the upload under the service's number.
func (s *shelf) send(folder string, at time.Time, remote archive.RemoteID) ledger.Entry {
	s.t.Helper()
	seal, doc := sealed(folder, 1_000_000)
	s.tell(folder, at, doc, seal)
	return s.tell(folder, at.Add(time.Minute), nil, ledger.RegisterIntended{},
		ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: urlCanary + "&key=" + archive.PresignedURL(remote), Sent: archive.Instant{Wall: at}}}, ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal})
}

func (s *shelf) says(folder string, at time.Time, remote archive.RemoteID, w archive.ServiceStatus) ledger.Entry {
	s.t.Helper()
	return s.tell(folder, at, nil, ledger.StatusSeen{Receipt: archive.Receipt{Remote: remote, Status: w, Raw: w.String(), Updated: at, Record: []byte(`{"status":"x"}`)}, Grace: time.Hour})
}

// filled has one of each kind that people ask for.
func filled(t *testing.T) *shelf {
	s := newShelf(t)
	s.send("Müller 4711", noon.Add(-5*time.Hour), "bum-1")
	s.says("Müller 4711", noon.Add(-4*time.Hour), "bum-1", archive.Successful)
	s.tell("Müller 4711", noon.Add(-4*time.Hour), nil, ledger.PlaceIntended{Dest: "_archived/2026-11/Müller 4711"}, ledger.Placed{})
	s.tell("Huber 88", noon.Add(-3*time.Hour), nil, ledger.Refused{Cause: ledger.Cause{
		Code: "amount-not-understood", Text: "NOT ARCHIVED. metadata.json, line 9, \"amount\": \"1.234,56\" is ambiguous.\nWrite 1234.56.\n"}})
	s.tell("Huber 88", noon.Add(-3*time.Hour), nil, ledger.PlaceIntended{Dest: "_rejected/Huber 88"}, ledger.Placed{})
	s.tell("Kern\x1b[2J 6", noon.Add(-2*time.Hour), nil, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "cross-wired", Text: "the answer named\x1b]0;pwned\a another"}})
	s.send("Otto 19", noon.Add(-time.Hour), "bum-2")
	return s
}

// say runs a command's inner part and gives what it wrote and its exit code.
func say(t *testing.T, asJSON bool, do func(a *app) error) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	a := &app{stdout: &out, stderr: &errs, env: noEnv, json: asJSON}
	if err := do(a); err != nil {
		code = a.reportError(err)
	}
	for _, b := range out.Bytes() {
		if b < ' ' && b != '\n' {
			t.Errorf("control character %#x in the output:\n%s", b, hex.Dump(out.Bytes()))
			break
		}
	}
	if bytes.Contains(out.Bytes(), []byte("canary")) || bytes.Contains(errs.Bytes(), []byte("canary")) {
		t.Errorf("an upload address in the output:\n%s%s", &out, &errs)
	}
	return out.String(), errs.String(), code
}

// damagedJournal returns a view of the ledger after a byte of a block of its journal was changed on the disk.
func (s *shelf) damagedJournal() view {
	s.t.Helper()
	if err := s.ledger.Close(); err != nil {
		s.t.Fatal(err)
	}
	db, err := bbolt.Open(filepath.Join(s.cfg.StateDir, "ledger.db"), 0o600, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("journal")).Cursor()
		_, _ = c.First()
		k, v := c.Next() // not the first line, nor the last, which opening reads
		spoilt := bytes.Clone(v)
		spoilt[len(v)/2]++
		return tx.Bucket([]byte("journal")).Put(bytes.Clone(k), spoilt)
	})
	if err := errors.Join(err, db.Close()); err != nil {
		s.t.Fatal(err)
	}
	v := s.view
	v.ledger = s.open(s.cfg)
	return v
}

// damaged returns a view of the ledger after a byte of each record that holds text was changed on the disk.
func (s *shelf) damaged(text string) view {
	s.t.Helper()
	if err := s.ledger.Close(); err != nil {
		s.t.Fatal(err)
	}
	changeFile(s.t, filepath.Join(s.cfg.StateDir, "ledger.db"), text)
	v := s.view
	v.ledger = s.open(s.cfg)
	return v
}
