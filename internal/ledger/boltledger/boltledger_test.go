package boltledger_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

var (
	began = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	info  = ledger.Info{ID: "ledger-1", Environment: "test", BaseURL: "https://archive.example", Created: began}
)

func pathIn(dir, name string) string { return filepath.Join(dir, name) }

func sum(s string) archive.Digest { return archive.Sum([]byte(s)) }

func newLedger(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	kit.Must(t, boltledger.Create(dir, info))
	return dir
}

func open(t testing.TB, c boltledger.Config) *boltledger.Ledger {
	t.Helper()
	l := kit.Value(boltledger.Open(c))(t)
	t.Cleanup(func() { l.Close() })
	return l
}

// doc applies events to one document and keeps its entry.
type doc struct {
	l   store
	e   ledger.Entry
	at  time.Time
	n   int
	t   testing.TB
	own ledger.Document
}

func (d *doc) change(evs ...ledger.Event) ledger.Change {
	c := ledger.Change{Key: d.e.Key, Rev: d.e.Rev, Events: evs, At: archive.Instant{Wall: d.at}}
	for _, ev := range evs {
		if _, ok := ev.(ledger.Sealed); ok {
			c.Document = &d.own
		}
	}
	return c
}

func (d *doc) try(evs ...ledger.Event) error {
	d.t.Helper()
	rs, err := d.l.Apply(d.t.Context(), d.change(evs...))
	if err != nil {
		return err
	}
	if rs[0].Err == nil {
		d.e = rs[0].Entry
	}
	return rs[0].Err
}

func (d *doc) do(evs ...ledger.Event) {
	d.t.Helper()
	kit.Must(d.t, d.try(evs...))
}

func newDoc(t testing.TB, l store, n int) *doc {
	d := &doc{l: l, n: n, t: t, at: began.Add(time.Duration(n) * time.Second)}
	binary.BigEndian.PutUint64(d.e.Key[:8], uint64(d.at.UnixMilli())<<16) // not random: what fails once fails again
	binary.BigEndian.PutUint64(d.e.Key[8:], uint64(n))
	d.own = ledger.Document{Salt: [16]byte{1, byte(n)}, Metadata: fmt.Appendf(nil, `{"documentId":"%d"}`, n)}
	return d
}

func (d *doc) claim() ledger.Event {
	return ledger.ClaimedFolder{Route: ledger.Vault, Vault: "V1", Drop: "acme", Folder: fmt.Sprintf("Müller %d", d.n), NotBefore: d.at.Add(time.Minute)}
}

func (d *doc) sealed() ledger.Sealed {
	p := archive.Package{Path: "/spool/x.zip", Size: int64(1000 + d.n), SHA256: archive.Sum(fmt.Append(nil, "zip", d.n))}
	content := archive.Sum(fmt.Append(nil, "files", d.n))
	return ledger.Sealed{
		ID: archive.DeriveID("V1", content, archive.Sum(d.own.Metadata)), Content: content,
		Metadata: archive.Sum(d.own.Metadata), Package: p, Seal: d.own.Seal(p),
	}
}

func (d *doc) ticket() ledger.TicketReceived {
	return ledger.TicketReceived{Ticket: archive.Ticket{
		Remote: archive.RemoteID(fmt.Sprintf("bum-%d-%d", d.n, d.e.Posts)), URL: archive.PresignedURL(fmt.Sprintf("https://store.example/%d-%d?sig=SECRET", d.n, d.e.Posts)),
		Sent: archive.Instant{Wall: d.at, Boot: time.Hour, BootID: "boot"}, Date: d.at,
	}}
}

// accepted says that the store took the package of sealed.
func (d *doc) accepted() ledger.UploadAccepted {
	s := d.sealed()
	return ledger.UploadAccepted{NotBefore: d.at.Add(time.Minute), Sent: s.Package.SHA256, Seal: s.Seal}
}

func (d *doc) success() ledger.StatusSeen {
	return ledger.StatusSeen{Receipt: archive.Receipt{
		Remote: d.e.Current().Ticket.Remote, Status: archive.Successful, Updated: d.at.Add(time.Hour), Record: []byte(`{"status":"ArchivingSuccessful"}`),
	}, Grace: 24 * time.Hour, NotBefore: d.at.Add(time.Hour)}
}

// archived brings a fresh document to its end with the source kept for good.
func (d *doc) archived() *doc {
	d.t.Helper()
	d.do(d.claim())
	d.do(d.sealed())
	d.do(ledger.RegisterIntended{})
	d.do(d.ticket(), ledger.UploadIntended{})
	d.do(d.accepted())
	d.do(d.success())
	d.do(ledger.PlaceIntended{Dest: "_archived/x"})
	d.do(ledger.Placed{})
	return d
}

