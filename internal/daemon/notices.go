package daemon

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/arrivals"
	"vaultd/internal/custody"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/notices"
	"vaultd/internal/statedir"
)

// Notices says how the notifications of the business network are taken in.
type Notices struct {
	Service notices.Service
	Every   time.Duration // between two lists
	Receive *Receive      // nil: no documents are received, and what announces one is foreign
}

// Receive says how documents are received over the business network.
type Receive struct {
	Service  arrivals.ReceivedService
	Describe func(kind archive.NetworkKind, raw []byte) (archive.Document, error)
	Into     string // the drop folder of the archive that they are put into
	Confirm  bool   // say of each that it was received
	Workers  int    // documents at once

	TrustsType bool // whatever the network lists as received documents is one; false: the code of a notification tells
}

// takeNotices takes notifications in until ctx ends, and receives what they announce, each if it is configured. The error is one of the
// ledger, or of a file whose place on disk is not known.
func (d *Daemon) takeNotices(ctx context.Context) error {
	n := d.cfg.Notices
	if n == nil {
		return nil
	}
	if isWanted, err := d.needsNotices(); err != nil || !isWanted {
		return err
	}
	cfg := notices.Config{Service: n.Service, Ledger: d.ledger, Every: n.Every, Now: d.cfg.Now, Log: d.cfg.Log, IsHeld: d.isHeld, OnCommit: d.engine.NoteCommitted}
	if n.Receive == nil {
		d.poll(ctx, cfg)
		return nil
	}
	into, err := d.findArchiveDrop(n.Receive.Into)
	if err != nil {
		return fmt.Errorf("receive documents: %w", err)
	}
	dir, err := statedir.OpenFolder(d.cfg.StateDir, statedir.ReceivedFolder, d.cfg.FileFault)
	if err != nil {
		return fmt.Errorf("receive documents: %w", err)
	}
	engine := arrivals.NewReceived(arrivals.Received{Config: d.configureArrivals(n.Receive.Workers, "state_dir", d.cfg.StateDir), Ledger: d.ledger, Service: n.Receive.Service,
		Describe: n.Receive.Describe, Custody: custody.OpenReceived(dir), Drop: into, IsArchived: d.isArchived, Confirm: n.Receive.Confirm})
	d.receiver.Store(engine)
	cfg.Arrivals, cfg.OnDone, cfg.TrustsType = d.ledger, engine.Wake, n.Receive.TrustsType
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() { defer close(ended); d.poll(ctx, cfg) }()
	err = engine.Run(ctx)
	cancel()
	<-ended
	return errors.Join(err, dir.Close())
}

// errFound ends a search in the ledger.
var errFound = errors.New("found")

// needsNotices reports whether anything waits for a notification: a drop of the business network is configured, documents are received, or
// one that was sent earlier may still be rejected. Who only asks the directory takes none: another program may wait for them.
func (d *Daemon) needsNotices() (bool, error) {
	if d.usesNetwork() {
		return true, nil
	}
	err := d.ledger.Notices(func(n ledger.Notice) error {
		if n.IsForeign() {
			return nil
		}
		return errFound
	})
	if errors.Is(err, errFound) {
		return true, nil
	}
	return false, err
}

// usesNetwork reports whether documents are sent or received over the business network.
func (d *Daemon) usesNetwork() bool {
	return d.cfg.Notices.Receive != nil || slices.ContainsFunc(d.drops, func(r *dropwork.Drop) bool { return r.Settings.Route.IsNotified() })
}

// poll takes notifications in until ctx ends.
func (d *Daemon) poll(ctx context.Context, cfg notices.Config) {
	p := notices.New(cfg)
	d.poller.Store(p)
	p.Run(ctx)
}

// tryReceivingNow lets what is due of received documents be tried at once, because a person asked for it.
func (d *Daemon) tryReceivingNow() {
	if e := d.receiver.Load(); e != nil {
		e.TryNow()
	}
}

func (d *Daemon) isHeld() bool { return d.heldReason() != "" }

// findArchiveDrop returns the drop of the archive with that name.
func (d *Daemon) findArchiveDrop(name string) (*dropwork.Drop, error) {
	for _, r := range d.drops {
		if r.Settings.Name == name && r.Settings.Vault != "" {
			return r, nil
		}
	}
	return nil, fmt.Errorf("documents go into the drop %q, and no drop of the archive has that name", name)
}

// isArchived reports whether the archive has the document of that identity.
func (d *Daemon) isArchived(id archive.ID) (bool, error) {
	key, known, err := d.ledger.FindByID(id)
	if err != nil || !known {
		return false, err
	}
	e, known, err := d.ledger.Entry(key)
	return known && e.State == ledger.Archived, err
}
