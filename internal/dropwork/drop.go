package dropwork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/recovery"
	"vaultd/internal/spool"
	"vaultd/internal/watch"
)

// Settings is one drop folder and what is asked of what lies in it.
type Settings struct {
	Name, Path, Group string
	AcceptsMountModes bool         // see drop.Config
	Route             ledger.Route // where what is dropped here goes; empty: ledger.Vault
	Vault             archive.VaultID
	Receiving, Notify string                // of route ledger.PDF: the address of the PDF flow, and who is told by the service
	MaxPDF            int64                 // of route ledger.PDF: bytes of a PDF; 0: archive.MaxPackage
	SendsSamePDF      bool                  // of route ledger.PDF: a PDF that was delivered before is delivered again; false: it comes back as a duplicate
	Account           string                // whose credentials the vault is called with; empty: the service's main ones
	Rules             packager.Rules        // of route ledger.Network: Sidecar is the name of the document
	Network           packager.NetworkRules // of route ledger.Network: how documents and names of files are checked; its Rules do not count
	Ignore            archive.IgnoreRules   // names directly in the drop folder that are left alone
	Mode              watch.Mode
	Settle, Rescan    time.Duration
	Holds             ingest.Holds
	RemindAfter       time.Duration // for what a folder lacks, before people are told to act; 0: half an hour
	Disposes          bool          // false: archived sources are kept
	DisposeTo         string        // where they are moved; empty: deleted
	Grace             time.Duration
	Retention         archive.Retention // for how long the archive keeps what came from it; zero: unknown
}

// networkRules are the rules for the folders that are dropped here for the business network.
func (s Settings) networkRules() packager.NetworkRules {
	rules := s.Network
	rules.Rules = s.Rules
	return rules
}

// ForRecovery returns the drop as a comparison reads it; f is nil where it is away.
func (s Settings) ForRecovery(f *drop.Folder) recovery.Origin {
	return recovery.Origin{Name: s.Name, Route: s.Route, PDF: s.pdfRules(), Network: s.Network, Vault: s.Vault, Rules: s.Rules, Folder: f, Retention: s.Retention}
}

// pdfRules are the rules for the PDFs that are dropped here.
func (s Settings) pdfRules() packager.PDFRules {
	return packager.PDFRules{Receiving: s.Receiving, Notify: s.Notify, MaxSize: s.MaxPDF}
}

// defaultReminder holds where the drop does not say.
const defaultReminder = 30 * time.Minute

// Reminder is for how long a thing may lie there and not be taken before a person is told to act.
func (s Settings) Reminder() time.Duration {
	if s.RemindAfter > 0 {
		return s.RemindAfter
	}
	return defaultReminder
}

// Ledger is what the drop folders read of the entries, and where their scans are kept.
type Ledger interface {
	proof.Signer
	present.Entries
	Entries
	Info() ledger.Info
	Head() ledger.Head
	SafeMode() (ledger.SafeMode, bool)
	LastAlarm() time.Time // when the ledger last lost something; zero: never
	// CountHeldFiles counts those of the files that some document holds, except
	// the documents of skipped entries.
	CountHeldFiles(ctx context.Context, files []archive.Digest, isSkipped func(archive.Key) bool) (int, error)
	Scans() ([]ledger.Scan, error)
	PutScans(ctx context.Context, scans ...ledger.Scan) error // durable when it returns
}

// Entries has entries, and what their folders contained.
type Entries interface {
	Entry(k archive.Key) (e ledger.Entry, ok bool, err error)
	Document(k archive.Key) (d ledger.Document, ok bool, err error)
	VisitAttention(class ledger.Attention, before time.Time, limit int, fn func(ledger.Entry)) error
}

