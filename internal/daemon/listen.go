package daemon

import (
	"context"
	"errors"

	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// listenToCommits adds the commit listeners to the ledger; stop removes them. A new reader of commits is one line here.
func (d *Daemon) listenToCommits() (stop func()) {
	stops := []func(){
		d.ledger.Listen(func(rs []ledger.Result) { d.disk.NoteLedgerGrowth(len(rs)) }),
		d.ledger.Listen(d.shared.Returned.NoteCommit),
		d.ledger.Listen(d.statusFiles.NoteCommit),
		d.ledger.Listen(func([]ledger.Result) { d.catalog.Wake() }),
	}
	return func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// reportPause reports a pause that begins, or that needs a person only now.
func (d *Daemon) reportPause(p ingest.Pause) {
	d.cfg.Log.Error("route paused", "target", p.Target.String(), "cause", p.Cause.Code, "err", p.Cause.Text, "do", present.AdviseOnPause(p))
	d.statusFiles.NotePause(p.Target)
}

// recallEarlier finds, beside the work, what people should know of before the start: what they
// may correct, for which the drop folders wait, and then what happened today.
func (d *Daemon) recallEarlier(ctx context.Context) {
	// The index comes first, for no folder is taken before it; the listeners hear of what is committed meanwhile.
	err := d.shared.Returned.Load(d.ledger)
	err = errors.Join(err, d.statusFiles.RecallToday(ctx))
	if err == nil || ctx.Err() != nil {
		return
	}
	d.cfg.Log.Error("_STATUS.txt does not tell of all that happened before the start", "err", err)
	if _, damaged := errors.AsType[*ledger.DamageError](err); damaged {
		d.CheckNow()
	}
}
