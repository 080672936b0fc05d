package books

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
)

// seam is how far the end of one extract and the start of the next may lie apart: one service writes 23:59:59 and 00:00:00, another the same
// time twice. That they meet at all is an assumption about the service.
const seam = time.Minute

// Coverage says for which days the extracts tell what was booked.
type Coverage struct {
	From     Day          `json:"from"` // what is asked for
	To       Day          `json:"to"`
	Extracts int          `json:"extracts"` // that were read
	Records  int          `json:"records"`  // of the table, in all of them
	Until    *time.Time   `json:"until"`    // up to when every series of extracts tells; null: nothing is covered
	Holes    []Hole       `json:"holes"`
	Changes  []Definition `json:"definitionChanges"`
	NoKey    int          `json:"recordsWithoutKey"` // they cannot be counted
}

// Hole is a time for which no extract tells what was booked.
type Hole struct {
	Name  string    `json:"name"` // of the series of extracts, as the service calls its configuration
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	First Day       `json:"firstDay"`
	Last  Day       `json:"lastDay"`
	AtEnd bool      `json:"atEnd"` // the extracts end here; the next ones may tell

	isOneOfSeveral bool // there are other series
	hasOthers      bool // deltas of other data sets are of this time
}

// Series names the series of extracts that has the hole; empty: there is only one.
func (h Hole) Series() string {
	if !h.isOneOfSeveral {
		return ""
	}
	return h.Name
}

// String says what is not known, and what to do.
func (h Hole) String() string {
	days, then := h.First.String(), "that day"
	if h.Last != h.First {
		days, then = days+" to "+h.Last.String(), "then"
	}
	series := ""
	if name := h.Series(); name != "" {
		series = " of " + name
	}
	if h.AtEnd {
		return fmt.Sprintf("The extracts%s end before %s: what was booked since is not known yet.", series, days)
	}
	text := fmt.Sprintf("No delta%s covers %s: what was booked %s is not known. Ask the provider.", series, days, then)
	if h.hasOthers {
		text += " The deltas of that time have no table of the data set."
	}
	return text
}

// Definition is a change of the table's columns, or a definition that cannot be
// read. It is told and stops nothing: columns are read by name.
type Definition struct {
	Extract string   `json:"extract"` // the first one with the new columns
	Day     Day      `json:"day"`
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Unread  string   `json:"unread"` // why there is none that can be read; empty: there is
}

// String names the columns.
func (d Definition) String() string {
	if d.Unread != "" {
		return fmt.Sprintf("Extract %s has no table definition that can be read: %s. Its records were read by the names of their columns.", d.Extract, d.Unread)
	}
	var parts []string
	if len(d.Added) > 0 {
		parts = append(parts, "added "+strings.Join(d.Added, ", "))
	}
	if len(d.Removed) > 0 {
		parts = append(parts, "removed "+strings.Join(d.Removed, ", "))
	}
	return fmt.Sprintf("The table definition changed on %s (extract %s): %s.", d.Day, d.Extract, strings.Join(parts, "; "))
}

// span is what one extract tells about.
type span struct {
	id, name, kind   string
	start, end, made time.Time // zero: not told
	has              content
	columns, unread  string
	records, noKey   int
}

