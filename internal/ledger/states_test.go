package ledger

import (
	"bytes"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

var update = flag.Bool("update", false, "write docs/states.md and internal/proof/edges.txt anew")

// TestStatesPage holds the picture for people and the list for package proof against what Transition does, in both
// directions: an edge that Transition gained or lost is a difference. With -update it writes both files anew.
func TestStatesPage(t *testing.T) {
	for name, want := range map[string][]byte{"../../docs/states.md": renderStates(t), "../proof/edges.txt": edgesText()} {
		if *update {
			kit.Must(t, os.WriteFile(name, want, 0o644))
		}
		have, err := os.ReadFile(name)
		kit.Must(t, err)
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not what the code says; run: go test ./internal/ledger -run StatesPage -update", name)
		}
	}
}

// crowd is from how many states an event must lead to the same place to be told in
// words: drawn, it would cross every other arrow.
const crowd = 6

func renderStates(t *testing.T) []byte {
	said := comments(t)
	states, source := split(exploreEdges())
	drawn, told := uncrowd(states)
	var b bytes.Buffer
	fmt.Fprint(&b, `# States of an invoice

<!-- Generated from internal/ledger: go test ./internal/ledger -run StatesPage -update -->

Every folder that was claimed has an entry in the ledger, and every entry is in exactly one state. A state says what is
certain; retries, waits and holds are fields beside it. What happens to the folder itself is a second state, its source.
An arrow is an event, named as in the journal. An event that ends in "intended" is committed before the act that it announces.
A restart that finds one knows that the act may have happened, and goes on with the same step.

`)
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	begun := func(a edge) bool { return a.event == (Recovered{}).JournalName() } // told in words
	draw(&b, slices.DeleteFunc(slices.Clone(drawn), begun), func(a edge) (string, string) { return a.from.String(), a.to.String() })
	for _, s := range States() {
		if s.IsFinal() {
			fmt.Fprintf(&b, "    %s --> [*]\n", s)
		}
	}
	b.WriteString("```\n\nNot drawn, because they lead there from nearly everywhere:\n\n")
	for _, l := range told {
		b.WriteString(l)
	}
	b.WriteString("\n| state | what is certain | next step | events that change it | events that do not |\n|---|---|---|---|---|\n")
	for _, s := range States() {
		fmt.Fprintf(&b, "| **%s** | %s | %s | %s | %s |\n", s, said[identifier(s.String())], next(s, said), leaving(states, s), staying(states, s))
	}
	fmt.Fprintf(&b, `
%s, %s, %s, %s and %s may happen in every state in which they mean anything. Only a person causes held, unheld, closed
and released. What the service says after the end changes no final state: a contradiction is flagged, and stops the disposal
until a person closes it; a disposal that had begun ends there, and what is left of the folder stays.

## When the ledger was put back

A ledger that was restored, rebuilt or found older than its outside head does not know what was done since. It is in safe
mode, and every entry that is not at rest must be reconciled: the event is doubted, the flag needs-reconcile. Such an entry is sealed,
so that it has its identity, and asked about; nothing of it is registered, sent, moved or removed, whatever its state. An
address in the copy is thrown away, and its registration counts as one that may hold content: unclear.

The event registration-found adds a registration that the service knows and the entry does not; the service's answers about it
decide as always. The event source-found says where the folder lies by now. An entry that the ledger lost begins as recovered,
from its receipt, the archive's index, or a returned folder. When the service was asked in a way that shows every
registration, the flag goes: reconciled.

## What happens to the folder

`, wordOf(stateEvents, 0), wordOf(stateEvents, 1), wordOf(stateEvents, 2), wordOf(stateEvents, 3), wordOf(stateEvents, 4))
	b.WriteString("```mermaid\nstateDiagram-v2\n    [*] --> claimed: claimed\n")
	lost := func(a edge) bool {
		return a.event == (SourceFound{}).JournalName() || a.event == (Recovered{}).JournalName()
	} // told in words
	draw(&b, slices.DeleteFunc(slices.Clone(source), lost), func(a edge) (string, string) { return a.source.String(), a.then.String() })
	b.WriteString("```\n\n| source | where it lies | in state | next step |\n|---|---|---|---|\n")
	for src := Claimed; src <= Gone; src++ {
		fmt.Fprintf(&b, "| **%s** | %s | %s | %s |\n", src, said[identifier(src.String())], homes(src), placing(src, said))
	}
	return b.Bytes()
}

var stateEvents = []string{Postponed{}.JournalName(), Held{}.JournalName(), Unheld{}.JournalName(), ReconcileRequired{}.JournalName(), Reconciled{}.JournalName()}

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
func uncrowd(states []edge) (drawn []edge, told []string) {
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
			told = append(told, fmt.Sprintf("- %s → **%s**, from %s\n", g.label, g.to, strings.Join(from[g], ", ")))
		}
	}
	return drawn, told
}

// draw writes one line for each pair of places, with all events between them.
func draw(b *bytes.Buffer, as []edge, ends func(edge) (string, string)) {
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

func leaving(as []edge, s State) string {
	var order []State
	by := map[State][]string{}
	for _, a := range as {
		if a.from != s || a.to == s {
			continue
		}
		if by[a.to] == nil {
			order = append(order, a.to)
		}
		by[a.to] = append(by[a.to], label(a))
	}
	var out []string
	for _, to := range order {
		out = append(out, fmt.Sprintf("%s → %s", strings.Join(by[to], ", "), to))
	}
	return orDash(strings.Join(out, "; "))
}

func staying(as []edge, s State) string {
	var out, words []string
	for _, a := range as {
		switch {
		case a.from != s || a.to != s || slices.Contains(stateEvents, a.event):
		case a.event == (StatusSeen{}).JournalName():
			words = append(words, a.status.String())
		default:
			out = append(out, a.event)
		}
	}
	switch all := int(archive.Absent) + 1; {
	case len(words) == all:
		out = append(out, "whatever the service says")
	case len(words) > 0:
		out = append(out, "service says "+strings.Join(words, ", "))
	}
	return orDash(strings.Join(out, ", "))
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

func orDash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

func identifier(word string) string {
	return string(unicode.ToUpper(rune(word[0]))) + word[1:]
}

// comments reads what the source says beside each state, source and step.
func comments(t *testing.T) map[string]string {
	t.Helper()
	said := map[string]string{}
	for _, name := range []string{"state.go", "transition.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		kit.Must(t, err)
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
		if said[identifier(s.String())] == "" {
			t.Errorf("state %s says nothing about itself", s)
		}
	}
	return said
}
