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
	textField(1, "name", func(p *ledger.PendingItem) *string { return &p.Name }),
	textField(2, "reason", func(p *ledger.PendingItem) *string { return &p.Reason }),
	textField(3, "detail", func(p *ledger.PendingItem) *string { return &p.Detail }),
	instantField(4, "since", func(p *ledger.PendingItem) *time.Time { return &p.Since }),
	flagField(5, "person", func(p *ledger.PendingItem) *bool { return &p.NeedsPerson }),
}}

var missingForm = &message[ledger.MissingFolder]{"MissingFolder", []field[ledger.MissingFolder]{
	fixedField(1, "key", func(m *ledger.MissingFolder) []byte { return m.Key[:] }),
	instantField(2, "since", func(m *ledger.MissingFolder) *time.Time { return &m.Since }),
}}

var scanForm = &message[ledger.Scan]{"Scan", []field[ledger.Scan]{
	textField(1, "drop", func(s *ledger.Scan) *string { return &s.Drop }),
	instantField(2, "looked", func(s *ledger.Scan) *time.Time { return &s.LastScan }),
	textField(3, "fault", func(s *ledger.Scan) *string { return &s.Fault }),
	instantField(4, "failed", func(s *ledger.Scan) *time.Time { return &s.FaultSince }),
	listField(5, "pending", pendingForm, func(s *ledger.Scan) *[]ledger.PendingItem { return &s.Pending }),
	numberField(6, "more", func(s *ledger.Scan) *uint64 { return &s.Unnamed }),
	instantField(7, "since", func(s *ledger.Scan) *time.Time { return &s.UnnamedSince }),
	textField(8, "path", func(s *ledger.Scan) *string { return &s.Path }),
	textField(9, "vault", func(s *ledger.Scan) *archive.VaultID { return &s.Vault }),
	signedField(10, "limit", func(s *ledger.Scan) *time.Duration { return &s.RemindAfter }),
	numberField(11, "ruled", func(s *ledger.Scan) *uint64 { return &s.IgnoredByRule.Count }),
	itemsField(12, "ruled_names", "string", func(s *ledger.Scan) *[]string { return &s.IgnoredByRule.Names }),
	numberField(13, "system", func(s *ledger.Scan) *uint64 { return &s.IgnoredBySystem.Count }),
	itemsField(14, "system_names", "string", func(s *ledger.Scan) *[]string { return &s.IgnoredBySystem.Names }),
	listField(15, "missing", missingForm, func(s *ledger.Scan) *[]ledger.MissingFolder { return &s.Missing }),
	instantField(16, "kept_look", func(s *ledger.Scan) *time.Time { return &s.KeptLook }),
	numberField(17, "kept_unread", func(s *ledger.Scan) *uint64 { return &s.KeptUnread }),
	instantField(18, "kept_since", func(s *ledger.Scan) *time.Time { return &s.KeptSince }),
}}

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
		g.touched = true // else a commit without a journal line would be left out
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

// checkScan checks one record of the bucket.
func checkScan(p *part, _ *bbolt.Tx, k, v []byte) error {
	_, err := decodeScan(k, v)
	return p.reportError(scanBucket, err)
}
