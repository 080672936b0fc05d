package boltledger

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// The golden records. Once a schema is released, the values and the bytes in its
// folder of testdata belong together for ever: a ledger that was written once must be
// readable in fifteen years. Until then UPDATE_GOLDEN=1 writes them anew.
var update = os.Getenv("UPDATE_GOLDEN") != ""

func sum(s string) archive.Digest { return archive.Sum([]byte(s)) }

func goldenTime(n int) time.Time { return time.Date(2026, 11, 20, 9, 0, n, 123456789, time.UTC) }

func goldenEntry() ledger.Entry {
	base := archive.ID{0x80, 0x87, 0xdf, 0xba, 0x45, 0xef, 0x5a, 0x37, 0xac, 0x3c, 0xd5, 0x56, 0x7c, 0xfb, 0x6d, 0x39}
	return ledger.Entry{
		Key: archive.Key{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Rev: 300, State: ledger.Quarantined, Source: ledger.Gone,
		Route: ledger.Vault, Vault: "VAULT-1", Drop: "acme-in", Folder: "Müller 4711", Owner: 1000, Node: ledger.Node{Dev: 64769, Ino: 1 << 40},
		Fingerprint: sum("look"), ID: base.Generation(1), FirstID: base, Generation: 1, IDFromSidecar: true, Content: sum("content"), Metadata: sum("metadata"),
		Package: archive.Package{Path: "spool/x.zip", Size: 100_000_000, SHA256: sum("zip"), MD5: [16]byte{15: 9}},
		Registrations: []ledger.Registration{
			{Ticket: archive.Ticket{Remote: "bum-1", Sent: archive.Instant{Wall: goldenTime(1)}}, UploadIntents: 2, WithoutEffect: 1, Fate: ledger.Lapsed, Sent: sum("zip"), ClosedAt: goldenTime(2), LastStatus: archive.Absent, EqualAnswers: 3, LastAnswer: goldenTime(3), SucceededAt: goldenTime(14)},
			{Generation: 1, Fate: ledger.MaybeStored, FromLostPart: true, Ticket: archive.Ticket{
				Remote: "bum-2", URL: "https://store.example/p?X-Sig=abc", Headers: []archive.Header{{Name: "X-One", Value: "1"}, {Name: "X-Empty"}},
				Sent: archive.Instant{Wall: goldenTime(4), Boot: time.Hour, BootID: "boot-1"}, Date: goldenTime(5), SignedAt: time.Unix(0, 0).UTC(), Validity: 15 * time.Minute, Object: archive.ObjectDigest{1, 15: 2},
			}},
		},
		Posts: 3, Answers: 2, LostAnswers: 1, Failures: 2, BatchLimit: 25, Attempt: 65535, NotBefore: goldenTime(6), WaitsFor: archive.Key{2},
		Cause: ledger.Cause{Code: "archiving-failed", Text: "für Menschen"}, Hold: true, InDoubt: true, PossibleDouble: true, Contradicted: true, Resolved: true,
		DuplicateOf: archive.Key{3}, SameContent: archive.Key{4}, Supersedes: archive.Key{5}, ArchivedRemote: "bum-2", SuccessRecord: []byte(`{"status":"ArchivingSuccessful"}`),
		Dest: "_archived/2026-11/Müller 4711", SeenAt: goldenTime(7), RegisteredAt: goldenTime(8), UploadedAt: goldenTime(9),
		ArchivedAt: time.Date(1965, 1, 1, 0, 0, 0, 0, time.UTC), DisposeAt: goldenTime(11), NeedsReconcile: true, Pruned: ledger.RegistrationsPruned{Unsent: 300, Lapsed: 2}, DuplicateConfirmed: true,
		Number: archive.NumberDigest{1, 15: 3}, SameNumber: archive.Key{6}, StrangeDate: true, Reviewed: true,
		StoredFiles: []archive.FileID{"5f0e1c2d3b4a596877665544", "f-2"}, FilePosts: 3, FileAnswers: 2, Body: sum("body"), Recipient: ledger.RecipientRejected, Means: "MailDelivery",
	}
}

// goldenStored is the golden entry without what is not stored, because the rest tells it.
func goldenStored() ledger.Entry {
	e := goldenEntry()
	e.ID, e.Package.Path = archive.ID{}, ""
	return e
}

func goldenTotal() spanTotal {
	return spanTotal{Vault: "VAULT-1", From: 1_793_577_600, Documents: 3, Unsized: 1, Bytes: 1 << 40, Last: goldenTime(12)}
}

func goldenIndex() nameIndex {
	return nameIndex{9, []run{
		{number: 9, pairs: 300}, {number: 5, level: 1, pairs: 1100, into: 8}, {number: 4, level: 1, pairs: 1200, into: 8},
		{number: 8, level: 2, pairs: 2300, making: true, done: 2}, {number: 3, level: 3, pairs: 70_000},
	}}
}

func goldenSummary() summary {
	return summary{head: ledger.Head{N: 300, Hash: sum("head")}, seen: 9, counts: []stateCount{{ledger.Archived, 7}, {ledger.Uploaded, 2}}, marks: 3, alarmed: goldenTime(13), clocks: clockComparison{goldenTime(18), goldenTime(19)},
		arrivalsSeen: 4, arrivals: []arrivalCount{{arrival.Held, 3}, {arrival.GivenUp, 1}}}
}

func goldenArrival() arrival.Arrival {
	return arrival.Arrival{
		Key: archive.Key{1, 15: 9}, Rev: 7, Kind: arrival.Extract, State: arrival.Fetching, Item: "4711", Type: archive.DeltaExtract, Name: "books",
		Start: goldenTime(1), End: goldenTime(2), Made: goldenTime(3), Count: -1, Files: []arrival.File{
			{Name: "IA_INVOICE_1.zip", Table: "IA_INVOICE", Downloads: 3, Stored: "0001-IA_INVOICE_1.zip", Size: 1 << 33, SHA256: sum("file"), Beside: true}, {Name: "b"},
		},
		Manifest: sum("manifest"), AcknowledgeIntents: 2, Allowed: 10, UnknownPast: true, Gone: true, Attempt: 65535, NotBefore: goldenTime(4),
		Cause: ledger.Cause{Code: "cut", Text: "für Menschen"}, AnnouncedAt: goldenTime(5), HeldAt: goldenTime(6), AcknowledgedAt: goldenTime(7), DoubtedAt: goldenTime(8), HandedOnAt: goldenTime(9),
		Notice: "54759eb3-ack", ConfirmIntents: 2, ConfirmedAt: goldenTime(10),
		Said: []arrival.Said{{Rev: 300, Word: arrival.Accept, UID: 1000, At: goldenTime(11), Outcome: arrival.NotTaken, AnsweredAt: goldenTime(12), Cause: ledger.Cause{Code: "http-403", Text: "nein"}}, {Rev: 301, Word: arrival.Reject}},
	}
}

func goldenDocument() ledger.Document {
	return ledger.Document{
		Salt: [16]byte{1, 2, 3}, Metadata: []byte(`{"documentId":"4711"}`), Files: []archive.File{{Path: "a/rechnung.pdf", Size: 12345, SHA256: sum("a")}, {Path: "b.xml"}},
		ControlFiles: []archive.File{{Path: "metadata.json", Size: 99, SHA256: sum("m")}}, Junk: []string{"Thumbs.db", ""},
	}
}

func goldenScan() ledger.Scan {
	return ledger.Scan{Drop: "acme-in", Path: "/srv/in", Vault: "V", RemindAfter: 30 * time.Minute, LastScan: goldenTime(14), Fault: "drop folder paused (vanished)", FaultSince: goldenTime(15), Unnamed: 2, UnnamedSince: goldenTime(16),
		Pending: []ledger.PendingItem{{Name: "scan7.pdf", Reason: "loose file", Detail: "a link", Since: goldenTime(17), NeedsPerson: true}, {Name: "Müller"}}}
}

// goldenRefused is the document of a folder that was refused.
func goldenRefused() ledger.Document {
	return ledger.Document{AsRead: archive.AsRead{Type: "Rechnung", Number: "D1", Date: "31.10.2026", SenderName: "Müller GmbH", SenderIDs: "DE1, DE2",
		RecipientName: "Acme GmbH", RecipientIDs: "DE999", Amount: "1.234,56", Currency: "€"}}
}

func goldenNote() ledger.Note {
	return ledger.Note{Salt: [16]byte{1, 2, 3, 15: 9}, Text: "mit Frau Müller geklärt"}
}

func goldenBlock() block {
	return block{prev: sum("prev"), count: 2, lines: [][]byte{
		[]byte(`{"n":5,"at":"2026-11-20T09:00:00.000Z","event":"held","key":"06gzgbs2d2n43zeqyj2594nkn0"}`), []byte(`{"n":6}`),
	}}
}

// readHex reads a golden record; with UPDATE_GOLDEN it is written first, as given.
func readHex(t *testing.T, path string, given []byte) []byte {
	t.Helper()
	if update {
		text := regexp.MustCompile(`.{1,100}`).ReplaceAllString(hex.EncodeToString(given), "$0\n")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	record, err := hex.DecodeString(strings.Join(strings.Fields(string(b)), ""))
	if err != nil {
		t.Fatal(err)
	}
	return record
}

func golden[T any](t *testing.T, name string, m *message[T], value T) {
	t.Helper()
	path := filepath.Join("testdata", fmt.Sprintf("schema%d", Schema), name+".hex")
	record := readHex(t, path, m.encode(&value))
	if got := m.encode(&value); !bytes.Equal(got, record) {
		t.Errorf("%s is written as\n%x, golden is\n%x", name, got, record)
	}
	got, err := m.decode(record)
	if err != nil || !reflect.DeepEqual(got, value) {
		t.Errorf("%s is read as\n%#v (%v), want\n%#v", name, got, err, value)
	}
}

func TestRecord_I28_Golden(t *testing.T) {
	golden(t, "entry", entryForm, goldenStored())
	golden(t, "document", documentForm, goldenDocument())
	golden(t, "document-refused", documentForm, goldenRefused())
	golden(t, "note", noteForm, goldenNote())
	golden(t, "block", blockForm, goldenBlock())
	golden(t, "total", totalForm, goldenTotal())
	golden(t, "count", countForm, count{300})
	golden(t, "runs", indexForm, goldenIndex())
	golden(t, "summary", summaryForm, goldenSummary())
	golden(t, "scan", scanForm, goldenScan())
	golden(t, "arrival", arrivalForm, goldenArrival())
	golden(t, "notice", noticeForm, Notice{ID: "a-1", Entry: archive.Key{1, 15: 9}, Seen: goldenTime(1), Raw: []byte(`{"acknowledgementId":"a-1"}`), Unknown: true})
}

// What is left out of an entry is there again when it is read, or nobody needs it any more.
func TestRecord_LeavesOutWhatCanBeTold(t *testing.T) {
	e := goldenEntry()
	record := encodeEntry(e, openBucket)
	want := goldenStored()
	if !bytes.Equal(record, entryForm.encode(&want)) {
		t.Error("it is not written without what the rest of it tells")
	}
	want.ID = e.ID
	if got, err := decodeEntry(record); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read is\n%+v (%v), want\n%+v", got, err, want)
	}
	e.ID = archive.ID{1} // of no generation: it is written
	if got, err := decodeEntry(encodeEntry(e, openBucket)); err != nil || got.ID != e.ID {
		t.Errorf("an identity of its own is read as %s (%v)", got.ID, err)
	}
	if got, err := decodeEntry(encodeEntry(e, doneBucket)); err != nil || got.Package.MD5 != [16]byte{} || got.Package.SHA256 != e.Package.SHA256 {
		t.Errorf("at rest its package is %+v (%v)", got.Package, err)
	}
}

// Whatever is added to one of the stored types must be added to its table.
func TestRecord_EveryFieldIsStored(t *testing.T) {
	for name, check := range map[string]func() (in, out any, err error){
		"Entry":    roundTrip(entryForm),
		"Document": roundTrip(documentForm),
		"Note":     roundTrip(noteForm),
		"Total":    roundTrip(totalForm),
		"Scan":     roundTrip(scanForm),
		"Arrival":  roundTrip(arrivalForm),
		"Notice":   roundTrip(noticeForm),
	} {
		in, out, err := check()
		if err != nil || !reflect.DeepEqual(in, out) {
			t.Errorf("%s: wrote\n%#v, read\n%#v (%v)", name, in, out, err)
		}
	}
}

func roundTrip[T any](m *message[T]) func() (in, out any, err error) {
	return func() (any, any, error) {
		var v T
		n := 0
		populate(reflect.ValueOf(&v).Elem(), &n)
		out, err := m.decode(m.encode(&v))
		return v, out, err
	}
}

// populate gives every field another value than zero.
func populate(v reflect.Value, n *int) {
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(goldenTime(*n % 60)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			populate(v.Field(i), n)
		}
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			populate(v.Index(i), n)
		}
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		populate(v.Index(0), n)
		populate(v.Index(1), n)
	case v.CanUint():
		v.SetUint(uint64(*n%200 + 1))
	case v.CanInt():
		v.SetInt(int64(*n))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	}
}

