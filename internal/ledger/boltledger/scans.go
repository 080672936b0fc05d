package boltledger

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

var pendingForm = &message[ledger.PendingItem]{"PendingItem", []field[ledger.PendingItem]{
	text(1, "name", func(p *ledger.PendingItem) *string { return &p.Name }),
	text(2, "reason", func(p *ledger.PendingItem) *string { return &p.Reason }),
	text(3, "detail", func(p *ledger.PendingItem) *string { return &p.Detail }),
	instant(4, "since", func(p *ledger.PendingItem) *time.Time { return &p.Since }),
	flag(5, "person", func(p *ledger.PendingItem) *bool { return &p.NeedsPerson }),
}}

var scanForm = &message[ledger.Scan]{"Scan", []field[ledger.Scan]{
	text(1, "drop", func(s *ledger.Scan) *string { return &s.Drop }),
	instant(2, "looked", func(s *ledger.Scan) *time.Time { return &s.LastScan }),
	text(3, "fault", func(s *ledger.Scan) *string { return &s.Fault }),
	instant(4, "failed", func(s *ledger.Scan) *time.Time { return &s.FaultSince }),
	list(5, "pending", pendingForm, func(s *ledger.Scan) *[]ledger.PendingItem { return &s.Pending }),
	number(6, "more", func(s *ledger.Scan) *uint64 { return &s.Unnamed }),
	instant(7, "since", func(s *ledger.Scan) *time.Time { return &s.UnnamedSince }),
	text(8, "path", func(s *ledger.Scan) *string { return &s.Path }),
	text(9, "vault", func(s *ledger.Scan) *archive.VaultID { return &s.Vault }),
	signed(10, "limit", func(s *ledger.Scan) *time.Duration { return &s.RemindAfter }),
}}

// PutScans stores what was last seen in some drop folders, in place of what was known of them. No journal line tells of it.
// It waits for the commit. The error wraps [ledger.ErrIllegal] where a scan has no drop or names too much.
func (l *Ledger) PutScans(ctx context.Context, scans ...ledger.Scan) error {
	return l.ask(ctx, func(g *gather) (refused, err error) {
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
		g.touched = true // else a commit without a journal line would be left out
		return nil, nil
	})
}

// putScan stores one scan. What another name of the same drop folder was stored under goes: the drop was renamed.
func putScan(tx *bbolt.Tx, s ledger.Scan) error {
	var former [][]byte
	err := tx.Bucket(scanBucket).ForEach(func(k, v []byte) error {
		old, err := openScan(k, v)
		if err == nil && s.Path != "" && old.Path == s.Path && old.Drop != s.Drop {
			former = append(former, bytes.Clone(k))
		}
		return nil // a record that cannot be read is told by the check
	})
	// The former name goes in the transaction that brings the new one: no crash leaves both, or neither.
	for _, k := range former {
		err = errors.Join(err, tx.Bucket(scanBucket).Delete(k))
	}
	return errors.Join(err, put(tx, scanBucket, []byte(s.Drop), scanForm.seal(&s)))
}

// Scans returns what was last seen in each drop folder, in the order of the drops' names. A drop that was never scanned is
// not among them; one that is not configured any more is.
func (l *Ledger) Scans() (all []ledger.Scan, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		return tx.Bucket(scanBucket).ForEach(func(k, v []byte) error {
			s, err := openScan(k, v)
			all = append(all, s)
			return err
		})
	})
	return all, err
}

// openScan reads a record of the bucket.
func openScan(k, v []byte) (ledger.Scan, error) {
	s, err := scanForm.open(v)
	switch {
	case err != nil:
		return s, damage("scan of drop %q: %v", k, err)
	case s.Drop != string(k) || len(s.Pending) > ledger.MaxPending:
		return s, damage("the scan of drop %q says it is of %q and names %d", k, s.Drop, len(s.Pending))
	}
	return s, nil
}

// scan checks one record of the bucket.
func (c *check) scan(_ *bbolt.Tx, k, v []byte) error {
	_, err := openScan(k, v)
	return c.unless(scanBucket, err)
}
