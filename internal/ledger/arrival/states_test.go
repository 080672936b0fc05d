package arrival

import (
	"errors"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
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

// saying says words of a document, each in its own minute, and returns the error of the last one.
func saying(t *testing.T, a Arrival, evs ...Event) (Arrival, error) {
	t.Helper()
	var err error
	now := at
	for i, ev := range evs {
		now.Wall = now.Wall.Add(sayingTime)
		if a, err = Transition(a, ev, now); err != nil && i < len(evs)-1 {
			t.Fatal(err)
		}
	}
	return a, err
}

// I29: a person's word about a received document is said once. It is repeated only where the person says so and nobody knows whether the network
// took it, and contradicted only where the network certainly did not take it.
func TestWord_I29_SaidOnce(t *testing.T) {
	here := after(t, receivedLife[:5]...)
	first := here.Rev + 1
	say := func(w Word) WordIntended { return WordIntended{Word: w, By: ledger.Operator{UID: 7}} }
	again := func(w Word) WordIntended { return WordIntended{Word: w, Again: true} }
	answer := func(rev uint32, o Outcome) WordAnswered { return WordAnswered{Intent: rev, Outcome: o} }
	for name, row := range map[string]struct {
		events []Event
		want   error
	}{
		"First":                         {[]Event{say(Accept)}, nil},
		"FirstAsIfAgain":                {[]Event{again(Accept)}, nil},
		"SameAfterACrash":               {[]Event{say(Accept), say(Accept)}, ErrMaybeSaid},
		"SameAfterACrashByWish":         {[]Event{say(Accept), again(Accept)}, nil},
		"SameUnanswered":                {[]Event{say(Accept), answer(first, Unanswered), say(Accept)}, ErrMaybeSaid},
		"SameUnansweredByWish":          {[]Event{say(Accept), answer(first, Unanswered), again(Accept)}, nil},
		"SameTaken":                     {[]Event{say(Accept), answer(first, Taken), again(Accept)}, ErrSaidBefore},
		"SameNotTaken":                  {[]Event{say(Accept), answer(first, NotTaken), say(Accept)}, nil},
		"OtherAfterACrash":              {[]Event{say(Accept), again(Reject)}, ErrContradicts},
		"OtherUnanswered":               {[]Event{say(Accept), answer(first, Unanswered), again(Reject)}, ErrContradicts},
		"OtherTaken":                    {[]Event{say(Reject), answer(first, Taken), say(Accept)}, ErrContradicts},
		"OtherNotTaken":                 {[]Event{say(Accept), answer(first, NotTaken), say(Reject)}, nil},
		"OtherWhenOnlyTheSecondIsKnown": {[]Event{say(Accept), again(Accept), answer(first+1, NotTaken), say(Reject)}, ErrContradicts},
		"TechnicalAfterAccept":          {[]Event{say(Accept), answer(first, Taken), say(RejectTechnical)}, ErrContradicts},
		"BusinessAfterTechnical":        {[]Event{say(RejectTechnical), again(Reject)}, ErrContradicts},
		"NoWord":                        {[]Event{say("perhaps")}, ledger.ErrIllegal},
		"AnswerToNothing":               {[]Event{answer(1, Taken)}, ledger.ErrIllegal},
		"AnswerTwice":                   {[]Event{say(Accept), answer(first, Unanswered), answer(first, Taken)}, ledger.ErrIllegal},
	} {
		_, err := saying(t, here, row.events...)
		kit.Check(t, errors.Is(err, row.want) && (row.want != nil || err == nil), "%s: %v, want %v", name, err, row.want)
	}
}

// A word that was announced a moment ago may be on its way: nobody says another one beside it.
func TestWord_I29_OneAtATime(t *testing.T) {
	a := kit.Value(saying(t, after(t, receivedLife[:5]...), WordIntended{Word: Accept}))(t)
	for after, want := range map[time.Duration]error{time.Second: ErrBeingSaid, sayingTime: nil, -time.Hour: nil} {
		_, err := Transition(a, WordIntended{Word: Accept, Again: true}, archive.Instant{Wall: a.Said[0].At.Add(after)})
		kit.Check(t, errors.Is(err, want) && (want != nil || err == nil), "after %v: %v", after, err)
	}
}

// A business word is about a document that is here whole. A technical one is possible until the network was told that the document was received,
// and after it that is never told.
func TestWord_WhereItIsPossible(t *testing.T) {
	for i := 1; i <= len(receivedLife); i++ {
		a := after(t, receivedLife[:i]...)
		_, accept := Transition(a, WordIntended{Word: Accept}, at)
		_, technical := Transition(a, WordIntended{Word: RejectTechnical}, at)
		isHere := i >= 4
		kit.Check(t, (accept == nil) == isHere && (isHere || errors.Is(accept, ErrNotHere)), "after %d events: %v", i, accept)
		isConfirmed := i >= 6
		kit.Check(t, (technical == nil) != isConfirmed && (!isConfirmed || errors.Is(technical, ErrConfirmed)), "after %d events: %v", i, technical)
	}
	_, err := Transition(after(t, life[:7]...), WordIntended{Word: Accept}, at)
	kit.Check(t, err != nil, "accepting an extract is legal, want an error")
	a := kit.Value(saying(t, after(t, receivedLife[:5]...), WordIntended{Word: RejectTechnical}))(t)
	step, _, _ := Due(a, Rules{Confirm: true})
	kit.Check(t, step == Acknowledge, "%v is due of what cannot be read", step)
	kit.Fails(t, "confirming an unreadable document is legal", kit.Err(Transition(a, ConfirmIntended{}, at)))
	a, _ = saying(t, a, WordAnswered{Intent: a.Rev, Outcome: NotTaken})
	step, _, _ = Due(a, Rules{Confirm: true})
	kit.Check(t, step == Confirm, "%v is due after a word that was not taken", step)
}

// I29: the journal tells who said which word, and what became of it; the reason is told by its digest alone.
func TestWord_I29_Lines(t *testing.T) {
	a := after(t, receivedLife...)
	ev := WordIntended{Word: Reject, By: ledger.Operator{UID: 1000, Reason: sum}}
	a, err := Transition(a, ev, at)
	kit.Need(t, err == nil && a.State == Acknowledged && a.Said[0].Rev == a.Rev && a.Said[0].UID == 1000,
		"arrival = %+v (%v), want it %v with one word by user 1000", a, err, Acknowledged)
	line := string(NewLine(9, a, ev, at).Encode())
	kit.Holds(t, "line", line, `"event":"word-intended"`, `"word":"BusinessReject/DocumentRejected"`, `"uid":1000`, `"reason":"`+sum.String())
	answered := WordAnswered{Intent: a.Rev, Outcome: NotTaken, Cause: ledger.Cause{Code: "http-403"}}
	if a, err = Transition(a, answered, at); err != nil {
		t.Fatal(err)
	}
	kit.Holds(t, "line", string(NewLine(10, a, answered, at).Encode()), `"event":"word-not-taken"`, `"word":"BusinessReject/DocumentRejected"`, `"cause":"http-403"`)
	by, ok := ActorOf(ev)
	kit.Check(t, ok && by == ev.By, "actor = %+v, %v, want %+v", by, ok, ev.By)
}