// applied makes changes in one commit, all of which are legal.
func applied(t testing.TB, l store, cs ...ledger.Change) []ledger.Result {
	t.Helper()
	rs := kit.Value(l.Apply(t.Context(), cs...))(t)
	for _, r := range rs {
		kit.Need(t, r.Err == nil, "r.Err = %v, want r.Err = nil", r.Err)
	}
	return rs
}

func copyLedger(t testing.TB, dir string, names ...string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range names {
		b := kit.Value(os.ReadFile(filepath.Join(dir, name)))(t)
		kit.Must(t, os.WriteFile(filepath.Join(to, name), b, 0o600))
	}
	return to
}

// copies returns the names in a directory that match a pattern.
func copies(t testing.TB, dir, pattern string) []string {
	t.Helper()
	names := kit.Value(filepath.Glob(filepath.Join(dir, pattern)))(t)
	return names
}

func entriesOf(t testing.TB, l store) (all []ledger.Entry) {
	t.Helper()
	kit.Must(t, l.EntriesOldestFirst(func(e ledger.Entry) error { all = append(all, e); return nil }))
	return all
}

// sound fails the test over anything that Verify finds.
func sound(t testing.TB, l store) {
	t.Helper()
	ps, err := l.Verify(t.Context())
	kit.Check(t, err == nil && len(ps) <= 0, "the check found %v (%v), want nothing", ps, err)
	b := l.Balance()
	kit.Check(t, b.IsBalanced(), "balance = %s, want one that agrees", b)
}

func TestLedger_I1_FromClaimToDone(t *testing.T) {
	dir := newLedger(t)
	l := open(t, boltledger.Config{Dir: dir})
	d := newDoc(t, l, 1).archived()
	for range 2 { // and again after a restart
		kit.Want(t, "balance", l.Balance().String(), "seen 1 = archived 1 + delivered 0 + rejected 0 + quarantined 0 + duplicate 0 + open 0  agrees")
		e, ok, err := l.Entry(d.e.Key)
		kit.Check(t, err == nil && ok, "entry %s: found %v (%v), want it", d.e.Key, ok, err)
		kit.Want(t, "stored entry", e, d.e)
		for name, find := range map[string]func() (archive.Key, bool, error){
			"ByID":      func() (archive.Key, bool, error) { return l.FindByID(d.e.ID) },
			"ByRemote":  func() (archive.Key, bool, error) { return l.FindByRemote("bum-1-1") },
			"ByContent": func() (archive.Key, bool, error) { return l.FindByContent(d.e.Content) },
		} {
			k, ok, err := find()
			kit.Check(t, k == d.e.Key && ok && err == nil, "%s = %v, %v (%v), want %v", name, k, ok, err, d.e.Key)
		}
		own, ok, err := l.Document(d.e.Key)
		kit.Check(t, err == nil && ok, "document: found %v (%v), want it", ok, err)
		kit.Want(t, "document", own, d.own)
		kit.Want(t, "the last success", l.LastSuccess(), d.at) // the service says an hour later
		want := info
		want.Schema, want.Epoch, want.ReceiptKeys = boltledger.Schema, 1, l.Info().ReceiptKeys
		kit.Want(t, "info", l.Info(), want)
		var events []string
		err = l.Lines(1, func(n uint64, b []byte) error {
			line, err := ledger.ParseLine(b)
			events = append(events, fmt.Sprint(n, line.Event))
			kit.Lacks(t, fmt.Sprintf("line %d", n), string(b), "SECRET")
			return err
		})
		kit.Want(t, "the error", err, nil)
		kit.Want(t, "events", fmt.Sprint(events), "[1created 2claimed 3sealed 4register-intended 5registered 6upload-intended 7uploaded 8status-seen 9place-intended 10placed]")
		kit.Want(t, "last line", l.Head().N, 10)
		sound(t, l)
		kit.Must(t, l.Close())
		l = open(t, boltledger.Config{Dir: dir})
	}
}

func TestCommit_ManyChangesOneCommit(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	var cs []ledger.Change
	for n := range 300 {
		d := newDoc(t, l, n)
		cs = append(cs, d.change(d.claim()))
	}
	rs, err := l.Apply(t.Context(), cs...)
	kit.Need(t, err == nil && len(rs) == 300 && rs[299].Err == nil && rs[299].Key == cs[299].Key,
		"%d results (%v), want 300 in the order of the changes", len(rs), err)
	commits, changes := l.CommitCounts()
	kit.Check(t, commits == 1 && changes == 300, "%d commits for %d changes, want 1 for 300", commits, changes)
	sound(t, l)
}

// A change that is illegal is refused alone: the others of its commit are made,
// and it leaves no line, no name and no document behind.
func TestChange_I5_RefusedAlone(t *testing.T) { eachStore(t, changeRefusedAlone) }

