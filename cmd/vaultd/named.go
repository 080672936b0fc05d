package main

import "vaultd/internal/ledger"

// namedCount counts entries and keeps the names of the first few.
type namedCount struct {
	count int
	names []string
}

const sampled = 5

func (s *namedCount) add(e ledger.Entry) {
	if s.count++; len(s.names) < sampled {
		name := e.Folder + " (" + e.Drop + ")"
		if r := briefReason(e); r != "" {
			name += ": " + r
		}
		s.names = append(s.names, name)
	}
}
