package boltledger

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// CountHeldFiles counts how many of some files, by their digests, the documents of
// other entries list. It reads all documents, in parts, unless each file is found.
func (l *Ledger) CountHeldFiles(ctx context.Context, files []archive.Digest, isSkipped func(archive.Key) bool) (held int, err error) {
	missing := slices.Clone(files)
	r := reading[bool]{what: "documents", buckets: [][]byte{docBucket}, decode: func(_ *bbolt.Tx, _, k, v []byte) (bool, error) {
		if !isNote(k) && !isSkipped(archive.Key(k)) {
			missing = slices.DeleteFunc(missing, func(d archive.Digest) bool { return bytes.Contains(v, d[:]) })
		}
		return true, nil
	}}
	err = r.inParts(l, func([]bool) error {
		if len(missing) == 0 {
			return errEnough
		}
		return context.Cause(ctx)
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return len(files) - len(missing), err
}

func readDocument(tx *bbolt.Tx, key archive.Key) (d ledger.Document, ok bool, err error) {
	record := tx.Bucket(docBucket).Get(key[:])
	if record == nil {
		return d, false, nil
	}
	if d, err = documentForm.decode(record); err != nil {
		return d, false, damage("doc %s: %v", key, err)
	}
	return d, true, nil
}