func changeRefusedAlone(t *testing.T, open opener) {
	l := open()
	a, b, c := newDoc(t, l, 1), newDoc(t, l, 2), newDoc(t, l, 3)
	a.do(a.claim())
	b.do(b.claim())
	c.do(c.claim())
	before := l.Head()
	stale := a.change(a.sealed())
	stale.Rev = 7
	good := c.change(c.sealed())
	half := b.change(b.sealed(), ledger.RegisterIntended{}, ledger.UploadIntended{}) // the last one is illegal
	noDoc := b.change(b.sealed())
	noDoc.Document = nil
	otherSeal := b.sealed()
	otherSeal.Seal[0]++
	alone := b.change(ledger.Held{})
	alone.Document = &b.own
	var heard []archive.Key
	remove := l.Listen(func(rs []ledger.Result) {
		for _, r := range rs {
			if r.Err == nil {
				heard = append(heard, r.Key)
			}
		}
	})
	rs := kit.Value(l.Apply(t.Context(), stale, half, noDoc, b.change(otherSeal), alone, b.change(), good))(t)
	remove()
	kit.Want(t, "documents that listeners hear of", heard, []archive.Key{c.e.Key})
	var s *ledger.StaleError
	if !errors.As(rs[0].Err, &s) || s.Have != 1 || s.Saw != 7 || s.Key != a.e.Key {
		t.Errorf("a stale revision: %v, want a StaleError with 1 and 7", rs[0].Err)
	}
	for i := 1; i < 6; i++ {
		if !errors.Is(rs[i].Err, ledger.ErrIllegal) {
			t.Errorf("change %d: %v, want %v", i, rs[i].Err, ledger.ErrIllegal)
		}
	}
	if rs[6].Err != nil || rs[6].Entry.State != ledger.Packaged {
		t.Errorf("the legal change: %+v, want state %s", rs[6], ledger.Packaged)
	}
	kit.Want(t, "last line", l.Head().N, before.N+1)
	c.e = rs[6].Entry
	again := ledger.Resealed{Package: c.e.Package, Seal: c.own.Seal(c.e.Package)}
	c.do(again)
	again.Seal[0]++
	kit.Fails(t, "a seal with another salt", c.try(again), ledger.ErrIllegal)
	_, ok, _ := l.FindByID(b.sealed().ID)
	kit.Check(t, !ok, "the refused identity is bound")
	_, ok, _ = l.Document(b.e.Key)
	kit.Check(t, !ok, "the refused document is stored")
	sound(t, l)
}

func TestChange_OneKeyTwiceInAGather(t *testing.T) { eachStore(t, changeOneKeyTwiceInAGather) }

func changeOneKeyTwiceInAGather(t *testing.T, open opener) {
	l := open()
	d := newDoc(t, l, 1)
	first, second, stale := d.change(d.claim()), d.change(d.sealed()), d.change(ledger.Held{})
	second.Rev = 1
	rs, err := l.Apply(t.Context(), first, second, stale)
	var s *ledger.StaleError
	kit.Need(t, err == nil && rs[0].Err == nil && rs[1].Err == nil && errors.As(rs[2].Err, &s) && s.Have == 2,
		"results %v (%v), want the first two made and the third stale at 2", rs, err)
	kit.Want(t, "first state", rs[0].Entry.State, ledger.Discovered)
	e, _, err := l.Entry(d.e.Key)
	kit.Want(t, "the error", err, nil)
	kit.Want(t, "stored entry", e, rs[1].Entry)
	sound(t, l)
}

// A result holds what a restart would read: no monotonic clock, no foreign
// zone, no slice that still belongs to the caller.
func TestResult_I5_IsWhatARestartFinds(t *testing.T) { eachStore(t, resultIsWhatARestartFinds) }

func resultIsWhatARestartFinds(t *testing.T, open opener) {
	l := open()
	d := newDoc(t, l, 1)
	d.at = time.Now().In(time.FixedZone("elsewhere", 7200))
	d.do(ledger.ClaimedFolder{Vault: "V1", NotBefore: time.Now().Add(time.Minute)})
	d.do(d.sealed(), ledger.RegisterIntended{})
	ticket := d.ticket()
	ticket.Ticket.Headers = []archive.Header{{Name: "X-One", Value: "1"}}
	d.do(ticket)
	ticket.Ticket.Headers[0].Value = "changed"
	e, _, err := l.Entry(d.e.Key)
	kit.Must(t, err)
	kit.Want(t, "stored entry", e, d.e)
	kit.Want(t, "stored header", e.Current().Ticket.Headers[0].Value, "1")
	kit.Want(t, "zone of a stored time", e.SeenAt.Location(), time.UTC)
}
