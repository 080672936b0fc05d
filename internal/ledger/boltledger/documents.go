package boltledger

import (
	"bytes"
	"context"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// CountHeldFiles counts how many of some files, by their digests, the documents of
// other entries list. It reads all documents, in parts, unless each file is found.
func (l *Ledger) CountHeldFiles(ctx context.Context, files []archive.Digest, isSkipped func(archive.Key) bool) (held int, err error) {
	missing := slices.Clone(files)
	for next := []byte{}; next != nil && len(missing) > 0; {
		if ctx.Err() != nil {
			return held, context.Cause(ctx)
		}
		err := l.view(func(tx *bbolt.Tx) error {
			c := tx.Bucket(docBucket).Cursor()
			k, v := c.Seek(next)
			for n := 0; k != nil && n < chunkDocuments; n++ {
				if len(k) == len(archive.Key{}) && !isSkipped(archive.Key(k)) {
					missing = slices.DeleteFunc(missing, func(d archive.Digest) bool { return bytes.Contains(v, d[:]) })
				}
				k, v = c.Next()
			}
			next = slices.Clone(k)
			return nil
		})
		if err != nil {
			return held, err
		}
	}
	return len(files) - len(missing), nil
}

// chunkDocuments is how many documents one transaction of CountHeldFiles reads.
const chunkDocuments = 4096

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
