package boltledger

import (
	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// DocumentTexts returns the document of an entry without its lists of files, which are most of it: what people search and what is counted.
func (l *Ledger) DocumentTexts(key archive.Key) (d ledger.Document, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		record := tx.Bucket(docBucket).Get(key[:])
		if record == nil {
			return nil
		}
		ok = true
		if d, err = documentTextsForm.decode(record); err != nil {
			return damage("doc %s: %v", key, err)
		}
		return nil
	})
	return d, ok && err == nil, err
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
