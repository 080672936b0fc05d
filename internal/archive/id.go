package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// ID is the document's identity toward the service (its clientUUID), chosen once.
type ID [16]byte

// VaultID names a vault of the service, as the provider gave it.
type VaultID string

// RemoteID is the service's number of one registration (its bumId), as ParseRemoteID gives it. Two of them are one
// number if, and only if, they are equal byte by byte.
type RemoteID string

// Digest is a SHA-256.
type Digest [32]byte

// namespace is the root of all identities that vaultd derives. It never changes.
var namespace = uuid.MustParse("5c0d9f0e-6a0b-5e6e-9a52-0c5b0f6f2d11")

// ParseID reads the 36-character canonical form, in any case.
func ParseID(s string) (ID, error) {
	u, err := uuid.Parse(s)
	if err != nil || len(s) != 36 {
		return ID{}, fmt.Errorf("%q is not a UUID of 36 characters (8-4-4-4-12 hexadecimal digits)", shorten(s, 60))
	}
	return ID(u), nil
}

// DeriveID returns the identity of a document whose sidecar names none: UUID
// version 5 of the vault, the digest of its files and that of its metadata. The
// ZIP's bytes and the folder's name are no part of it.
func DeriveID(v VaultID, files, metadata Digest) ID {
	b := slices.Concat([]byte(v), []byte{0}, files[:], metadata[:])
	return ID(uuid.NewSHA1(namespace, b))
}

// Generation returns the n-th successor of the identity, for the rare document
// whose first identity the service refuses after having taken it; 0: the identity
// itself.
func (id ID) Generation(n int) ID {
	if n == 0 {
		return id
	}
	return ID(uuid.NewSHA1(uuid.UUID(id), fmt.Appendf(nil, "generation %d", n)))
}

// MaxGeneration bounds the successors of one identity. No document gets a later
// one, so that whoever looks for a document knows that it looked for all.
const MaxGeneration = 32

// Successors returns the later generations of an identity, the first one first.
func (id ID) Successors() iter.Seq2[uint8, ID] {
	return func(yield func(uint8, ID) bool) {
		for n := range MaxGeneration {
			if !yield(uint8(n+1), id.Generation(n+1)) {
				return
			}
		}
	}
}

// GenerationOf returns which generation of the identity other is, 0 for the
// identity itself.
func (id ID) GenerationOf(other ID) (n uint8, ok bool) {
	if id == other {
		return 0, true
	}
	for n, later := range id.Successors() {
		if later == other {
			return n, true
		}
	}
	return 0, false
}

// MaxDerivation bounds the identities that a document can get in the place of
// its derived one, where sidecars of other documents name that.
const MaxDerivation = 3

// Derivation returns the n-th identity (n ≥ 1) that follows a derived one which
// another document has. It has its own generations.
func (id ID) Derivation(n int) ID {
	return ID(uuid.NewSHA1(uuid.UUID(id), fmt.Appendf(nil, "derivation %d", n)))
}

// Derivations returns a derived identity with its number 0, and then those that
// follow it.
func (id ID) Derivations() iter.Seq2[int, ID] {
	return func(yield func(int, ID) bool) {
		if !yield(0, id) {
			return
		}
		for n := range MaxDerivation {
			if !yield(n+1, id.Derivation(n+1)) {
				return
			}
		}
	}
}

// Later returns all identities but id itself that a document of the identity id
// may have gone by. A chosen one has its own generations alone.
func (id ID) Later(isChosen bool) iter.Seq[ID] {
	return func(yield func(ID) bool) {
		for n, d := range id.Derivations() {
			if n > 0 && (isChosen || !yield(d)) {
				return
			}
			for _, later := range d.Successors() {
				if !yield(later) {
					return
				}
			}
		}
	}
}

// String returns the 36-character form in lower case.
func (id ID) String() string { return uuid.UUID(id).String() }

// MarshalText writes what String does, into JSON and logs alike.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// IsZero reports whether no identity was chosen yet.
func (id ID) IsZero() bool { return id == ID{} }

// ErrRemoteID says that an answer held a number we could not put in a path.
var ErrRemoteID = errors.New("not a usable bumId")

// ParseRemoteID checks a number that the service gave: 1 to 200 printable ASCII
// characters without a slash, so that it can stand in a path, a log and a report.
// A UUID is given in small letters, which the specification asks for, however an
// answer spells it; any other number is left as it came.
func ParseRemoteID(s string) (RemoteID, error) {
	if !isPathSegment(s) {
		return "", fmt.Errorf("%w: %q", ErrRemoteID, shorten(s, 60))
	}
	if id, err := ParseID(s); err == nil {
		return RemoteID(id.String()), nil
	}
	return RemoteID(s), nil
}

// Sum returns the digest of b.
func Sum(b []byte) Digest { return sha256.Sum256(b) }

// ParseDigest reads 64 hexadecimal digits.
func ParseDigest(s string) (Digest, error) {
	var d Digest
	if b, err := hex.DecodeString(s); err != nil || copy(d[:], b) != len(d) || len(b) != len(d) {
		return Digest{}, fmt.Errorf("%q is not a SHA-256 of 64 hexadecimal digits", shorten(s, 80))
	}
	return d, nil
}

// String returns 64 hexadecimal digits in lower case.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes what String does, into JSON and logs alike.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (d *Digest) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDigest(string(text))
	return err
}

// IsZero reports whether nothing was digested.
func (d Digest) IsZero() bool { return d == Digest{} }

func shorten(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
