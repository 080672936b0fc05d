package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"vaultd/internal/archive"
	"vaultd/internal/arrivals"
	"vaultd/internal/catalog"
	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/notices"
	"vaultd/internal/operator"
	"vaultd/internal/recovery"
	"vaultd/internal/selfcheck"
	"vaultd/internal/spool"
	"vaultd/internal/statedir"
	"vaultd/internal/statusfile"
	"vaultd/internal/watch"
	"vaultd/internal/window"
)

// Config is what a daemon is made of.
type Config struct {
	StateDir    string
	Program     string           // version of this program
	Environment string           // as the ledger was made for
	BaseURL     string           // as the ledger was made for
	Others      []ledger.Address // of the other services that are used; the ledger is bound to each
	Location    *time.Location
	Vault       VaultClient                   // the archive
	Routes      map[ledger.Route]ingest.Route // the other ways that documents go; may be nil
	Archive     recovery.Service              // the same service, for comparisons; nil: none can be made
	Drops       []dropwork.Settings
	Extracts    *Extracts // nil: none are taken in
	Notices     *Notices  // nil: the business network is not listened to
	ArchiveSent string    // the drop that copies of sent documents are put into; empty: none are made
	Now         func() archive.Instant
	Log         *slog.Logger

	SpoolMax, SpoolMinFree int64 // bytes
	Workers, BatchSize     int   // of the way to the archive, as [ingest.Route] has them
	BatchWait              time.Duration
	PollMin, PollMax       time.Duration
	Grace                  time.Duration // unclear_grace
	LongestSleep           time.Duration // between two looks at what is due; 0: a minute
	ProbeEvery             time.Duration // between two inspections of a drop folder's share, a tenth of the time between two writes of an unchanged _STATUS.txt, and six times that between two looks at the place of the ledger; 0: half a minute

	CatalogDir string // where the catalog's file lies: the state directory; empty: none is kept

	CheckEvery time.Duration // between two full checks of the ledger, the first at once; 0: none is made
	Executable string        // checks copies of the ledger in child processes, as [selfcheck.Verification] has it

	ExtendStart func(by time.Duration, why string) // asks the service manager for more time before the start counts as failed; nil: there is none

	LedgerFault func(op string) error   // nil but in tests and measurements
	FileFault   durable.Hook            // nil, or a count; more in tests only
	FreeBytes   func(path string) int64 // nil but in tests: what the file system says
	Events      func(path string) (watch.EventSource, error)
}

// VaultClient speaks to the archive service.
type VaultClient interface {
	ingest.Client
	ingest.Asker
}

// BindingError says that a ledger was made for another environment or service.
// For a service other than the archive, What is the key of the configuration.
type BindingError struct{ What, Ledger, Config string }

// Error implements error.
func (e *BindingError) Error() string {
	return fmt.Sprintf("the ledger was made for %s %q, the configuration says %q", e.What, e.Ledger, e.Config)
}

// Daemon is one open vaultd.
type Daemon struct {
	cfg           Config
	since         time.Time
	lock          *os.File
	ledger        *boltledger.Ledger
	handedOver    bool // another daemon has lock and ledger now
	spool         *spool.Spool
	disk          *spool.Disk
	disposalLimit *operator.DisposalLimit
	shared        *dropwork.Shared
	drops         []*dropwork.Drop
	statusFiles   *statusfile.Files
	engine        *ingest.Engine
	receiver      atomic.Pointer[arrivals.Engine] // nil: nothing is received, or not yet
	stopListening func()                          // removes the commit listeners; may be nil
	reloading     sync.RWMutex                    // read-locked while a person takes a folder again, write-locked while a reload closes the drop folders
	former        *dropwork.Takeover              // what was known before a reload; may be nil
	checker       *checker
	catalog       *catalog.Catalog
	poller        atomic.Pointer[notices.Poller]  // nil: notifications are not taken in
	extracts      atomic.Pointer[arrivals.Engine] // nil: extracts are not taken in
	custodyFault  atomic.Pointer[string]          // why the custody folder cannot be opened; nil: it can
	comparing     sync.Mutex                      // held while the ledger is compared with the archive
	compareSoon   chan struct{}                   // size 1: entries are in doubt; they are compared soon, without a person

	lost atomic.Pointer[lostLedger] // why the open ledger is not the one in state_dir; nil: it is

	fatalOnce sync.Once
	fatal     chan error // size 1: why the process must end
}

