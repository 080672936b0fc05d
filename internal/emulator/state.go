package emulator

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The states that the service reports.
const (
	waiting    = "WaitingForPackageUpload"
	inProgress = "ArchivingInProgress"
	successful = "ArchivingSuccessful"
	failed     = "ArchivingFailed"
)

// registration is everything that is known of one bumId.
type registration struct {
	vault, clientUUID, bumID, documentID string
	metadata                             json.RawMessage
	digest                               string
	registeredAt, visibleFrom, deadline  time.Time
	urlsRevokedAt                        time.Time       // URLs made until then no longer work
	sharedAt                             []time.Time     // when URLs of it were made for other documents
	window                               time.Duration   // from the making of a URL to deadline
	nth                                  int             // counts those of its clientUUID in its vault, from 1
	packages                             []storedPackage // by the time at which they landed
}

// storedPackage is one package in the object store.
type storedPackage struct {
	storedAt    time.Time
	archiveTime time.Duration
	sha256      string
	size        int64
	failMessage string
	isTruncated bool // its body ended early

	rerunAfter time.Duration // from a first failure to the success of a job that runs again; zero: it does not fail first
	wasRefused bool          // the store answered that it does not take it
}

// registrationState is the state of a registration at one instant.
type registrationState struct {
	state, message string
	since          time.Time
	content        *storedPackage // what is, or is being, archived
}

// lastSigned returns when the last URL was made that belongs to the registration itself.
func (g *registration) lastSigned() time.Time { return g.deadline.Add(-g.window) }

// stateAt computes the state at now, so nothing has to happen in the background. A package that is stored before the one
// before it is archived replaces it. Once a final state came from a package, later ones change nothing.
func (g *registration) stateAt(now time.Time, ignoreLate bool) registrationState {
	c := registrationState{state: waiting, since: g.registeredAt}
	if now.After(g.deadline) {
		c = registrationState{state: failed, since: g.deadline, message: "no package was uploaded before the upload URL expired"}
	}
	for i := range g.packages {
		p := &g.packages[i]
		if p.storedAt.After(now) || c.content != nil && !p.storedAt.Before(c.content.storedAt.Add(c.content.archiveTime)) {
			break
		}
		if ignoreLate && p.storedAt.After(g.deadline) {
			continue
		}
		c = registrationState{state: inProgress, since: p.storedAt, content: p}
	}
	if c.content == nil {
		return c
	}
	ripe := c.content.storedAt.Add(c.content.archiveTime)
	switch {
	case now.Before(ripe):
	case c.content.failMessage != "":
		c.state, c.message, c.since = failed, c.content.failMessage, ripe
	default:
		c.state, c.message, c.since = c.content.jobStateAt(now, ripe)
	}
	return c
}

// jobStateAt returns the state of the job that archives a package, after archiveTime has passed. The first job may fail.
// Another one then takes the last tenth of the time until it succeeds.
func (p *storedPackage) jobStateAt(now, ripe time.Time) (state, message string, since time.Time) {
	switch done := ripe.Add(p.rerunAfter); {
	case p.rerunAfter == 0:
		return successful, "", ripe
	case now.Before(done.Add(-p.rerunAfter / 10)):
		return failed, "an internal error of the archive", ripe
	case now.Before(done):
		return inProgress, "", done.Add(-p.rerunAfter / 10)
	default:
		return successful, "", done
	}
}

// serverState is the server's memory: the sum of the journal's lines.
type serverState struct {
	all             []*registration // in the order they were made
	byBumID         map[string]*registration
	byClient        map[string][]*registration // by vault and clientUUID, in order
	byVault         map[string][]*registration // in order
	ambiguousBumIDs map[string]bool            // by bumId, registered or not
	unaskable       map[string]int             // by bumId: the status with which a question about it alone is answered
	pdf             pdfState
	extracts        extractState
	network         networkState
	lastCalls       map[string]time.Time // by op: when its last call ended
	revoked         int                  // how often all access tokens were revoked
	violations      []string
}

