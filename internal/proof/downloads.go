package proof

import (
	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Downloads is what the journal tells of documents that were downloaded from the archive, the last word about each. The zero
// value has none. Its memory grows with the documents that were ever downloaded, which costs money, and with nothing else.
type Downloads struct {
	last      map[number]download
	Announced uint64 // downloads, also those without an outcome
}

// download is what became of one document.
type download struct {
	open     int    // announced, and without an outcome so far
	compared string // the outcome of the last download that was compared; empty: none was
	line     uint64 // of the last line about it
}

// AddLine takes in a line of the journal. The error says what is wrong with it, in words; any line but those of downloads is right.
func (d *Downloads) AddLine(l ledger.Line) (wrong string) {
	if l.Key != "" || l.Event != ledger.MarkFetchIntended && l.Event != ledger.MarkFetched {
		return ""
	}
	if l.Vault == "" || l.Remote == "" {
		return "it names no document"
	}
	if d.last == nil {
		d.last = map[number]download{}
	}
	n := numberIn(archive.VaultID(l.Vault), archive.RemoteID(l.Remote))
	one := d.last[n]
	one.line = l.N
	if l.Event == ledger.MarkFetchIntended {
		d.Announced++
		one.open++
		d.last[n] = one
		return ""
	}
	switch l.Cause {
	case ledger.FetchSame, ledger.FetchRepacked, ledger.FetchDiffers:
		one.compared = l.Cause
	case ledger.FetchNotCompared, ledger.FetchFailed:
	default:
		wrong = "its outcome is none"
	}
	if one.open--; one.open < 0 {
		one.open, wrong = 0, "nothing announced it"
	}
	d.last[n] = one
	return wrong
}

// LastComparison returns what the last comparison of a document with what was sent came to; empty: it was never compared.
func (d *Downloads) LastComparison(v archive.VaultID, r archive.RemoteID) (outcome string) {
	return d.last[numberIn(v, r)].compared
}

// LastLine returns the number of the last line about the document; 0: nobody ever downloaded it.
func (d *Downloads) LastLine(v archive.VaultID, r archive.RemoteID) uint64 {
	return d.last[numberIn(v, r)].line
}

// numberIn is what stands for a registration of a vault.
func numberIn(v archive.VaultID, r archive.RemoteID) number {
	return shortNumber(archive.RemoteID(string(v) + "\x00" + string(r)))
}

// Sample counts archived documents, and those of them that were downloaded and compared with what was sent.
type Sample struct{ Archived, Compared, Differ uint64 }

// Add counts an entry, by the last comparison of its document.
func (s *Sample) Add(e ledger.Entry, d *Downloads) {
	if e.State != ledger.Archived {
		return
	}
	s.Archived++
	switch d.LastComparison(e.Vault, e.ArchivedRemote) {
	case "":
		return
	case ledger.FetchDiffers:
		s.Differ++
	}
	s.Compared++
}

// Replace counts a document that is compared once more: was is the outcome of the time before, empty where there was none.
func (s *Sample) Replace(was, is string) {
	if was == "" {
		s.Compared++
	}
	if was == ledger.FetchDiffers {
		s.Differ--
	}
	if is == ledger.FetchDiffers {
		s.Differ++
	}
}
