package boltledger

import (
	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// FindSameNumber returns the entry whose invoice number e repeats, where e is as it would be sealed: the first with that
// number in its vault. Neither one that was certainly rejected counts, nor the one that e repeats by decision, nor the
// one that is named already for having the same files.
func (l *Ledger) FindSameNumber(e ledger.Entry) (key archive.Key, ok bool, err error) {
	err = l.view(func(tx *bbolt.Tx) error {
		x, err := readNameIndex(tx)
		if err != nil {
			return err
		}
		key, err = firstWithNumber(e, func(fn func(archive.Key) (bool, error)) error {
			return x.visitKeys(tx.Bucket(findBucket), hashOf(numberName(e.Number)), fn)
		}, func(k archive.Key) (ledger.Entry, bool, error) { return readEntry(tx, k) })
		return err
	})
	return key, !key.IsZero(), err
}

// findSameNumber is FindSameNumber of the ledger as this gather left it.
func (g *groupCommit) findSameNumber(e ledger.Entry) (archive.Key, error) {
	name := numberName(e.Number)
	return firstWithNumber(e, func(fn func(archive.Key) (bool, error)) error {
		if h, ok := g.bound[string(name)]; ok {
			if enough, err := fn(h.key); enough || err != nil {
				return err
			}
		}
		return g.names.visitKeys(g.tx.Bucket(findBucket), hashOf(name), fn)
	}, func(k archive.Key) (ledger.Entry, bool, error) {
		has, err := g.loadEntry(k)
		return has, has.State != ledger.None, err
	})
}

// firstWithNumber finds whose invoice number e repeats; zero: nobody's. lead calls its argument with those that may bear
// the number, the latest first. Each of them names the first there was when it was sealed, so that a number which
// thousands bear is found as fast as any other.
func firstWithNumber(e ledger.Entry, lead func(func(archive.Key) (enough bool, err error)) error,
	read func(archive.Key) (ledger.Entry, bool, error)) (found archive.Key, err error) {
	if e.Number.IsZero() {
		return found, nil
	}
	counts := func(k archive.Key) (ledger.Entry, bool, error) {
		if k.IsZero() || k == e.Key || k == e.Supersedes || k == e.SameContent {
			return ledger.Entry{}, false, nil
		}
		has, ok, err := read(k)
		return has, ok && has.Number == e.Number && !has.IsCertainlyRejected(), err
	}
	err = lead(func(k archive.Key) (bool, error) {
		has, ok, err := counts(k)
		if err != nil || !ok {
			return false, err
		}
		found = has.Key
		if _, ok, err = counts(has.SameNumber); ok {
			found = has.SameNumber
		}
		return true, err
	})
	return found, err
}
