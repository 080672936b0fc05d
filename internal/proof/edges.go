package proof

import (
	_ "embed"
	"fmt"
	"iter"
	"strings"

	"vaultd/internal/ledger"
)

// edgesText lists where each event may lead. A test of package ledger writes it from what Transition does. It is a file
// and not a call of Transition, so that a journal is held against what was reviewed, and not against the code that wrote it.
//
//go:embed edges.txt
var edgesText string

// edges yields the edges of the state machine.
func edges() iter.Seq[edge] {
	return func(yield func(edge) bool) {
		for line := range strings.Lines(edgesText) {
			if strings.HasPrefix(line, "#") {
				continue
			}
			s, err := parseEdge(strings.Fields(line))
			if err != nil {
				panic(fmt.Sprintf("edges.txt: %q: %v", line, err)) // the file is part of the program; each test of a journal reads it
			}
			if !yield(s) {
				return
			}
		}
	}
}

// parseEdge reads the fields of a line: event, status of the service, state, next state, source, next source.
func parseEdge(fields []string) (s edge, err error) {
	if len(fields) != 6 {
		return s, fmt.Errorf("%d fields", len(fields))
	}
	s.event = fields[0]
	if fields[1] != "-" {
		s.word = fields[1]
	}
	if s.from, err = ledger.ParseState(fields[2]); err != nil {
		return s, err
	}
	if s.to, err = ledger.ParseState(fields[3]); err != nil {
		return s, err
	}
	if s.source, err = ledger.ParseSource(fields[4]); err != nil {
		return s, err
	}
	s.then, err = ledger.ParseSource(fields[5])
	return s, err
}
