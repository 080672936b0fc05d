package boltledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

var (
	began = time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	info  = ledger.Info{ID: "ledger-1", Environment: "test", BaseURL: "https://archive.example", Created: began}
)

func newLedger(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if err := Create(dir, info); err != nil {
		t.Fatal(err)
	}
	return dir
}

func open(t testing.TB, c Config) *Ledger {
	t.Helper()
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// doc plays one document: it applies events and keeps the entry.
type doc struct {
	l   *Ledger
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
	if err := d.try(evs...); err != nil {
		d.t.Fatal(err)
	}
}

func newDoc(t testing.TB, l *Ledger, n int) *doc {
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

func copyLedger(t testing.TB, dir string, names ...string) string {
	t.Helper()
	to := t.TempDir()
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return to
}

// sound fails the test over anything that Verify finds.
func sound(t testing.TB, l *Ledger) {
	t.Helper()
	ps, err := l.Verify(t.Context())
	for _, p := range ps {
		t.Error(p)
	}
	if err != nil || !l.Balance().IsBalanced() {
		t.Errorf("verify: %v; %s", err, l.Balance())
	}
}

func TestLedger_I1_FromClaimToDone(t *testing.T) {
	dir := newLedger(t)
	l := open(t, Config{Dir: dir})
	d := newDoc(t, l, 1).archived()
	for range 2 { // and again after a restart
		if got := l.Balance().String(); got != "seen 1 = archived 1 + delivered 0 + rejected 0 + quarantined 0 + duplicate 0 + open 0  agrees" {
			t.Error(got)
		}
		e, ok, err := l.Entry(d.e.Key)
		if err != nil || !ok || !reflect.DeepEqual(e, d.e) {
			t.Errorf("entry %v %v:\n%+v, handed on was\n%+v", ok, err, e, d.e)
		}
		for name, find := range map[string]func() (archive.Key, bool, error){
			"ByID":      func() (archive.Key, bool, error) { return l.FindByID(d.e.ID) },
			"ByRemote":  func() (archive.Key, bool, error) { return l.FindByRemote("bum-1-1") },
			"ByContent": func() (archive.Key, bool, error) { return l.FindByContent(d.e.Content) },
		} {
			if k, ok, err := find(); k != d.e.Key || !ok || err != nil {
				t.Errorf("%s: %v %v %v", name, k, ok, err)
			}
		}
		if own, ok, err := l.Document(d.e.Key); err != nil || !ok || !reflect.DeepEqual(own, d.own) {
			t.Errorf("document %+v %v %v", own, ok, err)
		}
		if ts, err := l.Totals(); err != nil || len(ts) != 1 || ts[0] != (ledger.Total{Vault: "V1", Year: 2026, Month: int(d.e.ArchivedAt.UTC().Month()), Documents: 1, Bytes: 1001, Last: d.e.ArchivedAt}) {
			t.Errorf("totals %v %v", ts, err)
		}
		if got := l.Info(); got.ID != info.ID || got.BaseURL != info.BaseURL || got.Environment != "test" || !got.Created.Equal(began) || got.Schema != Schema {
			t.Errorf("info %+v", got)
		}
		var events []string
		err = l.Lines(1, func(n uint64, b []byte) error {
			line, err := ledger.ParseLine(b)
			events = append(events, fmt.Sprint(n, line.Event))
			return err
		})
		want := "[1created 2claimed 3sealed 4register-intended 5registered 6upload-intended 7uploaded 8status-seen 9place-intended 10placed]"
		if fmt.Sprint(events) != want || err != nil {
			t.Errorf("lines %s %v", events, err)
		}
		if strings.Contains(fmt.Sprint(l.Head(), events), "SECRET") || l.Head().N != 10 {
			t.Error(l.Head())
		}
		sound(t, l)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		l = open(t, Config{Dir: dir})
	}
}

func TestCommit_ManyChangesOneCommit(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	var cs []ledger.Change
	for n := range 300 {
		d := newDoc(t, l, n)
		cs = append(cs, d.change(d.claim()))
	}
	rs, err := l.Apply(t.Context(), cs...)
	if err != nil || len(rs) != 300 || rs[299].Err != nil || rs[299].Key != cs[299].Key {
		t.Fatal(len(rs), err)
	}
	if commits, changes := l.CommitCounts(); commits != 1 || changes != 300 {
		t.Errorf("%d commits for %d changes", commits, changes)
	}
	sound(t, l)
}

// What cannot be made is refused alone: its neighbours in the same gather are made,
// and it leaves no line, no name, no document behind.
func TestChange_I5_RefusedAlone(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
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
	rs, err := l.Apply(t.Context(), stale, half, noDoc, b.change(otherSeal), alone, b.change(), good)
	if err != nil {
		t.Fatal(err)
	}
	var s *ledger.StaleError
	if !errors.As(rs[0].Err, &s) || s.Have != 1 || s.Saw != 7 || s.Key != a.e.Key {
		t.Errorf("stale: %v", rs[0].Err)
	}
	for i := 1; i < 6; i++ {
		if !errors.Is(rs[i].Err, ledger.ErrIllegal) {
			t.Errorf("change %d: %v", i, rs[i].Err)
		}
	}
	if rs[6].Err != nil || rs[6].Entry.State != ledger.Packaged {
		t.Errorf("the good one: %+v", rs[6])
	}
	if got := l.Head().N; got != before.N+1 {
		t.Errorf("%d lines for one change", got-before.N)
	}
	c.e = rs[6].Entry
	again := ledger.Resealed{Package: c.e.Package, Seal: c.own.Seal(c.e.Package)}
	c.do(again)
	again.Seal[0]++
	if err := c.try(again); !errors.Is(err, ledger.ErrIllegal) {
		t.Errorf("a seal with another salt: %v", err)
	}
	if _, ok, _ := l.FindByID(b.sealed().ID); ok {
		t.Error("the refused identity is bound")
	}
	if _, ok, _ := l.Document(b.e.Key); ok {
		t.Error("the refused document is stored")
	}
	sound(t, l)
}

func TestChange_OneKeyTwiceInAGather(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	d := newDoc(t, l, 1)
	first, second, stale := d.change(d.claim()), d.change(d.sealed()), d.change(ledger.Held{})
	second.Rev = 1
	rs, err := l.Apply(t.Context(), first, second, stale)
	var s *ledger.StaleError
	if err != nil || rs[0].Err != nil || rs[1].Err != nil || !errors.As(rs[2].Err, &s) || s.Have != 2 {
		t.Fatal(rs, err)
	}
	if e, _, _ := l.Entry(d.e.Key); !reflect.DeepEqual(e, rs[1].Entry) || rs[0].Entry.State != ledger.Discovered {
		t.Errorf("stored %+v, handed on %+v", e, rs[1].Entry)
	}
	sound(t, l)
}

// What is handed on is what a restart would read: no monotonic clock, no foreign
// zone, nothing that still belongs to the caller.
func TestResult_I5_IsWhatARestartFinds(t *testing.T) {
	l := open(t, Config{Dir: newLedger(t)})
	d := newDoc(t, l, 1)
	d.at = time.Now().In(time.FixedZone("elsewhere", 7200))
	d.do(ledger.ClaimedFolder{Vault: "V1", NotBefore: time.Now().Add(time.Minute)})
	d.do(d.sealed(), ledger.RegisterIntended{})
	ticket := d.ticket()
	ticket.Ticket.Headers = []archive.Header{{Name: "X-One", Value: "1"}}
	d.do(ticket)
	ticket.Ticket.Headers[0].Value = "changed"
	e, _, err := l.Entry(d.e.Key)
	if err != nil || !reflect.DeepEqual(e, d.e) || e.Current().Ticket.Headers[0].Value != "1" || e.SeenAt.Location() != time.UTC {
		t.Errorf("stored\n%+v (%v), handed on was\n%+v", e, err, d.e)
	}
}
