package emulator

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// uploadGrant is one element of a registration's answer.
type uploadGrant struct {
	BumID          string `json:"bumId"`
	DocumentID     string `json:"documentId"`
	ClientUUID     string `json:"clientUUID"`
	ArchiveFileURL any    `json:"archiveFileURL,omitempty"`
}

// register handles a batch of documents: all of them or none.
func (s *Server) register(c *call) reply {
	if t, _, err := mime.ParseMediaType(c.Header.Get("Content-Type")); err != nil || t != "application/json" {
		return c.refusal(400, "VALIDATION", "Content-Type must be application/json")
	}
	body, tooLong, err := readBody(c.Request, s.cfg.MaxBody)
	if err != nil {
		return reply{} // the client went away in the middle: there is nobody to answer
	}
	if tooLong {
		return c.refusal(http.StatusRequestEntityTooLarge, "TOO_LARGE", fmt.Sprintf("the body must have at most %d bytes", s.cfg.MaxBody))
	}
	batch, problem := parseBatch(body, s.cfg.MaxBatch)
	if problem == "" {
		problem = s.refuseTwins(c, batch)
	}
	if problem != "" {
		c.record.Text = problem
		return c.refusal(400, "VALIDATION", problem)
	}
	lines, problem, err := s.addBatch(c, batch)
	switch {
	case err != nil:
		return reply{}
	case problem != "":
		return c.refusal(400, "VALIDATION", problem)
	}
	grants, err := s.makeGrants(c, batch, lines)
	if err == nil {
		grants, err = s.spoilGrants(c, grants)
	}
	if err != nil {
		return c.refusal(500, "INTERNAL", "no upload address")
	}
	told := map[string]bool{}
	for i, g := range grants {
		if told[g.BumID] {
			grants[i].BumID = c.spellKnownBumID(g.BumID)
		} else {
			grants[i].BumID = c.spellNewBumID(g.BumID)
		}
		told[g.BumID] = true
	}
	return jsonReply(grants)
}

// refuseTwins refuses a batch that has one clientUUID twice: no answer to it could be matched.
func (s *Server) refuseTwins(c *call, batch []batchElement) string {
	seen := map[string]bool{}
	for _, e := range batch {
		c.record.ClientUUIDs = append(c.record.ClientUUIDs, e.clientUUID)
		if seen[e.clientUUID] {
			s.recordViolation(c, "clientUUID %s twice in one batch", e.clientUUID)
			return "clientUUID: occurs twice in the batch"
		}
		seen[e.clientUUID] = true
	}
	return ""
}

// addBatch records the batch: one journal line per element, in its order, all in one write.
func (s *Server) addBatch(c *call, batch []batchElement) (lines []journalLine, problem string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range batch {
		before := s.state.byClient[clientKey(c.vault, e.clientUUID)]
		if len(before) > 0 && c.reading.Repeat == "refuse" {
			return nil, "clientUUID: is registered already", nil
		}
		l := journalLine{
			Time: c.now, Kind: kindRegistered, Vault: c.vault, ClientUUID: e.clientUUID, Metadata: e.raw,
			Digest: e.digest, Window: s.cfg.Window, BumID: s.newUUID(), Visible: c.visibleTime(c.now),
		}
		if len(before) > 0 && c.reading.Repeat == "same" {
			known := before[len(before)-1].bumID
			l = journalLine{Time: c.now, Kind: kindReissued, Vault: c.vault, ClientUUID: e.clientUUID, BumID: known, Window: s.cfg.Window}
		}
		lines = append(lines, l)
		c.record.BumIDs = append(c.record.BumIDs, l.BumID)
	}
	for _, e := range batch {
		before := s.state.byClient[clientKey(c.vault, e.clientUUID)]
		differs := func(g *registration) bool { return g.digest != e.digest }
		if slices.ContainsFunc(before, differs) {
			s.recordViolationLocked(c, "other metadata bytes for clientUUID %s", e.clientUUID)
		}
	}
	return lines, "", s.commitLines(lines...)
}

// visibleTime returns when something that is written at t becomes visible; nil: at once.
func (c *call) visibleTime(t time.Time) *time.Time {
	if c.fault.VisibleAfter <= 0 {
		return nil
	}
	later := t.Add(c.fault.VisibleAfter)
	return &later
}

// newUUID draws a bumId. The caller holds mu.
func (s *Server) newUUID() string {
	id, err := uuid.NewRandomFromReader(s.rng)
	if err != nil {
		panic(fmt.Sprintf("emulator: draw a bumId: %v", err)) // the generator never fails
	}
	return id.String()
}

func digest(b []byte) string { return fmt.Sprintf("%x", sha256.Sum256(b)) }

