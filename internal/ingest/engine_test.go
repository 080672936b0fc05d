package ingest_test

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
	"vaultd/internal/window"
)

// service is a remote side that keeps tickets and accepts uploads. A test sets the
// functions whose answers it decides; an unset one gives the good answer.
type service struct {
	clock
	register func(archive.RegisterRequest) (*archive.Ticket, error)
	upload   func(archive.RemoteID) error
	status   func(archive.RemoteID) error
	list     func() error
	barred   string                                        // why every ticket is against policy
	damaged  func() bool                                   // asked at each upload: its package is damaged; nil: none is
	sends    func(archive.Package) archive.Digest          // the digest that leaves; nil: the package's
	etag     func(archive.RemoteID) string                 // of the store's answer; may be nil
	slow     bool                                          // archiving does not end
	crosses  archive.VaultID                               // whose documents the answers mix up
	hangs    func(context.Context, archive.RemoteID) error // an upload that takes its time; nil: none does

	mu       sync.Mutex
	serial   int                                  // guarded by mu
	posts    int                                  // calls; guarded by mu
	granted  int                                  // documents registered; guarded by mu
	names    map[archive.RemoteID]archive.ID      // guarded by mu
	uploaded map[archive.RemoteID]time.Time       // guarded by mu
	asked    map[archive.RemoteID]int             // guarded by mu
	vault    map[archive.RemoteID]archive.VaultID // guarded by mu
}

// of returns the vault that a number was given out for.
func (s *service) of(r archive.RemoteID) archive.VaultID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.vault[r]
}

func addressed(n int) archive.PresignedURL {
	return archive.PresignedURL(fmt.Sprintf("https://store.example/%d", n))
}

func numbered(n int) archive.RemoteID { return archive.RemoteID(fmt.Sprintf("bum-%d", n)) }

func (s *service) Register(_ context.Context, v archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts++
	a := archive.RegisterResult{Tickets: map[archive.ID]archive.Ticket{}, Barred: map[archive.ID]string{}, Crossed: map[archive.ID]string{}}
	for _, f := range frozen {
		if s.register != nil {
			if t, err := s.register(f); err != nil {
				return archive.RegisterResult{}, err
			} else if t != nil {
				a.Tickets[f.ID] = *t
				continue
			}
		}
		s.granted++
		if v == s.crosses {
			a.Crossed[f.ID] = "mixed up"
			continue
		}
		if s.barred != "" {
			a.Barred[f.ID] = s.barred
			continue
		}
		s.serial++
		t := archive.Ticket{Remote: numbered(s.serial), URL: addressed(s.serial), Sent: s.now()}
		s.names[t.Remote], s.vault[t.Remote] = f.ID, v
		a.Tickets[f.ID] = t
	}
	return a, nil
}

func (*service) OmitsMD5(archive.PresignedURL) bool { return false }
func (*service) HostsWithoutMD5() []string          { return nil }

