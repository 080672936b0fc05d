package daemon

import (
	"context"
	"errors"
)

// DrainUploads waits, before a reload ends the work of d, for uploads of which nobody could be asked what became of them if they were cut
// off. It returns after [ingest.DrainLimit] at the latest, and other work goes on meanwhile.
func (d *Daemon) DrainUploads(ctx context.Context) { d.engine.DrainUploads(ctx) }

// Reopen makes a daemon with another configuration of one whose Run has returned. The lock and
// the ledger go over to the new one and stay open all the while: nobody else can take them in
// between, and commands that read go on. What was in hand is in the ledger, so that beginning
// with the new configuration is the same as going on.
//
// state_dir, environment and each base_url must be the same. After an error d still has lock and
// ledger, but its drop folders are closed: it can be reopened with the former configuration,
// or closed.
func (d *Daemon) Reopen(cfg Config) (*Daemon, error) {
	if cfg.StateDir != d.cfg.StateDir {
		return nil, &BindingError{"state_dir", d.cfg.StateDir, cfg.StateDir}
	}
	var errs []error
	// A person's retry claims a folder and then commits its entry. It ends first: else only the next start would find that folder.
	d.reloading.Lock()
	for _, r := range d.drops {
		errs = append(errs, r.Close())
	}
	d.reloading.Unlock()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	d.stopListening()
	next := &Daemon{cfg: cfg, since: cfg.Now().Wall, fatal: make(chan error, 1), compareSoon: make(chan struct{}, 1), checker: newChecker(), ledger: d.ledger, former: d.shared.Takeover}
	if err := next.openParts(); err != nil {
		for _, r := range next.drops {
			errs = append(errs, r.Close())
		}
		if next.stopListening != nil {
			next.stopListening()
		}
		if next.spool != nil {
			errs = append(errs, next.spool.Close())
		}
		return nil, errors.Join(append(errs, err)...)
	}
	next.lost.Store(d.lost.Load())
	// From here the new daemon owns lock and ledger. A crash on either side of this line leaves the same ledger, and the kernel frees the lock.
	next.lock, d.lock, d.handedOver = d.lock, nil, true
	return next, nil
}
