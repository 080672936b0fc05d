package ledger

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

var update = flag.Bool("update", false, "write the generated parts of docs/states.md and internal/proof/edges.txt again")

// The pictures and tables for people, and the list for package proof, are what
// Transition does: an edge that it gained or lost is a difference. With -update
// they are written again.
func TestStatesPage(t *testing.T) {
	const page = "../../docs/states.md"
	kit.Generated(t, page, "states", renderStates(t), *update)
	kit.Generated(t, page, "sources", renderSources(t), *update)
	kit.Generated(t, "../proof/edges.txt", "", edgesText(), *update)
}

// crowd is from how many states an event must lead to one place to be listed
// instead: drawn, it would cross every other arrow.
const crowd = 6

func renderStates(t *testing.T) string {
	said := comments(t)
	states, _ := split(exploreEdges())
	drawn, listed := uncrowd(states)
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	begun := func(a edge) bool { return a.event == (Recovered{}).JournalName() } // the page describes it
	draw(&b, slices.DeleteFunc(drawn, begun), func(a edge) (string, string) { return a.from.String(), a.to.String() })
	for _, s := range States() {
		if s.IsFinal() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n\nNot drawn, because they lead there from nearly everywhere:\n\n")
	for _, l := range listed {
		b.WriteString(l)
	}
	b.WriteString("\n| state | what is certain | next step |\n|---|---|---|\n")
	for _, s := range States() {
		fmt.Fprintf(&b, "| **%s** | %s | %s |\n", s, said[identifier(s.String())], next(s, said))
	}
	return b.String()
}

func renderSources(t *testing.T) string {
	said := comments(t)
	_, source := split(exploreEdges())
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> claimed: claimed\n")
	lost := func(a edge) bool { // the page describes it
		return a.event == (SourceFound{}).JournalName() || a.event == (Recovered{}).JournalName()
	}
	draw(&b, slices.DeleteFunc(source, lost), func(a edge) (string, string) { return a.source.String(), a.then.String() })
	b.WriteString("```\n\n| source | where it lies | in state | next step |\n|---|---|---|---|\n")
	for src := Claimed; src <= Gone; src++ {
		fmt.Fprintf(&b, "| **%s** | %s | %s | %s |\n", src, said[identifier(src.String())], homes(src), placing(src, said))
	}
	return b.String()
}

// label is how an arrow is written: the event and, where it is an answer, the word.
func label(a edge) string {
	if a.event == (StatusSeen{}).JournalName() {
		return "service says " + a.status.String()
	}
	return a.event
}

// split parts the arrows of states from those of sources.
func split(all []edge) (states, source []edge) {
	for _, a := range all {
		if a.source == NoSource {
			states = append(states, a)
			continue
		}
		source = append(source, a)
	}
	return states, source
}

// uncrowd takes out loops, and the events that lead from a crowd to one place.
func uncrowd(states []edge) (drawn []edge, listed []string) {
	type goal struct {
		label string
		to    State
	}
	from := map[goal][]string{}
	for _, a := range states {
		if a.from != a.to {
			from[goal{label(a), a.to}] = append(from[goal{label(a), a.to}], a.from.String())
		}
	}
	for _, a := range states {
		g := goal{label(a), a.to}
		switch {
		case a.from == a.to:
		case len(from[g]) < crowd:
			drawn = append(drawn, a)
		case from[g][0] == a.from.String():
			listed = append(listed, fmt.Sprintf("- %s → **%s**, from %s\n", g.label, g.to, strings.Join(from[g], ", ")))
		}
	}
	return drawn, listed
}

// draw writes one line for each pair of places, with all events between them.
func draw(b *strings.Builder, as []edge, ends func(edge) (string, string)) {
	var order []string
	events := map[string][]string{}
	for _, a := range as {
		from, to := ends(a)
		if from == None.String() {
			from = "[*]"
		}
		pair := from + " --> " + to
		switch {
		case from == to:
			continue
		case events[pair] == nil:
			order = append(order, pair)
		}
		if !slices.Contains(events[pair], label(a)) {
			events[pair] = append(events[pair], label(a))
		}
	}
	for _, pair := range order {
		fmt.Fprintf(b, "    %s: %s\n", pair, strings.Join(events[pair], ", "))
	}
}

func next(s State, said map[string]string) string {
	step, _, ok := Due(usual(s))
	if !ok {
		return "–"
	}
	return step.String() + ": " + said["Step"+identifier(step.String())]
}

func placing(src Source, said map[string]string) string {
	for _, s := range finals {
		if !slices.Contains(lies(s), src) {
			continue
		}
		e := usual(s)
		ripe(&e)
		e.Source, e.Registrations = src, nil
		if step, _, ok := Due(e); ok {
			return step.String() + ": " + said["Step"+identifier(step.String())]
		}
	}
	return "–"
}

func homes(src Source) string {
	var in []string
	for _, s := range States() {
		if slices.Contains(lies(s), src) {
			in = append(in, s.String())
		}
	}
	if len(in) == len(States()) {
		return "every one"
	}
	return strings.Join(in, ", ")
}

func identifier(word string) string {
	return string(unicode.ToUpper(rune(word[0]))) + word[1:]
}

// comments reads what the source says beside each state, source and step.
func comments(t *testing.T) map[string]string {
	t.Helper()
	said := map[string]string{}
	for _, name := range []string{"state.go", "transition.go"} {
		f := kit.Value(parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments))(t)
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && v.Comment != nil {
				key := v.Names[0].Name
				if name == "transition.go" {
					key = "Step" + key
				}
				said[key] = strings.ReplaceAll(strings.TrimSpace(v.Comment.Text()), "<key>", "‹key›")
			}
			return true
		})
	}
	for _, s := range States() {
		kit.Check(t, said[identifier(s.String())] != "",
			"the constant of state %s has no comment, want what is certain in it", s)
	}
	return said
}

