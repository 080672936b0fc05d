package boltledger_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/protobuf/encoding/protowire"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

func goldenTime(n int) time.Time { return time.Date(2026, 11, 20, 9, 0, n, 123456789, time.UTC) }

func goldenDocument() ledger.Document {
	return ledger.Document{
		Salt: [16]byte{1, 2, 3}, Metadata: []byte(`{"documentId":"4711"}`), Files: []archive.File{{Path: "a/rechnung.pdf", Size: 12345, SHA256: sum("a"), Type: archive.ImageFile}, {Path: "b.xml"}},
		ControlFiles: []archive.File{{Path: "metadata.json", Size: 99, SHA256: sum("m"), Type: archive.DataFile}}, Junk: []string{"Thumbs.db", ""}, Remarks: []string{"b.xml looks cut off"}, FileOwners: []uint32{1002, 1003},
	}
}

// goldenRefused is the document of a folder that was refused.
func goldenRefused() ledger.Document {
	return ledger.Document{AsRead: archive.AsRead{Type: "Rechnung", Number: "D1", Date: "31.10.2026", SenderName: "Müller GmbH", SenderIDs: "DE1, DE2",
		RecipientName: "Acme GmbH", RecipientIDs: "DE999", Amount: "1.234,56", Currency: "€"}}
}

func goldenScan() ledger.Scan {
	return ledger.Scan{Drop: "acme-in", Path: "/srv/in", Vault: "V", RemindAfter: 30 * time.Minute, LastScan: goldenTime(14), Fault: "drop folder paused (vanished)", FaultSince: goldenTime(15), Unnamed: 2, UnnamedSince: goldenTime(16),
		IgnoredByRule: ledger.IgnoredNames{Count: 3, Names: []string{"Entwurf"}}, IgnoredBySystem: ledger.IgnoredNames{Count: 4, Names: []string{"lost+found"}},
		Pending: []ledger.PendingItem{{Name: "scan7.pdf", Reason: "loose file", Detail: "a link", Since: goldenTime(17), NeedsPerson: true}, {Name: "Müller"}},
		Missing: []ledger.MissingFolder{{Key: archive.Key{1, 15: 7}, Since: goldenTime(18)}}, KeptScan: goldenTime(19), KeptUnread: 5, KeptSince: goldenTime(18)}
}

func goldenNote() ledger.Note {
	return ledger.Note{Salt: [16]byte{1, 2, 3, 15: 9}, Text: "mit Frau Müller geklärt"}
}

// goldenLedger writes a small ledger with a record of each kind. Its keys,
// times and salts are fixed, and so is the secret that it makes.
func goldenLedger(t *testing.T) (dir string) {
	t.Helper()
	cryptotest.SetGlobalRandom(t, 1)
	dir = newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	note := goldenNote()
	by := ledger.Operator{UID: 7, Reason: note.Digest()}
	one := newDoc(t, l, 1)
	one.own = goldenDocument()
	one.archived()
	refused := newDoc(t, l, 2)
	refused.own = goldenRefused()
	refused.do(refused.claim())
	c := refused.change(ledger.Refused{Cause: ledger.Cause{Code: "c", Text: "für Menschen"}})
	c.Document = &refused.own
	applied(t, l, c)
	sending := newDoc(t, l, 3)
	sending.do(sending.claim(), sending.sealed(), ledger.RegisterIntended{})
	ticket := sending.ticket()
	ticket.Ticket.Headers = []archive.Header{{Name: "X-One", Value: "1"}, {Name: "X-Empty"}}
	sending.do(ticket, ledger.UploadIntended{})
	held := newDoc(t, l, 4)
	held.do(held.claim())
	c = held.change(ledger.Held{By: by})
	c.Note = &note
	applied(t, l, c)
	newArrival(t, l, 5).hold("4711")
	newArrival(t, l, 6).do(listedAs("4712"))
	notices := []ledger.OtherNotice{{Notification: archive.Notification{AcknowledgementID: "a-1", Document: "bum-9", Raw: []byte(`{"acknowledgementId":"a-1"}`)}}}
	_, err := l.IntendFetch(t.Context(), fetchOf(began), nil, 9)
	_, err2 := l.KeepNotices(t.Context(), archive.Instant{Wall: began}, notices)
	kit.Must(t, errors.Join(
		err, err2, l.PutScans(t.Context(), goldenScan()),
		l.NoteListIsUnfiltered(t.Context(), true), l.BindAddresses(t.Context(), []ledger.Address{{Key: "pdf.base_url", URL: "https://ap.example"}}),
		l.CommitMark(t.Context(), ledger.Mark{Name: ledger.MarkDamaged, By: by, At: began}, &note), l.Close(),
	))
	return dir
}

