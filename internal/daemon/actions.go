package daemon

import (
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/durable"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/operator"
	"vaultd/internal/packager"
	"vaultd/internal/spool"
	"vaultd/internal/watch"
)

// Actions lets people act while the daemon runs: it goes on with what they decided at
// once.
func (d *Daemon) Actions() *operator.Actions {
	return operator.New(operator.Config{
		Ledger: d.ledger, Now: d.cfg.Now, Log: d.cfg.Log, Limit: d.limit, Service: d.cfg.Archive, Grace: d.cfg.Grace,
		Held: d.held, KeepOpen: d.keepDropsOpen, Committed: d.conductor.Wake, Resume: d.conductor.Released,
		OpenDrop: func(name string) (operator.Drop, func() error, error) {
			for _, r := range d.drops {
				if r.cfg.Name == name {
					return r, func() error { return nil }, r.unavailable()
				}
			}
			return nil, nil, operator.DropNotConfigured(name)
		},
	})
}

// keepDropsOpen keeps a reload from closing the drop folders until release.
func (d *Daemon) keepDropsOpen() (release func()) {
	d.acts.RLock()
	return d.acts.RUnlock
}

// NewActions lets people act while no daemon runs. The next run goes on with what they
// decided. Of cfg it needs StateDir, Now, Log, SpoolMinFree and Drops; for a release Archive
// and Grace too. A drop folder is opened, and so locked, only while something is done in it.
func NewActions(cfg Config, l *boltledger.Ledger) *operator.Actions {
	d := &Daemon{cfg: cfg, ledger: l, fatal: make(chan error, 1)}
	return operator.New(operator.Config{
		Ledger: l, Now: cfg.Now, Log: cfg.Log, Service: cfg.Archive, Grace: cfg.Grace,
		Limit: operator.NewDisposalLimit(cfg.StateDir, func() time.Time { return cfg.Now().Wall }, cfg.Log),
		Held: func() string {
			if err := d.recallSuccessor(); err != nil {
				return err.Error()
			}
			return d.held()
		},
		KeepOpen: func() (release func()) { return func() {} },
		OpenDrop: func(name string) (operator.Drop, func() error, error) {
			for _, dc := range cfg.Drops {
				if dc.Name == name {
					r := &room{d: d, cfg: dc, look: watch.Rules{Sidecar: dc.Rules.Sidecar, IsJunk: packager.IsJunkName}}
					return r, r.close, r.open()
				}
			}
			return nil, nil, operator.DropNotConfigured(name)
		},
	})
}

// ClaimAgain implements operator.Drop.
func (r *room) ClaimAgain(old ledger.Entry) (ev ledger.ClaimedFolder, key archive.Key, err error) {
	f, letGo, err := r.hold()
	if err != nil {
		return ev, key, err
	}
	defer letGo()
	if err := spool.CheckMinFree(r.d.cfg.StateDir, r.d.cfg.SpoolMinFree); err != nil {
		return ev, key, fmt.Errorf("nothing is taken: %w", err)
	}
	now := r.d.cfg.Now().Wall
	c, err := f.ClaimReturned(old.Dest, now)
	if errors.Is(err, durable.ErrSync) {
		r.d.die(fmt.Errorf("drop %s: %w", r.cfg.Name, err))
	}
	if err != nil {
		return ev, key, err
	}
	look, err := r.lookAt(f, c.Key)
	if err != nil { // it is looked at again before it is sealed
		r.d.cfg.Log.Warn("claimed folder cannot be looked at yet", "key", c.Key, "err", err)
	}
	return ledger.ClaimedFolder{
		Route: ledger.Vault, Vault: r.cfg.Vault, Drop: r.cfg.Name, Folder: c.Folder, Owner: c.Owner, Node: ledger.Node(c.Inode),
		Look: look, NotBefore: now.Add(r.cfg.Settle), Supersedes: old.Key,
	}, c.Key, nil
}
