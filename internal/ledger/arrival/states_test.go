package arrival

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

var update = flag.Bool("update", false, "write the generated part of docs/arrivals.md and internal/proof/arrivaledges.txt again")

// edge is one way an event leads.
type edge struct {
	event    string
	from, to State
}

// exploreEdges applies every event to arrivals of every state, also to those that a list left out.
func exploreEdges(t *testing.T) (all []edge) {
	t.Helper()
	var worlds []Arrival
	for i := range len(life) + 1 {
		worlds = append(worlds, after(t, life[:i]...))
	}
	for i := range len(receivedLife) + 1 {
		worlds = append(worlds, after(t, receivedLife[:i]...))
	}
	worlds = append(worlds, after(t, life[0], LeftOut{}), after(t, life[0], life[1], LeftOut{}), after(t, life[0], Abandoned{By: &ledger.Operator{}}))
	lost := append(life[:len(life):len(life)], CustodyLost{}, DownloadIntended{"a"}, heldFile("a"), DownloadIntended{"b"}, heldFile("b"))
	worlds = append(worlds, after(t, lost...), after(t, append(lost, Abandoned{By: &ledger.Operator{}})...))
	for i := 1; i <= len(receivedLife); i++ {
		for _, word := range []Word{Accept, RejectTechnical} {
			if a, err := Transition(after(t, receivedLife[:i]...), WordIntended{Word: word}, at); err == nil {
				a.Said[0].Rev = 3 // as every() has it
				worlds = append(worlds, a)
			}
		}
	}
	worlds = append(worlds, after(t, append(receivedLife[:2:2], FileDoubted{File: "f1", Stored: "s", SHA256: sum})...))
	refused := after(t, receivedLife[0], Abandoned{By: &ledger.Operator{}})
	worlds = append(worlds, refused, after(t, receivedLife[0], Abandoned{By: &ledger.Operator{}}, WordIntended{Word: RejectTechnical}))
	for _, ev := range append(every(), WordAnswered{Intent: 3, Outcome: NotTaken}, WordAnswered{Intent: 3}, DownloadIntended{"b"}, heldFile("b"), heldFile("f1"), HeldWhole{Manifest: sum}, HeldWhole{both, sum}) {
		for _, a := range worlds {
			next, err := Transition(a, ev, at)
			if e := (edge{ev.JournalName(), a.State, next.State}); err == nil && !slices.Contains(all, e) {
				all = append(all, e)
			}
		}
	}
	return all
}

// The picture for people and the list for package proof are what Transition does.
// With -update they are written again.
func TestStatesPage(t *testing.T) {
	edges := exploreEdges(t)
	var list strings.Builder
	list.WriteString("# Where each event of an arrival may lead: event, state, next state.\n# Generated from internal/ledger/arrival: go test ./internal/ledger/arrival -run StatesPage -update\n")
	for _, e := range edges {
		fmt.Fprintln(&list, e.event, e.from, e.to)
	}
	kit.Generated(t, "../../../docs/arrivals.md", "arrivals", renderPage(edges), *update)
	kit.Generated(t, "../../proof/arrivaledges.txt", "", list.String(), *update)
}

// certain is what the page says of each state.
var certain = map[State]string{
	Announced:    "The service told of it; nothing was asked about it. Next: ask for the list of its files, or fetch the document.",
	Fetching:     "Its files are known; some are not held. Next: download them one by one; of an extract, then ask for the list again.",
	Held:         "Everything of it is durable and digested here. Next: put its files into the drop folder, confirm a received document, then acknowledge, each if it is configured; else this is its end.",
	Acknowledged: "Held, and the service knows it. Final, unless custody loses it.",
	GivenUp:      "It is not taken in: a person decided so, or the service does not have it any more. The notification of a received document stays at the network. Only custody of an extract that turns up changes this.",
}

func renderPage(edges []edge) string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n")
	var pairs []string
	events := map[string][]string{}
	for _, e := range edges {
		from := e.from.String()
		if e.from == None {
			from = "[*]"
		}
		pair := from + " --> " + e.to.String()
		if e.from == e.to {
			continue
		}
		if events[pair] == nil {
			pairs = append(pairs, pair)
		}
		events[pair] = append(events[pair], e.event)
	}
	for _, pair := range pairs {
		fmt.Fprintf(&b, "    %s: %s\n", pair, strings.Join(events[pair], ", "))
	}
	b.WriteString("    acknowledged --> [*]\n    given-up --> [*]\n```\n\n| state | what is certain |\n|---|---|\n")
	for _, s := range States() {
		fmt.Fprintf(&b, "| **%s** | %s |\n", s, certain[s])
	}
	return b.String()
}
