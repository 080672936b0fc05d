package archive

import (
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Instant is one moment on the three clocks that deadlines need: the wall clock
// for people, and the boot clock (which goes on during suspend and is never set)
// with the name of the boot that it belongs to.
type Instant struct {
	Wall   time.Time     `stored:"1"`
	Boot   time.Duration `stored:"2"` // since boot, suspend included
	BootID string        `stored:"3"`
	Slept  time.Duration `stored:"4"` // of Boot, for how long the machine was suspended
}

// Since returns the time from earlier to i on the boot clock; ok is false when
// the machine was rebooted in between, so that nobody can tell.
func (i Instant) Since(earlier Instant) (d time.Duration, ok bool) {
	return i.Boot - earlier.Boot, i.BootID == earlier.BootID && i.BootID != ""
}

// suspendTolerance is how far Slept may differ between two readings without a suspend, because its two clocks are not read at
// the same moment.
const suspendTolerance = time.Second

// SleptSince reports whether the machine was suspended between earlier and i, which are
// of the same boot.
func (i Instant) SleptSince(earlier Instant) bool { return i.Slept-earlier.Slept > suspendTolerance }

// clockTolerance is how far two readings of a clock that nobody set may be in the wrong order: the clocks of several machines of
// one service differ by as much.
const clockTolerance = 5 * time.Minute

// ReliableElapsed returns the time that has certainly passed by two clocks: the lesser of both. A clock that went back meanwhile was
// set, and does not count.
func ReliableElapsed(ours, theirs time.Duration) time.Duration {
	switch {
	case ours < -clockTolerance:
		return theirs
	case theirs < -clockTolerance:
		return ours
	}
	return min(ours, theirs)
}

// Package is a sealed ZIP. Size and digests are those of the bytes on disk, read
// back after they were written; they are the bytes that are sent.
type Package struct {
	Path   string   `stored:"1"` // where it lies now; not part of its identity
	Size   int64    `stored:"2"`
	SHA256 Digest   `stored:"3"`
	MD5    [16]byte `stored:"4"` // for Content-MD5, where the store takes that, and to compare an ETag
}

// IsZero reports whether nothing was sealed.
func (p Package) IsZero() bool { return p.Size == 0 && p.SHA256.IsZero() }

// PresignedURL is an upload address that carries its own authority. It is a
// secret: whatever prints it prints a placeholder.
type PresignedURL string

// String hides the address.
func (PresignedURL) String() string { return "[presigned]" }

// MarshalText hides the address from JSON and other encoders.
func (PresignedURL) MarshalText() ([]byte, error) { return []byte("[presigned]"), nil }

// Format hides the address from every verb: fmt prints the value itself under one that does not fit a text.
func (PresignedURL) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[presigned]") }

// LogValue hides the address from slog.
func (PresignedURL) LogValue() slog.Value { return slog.StringValue("[presigned]") }

// Header is one request header that a ticket asks for.
type Header struct {
	Name  string `stored:"1"`
	Value string `stored:"2"`
}

// RequestID is the id by which the support of a service finds one call: vaultd's
// own id of a call to a service, the store's of an upload. It is safe to show and
// has at most 150 characters.
type RequestID string

// Ticket is the grant to upload one package: the service's number, the address,
// and what is known about how long the address works.
type Ticket struct {
	Remote  RemoteID     `stored:"1"`
	URL     PresignedURL `stored:"2"`
	Headers []Header     `stored:"3"`
	Object  ObjectDigest `stored:"8"` // of the object that URL leads to; it stays when URL is wiped

	Sent     Instant       `stored:"4"` // read before the POST left
	Date     time.Time     `stored:"5"` // the service's clock as its answer gave it; zero: missing
	SignedAt time.Time     `stored:"6"` // from when Validity counts, on the service's clock; zero: it counts from Sent
	Validity time.Duration `stored:"7"` // how long the ticket is used; zero: unknown

	Request RequestID `stored:"10"` // of the call that gave it

	WithoutMD5 bool `stored:"9"` // the package goes to URL without Content-MD5, which stores refuse where the address does not sign it
}

// unknownLife is the life of a ticket of which nothing tells it.
const unknownLife = 15 * time.Minute

// Life returns how long the ticket is used, counted from Sent. If its Validity
// counts by the service's clock, a second is taken off for the resolution of
// the service's Date. It is negative where the ticket was over when it came.
func (t Ticket) Life() time.Duration {
	switch {
	case t.Validity <= 0:
		return unknownLife
	case t.SignedAt.IsZero() || t.Date.IsZero():
		return t.Validity
	}
	return t.SignedAt.Add(t.Validity).Sub(t.Date) - time.Second
}

// LimitLife returns the ticket with a life of at most longest, or of longest where it does not tell one. The life that it limits
// counts from Sent.
func (t Ticket) LimitLife(longest time.Duration) Ticket {
	if t.Validity <= 0 || t.Life() > longest {
		t.SignedAt, t.Validity = time.Time{}, longest
	}
	return t
}

// RegisterResult is what the answer to a registration says of the documents that were registered, matched by identity
// alone. A document that stands in none of the three maps got no usable record.
type RegisterResult struct {
	Tickets map[ID]Ticket
	Barred  map[ID]string // registered, but its ticket is against policy: why
	Crossed map[ID]string // named twice, or sharing a bumId or an address with another: why
	Foreign int           // records that name no identity that was asked for
}

// ServiceStatus is what the service says of one registration.
type ServiceStatus uint8

// The values. Absent is the service's "unknown bumId" (404), which stands in no record. Unfamiliar is any word that this program
// does not know; it never counts as another value.
const (
	Unfamiliar ServiceStatus = iota
	WaitingForPackage
	InProgress
	Successful
	Failed
	Absent
)

// String returns the text for reports and journal lines.
func (w ServiceStatus) String() string {
	return [...]string{"unfamiliar", "waiting", "in-progress", "successful", "failed", "absent"}[min(w, Absent)]
}

// Receipt is the service's answer about one registration.
type Receipt struct {
	Remote  RemoteID
	ID      ID // zero where the answer names none
	Status  ServiceStatus
	Raw     string    // the word as it was written
	Updated time.Time // lastUpdated on the service's clock; zero: missing
	Date    time.Time // the service's clock as its answer gave it; zero: missing
	Message string
	Request RequestID // of the call that brought it
	Record  []byte    // the record as it came, for evidence; at most 4 KiB
}
