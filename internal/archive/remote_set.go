package archive

import "crypto/sha256"

// RemoteSet is a set of bumIds, each as a part of its digest, so that millions fit in memory. Where a record has no bumId,
// another text that identifies it may stand in its place.
type RemoteSet map[[12]byte]struct{}

// Add puts r into the set and reports whether it was not there before.
func (s RemoteSet) Add(r RemoteID) bool {
	before := len(s)
	s[shortDigest(r)] = struct{}{}
	return len(s) > before
}

// Has reports whether r is in the set. An empty number never is.
func (s RemoteSet) Has(r RemoteID) bool {
	_, ok := s[shortDigest(r)]
	return ok && r != ""
}

func shortDigest(r RemoteID) (d [12]byte) {
	h := sha256.Sum256([]byte(r))
	copy(d[:], h[:])
	return d
}