// docs/ledger.proto is what readers without vaultd go by.
func TestRecord_AsDescribed(t *testing.T) {
	b, err := os.ReadFile("../../../docs/ledger.proto")
	if err != nil {
		t.Fatal(err)
	}
	text := regexp.MustCompile(`//[^\n]*`).ReplaceAllString(string(b), "")
	described := map[string][]string{}
	for _, m := range regexp.MustCompile(`message (\w+) \{([^}]*)\}`).FindAllStringSubmatch(text, -1) {
		for _, f := range strings.Split(m[2], ";") {
			if f = strings.Join(strings.Fields(f), " "); f != "" {
				described[m[1]] = append(described[m[1]], f)
			}
		}
	}
	written := map[string][]string{}
	for _, form := range tables() {
		written[form.name] = form.fields
	}
	for name := range described {
		if !reflect.DeepEqual(described[name], written[name]) {
			t.Errorf("message %s is described as\n%q, written as\n%q", name, described[name], written[name])
		}
	}
	if len(described) != len(written) {
		t.Errorf("%d messages are described, %d are written", len(described), len(written))
	}
}

func TestRecord_I14_EveryFlippedBitIsSeen(t *testing.T) {
	e := goldenEntry()
	record := entryForm.encode(&e)
	for i := range len(record) * 8 {
		bad := bytes.Clone(record)
		bad[i/8] ^= 1 << (i % 8)
		if _, err := entryForm.decode(bad); err == nil {
			t.Fatalf("bit %d flipped, and nobody noticed", i)
		}
	}
	for n := range len(record) {
		if _, err := entryForm.decode(record[:n]); err == nil {
			t.Fatalf("cut to %d bytes, and nobody noticed", n)
		}
	}
}