func (s *service) Upload(ctx context.Context, t archive.Ticket, p archive.Package) (archive.Digest, string, error) {
	if s.hangs != nil {
		if err := s.hangs(ctx, t.Remote); err != nil {
			return archive.Digest{}, "", err
		}
	}
	if s.damaged != nil && s.damaged() {
		return archive.Digest{}, "", &apicall.Error{Outcome: apicall.OutcomeUnknown, Code: "package-damaged", Text: "it changed", Damaged: true}
	}
	if s.upload != nil {
		if err := s.upload(t.Remote); err != nil {
			return archive.Digest{}, "", err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uploaded[t.Remote] = time.Now()
	sent, etag := p.SHA256, ""
	if s.sends != nil {
		sent = s.sends(p)
	}
	if s.etag != nil {
		etag = s.etag(t.Remote)
	}
	return sent, etag, nil
}

func (s *service) Status(_ context.Context, _ archive.VaultID, r archive.RemoteID) (archive.Receipt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[r]++
	if s.status != nil {
		if err := s.status(r); err != nil {
			return archive.Receipt{}, err
		}
	}
	rc := archive.Receipt{Remote: r, ID: s.names[r], Status: archive.WaitingForPackage, Raw: "WaitingForPackageUpload", Updated: time.Now()}
	if _, ok := s.uploaded[r]; ok {
		rc.Status, rc.Raw = archive.Successful, "ArchivingSuccessful"
		if s.slow {
			rc.Status, rc.Raw = archive.InProgress, "ArchivingInProgress"
		}
	}
	return rc, nil
}

func (s *service) StatusList(context.Context, archive.VaultID) ([]archive.Receipt, error) {
	if s.list != nil {
		return nil, s.list()
	}
	return nil, nil
}

// folders is a drop folder whose folders are always the same and move at once.
type folders struct {
	mu     sync.Mutex
	sealed map[archive.Key]archive.Package // guarded by mu
	packed int                             // how often; guarded by mu
	same   bool                            // all hold the same files; guarded by mu
	number archive.NumberDigest            // of all documents; guarded by mu
	dated  bool                            // none can be of its date; guarded by mu
	turns  bool                            // each packing of a folder gives other bytes; guarded by mu
	takes  time.Duration                   // of packing one
	finds  func()                          // called when a package is looked for; may be nil
	dead   chan struct{}                   // moving a folder hangs until it is closed; nil: it does not
}

func (f *folders) Fingerprint(ledger.Entry) (archive.Digest, error) { return archive.Digest{1}, nil }

func (f *folders) Pack(_ context.Context, e ledger.Entry) (ingest.Packed, error) {
	time.Sleep(f.takes)
	doc := ledger.Document{Metadata: []byte(`{"documentId":"` + e.Folder + `"}`)}
	p := archive.Package{Size: 20_000, SHA256: archive.Sum([]byte(e.Folder)), MD5: [16]byte{1}}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.turns {
		p.SHA256 = archive.Sum(fmt.Append(nil, e.Folder, f.packed))
	}
	f.sealed[e.Key] = p
	f.packed++
	content, metadata := archive.Sum([]byte(e.Folder)), archive.Sum(doc.Metadata)
	if f.same {
		content = archive.Sum(nil)
	}
	return ingest.Packed{Document: doc, AsRead: archive.AsRead{Number: e.Folder}, Sealed: ledger.Sealed{ID: archive.DeriveID(e.Vault, content, metadata),
		Content: content, Metadata: metadata, Package: p, Seal: doc.Seal(p), Number: f.number, StrangeDate: f.dated}}, nil
}

func (f *folders) CheckPackage(_ context.Context, e ledger.Entry) error {
	_, err := f.FindPackage(e)
	return err
}

func (f *folders) FindPackage(e ledger.Entry) (archive.Package, error) {
	if f.finds != nil {
		f.finds()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.sealed[e.Key]
	if !ok {
		return p, fs.ErrNotExist
	}
	return p, nil
}

func (f *folders) RemovePackage(e ledger.Entry) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.sealed, e.Key)
	return nil
}

func (f *folders) Destination(e ledger.Entry, _ time.Time) (string, error) {
	return "_archived/2026-11/" + e.Folder, nil
}
func (f *folders) PutValidation(ledger.Entry, []byte) error { return nil }

func (f *folders) Place(context.Context, ledger.Entry, ledger.Document) error {
	if f.dead != nil {
		<-f.dead
	}
	return nil
}

func (f *folders) Dispose(context.Context, ledger.Entry, ledger.Document) (string, error) {
	return "", nil
}

// bubbleStart is the time at which the clock of each synctest bubble starts. The
// machine of a test was booted then.
var bubbleStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is the clock of the machine of one test.
type clock struct {
	slept atomic.Int64 // for how long the machine was suspended
	set   atomic.Int64 // by how much the wall clock was set
}

func (c *clock) now() archive.Instant {
	s := time.Duration(c.slept.Load())
	return archive.Instant{Wall: time.Now().Add(s + time.Duration(c.set.Load())), Boot: time.Since(bubbleStart) + s, BootID: "boot", Slept: s}
}

// suspend lets the machine sleep: timers stop, the clocks continue.
func (c *clock) suspend(d time.Duration) { c.slept.Add(int64(d)) }

// setWall sets the wall clock.
func (c *clock) setWall(by time.Duration) { c.set.Add(int64(by)) }

// running is an engine on a real ledger file. A test changes cfg before start, or
// between stop and the next start, as a reload does.
type running struct {
	*ingest.Engine // of the last start
	cfg            ingest.Config
	stop           func() // ends that engine and waits for its work; once

	t      *testing.T
	ledger *boltledger.Ledger
	s      *service
}

// run starts an engine in the test's bubble; the end of the test ends it.
func run(t *testing.T, s *service, vaults ...archive.VaultID) *running {
	t.Helper()
	r := build(t, s, vaults...)
	r.start()
	return r
}

// build makes a ledger, and the configuration of an engine that start starts.
func build(t *testing.T, s *service, vaults ...archive.VaultID) *running {
	t.Helper()
	return buildSlow(t, s, nil, vaults...)
}

// buildSlow is build with a ledger that calls committing around each commit.
func buildSlow(t *testing.T, s *service, committing func(op string) error, vaults ...archive.VaultID) *running {
	t.Helper()
	s.makeMaps()
	dir := t.TempDir()
	kit.Must(t, boltledger.Create(dir, ledger.Info{ID: "test", Environment: "test", BaseURL: "https://x", Schema: boltledger.Schema, Created: time.Now()}))
	l := kit.Value(boltledger.Open(boltledger.Config{Dir: dir, Fault: committing}))(t)
	t.Cleanup(func() { kit.Must(t, l.Close()) })
	cfg := ingest.Config{Ledger: l, Index: l, Routes: map[ledger.Route]ingest.Route{ledger.Vault: {Client: s, Asker: s, Workers: 4, BatchSize: 50, BatchWait: 2 * time.Second}},
		Planner: &window.Planner{Workers: 4}, Now: s.now, Log: slog.New(slog.DiscardHandler),
		PollMin: time.Minute, PollMax: 30 * time.Minute, Grace: 24 * time.Hour, SpoolSpace: func(string) error { return nil }, SyncPackages: func() error { return nil }}
	if len(vaults) == 0 {
		vaults = []archive.VaultID{"V"}
	}
	for _, v := range vaults {
		cfg.Drops = append(cfg.Drops, newDrop(string(v), ingest.Drop{Vault: v}))
	}
	return &running{cfg: cfg, t: t, ledger: l, s: s}
}

func (s *service) makeMaps() {
	s.vault = map[archive.RemoteID]archive.VaultID{}
	s.names, s.uploaded, s.asked = map[archive.RemoteID]archive.ID{}, map[archive.RemoteID]time.Time{}, map[archive.RemoteID]int{}
}

// newDrop completes d to a drop with folders that can always be worked in.
func newDrop(name string, d ingest.Drop) ingest.Drop {
	f := &folders{sealed: map[archive.Key]archive.Package{}}
	d.Name, d.Settle, d.Packer, d.Mover, d.Unavailable = name, time.Second, f, f, func() error { return nil }
	return d
}

// start starts a new engine with cfg.
func (r *running) start() {
	r.Engine = ingest.New(r.cfg)
	ctx, cancel := context.WithCancel(r.t.Context())
	ended := make(chan error, 1)
	go func(c *ingest.Engine) { ended <- c.Run(ctx) }(r.Engine)
	r.stop = sync.OnceFunc(func() {
		cancel()
		kit.Must(r.t, <-ended)
	})
	r.t.Cleanup(r.stop)
}

// configured returns the drop of a name, to be changed before the engine starts.
func (r *running) configured(name string) *ingest.Drop {
	r.t.Helper()
	i := slices.IndexFunc(r.cfg.Drops, func(d ingest.Drop) bool { return d.Name == name })
	kit.Need(r.t, i >= 0, "no drop %q", name)
	return &r.cfg.Drops[i]
}

// folders returns the folders of a drop.
func (r *running) folders(drop string) *folders {
	r.t.Helper()
	return r.configured(drop).Mover.(*folders)
}

// drop claims n folders for a vault.
func (r *running) drop(v archive.VaultID, n int) { r.dropNamed(v, string(v), n) }

// dropAndPass drops n folders, and lets time go by.
func (r *running) dropAndPass(v archive.VaultID, n int, d time.Duration) {
	r.drop(v, n)
	r.pass(d)
}

func (r *running) dropNamed(v archive.VaultID, name string, n int) {
	for i := range n {
		r.EnterClaimed(archive.NewKey(time.Now()), ledger.ClaimedFolder{Route: ledger.Vault, Vault: v, Drop: string(v),
			Folder: fmt.Sprintf("%s %d", name, i), Fingerprint: archive.Digest{1}, NotBefore: r.s.now().Wall.Add(time.Second)})
	}
}

// apply commits events of one entry as another part of vaultd does.
func (r *running) apply(c ledger.Change) {
	r.t.Helper()
	c.At = r.s.now()
	rs, err := r.ledger.Apply(r.t.Context(), c)
	kit.Need(r.t, err == nil && rs[0].Err == nil, "not committed: %v, %v", err, rs)
}

// pass lets time go by.
func (r *running) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// entries returns all entries in the order in which they were claimed.
func (r *running) entries() (es []ledger.Entry) {
	r.t.Helper()
	kit.Must(r.t, r.ledger.EntriesOldestFirst(func(e ledger.Entry) error { es = append(es, e); return nil }))
	return es
}

// states counts entries by their state.
type states map[ledger.State]int

func (r *running) states() states {
	r.t.Helper()
	n := states{}
	for _, e := range r.entries() {
		n[e.State]++
	}
	return n
}

// statesOf counts the entries of a vault.
func (r *running) statesOf(v archive.VaultID) states {
	r.t.Helper()
	n := states{}
	for _, e := range r.entries() {
		if e.Vault == v {
			n[e.State]++
		}
	}
	return n
}

// sources counts the entries of a vault by where their folders are.
type sources map[ledger.Source]int

func (r *running) sourcesOf(v archive.VaultID) sources {
	r.t.Helper()
	n := sources{}
	for _, e := range r.entries() {
		if e.Vault == v {
			n[e.Source]++
		}
	}
	return n
}

// paused returns the names of the targets that are paused.
func (r *running) paused() (names []string) {
	for _, p := range r.Pauses() {
		names = append(names, p.Target.String())
	}
	return names
}

// onlyPause returns the one pause that there is.
func (r *running) onlyPause() ingest.Pause {
	r.t.Helper()
	all := r.Pauses()
	kit.Need(r.t, len(all) == 1, "pauses = %+v, want one", all)
	return all[0]
}

func (s *service) counts() (posts, granted int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.posts, s.granted
}

func fault(o apicall.Outcome, code string) error {
	return &apicall.Error{Outcome: o, Code: code, Text: code}
}
