// The tests of this file are inside the package because no caller gives or gets
// the bytes of a record, or an entry with every field: they take the codec's
// round trip from a value to its bytes and back.

package boltledger

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

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

func golden[T any](t *testing.T, name string, f form[T], value T) {
	t.Helper()
	path := filepath.Join("testdata", fmt.Sprintf("schema%d", Schema), name+".hex")
	record := f.encode(&value)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		kit.Must(t, os.WriteFile(path, []byte(regexp.MustCompile(`.{1,100}`).ReplaceAllString(hex.EncodeToString(record), "$0\n")), 0o644))
	}
	b, err := os.ReadFile(path)
	kit.Must(t, err)
	given, err := hex.DecodeString(strings.Join(strings.Fields(string(b)), ""))
	kit.Must(t, err)
	kit.Want(t, name+" as it is written now", hex.EncodeToString(record), hex.EncodeToString(given))
	got, err := f.decode(given)
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
		StoredFiles: []archive.FileID{"5f0e1c2d3b4a596877665544", "f-2"}, FilesUnderWay: 3, LostFiles: 2, Body: sum("body"), Recipient: ledger.RecipientRejected, Means: "MailDelivery", Asks: "BusinessReject/RepaymentFailed",
	}
}

func goldenArrival() arrival.Arrival {
	return arrival.Arrival{
		Key: archive.Key{1, 15: 9}, Rev: 7, Kind: arrival.Extract, State: arrival.Fetching, Item: "4711", Type: archive.DeltaExtract, Name: "books",
		Start: goldenTime(1), End: goldenTime(2), Made: goldenTime(3), Count: -1, Files: []arrival.File{
			{Name: "IA_INVOICE_1.zip", Table: "IA_INVOICE", Downloads: 3, Stored: "0001-IA_INVOICE_1.zip", Size: 1 << 33, SHA256: sum("file"), Beside: true}, {Name: "b"},
		},
		Manifest: sum("manifest"), AcknowledgeIntents: 2, Allowed: 10, UnknownPast: true, Gone: true, Attempt: 65535, NotBefore: goldenTime(4),
		Cause: ledger.Cause{Code: "cut", Text: "für Menschen"}, AnnouncedAt: goldenTime(5), HeldAt: goldenTime(6), AcknowledgedAt: goldenTime(7), UnknownPastAt: goldenTime(8), LostAt: goldenTime(13), HandedOnAt: goldenTime(9),
		Notice: "54759eb3-ack", ConfirmIntents: 2, ConfirmedAt: goldenTime(10),
		Said: []arrival.Said{{Rev: 300, Word: arrival.Accept, UID: 1000, At: goldenTime(11), Outcome: arrival.NotTaken, AnsweredAt: goldenTime(12), Cause: ledger.Cause{Code: "http-403", Text: "nein"}}, {Rev: 301, Word: arrival.Reject}},
	}
}

// Each value is read as it was written, whatever is in it.
func TestRecord_I5_RandomValuesAreReadAsWritten(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	readBack(t, r, entryForm)
	readBack(t, r, documentForm)
	readBack(t, r, noteForm)
	readBack(t, r, blockForm)
	readBack(t, r, summaryForm)
	readBack(t, r, scanForm)
	readBack(t, r, arrivalForm)
	readBack(t, r, noticeForm)
}

func readBack[T any](t *testing.T, r *rand.Rand, f form[T]) {
	t.Helper()
	for range 200 {
		var v T
		randomize(r, reflect.ValueOf(&v).Elem())
		record := f.encode(&v)
		got, err := f.decode(record)
		kit.Must(t, err)
		kit.Want(t, f.name, got, v)
		kit.Want(t, f.name+", written again", f.encode(&got), record)
	}
}

// randomize gives three of four parts of a value a random value.
func randomize(r *rand.Rand, v reflect.Value) {
	switch kind := v.Kind(); {
	case r.IntN(4) == 0:
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(0, int64(r.Uint64())).UTC()))
	case v.Type() == reflect.TypeFor[archive.RequestID]() && r.IntN(2) == 0:
		v.SetString(archive.ID{byte(r.Uint32()), 15: 1}.String())
	case kind == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("stored") != "-" {
				randomize(r, v.Field(i))
			}
		}
	case kind == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+r.IntN(3), 3))
		fallthrough
	case kind == reflect.Array:
		for i := range v.Len() {
			randomize(r, v.Index(i))
		}
	case v.CanUint():
		v.SetUint(r.Uint64() >> (64 - v.Type().Bits() + r.IntN(v.Type().Bits())))
	case v.CanInt():
		v.SetInt(int64(r.Uint64()) >> r.IntN(64))
	case kind == reflect.Bool:
		v.SetBool(true)
	case kind == reflect.String:
		v.SetString(strings.Repeat("\xffü", 1+r.IntN(60)))
	}
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

