package ingest

import (
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// compareWithOthers writes into the seal which other document has the same files or the same invoice number, logs what is unusual
// about e, and returns why e is to be held; empty: it goes on.
//
// What it finds may be old when the seal is committed. The ledger looks again in the transaction that seals, and
// refuses a seal that misses another entry: e is packed and compared anew then.
func (c *Engine) compareWithOthers(d Drop, e ledger.Entry, s *ledger.Sealed) (hold string, err error) {
	twin, err := c.findSameContent(*s, e.Key)
	if err != nil {
		return "", err
	}
	s.SameContent = twin.Key
	// The index is asked about the entry as it will be once it is sealed. Nothing is committed here.
	after, err := ledger.Transition(e, *s, c.cfg.Now())
	if err != nil {
		return "", err
	}
	if s.SameNumber, _, err = c.cfg.Index.FindSameNumber(after); err != nil {
		return "", err
	}
	var why []string
	if !s.SameNumber.IsZero() {
		c.cfg.Log.Warn("same invoice number as another invoice of this sender and date", "key", e.Key, "other", s.SameNumber, "held", d.Holds.SameNumber)
		if d.Holds.SameNumber {
			why = append(why, "same_number: hold. The same invoice number of this sender and date was dropped before, see "+s.SameNumber.String()+".")
		}
	}
	if !twin.Key.IsZero() {
		c.cfg.Log.Warn("same files as another invoice, with other metadata", "key", e.Key, "other", twin.Key, "held", d.Holds.SameContent)
		if d.Holds.SameContent {
			why = append(why, "same_content: hold. The same files were dropped with other metadata, see "+twin.Key.String()+".")
		}
	}
	if s.StrangeDate {
		c.cfg.Log.Warn("document date is before 1990, after tomorrow, or another day here than in UTC", "key", e.Key, "held", d.Holds.StrangeDate)
		if d.Holds.StrangeDate {
			why = append(why, "strange_dates: hold. The document date is before 1990, after tomorrow, or another day here than in UTC.")
		}
	}
	if s.LooksCutOff && e.CutOff != ledger.CutOffTaken {
		c.cfg.Log.Warn("a file looks cut off", "key", e.Key, "held", d.Holds.CutOff)
		if d.Holds.CutOff {
			why = append(why, heldCutOff)
		}
	}
	return strings.Join(why, " "), nil
}

const heldCutOff = "looks_cut_off: hold. A file looks cut off."

// findSameContent returns another entry with the same files that was not rejected; with the zero key: there is none.
func (c *Engine) findSameContent(s ledger.Sealed, k archive.Key) (ledger.Entry, error) {
	key, ok, err := c.cfg.Index.FindByContent(s.Content)
	if err != nil || !ok || key == k {
		return ledger.Entry{}, err
	}
	twin, ok, err := c.cfg.Ledger.Entry(key)
	if err != nil || !ok || twin.State == ledger.Rejected || twin.ID == s.ID {
		return ledger.Entry{}, err
	}
	return twin, nil
}