// contents returns all that a ledger says.
func contents(t *testing.T, dir string) string {
	t.Helper()
	l := open(t, boltledger.Config{Dir: dir})
	defer l.Close()
	sound(t, l)
	var b strings.Builder
	say := func(v any, err error) {
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(&b, "%+v\n", v)
	}
	safe, _ := l.SafeMode()
	say(l.Info(), nil)
	say(l.Head(), nil)
	say(l.Balance(), nil)
	say(safe, nil)
	for _, e := range entriesOf(t, l) {
		say(e, nil)
		d, _, err := l.Document(e.Key)
		say(d, err)
		ns, err := l.Notes(e.Key)
		say(ns, err)
	}
	ns, err := l.Notes(archive.Key{})
	say(ns, err)
	scans, err := l.Scans()
	say(scans, err)
	say(l.LastSuccess(), nil)
	say(l.IsListUnfiltered(), nil)
	err = errors.Join(
		l.Arrivals(func(a arrival.Arrival) error { say(a, nil); return nil }, arrival.States()...),
		l.Notices(func(n ledger.Notice) error { say(n, nil); return nil }),
		l.Lines(1, func(_ uint64, line []byte) error { say(string(line), nil); return nil }),
	)
	if err != nil {
		t.Error(err)
	}
	return b.String()
}

// records returns every pair of a ledger, the records of them inflated: another
// version of the compression may deflate them otherwise.
func records(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	edit(t, dir, func(tx *bbolt.Tx) error {
		err := tx.ForEach(func(name []byte, bucket *bbolt.Bucket) error {
			return bucket.ForEach(func(k, v []byte) error {
				if len(v) > 4 && v[0] == codecDeflated {
					v = payloadOf(t, v)
				}
				fmt.Fprintf(&b, "%s %x %x\n", name, k, v)
				return nil
			})
		})
		if err != nil {
			return err
		}
		return errUnchanged
	})
	return b.String()
}

