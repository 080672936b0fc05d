package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// placeCheck is how often the daemon looks whether the ledger that it has open
// is the one in state_dir.
const placeCheck = 5 * time.Second

// watchPlace notices that the ledger was deleted, moved or replaced while the
// daemon works. From then on nothing is taken, sent, moved or removed. The
// daemon copies what it has open to its place and ends; where that cannot be,
// it tries again, and keeps the file open.
func (d *Daemon) watchPlace(ctx context.Context) {
	tick := time.NewTicker(cmp.Or(d.cfg.ProbeEvery/6, placeCheck))
	defer tick.Stop()
	for {
		d.checkPlace(ctx)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (d *Daemon) checkPlace(ctx context.Context) {
	err := d.ledger.CheckPlace()
	if _, isLost := errors.AsType[*ledger.LostError](err); isLost {
		d.noteLost(err)
		// A crash from here on leaves the copy in its place, or nothing. After
		// the copy the ledger fails, and Run ends.
		if wrong := d.putBack(ctx); wrong != nil && ctx.Err() == nil {
			d.noteLost(fmt.Errorf("%w, and what vaultd has open could not be put there: %w", err, wrong))
		}
		return
	}
	if err != nil {
		d.cfg.Log.Error("whether the ledger is in its place is not known", "err", err)
	} else if d.lost.Swap(nil) != nil {
		d.cfg.Log.Info("the ledger is in its place again")
		d.statusFiles.NoteChangeOfAll()
	}
}

// putBack has the ledger checked and put back.
func (d *Daemon) putBack(ctx context.Context) error {
	return d.ledger.PutBack(ctx, d.cfg.SpoolMinFree, func(ctx context.Context, f *os.File) ([]ledger.Problem, error) {
		v, err := d.verification().VerifyFile(ctx, f)
		return v.Problems, err
	})
}

// lostLedger says why the ledger that is open is not the one in state_dir.
type lostLedger struct {
	why   string
	since time.Time
}

// noteLost holds everything, and says why where that is new.
func (d *Daemon) noteLost(err error) {
	now := lostLedger{err.Error(), d.cfg.Now().Wall}
	if before := d.lost.Load(); before != nil {
		// The first words of a next look say less than the last ones.
		if strings.HasPrefix(before.why, now.why) {
			return
		}
		now.since = before.since
	}
	d.lost.Store(&now)
	d.cfg.Log.Error("SAFE MODE: nothing is taken, sent or removed, because the ledger is not in its place", "why", now.why, "do", present.AdviseOnLostLedger)
	d.statusFiles.NoteChangeOfAll()
}

// lostSince returns since when the ledger is not in its place; zero: it is.
func (d *Daemon) lostSince() time.Time {
	if lost := d.lost.Load(); lost != nil {
		return lost.since
	}
	return time.Time{}
}