// commitInterval is the least time between two commits of a busy ledger: at a thousand documents a
// second each costs less than a tenth of an fsync, and none waits for it.
const commitInterval = 25 * time.Millisecond

// Open takes the lock, checks and opens the ledger and prepares the rest. Nothing is
// sent or moved before Run. The end of ctx ends a wait for the lock, and the check
// of the pages.
func Open(ctx context.Context, cfg Config) (*Daemon, error) {
	d := &Daemon{cfg: cfg, since: cfg.Now().Wall, fatal: make(chan error, 1), compareSoon: make(chan struct{}, 1), checker: newChecker()}
	if err := d.openState(ctx); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Daemon) openState(ctx context.Context) (err error) {
	cfg := d.cfg
	if d.lock, err = cfg.Lock(ctx); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("open %s: %w", cfg.StateDir, ledger.ErrMissing)
	} else if err != nil {
		return err
	}
	// The lock comes first: two daemons must never have one ledger open. A ledger that is older than its outside head, as after a
	// copy was put back, is opened in safe mode, which is committed before anything else is.
	d.ledger, err = boltledger.OpenRolledBack(boltledger.Config{Dir: cfg.StateDir, Location: cfg.Location, CommitInterval: commitInterval, Fault: cfg.LedgerFault, Probe: cfg.probe(ctx)},
		ledger.Mark{By: ledger.Operator{UID: ledger.VaultdUID}, At: cfg.Now().Wall})
	if err != nil {
		return err
	}
	return d.openParts()
}

// Lock takes the state directory for a daemon, and says so where the start waits
// for a command.
func (cfg Config) Lock(ctx context.Context) (*os.File, error) {
	return statedir.LockForDaemon(ctx, cfg.StateDir, func(by string) {
		cfg.extendStart(statedir.DaemonPatience, "vaultd waits for a command that has the ledger open", "by", by)
	})
}

// extendStart says why a start takes long, and gives it that time.
func (cfg Config) extendStart(by time.Duration, why string, args ...any) {
	cmp.Or(cfg.Log, slog.New(slog.DiscardHandler)).Warn(why, append(args, "within", by)...)
	if cfg.ExtendStart != nil {
		cfg.ExtendStart(by+10*time.Minute, why) // opening it comes after that
	}
}

// probe checks the pages of a ledger file; nil: nothing does.
func (cfg Config) probe(ctx context.Context) func(*os.File) error {
	if cfg.Executable == "" {
		return nil
	}
	return func(f *os.File) error {
		cfg.extendStart(selfcheck.Longest, "the pages of the ledger are checked, because a process ended with it open, or to verify it")
		return selfcheck.Probe(ctx, cfg.Executable, f)
	}
}

// openParts checks that the ledger is the right one and opens all that works on it.
func (d *Daemon) openParts() error {
	cfg := d.cfg
	if err := CheckBinding(d.ledger.Info(), cfg.Environment, cfg.BaseURL, cfg.Others); err != nil {
		return err
	}
	// Nothing is removed here, nor read entry by entry: the spool is counted, and claimed folders without an entry are adopted, beside the work.
	if err := d.openSpool(); err != nil {
		return err
	}
	if err := d.makeShared(); err != nil {
		return err
	}
	d.statusFiles = statusfile.New(statusfile.Config{
		Ledger: d.ledger, Disk: d.disk, Pauses: func() []ingest.Pause { return d.engine.Pauses() }, LostSince: d.lostSince, Environment: cfg.Environment,
		Location: cfg.Location, Now: cfg.Now, Log: cfg.Log, Interval: cfg.ProbeEvery,
	})
	for _, settings := range cfg.Drops {
		r, err := dropwork.New(settings, d.shared)
		if err != nil {
			return err
		}
		d.drops = append(d.drops, r)
		d.statusFiles.Add(r)
	}
	if err := d.openDrops(); err != nil {
		return err
	}
	d.catalog = catalog.New(catalog.Config{StateDir: cfg.CatalogDir, Ledger: d.ledger, Location: cfg.Location, Log: cfg.Log, CheckSpace: d.checkCatalogSpace})
	// The listeners are there before the engine commits anything: what they count is read from the ledger as of now, and heard from now on.
	d.stopListening = d.listenToCommits()
	d.logSafeMode()
	ic, err := d.engineConfig()
	if err != nil {
		return err
	}
	d.engine = ingest.New(ic)
	return nil
}

