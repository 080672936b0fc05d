package boltledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.etcd.io/bbolt"

	"vaultd/internal/ledger"
)

// PutScans stores what was last seen in some drop folders, in place of what was known of them. No journal line tells of it.
// It waits for the commit. The error wraps [ledger.ErrIllegal] where a scan has no drop or names too much.
func (l *Ledger) PutScans(ctx context.Context, scans ...ledger.Scan) error {
	return l.askCommitter(ctx, func(g *groupCommit) (refused, err error) {
		for _, s := range scans {
			if s.Drop == "" || len(s.Pending) > ledger.MaxPending {
				return fmt.Errorf("store the scan of drop %q with %d names: %w", s.Drop, len(s.Pending), ledger.ErrIllegal), nil
			}
		}
		for _, s := range scans {
			if err := putScan(g.tx, s); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
}

// putScan stores one scan. What another name of the same drop folder was stored under goes: the drop was renamed.
func putScan(tx *bbolt.Tx, s ledger.Scan) error {
	var former [][]byte
	err := tx.Bucket(scanBucket).ForEach(func(k, v []byte) error {
		old, err := decodeScan(k, v)
		if err == nil && s.Path != "" && old.Path == s.Path && old.Drop != s.Drop {
			former = append(former, bytes.Clone(k))
		}
		return nil // a record that cannot be read is told by the check
	})
	// The former name goes in the transaction that brings the new one: no crash leaves both, or neither.
	for _, k := range former {
		err = errors.Join(err, tx.Bucket(scanBucket).Delete(k))
	}
	return errors.Join(err, putValue(tx, scanBucket, []byte(s.Drop), scanForm.encode(&s)))
}

// Scans returns what was last seen in each drop folder, in the order of the drops' names. A drop that was never scanned is
// not among them; one that is not configured any more is.
func (l *Ledger) Scans() (all []ledger.Scan, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(scanBucket).ForEach(func(k, v []byte) error {
			s, err := decodeScan(k, v)
			all = append(all, s)
			return err
		})
	})
	return all, err
}

// decodeScan reads a record of the bucket.
func decodeScan(k, v []byte) (ledger.Scan, error) {
	s, err := scanForm.decode(v)
	switch {
	case err != nil:
		return s, damage("scan of drop %q: %v", k, err)
	case s.Drop != string(k) || len(s.Pending) > ledger.MaxPending:
		return s, damage("the scan of drop %q says it is of %q and names %d", k, s.Drop, len(s.Pending))
	}
	return s, nil
}
