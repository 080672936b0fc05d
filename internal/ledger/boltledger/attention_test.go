package boltledger_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// I26: entries that need attention are counted by class, drop folder and vault
// as they change, by the times at which they were claimed, and the latest of
// them can be named.
func TestCountAttention_I26_FollowsTheEntries(t *testing.T) {
	l := open(t, boltledger.Config{Dir: newLedger(t)})
	var all []*doc
	for n := range 9 {
		d := newDoc(t, l, n)
		claim := d.claim().(ledger.ClaimedFolder)
		claim.Drop = []string{"acme", "beta"}[n%2]
		d.do(claim)
		all = append(all, d)
	}
	all[0].do(ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}})
	all[3].do(ledger.Refused{Cause: ledger.Cause{Code: "no-sidecar"}})
	newDoc(t, l, 9).archived()
	check := func(class ledger.Attention, before time.Time, want ...ledger.AttentionCount) {
		t.Helper()
		got, err := l.CountAttention(class, before)
		kit.Want(t, "the error", err, nil)
		kit.Want(t, fmt.Sprintf("entries of class %d before %v", class, before), got, want)
	}
	at := func(n int) time.Time { return all[n].e.SeenAt }
	check(ledger.Waiting, time.Time{}, ledger.AttentionCount{Drop: "acme", Route: ledger.Vault, Vault: "V1", Entries: 4, Oldest: at(2)}, ledger.AttentionCount{Drop: "beta", Route: ledger.Vault, Vault: "V1", Entries: 3, Oldest: at(1)})
	check(ledger.Waiting, at(4), ledger.AttentionCount{Drop: "acme", Route: ledger.Vault, Vault: "V1", Entries: 1, Oldest: at(2)}, ledger.AttentionCount{Drop: "beta", Route: ledger.Vault, Vault: "V1", Entries: 1, Oldest: at(1)})
	check(ledger.Waiting, at(1))
	check(ledger.RejectedUnresolved, time.Time{}, ledger.AttentionCount{Drop: "acme", Route: ledger.Vault, Vault: "V1", Entries: 1, Oldest: at(0)}, ledger.AttentionCount{Drop: "beta", Route: ledger.Vault, Vault: "V1", Entries: 1, Oldest: at(3)})
	check(ledger.InQuarantine, time.Time{})
	for before, want := range map[time.Time][]archive.Key{
		{}:    {all[8].e.Key, all[7].e.Key, all[6].e.Key},
		at(5): {all[4].e.Key, all[2].e.Key, all[1].e.Key},
		at(1): nil,
	} {
		es, err := l.LatestAttention(ledger.Waiting, before, 3)
		var keys []archive.Key
		for _, e := range es {
			keys = append(keys, e.Key)
		}
		kit.Check(t, err == nil && reflect.DeepEqual(keys, want), "before %s: %v %v, want %v", before, keys, err, want)
	}
	sound(t, l)
}
