package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// progressView shows how entries proceed: one bar for each on a terminal, one line for
// each change elsewhere.
type progressView struct {
	out      io.Writer
	began    time.Time
	seen     map[archive.Key]ledger.State
	live     progress.Writer // nil: plain lines
	trackers map[archive.Key]*progress.Tracker
}

func newProgress(out io.Writer) *progressView {
	p := &progressView{out: out, began: time.Now(), seen: map[archive.Key]ledger.State{}, trackers: map[archive.Key]*progress.Tracker{}}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		w := progress.NewWriter()
		w.SetOutputWriter(out)
		w.SetAutoStop(false)
		w.SetMessageLength(44)
		w.SetTrackerLength(20)
		w.Style().Visibility.Percentage = false
		w.Style().Visibility.Value = false
		w.Style().Visibility.Speed = false
		w.SetTrackerPosition(progress.PositionRight)
		o := &w.Style().Options
		o.DoneString, o.ErrorString, o.Separator = "", "", " "
		o.TimeDonePrecision, o.TimeInProgressPrecision = 100*time.Millisecond, 100*time.Millisecond
		w.SetUpdateFrequency(150 * time.Millisecond)
		p.live = w
		go w.Render() // ends with Stop, which end waits for
	}
	return p
}

// progressSteps is how far along each state is, of six.
var progressSteps = map[ledger.State]int64{
	ledger.Discovered: 1, ledger.Packaged: 2, ledger.Registering: 2, ledger.Registered: 3, ledger.Sending: 4, ledger.Uploaded: 5, ledger.Unclear: 5,
}

func (p *progressView) showEntry(e ledger.Entry) {
	if was, known := p.seen[e.Key]; known && was == e.State {
		return
	}
	p.seen[e.Key] = e.State
	if p.live == nil {
		fmt.Fprintf(p.out, "%5.1f s  %-18s %s\n", time.Since(p.began).Seconds(), sanitize.Text(e.Folder), e.State)
		return
	}
	t := p.trackers[e.Key]
	if t == nil {
		t = &progress.Tracker{Total: 6}
		p.trackers[e.Key] = t
		p.live.AppendTracker(t)
	}
	t.UpdateMessage(fmt.Sprintf("%-18s %s", sanitize.Text(e.Folder), e.State))
	switch {
	case e.State == ledger.Archived || e.State == ledger.Delivered:
		t.SetValue(6)
		t.MarkAsDone()
	case e.State.IsFinal() || e.State == ledger.Quarantined:
		t.MarkAsErrored()
	default:
		t.SetValue(progressSteps[e.State])
	}
}

func (p *progressView) stop() {
	if p.live == nil {
		return
	}
	p.live.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for p.live.IsRenderInProgress() { // the library offers no other way to wait for its last frame
		<-tick.C
	}
}
