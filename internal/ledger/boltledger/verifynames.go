package boltledger

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/bbolt"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// unfoundNames lists the names by which an entry is not found, and the numbers and upload
// addresses of it that belong to another clientUUID (I8).
func (p *part) unfoundNames(tx *bbolt.Tx, e ledger.Entry) (wrong []string) {
	x, err := readNameIndex(tx)
	if err != nil {
		return nil // reported with the runs
	}
	read := func(k archive.Key) (ledger.Entry, bool, error) {
		if k == e.Key {
			return e, true, nil
		}
		return readEntry(tx, k)
	}
	if !e.SameNumber.IsZero() {
		if first, ok, err := read(e.SameNumber); err == nil && (!ok || first.Number != e.Number) {
			wrong = append(wrong, "names another entry for its invoice number, which does not bear it")
		}
	}
	moved := p.check.names.hasMoved(tx, e.Key)
	for _, name := range entryNames(e) {
		if !moved && p.check.names.isProven(hashOf(name)) {
			continue
		}
		h, ok, err := x.findHolder(tx, name, read)
		if ok && err == nil && name[0] == byID {
			ok, err = wasTakenOver(tx, h.key, e.Key)
		}
		switch {
		case err != nil || !ok:
			wrong = append(wrong, fmt.Sprintf("is not found by one of its names (%q)", name[:1]))
		case fromService(name[0]):
			if has, known, err := read(h.key); err == nil && known && belongsElsewhere(e, has, h.generation, name) {
				what := map[byte]string{byRemote: "a bumId", byObject: "an upload address"}[name[0]]
				wrong = append(wrong, fmt.Sprintf("lists %s that entry %s has under another clientUUID (I8)", what, h.key))
			}
		}
	}
	return wrong
}

// wasTakenOver reports whether an identity of one entry may lead to has: an identity is taken
// over only from the entry that is superseded.
func wasTakenOver(tx *bbolt.Tx, has, from archive.Key) (bool, error) {
	// Bounded: a damaged chain of superseded entries may lead in a circle.
	for steps := 0; steps < maxProblems && !has.IsZero(); steps++ {
		if has == from {
			return true, nil
		}
		by, _, err := readEntry(tx, has)
		if err != nil {
			return false, err
		}
		has = by.Supersedes
	}
	return false, nil
}

// belongsElsewhere reports whether a name that e lists was given to another
// clientUUID: to that of a generation of has. If two entries list one name, it
// leads to one of them, so that the other one tells of both.
func belongsElsewhere(e, has ledger.Entry, generation uint8, name []byte) bool {
	return slices.ContainsFunc(e.Registrations, func(r ledger.Registration) bool {
		return registrationBears(r, name) && identityOf(e, r.Generation) != identityOf(has, generation)
	})
}

// checkName checks what lies under one key of the find bucket: a chunk of a run, or what the
// service gave and no entry lists.
func checkName(p *part, tx *bbolt.Tx, k, v []byte) error {
	if number, chunk, ok := decodeRunKey(k); ok {
		return p.checkChunk(tx, number, chunk, v)
	}
	if !fromService(k[0]) {
		return p.reportProblem(findBucket, "a key of %d bytes", len(k))
	}
	h, err := decodeHolder(v)
	if err != nil {
		return p.reportError(findBucket, err)
	}
	e, ok, err := readEntry(tx, h.key)
	if err != nil {
		return nil // reported where it lies
	}
	// A key of its own is only for what an entry lists no more. One that is listed too could lead elsewhere than the run does.
	if _, listed := bearsName(e, k); !ok || listed || e.Pruned.Total() == 0 || h.generation > e.Generation {
		return p.reportProblem(findBucket, "a name (%q) leads to entry %s, which does not bear it", k[:1], h.key)
	}
	return nil
}

// checkChunk checks a part of a run: in order, within its bounds, and each pair of an entry
// that bears such a name, or may have.
func (p *part) checkChunk(tx *bbolt.Tx, number, chunk uint64, v []byte) error {
	x, err := readNameIndex(tx)
	if err != nil {
		return nil // reported with the runs
	}
	at := x.placeOf(number)
	if at < 0 || chunk >= x.runs[at].chunks() || len(v) == 0 || len(v)%pairSize != 0 {
		return p.reportProblem(findBucket, "chunk %d of run %d, of %d bytes, is none", chunk, number, len(v))
	}
	for i := range len(v) / pairSize {
		hash, key := hashAt(v, i), keyAt(v, i)
		if x.runs[at].chunkOf(hash) != chunk || i > 0 && hashAt(v, i-1) > hash {
			return p.reportProblem(findBucket, "chunk %d of run %d is out of order", chunk, number)
		}
		if p.check.names.isProven(hash) && !p.check.names.hasMoved(tx, key) {
			continue
		}
		e, ok, err := readEntry(tx, key)
		if err == nil && (!ok || !mayBearHash(e, hash)) {
			if err := p.reportProblem(findBucket, "a name leads to entry %s, which does not bear it", key); err != nil {
				return err
			}
		}
	}
	return nil
}

// mayBearHash reports whether e bears a name of that hash, or may have: of a registration that
// it lists no more only the journal tells.
func mayBearHash(e ledger.Entry, hash uint64) bool {
	for _, name := range entryNames(e) {
		if hashOf(name) == hash {
			return true
		}
	}
	// What an entry was packed as before, for another receiver, leads to it for ever: a run is never written again.
	given := kindOf(hash) == byID || kindOf(hash) == byContent
	return fromService(kindOf(hash)) && e.Pruned.Total() > 0 || given && e.PackedAnew
}

// checkRuns compares the list of runs with the chunks that are stored.
func checkRuns(p *part) error {
	return p.check.viewAlone(func(tx *bbolt.Tx) error {
		x, err := readNameIndex(tx)
		if err != nil {
			return p.reportError(findBucket, err)
		}
		have := map[uint64]uint64{}
		cur := tx.Bucket(findBucket).Cursor()
		for k, v := cur.Seek([]byte{inRun}); k != nil; k, v = cur.Next() {
			if number, _, ok := decodeRunKey(k); ok {
				have[number] += uint64(len(v) / pairSize)
			}
		}
		for _, r := range x.runs {
			if !r.making && r.into == 0 && have[r.number] != r.pairs {
				err = errors.Join(err, p.reportProblem(findBucket, "run %d has %d pairs, it says %d", r.number, have[r.number], r.pairs))
			}
		}
		return err
	})
}
