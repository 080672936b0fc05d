package main_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.etcd.io/bbolt"

	program "vaultd/cmd/vaultd"
	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// shelf is the state directory of a vaultd that does not run, with a real
// ledger, and the configuration that leads to it.
type shelf struct {
	t      *testing.T
	cfg    config.Config
	ledger *fill.Ledger           // open, except while a command runs
	config string                 // the file
	keys   map[string]archive.Key // by folder
	stdin  string                 // what commands read
}

// noon is when everything is looked at.
var noon = time.Date(2026, 11, 20, 13, 32, 0, 0, time.UTC)

func newShelf(t *testing.T) *shelf {
	t.Helper()
	s := &shelf{t: t, keys: map[string]archive.Key{}, config: writeConfig(t, smallConfig+"state_dir: "+t.TempDir()+"\n")}
	cfg := kit.Value(config.Load(s.config, noEnv))(t)
	s.cfg = cfg
	s.ledger = fill.New(t, boltledger.Config{Dir: cfg.StateDir, Location: cfg.Location}, ledger.Info{BaseURL: cfg.Service.BaseURL, Created: noon})
	kit.Must(t, s.ledger.PutScans(t.Context(), ledger.Scan{Drop: "acme-in", LastScan: noon}))
	return s
}

// edit replaces the first occurrence of a text in the configuration.
func (s *shelf) edit(old, text string) {
	s.t.Helper()
	b, err := os.ReadFile(s.config)
	kit.Need(s.t, err == nil && strings.Contains(string(b), old), "no %q in the configuration: %v", old, err)
	kit.Must(s.t, os.WriteFile(s.config, []byte(strings.Replace(string(b), old, text, 1)), 0o600))
}

// say runs a command at noon and returns what it wrote and its exit code.
func (s *shelf) say(args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	return s.sayAt(noon, args...)
}

// sayAt is say at another time.
func (s *shelf) sayAt(now time.Time, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	stdout, stderr, code = s.run(now, args...)
	checkOutput(s.t, []byte(stdout), []byte(stderr))
	return stdout, stderr, code
}

// run is sayAt for what no terminal shows.
func (s *shelf) run(now time.Time, args ...string) (stdout, stderr string, code int) {
	s.t.Helper()
	kit.Must(s.t, s.ledger.Close())
	var out, errs bytes.Buffer
	synctest.Test(s.t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		code = program.Run(t.Context(), append([]string{"--config", s.config}, args...), strings.NewReader(s.stdin), &out, &errs, noEnv)
	})
	s.ledger.Open()
	return out.String(), errs.String(), code
}

// checkOutput fails where what a command wrote steers a terminal, or holds an
// upload address.
func checkOutput(t *testing.T, out, errs []byte) {
	t.Helper()
	for _, b := range out {
		if b < ' ' && b != '\n' {
			t.Errorf("control character %#x in the output:\n%s", b, hex.Dump(out))
			break
		}
	}
	kit.Check(t, !bytes.Contains(out, []byte("canary")) && !bytes.Contains(errs, []byte("canary")),
		"an upload address in the output:\n%s%s", out, errs)
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
	kit.Must(s.t, err)
	rs, err := s.ledger.Apply(s.t.Context(), ledger.Change{Key: key, Rev: e.Rev, Events: evs, Document: doc, At: archive.Instant{Wall: at}})
	kit.Need(s.t, err == nil && rs[0].Err == nil, "err = %v, rs = %v, want no error, rs[0].Err = nil", err, rs)
	return rs[0].Entry
}

// pdfOf is what the invoice of a folder holds: no two are the same.
func pdfOf(folder string) string { return "pdf of " + folder }

// sealed is a folder that was packed: the event and its document, whose invoice number is the folder's name.
func sealed(folder string, size int64) (ledger.Sealed, *ledger.Document) {
	i := fill.Item{Name: folder, Route: ledger.Vault, Vault: "V-1", Size: size,
		Document: archive.Document{Type: "Invoice", Number: "NR " + folder, Date: "2026-10-31T00:00:00Z", SenderName: "Müller\u202e GmbH", Amount: "119.00", Currency: "EUR"},
		Files:    []archive.File{{Path: "rechnung.pdf", Size: int64(len(pdfOf(folder))), SHA256: archive.Sum([]byte(pdfOf(folder)))}}}
	return i.Sealed()
}

