package report

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
)

// noon is when every report is made.
var noon = time.Date(2026, 11, 20, 13, 32, 0, 0, time.UTC)

// shelf is a real ledger whose keys, salts and times are fixed, so that its hashes are too.
type shelf struct {
	t      testing.TB
	ledger *boltledger.Ledger
	keys   map[string]archive.Key // by folder
	docs   map[string]archive.Document
	vault  map[string]archive.VaultID
	seals  map[string]func(*ledger.Sealed) // what the seal of a folder says beside
}

func newShelf(t testing.TB, environment string) *shelf {
	t.Helper()
	dir := t.TempDir()
	if err := boltledger.Create(dir, ledger.Info{ID: "L-1", Environment: environment, BaseURL: "https://archive.example", Created: noon.AddDate(-1, 0, 0)}); err != nil {
		t.Fatal(err)
	}
	l, err := boltledger.Open(boltledger.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return &shelf{t: t, ledger: l, keys: map[string]archive.Key{}, docs: map[string]archive.Document{}, vault: map[string]archive.VaultID{}, seals: map[string]func(*ledger.Sealed){}}
}

// tell lets an entry live through events, the first of which claims its folder.
func (s *shelf) tell(folder string, at time.Time, doc *ledger.Document, evs ...ledger.Event) ledger.Entry {
	s.t.Helper()
	key, is := s.keys[folder]
	if !is {
		key = keyAt(at, uint64(len(s.keys)))
		s.keys[folder] = key
		vault := s.vault[folder]
		if vault == "" {
			vault = "DE"
		}
		evs = append([]ledger.Event{ledger.ClaimedFolder{Route: ledger.Vault, Vault: vault, Drop: "acme-in", Folder: folder, Owner: 1000}}, evs...)
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

func keyAt(at time.Time, n uint64) (k archive.Key) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(k[:6], ms[2:])
	binary.BigEndian.PutUint64(k[8:], n)
	return k
}

// told returns what the ledger has of a folder.
func (s *shelf) told(folder string) (ledger.Entry, ledger.Document) {
	s.t.Helper()
	e, _, err := s.ledger.Entry(s.keys[folder])
	if err != nil {
		s.t.Fatal(err)
	}
	doc, _, err := s.ledger.Document(e.Key)
	if err != nil {
		s.t.Fatal(err)
	}
	return e, doc
}

// sealed is a packed folder: the event and its document.
func sealed(folder string, vault archive.VaultID, size int64, meta archive.Document) (ledger.Sealed, *ledger.Document) {
	doc := &ledger.Document{Metadata: meta.Metadata(), Files: []archive.File{{Path: "rechnung.pdf", Size: 3, SHA256: archive.Sum([]byte(folder))}}}
	content := archive.ContentDigest(doc.Files)
	p := archive.Package{Path: "x.zip", Size: size, SHA256: archive.Sum([]byte(folder))}
	return ledger.Sealed{ID: archive.DeriveID(vault, content, archive.Sum(doc.Metadata)), Content: content, Metadata: archive.Sum(doc.Metadata),
		Package: p, Seal: doc.Seal(p)}, doc
}

const urlCanary = "https://store.example/x?X-Amz-Signature=canary"

// send takes a folder as far as the upload, whose answer does not come.
func (s *shelf) send(folder string, at time.Time, size int64, remote archive.RemoteID) {
	s.t.Helper()
	meta, given := s.docs[folder]
	if !given {
		meta = archive.Document{Type: "Invoice", Number: "NR " + folder, Date: "2026-10-31T00:00:00Z", SenderName: "Müller GmbH", Amount: "119.00", Currency: "EUR"}
	}
	seal, doc := sealed(folder, s.vault[folder], size, meta)
	if say := s.seals[folder]; say != nil {
		say(&seal)
	}
	s.tell(folder, at, doc, seal)
	s.tell(folder, at.Add(time.Minute), nil, ledger.RegisterIntended{},
		ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: urlCanary + "&key=" + archive.PresignedURL(remote), Sent: archive.Instant{Wall: at}}}, ledger.UploadIntended{})
}

