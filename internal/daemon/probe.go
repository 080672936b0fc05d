package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"vaultd/internal/drop"
	"vaultd/internal/durable"
	"vaultd/internal/watch"
)

const (
	probeEvery    = 30 * time.Second // between two looks at a drop folder's share
	probePatience = 10 * time.Second // after which a share counts as one that does not answer
)

// probe looks at the share of one drop folder again and again, and keeps what it found:
// a share that hangs holds up whoever touches it for as long as it likes, and nobody who
// only wants to know how things stand may be held up.
type probe struct {
	look  func() found // touches the share
	every time.Duration
	now   func() time.Time
	zone  *time.Location // of times for people

	mu    sync.Mutex
	begun time.Time // of the look under way; zero: none is; guarded by mu
	last  *found    // nil: none ended yet; guarded by mu
}

// found is what one look at a share found.
type found struct {
	err    error             // why it cannot be worked in
	free   int64             // bytes on its file system; -1: unknown
	rights map[string]string // by the name of what may not be read: what to do about it
}

func (r *room) newProbe() *probe {
	return &probe{now: time.Now, zone: r.location(), every: cmp.Or(r.d.cfg.StatusLook, probeEvery), look: func() found {
		f := found{err: r.check(), free: durable.FreeBytes(r.cfg.Path), rights: map[string]string{}}
		if !errors.Is(f.err, errNotOpened) && !errors.Is(f.err, errReopening) {
			r.tellPause(f.err)
		}
		for _, w := range r.snapshot().NotTaken {
			if w.Reason != watch.NoRight {
				continue
			}
			for _, n := range w.Items {
				f.rights[n.Name] = n.Detail
			}
		}
		return f
	}}
}

// run looks until ctx ends. A look that hangs cannot be ended: it is left behind, alone,
// for no other begins before it has ended.
func (p *probe) run(ctx context.Context) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	ended := make(chan struct{}, 1)
	for {
		p.begin(ended)
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// begin starts a look that tells ended when it is over.
func (p *probe) begin(ended chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = p.now()
	go func() {
		f := p.look()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.begun, p.last = time.Time{}, &f
		ended <- struct{}{}
	}()
}

// hangs says since when the share does not answer; nil: it does, as far as is known.
func (p *probe) hangs() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun.IsZero() || p.now().Sub(p.begun) < probePatience {
		return nil
	}
	return fmt.Errorf("its file server has not been answering since %s", p.begun.In(p.zone).Format("2 Jan 15:04:05 MST"))
}

// told returns what the last look found; ok is false before the first has ended.
func (p *probe) told() (f found, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return found{free: -1}, false
	}
	return *p.last, true
}

// standing is how the drop folder stands, as far as that is known without touching it.
func (r *room) standing() DropState {
	f, ok := r.probe.told()
	if !ok {
		_, f.err = r.current()
	}
	if hangs := r.probe.hangs(); hangs != nil {
		f.err = hangs
	}
	s := DropState{Name: r.cfg.Name, Path: r.cfg.Path, Vault: r.cfg.Vault, Watch: r.watcher.Snapshot(), Free: f.free}
	if f.err != nil {
		s.Paused = f.err.Error()
	} else if p := s.Watch.Paused; p != nil {
		s.Paused, f.err = p.Error(), p
	}
	if readOnly, is := errors.AsType[*drop.ReadOnlyError](f.err); is {
		s.Paused, s.Do = readOnly.Error(), readOnly.Advice()
	}
	for _, w := range s.Watch.NotTaken {
		for i, n := range w.Items {
			if words := f.rights[n.Name]; words != "" && w.Reason == watch.NoRight {
				w.Items[i].Detail = words
			}
		}
	}
	return s
}

// unavailable returns why the drop folder cannot be worked in just now. A share that is
// known to hang is not touched for it.
func (r *room) unavailable() error {
	if hangs := r.probe.hangs(); hangs != nil {
		return hangs
	}
	return r.check()
}