func (d *Daemon) openSpool() error {
	queues := map[string]bool{}
	for _, dc := range d.cfg.Drops {
		queues[ledger.ServiceQueue(dc.Route, string(dc.Vault))] = true
	}
	// Before anything is made or removed in one of them.
	if err := statedir.CheckFolders(d.cfg.StateDir); err != nil {
		return err
	}
	now := func() time.Time { return d.cfg.Now().Wall }
	d.disk = spool.NewDisk(d.cfg.StateDir, d.cfg.SpoolMinFree, d.ledger, now, d.cfg.Log)
	d.disposalLimit = operator.NewDisposalLimit(d.cfg.StateDir, now, d.cfg.Log)
	var err error
	d.spool, err = spool.Open(spool.Config{StateDir: d.cfg.StateDir, Max: d.cfg.SpoolMax, Shares: len(queues), Log: d.cfg.Log, Fault: d.cfg.FileFault})
	return err
}

// makeShared makes what all drop folders have in common.
func (d *Daemon) makeShared() error {
	cfg := d.cfg
	d.shared = &dropwork.Shared{
		StateDir: cfg.StateDir, Environment: cfg.Environment, Location: cfg.Location, Now: cfg.Now, Log: cfg.Log, FileFault: cfg.FileFault,
		MinFree: cfg.SpoolMinFree, Ledger: d.ledger, Takeover: dropwork.NewTakeover(cfg.StateDir, d.ledger, cfg.Log, d.endProcess), EndProcess: d.endProcess,
		Spool: d.spool, Disk: d.disk, Events: cfg.Events, ProbeEvery: cfg.ProbeEvery, Returned: dropwork.NewReturned(), HeldReason: d.heldReason,
		OnChange: func(drop string) { d.statusFiles.NoteChange(drop) },
		EnterClaimed: func(k archive.Key, ev ledger.ClaimedFolder, more ...ledger.Change) {
			d.engine.EnterClaimed(k, ev, more...)
		},
		EnterDoubted: d.enterDoubted,
	}
	if !drop.HasLeaseRight() {
		d.shared.Opens = watch.NewOpenFiles()
	}
	if d.shared.FreeBytes = cfg.FreeBytes; cfg.FreeBytes == nil {
		d.shared.FreeBytes = durable.FreeBytes
	}
	d.shared.Scans = dropwork.NewScans(d.shared)
	return d.shared.Takeover.Recall(d.former)
}

// syncSpool makes the packages durable that were made before. If that fails the
// process ends: nobody knows what is on disk.
func (d *Daemon) syncSpool() error {
	err := d.spool.SyncPackages()
	if err != nil {
		d.endProcess(fmt.Errorf("spool: %w", err))
	}
	return err
}

// checkSpace says why nothing of a service queue may be packed now; nil: it may.
func (d *Daemon) checkSpace(queue string) error {
	if err := d.disk.CheckSpace(); err != nil {
		return err
	}
	return d.spool.CheckSpace(queue)
}

// checkCatalogSpace says why the catalog may not grow now; nil: it may.
func (d *Daemon) checkCatalogSpace() error {
	return CheckCatalogSpace(d.shared.FreeBytes(d.cfg.StateDir), d.cfg.SpoolMinFree)
}

// CheckCatalogSpace says why the catalog may not grow on a disk with free
// bytes; nil: it may. It stops above minFree, at which the work stops and goes
// on, so that a catalog that is made anew never stops the taking of folders.
// The spool may be a mount of its own: the catalog lies beside the ledger.
func CheckCatalogSpace(free, minFree int64) error {
	if least := minFree + minFree/10; free >= 0 && free < least {
		// Without the free space, which is another one each time: the catalog logs a fault once.
		return fmt.Errorf("the disk of state_dir has less than %.1f MB left, which the catalog leaves to the work", float64(least)/archive.MB)
	}
	return nil
}

// countRetry is the wait after a count of the spool that failed.
const countRetry = time.Minute

// countSpool counts what lies in the spool while packages are sent, and again until it is complete.
func (d *Daemon) countSpool(ctx context.Context) {
	for {
		err := d.spool.CountAll(ctx, func(k archive.Key) (queue string, needed bool, err error) {
			e, ok, err := d.ledger.Entry(k)
			return ledger.ServiceQueueOf(e), ok && e.NeedsPackage(), err
		})
		if ctx.Err() != nil {
			return
		}
		d.engine.Wake()
		if err == nil {
			return
		}
		d.cfg.Log.Error("nothing is packed: the spool cannot be looked through", "err", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(countRetry):
		}
	}
}

