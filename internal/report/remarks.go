package report

import (
	"vaultd/internal/ledger"
	"vaultd/internal/present"
)

// countRemarks counts what is unusual about a selected entry.
func (t *counts) countRemarks(e ledger.Entry) error {
	_, isChosen := e.ChosenElsewhere()
	if !isChosen && e.SameContent.IsZero() && !e.NeedsReview() && e.Supersedes.IsZero() && e.CutOff == ledger.NotCutOff {
		return nil
	}
	all, err := present.FindRemarks(t.c.Ledger, e, t.c.Location)
	for _, one := range all {
		addTo(t.remarks, one.What, e.Folder+" ("+e.Drop+"), "+e.State.String()+": "+one.Text)
	}
	return err
}

// countRemarksElsewhere counts a document that counts in another year or month, because its date can hardly be right, and was taken
// in the selected one.
func (t *counts) countRemarksElsewhere(e ledger.Entry) error {
	if !e.StrangeDate || !t.c.Select.isInPeriod(e.SeenAt.In(t.c.Location)) {
		return nil
	}
	all, err := present.FindRemarks(t.c.Ledger, e, t.c.Location)
	for _, one := range all {
		if one.What == "strange-date" {
			addTo(t.remarks, "strange-date-elsewhere", e.Folder+" ("+e.Drop+"), "+e.State.String()+": "+one.Text)
		}
	}
	return err
}

// remarkWords says what each kind means and what to do.
var remarkWords = []struct{ what, one, more, do string }{
	{"same-number", "document bears the invoice number of another one with the same sender and date", "documents bear the invoice number of another one with the same sender and date",
		"compare the two with vaultd show X; if one is wrong, ask who dropped it"},
	{"same-content", "document has the files of another one, with other metadata", "documents have the files of another one, with other metadata",
		"compare the two with vaultd show X; if one is wrong, ask who dropped it"},
	{"other-owner", "document resolves the rejection of a folder of another owner", "documents resolve the rejections of folders of other owners",
		"ask both owners whether it is the same document; if it is not, ask the first one to drop theirs again"},
	{"clientuuid-chosen", "document had the clientUUID that is derived from it named by the sidecar of another one, and got the next", "documents had the clientUUID that is derived from them named by sidecars of others, and got the next",
		"look at the other document with vaultd show CLIENTUUID, and ask who dropped it why its sidecar names that clientUUID"},
	{"looks-cut-off", "document has a file that looks cut off", "documents have a file that looks cut off",
		"look into the file; if it is not whole, ask who dropped it"},
	{"strange-date", "document has a date that can hardly be right", "documents have a date that can hardly be right",
		"look into the invoice; if the date is wrong, ask who dropped it"},
	{"strange-date-elsewhere", "document was taken in this year and counts in another one, by a date that can hardly be right; it is in no count and no sum of this report",
		"documents were taken in this year and count in another one, by a date that can hardly be right; they are in no count and no sum of this report",
		"look into the invoice; if the date is wrong, ask who dropped it"},
}

func (t *counts) listRemarks() []need {
	lines := []need{}
	for _, w := range remarkWords {
		if n := t.remarks[w.what]; n != nil {
			n.Text, n.Do = formatCount(n.Count, w.one, w.more), w.do
			lines = append(lines, *n)
		}
	}
	return lines
}