func (b *Books) listSpans(ctx context.Context, q querier) (all []span, err error) {
	rows, err := q.QueryContext(ctx, "SELECT id, name, type, start_at, end_at, made_at, has, records, no_key, columns, unread FROM extract ORDER BY end_at, made_at, id")
	if err != nil {
		return nil, err
	}
	defer rows.Close() // it is only read
	for rows.Next() {
		var s span
		var start, end, made int64
		if err := rows.Scan(&s.id, &s.name, &s.kind, &start, &end, &made, &s.has, &s.records, &s.noKey, &s.columns, &s.unread); err != nil {
			return nil, err
		}
		s.start, s.end, s.made = timeOf(start), timeOf(end), timeOf(made)
		if s.start.Equal(s.end) && !s.end.IsZero() { // a day alone, which means all of it
			s.end = s.end.AddDate(0, 0, 1)
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// isTimed reports whether it is known what time the extract tells about. An initial one without a start tells of all that was before its end.
func (s span) isTimed() bool {
	return !s.end.IsZero() && (!s.start.IsZero() || s.kind == archive.InitialExtract)
}

// listUntimed returns a problem for each extract of which it is not known what time it tells about.
func listUntimed(spans []span) (all []Problem) {
	for _, s := range spans {
		if !s.isTimed() {
			all = append(all, Problem{s.id, "the service did not say what time it tells about, or not in a form that is known: its records count, and it covers no day"})
		}
	}
	return all
}

func timeOf(seconds int64) time.Time {
	if seconds == 0 {
		return time.Time{}
	}
	return time.Unix(seconds, 0).UTC()
}

// cover says what the extracts tell since a day. A delta tells about the data
// set whose tables it has, and those of one name are a series, which must be
// whole. Initial extracts and those of chosen days help every series, as far as
// they have a table of the data set. A hole counts wherever it is, because an
// invoice of the days that are asked for may have been booked long after them;
// and the extracts must reach the end of those days.
func cover(spans []span, since, from, to Day, now time.Time, loc *time.Location) Coverage {
	c := Coverage{From: from, To: to, Holes: []Hole{}, Changes: listChanges(spans, loc)}
	series := map[string][]span{}
	var common []span
	for _, s := range spans {
		c.Extracts++
		c.Records += s.records
		c.NoKey += s.noKey
		switch {
		case !s.isTimed():
		case s.kind == archive.DeltaExtract && (s.has == ownTables || s.has == noTable && isOfOneDataSet(spans, s.name)):
			series[s.name] = append(series[s.name], s)
		case s.kind != archive.DeltaExtract && s.has == ownTables:
			common = append(common, s)
		}
	}
	if len(series) == 0 {
		series[""] = nil
	}
	begin, end := min(since, from).time(loc), to.next().time(loc)
	if now.Before(end) {
		end = now
	}
	var until time.Time
	for name, own := range series {
		holes, reached := findHoles(slices.Concat(common, own), begin, end)
		for i := range holes {
			holes[i].Name, holes[i].isOneOfSeveral = name, len(series) > 1
			holes[i].nameDays(loc)
			holes[i].hasOthers = slices.ContainsFunc(spans, func(s span) bool {
				return s.kind == archive.DeltaExtract && s.has != ownTables && s.start.Before(holes[i].End) && s.end.After(holes[i].Start)
			})
		}
		c.Holes = append(c.Holes, holes...)
		if until.IsZero() || reached.Before(until) {
			until = reached
		}
	}
	if until.After(begin) {
		c.Until = &until
	}
	slices.SortFunc(c.Holes, func(a, b Hole) int { return cmp.Or(a.Start.Compare(b.Start), strings.Compare(a.Name, b.Name)) })
	return c
}

// isOfOneDataSet reports whether all deltas of a name that have tables have one
// of the data set. Then a delta of a day on which nothing changed, which has
// none, is of it too. If the name has deltas of other data sets as well, no one
// can say of which one it is.
func isOfOneDataSet(spans []span, name string) (is bool) {
	for _, s := range spans {
		if s.kind != archive.DeltaExtract || s.name != name || s.has == noTable {
			continue
		}
		if is = s.has == ownTables; !is {
			return false
		}
	}
	return is
}

// findHoles returns the times since begin that no span covers: those between two spans, and the rest up to end. It also returns up to when
// the last span reaches.
func findHoles(spans []span, begin, end time.Time) (holes []Hole, reached time.Time) {
	slices.SortFunc(spans, func(a, b span) int { return a.start.Compare(b.start) })
	reached = begin
	for _, s := range spans {
		if s.start.After(reached.Add(seam)) {
			holes = append(holes, Hole{Start: reached, End: s.start})
		}
		if s.end.After(reached) {
			reached = s.end
		}
	}
	if reached.Add(seam).Before(end) {
		holes = append(holes, Hole{Start: reached, End: end, AtEnd: true})
	}
	return holes, reached
}

// nameDays finds the days that the hole touches. Bounds at midnight in UTC are days as the service counts them.
func (h *Hole) nameDays(loc *time.Location) {
	if isMidnight(h.Start) && isMidnight(h.End) {
		loc = time.UTC
	}
	h.First, h.Last = dayOf(h.Start, loc), dayOf(h.End.Add(-time.Second), loc)
}

func isMidnight(t time.Time) bool { return t.Unix()%(24*60*60) == 0 }

// listChanges compares the columns of each extract with those of the one before.
func listChanges(spans []span, loc *time.Location) []Definition {
	changes := []Definition{}
	bySeen := slices.Clone(spans)
	slices.SortStableFunc(bySeen, func(a, b span) int { return a.made.Compare(b.made) })
	before := ""
	for _, s := range bySeen {
		if s.unread != "" {
			changes = append(changes, Definition{Extract: s.id, Day: dayOf(s.made, loc), Added: []string{}, Removed: []string{}, Unread: s.unread})
		}
		if s.columns == "" {
			continue
		}
		if before != "" && s.columns != before {
			was, is := strings.Split(before, "\n"), strings.Split(s.columns, "\n")
			changes = append(changes, Definition{Extract: s.id, Day: dayOf(s.made, loc), Added: lacking(is, was), Removed: lacking(was, is)})
		}
		before = s.columns
	}
	return changes
}

// lacking returns what of the first list the second one lacks.
func lacking(list, in []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(in, s) })
}
