package archive

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"strings"
	"time"
)

// Key is our local number of a claimed item: 48 bits of Unix milliseconds and 80
// random bits. Keys sort by time and are unique without asking the ledger.
type Key [16]byte

// crockford is Crockford's base 32 in lower case: it sorts as the bytes do and
// survives file systems that ignore case.
var crockford = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// NewKey returns a fresh key for an item claimed at now.
func NewKey(now time.Time) Key {
	var k Key
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(max(now.UnixMilli(), 0)))
	copy(k[:6], ms[2:])
	rand.Read(k[6:]) // never fails: the runtime stops the process instead
	return k
}

// ParseKey reads the 26-character form that String writes, in any case.
func ParseKey(s string) (Key, error) {
	var k Key
	b, err := crockford.DecodeString(strings.ToLower(s))
	if err != nil || len(s) != 26 || len(b) != len(k) || crockford.EncodeToString(b) != strings.ToLower(s) {
		return k, fmt.Errorf("parse key %q: want 26 characters of 0-9 and a-z without i, l, o, u", s)
	}
	copy(k[:], b)
	return k, nil
}

// String returns the key as 26 characters that sort as the key does.
func (k Key) String() string { return crockford.EncodeToString(k[:]) }

// IsZero reports whether k is no key at all.
func (k Key) IsZero() bool { return k == Key{} }

// Time returns the instant of the claim, to the millisecond.
func (k Key) Time() time.Time {
	var ms [8]byte
	copy(ms[2:], k[:6])
	return time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC()
}

// MarshalText writes what String does, into JSON and logs alike.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (k *Key) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKey(string(text))
	return err
}
