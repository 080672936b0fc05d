package main

import "vaultd/internal/ledger"

// namedCount counts entries and names the latest few.
type namedCount struct {
	count int
	names []string
}

const sampled = 5

// name notes the name of one of them.
func (s *namedCount) name(e ledger.Entry) {
	name := e.Folder + " (" + e.Drop + ")"
	if r := briefReason(e); r != "" {
		name += ": " + r
	}
	s.names = append(s.names, name)
}