// The reason why placing or removing a source failed ends once it succeeds. The
// reason of a rejection, and one for which an operator must act, stays.
func TestPlaced_I12_TheReasonOfATryEnds(t *testing.T) {
	at := archive.Instant{Wall: epoch}
	apply := func(t *testing.T, e Entry, evs ...Event) Entry {
		for _, ev := range evs {
			next, err := Transition(e, ev, at)
			if err != nil {
				t.Fatalf("%s: %v, want it to be legal", ev.JournalName(), err)
			}
			e = next
		}
		return e
	}
	away := Postponed{NotBefore: epoch.Add(time.Minute), Cause: Cause{Code: "drop-paused", Text: "the drop folder is not there"}}
	rejected := usual(Rejected)
	rejected.Cause = Cause{Code: "no-sidecar"}
	asked := usual(Archived)
	asked.Contradicted, asked.Cause = true, Cause{Code: "contradicted"}
	for name, row := range map[string]struct {
		e    Entry
		evs  []Event
		want string
	}{
		"Placed":       {usual(Archived), []Event{away, PlaceIntended{Dest: "_archived/x"}, Placed{}}, ""},
		"StillAway":    {usual(Archived), []Event{away}, "drop-paused"},
		"Rejected":     {rejected, []Event{away, PlaceIntended{Dest: "_rejected/x"}, Placed{}}, "no-sidecar"},
		"Contradicted": {asked, []Event{away, PlaceIntended{Dest: "_archived/x"}, Placed{}}, "contradicted"},
		"Disposed": {usual(Archived), []Event{PlaceIntended{Dest: "_archived/x"}, Placed{DisposeAt: epoch}, away,
			DisposeIntended{}, Disposed{}}, ""},
	} {
		kit.Want(t, name+": code of the cause", apply(t, row.e, row.evs...).Cause.Code, row.want)
	}
}

// UnnamedSince is by a clock that may be set: an item first seen in the future
// is handled without a wait of days.
func TestScan_I32_OverdueByAClockThatWasSet(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		since time.Time
		want  bool
	}{
		{now, false}, {now.Add(time.Second), false}, {now.Add(-30 * time.Minute), false}, {now.Add(-30*time.Minute - time.Second), true}, {now.Add(72 * time.Hour), true},
	} {
		s := Scan{Pending: []PendingItem{{Name: "a", Since: row.since, NeedsPerson: true}}, Unnamed: 5, UnnamedSince: row.since}
		named, more := s.OverdueItems(now, 30*time.Minute)
		kit.Check(t, len(named) == 1 == row.want && more == 5 == row.want, "since %s: %v and %d more", row.since, named, more)
	}
}

// Items that vaultd handles automatically need no attention, and unnamed ones
// count only next to those that do.
func TestScan_I26_NeedsPerson(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	old := now.Add(-time.Hour)
	s := Scan{Pending: []PendingItem{{Name: "queued", Since: old}}, Unnamed: 7, UnnamedSince: old}
	named, more := s.ItemsForPerson(now, time.Minute)
	kit.Check(t, len(named) == 0 && more == 0, "%v and %d more", named, more)
	s.Pending = append(s.Pending, PendingItem{Name: "loose", Since: old, NeedsPerson: true})
	named, more = s.ItemsForPerson(now, time.Minute)
	kit.Check(t, len(named) == 1 && more == 7 && s.CountPending() == 9, "%v and %d more", named, more)
}

// I3, I21: a package stays until its entry has ended and its folder is placed.
func TestEntry_I3_I21_NeedsPackage(t *testing.T) {
	for _, s := range States() {
		kit.Want(t, s.String()+", claimed", Entry{State: s, Source: Claimed}.NeedsPackage(), true)
		kit.Want(t, s.String()+", kept", Entry{State: s, Source: Kept}.NeedsPackage(), !s.IsFinal())
	}
}
