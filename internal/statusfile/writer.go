package statusfile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"vaultd/internal/drop"
	"vaultd/internal/dropwork"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
	"vaultd/internal/watch"
)

const (
	usualInterval     = 30 * time.Second // between two checks while a state lasts whose end is not reported, such as a pause
	intervalsPerWrite = 10               // at most: the time in the file shows that vaultd works
	writesPerInterval = 10               // at most, however much changes
	delayedAfter      = 30 * time.Second // a shorter pause is no delay that a person should read of

)

// writer keeps one drop folder's _STATUS.txt. What it remembers is counted anew at the next start.
type writer struct {
	files *Files
	drop  *dropwork.Drop
	wake  chan struct{} // size 1: something may have changed

	checkedAt  time.Time              // when its text was last rendered, written or not; the loop's alone
	written    time.Time              // of the last _STATUS.txt; the loop's alone
	body       string                 // what it said beside the time; the loop's alone
	faults     map[string]loggedFault // faults that were logged, by folder; the loop's alone
	failed     string                 // why the last one could not be written; the loop's alone
	templateIn *drop.Folder           // in which the template was written; the loop's alone

	mu  sync.Mutex
	day dayCounts // guarded by mu
}

func newWriter(files *Files, drop *dropwork.Drop) *writer {
	return &writer{files: files, drop: drop, wake: make(chan struct{}, 1), faults: map[string]loggedFault{}, day: dayCounts{recalling: true}}
}

// wakeUp says that something may have changed. It never blocks.
func (w *writer) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// noteCommitted takes note of a committed entry.
func (w *writer) noteCommitted(e ledger.Entry, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.day.addCommitted(e, now.In(w.files.cfg.Location))
	w.wakeUp()
}

// keepFile keeps _STATUS.txt true until ctx ends, and leaves it as things stand then.
func (w *writer) keepFile(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			w.writeIfChanged()
			return
		case <-w.wake:
			timer.Reset(time.Until(w.checkedAt.Add(w.files.cfg.Interval / writesPerInterval)))
		case <-timer.C:
			timer.Reset(w.writeIfChanged())
		}
	}
}

// writeIfChanged writes _STATUS.txt if its body has changed, or if its time is
// old. It returns when to call it again if no change is reported before. It
// writes nothing while the drop folder cannot be worked in, for that may be
// another folder, and nothing before it is known what happened earlier today.
func (w *writer) writeIfChanged() (again time.Duration) {
	if w.isRecalling() {
		return w.files.rewriteAfter() // the end of the recall is reported
	}
	now := time.Now()
	w.checkedAt = now
	f, done, err := w.drop.HoldOpen()
	if err != nil {
		return w.files.cfg.Interval
	}
	defer done()
	w.writeTemplate(f)
	p, err := w.gatherPage()
	if err != nil {
		return w.files.cfg.Interval // the ledger has failed, and the process is about to end for it
	}
	body := p.renderBody()
	if body != w.body || now.Sub(w.written) >= w.files.rewriteAfter() {
		if f.CheckStillOurs() != nil || w.writeFile(f, p.renderHead()+body) != nil {
			return w.files.cfg.Interval
		}
		w.body, w.written = body, now
	}
	return min(w.written.Add(w.files.rewriteAfter()).Sub(now), p.Until.Sub(p.Now))
}

// writeFile writes _STATUS.txt, and logs each new reason why that failed once.
func (w *writer) writeFile(f *drop.Folder, text string) error {
	// After a crash here the former file is there or this one, each whole.
	err := f.WriteStatusFile(text)
	if text := fmt.Sprint(err); err != nil && text != w.failed {
		w.files.cfg.Log.Error("status for people not written", "drop", w.drop.Settings.Name, "err", err)
	}
	w.failed = ""
	if err != nil {
		w.failed = err.Error()
	}
	return err
}

// gatherPage gathers what people should know.
func (w *writer) gatherPage() (page, error) {
	now := w.files.cfg.Now().Wall.In(w.files.cfg.Location)
	p := page{Drop: w.drop.Settings.Name, Now: now, Until: now.Add(w.files.rewriteAfter()), Test: w.files.cfg.Environment != "production", Sidecar: w.drop.Settings.Rules.Sidecar, Route: w.drop.Settings.Route, seen: w.drop.StateWithScan().Scan}
	part, err := w.files.overview.ofDrop(w.files.cfg.Ledger, w.drop.Settings.Name)
	if err != nil {
		return p, err
	}
	p.addLedger(part)
	w.mu.Lock()
	p.Today = w.day.onDay(now)
	w.mu.Unlock()
	full := w.files.cfg.Disk.FullSince()
	p.Delayed = full
	if safe, is := w.files.cfg.Ledger.SafeMode(); is {
		p.Delayed, p.Stopped = earlierOf(p.Delayed, safe.Since), true
	}
	if since := w.files.cfg.LostSince(); !since.IsZero() {
		p.Delayed, p.Stopped = earlierOf(p.Delayed, since), true
	}
	pauses := w.files.cfg.Pauses()
	for _, pause := range pauses {
		if w.isDelayedBy(pause.Target) && (pause.NeedsPerson() || now.Sub(pause.Since) >= delayedAfter) {
			p.Delayed = earlierOf(p.Delayed, pause.Since)
		}
	}
	if len(pauses) > 0 || !p.Delayed.IsZero() {
		p.Until = now.Add(w.files.cfg.Interval)
	}
	snap := w.drop.SnapshotWithRights()
	w.logFaults(snap)
	p.addNotTaken(snap, w.drop.Settings.Reminder(), !full.IsZero())
	if p.Duplicates, err = w.describeDuplicates(p.Today); err != nil {
		return p, err
	}
	err = w.addUnusual(&p, part)
	return p, err
}

