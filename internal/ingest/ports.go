package ingest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Ledger is where entries live and where every change is committed.
type Ledger interface {
	// Submit commits the changes and then calls then, which must not block.
	Submit(cs []ledger.Change, then func([]ledger.Result))
	Entry(archive.Key) (ledger.Entry, bool, error)
	Document(archive.Key) (ledger.Document, bool, error)
}

// Index finds entries: by what is due, and by the identity that they hold.
type Index interface {
	// Queues returns the queues that hold anything for a step, be it due or not yet:
	// "drop NAME" or "vault ID", see [ledger.QueueOf].
	Queues(ledger.Step) ([]string, error)
	// DueInQueue returns entries of a queue whose step is due, but for those that busy or skip
	// names (nil: none), and when the next one will be. One that is busy is not even read.
	DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) ([]ledger.Entry, time.Time, error)
	FindByID(archive.ID) (archive.Key, bool, error)
	LastAlarm() time.Time // when the ledger last lost something; zero: never
	FindByContent(archive.Digest) (archive.Key, bool, error)
	// FindSameNumber returns the entry whose invoice number another one, as it would be sealed, repeats.
	FindSameNumber(ledger.Entry) (archive.Key, bool, error)
	FindByRemote(archive.RemoteID) (archive.Key, bool, error)
}

// Client takes the documents of one route to their service. Its errors are *apicall.Error.
type Client interface {
	// Register asks for tickets. v is empty for a service that has no vaults.
	Register(ctx context.Context, v archive.VaultID, frozen []archive.RegisterRequest) (archive.RegisterResult, error)
	// Upload sends the package once. It returns the digest of the bytes that
	// left, and the store's ETag where it is an MD5. Other bytes than the
	// package's never leave whole: its error is Damaged then. Its error has
	// RefusesMD5 where the store takes the package without Content-MD5 alone,
	// which is then the ticket's to say.
	Upload(ctx context.Context, t archive.Ticket, p archive.Package) (sent archive.Digest, etag string, err error)
	// OmitsMD5 reports whether a package goes to the address without
	// Content-MD5, by what its host took so far.
	OmitsMD5(address archive.PresignedURL) bool
	// HostsWithoutMD5 returns the hosts that took packages only so.
	HostsWithoutMD5() []string
}

// Asker tells what became of documents. Its errors are *apicall.Error.
type Asker interface {
	Status(ctx context.Context, v archive.VaultID, r archive.RemoteID) (archive.Receipt, error)
	StatusList(ctx context.Context, v archive.VaultID) ([]archive.Receipt, error)
}

// Packer turns a claimed folder into a sealed ZIP.
type Packer interface {
	// Fingerprint returns the folder's fingerprint now. Its error is an *OpenError
	// while a program may still write to a file in it.
	Fingerprint(e ledger.Entry) (archive.Digest, error)
	// Pack seals the folder into the spool. Its error is a *RefusedError for
	// the document's own faults, [archive.ErrChanged] when a file changed
	// meanwhile, a *MountedError for a mount in the folder, and anything else
	// for the environment's.
	Pack(ctx context.Context, e ledger.Entry) (Packed, error)
	// FindPackage returns the package where it lies, or an error wrapping fs.ErrNotExist.
	FindPackage(e ledger.Entry) (archive.Package, error)
	// CheckPackage reads the package. Its error wraps fs.ErrNotExist where that is missing, or is not what was sealed.
	CheckPackage(ctx context.Context, e ledger.Entry) error
	// RemovePackage removes the spooled package, if any.
	RemovePackage(e ledger.Entry) error
}

// Packed is a sealed ZIP with all that the ledger wants to know.
type Packed struct {
	Sealed   ledger.Sealed
	Document ledger.Document
	AsRead   archive.AsRead // the sidecar as it is written, for a folder that goes no further
}