func (d *Daemon) engineConfig() (ingest.Config, error) {
	cfg := d.cfg
	ic := ingest.Config{
		Ledger: d.ledger, Index: d.ledger, Routes: map[ledger.Route]ingest.Route{
			ledger.Vault: {Client: cfg.Vault, Asker: cfg.Vault, Workers: cfg.Workers, BatchSize: cfg.BatchSize, BatchWait: cfg.BatchWait},
		},
		Planner: &window.Planner{Workers: cfg.Workers},
		Now:     cfg.Now, Log: cfg.Log, Location: cfg.Location,
		PollMin: cfg.PollMin, PollMax: cfg.PollMax, Grace: cfg.Grace, LongestSleep: cfg.LongestSleep,
		DisposalLimit: d.disposalLimit.Book, SpoolSpace: d.checkSpace, SyncPackages: d.syncSpool, IsHeld: d.isHeld, OnPause: d.reportPause, Failed: d.ledger.Failed(),
	}
	maps.Copy(ic.Routes, cfg.Routes)
	for _, r := range d.drops {
		ic.Drops = append(ic.Drops, r.ForEngine())
	}
	if cfg.ArchiveSent != "" {
		into, err := d.findArchiveDrop(cfg.ArchiveSent)
		if err != nil {
			return ic, fmt.Errorf("archive what is sent: %w", err)
		}
		ic.Copies = dropwork.SentCopies{Into: into}
	}
	return ic, nil
}

// Ledger is the daemon's ledger, for commands that run inside it.
func (d *Daemon) Ledger() *boltledger.Ledger { return d.ledger }

// Catalog is the daemon's catalog, for commands that run inside it.
func (d *Daemon) Catalog() *catalog.Catalog { return d.catalog }

// Run works until ctx ends. It returns nil then, and an error only where the ledger
// cannot commit or the disk cannot be trusted: the process must end, and the next
// start goes on from what was committed.
func (d *Daemon) Run(ctx context.Context) error {
	// Before the first commit: on a full disk it would fail and end the process, and the next start would end the same way.
	if !d.disk.AwaitReserve(ctx) {
		return nil
	}
	// Before the first call to a service that is used for the first time: a
	// crash in between leaves a ledger bound to a service that was not called.
	if err := d.ledger.BindAddresses(ctx, d.cfg.Others); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("bind the ledger to the services that it uses: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { d.watchPlace(ctx); return nil })
	for _, r := range d.drops {
		g.Go(func() error { return r.Run(ctx) })
		g.Go(func() error { r.Probe(ctx); return nil })
	}
	g.Go(func() error { d.statusFiles.Run(ctx); return nil })
	g.Go(func() error { return d.engine.Run(ctx) })
	g.Go(func() error { return d.takeExtracts(ctx) })
	g.Go(func() error { return d.takeNotices(ctx) })
	g.Go(func() error { d.countSpool(ctx); return nil })
	g.Go(func() error { d.catalog.Run(ctx); return nil })
	g.Go(func() error { d.recallEarlier(ctx); return nil })
	g.Go(func() error { d.checker.runChecks(ctx, d); return nil })
	g.Go(func() error { d.compareWhileInDoubt(ctx); return nil })
	g.Go(func() error { d.shared.Scans.Run(ctx, d.drops); return nil })
	g.Go(func() error { d.disk.KeepReserve(ctx); return nil })
	g.Go(func() error {
		select {
		case <-ctx.Done():
			return nil
		case err := <-d.fatal:
			return err
		case <-d.ledger.Failed():
			return fmt.Errorf("the ledger stopped: %w", d.ledger.Err())
		}
	})
	return g.Wait()
}

// endProcess makes Run end: what is on disk is not known any more.
func (d *Daemon) endProcess(err error) {
	d.fatalOnce.Do(func() { d.fatal <- err })
}

// Close gives everything back. Run must have returned.
func (d *Daemon) Close() error {
	var errs []error
	if d.stopListening != nil {
		d.stopListening()
	}
	for _, r := range d.drops {
		errs = append(errs, r.Close())
	}
	if d.spool != nil {
		errs = append(errs, d.spool.Close())
	}
	if d.ledger != nil && !d.handedOver {
		errs = append(errs, d.ledger.Close())
	}
	// The lock goes last: whoever takes it finds the ledger closed.
	if d.lock != nil {
		errs = append(errs, durable.CloseLock(d.lock))
	}
	return errors.Join(errs...)
}
