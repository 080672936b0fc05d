package daemon

import (
	"time"

	"vaultd/internal/dropwork"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/operator"
)

// Actions lets people act while the daemon runs: it goes on with what they decided at
// once.
func (d *Daemon) Actions() *operator.Actions {
	return operator.New(operator.Config{
		Ledger: d.ledger, Now: d.cfg.Now, Log: d.cfg.Log, Limit: d.disposalLimit, Service: d.cfg.Archive, Grace: d.cfg.Grace,
		HeldReason: d.heldReason, KeepOpen: d.keepDropsOpen, AfterCommit: d.engine.Wake, AfterRetry: d.tryReceivingNow, Resume: d.engine.ResumeDisposals,
		MayResumeUploads: d.engine.MayResumeUploads, ResumeUploads: d.engine.ResumeUploads,
		OpenDrop: func(name string) (operator.Claimer, func() error, error) {
			for _, r := range d.drops {
				if r.Settings.Name == name {
					return r, func() error { return nil }, r.Unavailable()
				}
			}
			return nil, nil, operator.DropNotConfigured(name)
		},
	})
}

// keepDropsOpen keeps a reload from closing the drop folders until release.
func (d *Daemon) keepDropsOpen() (release func()) {
	d.reloading.RLock()
	return d.reloading.RUnlock
}

// NewActions lets people act while no daemon runs. The next run goes on with what they
// decided. Of cfg it needs StateDir, Now, Log, SpoolMinFree and Drops; for a release Archive
// and Grace too. A drop folder is opened, and so locked, only while something is done in it.
func NewActions(cfg Config, l *boltledger.Ledger) *operator.Actions {
	shared := sharedForCommand(cfg, l)
	return operator.New(operator.Config{
		Ledger: l, Now: cfg.Now, Log: cfg.Log, Service: cfg.Archive, Grace: cfg.Grace,
		Limit: operator.NewDisposalLimit(cfg.StateDir, func() time.Time { return cfg.Now().Wall }, cfg.Log),
		HeldReason: func() string {
			if err := shared.Takeover.Recall(nil); err != nil {
				return err.Error()
			}
			return heldReasonOf(shared.Takeover, l, cfg.Location)
		},
		KeepOpen: func() (release func()) { return func() {} },
		OpenDrop: func(name string) (operator.Claimer, func() error, error) {
			for _, dc := range cfg.Drops {
				if dc.Name == name {
					h := dropwork.NewHandle(dc, shared)
					return h, h.Close, h.Open()
				}
			}
			return nil, nil, operator.DropNotConfigured(name)
		},
	})
}
