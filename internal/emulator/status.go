package emulator

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

type statusRecord struct {
	BumID       string  `json:"bumId"`
	DocumentID  string  `json:"documentId"`
	ClientUUID  string  `json:"clientUUID"`
	LastUpdated string  `json:"lastUpdated"`
	Status      string  `json:"status"`
	Message     *string `json:"message"` // null when there is nothing to say
}

// lastDocuments is how many documents the status list covers.
const lastDocuments = 500

func (s *Server) status(c *call) reply {
	s.mu.Lock()
	g := c.currentRegistration(s.state.findRegistration(c.vault, c.PathValue("bumId"), c.now), c.now)
	unaskable := s.state.unaskable[strings.ToLower(c.PathValue("bumId"))]
	var rec statusRecord
	if g != nil {
		c.record.BumIDs = []string{g.bumID}
		rec = c.statusRecordOf(g, c.now)
	}
	s.mu.Unlock()
	switch {
	case unaskable != 0:
		return c.refusal(unaskable, "ServiceFault", "the status of this document cannot be told")
	case g == nil:
		return c.refusal(c.reading.UnknownBumID, "NOT_FOUND", "no document with this bumId")
	}
	return jsonReply(rec)
}

// statusList returns the vault's last documents, newest first.
func (s *Server) statusList(c *call) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := s.state.byVault[c.vault]
	list, asOf := []statusRecord{}, c.now.Add(-c.reading.ListAge)
	if c.reading.StatusList == "uploaded" {
		all = sortByUpload(all, asOf)
	}
	for i := len(all) - 1; i >= 0 && len(list) < lastDocuments; i-- {
		if !all[i].visibleFrom.After(asOf) && c.currentRegistration(all[i], asOf) != nil {
			list = append(list, c.statusRecordOf(all[i], asOf))
		}
	}
	return jsonReply(list)
}

// sortByUpload returns the registrations that held content at a time, sorted by their first upload. The caller holds mu.
func sortByUpload(all []*registration, at time.Time) (some []*registration) {
	for _, g := range all {
		if len(g.packages) > 0 && !g.packages[0].storedAt.After(at) {
			some = append(some, g)
		}
	}
	slices.SortStableFunc(some, func(a, b *registration) int { return a.packages[0].storedAt.Compare(b.packages[0].storedAt) })
	return some
}

// statusRecordOf returns the record of a registration at that time. The caller holds mu.
func (c *call) statusRecordOf(g *registration, at time.Time) statusRecord {
	k := g.stateAt(at, c.ignoresLate())
	rec := statusRecord{c.spellKnownBumID(g.bumID), g.documentID, g.clientUUID, k.since.UTC().Format(time.RFC3339), k.state, nil}
	if k.message != "" {
		rec.Message = &k.message
	}
	if k.state == inProgress && c.reading.InProgressWord != "" {
		rec.Status = strings.ReplaceAll(c.reading.InProgressWord, "%d", strconv.FormatInt(c.now.Unix(), 10))
	}
	return rec
}

// currentRegistration returns the registration, or nil when its document had left the archive at that time. The caller holds
// mu.
func (c *call) currentRegistration(g *registration, at time.Time) *registration {
	if g == nil || c.reading.Retention == 0 {
		return g
	}
	if k := g.stateAt(at, c.ignoresLate()); k.state == successful && c.retentionOver(k.since, at) {
		return nil
	}
	return g
}

// retentionOver reports whether what was archived at that time has left the archive.
func (c *call) retentionOver(archived, at time.Time) bool {
	r := c.reading.Retention
	return r > 0 && !at.Before(archived.Add(r))
}

// spellNewBumID returns a bumId in the case in which its first answer writes it.
func (c *call) spellNewBumID(bumID string) string {
	if c.reading.BumIDCase == "capital" {
		return strings.ToUpper(bumID)
	}
	return bumID
}

// spellKnownBumID returns a bumId in the case in which an answer writes it that is not its first.
func (c *call) spellKnownBumID(bumID string) string {
	if c.reading.BumIDCase == "capital" || c.reading.BumIDCase == "mixed" {
		return strings.ToUpper(bumID)
	}
	return bumID
}

func (c *call) ignoresLate() bool { return c.reading.LatePackage == "ignore" }
