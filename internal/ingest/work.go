package ingest

import (
	"context"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// enter lets a piece wait for its turn whose intents are committed.
func (r *runner) enter(work context.Context, p *piece) {
	if len(p.acts) > 0 {
		r.queue(p)
		r.begin(work)
		return
	}
	defer r.c.wg.Done()
	if p.probe {
		r.c.breakers.endProbe(p.target, r.c.cfg.Now().Wall)
	}
	r.done(p, false)
	r.finish(p)
}

// begin starts the pieces whose turn it is.
func (r *runner) begin(work context.Context) {
	for p := r.next(); p != nil; p = r.next() {
		go func() {
			defer r.c.wg.Done()
			r.work(work, p)
		}()
	}
}

// work does one piece and hands its outcome to the ledger.
func (r *runner) work(ctx context.Context, p *piece) {
	var outcome []ledger.Change
	acted := false
	switch {
	case r.isOver() || r.risky && r.c.safe() || r.restsNow(p):
		outcome = r.recalled(p.acts)
	case ctx.Err() == nil:
		outcome, acted = r.do(ctx, p.acts), true
	}
	if p.probe {
		r.c.breakers.endProbe(p.target, r.c.cfg.Now().Wall)
	}
	r.done(p, acted)
	r.begin(ctx)
	if len(outcome) == 0 {
		r.finish(p)
		return
	}
	submit, next := outcome, map[archive.Key]*piece(nil)
	if r.follow != nil && acted {
		submit, next = r.follow(p.acts, outcome)
	}
	r.c.cfg.Ledger.Submit(submit, func(rs []ledger.Result) {
		r.c.enterFollowed(ctx, next, rs)
		r.settle(p, outcome, rs)
	})
}

// restsNow reports whether the route of a piece was paused while that waited for its turn.
func (r *runner) restsNow(p *piece) bool {
	_, rests := r.c.breakers.isOpen(p.target, r.c.cfg.Now().Wall)
	return rests && !p.probe
}

func (r *runner) recalled(es []ledger.Entry) []ledger.Change {
	if r.recall == nil {
		return nil
	}
	return r.c.each(es, r.recall)
}

// settle books what became of an outcome, and offers what was not committed once more.
func (r *runner) settle(p *piece, outcome []ledger.Change, rs []ledger.Result) {
	var more []ledger.Change
	for _, res := range rs {
		r.c.note(res)
		if c, again := r.c.collision(p.acts, outcome, res); again {
			more = append(more, c)
		} else if c, again := r.c.refusedOutcome(p.acts, res); again {
			more = append(more, c)
		}
	}
	if len(more) == 0 {
		r.finish(p)
		return
	}
	r.c.cfg.Ledger.Submit(more, func(rs []ledger.Result) {
		for _, res := range rs {
			r.c.note(res)
		}
		r.finish(p)
	})
}

// finish is the end of a piece of work; what it held is free for what is due next.
func (r *runner) finish(p *piece) {
	r.end(p)
	r.nudge()
}