func TestRecord_I28_UnknownIsRefusedNotDropped(t *testing.T) {
	type more struct {
		ledger.Cause
		extra string
	}
	newer := &message[more]{"Cause", []field[more]{
		textField(1, "code", func(m *more) *string { return &m.Code }),
		textField(3, "extra", func(m *more) *string { return &m.extra }),
	}}
	v := more{Cause: ledger.Cause{Code: "x"}, extra: "y"}
	if c, err := causeForm.decode(newer.encode(&v)); err == nil {
		t.Errorf("read %+v and dropped a field", c)
	}
	for name, record := range map[string][]byte{"State": sealWith(func(e *ledger.Entry) { e.State = 13 }), "NoState": sealWith(func(e *ledger.Entry) { e.State = 0 }),
		"Source": sealWith(func(e *ledger.Entry) { e.Source = 9 })} {
		if _, err := decodeEntry(record); err == nil {
			t.Errorf("%s: an unknown number passed", name)
		}
	}
}

func sealWith(change func(*ledger.Entry)) []byte {
	e := goldenEntry()
	change(&e)
	return entryForm.encode(&e)
}

func TestRecord_TimesBeyondTheirRangeStay(t *testing.T) {
	for _, year := range []int{1, 1600, 9999} {
		in := goldenEntry()
		in.ArchivedAt = time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		out, err := entryForm.decode(entryForm.encode(&in))
		if err != nil || out.ArchivedAt.IsZero() {
			t.Errorf("year %d is read as %v (%v)", year, out.ArchivedAt, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	e, d, b := goldenEntry(), goldenDocument(), goldenBlock()
	f.Add(entryForm.appendFields(nil, &e))
	f.Add(documentForm.appendFields(nil, &d))
	f.Add(blockForm.appendFields(nil, &b))
	n := goldenNote()
	f.Add(noteForm.appendFields(nil, &n))
	f.Fuzz(func(t *testing.T, payload []byte) {
		fuzzOne(t, entryForm, payload)
		fuzzOne(t, documentForm, payload)
		fuzzOne(t, blockForm, payload)
		fuzzOne(t, noteForm, payload)
	})
}

// fuzzOne holds that what can be read is written back without loss.
func fuzzOne[T any](t *testing.T, m *message[T], payload []byte) {
	var v T
	if m.parseFields(&v, payload) != nil {
		return
	}
	again, err := m.decode(m.encode(&v))
	if err != nil || !reflect.DeepEqual(m.appendFields(nil, &again), m.appendFields(nil, &v)) {
		t.Errorf("%s: read %#v, written and read again %#v (%v)", m.name, v, again, err)
	}
}
