package boltledger_test

import (
	"context"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/arrival"
	"vaultd/internal/ledger/boltledger"
)

// store is what the rules of a store use: nothing but what every store of a ledger has.
type store interface {
	Apply(ctx context.Context, cs ...ledger.Change) ([]ledger.Result, error)
	Submit(cs []ledger.Change, then func([]ledger.Result))
	ApplyArrival(ctx context.Context, c arrival.Change) (arrival.Arrival, error)
	CommitMark(ctx context.Context, m ledger.Mark, note *ledger.Note) error
	Listen(fn func([]ledger.Result)) (remove func())
	Failed() <-chan struct{}
	Err() error
	Close() error

	Info() ledger.Info
	Head() ledger.Head
	Balance() ledger.Balance
	SafeMode() (s ledger.SafeMode, ok bool)
	Entry(archive.Key) (e ledger.Entry, ok bool, err error)
	Document(archive.Key) (d ledger.Document, ok bool, err error)
	Notes(archive.Key) (map[uint32]ledger.Note, error)
	EntriesOldestFirst(fn func(ledger.Entry) error) error
	EntriesNewestFirst(fn func(ledger.Entry) error) error
	OpenEntries(fn func(ledger.Entry) error) error
	Queues(s ledger.Step) ([]string, error)
	DueInQueue(s ledger.Step, queue string, now time.Time, limit int, busy func(archive.Key) bool, skip func(ledger.Entry) bool) (ready []ledger.Entry, next time.Time, err error)
	FindByID(archive.ID) (k archive.Key, ok bool, err error)
	FindByContent(archive.Digest) (k archive.Key, ok bool, err error)
	FindByRemote(archive.RemoteID) (k archive.Key, ok bool, err error)
	FindSameNumber(ledger.Entry) (k archive.Key, ok bool, err error)
	FindArrival(kind arrival.Kind, item archive.ExtractID) (a arrival.Arrival, ok bool, err error)
	Arrivals(fn func(arrival.Arrival) error, states ...arrival.State) error
	DueArrivals(kind arrival.Kind, stage arrival.Stage, now time.Time, limit int, busy func(archive.Key) bool, skip func(arrival.Arrival) bool) (ready []arrival.Arrival, next time.Time, err error)
	Lines(from uint64, fn func(n uint64, line []byte) error) error
	Verify(context.Context) ([]ledger.Problem, error)
}

// opener opens a ledger, after Close the same one again. fault is called with "commit" before and with "committed" after each commit: an error
// plays one that failed.
type opener func(fault ...func(op string) error) store

// stores makes a ledger in each kind of store. A rule that is given to eachStore holds for all of them: another store gets a row.
var stores = map[string]func(testing.TB) opener{
	"bolt": func(t testing.TB) opener {
		c := boltledger.Config{Dir: newLedger(t)}
		return func(fault ...func(string) error) store {
			c.Fault = nil
			for _, c.Fault = range fault {
			}
			return open(t, c)
		}
	},
}

// eachStore holds each kind of store to a rule.
func eachStore(t *testing.T, rule func(t *testing.T, open opener)) {
	for name, make := range stores {
		t.Run(name, func(t *testing.T) { rule(t, make(t)) })
	}
}
