package proof

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
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
	Head           ledger.Head
	Marks, PutBack uint64
	Indexes        []AcceptedIndex
	Accepted       uint64
	Downloads      Downloads
	Acts           Acts
	Rest           Resting
}

// Resting is what entries at rest add up to.
type Resting struct {
	Uncertain
	LostPosts uint64
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
	return Sums{f.Head, f.Marks, f.PutBack, f.Indexes, f.Accepted, f.Downloads, f.Acts, f.rest}
}

func (f *Replay) goOnFrom(s Sums) {
	f.Head, f.Lines, f.Marks, f.PutBack = s.Head, s.Head.N, s.Marks, s.PutBack
	f.Indexes, f.Accepted, f.Acts, f.rest = slices.Clone(s.Indexes), s.Accepted, s.Acts, s.Rest
	f.Acts.Last, f.Acts.Compared = slices.Clone(s.Acts.Last), maps.Clone(s.Acts.Compared)
	f.Downloads = Downloads{s.Downloads.Announced, maps.Clone(s.Downloads.Last)}
	f.Uncertain, f.LostPosts = s.Rest.clone(), s.Rest.LostPosts
	f.rest.Uncertain = s.Rest.clone()
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
			f.Sample.addOutcome(d.Compared)
		}
	}
}

func (u Uncertain) clone() Uncertain {
	return Uncertain{slices.Clone(u.Orphans), u.Pruned, slices.Clone(u.NeedReconcile), slices.Clone(u.Unclear), slices.Clone(u.Double), slices.Clone(u.InDoubt)}
}

// sort orders by key: a report has the same order whatever it rests on.
func (u *Uncertain) sort() {
	slices.SortStableFunc(u.Orphans, func(a, b Orphan) int { return compareKeys(a.Key, b.Key) })
	for _, keys := range [][]archive.Key{u.NeedReconcile, u.Unclear, u.Double, u.InDoubt} {
		slices.SortFunc(keys, compareKeys)
	}
}
