package archive

import "crypto/sha256"

// DigestSet is a set of texts, each as a part of its digest, so that millions fit in memory.
type DigestSet[T ~string] map[[12]byte]struct{}

// RemoteSet is a set of bumIds. If a record has no bumId, another text that
// identifies it may stand in its place.
type RemoteSet = DigestSet[RemoteID]

// Add puts text into the set and reports whether it was not there before.
func (s DigestSet[T]) Add(text T) bool {
	before := len(s)
	s[shortDigest(text)] = struct{}{}
	return len(s) > before
}

// Has reports whether text is in the set. An empty text never is.
func (s DigestSet[T]) Has(text T) bool {
	_, ok := s[shortDigest(text)]
	return ok && text != ""
}

func shortDigest[T ~string](text T) (d [12]byte) {
	h := sha256.Sum256([]byte(text))
	copy(d[:], h[:])
	return d
}