// Shared is what all drop folders of one vaultd have in common. A command that works while no daemon runs needs the first part alone.
type Shared struct {
	StateDir, Environment string
	Location              *time.Location // nil: UTC
	Now                   func() archive.Instant
	Log                   *slog.Logger
	FileFault             durable.Hook
	MinFree               int64 // bytes on the disk of the state directory, below which nothing is taken
	Ledger                Ledger
	Takeover              *Takeover
	EndProcess            func(error) // ends the process: nobody knows what is on disk

	Spool        *spool.Spool
	Disk         *spool.Disk
	FreeBytes    func(path string) int64 // on a file system; -1: unknown
	Events       func(path string) (watch.EventSource, error)
	ProbeEvery   time.Duration    // 0: the usual
	Opens        *watch.OpenFiles // where the kernel cannot be asked of files of other users; nil: it can
	Returned     *Returned
	Scans        *Scans
	HeldReason   func() string                                                       // why nothing may be taken; empty: it may
	OnChange     func(drop string)                                                   // something changed that people should read of
	EnterClaimed func(k archive.Key, ev ledger.ClaimedFolder, more ...ledger.Change) // commits the entry of a claimed folder
	EnterDoubted func(k archive.Key, evs []ledger.Event)                             // commits an entry of which the ledger may have lost what became of it
}

func (s *Shared) zone() *time.Location {
	if s.Location == nil {
		return time.UTC
	}
	return s.Location
}

// Drop is one drop folder at work: its handle, its watcher, and what was claimed in it.
type Drop struct {
	*Handle
	watcher *watch.Watcher
	probe   *probe

	keptMu sync.Mutex
	kept   KeptScan // of this process; guarded by keptMu
}

// New prepares the work on a drop folder. Nothing is opened before OpenForStart or Run.
func New(settings Settings, shared *Shared) (*Drop, error) {
	settings.Route = cmp.Or(settings.Route, ledger.Vault)
	settings.Rules.Vault = settings.Vault
	settings.Rules.CutOffPatience, settings.Rules.Now = 10*settings.Settle, func() time.Time { return shared.Now().Wall }
	if fault := settings.form().findFault(settings); fault != "" {
		return nil, fmt.Errorf("drop %s: %s", settings.Name, fault)
	}
	d := &Drop{Handle: NewHandle(settings, shared)}
	d.probe = d.newProbe()
	var err error
	cfg := watch.Config{
		Path: settings.Path, Settle: settings.Settle, Rescan: settings.Rescan, Mode: settings.Mode,
		Complete: watch.Completeness(settings.Rules.Complete), Rules: d.scanRules, IsReserved: drop.IsOwnName, IsIgnored: settings.Ignore.Match,
		IsComplete: d.isComplete, CheckDropFolder: d.CheckUsable, OnChange: func() { shared.OnChange(settings.Name) }, OpenEvents: shared.Events,
		FirstSeen: shared.Scans.firstSeen(settings),
	}
	settings.form().watch(d, &cfg)
	if d.watcher, err = watch.New(cfg); err != nil {
		return nil, fmt.Errorf("drop %s: %w", settings.Name, err)
	}
	return d, nil
}

// ForEngine is the drop folder as the engine sees it.
func (d *Drop) ForEngine() ingest.Drop {
	s := d.Settings
	e := ingest.Drop{
		Name: s.Name, Route: s.Route, Vault: s.Vault, Settle: s.Settle, Holds: s.Holds, Grace: s.Grace, Disposes: s.Disposes,
		Packer: &Packer{d.Handle}, Mover: &Mover{d.Handle}, Unavailable: d.Unavailable,
	}
	s.form().fit(s, &e)
	return e
}

// RequestRescan has the watcher look at everything again soon.
func (d *Drop) RequestRescan() { d.watcher.RequestRescan() }

// WatcherSnapshot returns what the watcher knows. It touches no drop folder.
func (d *Drop) WatcherSnapshot() watch.Snapshot { return d.watcher.Snapshot() }

// Probe looks at the share again and again until ctx ends.
func (d *Drop) Probe(ctx context.Context) { d.probe.probeRegularly(ctx, d.shared.Takeover.met) }

// Run watches the drop folder until ctx ends, opening it first where it was away.
func (d *Drop) Run(ctx context.Context) error {
	// Whatever is claimed may correct a rejected folder, and the index must know all of those first.
	if !d.shared.Returned.awaitLoaded(ctx) {
		return nil
	}
	for {
		err := d.openWithoutWaiting()
		if err == nil {
			err = d.adoptClaims(ctx)
		}
		if err == nil {
			break
		}
		if errors.Is(err, durable.ErrSync) {
			return err
		}
		d.logPause(err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(min(d.Settings.Rescan, time.Minute)):
		}
	}
	err := d.watcher.Run(ctx, d.takeItem)
	if ctx.Err() != nil {
		return nil
	}
	return err
}