func newServerState() *serverState {
	return &serverState{byBumID: map[string]*registration{}, byClient: map[string][]*registration{},
		byVault: map[string][]*registration{}, ambiguousBumIDs: map[string]bool{}, unaskable: map[string]int{}, pdf: newPDFState(), extracts: newExtractState(), network: newNetworkState(), lastCalls: map[string]time.Time{}}
}

// clientKey identifies a clientUUID within its vault. The case of its digits does not count.
func clientKey(vault, clientUUID string) string {
	return fmt.Sprintf("%q %s", vault, strings.ToLower(clientUUID))
}

// applyLine is the only function that changes the memory, live and at replay.
func (b *serverState) applyLine(l journalLine) {
	visible := l.Time
	if l.Visible != nil {
		visible = *l.Visible
	}
	switch l.Kind {
	case kindRegistered:
		b.addRegistration(l, visible)
	case kindReissued:
		b.byBumID[l.BumID].deadline, b.byBumID[l.BumID].window = l.Time.Add(l.Window), l.Window
	case kindStored:
		g := b.byBumID[l.BumID]
		g.packages = append(g.packages, storedPackage{visible, l.Ripens, l.SHA256, l.Size, l.Fate, l.Torn, l.Again, l.Refused})
		slices.SortStableFunc(g.packages, func(a, b storedPackage) int { return a.storedAt.Compare(b.storedAt) })
	case kindSpoiled:
		b.byBumID[l.BumID].urlsRevokedAt = l.Time
	case kindShared:
		g := b.byBumID[l.BumID]
		g.sharedAt = append(g.sharedAt, l.Time)
	case kindPoisoned:
		b.ambiguousBumIDs[l.BumID] = true
	case kindUnaskable:
		b.unaskable[l.BumID] = l.Status
	case kindRevoked:
		b.revoked++
	case kindViolation:
		b.violations = append(b.violations, l.Text)
	case kindCall:
		b.lastCalls[l.Op] = l.Time
	default:
		b.pdf.applyLine(l)
		b.extracts.applyLine(l)
		b.network.applyLine(l)
	}
}

func (b *serverState) addRegistration(l journalLine, visible time.Time) {
	var head struct {
		DocumentID string `json:"documentId"`
	}
	_ = json.Unmarshal(l.Metadata, &head) // was valid when it was registered
	key := clientKey(l.Vault, l.ClientUUID)
	g := &registration{
		vault: l.Vault, clientUUID: l.ClientUUID, bumID: l.BumID, documentID: head.DocumentID,
		metadata: l.Metadata, digest: l.Digest, registeredAt: l.Time, visibleFrom: visible, deadline: l.Time.Add(l.Window), window: l.Window,
		nth: len(b.byClient[key]) + 1,
	}
	b.all = append(b.all, g)
	b.byBumID[g.bumID] = g
	b.byClient[key] = append(b.byClient[key], g)
	b.byVault[g.vault] = append(b.byVault[g.vault], g)
}

// findRegistration returns a registration of the vault that is visible at now, or nil.
func (b *serverState) findRegistration(vault, bumID string, now time.Time) *registration {
	g := b.byBumID[strings.ToLower(bumID)]
	if g == nil || g.vault != vault || g.visibleFrom.After(now) {
		return nil
	}
	return g
}

// listArchived lists what the vault holds at now, oldest first.
func (b *serverState) listArchived(vault string, now time.Time, ignoreLate bool) []archivedDocument {
	var docs []archivedDocument
	for _, g := range b.byVault[vault] {
		if c := g.stateAt(now, ignoreLate); c.state == successful && !g.visibleFrom.After(now) {
			docs = append(docs, archivedDocument{g, c.since})
		}
	}
	slices.SortFunc(docs, func(a, b archivedDocument) int {
		return cmp.Or(a.when.Compare(b.when), cmp.Compare(a.bumID, b.bumID))
	})
	return docs
}

type archivedDocument struct {
	*registration
	when time.Time
}
