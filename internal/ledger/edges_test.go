package ledger

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// edge is one way an event leads: from a state and source to the next.
type edge struct {
	event        string                // as in journal lines
	status       archive.ServiceStatus // of the service, where event is status-seen
	from, to     State
	source, then Source // NoSource for both: the source is not touched, wherever it lies
}

// stand is where an entry and its source are.
type stand struct {
	state  State
	source Source
}

// exploreEdges applies every event of the tables to every entry of the tables, in each stand that an edge leads to, and returns the edges
// that Transition made, in the order of the events in the tables.
func exploreEdges() []edge {
	seen := map[edge]bool{}
	stands := []stand{{}}
	apply := func(e Entry, ev Event) {
		if e.State == Unclear && (e.Package.IsZero() || slices.ContainsFunc(e.Registrations, func(r Registration) bool { return r.Fate == Succeeded })) {
			return // no entry in doubt looks like this
		}
		next, err := Transition(e, ev, at(0))
		if err != nil {
			return
		}
		seen[edgeOf(e, ev, next)] = true
		if to := (stand{next.State, next.Source}); !slices.Contains(stands, to) {
			stands = append(stands, to)
		}
	}
	for i := 0; i < len(stands); i++ {
		exploreStand(stands[i], apply)
	}
	return inOrder(seen)
}

// exploreStand applies every event to the entries of the tables that are in one place.
func exploreStand(p stand, apply func(Entry, Event)) {
	for _, r := range stateTable {
		e := usual(p.state)
		e.Source = p.source
		if r.with != nil {
			r.with(&e)
		}
		apply(e, r.ev)
		if p.state == None {
			continue
		}
		orphan(Lapsed)(&e) // any history may stand behind it, heard of in any word
		apply(e, r.ev)
		for w := archive.Unfamiliar; w <= archive.Absent; w++ {
			apply(e, answer(w, "old"))
		}
	}
	for _, r := range sourceTable {
		e := usual(p.state)
		ripe(&e)
		e.Source = p.source
		doubted, halfway := e, e
		doubted.NeedsReconcile, halfway.Contradicted = true, p.state == Archived
		apply(e, r.ev)
		apply(doubted, r.ev)
		apply(halfway, r.ev)
	}
}

// edgeOf returns the edge that an event made.
func edgeOf(before Entry, ev Event, after Entry) edge {
	m := edge{event: ev.JournalName(), from: before.State, to: after.State, source: before.Source, then: after.Source}
	if answer, ok := ev.(StatusSeen); ok {
		m.status = answer.Receipt.Status
	}
	return m
}

// inOrder drops the source of a edge that leaves it where it lies, unless the event is about the source, and sorts.
func inOrder(seen map[edge]bool) []edge {
	aboutSource := map[string]bool{}
	for m := range seen {
		if m.source != m.then && m.event != (Closed{}).JournalName() { // closed ends a disposal, and else leaves the source alone
			aboutSource[m.event] = true
		}
	}
	var all []edge
	for m := range seen {
		if m.source == m.then && !aboutSource[m.event] {
			m.source, m.then = NoSource, NoSource
		}
		if !slices.Contains(all, m) {
			all = append(all, m)
		}
	}
	var events []string
	for _, ev := range samples() {
		events = append(events, ev.JournalName())
	}
	slices.SortFunc(all, func(a, b edge) int {
		return cmp.Or(cmp.Compare(min(a.source, 1), min(b.source, 1)), cmp.Compare(slices.Index(events, a.event), slices.Index(events, b.event)),
			cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.status, b.status), cmp.Compare(a.source, b.source), cmp.Compare(a.then, b.then))
	})
	return all
}

// edgesText is the file that package proof holds journals against.
func edgesText() string {
	var b strings.Builder
	b.WriteString("# Where each event of the journal may lead: event, the service's status, state, next state, source, next source.\n" +
		"# \"none none\" at the end: the source stays where it is, wherever that is.\n" +
		"# Generated from internal/ledger: go test ./internal/ledger -run StatesPage -update\n")
	for _, m := range exploreEdges() {
		status := "-"
		if m.event == (StatusSeen{}).JournalName() {
			status = m.status.String()
		}
		fmt.Fprintln(&b, m.event, status, m.from, m.to, m.source, m.then)
	}
	return b.String()
}

// lies returns where the source may be in a state.
func lies(s State) []Source {
	switch s {
	case None:
		return nil
	case Archived, Delivered:
		return []Source{Claimed, Keeping, Kept, Disposing, Moved, Gone}
	case Rejected, Duplicate:
		return []Source{Claimed, Returning, Returned}
	}
	return []Source{Claimed}
}

// Each edge that an event makes, in whatever order events come, is one of those that a journal is held against.
func TestTransition_I1_EveryEdgeIsListed(t *testing.T) {
	listed := map[edge]bool{}
	for _, m := range exploreEdges() {
		listed[m] = true
	}
	made := map[edge]bool{}
	for seed := range uint64(60) {
		walk(rand.New(rand.NewPCG(seed, 3)), 2000, func(before Entry, ev Event, after Entry, err error) {
			if err != nil {
				return
			}
			m := edgeOf(before, ev, after)
			anywhere := m
			anywhere.source, anywhere.then = NoSource, NoSource
			if made[m] = true; !listed[m] && !(before.Source == after.Source && listed[anywhere]) {
				t.Fatalf("seed %d: %s %s leads from %s/%s to %s/%s, which is not listed", seed, m.event, m.status, m.from, m.source, m.to, m.then)
			}
		})
	}
	kit.Check(t, len(made) > 200, "edges made = %d, want more than 200", len(made))
}
