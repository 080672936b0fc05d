// The tests of this file are inside the package because no caller gives or gets
// the bytes of a record, or an entry with every field: they take the codec's
// round trip from a value to its bytes and back.

package boltledger

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
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
	"vaultd/internal/test/kit"
)

// The golden records of an entry and of an arrival, with every field. The
// values and the bytes belong together for as long as their schema is read;
// until it is released UPDATE_GOLDEN=1 writes them again.
func TestRecord_I28_Golden(t *testing.T) {
	golden(t, "entry", entryForm, goldenEntry())
	golden(t, "arrival", arrivalForm, goldenArrival())
}

func golden[T any](t *testing.T, name string, m *message[T], value T) {
	t.Helper()
	path := filepath.Join("testdata", fmt.Sprintf("schema%d", Schema), name+".hex")
	record := m.encode(&value)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		kit.Must(t, os.WriteFile(path, []byte(regexp.MustCompile(`.{1,100}`).ReplaceAllString(hex.EncodeToString(record), "$0\n")), 0o644))
	}
	b, err := os.ReadFile(path)
	kit.Must(t, err)
	given, err := hex.DecodeString(strings.Join(strings.Fields(string(b)), ""))
	kit.Must(t, err)
	kit.Want(t, name+" as it is written now", hex.EncodeToString(record), hex.EncodeToString(given))
	got, err := m.decode(given)
	kit.Want(t, "the error", err, nil)
	kit.Want(t, "the golden "+name, got, value)
}

func sum(s string) archive.Digest { return archive.Sum([]byte(s)) }

func goldenTime(n int) time.Time { return time.Date(2026, 11, 20, 9, 0, n, 123456789, time.UTC) }

