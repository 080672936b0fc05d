package boltledger_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// I12: what was delivered on a day is counted by drop folder, and by no count
// of what is archived, by no total and no last success. The counts agree with
// the entries, also where the day begins within a quarter of an hour.
func TestCounts_I12_DeliveredByThemselves(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	at, err := l.LastDelivery()
	kit.Check(t, err == nil && at.IsZero(), "the last delivery before any = %v (%v), want none", at, err)
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, at := range []time.Time{noon.Add(-30 * time.Hour), noon.Add(-12*time.Hour - 5*time.Minute), noon.Add(-time.Hour), noon} {
		key := archive.NewKey(at)
		doc := ledger.Document{Salt: [16]byte{byte(i)}, Metadata: []byte("{}")}
		p := archive.Package{Path: "x.pdf", Size: 5, SHA256: archive.Sum([]byte{byte(i)})}
		remote := archive.RemoteID(fmt.Sprintf("slot-%d", i))
		applied(t, l, ledger.Change{Key: key, Document: &doc, At: archive.Instant{Wall: at}, Events: []ledger.Event{
			ledger.ClaimedFolder{Route: ledger.PDF, Drop: []string{"scans", "post"}[i%2], Folder: "x.pdf"},
			ledger.Sealed{ID: archive.ID{byte(i + 1)}, Content: p.SHA256, Package: p, Seal: doc.Seal(p)}, ledger.RegisterIntended{},
			ledger.TicketReceived{Ticket: archive.Ticket{Remote: remote, URL: archive.PresignedURL("https://store.example/" + remote), Sent: archive.Instant{Wall: at}, Validity: time.Hour}},
			ledger.UploadIntended{}, ledger.DeliveryConfirmed{Sent: p.SHA256, Seal: doc.Seal(p)}}})
	}
	// No zone is seven minutes away from another one: all entries are counted
	// then, one by one.
	for offset, post := range map[time.Duration]int{0: 1, 7 * time.Minute: 2} {
		isToday := func(at time.Time) bool {
			return at.Add(offset).Format(time.DateOnly) == noon.Format(time.DateOnly)
		}
		if got, err := l.CountDelivered(noon, isToday); err != nil || !maps.Equal(got, map[string]int{"post": post, "scans": 1}) {
			t.Errorf("delivered %v after midnight = %v (%v), want %d by post and 1 by scans", offset, got, err, post)
		}
		kit.Len(t, "archived", kit.Value(l.CountArchived(noon, isToday))(t), 0)
	}
	kit.Want(t, "delivered by day", kit.Value(l.CountDeliveredByDay(noon, 3))(t), []int{0, 2, 2})
	kit.Want(t, "archived by day", kit.Value(l.CountArchivedByDay(noon, 3))(t), []int{0, 0, 0})
	at, err = l.LastDelivery()
	kit.Check(t, err == nil && at.Equal(noon), "the last delivery = %v (%v), want %v", at, err, noon)
	at, err = l.LastSuccess()
	kit.Check(t, err == nil && at.IsZero(), "the last success = %v (%v), want none", at, err)
	kit.Len(t, "totals", kit.Value(l.Totals())(t), 0)
	sound(t, l)
}

// I12: a file that another entry lists is found, however many documents the ledger has.
func TestCountHeldFiles_I12_FindsOthers(t *testing.T) {
	l := fill.New(t, boltledger.Config{}, ledger.Info{})
	logo, own, none := archive.Sum([]byte("logo")), archive.Sum([]byte("own")), archive.Sum([]byte("none"))
	keys, at := map[string]archive.Key{}, time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC)
	for name, files := range map[string][]archive.Digest{"one": {logo}, "two": {own, logo}} {
		doc := &ledger.Document{}
		for _, d := range files {
			doc.Files = append(doc.Files, archive.File{Path: "x", Size: 1, SHA256: d})
		}
		i := l.Item(name)
		keys[name] = i.Claim(at).Key
		l.Commit(ledger.Change{Key: i.Key, Rev: 1, Events: []ledger.Event{ledger.Refused{Cause: ledger.Cause{Code: "x"}}}, Document: doc, At: archive.Instant{Wall: at}})
	}
	for skipped, want := range map[string]int{"one": 2, "two": 1, "neither": 2} {
		got := kit.Value(l.CountHeldFiles(t.Context(), []archive.Digest{logo, own, none}, func(k archive.Key) bool { return k == keys[skipped] }))(t)
		kit.Want(t, "held without "+skipped, got, want)
	}
}

// The readable part of a folder that ends unsealed is committed with its end,
// and is there after a restart.
func TestDocument_I5_OfAnEntryThatEndsUnsealed(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	first := newDoc(t, l, 1).archived()
	read := goldenRefused()
	for n, end := range []ledger.Event{ledger.Refused{Cause: ledger.Cause{Code: "documentDate-not-understood"}}, ledger.FoundDuplicate{First: first.e.Key}} {
		d := newDoc(t, l, n+2)
		d.do(d.claim())
		c := d.change(end)
		c.Document = &read
		applied(t, l, c)
	}
	kit.Must(t, l.Close())
	l = open(t, boltledger.Config{Dir: dir})
	sound(t, l)
	for n := range 2 {
		got, ok, err := l.Document(newDoc(t, l, n+2).e.Key)
		kit.Check(t, err == nil && ok && got.AsRead == read.AsRead && got.IsOnlyAsRead(),
			"document %d = %+v, %v (%v), want nothing but %+v", n+2, got, ok, err, read.AsRead)
	}
	kit.Want(t, "the error of Lines",
		l.Lines(1, func(_ uint64, line []byte) error { return holdsNothingOf(read.AsRead, line) }), nil)
}

func holdsNothingOf(read archive.AsRead, line []byte) error {
	for _, text := range []string{read.Number, read.Date, read.SenderName, read.Amount} {
		if len(text) > 2 && bytes.Contains(line, []byte(text)) {
			return errors.New("a journal line holds " + text)
		}
	}
	return nil
}

// That part never replaces the document of a sealed folder, and such a document
// never comes with a refusal.
func TestDocument_RefusedDoesNotReplaceASealedOne(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	sealed := newDoc(t, l, 1)
	sealed.do(sealed.claim())
	sealed.do(sealed.sealed())
	fresh := newDoc(t, l, 2)
	fresh.do(fresh.claim())
	read := goldenRefused()
	for name, row := range map[string]struct {
		d   *doc
		own *ledger.Document
	}{"Sealed": {sealed, &read}, "WithMetadata": {fresh, &fresh.own}} {
		c := row.d.change(ledger.Refused{})
		c.Document = row.own
		rs, err := l.Apply(t.Context(), c)
		kit.Check(t, err == nil && errors.Is(rs[0].Err, ledger.ErrIllegal), "%s: %v (%v), want %v", name, rs, err, ledger.ErrIllegal)
	}
	got, ok, err := l.Document(sealed.e.Key)
	kit.Check(t, err == nil && ok && got.Salt == sealed.own.Salt && got.AsRead.IsZero(), "document = %+v, %v (%v), want the sealed one", got, ok, err)
}
