package boltledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// differing are the vaults whose archive's index differed from the ledger at
// the last comparison that concluded something, each with the journal line of
// that comparison.
type differing map[archive.VaultID]uint64

// addLine takes in a line of the journal.
func (d differing) addLine(l ledger.Line) {
	if l.Key != "" || l.Event != ledger.MarkCompared {
		return
	}
	// A comparison that concluded nothing leaves what was found before.
	switch outcome, _, _ := ledger.ParseComparedCause(l.Cause); {
	case ledger.IsDifference(outcome):
		d[archive.VaultID(l.Vault)] = l.N
	case outcome == ledger.CompareSame:
		delete(d, archive.VaultID(l.Vault))
	}
}

// readDiffering reads what is kept of them.
func readDiffering(tx *bbolt.Tx) (differing, error) {
	d := differing{}
	for row := range strings.SplitSeq(string(tx.Bucket(metaBucket).Get(differingKey)), "\n") {
		if row == "" {
			continue
		}
		number, vault, _ := strings.Cut(row, " ")
		n, err := strconv.ParseUint(number, 10, 64)
		if err != nil || vault == "" {
			return nil, damage("the vaults whose index differed: %q", row)
		}
		d[archive.VaultID(vault)] = n
	}
	return d, nil
}

// noteCompared keeps what a comparison with the archive's index found. It goes
// into the commit of its line: no crash leaves one without the other.
func (g *groupCommit) noteCompared(l ledger.Line) error {
	d, err := readDiffering(g.tx)
	if err != nil {
		return err
	}
	d.addLine(l)
	if len(d) == 0 {
		return g.tx.Bucket(metaBucket).Delete(differingKey)
	}
	var text strings.Builder
	for _, v := range slices.Sorted(maps.Keys(d)) {
		fmt.Fprintf(&text, "%d %s\n", d[v], v)
	}
	return g.tx.Bucket(metaBucket).Put(differingKey, []byte(text.String()))
}

// DifferingIndexes returns the journal lines of the last comparisons with the
// archive's index that concluded something, of the vaults where that differed,
// in the order of the vaults. It is cheap to ask.
func (l *Ledger) DifferingIndexes() (all []ledger.Line, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		d, err := readDiffering(tx)
		if err != nil {
			return err
		}
		for _, v := range slices.Sorted(maps.Keys(d)) {
			one, err := lineAt(tx, d[v])
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		return nil
	})
	return all, err
}
