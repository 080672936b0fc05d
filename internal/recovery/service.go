package recovery

import (
	"context"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/packager"
)

// Service is what is asked of the archive. *vaultapi.Client implements it.
type Service interface {
	Status(ctx context.Context, v archive.VaultID, r archive.RemoteID) (archive.Receipt, error)
	ReadStatusList(ctx context.Context, v archive.VaultID) (archive.StatusList, error)
	// ReadIndex calls each with every document of the index once, page by page. shown are their bumIds.
	ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (result archive.IndexResult, shown archive.RemoteSet, err error)
	// CheckIndex reports whether the vault answers a question about its index.
	CheckIndex(ctx context.Context, v archive.VaultID) error
}

// EntryReader looks up entries. *boltledger.Ledger implements it.
type EntryReader interface {
	EntriesOldestFirst(fn func(ledger.Entry) error) error
	Entry(archive.Key) (ledger.Entry, bool, error)
	FindByID(archive.ID) (archive.Key, bool, error)
	FindByContent(archive.Digest) (archive.Key, bool, error)
	// FindSameNumber returns the first other entry with the invoice number of e.
	FindSameNumber(e ledger.Entry) (archive.Key, bool, error)
	FindByRemote(archive.RemoteID) (archive.Key, bool, error)
}

// Committer commits changes. *boltledger.Ledger implements it.
type Committer interface {
	Apply(ctx context.Context, cs ...ledger.Change) ([]ledger.Result, error)
	Document(archive.Key) (ledger.Document, bool, error)
}

// Origin is a drop folder that documents came from, with the rules for what is in it.
type Origin struct {
	Name    string
	Route   ledger.Route      // empty: to the vault
	PDF     packager.PDFRules // of route ledger.PDF
	Vault   archive.VaultID
	Rules   packager.Rules
	Network packager.NetworkRules // of route ledger.Network: what its documents are; Rules stands in place of its own
	Folder  *drop.Folder          // nil: it cannot be read

	Retention archive.Retention // for how long the archive keeps what came from it; zero: unknown
}

// networkRules are the rules by which a folder that vaultd placed is read. What was sent once is not judged by what a document may hold
// today.
func (d Origin) networkRules() packager.NetworkRules {
	rules := d.Network
	rules.Rules = d.Rules
	rules.Complete, rules.CutOffPatience = "", 0
	rules.Check = func([]byte) []packager.DocumentFault { return nil }
	rules.CheckFileName = func(string) (string, bool) { return "", true }
	rules.TypeFiles = nil // no note tells the types
	return rules
}

const (
	listed = 500             // registrations that the status list of a vault holds at most
	askers = 8               // questions about single registrations at once
	margin = 5 * time.Minute // how far two machines' clocks may differ
	named  = 1000            // findings of one kind that a report names
)

// listLag is how long a registration may take to appear in the status list. What the list leaves out counts only after it.
func listLag(grace time.Duration) time.Duration { return grace / 4 }

// indexLag is how long a document may take to appear in the index before its absence is an alarm.
func indexLag(grace time.Duration) time.Duration { return min(grace/24, 15*time.Minute) }