// logFaults logs each fault of rights or devices once, and once for all folders that the
// drop's own disk has no room: an administrator must act.
func (w *writer) logFaults(s watch.Snapshot) {
	now := w.files.cfg.Now().Wall
	for name, t := range w.faults {
		if now.Sub(t.seen) > forgotten {
			delete(w.faults, name)
		}
	}
	for _, group := range s.NotTaken {
		switch group.Reason {
		case watch.NoRight, watch.OtherDevice, watch.ReadOnly, watch.Failed:
		case watch.NoRoom:
			w.logFullDisk(group, now)
			continue
		default:
			continue
		}
		for _, n := range group.Items {
			if w.isNewFault(n.Name, group.Reason, now) {
				w.files.cfg.Log.Error("folder not taken", "drop", w.drop.Settings.Name, "reason", string(group.Reason), "since", n.FirstSeen, "err", n.Detail)
			}
		}
	}
}

// loggedFault is a fault that was logged. It is remembered a while after it was last seen: between two tries a folder is being
// looked at, or taken, and bears no fault.
type loggedFault struct {
	reason watch.Reason
	seen   time.Time
}

const forgotten = 10 * time.Minute

// isNewFault notes that a folder has a fault, and tells whether that was not told yet.
func (w *writer) isNewFault(name string, r watch.Reason, now time.Time) bool {
	before := w.faults[name]
	w.faults[name] = loggedFault{r, now}
	return before.reason != r
}

// logFullDisk logs once for all folders that the drop's own disk is full; that vaultd's is
// was told elsewhere.
func (w *writer) logFullDisk(group watch.NotTakenGroup, now time.Time) {
	const all = "\x00" // the name of no folder
	if !w.files.cfg.Disk.FullSince().IsZero() || len(group.Items) == 0 {
		return
	}
	if w.isNewFault(all, group.Reason, now) {
		w.files.cfg.Log.Error("nothing is taken: the disk of the drop folder is full", "drop", w.drop.Settings.Name, "err", group.Items[0].Detail)
	}
}

// describeDuplicates says for today's last duplicates what they repeat.
func (w *writer) describeDuplicates(t dayCounts) (lines []item, err error) {
	for _, d := range t.duplicates {
		first, ok, err := w.files.cfg.Ledger.Entry(d.first)
		if err != nil {
			return nil, err
		}
		text := "nothing to do"
		switch at := first.CompletedAt(); {
		case !ok || at.IsZero():
		case first.State == ledger.Delivered:
			text = "sent " + at.In(w.files.cfg.Location).Format("2 Jan 2006") + ", nothing to do"
		default:
			text = "archived " + at.In(w.files.cfg.Location).Format("2 Jan 2006") + ", nothing to do"
		}
		lines = append(lines, item{d.folder, text})
	}
	return lines, nil
}

// addUnusual says of what was archived of late what a person should look at, the newest first.
func (w *writer) addUnusual(p *page, part *dropOverview) error {
	for _, e := range slices.Backward(part.checks) {
		lines, err := w.drop.DescribeUnusual(e)
		if err != nil {
			return err
		}
		p.Unusual.addItem(e.Folder, strings.Join(lines, "; "))
	}
	p.Unusual.count = part.unusual
	return nil
}

// earlierOf returns the earlier of two times; zero is none.
func earlierOf(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// isDelayedBy reports whether the folders of this drop wait while the circuit breaker of t is open.
func (w *writer) isDelayedBy(t ingest.Target) bool {
	s := w.drop.Settings
	anyOfIt := ledger.Entry{Route: s.Route, Vault: s.Vault, Drop: s.Name}
	return slices.ContainsFunc([]ledger.Step{ledger.Seal, ledger.Register, ledger.Upload}, func(step ledger.Step) bool {
		return slices.Contains(ingest.TargetsOf(anyOfIt, step), t)
	})
}

// writeTemplate writes _template once each time the drop folder was opened: what people copy and fill in. The sidecar is that of the
// archive: a drop of another route has none of it.
func (w *writer) writeTemplate(f *drop.Folder) {
	if w.templateIn == f || w.drop.Settings.Vault == "" {
		return
	}
	w.templateIn = f
	sidecar, help := packager.MakeTemplate(w.drop.Settings.Rules)
	// After a crash here the next start writes what is missing.
	err := f.WriteTemplate(drop.NoteFile{Name: w.sidecarName(), Data: sidecar}, drop.NoteFile{Name: "_HELP.txt", Data: []byte(help)})
	if err != nil {
		w.files.cfg.Log.Warn("template for people not written", "drop", w.drop.Settings.Name, "err", err)
	}
}

// sidecarName is the name that people give to it.
func (w *writer) sidecarName() string {
	if name := w.drop.Settings.Rules.Sidecar; name != "" {
		return name
	}
	return "metadata.json"
}

// isRecalling reports whether it is not known yet what happened earlier today.
func (w *writer) isRecalling() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.day.recalling
}