// Mover moves a source to where it belongs when its entry has ended.
type Mover interface {
	// Destination proposes a free place, relative to the drop folder.
	Destination(e ledger.Entry, now time.Time) (string, error)
	// Place writes what people should read into the folder and moves it to
	// e.Dest. It does nothing when that was done before.
	// [archive.ErrDestinationTaken]: another folder lies there. *MountedError:
	// nothing was moved. *RefusedError: it was moved, and something in a kept
	// folder is not what was archived.
	Place(ctx context.Context, e ledger.Entry, d ledger.Document) error
	// Dispose moves or deletes a kept source, file by file, after checking each, and
	// returns where it went; empty: nowhere. Its error is a *RefusedError where
	// something there must not be removed, and a *MountedError for a mount in the folder.
	Dispose(ctx context.Context, e ledger.Entry, d ledger.Document) (dest string, err error)
}

// Drop is one drop folder as the engine sees it.
type Drop struct {
	Name        string
	Route       ledger.Route
	Vault       archive.VaultID
	Request     []byte // what a registration from this drop says, whatever the document is; nil: that is the document's own
	SendsAgain  bool   // what was sent before is sent again, as the next generation of its identity; false: it is a duplicate
	Settle      time.Duration
	Holds       Holds
	Grace       time.Duration // before a kept source is disposed of
	Disposes    bool          // false: kept sources stay
	Packer      Packer
	Mover       Mover
	Unavailable func() error // returns why the folder cannot be worked in just now
}

// Holds says which documents wait for a person before they are sent. What is not held is archived, and told of.
type Holds struct {
	SameContent bool // the same files as another one, with other metadata
	SameNumber  bool // the invoice number of another one
	StrangeDate bool // a date that it can hardly be of
	CutOff      bool // a file that looks cut off
}

// ErrFull says that the spool has no room for a package. Nothing is wrong:
// packages leave as they are uploaded.
var ErrFull = errors.New("the spool is full")

// RefusedError says that the document itself, or what lies beside it, is at fault.
type RefusedError struct {
	Cause ledger.Cause
	Known ledger.Document // what could be read all the same: AsRead, Files (nil: not known) and FileOwners
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Cause.Code + ": " + e.Cause.Text }

// DisposalLimitError says that far more of a drop's archived folders are due for removal than it
// is used to. None of them goes before a person says so.
type DisposalLimitError struct {
	Drop       string
	Due, Usual int // folders due now; a day's number that would still be usual
}

// Error implements error.
func (e *DisposalLimitError) Error() string {
	return fmt.Sprintf("%d archived folders are due for removal at once, far more than usual (up to %d a day): a clock that is wrong, or a changed grace? Nothing is removed before a person approves: vaultd resume %q --reason TEXT",
		e.Due, e.Usual, DisposalTarget(e.Drop))
}

// Unreadable is the code of the cause of an entry that waits for rights on its files.
const Unreadable = ledger.CauseCannotBeRead

// UnreadableError says that something in a claimed folder may not be read. A person
// must give the right to it; until then it is tried again, for no document is to blame.
type UnreadableError struct{ Text string }

// Error implements error.
func (e *UnreadableError) Error() string { return e.Text }

// CauseStillOpen is the code of the cause of an entry with a file to which a
// program may still write.
const CauseStillOpen = "still-open"

// OpenError says that a program may still write to a file of a claimed folder:
// it has the file open.
type OpenError struct{ Path string } // in the folder

// Error implements error.
func (e *OpenError) Error() string {
	return strconv.Quote(e.Path) + " is still open in a program that may write to it: close it there"
}

// MountedError says that something is mounted in a folder of ours: what lies there belongs to another place. Nothing of the
// folder is packed, moved, returned or removed while it is there.
type MountedError struct {
	Text  string
	Place string // in the drop folder, where folders of many entries lie, as "_archived"; empty: it is in the folder itself
}

// Error implements error.
func (e *MountedError) Error() string { return e.Text }

// The codes of the causes of an entry that waits for its claimed folder, or for
// the end of another entry of the same content, and of one whose identity is
// another document's. Their texts are facts alone: package present words them.
const (
	CauseClaimedMissing = "claimed-missing"
	CauseUnderWay       = "same-invoice-under-way"
	CauseIdentityTaken  = "clientuuid-taken"
)

// CauseMounted is the code of the cause of an entry, and of a pause, for a mount in its folder.
const CauseMounted = "foreign-mount"

// causeOf returns a failed call as the cause that an entry keeps.
func causeOf(e *apicall.Error) ledger.Cause { return ledger.Cause{Code: e.Code, Text: e.Error()} }
