package emulator

import (
	"fmt"
	"slices"
	"time"
)

// RegistrationRecord is what the service knows of one registration: a bumId, its owner, and what was stored under it. A test
// that ran the emulator as its own process opens its Dir with New after that process has ended, to ask for it.
type RegistrationRecord struct {
	Vault, ClientUUID, BumID, DocumentID string
	MetadataSHA256                       string // of the element's bytes as they were sent, in hex
	RegisteredAt                         time.Time
	Deadline                             time.Time // until then its last URL works

	PUTs     int       // packages stored under the bumId
	SHA256   string    // of the archived package, else of the last stored; empty without one
	Size     int64     // its bytes
	Torn     bool      // its body ended early, and the store kept it all the same
	StoredAt time.Time // when it landed
	Replaced bool      // other bytes were stored over those that came first; a body that ended early is no other content

	State      string // in the service's words, now
	Message    string
	ArchivedAt time.Time // zero unless it is archived
	Archivable bool      // holds content that is archived, or will be unless replaced
	Late       bool      // its content was called refused or failed before: a client learns of it only by asking later
}

// Registrations returns every registration in its present state, in the order in which they were made.
func (s *Server) Registrations() []RegistrationRecord {
	now, ignoreLate := s.cfg.Clock(), s.currentReadings().LatePackage == "ignore"
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []RegistrationRecord
	for _, g := range s.state.all {
		all = append(all, g.describe(now, ignoreLate))
	}
	return all
}

func (g *registration) describe(now time.Time, ignoreLate bool) RegistrationRecord {
	k := g.stateAt(now, ignoreLate)
	v := RegistrationRecord{
		Vault: g.vault, ClientUUID: g.clientUUID, BumID: g.bumID, DocumentID: g.documentID,
		MetadataSHA256: g.digest, RegisteredAt: g.registeredAt, Deadline: g.deadline, PUTs: len(g.packages), State: k.state, Message: k.message,
	}
	p := k.content
	if p == nil && len(g.packages) > 0 {
		p = &g.packages[len(g.packages)-1]
	}
	if p != nil {
		v.SHA256, v.Size, v.Torn, v.StoredAt = p.sha256, p.size, p.isTruncated, p.storedAt
		v.Late = p.wasRefused || p.rerunAfter > 0
		v.Archivable = p.failMessage == "" && !(ignoreLate && p.storedAt.After(g.deadline))
	}
	whole := slices.DeleteFunc(slices.Clone(g.packages), func(p storedPackage) bool { return p.isTruncated })
	v.Replaced = slices.ContainsFunc(whole, func(p storedPackage) bool { return p.sha256 != whole[0].sha256 })
	if k.state == successful {
		v.ArchivedAt = k.since
	}
	return v
}

// Violations returns what a correct client would not have done, over the server's whole life: what was recorded when it
// happened, every clientUUID for which two registrations hold content that can be archived, and every PDF that two slots hold
// although nobody released it.
func (s *Server) Violations() []string {
	holders := map[string][]string{}
	for _, v := range s.Registrations() {
		if v.Archivable {
			key := fmt.Sprintf("clientUUID %s in vault %s", v.ClientUUID, v.Vault)
			holders[key] = append(holders[key], v.BumID)
		}
	}
	s.mu.Lock()
	all, doublePDFs := slices.Clone(s.state.violations), s.state.pdf.describeDoubles()
	s.mu.Unlock()
	var doubles []string
	for who, bumIDs := range holders {
		if len(bumIDs) > 1 {
			doubles = append(doubles, fmt.Sprintf("double content: %s, bumIds %v", who, bumIDs))
		}
	}
	slices.Sort(doubles)
	return slices.Concat(all, doubles, doublePDFs)
}

// CountCalls returns how many calls of an op came since the start, those with a fault included.
func (s *Server) CountCalls(op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.callCounts[op]
}