// makeGrants makes the elements of the answer, shuffled unless the readings say otherwise.
func (s *Server) makeGrants(c *call, batch []batchElement, lines []journalLine) ([]uploadGrant, error) {
	var out []uploadGrant
	for i, e := range batch {
		u, err := s.archiveFileURL(c, lines[i].BumID, c.now)
		if err != nil {
			return nil, err
		}
		out = append(out, uploadGrant{lines[i].BumID, e.documentID, e.clientUUID, u})
	}
	if c.reading.InOrder {
		return out, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(out) - 1; i > 0; i-- {
		j := int(s.rng.Uint64() % uint64(i+1))
		out[i], out[j] = out[j], out[i]
	}
	return out, nil
}

// archiveFileURL returns the signed address of a bumId's object, in the form of the readings.
func (s *Server) archiveFileURL(c *call, bumID string, at time.Time) (any, error) {
	var headers map[string]string
	form := c.reading.URLForm
	if form == "headers" || form == "fields" {
		headers = map[string]string{"Content-Type": "application/zip", "x-amz-server-side-encryption": "aws:kms", "x-ms-blob-type": "BlockBlob"}
	}
	signed, err := s.keys.presign(c.Context(), http.MethodPut, s.objectURL(c, c.vault, bumID+".zip"), headers, at, s.cfg.Window)
	switch {
	case err != nil:
		return nil, err
	case form == "string":
		return signed, nil
	case headers != nil:
		return map[string]any{"url": signed, form: headers}, nil
	}
	return map[string]any{"url": signed}, nil
}

// objectURL returns the address of an object, not signed yet.
func (s *Server) objectURL(c *call, folder, name string) string {
	if c.reading.KeyInQuery {
		return s.storeURL(c.Request) + "/put?key=" + url.QueryEscape(folder+"/"+name)
	}
	return s.storeURL(c.Request) + "/" + url.PathEscape(folder) + "/" + name
}

// spoilGrants applies the faults that only this answer can have. If they leave
// it unclear whose a bumId is, the bumId is marked ambiguous: a PUT to it is a
// violation.
func (s *Server) spoilGrants(c *call, grants []uploadGrant) ([]uploadGrant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := int(s.rng.Uint64() % uint64(len(grants)))
	switch c.fault.Kind {
	case MissingAnswer:
		return slices.Delete(grants, i, i+1), nil
	case MissingURL:
		grants[i].ArchiveFileURL = nil
	case Unaskable:
		return grants, s.commitLines(journalLine{Time: c.now, Kind: kindUnaskable, BumID: grants[i].BumID, Status: c.fault.statusCode()})
	case ForeignAnswer:
		grants[i].ClientUUID = s.newUUID()
		return grants, s.markAmbiguous(c, grants[i].BumID)
	case ExtraAnswer:
		extra := uploadGrant{s.newUUID(), grants[i].DocumentID, s.newUUID(), nil}
		u, err := s.keys.presign(c.Context(), http.MethodPut, s.objectURL(c, c.vault, extra.BumID+".zip"), nil, c.now, s.cfg.Window)
		extra.ArchiveFileURL = map[string]any{"url": u}
		return append(grants, extra), errors.Join(err, s.markAmbiguous(c, extra.BumID))
	case DoubleBumID:
		twin := grants[i]
		if len(grants) == 1 {
			return append(grants, twin), s.markAmbiguous(c, twin.BumID)
		}
		other := &grants[(i+1)%len(grants)]
		other.BumID, other.ArchiveFileURL = twin.BumID, twin.ArchiveFileURL
		return grants, s.markAmbiguous(c, twin.BumID)
	case SharedAddress, RepeatedAddress:
		return grants, s.shareAddress(c, &grants[i])
	}
	return grants, nil
}

// shareAddress gives a document the upload address of another one, if there is any. The caller holds mu.
func (s *Server) shareAddress(c *call, grant *uploadGrant) (err error) {
	other := s.findOther(c, c.vault)
	if other == nil {
		return nil
	}
	at := c.now
	if c.fault.Kind == RepeatedAddress {
		at = other.lastSigned()
	}
	if grant.ArchiveFileURL, err = s.archiveFileURL(c, other.bumID, at); err != nil {
		return err
	}
	return s.commitLines(journalLine{Time: at, Kind: kindShared, BumID: other.bumID, ClientUUID: grant.ClientUUID})
}

// findOther returns a registration of a vault that has content and whose clientUUID the call does not name, or nil. One
// without content is no use: its address may never have reached anybody. The caller holds mu.
func (s *Server) findOther(c *call, vault string) *registration {
	var others []*registration
	for _, g := range s.state.byVault[vault] {
		if len(g.packages) > 0 && !slices.ContainsFunc(c.record.ClientUUIDs, func(id string) bool { return strings.EqualFold(id, g.clientUUID) }) {
			others = append(others, g)
		}
	}
	if len(others) == 0 {
		return nil
	}
	return others[s.rng.Uint64()%uint64(len(others))]
}

// markAmbiguous marks a bumId that no client may use. The caller holds mu.
func (s *Server) markAmbiguous(c *call, bumID string) error {
	return s.commitLines(journalLine{Time: c.now, Kind: kindPoisoned, BumID: bumID})
}
