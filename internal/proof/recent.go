package proof

import (
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// recentEntries are the entries that were looked up last. The replay looks an entry up at each of its lines that may be the
// last one, and those mostly stand near each other.
type recentEntries struct {
	byKey map[archive.Key]ledger.Entry
	keys  [2048]archive.Key // in the order in which they came, round and round
	next  int
}

// KeepRecent returns a function that looks entries up for [Journal], and remembers the last ones. It is for one goroutine.
func KeepRecent(lookUp func(archive.Key) (ledger.Entry, bool)) func(archive.Key) (ledger.Entry, bool) {
	r := &recentEntries{byKey: map[archive.Key]ledger.Entry{}}
	return func(k archive.Key) (ledger.Entry, bool) {
		e, ok := r.byKey[k]
		if ok {
			return e, true
		}
		if e, ok = lookUp(k); ok {
			r.add(e)
		}
		return e, ok
	}
}

func (r *recentEntries) add(e ledger.Entry) {
	delete(r.byKey, r.keys[r.next])
	r.byKey[e.Key], r.keys[r.next] = e, e.Key
	r.next = (r.next + 1) % len(r.keys)
}
