package main

import "vaultd/internal/ledger"

// namedCount counts entries and names the latest few.
type namedCount struct {
	count int
	names []string
}

const namedAtMost = 5

// add notes the name of one of them, and why it is one.
func (s *namedCount) add(e ledger.Entry, why string) {
	name := e.Folder + " (" + e.Drop + ")"
	if why != "" {
		name += ": " + why
	}
	s.names = append(s.names, name)
}
