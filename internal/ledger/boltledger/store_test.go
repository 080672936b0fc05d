// The tests of this file are inside the package because they count what bbolt
// does: whether it syncs, how many pages a commit writes, and whether readers
// and a file that outgrows its mapping wait for each other. No caller sees the
// bbolt database.

package boltledger

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

var began = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)

// newLedger makes a ledger and opens it with the rest of c.
func newLedger(t testing.TB, c Config) *Ledger {
	t.Helper()
	c.Dir = t.TempDir()
	kit.Must(t, Create(c.Dir, ledger.Info{ID: "ledger-1", Environment: "test", Created: began}))
	return open(t, c)
}

func open(t testing.TB, c Config) *Ledger {
	t.Helper()
	l := kit.Value(Open(c))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

func sound(t testing.TB, l *Ledger) {
	t.Helper()
	ps, err := l.Verify(t.Context())
	kit.Check(t, err == nil && len(ps) <= 0, "the check found %v (%v), want nothing", ps, err)
}

// life returns the changes of a document that comes to be archived and kept.
func life(n int) (cs []ledger.Change) {
	at := began.Add(time.Duration(n) * time.Second)
	c := ledger.Change{At: archive.Instant{Wall: at}}
	binary.BigEndian.PutUint64(c.Key[:8], uint64(at.UnixMilli())<<16)
	binary.BigEndian.PutUint64(c.Key[8:], uint64(n))
	own := ledger.Document{Salt: [16]byte(c.Key), Metadata: fmt.Appendf(nil, `{"documentId":"%d"}`, n)}
	p := archive.Package{Size: int64(1000 + n), SHA256: sum(fmt.Sprint("zip", n))}
	s := ledger.Sealed{Content: sum(fmt.Sprint("files", n)), Metadata: archive.Sum(own.Metadata), Package: p, Seal: own.Seal(p)}
	s.ID = archive.DeriveID("V1", s.Content, s.Metadata)
	ticket := archive.Ticket{Remote: archive.RemoteID(fmt.Sprint("bum-", n)), URL: archive.PresignedURL(fmt.Sprint("https://store.example/", n)), Sent: c.At, Date: at}
	success := archive.Receipt{Remote: ticket.Remote, Status: archive.Successful, Updated: at.Add(time.Hour), Record: []byte(`{"status":"ArchivingSuccessful"}`)}
	for _, events := range [][]ledger.Event{
		{ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: fmt.Sprint(n), NotBefore: at}},
		{s},
		{ledger.RegisterIntended{}},
		{ledger.TicketReceived{Ticket: ticket}, ledger.UploadIntended{}},
		{ledger.UploadAccepted{NotBefore: at, Sent: p.SHA256, Seal: s.Seal}},
		{ledger.StatusSeen{Receipt: success, Grace: time.Hour}},
		{ledger.PlaceIntended{Dest: "_archived/x"}},
		{ledger.Placed{}},
	} {
		if c.Events, c.Document = events, nil; len(cs) == 1 {
			c.Document = &own
		}
		cs = append(cs, c)
		c.Rev += uint32(len(events))
	}
	return cs
}

// atOnce returns changes of one document as one.
func atOnce(cs []ledger.Change) ledger.Change {
	all := cs[0]
	all.Document = cs[1].Document
	for _, c := range cs[1:] {
		all.Events = append(all.Events, c.Events...)
	}
	return all
}

func apply(t testing.TB, l *Ledger, cs ...ledger.Change) {
	t.Helper()
	rs := kit.Value(l.Apply(t.Context(), cs...))(t)
	for _, r := range rs {
		kit.Need(t, r.Err == nil, "r.Err = %v, want r.Err = nil", r.Err)
	}
}

// A commit that is not synced looks like any other until the power fails.
func TestOpen_I5_EveryCommitIsSynced(t *testing.T) {
	l := newLedger(t, Config{})
	kit.Want(t, "no sync of commits", l.db.NoSync, false)
	kit.Want(t, "no sync of growth", l.db.NoGrowSync, false)
	kit.Want(t, "no sync of free pages", l.db.NoFreelistSync, false)
}

// filledWith makes a ledger of n documents at rest with all their names.
func filledWith(t testing.TB, n int) *Ledger {
	t.Helper()
	l := newLedger(t, Config{})
	l.db.NoSync = true
	var cs []ledger.Change
	for i := range n {
		c := atOnce(life(i))
		p := c.Events[1].(ledger.Sealed)
		c.Events = []ledger.Event{ledger.Recovered{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: "x", State: ledger.Archived, Source: ledger.Gone,
			ID: p.ID, Content: p.Content, Metadata: p.Metadata, Package: p.Package, Seal: p.Seal, Number: archive.NumberDigest(c.Document.Salt),
			Remote: archive.RemoteID(fmt.Sprint("bum-", i)), SuccessRecord: []byte("{}"), ArchivedAt: began}, ledger.Reconciled{}}
		cs = append(cs, c)
	}
	for some := range slices.Chunk(cs, 100) {
		apply(t, l, some...)
	}
	return l
}

