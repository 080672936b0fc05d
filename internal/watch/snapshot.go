package watch

import (
	"cmp"
	"slices"
	"time"
)

// Snapshot is the state of a watcher, for the pages that people read.
type Snapshot struct {
	Mode       Mode   // Events or Poll; empty before the first rescan
	ModeReason string // why this mode
	Paused     *Pause // nil: running
	LastRescan time.Time
	Observed   int // folders under observation, those about to be taken included
	Taking     int // about to be taken, or being taken just now
	NotTaken   []NotTakenGroup
	Ignored    []NotTakenGroup // what is left alone for its name, by whose rule: IgnoredByRule, IgnoredBySystem
}

// Pause says why the drop folder is not looked at, and since when. It is an error, so it can be reported as one.
type Pause struct {
	Kind  PauseKind
	Since time.Time
	Err   error
}

// PauseKind is the class of a Pause.
type PauseKind string

// Vanished: the path is not there or cannot be read. Replaced: another folder lies there. Refused: Config.CheckDropFolder said no.
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
	Items  []NotTakenItem // those that wait longest, at most 1,000
}

// NotTakenItem is one thing that is not taken.
type NotTakenItem struct {
	Name        string
	FirstSeen   time.Time
	LastChanged time.Time // when a scan last saw a change; zero: not under observation
	Detail      string    // more about the reason; may be empty
}

// maxItems is how many names are kept for one reason: enough for a page and for the ledger.
const maxItems = 1000

// notTakenCounts counts, by reason, what is not under observation.
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

// clone returns a copy that shares nothing.
func (t notTakenCounts) clone() notTakenCounts {
	all := notTakenCounts{}
	for reason, group := range t {
		all[reason] = &NotTakenGroup{Reason: reason, Count: group.Count, Items: slices.Clone(group.Items)}
	}
	return all
}

// hasRoom reports whether add would still keep a name.
func (t notTakenCounts) hasRoom(r Reason) bool {
	group := t[r]
	return group == nil || len(group.Items) < maxItems
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// countTaking counts the candidates that are about to be taken, or are being taken.
func (s *scheduler) countTaking() (n int) {
	for _, c := range s.candidates {
		if c.isReady || c.isBeingTaken {
			n++
		}
	}
	return n
}

// notTaken joins the candidates that cannot be taken with the counts of the last rescan.
func (s *scheduler) notTaken() []NotTakenGroup {
	all := s.counts.clone()
	for _, c := range s.candidates {
		// A folder that was refused before stays in the list while it is tried again.
		if (c.isBeingTaken || c.isReady) && c.refusals == 0 || c.reason == "" {
			continue
		}
		group := all[c.reason]
		if group == nil {
			group = &NotTakenGroup{Reason: c.reason}
			all[c.reason] = group
		}
		group.Count++
		detail := errorText(c.detail)
		group.Items = append(group.Items, NotTakenItem{Name: c.Name, FirstSeen: c.FirstSeen, LastChanged: c.unchangedSince, Detail: detail})
		if len(group.Items) >= 10*maxItems {
			group.keepLongest()
		}
	}
	return all.sorted()
}

// sorted returns the groups in the order of their reasons.
func (t notTakenCounts) sorted() (list []NotTakenGroup) {
	for _, group := range t {
		group.keepLongest()
		list = append(list, *group)
	}
	slices.SortFunc(list, func(a, b NotTakenGroup) int { return cmp.Compare(a.Reason, b.Reason) })
	return list
}

// keepLongest sorts the items, the longest waiting first, and keeps the first maxItems.
func (w *NotTakenGroup) keepLongest() {
	slices.SortFunc(w.Items, func(a, b NotTakenItem) int {
		return cmp.Or(a.FirstSeen.Compare(b.FirstSeen), cmp.Compare(a.Name, b.Name))
	})
	if len(w.Items) > maxItems {
		clear(w.Items[maxItems:])
		w.Items = w.Items[:maxItems]
	}
}