// archived takes a folder to its end: it is archived after took.
func (s *shelf) archived(folder string, at time.Time, took time.Duration, size int64, remote archive.RemoteID) {
	s.t.Helper()
	s.send(folder, at, size, remote)
	e, doc := s.told(folder)
	s.tell(folder, at.Add(2*time.Minute), nil, ledger.UploadAccepted{Sent: e.Package.SHA256, Seal: doc.Seal(e.Package)})
	at = at.Add(took)
	s.tell(folder, at, nil, ledger.StatusSeen{Receipt: archive.Receipt{Remote: remote, Status: archive.Successful, Raw: "ArchivingSuccessful", Updated: at, Record: []byte(`{}`)}, Grace: time.Hour})
	s.tell(folder, at, nil, ledger.PlaceIntended{Dest: "_archived/2026-11/x"}, ledger.Placed{})
}

// filled has one of each kind that people ask for. Its bill is that of two documents of
// 3,250,000 bytes in one vault, and a small one in another.
func filled(t *testing.T, environment string) *shelf {
	s := newShelf(t, environment)
	s.docs["Gutschrift 7"] = archive.Document{Type: "CreditNote", Number: "GS-7", Date: "2026-10-30T00:00:00Z", SenderName: "Otto KG", Amount: "-75.105", Currency: "EUR"}
	s.docs["Alt 1"] = archive.Document{Type: "Invoice", Number: "ALT-1", Date: "2025-12-31T00:00:00Z", SenderName: "Alt & Söhne"}
	s.vault["Alt 1"] = "FR"
	s.docs[nasty] = archive.Document{Type: "Invoice", Number: "=1+1", Date: "2026-10-29T08:39:03Z", SenderName: "<img src=x onerror=alert(1)>\u202egpj.\x1b[2J", Amount: "9007199254740993.10", Currency: "USD"}
	s.archived("Alt 1", noon.Add(-50*time.Hour), 9*time.Hour, 250_000, "bum-0")
	s.archived("Müller 4711", noon.Add(-20*time.Hour), 41*time.Minute, 1_900_000, "bum-1")
	s.archived("Gutschrift 7", noon.Add(-19*time.Hour), 40*time.Minute, 1_350_000, "bum-2")
	s.tell("Huber 88", noon.Add(-18*time.Hour), nil, ledger.Refused{Cause: ledger.Cause{Code: "amount-not-understood", Text: "NOT ARCHIVED. line 9\n"}})
	s.send(nasty, noon.Add(-17*time.Hour), 1000, "bum-3")
	s.tell(nasty, noon.Add(-16*time.Hour), nil, ledger.WindowClosed{NotBefore: noon})
	s.tell("Kern\u202e 6", noon.Add(-15*time.Hour), nil, ledger.SentToQuarantine{Cause: ledger.Cause{Code: "cross-wired", Text: "the answer named another"}})
	s.tell("Kern\u202e 6", noon.Add(-14*time.Hour), nil, ledger.Held{By: ledger.Operator{UID: 1001, Reason: archive.Sum([]byte("ask first"))}})
	s.tell("Wagner 5", noon.Add(-13*time.Hour), nil)
	return s
}

// nasty is a folder's name that tries whatever a name can try.
const nasty = "</td></table><script>alert('x')</script>\"';=cmd|' /C calc'!A0\t\r\n"

func (s *shelf) config() Config {
	return Config{
		Ledger: s.ledger, Info: s.ledger.Info(), Head: s.ledger.Head(), Balance: s.ledger.Balance(), Made: noon,
		Location: time.FixedZone("CET", 3600), Program: "vaultd 1.2.0", Host: "files01", By: "anna (uid 1000)", AlertAfter: 12 * time.Hour,
		Rule:   billing.Rule{Price: "0.35", Currency: "EUR"},
		Person: func(uid uint32) string { return fmt.Sprintf("<b>user %d</b>", uid) },
		Reason: func(archive.Key, uint32) (string, error) { return "<i>ask first</i>", nil },
	}
}

func examine(t testing.TB, c Config) *Audit {
	t.Helper()
	a, err := Examine(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// written gives one form of the report and what its end says.
func written(t testing.TB, a *Audit, form string) (string, Closing) {
	t.Helper()
	var b bytes.Buffer
	var c Closing
	var err error
	switch form {
	case "html":
		c, err = a.HTML(t.Context(), &b)
	case "csv":
		c, err = a.CSV(t.Context(), &b, ',')
	case "json":
		c, err = a.JSON(t.Context(), &b)
	case "xlsx":
		c, err = a.XLSX(t.Context(), &b)
	}
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b.Bytes(), []byte("canary")) {
		t.Error("an upload address in the report")
	}
	return b.String(), c
}