// send takes a folder as far as the upload under the service's number.
func (s *shelf) send(folder string, at time.Time, remote archive.RemoteID) ledger.Entry {
	s.t.Helper()
	seal, doc := sealed(folder, 1_000_000)
	s.tell(folder, at, doc, seal)
	return s.tell(folder, at.Add(time.Minute), nil, ledger.RegisterIntended{},
		fill.Ticket(remote, at, ledger.Vault), ledger.UploadIntended{}, ledger.UploadAccepted{Sent: seal.Package.SHA256, Seal: seal.Seal})
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

// damageJournal changes a byte of a block of the journal on the disk.
func (s *shelf) damageJournal() {
	s.t.Helper()
	kit.Must(s.t, s.ledger.Close())
	db, err := bbolt.Open(filepath.Join(s.cfg.StateDir, "ledger.db"), 0o600, nil)
	kit.Must(s.t, err)
	err = db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("journal")).Cursor()
		_, _ = c.First()
		k, v := c.Next() // not the first line, nor the last, which opening reads
		spoilt := bytes.Clone(v)
		spoilt[len(v)/2]++
		return tx.Bucket([]byte("journal")).Put(bytes.Clone(k), spoilt)
	})
	kit.Must(s.t, errors.Join(err, db.Close()))
	s.ledger.Open()
}

// damage changes a byte of each record that holds text on the disk.
func (s *shelf) damage(text string) {
	s.t.Helper()
	kit.Must(s.t, s.ledger.Close())
	changeFile(s.t, filepath.Join(s.cfg.StateDir, "ledger.db"), text)
	s.ledger.Open()
}

// folders returns the folders that a list names, in its order, and whether its
// limit left some out.
func (s *shelf) folders(args ...string) (names []string, more bool) {
	s.t.Helper()
	args = append([]string{"list"}, args...)
	out, errs, code := s.say(append(args, "--json")...)
	kit.Need(s.t, code == 0, "%q: exit %d: %s", args, code, errs)
	for line := range strings.Lines(out) {
		var row struct{ Folder string }
		kit.Must(s.t, json.Unmarshal([]byte(line), &row))
		names = append(names, row.Folder)
	}
	if strings.Contains(strings.Join(args, " "), "--limit") {
		_, errs, _ = s.say(args...)
	}
	return names, strings.Contains(errs, "--limit 0 lists all")
}

// summary is what status says with --json.
func (s *shelf) summary() (st present.StatusSummary) {
	s.t.Helper()
	return s.summaryAt(noon)
}

func (s *shelf) summaryAt(now time.Time) (st present.StatusSummary) {
	s.t.Helper()
	out, errs, _ := s.sayAt(now, "status", "--json")
	err := json.Unmarshal([]byte(out), &st)
	kit.Need(s.t, err == nil, "%v: %s%s", err, out, errs)
	return st
}

// The exit codes that docs/reference.md promises to scripts.
const (
	exitDone        = 0
	exitFailed      = 1
	exitPerson      = 3
	exitDifferences = 4
	exitUsage       = 64
	exitData        = 65
	exitUnavailable = 69
	exitCreate      = 73
	exitIO          = 74
	exitTemporary   = 75
	exitRights      = 77
	exitConfig      = 78
)

func noEnv(string) (string, bool) { return "", false }

func envOf(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		v, ok := vars[name]
		return v, ok
	}
}

// smallConfig is the smallest configuration that works.
const smallConfig = `service:
  base_url: https://vault.example
  auth: {method: basic, username: u, secret_file: /etc/vaultd/secret}
drops:
  - {name: acme-in, path: /srv/invoices/acme-in, vault: V-1}
`

const canary = "hunter2"

func secretFile(t *testing.T, content string, mode fs.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	kit.Must(t, os.WriteFile(path, []byte(content), 0o600))
	kit.Must(t, os.Chmod(path, mode))
	return path
}

func mustLoad(t *testing.T, text string) config.Config {
	t.Helper()
	cfg := kit.Value(config.Load(writeConfig(t, text), noEnv))(t)
	return cfg
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	kit.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// pdf is a single file of the PDF route that was taken at a time.
func (s *shelf) pdf(file string, at time.Time) *fill.Item {
	s.t.Helper()
	i := s.ledger.Add(fill.Item{Name: file, Route: ledger.PDF, Size: 2_000_000})
	i.Claim(at)
	s.keys[file] = i.Key
	return i
}

// filledWithPDFs has what filled has, two delivered PDFs, a duplicate of one,
// and one whose delivery is unconfirmed.
func filledWithPDFs(t *testing.T) *shelf {
	s := filled(t)
	first, second, third, fourth := noon.Add(-4*time.Hour), noon.Add(-3*time.Hour), noon.Add(-2*time.Hour), noon.Add(-time.Hour)
	s.pdf("scan1.pdf", first).Deliver(first, 2*time.Second)
	s.pdf("scan2.pdf", second).Deliver(second, 2*time.Second)
	double := s.pdf("copy.pdf", third)
	double.Apply(third, ledger.FoundDuplicate{First: s.keys["scan1.pdf"]})
	double.Place(third, "_duplicates/copy.pdf")
	unknown := s.pdf("scan3.pdf", fourth)
	unknown.Send(fourth)
	unknown.Apply(noon.Add(-50*time.Minute), ledger.UploadUnanswered{Cause: ledger.Cause{Code: "timeout", Text: "no answer"}})
	unknown.Quarantine(noon.Add(-49*time.Minute), ledger.DeliveryUnknown("the upload was never answered"))
	return s
}
