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
	"unicode"

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
