package main

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/config"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// order is what a list is sorted by.
type order int

const (
	bySeen order = iota
	byArchived
	byFolder
	byDrop
	byState
	bySize
)

var orderNames = []string{"seen", "archived", "folder", "drop", "state", "size"}

func parseOrder(name string) (order, error) {
	i := slices.Index(orderNames, strings.ToLower(name))
	if i < 0 {
		return 0, usageError{fmt.Errorf("--sort %q is no order; known are %s", name, strings.Join(orderNames, ", "))}
	}
	return order(i), nil
}

// sortedAtOnce bounds what a sorted list holds in memory, some 200 bytes for each.
const sortedAtOnce = 100_000

// rank is the position of an entry in a sorted list.
type rank struct {
	none   bool   // it has no value to sort by: it comes last
	number int64  // the value, or
	text   string // the value
	key    archive.Key
}

func (o order) rank(e ledger.Entry) rank {
	p := rank{key: e.Key}
	switch o {
	case byArchived:
		p.none, p.number = e.ArchivedAt.IsZero(), -e.ArchivedAt.UnixNano()
	case byFolder:
		p.text = strings.ToLower(e.Folder)
	case byDrop:
		p.text = strings.ToLower(e.Drop)
	case byState:
		p.number = int64(e.State)
	case bySize:
		p.none, p.number = e.Package.IsZero(), -e.Package.Size
	}
	if p.none {
		p.number = 0
	}
	return p
}

// compare orders two ranks. Two entries never have the same rank.
func (p rank) compare(q rank, reverse bool) int {
	if p.none != q.none {
		return map[bool]int{true: 1, false: -1}[p.none]
	}
	c := cmp.Or(cmp.Compare(p.number, q.number), cmp.Compare(p.text, q.text), slices.Compare(q.key[:], p.key[:]))
	if reverse {
		return -c
	}
	return c
}

// firstRanks keeps the first so many ranks behind a given one. Its top is the last of them.
type firstRanks struct {
	reverse bool
	all     []rank
}

func (h *firstRanks) Len() int           { return len(h.all) }
func (h *firstRanks) Less(i, j int) bool { return h.all[i].compare(h.all[j], h.reverse) > 0 }
func (h *firstRanks) Swap(i, j int)      { h.all[i], h.all[j] = h.all[j], h.all[i] }
func (h *firstRanks) Push(p any)         { h.all = append(h.all, p.(rank)) } //nolint:forcetypeassert // container/heap gives back what it got
func (h *firstRanks) Pop() any {
	last := h.all[len(h.all)-1]
	h.all = h.all[:len(h.all)-1]
	return last
}

func (h *firstRanks) add(p rank, most int) {
	switch {
	case len(h.all) < most:
		heap.Push(h, p)
	case p.compare(h.all[0], h.reverse) < 0:
		h.all[0] = p
		heap.Fix(h, 0)
	}
}

// walkSorted is walkList in another order than that of the ledger. It reads the ledger once for each part of at most
// sortedAtOnce lines, so that memory stays bounded. An entry that changes meanwhile is shown as it is when its line is
// written; between two parts of a very long list it may be shown twice or not at all.
func (v view) walkSorted(ctx context.Context, f listFilter, fn func(e ledger.Entry, d present.Details) error) (more bool, err error) {
	var behind *rank // where the part before ended
	for n := 0; ; {
		most := sortedAtOnce
		if f.limit > 0 {
			most = min(most, f.limit-n+1) // one more than is told: it says that the limit left some out
		}
		part, err := v.sortedPart(ctx, f, behind, most)
		if err != nil {
			return false, err
		}
		for _, p := range part {
			if f.limit > 0 && n == f.limit {
				return true, nil
			}
			n++
			if err := v.readRanked(p.key, fn); err != nil {
				return false, err
			}
		}
		if len(part) < most {
			return false, nil
		}
		behind = &part[len(part)-1]
	}
}

// sortedPart gives the first ranks behind one, at most so many, in order.
func (v view) sortedPart(ctx context.Context, f listFilter, behind *rank, most int) ([]rank, error) {
	h := &firstRanks{reverse: f.reverse}
	err := v.ledger.EntriesNewestFirst(func(e ledger.Entry) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if p := f.by.rank(e); f.selects(e) && (behind == nil || p.compare(*behind, f.reverse) > 0) {
			h.add(p, most)
		}
		return nil
	})
	slices.SortFunc(h.all, func(p, q rank) int { return p.compare(q, f.reverse) })
	return h.all, err
}

func (v view) readRanked(key archive.Key, fn func(e ledger.Entry, d present.Details) error) error {
	e, ok, err := v.ledger.Entry(key)
	if err != nil || !ok {
		return err
	}
	d, err := present.ReadDetails(v.ledger, e, v.Location)
	if err != nil {
		return err
	}
	return fn(e, d)
}

// setTimeBounds sets the bounds of time from what a person wrote.
func (f *listFilter) setTimeBounds(c present.Clock, since, until string) (err error) {
	if f.since, err = parseTime(c, since, false); err != nil {
		return usageError{fmt.Errorf("--since: %w", err)}
	}
	if f.until, err = parseTime(c, until, true); err != nil {
		return usageError{fmt.Errorf("--until: %w", err)}
	}
	return nil
}

// parseTime reads a day, a day with a time, RFC 3339, or how long ago; an empty text is no time. endOfDay gives the end of
// a day instead of its beginning.
func parseTime(c present.Clock, text string, endOfDay bool) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if ago, err := config.ParseDuration(text); err == nil {
		return c.Now.Add(-ago), nil
	}
	if t, err := time.ParseInLocation(time.DateOnly, text, c.Location); err == nil {
		if endOfDay {
			t = t.AddDate(0, 0, 1)
		}
		return t, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateTime, "2006-01-02 15:04", "2006-01-02T15:04:05", "2006-01-02T15:04"} {
		if t, err := time.ParseInLocation(layout, text, c.Location); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf(`%q is no time; write a day (2026-11-20), a time ("2026-11-20 14:30", 2026-11-20T13:30:00Z) or how long ago (24h, 7d)`, text)
}
