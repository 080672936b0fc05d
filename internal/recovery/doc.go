// Package recovery finds out what happened while a ledger was not there. Rebuild makes a new one of what
// lies in the drop folders; Reconcile holds a ledger against the archive's status list and index, tells the
// entries what the archive knows of them, and says when it is safe to send and to remove again.
//
// It never sends a document, never moves or removes a folder, and never takes silence for an answer: that a
// document was not registered is believed only where the archive's list reaches back behind the ledger's last
// line, or where nothing can be under way any more and the whole index was read since.
//
// It keeps nothing of its own. After a crash, doing it again finds what was done already in the ledger and
// goes on; a ledger that is being rebuilt is not in its place before it is whole.
package recovery

import (
	"context"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
)

// Service is the archive, as far as it is asked here. *vaultapi.Client is one.
type Service interface {
	Status(ctx context.Context, v archive.VaultID, r archive.RemoteID) (archive.Receipt, error)
	ReadStatusList(ctx context.Context, v archive.VaultID) (archive.StatusList, error)
	// ReadIndex calls each with every document of the index once, page by page. shown are their bumIds.
	ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (result archive.IndexResult, shown archive.RemoteSet, err error)
	// CheckIndex reports whether the vault answers a question about its index.
	CheckIndex(ctx context.Context, v archive.VaultID) error
}

// Book is where entries are looked up. *boltledger.Ledger is one.
type Book interface {
	Entries(from archive.Key, reverse bool, fn func(ledger.Entry) error) error
	Entry(archive.Key) (ledger.Entry, bool, error)
	FindByID(archive.ID) (archive.Key, bool, error)
	FindByRemote(archive.RemoteID) (archive.Key, bool, error)
	FindEntriesByRemote([]archive.RemoteID) ([]ledger.Entry, error)
}

// Committer is where changes are made. *boltledger.Ledger is one.
type Committer interface {
	Apply(ctx context.Context, cs ...ledger.Change) ([]ledger.Result, error)
	Document(archive.Key) (ledger.Document, bool, error)
}

// Drop is one drop folder that is open, and what is asked of what lies in it.
type Drop struct {
	Name   string
	Vault  archive.VaultID
	Rules  packager.Rules
	Folder *drop.Folder // nil: it is not looked through

	Retention archive.Retention // for how long the archive keeps what came from it; zero: not known
}

const (
	listed = 500             // registrations that the archive's list goes back
	askers = 8               // questions about single registrations at once
	margin = 5 * time.Minute // between two machines' clocks
	named  = 1000            // findings of one kind that are kept by name
)

// listLag is how long a registration may take to show in the archive's list: what that leaves out is believed only then.
func listLag(grace time.Duration) time.Duration { return grace / 4 }

// indexLag is how long a document may take to show in the archive's index before its absence is an alarm.
func indexLag(grace time.Duration) time.Duration { return min(grace/24, 15*time.Minute) }