// rebuilt makes a ledger of the pairs that dump gave, with their outside head.
func rebuilt(t *testing.T, pairs string, head ledger.Head) (dir string) {
	t.Helper()
	dir = t.TempDir()
	edit(t, dir, func(tx *bbolt.Tx) error {
		for line := range strings.Lines(pairs) {
			bucket, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
			k, v, _ := strings.Cut(rest, " ")
			key, keyErr := hex.DecodeString(k)
			value, valueErr := hex.DecodeString(v)
			b, err := tx.CreateBucketIfNotExists([]byte(bucket))
			if err = errors.Join(keyErr, valueErr, err); err == nil {
				err = b.Put(key, value)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	kit.Must(t, writeHead(dir, outsideHead{N: head.N, Hash: head.Hash.String(), Ledger: info.ID}))
	return dir
}

// The pairs of a small ledger and their bytes belong together for as long as
// their schema is read: a ledger that was written once must be readable in
// fifteen years. Until the schema is released UPDATE_GOLDEN=1 writes them
// again.
func TestLedger_I28_Golden(t *testing.T) {
	dir := goldenLedger(t)
	path := filepath.Join("testdata", fmt.Sprintf("schema%d", boltledger.Schema), "ledger.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		kit.Must(t, os.WriteFile(path, []byte(dump(t, dir)), 0o644))
	}
	given, err := os.ReadFile(path)
	kit.Must(t, err)
	l := open(t, boltledger.Config{Dir: dir})
	head := l.Head()
	kit.Must(t, l.Close())
	old := rebuilt(t, string(given), head)
	kit.Want(t, "records as they are written now", records(t, dir), records(t, old))
	kit.Want(t, "what the golden records say", contents(t, old), contents(t, dir))
	if !bytes.Contains(given, []byte("journal 0000000000000002 02")) {
		t.Error("the second block of the journal is not deflated, want it deflated")
	}
}

// An entry with a field, a state or a source that this version does not know,
// or with a field twice, is refused: written back, it would lose something.
func TestRecord_I28_UnknownIsRefusedNotDropped(t *testing.T) {
	source, keys := filled(t)
	key := keys[2]
	unknownField := func(bucket []byte) func(*testing.T, *bbolt.Tx) error {
		return func(t *testing.T, tx *bbolt.Tx) error {
			payload := payloadOf(t, tx.Bucket(bucket).Get(key[:]))
			payload = protowire.AppendVarint(protowire.AppendTag(payload, 90, protowire.VarintType), 1)
			return tx.Bucket(bucket).Put(key[:], sealed(codecPlain, payload))
		}
	}
	again := func(t *testing.T, tx *bbolt.Tx) error {
		before, state, after := cutField(t, payloadOf(t, tx.Bucket(doneBucket).Get(key[:])), described(t)["Entry"]["State"].number)
		state = append(protowire.AppendTag(nil, described(t)["Entry"]["State"].number, protowire.VarintType), state...)
		return tx.Bucket(doneBucket).Put(key[:], sealed(codecPlain, slices.Concat(before, state, state, after)))
	}
	altered := func(field string, value func([]byte) []byte) func(*testing.T, *bbolt.Tx) error {
		return func(t *testing.T, tx *bbolt.Tx) error { return setField(t, tx, doneBucket, key[:], field, value) }
	}
	entry := func(l *boltledger.Ledger) error { _, _, err := l.Entry(key); return err }
	document := func(l *boltledger.Ledger) error { _, _, err := l.Document(key); return err }
	for name, row := range map[string]struct {
		harm func(*testing.T, *bbolt.Tx) error
		read []func(*boltledger.Ledger) error
	}{
		"State":      {altered("Entry.State", number(13)), []func(*boltledger.Ledger) error{entry}},
		"NoState":    {altered("Entry.State", func([]byte) []byte { return nil }), []func(*boltledger.Ledger) error{entry}},
		"Source":     {altered("Entry.Source", number(9)), []func(*boltledger.Ledger) error{entry}},
		"EntryField": {unknownField(doneBucket), []func(*boltledger.Ledger) error{entry}},
		"TooLarge":   {altered("Entry.Rev", number(1<<40)), []func(*boltledger.Ledger) error{entry}},
		"FieldAgain": {again, []func(*boltledger.Ledger) error{entry}},
		"Document":   {unknownField(docBucket), []func(*boltledger.Ledger) error{document}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyLedger(t, source, fileName, headName)
			edit(t, dir, func(tx *bbolt.Tx) error { return row.harm(t, tx) })
			l := open(t, boltledger.Config{Dir: dir})
			for _, read := range row.read {
				var d *ledger.DamageError
				if err := read(l); !errors.As(err, &d) {
					t.Errorf("read: %v, want damage", err)
				}
			}
		})
	}
}

// A record leaves out what the rest of it gives, and what an entry at rest no
// longer needs.
func TestRecord_LeavesOutWhatCanBeTold(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	onTheWay, atRest := newDoc(t, l, 1), newDoc(t, l, 2)
	onTheWay.do(onTheWay.claim(), onTheWay.sealed())
	s := atRest.sealed()
	s.Package.MD5 = [16]byte{1, 15: 2}
	atRest.do(atRest.claim(), s)
	kit.Want(t, "MD5 on the way", atRest.e.Package.MD5, s.Package.MD5)
	atRest.do(ledger.RegisterIntended{}, atRest.ticket(), ledger.UploadIntended{}, atRest.accepted())
	atRest.do(atRest.success(), ledger.PlaceIntended{Dest: "_archived/x"}, ledger.Placed{})
	kit.Want(t, "MD5 at rest", atRest.e.Package.MD5, [16]byte{})
	kit.Want(t, "digest at rest", atRest.e.Package.SHA256, s.Package.SHA256)
	kit.Must(t, l.Close())
	edit(t, dir, func(tx *bbolt.Tx) error {
		payload := payloadOf(t, tx.Bucket(openBucket).Get(onTheWay.e.Key[:]))
		for name, left := range map[string][]byte{"identity": onTheWay.e.ID[:], "path": []byte("/spool/x.zip")} {
			if n := bytes.Count(payload, left); n != map[string]int{"identity": 1}[name] { // the first identity is this one
				t.Errorf("the record has the %s %d times, want it left out where it can be", name, n)
			}
		}
		return errUnchanged
	})
	e, _, err := open(t, boltledger.Config{Dir: dir}).Entry(onTheWay.e.Key)
	if err != nil {
		t.Error(err)
	}
	kit.Want(t, "identity", e.ID, onTheWay.e.ID)
	kit.Want(t, "path of the package", e.Package.Path, "")
}
