package daemon

import (
	"context"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/arrivals"
	"vaultd/internal/custody"
)

// Extracts says how the extracts of the accounts-payable system are taken in.
type Extracts struct {
	Service      arrivals.ExtractService
	Acknowledger arrivals.Acknowledger // nil: nothing is acknowledged, so that other programs still see every extract
	Custody      string                // the folder in which they are kept; it exists
	Every        time.Duration         // between two lists
	Workers      int                   // extracts at once, at most two
	MaxDownloads uint16                // of one file, before a person must look
	Hosts        string                // digest of the hosts that redirects may lead to
	ToDrop       string                // the drop folder of the archive that their files are put into; empty: none is
	DocumentType string                // of those files
}

// handOn says into which drop folder the files of extracts go; nil: into none.
func (d *Daemon) handOn() (*arrivals.HandOn, error) {
	x := d.cfg.Extracts
	if x.ToDrop == "" {
		return nil, nil
	}
	into, err := d.findArchiveDrop(x.ToDrop)
	if err != nil {
		return nil, fmt.Errorf("archive extracts: %w", err)
	}
	return &arrivals.HandOn{Drop: into, DocumentType: x.DocumentType, LedgerID: d.ledger.Info().ID}, nil
}

// custodyRetry is the wait after a custody folder that could not be opened.
const custodyRetry = time.Minute

// takeExtracts takes extracts in, if that is configured. A custody folder that cannot be opened stops no invoice: it is told of and tried
// again. The error is one of the ledger, or of a file whose place on disk is not known.
func (d *Daemon) takeExtracts(ctx context.Context) error {
	x := d.cfg.Extracts
	if x == nil {
		return nil
	}
	handOn, err := d.handOn()
	if err != nil {
		return err
	}
	info := d.ledger.Info()
	c, err := custody.Open(x.Custody, info.ID, info.Environment, d.cfg.FileFault)
	for ; err != nil; c, err = custody.Open(x.Custody, info.ID, info.Environment, d.cfg.FileFault) {
		// After a sync that failed nobody knows what is on disk. The process ends, and the next start opens the folder anew.
		if errors.Is(err, custody.ErrUnknownPlace) {
			return fmt.Errorf("open the custody folder: %w", err)
		}
		d.cfg.Log.Error("no extracts are taken in", "err", err)
		why := err.Error()
		d.custodyFault.Store(&why)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(custodyRetry):
		}
	}
	d.custodyFault.Store(nil)
	engine := arrivals.NewExtracts(arrivals.Extracts{
		Config: d.configureArrivals(x.Workers, "the custody folder", x.Custody),
		Ledger: d.ledger, Service: x.Service, Acknowledger: x.Acknowledger, HandOn: handOn, Custody: c, Every: x.Every, MaxDownloads: x.MaxDownloads, Hosts: x.Hosts,
	})
	d.extracts.Store(engine)
	return errors.Join(engine.Run(ctx), c.Close())
}

// configureArrivals is what all engines of arrivals work with; dir is where
// their files are kept, on that disk.
func (d *Daemon) configureArrivals(workers int, disk, dir string) arrivals.Config {
	return arrivals.Config{Workers: workers, Now: d.cfg.Now, Log: d.cfg.Log, Room: func() error { return d.checkRoom(disk, dir) }, IsHeld: d.isHeld}
}

// checkRoom says why nothing may be downloaded to a disk now; nil: it may. A
// download that finds no room costs one of the few that the service of the
// extracts allows.
func (d *Daemon) checkRoom(disk, path string) error {
	free, least := d.shared.FreeBytes(path), d.cfg.SpoolMinFree
	if free >= 0 && free < least {
		return fmt.Errorf("the disk of %s has %.1f MB left, less than spool.min_free (%.1f MB): make room", disk, float64(free)/archive.MB, float64(least)/archive.MB)
	}
	return nil
}
