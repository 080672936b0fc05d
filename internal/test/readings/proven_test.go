package readings

import (
	"io/fs"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/proof"
	"vaultd/internal/test/kit"
)

// proven holds ledger and service against each other, and looks for secrets.
func (w *world) proven() {
	w.t.Helper()
	w.settled()
	l := w.daemon.Ledger()
	problems := kit.Value(l.Verify(w.t.Context()))(w.t)
	for _, p := range problems {
		w.t.Errorf("verify: %v", p)
	}
	findings, head := w.findings()
	for range 100 {
		if head == l.Head() {
			break
		}
		findings, head = w.findings() // something was committed meanwhile: they were not of one moment
	}
	for _, f := range findings {
		w.t.Errorf("proof: %v", f)
	}
	for _, v := range w.service.Violations() {
		w.t.Errorf("service: %s", v)
	}
	w.secretive()
}

// findings are those of the proof, and the end of the journal when they were looked for.
func (w *world) findings() ([]proof.Finding, ledger.Head) {
	w.t.Helper()
	l := w.daemon.Ledger()
	balance := l.Balance()
	journal := proof.Journal{Head: l.Head(), Balance: &balance, Lines: func(yield func(uint64, []byte) bool) {
		err := l.Lines(1, func(n uint64, line []byte) error {
			if !yield(n, line) {
				return fs.SkipAll
			}
			return nil
		})
		if err != fs.SkipAll {
			kit.Must(w.t, err)
		}
	}}
	return proof.Check(journal, slices.Values(w.entries()), w.seen()).Findings, journal.Head
}

func (w *world) seen() (s proof.Seen) {
	w.t.Helper()
	for _, r := range w.service.Registrations() {
		id := kit.Value(archive.ParseID(r.ClientUUID))(w.t)
		metadata := kit.Value(archive.ParseDigest(r.MetadataSHA256))(w.t)
		reg := proof.Registration{ID: id, Remote: archive.RemoteID(r.BumID), Metadata: metadata, Stored: r.PUTs > 0, Size: r.Size, Torn: r.Torn, Replaced: r.Replaced,
			Archived: !r.ArchivedAt.IsZero(), Failed: r.State == "ArchivingFailed" && !r.Archivable}
		if reg.Stored {
			reg.SHA256 = kit.Value(archive.ParseDigest(r.SHA256))(w.t)
		}
		s.Registrations = append(s.Registrations, reg)
	}
	return s
}

// said is everything that a person could have read: the log and every cause.
func (w *world) said() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var b strings.Builder
	b.WriteString(strings.ReplaceAll(w.log.String(), `\"`, `"`))
	for text := range w.heard {
		b.WriteString(text + "\n")
	}
	return b.String()
}

// says wants all the words to have been said to a person.
func (w *world) says(words ...string) {
	w.t.Helper()
	said := w.said()
	kit.Holds(w.t, "the log", said, words...)
}

// secretive wants no secret in what was said (I7), and no credential at a host that is not the service's (I20).
func (w *world) secretive() {
	w.t.Helper()
	said := w.said()
	kit.Lacks(w.t, "the log", said, "S3cr3t", "canary", "X-Amz-Signature=", "X-Amz-Security-Token=", "eyJhbGciOi")
	for _, c := range w.sentTo(storeHost) {
		kit.Check(w.t, !c.authorized, "I20: credentials at the store: %+v", c)
	}
}

// waits wants every document to be on its way: none lost, none blamed, none archived (I24).
func (w *world) waits() {
	w.t.Helper()
	w.settled()
	es := w.entries()
	kit.Want(w.t, "entries", len(es), len(w.dropped))
	for _, e := range es {
		kit.Check(w.t, e.State.IsOpen() && !e.NeedsPerson(),
			"I24: %q is %s while the route should rest: %+v", e.Folder, e.State, e.Cause)
	}
	w.proven()
}
