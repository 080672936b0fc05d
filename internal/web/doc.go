// Package web is the web port of vaultd. It answers the questions of machines that watch over vaultd: whether it lives, whether it is
// ready, and its metrics for Prometheus. It stands before the pages for people: it lets users sign in, checks sessions, forms and where
// requests come from, bounds what is in work at once, and tells the pages who asks: see [Visitor]. It listens on this machine alone,
// unless both TLS and users are set.
//
// It never reads the ledger, the configuration or a drop folder itself and decides nothing about documents: to machines it shows [Facts],
// which the program makes from the same status summary that the status command shows. No answer to a machine holds a folder name, a text
// of a sidecar or an address of the service: labels are states, reasons and ids of the configuration. No password, hash or id of a
// session is in a log or an error.
//
// A crash loses sessions, and nothing else: people sign in again. Every gauge comes from the ledger or the disk, so it has the same value
// after the next start. The help of the few counters of this process says that they begin at zero.
package web

import (
	"time"

	"vaultd/internal/ledger"
)

// Facts are what the health pages and the metrics show, at one moment. Sizes are bytes, and -1 where they cannot be told; times are zero where
// there is none.
type Facts struct {
	NoLedger    bool // the ledger is not opened, and no figure of it is known
	At          time.Time
	Version, Go string
	Environment string // test or production

	Balance     ledger.Balance
	NeedsPerson map[string]int // by the stable word of the table of needs; zero where all is well
	OldestOpen  time.Time      // when the oldest folder on its way was taken
	LastSuccess time.Time      // the newest of the archive's times of success

	Pauses   []Pause
	Drops    []DropFacts
	NotTaken []NotTaken
	Bills    []Bill // of this year; none where the catalog is not complete

	CatalogComplete bool // but for the last few seconds

	SpoolUsed, SpoolMax int64
	StateFree           int64 // on the disk of the ledger
	LedgerSize          int64
	Lines               uint64 // of the journal
	Commits, Changes    uint64 // since the process began
	Syncs               uint64 // of the ledger, since the process began

	FileSyncs, DirectorySyncs uint64 // since the process began: packages, receipts and notes, and the folders that hold them

	SafeMode      bool      // nothing is taken, sent or removed before the archive was asked
	Checked       time.Time // when the last full check of the ledger ended
	CheckFindings int       // of it

	Reloaded   time.Time // when the configuration was last read, at the start or later
	ReloadGood bool      // and whether it was good

	Dead  []string // why vaultd does not live; in words, without names of folders
	Unfit []string // why it lives and is not ready: pauses, drops that cannot be worked in, overdue folders
}

// Pause is a target whose circuit breaker is open.
type Pause struct {
	Route, Code string
	Since       time.Time
}

// DropFacts is what is known of one drop folder.
type DropFacts struct {
	Name   string
	Paused bool
	Listed time.Time // when it was last looked through
	Free   int64
}

// NotTaken counts the things in a drop folder that were not taken for one reason.
type NotTaken struct {
	Drop, Reason string
	Count        int
}

// Bill is how far the included storage of one vault is used up; Vault is empty for the customer.
type Bill struct {
	Vault string
	Used  float64 // 1 is all of it
}
