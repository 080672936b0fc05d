package dropwork

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/watch"
)

const (
	probeEvery    = 30 * time.Second // between two inspections of a drop folder's share, and two checks of what is to be stored: so old may be what is shown
	probePatience = 10 * time.Second // after which a share counts as one that does not answer
)

// probe inspects the share of one drop folder again and again, and keeps the last result. A share that hangs blocks
// whoever touches it. Whoever only asks for the state must not touch it, and gets the last result.
type probe struct {
	inspect func() probeResult // touches the share
	every   time.Duration
	now     func() time.Time
	zone    *time.Location // of times for people

	mu    sync.Mutex
	begun time.Time    // of the inspection that runs; zero: none does; guarded by mu
	last  *probeResult // nil: none ended yet; guarded by mu
}

// probeResult is what one inspection of a share found.
type probeResult struct {
	err    error             // why it cannot be worked in
	free   int64             // bytes on its file system; -1: unknown
	rights map[string]string // by the name of what may not be read: what to do about it
	places []drop.PlaceFault // what lies where vaultd puts things for people

	missing []archive.Key // unresolved rejections whose returned folders are not in their places, the newest first
}

func (d *Drop) newProbe() *probe {
	return &probe{now: time.Now, zone: d.shared.zone(), every: cmp.Or(d.shared.ProbeEvery, probeEvery), inspect: func() probeResult {
		f := probeResult{err: d.CheckUsable(), free: d.shared.FreeBytes(d.Settings.Path), rights: map[string]string{}}
		if !errors.Is(f.err, errNotOpened) && !errors.Is(f.err, errReopening) {
			d.logPause(f.err)
		}
		if before, _ := d.probe.lastFound(); (before.err == nil) != (f.err == nil) {
			d.RequestRescan() // the watcher pauses, or goes on
		}
		f.missing = d.findMissing()
		if f.err == nil {
			f.places, _ = drop.CheckPlaces(d.Settings.Path) // a folder that is away now is found by the next inspection
			d.logPlaces(f.places)
		}
		for _, w := range d.SnapshotWithRights().NotTaken {
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

// logPlaces logs each new thing of somebody else that lies where vaultd puts things for people.
func (d *Drop) logPlaces(now []drop.PlaceFault) {
	before, _ := d.probe.lastFound()
	for _, p := range now {
		if p.IsForeign && !slices.Contains(before.places, p) {
			d.shared.Log.Error("a place for results is somebody else's", "drop", d.Settings.Name, "err", p.Text, "do", p.Do)
		}
	}
}

// probeRegularly inspects the share until ctx ends, and once at once when met is
// closed. An inspection that hangs cannot be ended. It is left alone, and no
// other begins before it has ended.
func (p *probe) probeRegularly(ctx context.Context, met <-chan struct{}) {
	tick := time.NewTicker(p.every)
	defer tick.Stop()
	ended := make(chan struct{}, 1)
	for {
		p.startProbe(ended)
		select {
		case <-ctx.Done():
			return
		case <-ended:
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-met:
			met = nil
		}
	}
}

// startProbe starts one inspection, which sends on ended when it is over.
func (p *probe) startProbe(ended chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = p.now()
	go func() {
		f := p.inspect()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.begun, p.last = time.Time{}, &f
		ended <- struct{}{}
	}()
}

// hangsSince says since when the share does not answer; nil: it does, as far as is known.
func (p *probe) hangsSince() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.begun.IsZero() || p.now().Sub(p.begun) < probePatience {
		return nil
	}
	return fmt.Errorf("its file server has not been answering since %s", p.begun.In(p.zone).Format("2 Jan 15:04:05 MST"))
}

// lastFound returns the last result; ok is false before the first inspection has ended.
func (p *probe) lastFound() (f probeResult, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		return probeResult{free: -1}, false
	}
	return *p.last, true
}

// State is one drop folder as it is being watched.
type State struct {
	Name   string
	Paused string // why it is not worked in; empty: it is
	Do     string // what a person should do about that, where more is known than that it must be mended
	Watch  watch.Snapshot
	Free   int64 // bytes on its file system; -1: unknown

	Foreign []drop.PlaceFault // of somebody else, where vaultd puts things for people

	Scan        ledger.Scan   // what lies in it and was not taken
	RemindAfter time.Duration // not taken for longer needs a person

	missing         []archive.Key // as the probe found them last
	looksForMissing bool          // false: they are not known
}

// State is how the drop folder stands, as far as that is known without touching it.
func (d *Drop) State() State {
	f, ok := d.probe.lastFound()
	if !ok {
		_, f.err = d.Current()
	}
	if hangs := d.probe.hangsSince(); hangs != nil {
		f.err = hangs
	}
	s := State{Name: d.Settings.Name, Watch: d.watcher.Snapshot(), Free: f.free, missing: f.missing, looksForMissing: ok && f.err == nil}
	if f.err != nil {
		s.Paused = f.err.Error()
	} else if p := s.Watch.Paused; p != nil {
		s.Paused, f.err = p.Error(), p
	}
	for _, p := range f.places {
		if p.IsForeign {
			s.Foreign = append(s.Foreign, p)
		}
	}
	if advised, is := errors.AsType[advisedError](f.err); is {
		s.Paused, s.Do = advised.Error(), advised.Advice()
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

// SnapshotWithRights returns what the watcher knows, and explains missing rights to an administrator. It touches the drop folder.
func (d *Drop) SnapshotWithRights() watch.Snapshot {
	s := d.watcher.Snapshot()
	f, done, err := d.HoldOpen()
	if err != nil {
		return s
	}
	defer done()
	for _, w := range s.NotTaken {
		if w.Reason != watch.NoRight {
			continue
		}
		for i, n := range w.Items {
			if strings.HasPrefix(n.Detail, "drop ") {
				continue // it was claimed, and the claim said so itself
			}
			w.Items[i].Detail = f.DescribeNoRight(n.Name).Error()
			if inside, ok := strings.CutPrefix(n.Detail, "look at "); ok && strings.HasPrefix(inside, `"`) {
				w.Items[i].Detail += " In it: " + strings.TrimSuffix(inside, ": "+fs.ErrPermission.Error()) + "."
			}
		}
	}
	return s
}

// Unavailable returns why the drop folder cannot be worked in just now. A share that is
// known to hang is not touched for it.
func (d *Drop) Unavailable() error {
	if hangs := d.probe.hangsSince(); hangs != nil {
		return hangs
	}
	return d.CheckUsable()
}
