package report

import (
	"fmt"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/expected"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
)

// Source is a ledger as the audit reads it. The entries and Lines are read in parts, so
// that an audit that is written slowly blocks nobody.
type Source interface {
	EntriesOldestFirst(fn func(ledger.Entry) error) error
	EntriesNewestFirst(fn func(ledger.Entry) error) error
	Entry(key archive.Key) (ledger.Entry, bool, error)
	Document(key archive.Key) (ledger.Document, bool, error)
	Lines(from uint64, fn func(n uint64, line []byte) error) error
}

// Config says what an audit is about and how it is written.
type Config struct {
	Ledger Source
	Info   ledger.Info
	Head   ledger.Head // of the journal when the audit begins
	Safe   string      // why the ledger is in safe mode, and what it does not know; empty: it is not

	Examined Examined         // up to Head
	Problems []ledger.Problem // with records of the ledger, that were found before

	Select     Selection
	Made       time.Time
	Location   *time.Location          // of times for people and of billing years; nil: UTC
	Program    string                  // name and version of who writes it
	Host       string                  // the machine; empty: unknown
	By         string                  // the person who asked; empty: unknown
	Rule       billing.Rule            // what was agreed with the provider
	Price      archive.Decimal         // of one download, in the rule's currency
	AlertAfter time.Duration           // open for longer needs a person; zero: never
	Person     func(uid uint32) string // names a user; nil: by number

	// Drops are the drop folders and what was not taken in them. Running says that vaultd runs, so that this is so now.
	Drops   []present.DropScan
	Running bool

	// Ended reports whether the retention of an archived entry is over. Nil: nobody knows of any.
	Ended func(ledger.Entry) bool

	// ReceiptLink gives the link to a receipt of a drop folder, by its path there, as it works for who opens the page; empty
	// where none would. Nil: the page has no links.
	ReceiptLink func(drop, path string) string

	// Reason gives what somebody said when his act made the entry's revision; empty where
	// nothing was said, or it is erased. Nil: nothing is shown.
	Reason func(key archive.Key, rev uint32) (string, error)

	Expected *expected.List // of the selection; nil: nobody said what was expected
	Booked   *BookedPart    // of the selection's time; nil: it is not known what was booked, or a list says what was expected
}

// Selection says which folders the audit is about; the zero one selects all.
type Selection struct {
	Year   int        // of the document's date; where there is none, of the day it was taken
	Month  time.Month // of that year; 0: all of it
	Vault  archive.VaultID
	Drop   string
	States map[ledger.State]bool // empty: all

	SinceLast bool // what was on its way or was taken since the last report that said so; it goes with nothing else
}

// isEverything reports whether nothing is left out.
func (s Selection) isEverything() bool {
	return s.Year == 0 && s.Vault == "" && s.Drop == "" && len(s.States) == 0 && !s.SinceLast
}

// String says in words what is selected.
func (s Selection) String() string {
	var parts []string
	add := func(on bool, format string, a ...any) {
		if on {
			parts = append(parts, fmt.Sprintf(format, a...))
		}
	}
	add(s.Year != 0 && s.Month == 0, "document dates of %d", s.Year)
	add(s.Year != 0 && s.Month != 0, "document dates of %s %d", s.Month, s.Year)
	add(s.Vault != "", "vault %s", s.Vault)
	add(s.Drop != "", "drop %s", s.Drop)
	var states []string
	for _, st := range ledger.States() {
		if s.States[st] {
			states = append(states, st.String())
		}
	}
	add(len(states) > 0, "only %s", strings.Join(states, ", "))
	if len(parts) == 0 {
		return "everything that was ever taken"
	}
	return strings.Join(parts, "; ")
}

// Audit is an examined ledger, ready to be written in any form.
type Audit struct {
	Summary Summary

	c      Config
	counts ledger.Balance // of the selection
	proof  proof.Report
	match  *matcher
	since  *since

	hasDeliveries bool // the selection has a document that is not to be archived
}

// selectsEntry reports whether e is selected, as far as e itself can tell: year and month are
// asked of its document.
func (s Selection) selectsEntry(e ledger.Entry) bool {
	return (len(s.States) == 0 || s.States[e.State]) && (s.Drop == "" || s.Drop == e.Drop) && (s.Vault == "" || s.Vault == e.Vault)
}

// selectsDayOf reports whether the document belongs to the year, or to the month of it.
func (s Selection) selectsDayOf(e ledger.Entry, m archive.Document, loc *time.Location) bool {
	return s.Year == 0 || s.isInPeriod(dayOf(e, m, loc))
}

// isInPeriod reports whether a day, as it is written, lies in the selected year or month; none does where no year is selected.
func (s Selection) isInPeriod(day time.Time) bool {
	return day.Year() == s.Year && (s.Month == 0 || day.Month() == s.Month)
}

// dayOf returns the day by which a document counts: its date as it is written, else the day on which the folder was taken.
func dayOf(e ledger.Entry, m archive.Document, loc *time.Location) time.Time {
	if t, err := time.Parse(time.RFC3339, m.Date); err == nil {
		return t.UTC()
	}
	return e.SeenAt.In(loc)
}
