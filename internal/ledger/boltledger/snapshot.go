package boltledger

import (
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Snapshot is the ledger at one moment. It is valid only while the function runs that
// it was given to.
type Snapshot struct {
	Head    ledger.Head
	Balance ledger.Balance

	tx  *bbolt.Tx
	err error
}

// Snapshot calls fn with the ledger at one moment. While fn runs, pages that are
// replaced cannot be used again, and the file grows instead: fn must be done in a
// minute or so, and must never wait for a network or a person.
func (l *Ledger) Snapshot(fn func(*Snapshot) error) error {
	return l.view(func(tx *bbolt.Tx) error {
		_, s, err := readSelf(tx, l.form)
		if err != nil {
			return fmt.Errorf("read ledger: %w", err)
		}
		// Head, balance and entries come from one transaction: they agree with one another whatever is committed meanwhile.
		return fn(&Snapshot{Head: s.head, Balance: s.balance(), tx: tx})
	})
}

// Lines yields every journal line from number from on, as stored. Err says why it
// ended early.
func (s *Snapshot) Lines(from uint64) iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for next := max(from, 1); ; {
			lines, err := readLines(s.tx, next)
			if err != nil {
				s.err = fmt.Errorf("read journal: %w", err)
			}
			if len(lines) == 0 {
				return
			}
			for _, line := range lines {
				if !yield(next, line) {
					return
				}
				next++
			}
		}
	}
}

// Entries yields every entry, in the order of keys. Err says why it ended early.
func (s *Snapshot) Entries() iter.Seq[ledger.Entry] {
	return func(yield func(ledger.Entry) bool) {
		var from archive.Key
		for more := true; more; {
			var part []ledger.Entry
			var err error
			if part, more, err = readEntries(s.tx, &from, oldestFirst, [][]byte{openBucket, doneBucket}); err != nil {
				s.err = fmt.Errorf("read entries: %w", err)
				return
			}
			for _, e := range part {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Err returns what went wrong while reading.
func (s *Snapshot) Err() error { return s.err }
