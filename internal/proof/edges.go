package proof

import (
	_ "embed"
	"strings"
)

// The files list where each event may lead. Tests of the packages ledger and arrival write them from what Transition does. They are files
// and no calls of Transition, so that a journal is held against what was reviewed, and not against the code that wrote it.
//
//go:embed edges.txt
var edgesText string

//go:embed arrivaledges.txt
var arrivalEdgesText string

// edge is a pair of places between which an event may lead, in the words of a
// line: event, word of the service, state, next state, source and next source.
// An arrival has neither word nor source.
type edge [6]string

// edges are the edges of a state machine, and its events.
type edges struct {
	all    map[edge]bool
	events map[string]bool
}

// parseEdges reads one of the files.
func parseEdges(text string) edges {
	m := edges{map[edge]bool{}, map[string]bool{}}
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); fields[0] != "#" {
			var e edge
			copy(e[:], fields)
			m.all[e], m.events[e[0]] = true, true
		}
	}
	return m
}