// goldenEntry has every field of a stored entry. Its identity and the path of
// its package are not stored: the rest of the entry gives them.
func goldenEntry() ledger.Entry {
	base := archive.ID{0x80, 0x87, 0xdf, 0xba, 0x45, 0xef, 0x5a, 0x37, 0xac, 0x3c, 0xd5, 0x56, 0x7c, 0xfb, 0x6d, 0x39}
	return ledger.Entry{
		Key: archive.Key{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Rev: 300, State: ledger.Quarantined, Source: ledger.Gone,
		Route: ledger.Vault, Vault: "VAULT-1", Drop: "acme-in", Folder: "Müller 4711", Owner: 1000, Node: ledger.Node{Dev: 64769, Ino: 1 << 40},
		Fingerprint: sum("look"), FirstID: base, Generation: 1, IDFromSidecar: true, Content: sum("content"), Metadata: sum("metadata"),
		Package: archive.Package{Size: 100_000_000, SHA256: sum("zip"), MD5: [16]byte{15: 9}},
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
		StoredFiles: []archive.FileID{"5f0e1c2d3b4a596877665544", "f-2"}, FilePosts: 3, FileAnswers: 2, Body: sum("body"), Recipient: ledger.RecipientRejected, Means: "MailDelivery", Asks: "BusinessReject/RepaymentFailed",
	}
}

func goldenArrival() arrival.Arrival {
	return arrival.Arrival{
		Key: archive.Key{1, 15: 9}, Rev: 7, Kind: arrival.Extract, State: arrival.Fetching, Item: "4711", Type: archive.DeltaExtract, Name: "books",
		Start: goldenTime(1), End: goldenTime(2), Made: goldenTime(3), Count: -1, Files: []arrival.File{
			{Name: "IA_INVOICE_1.zip", Table: "IA_INVOICE", Downloads: 3, Stored: "0001-IA_INVOICE_1.zip", Size: 1 << 33, SHA256: sum("file"), Beside: true}, {Name: "b"},
		},
		Manifest: sum("manifest"), AcknowledgeIntents: 2, Allowed: 10, UnknownPast: true, Gone: true, Attempt: 65535, NotBefore: goldenTime(4),
		Cause: ledger.Cause{Code: "cut", Text: "für Menschen"}, AnnouncedAt: goldenTime(5), HeldAt: goldenTime(6), AcknowledgedAt: goldenTime(7), DoubtedAt: goldenTime(8), LostAt: goldenTime(13), HandedOnAt: goldenTime(9),
		Notice: "54759eb3-ack", ConfirmIntents: 2, ConfirmedAt: goldenTime(10),
		Said: []arrival.Said{{Rev: 300, Word: arrival.Accept, UID: 1000, At: goldenTime(11), Outcome: arrival.NotTaken, AnsweredAt: goldenTime(12), Cause: ledger.Cause{Code: "http-403", Text: "nein"}}, {Rev: 301, Word: arrival.Reject}},
	}
}

// Whatever is added to an entry or an arrival must be added to its table.
func TestRecord_EveryFieldIsStored(t *testing.T) {
	roundTrip(t, entryForm)
	roundTrip(t, arrivalForm)
}

func roundTrip[T any](t *testing.T, m *message[T]) {
	t.Helper()
	var v T
	n := 0
	populate(reflect.ValueOf(&v).Elem(), &n)
	got, err := m.decode(m.encode(&v))
	kit.Want(t, "the error", err, nil)
	kit.Want(t, "a value with every field, written and read", got, v)
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

// Readers without vaultd rely on docs/ledger.proto.
func TestRecord_AsDescribed(t *testing.T) {
	b := kit.Value(os.ReadFile("../../../docs/ledger.proto"))(t)
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
		kit.Want(t, "described message "+name, described[name], written[name])
	}
	kit.Want(t, "number of described messages", len(described), len(written))
}

func TestRecord_I14_EveryFlippedBitIsSeen(t *testing.T) {
	e := goldenEntry()
	record := entryForm.encode(&e)
	for i := range len(record) * 8 {
		bad := bytes.Clone(record)
		bad[i/8] ^= 1 << (i % 8)
		_, err := entryForm.decode(bad)
		kit.Need(t, err != nil, "bit %d flipped: no error, want one", i)
	}
	for n := range len(record) {
		_, err := entryForm.decode(record[:n])
		kit.Need(t, err != nil, "cut to %d bytes: no error, want one", n)
	}
}

func TestRecord_TimesBeyondTheirRangeStay(t *testing.T) {
	for _, year := range []int{1, 1600, 9999} {
		in := goldenEntry()
		in.ArchivedAt = time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		out, err := entryForm.decode(entryForm.encode(&in))
		kit.Check(t, err == nil && !out.ArchivedAt.IsZero(),
			"year %d is read as %v (%v), want a time", year, out.ArchivedAt, err)
	}
}

// The digest of the form follows every table.
func TestForm_I28_DigestFollowsTheTables(t *testing.T) {
	before := digestOfTables()
	rows := causeForm.fields
	defer func() { causeForm.fields = rows }()
	causeForm.fields = rows[:1]
	now := digestOfTables()
	kit.Check(t, now != before, "digest = %s with a field less, want another one", now)
}

// A record that can be read is written back without loss.
func FuzzRecord(f *testing.F) {
	e, a := goldenEntry(), goldenArrival()
	payload := func(record []byte) []byte { return record[1 : len(record)-4] }
	f.Add(payload(entryForm.encode(&e)))
	f.Add(payload(arrivalForm.encode(&a)))
	f.Fuzz(func(t *testing.T, record []byte) {
		record = append([]byte{1}, record...)
		record = binary.BigEndian.AppendUint32(record, crc32.Checksum(record, crc32.MakeTable(crc32.Castagnoli)))
		fuzzOne(t, entryForm, record)
		fuzzOne(t, arrivalForm, record)
	})
}

func fuzzOne[T any](t *testing.T, m *message[T], record []byte) {
	v, err := m.decode(record)
	if err != nil {
		return
	}
	again, err := m.decode(m.encode(&v))
	kit.Check(t, err == nil && bytes.Equal(m.encode(&again), m.encode(&v)),
		"written and read again %#v (%v), want %#v", again, err, v)
}
