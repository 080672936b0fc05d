// Package fill makes ledgers for tests. A test names what was dropped and how
// far each item came:
//
//	l := fill.New(t, boltledger.Config{}, ledger.Info{})
//	l.Item("Müller 4711").Archive(noon, time.Hour)
//	l.PDF("scan.pdf").Lose(noon)
//
// The ledger is a real file in a folder of the test. Each verb commits the
// events that the daemon commits at that point, through the ledger's own
// committer. Times are those that the test
// gives: the steps of one verb are a second apart. Keys, salts and digests
// depend on names and times alone, so the same calls give the same journal.
//
// A ledger is used in the synctest bubble in which it was opened: Close it and
// Open it again to take it into another one.
package fill

import (
	"cmp"
	"context"
	"encoding/binary"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// Ledger is an open ledger in a folder of a test.
type Ledger struct {
	*boltledger.Ledger
	Dir   string
	Vault archive.VaultID // of items that leave it empty

	t      testing.TB
	config boltledger.Config
	items  map[string]*Item
}

// New makes a ledger and opens it as c says, by default in a new folder.
// Empty fields of info get the usual values. The end of the test closes it.
func New(t testing.TB, c boltledger.Config, info ledger.Info) *Ledger {
	t.Helper()
	if c.Dir == "" {
		c.Dir = t.TempDir()
	}
	info.ID, info.Environment = cmp.Or(info.ID, "L-1"), cmp.Or(info.Environment, "test")
	info.BaseURL = cmp.Or(info.BaseURL, "https://archive.example")
	if info.Created.IsZero() {
		info.Created = time.Date(2025, 11, 20, 13, 32, 0, 0, time.UTC)
	}
	kit.Must(t, boltledger.Create(c.Dir, info))
	l := &Ledger{Dir: c.Dir, Vault: "V-1", t: t, config: c, items: map[string]*Item{}}
	l.Open()
	t.Cleanup(func() { l.Close() })
	return l
}

// Open opens the ledger again after Close.
func (l *Ledger) Open() {
	l.t.Helper()
	var err error
	if l.Ledger, err = boltledger.Open(l.config); err != nil {
		l.t.Fatal(err)
	}
}

// Commit commits changes together, each of which must succeed, and returns the
// last entry.
func (l *Ledger) Commit(cs ...ledger.Change) (last ledger.Entry) {
	l.t.Helper()
	results, err := l.Apply(context.Background(), cs...) // usable in any bubble
	kit.Must(l.t, err)
	for _, r := range results {
		if last = r.Entry; r.Err != nil {
			l.t.Fatalf("r.Err = %v, want r.Err = nil", r.Err)
		}
	}
	return last
}

// Mark commits a line about the ledger itself, and why; reason may be empty.
func (l *Ledger) Mark(m ledger.Mark, reason string) {
	l.t.Helper()
	var note *ledger.Note
	if reason != "" {
		note = &ledger.Note{Text: reason}
		m.By.Reason = note.Digest()
	}
	kit.Must(l.t, l.CommitMark(context.Background(), m, note))
}

// Item returns the item of that name, if need be a new one of the archive.
func (l *Ledger) Item(name string) *Item {
	l.t.Helper()
	if i := l.items[name]; i != nil {
		return i
	}
	return l.Add(Item{Name: name})
}

// PDF returns a new item of the PDF route.
func (l *Ledger) PDF(name string) *Item { return l.Add(Item{Name: name, Route: ledger.PDF}) }

// Add returns a new item. The ledger learns of it with the first verb.
func (l *Ledger) Add(i Item) *Item {
	l.t.Helper()
	if l.items[i.Name] != nil {
		l.t.Fatalf("there is an item %q already", i.Name)
	}
	if i.Route == "" {
		i.Route = ledger.Vault
	}
	if i.Route.HasVaults() {
		i.Vault = cmp.Or(i.Vault, l.Vault)
	}
	i.ledger = l
	l.items[i.Name] = &i
	return &i
}

// Count returns how many items there are.
func (l *Ledger) Count() int { return len(l.items) }

// Key returns a key of a claim: the same for the same time and number.
func Key(at time.Time, n int) (k archive.Key) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(at.UnixMilli()))
	copy(k[:6], ms[2:])
	binary.BigEndian.PutUint64(k[8:], uint64(n))
	return k
}
