package boltledger

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
)

// The forms of the records that a ledger stores.
var (
	entryForm    = formOf[ledger.Entry]()
	documentForm = formOf[ledger.Document]()
	noteForm     = formOf[ledger.Note]()
	blockForm    = formOf[block]()
	summaryForm  = formOf[summary]()
	scanForm     = formOf[ledger.Scan]()
	arrivalForm  = formOf[arrival.Arrival]()
	noticeForm   = formOf[ledger.Notice]()
)

// block holds the journal lines of one commit.
type block struct {
	Prev  archive.Digest `stored:"1"` // hash of everything before
	Lines [][]byte       `stored:"3"`
}

// secret is what a ledger keeps for itself: the key of the digests that replace
// objects at the service's store, and the seed of the key that signs receipts.
// It is made with the ledger, and a copy of the ledger has it too: the copy
// needs it to find digests, and to sign.
type secret struct {
	Key  [32]byte `stored:"1"`
	Seed [32]byte `stored:"2"`
}

func newSecret() (s secret) {
	_, _ = rand.Read(s.Key[:]) // they always succeed
	_, _ = rand.Read(s.Seed[:])
	return s
}

// signingKey returns the private key that signs receipts.
func (s secret) signingKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(s.Seed[:]) }

// publicKey returns the public half as people and programs read it: base64 of
// its X.509 form, as between the lines of a PEM file.
func (s secret) publicKey() string {
	der, err := x509.MarshalPKIXPublicKey(s.signingKey().Public())
	if err != nil {
		panic(fmt.Sprintf("encode a public key: %v", err)) // an Ed25519 key always encodes
	}
	return base64.StdEncoding.EncodeToString(der)
}

// SignReceipt signs the text of a receipt with the key of this ledger, and
// returns the signature with the public half of the key, which is the first of
// [ledger.Info.ReceiptKeys].
func (l *Ledger) SignReceipt(text []byte) (signature []byte, publicKey string) {
	s := l.committed().Secret
	return ed25519.Sign(s.signingKey(), text), s.publicKey()
}

// summary is what a ledger says of itself, and what is in memory of it. Each
// commit writes it.
type summary struct {
	Head     ledger.Head     `stored:"1"`
	Balance  ledger.Balance  `stored:"2"`
	Arrivals arrival.Balance `stored:"3"`
	Marks    uint64          `stored:"4"` // lines that belong to no entry, the first one not counted
	Alarmed  time.Time       `stored:"5"` // the latest that one of them tells of having lost something
	Clocks   clockComparison `stored:"6"`
	Names    uint64          `stored:"7"` // records in the bucket of names
	Success  time.Time       `stored:"8"` // the newest of the service's times of success, each at most that of its line
	Info     ledger.Info     `stored:"9"`
	Secret   secret          `stored:"10"` // fixed when the ledger was made
	This     incarnation     `stored:"11"`
	Safe     safeRecord      `stored:"12"` // empty: not in safe mode

	Differing  []difference `stored:"13"`
	Unfiltered bool         `stored:"14"` // the network was seen to ignore the question for received documents
	At         time.Time    `stored:"15"` // of the journal's last line
}

// clockComparison is what the newest answer to a registration that gave the service's time tells of the clocks; zero: none did.
type clockComparison struct {
	Asked   time.Time `stored:"1"` // by our clock, before the call left
	Service time.Time `stored:"2"` // by the service's clock, as it answered
}

// safeRecord is why the ledger is in safe mode, and whether some of its entries still have to
// be marked as to be reconciled: whoever opens the ledger finishes that first.
type safeRecord struct {
	ledger.SafeMode `stored:"1"`
	Marking         bool `stored:"2"`
}

// incarnation numbers the files of one ledger. A restore, a rebuild and a
// start on an older file begin a later one, which has an outside head of its
// own: no head of an earlier file is taken for that of a later one.
type incarnation struct {
	N    uint64 `stored:"1"`
	From uint64 `stored:"2"` // the journal line with which it began: up to it, there may be no outside head yet
}

// encodeEntry writes an entry, but for what the rest of it tells (the identity, of the first one
// and the generation), what the spool tells (where the package lies), and what nobody asks for
// once the entry is at rest (the digest that went along with an upload).
func encodeEntry(e ledger.Entry, home []byte) []byte {
	// Left out where it can be computed: sixteen bytes of every entry.
	if e.ID == identityOf(e, e.Generation) {
		e.ID = archive.ID{}
	}
	if bytes.Equal(home, doneBucket) {
		e.Package.MD5 = [16]byte{}
	}
	e.Package.Path = ""
	return entryForm.encode(&e)
}

// decodeEntry reads an entry and refuses numbers that this schema does not know: a
// state is an index into the balance.
func decodeEntry(record []byte) (ledger.Entry, error) {
	e, err := entryForm.decode(record)
	if err == nil && (e.State == ledger.None || e.State > ledger.Quarantined || e.Source > ledger.Gone) {
		err = fmt.Errorf("read Entry: state %d, source %d", e.State, e.Source)
	}
	// Computed again, so that readers never see the difference.
	if e.ID.IsZero() && !e.FirstID.IsZero() {
		e.ID = identityOf(e, e.Generation)
	}
	return e, err
}