// hundred commits the lives of a hundred documents, each step of them in one
// commit, and returns the largest number of bytes that one commit wrote.
func hundred(t testing.TB, l *Ledger, round int) (most int64) {
	t.Helper()
	steps := make([][]ledger.Change, len(life(0)))
	for i := range 100 {
		for step, c := range life(100_000_000 + 100*round + i) {
			steps[step] = append(steps[step], c)
		}
	}
	for _, cs := range steps {
		before := written(l)
		apply(t, l, cs...)
		most = max(most, written(l)-before)
	}
	return most
}

// written returns the bytes of all pages that were written since the start.
func written(l *Ledger) int64 {
	s := l.db.Stats()
	return s.TxStats.GetPageAlloc()
}

// G7: the number of bytes that a commit writes does not grow with the number of
// documents in the ledger, once each name costs a page of its own and hardly
// more. vaultbench measures the time.
func TestFlat_G7_WhatACommitWrites(t *testing.T) {
	const page, names = 4096, 5 // of a document
	large := 25_000
	if kit.Sampled(t, "a larger ledger to compare with") {
		large = 6000
	}
	measure := func(n int) (usual, most int64) {
		l := filledWith(t, n)
		const rounds = 5
		before := written(l)
		for round := range rounds {
			most = max(most, hundred(t, l, round))
		}
		return (written(l) - before) / (100 * rounds), most
	}
	small, mostSmall := measure(1000)
	more, mostMore := measure(large)
	t.Logf("%d bytes a document and at most %d a commit with a thousand documents, %d and %d with %d", small, mostSmall, more, mostMore, large)
	if more > small+names*page || mostMore > mostSmall+100*names*page {
		t.Errorf("%d bytes a document and at most %d a commit with %d documents, want about the %d and %d of a thousand, and a page for each name",
			more, mostMore, large, small, mostSmall)
	}
}

// A check of all pages needs little memory for each.
func TestPages_I21_LittleMemory(t *testing.T) {
	l := filledWith(t, 1000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	kit.Must(t, l.checkPages(t.Context()))
	runtime.ReadMemStats(&after)
	all := kit.Value(l.usedBytes())(t)
	used, pages := after.TotalAlloc-before.TotalAlloc, uint64(all-int64(l.db.Stats().FreeAlloc))
	kit.Check(t, used <= pages/2, "%d bytes were allocated to check %d, want at most half", used, pages)
}

// stalled blocks its first write until let is closed.
type stalled struct {
	reached chan struct{}
	let     chan struct{}
	once    bool
}

func (s *stalled) Write(b []byte) (int, error) {
	if !s.once {
		s.once = true
		close(s.reached)
		<-s.let
	}
	return len(b), nil
}

// A stalled reader of a backup holds no page of the ledger: pages that commits
// free meanwhile are used again.
func TestBackup_I21_AStalledReaderPinsNothing(t *testing.T) {
	l := newLedger(t, Config{})
	for n := range 50 { // more than what is gathered before a write
		apply(t, l, life(2+n)...)
	}
	c := life(1)[0]
	apply(t, l, c)
	s := &stalled{reached: make(chan struct{}), let: make(chan struct{})}
	done := make(chan error, 1)
	copied := kit.Value(l.Copy(t.Context(), 0))(t)
	go func() { _, err := l.Backup(t.Context(), s, copied); done <- err }()
	<-s.reached
	before := kit.Value(l.usedBytes())(t)
	c.Rev = 1
	for range 100 {
		for _, event := range []ledger.Event{ledger.Held{By: ledger.Operator{UID: 7}}, ledger.Unheld{By: ledger.Operator{UID: 7}}} {
			c.Events = []ledger.Event{event}
			apply(t, l, c)
			c.Rev++
		}
	}
	grown := kit.Value(l.usedBytes())(t) - before
	kit.Check(t, grown <= 200*4096, "the ledger grew by %d bytes in 200 commits, want less than a page for each", grown) // a commit writes more than one page
	close(s.let)
	kit.Want(t, "the error", <-done, nil)
}

// usedBytes returns how many bytes of the ledger file are in use or were once.
func (l *Ledger) usedBytes() (used int64, err error) {
	err = l.view(func(tx *bbolt.Tx) error { used = tx.Size(); return nil })
	return used, err
}
