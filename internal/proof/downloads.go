package proof

import (
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Downloads is what the journal tells of documents that were downloaded from the archive, the last word about each. The zero
// value has none. Its memory grows with the documents that were ever downloaded, which costs money, and with nothing else.
type Downloads struct {
	Announced uint64              // downloads, also those without an outcome
	Last      map[string]Download // by vault and number of the document; for [Sums] alone
}

// Download is what became of one document.
type Download struct {
	Open     int    // announced, and without an outcome so far
	Compared string // the outcome of the last download that was compared; empty: none was
	Line     uint64 // of the last line about it
}

// AddLine takes in a line of the journal. The error says what is wrong with it, in words; any line but those of downloads is right.
func (d *Downloads) AddLine(l ledger.Line) (wrong string) {
	if l.Key != "" || l.Event != ledger.MarkFetchIntended && l.Event != ledger.MarkFetched {
		return ""
	}
	if l.Vault == "" || l.Remote == "" {
		return "it names no document"
	}
	if d.Last == nil {
		d.Last = map[string]Download{}
	}
	n := documentIn(archive.VaultID(l.Vault), archive.RemoteID(l.Remote))
	one := d.Last[n]
	one.Line = l.N
	if l.Event == ledger.MarkFetchIntended {
		d.Announced++
		one.Open++
		d.Last[n] = one
		return ""
	}
	switch l.Cause {
	case ledger.FetchSame, ledger.FetchRepacked, ledger.FetchDiffers:
		one.Compared = l.Cause
	case ledger.FetchNotCompared, ledger.FetchFailed:
	default:
		wrong = "its outcome is none"
	}
	if one.Open--; one.Open < 0 {
		one.Open, wrong = 0, "nothing announced it"
	}
	d.Last[n] = one
	return wrong
}

// LastComparison returns what the last comparison of a document with what was sent came to; empty: it was never compared.
func (d *Downloads) LastComparison(v archive.VaultID, r archive.RemoteID) (outcome string) {
	return d.Last[documentIn(v, r)].Compared
}

// LastLine returns the number of the last line about the document; 0: nobody ever downloaded it.
func (d *Downloads) LastLine(v archive.VaultID, r archive.RemoteID) uint64 {
	return d.Last[documentIn(v, r)].Line
}

// documentIn is what a document of a vault is called by.
func documentIn(v archive.VaultID, r archive.RemoteID) string { return string(v) + "\n" + string(r) }

// Sample counts archived documents, and those of them that were downloaded and compared with what was sent.
type Sample struct{ Archived, Compared, Differ uint64 }

// Add counts an entry, by the last comparison of its document.
func (s *Sample) Add(e ledger.Entry, d *Downloads) {
	if e.State != ledger.Archived {
		return
	}
	s.Archived++
	s.addOutcome(d.LastComparison(e.Vault, e.ArchivedRemote), 1)
}

// addOutcome counts an outcome so many times more; empty: the document was not compared.
func (s *Sample) addOutcome(outcome string, n int64) {
	if outcome != "" {
		s.Compared += uint64(n)
	}
	if outcome == ledger.FetchDiffers {
		s.Differ += uint64(n)
	}
}

// Replace counts a document that is compared once more: was is the outcome of the time before, empty where there was none.
func (s *Sample) Replace(was, is string) {
	s.addOutcome(was, -1)
	s.addOutcome(is, 1)
}
