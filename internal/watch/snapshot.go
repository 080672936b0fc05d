package watch

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is the state of a watcher for the pages that people read.
type Snapshot struct {
	Mode       Mode   // OpenEvents or Poll; empty before the first rescan
	ModeReason string // why this mode
	Paused     *Pause // nil: running
	LastRescan time.Time
	Observed   int // folders under observation, those about to be taken included
	NotTaken   []NotTakenGroup
}

// Pause says why a drop folder is not looked at, and since when. It is an error so that it can be reported as one.
type Pause struct {
	Kind  PauseKind
	Since time.Time
	Err   error
}

// PauseKind is the class of a Pause.
type PauseKind string

// Vanished: the path is not there or cannot be read. Replaced: another folder lies there. Refused: Config.Check said no.
const (
	Vanished PauseKind = "vanished"
	Replaced PauseKind = "replaced"
	Refused  PauseKind = "refused"
)

func (p *Pause) Error() string {
	return "drop folder paused (" + string(p.Kind) + "): " + p.Err.Error()
}
func (p *Pause) Unwrap() error { return p.Err }

// NotTakenGroup is all that is not taken for one reason.
type NotTakenGroup struct {
	Reason Reason
	Count  int
	Items  []NotTakenItem // the longest waiting, at most 1,000
}

// NotTakenItem is one thing that is not taken.
type NotTakenItem struct {
	Name        string
	FirstSeen   time.Time // first seen
	LastChanged time.Time // when a look last saw a change; zero: not under observation
	Detail      string    // more words, may be empty
}

// sampled is how many names are kept for one reason: enough for a page and for the ledger, however many there are.
const maxItems = 1000

// notTakenCounts counts what is not under observation, by reason.
type notTakenCounts map[Reason]*NotTakenGroup

func (t notTakenCounts) add(r Reason, name string, since time.Time, detail error) {
	w := t[r]
	if w == nil {
		w = &NotTakenGroup{Reason: r}
		t[r] = w
	}
	w.Count++
	if len(w.Items) < maxItems {
		w.Items = append(w.Items, NotTakenItem{Name: name, FirstSeen: since, Detail: errorText(detail)})
	}
}

// hasRoom tells whether add would still keep a name.
func (t notTakenCounts) hasRoom(r Reason) bool {
	w := t[r]
	return w == nil || len(w.Items) < maxItems
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// notTaken joins what is under observation with what the last listing counted.
func (b *scheduler) notTaken() []NotTakenGroup {
	all := map[Reason]*NotTakenGroup{}
	for r, w := range b.counts {
		all[r] = &NotTakenGroup{Reason: r, Count: w.Count, Items: slices.Clone(w.Items)}
	}
	for _, s := range b.candidates {
		if (s.isBeingTaken || s.isReady) && s.refusals == 0 || s.reason == "" {
			continue
		}
		w := all[s.reason]
		if w == nil {
			w = &NotTakenGroup{Reason: s.reason}
			all[s.reason] = w
		}
		w.Count++
		detail := errorText(s.detail)
		if s.reason == Temporary {
			detail = s.Scan.Temporary
		}
		w.Items = append(w.Items, NotTakenItem{Name: s.Name, FirstSeen: s.FirstSeen, LastChanged: s.unchangedSince, Detail: detail})
		if len(w.Items) >= 10*maxItems {
			w.keepLongest()
		}
	}
	var list []NotTakenGroup
	for _, w := range all {
		w.keepLongest()
		list = append(list, *w)
	}
	slices.SortFunc(list, func(a, b NotTakenGroup) int { return cmp.Compare(a.Reason, b.Reason) })
	return list
}

// keepLongest keeps the names that wait longest, in that order.
func (w *NotTakenGroup) keepLongest() {
	slices.SortFunc(w.Items, func(a, b NotTakenItem) int {
		return cmp.Or(a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Name, b.Name))
	})
	if len(w.Items) > maxItems {
		clear(w.Items[maxItems:])
		w.Items = w.Items[:maxItems]
	}
}