// Readers without vaultd rely on docs/ledger.proto: its messages are those that
// are written, with the comments of the source.
//
//go:generate env UPDATE_GOLDEN=1 go test -count=1 -run ^TestForm_I28_Described$ .
func TestForm_I28_Described(t *testing.T) {
	const path, begin = "../../../docs/ledger.proto", "package vaultd.ledger;\n"
	head, _, found := strings.Cut(string(kit.Value(os.ReadFile(path))(t)), begin)
	kit.Need(t, found, "%s has no line %q, want one before the messages", path, begin)
	var b strings.Builder
	b.WriteString(head + begin)
	meanings := meaningsIn(t, ".", "..", "../arrival", "../../archive")
	comment := func(indent, of string) string {
		if text := meanings[of]; text != "" {
			return indent + "// " + text
		}
		return ""
	}
	described := map[string]reflect.Type{}
	var describe func(of reflect.Type)
	describe = func(of reflect.Type) {
		name := nameInProto(of)
		if was := described[name]; was != nil {
			kit.Need(t, was == of, "two messages have the name %s, want one", name)
			return
		}
		described[name] = of
		fmt.Fprintf(&b, "\n%s\nmessage %s {\n", comment("", name), name)
		var parts []reflect.Type
		for _, f := range messageOf(of).fields {
			typ := of.Field(f.index).Type
			if f.list != 0 {
				b.WriteString("  repeated")
				typ = typ.Elem()
			} else {
				b.WriteString(" ")
			}
			fmt.Fprintf(&b, " %s %s = %d;%s\n", typeInProto(typ), f.name, f.num, comment(" ", name+"."+f.name))
			if f.part != nil {
				parts = append(parts, typ)
			}
		}
		b.WriteString("}\n")
		for _, p := range parts {
			describe(p)
		}
	}
	for _, of := range []any{ledger.Entry{}, ledger.Document{}, ledger.Note{}, block{}, summary{}, ledger.Scan{}, arrival.Arrival{}, ledger.Notice{}} {
		describe(reflect.TypeOf(of))
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		kit.Must(t, os.WriteFile(path, []byte(b.String()), 0o644))
	}
	kit.Want(t, path, string(kit.Value(os.ReadFile(path))(t)), b.String())
}

// nameInProto returns the name of a struct in docs/ledger.proto. The package of
// arrivals has a File of its own.
func nameInProto(of reflect.Type) string {
	name := of.Name()
	if strings.HasSuffix(of.PkgPath(), "/arrival") && name != "Arrival" {
		name = "Arrival" + name
	}
	return strings.ToUpper(name[:1]) + name[1:]
}

func typeInProto(of reflect.Type) string {
	switch kind := of.Kind(); {
	case of == reflect.TypeFor[time.Time]():
		return "optional int64"
	case of == reflect.TypeFor[archive.RequestID]() || kind == reflect.Slice || kind == reflect.Array:
		return "bytes"
	case kind >= reflect.Uint8 && kind <= reflect.Uint32:
		return "uint32"
	case kind == reflect.Int || kind == reflect.Int64:
		return "int64"
	case kind == reflect.Struct:
		return nameInProto(of)
	}
	return of.Kind().String()
}

// meaningsIn returns the comments of the structs in some folders, and of their
// fields with the numbers of their types, by their names in docs/ledger.proto.
func meaningsIn(t *testing.T, dirs ...string) map[string]string {
	t.Helper()
	meanings, typeOf, numbers := map[string]string{}, map[string]string{}, map[string]string{}
	read := func(pkg string, d *ast.GenDecl) {
		switch first := d.Specs[0].(type) {
		case *ast.ValueSpec:
			if of, ok := first.Type.(*ast.Ident); ok && len(first.Values) == 1 && isIota(first.Values[0]) {
				for i, s := range d.Specs {
					numbers[pkg+"."+of.Name] += fmt.Sprintf("; %d %s", i, s.(*ast.ValueSpec).Names[0])
				}
			}
		case *ast.TypeSpec:
			name := strings.ToUpper(first.Name.Name[:1]) + first.Name.Name[1:]
			if pkg == "arrival" && name != "Arrival" {
				name = "Arrival" + name
			}
			fields, ok := first.Type.(*ast.StructType)
			if _, known := meanings[name]; !ok || known {
				return
			}
			meanings[name] = oneLine(d.Doc)
			for _, f := range fields.Fields.List {
				for _, n := range f.Names {
					meanings[name+"."+n.Name] = oneLine(cmp.Or(f.Comment, f.Doc))
					if typeOf[name+"."+n.Name] = types.ExprString(f.Type); !strings.Contains(types.ExprString(f.Type), ".") {
						typeOf[name+"."+n.Name] = pkg + "." + types.ExprString(f.Type)
					}
				}
			}
		}
	}
	for _, dir := range dirs {
		for _, path := range kit.Value(filepath.Glob(dir + "/*.go"))(t) {
			file := kit.Value(parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments))(t)
			for _, d := range file.Decls {
				if d, ok := d.(*ast.GenDecl); ok && len(d.Specs) > 0 {
					read(file.Name.Name, d)
				}
			}
		}
	}
	for field, of := range typeOf {
		meanings[field] = strings.TrimPrefix(meanings[field]+numbers[of], "; ")
	}
	return meanings
}

func isIota(e ast.Expr) bool {
	n, ok := e.(*ast.Ident)
	return ok && n.Name == "iota"
}

func oneLine(c *ast.CommentGroup) string {
	return strings.NewReplacer("[", "", "]", "").Replace(strings.Join(strings.Fields(c.Text()), " "))
}

// The digest of the form follows the tags.
func TestForm_I28_DigestFollowsTheTags(t *testing.T) {
	before := digestOfForm()
	row := &noteForm.fields[1]
	defer func(num protowire.Number) { row.num = num }(row.num)
	row.num = 3
	now := digestOfForm()
	kit.Check(t, now != before, "digest = %s with another number of a field, want another one", now)
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
		fuzzOne(t, documentForm, record)
	})
}

func fuzzOne[T any](t *testing.T, f form[T], record []byte) {
	v, err := f.decode(record)
	if err != nil {
		return
	}
	again, err := f.decode(f.encode(&v))
	kit.Check(t, err == nil && bytes.Equal(f.encode(&again), f.encode(&v)),
		"written and read again %#v (%v), want %#v", again, err, v)
}
