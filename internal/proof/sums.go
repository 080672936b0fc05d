package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Sums is what a replay without a finding leaves for one that goes on behind
// its last line, see [NewReplay]: what its lines tell of the ledger as a whole,
// and what the entries at rest add up to. It can be stored as JSON.
//
// It is no evidence by itself: it says what an earlier check found, and nothing
// of what became of those entries since.
type Sums struct {
	Head ledger.Head
	Told
	Rest Uncertain // of the entries at rest
}

// Rules is a digest of the state machine that a journal is held against. Sums
// of other rules prove nothing.
func Rules() string {
	sum := sha256.Sum256([]byte(edgesText + arrivalEdgesText))
	return hex.EncodeToString(sum[:8])
}

// Sums returns what the next replay goes on from. It is called after Finish, which found nothing.
func (f *Replay) Sums() Sums {
	f.rest.sort()
	return Sums{f.Head, f.Told, f.rest}
}

// countSample counts the sample by the documents that were ever downloaded: not
// all entries were shown.
func (f *Replay) countSample() {
	f.Sample = Sample{Archived: f.Balance.States[ledger.Archived]}
	for document, d := range f.Downloads.Last {
		vault, remote, _ := strings.Cut(document, "\n")
		key, ok, err := f.keeper.FindByRemote(archive.RemoteID(remote))
		if f.failed = errors.Join(f.failed, err); !ok || err != nil {
			continue
		}
		if e, ok := f.entry(key); ok && e.State == ledger.Archived && string(e.ArchivedRemote) == remote && string(e.Vault) == vault {
			f.Sample.addOutcome(d.Compared, 1)
		}
	}
}

func (u Uncertain) clone() Uncertain {
	return Uncertain{u.LostPosts, slices.Clone(u.Orphans), u.Pruned, slices.Clone(u.NeedReconcile), slices.Clone(u.Unclear), slices.Clone(u.Double), slices.Clone(u.InDoubt)}
}

// sort orders by key: a report has the same order whatever it rests on.
func (u *Uncertain) sort() {
	slices.SortStableFunc(u.Orphans, func(a, b Orphan) int { return compareKeys(a.Key, b.Key) })
	for _, keys := range [][]archive.Key{u.NeedReconcile, u.Unclear, u.Double, u.InDoubt} {
		slices.SortFunc(keys, compareKeys)
	}
}
