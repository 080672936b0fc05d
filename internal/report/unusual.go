package report

import (
	"fmt"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// Remark is one thing about a document that a person should look at. It keeps nothing from being archived.
type Remark struct {
	What  string  `json:"what"` // same-number, same-content or strange-date
	Text  string  `json:"text"`
	Entry *string `json:"entry"` // key of the other document; null: there is none
}

// Remarks says what is unusual about e, the other document named with its folder and when it was archived. Days are told
// in loc. The error is the ledger's.
func Remarks(s Source, e ledger.Entry, loc *time.Location) ([]Remark, error) {
	all := []Remark{}
	for _, pair := range []struct {
		what, words string
		key         archive.Key
	}{
		{"same-number", "same invoice number, sender and date as ", e.SameNumber},
		{"same-content", "same files, with other metadata, as ", e.SameContent},
	} {
		if pair.key.IsZero() {
			continue
		}
		other, ok, err := s.Entry(pair.key)
		if err != nil {
			return nil, err
		}
		text := "an entry that is not there any more"
		if ok {
			text = folderWords(other, loc)
		}
		all = append(all, Remark{pair.what, pair.words + text, known(pair.key.String())})
	}
	if !e.StrangeDate {
		return all, nil
	}
	m, _, err := document(s, e)
	if err != nil {
		return nil, err
	}
	text := "its document date"
	if m.Date != "" {
		text = "document date " + day(m.Date)
	}
	return append(all, Remark{What: "strange-date", Text: text + " can hardly be right: it was taken on " + e.SeenAt.In(loc).Format(dayWords)}), nil
}

const dayWords = "2 Jan 2006"

// folderWords names a folder, and says what became of it and when.
func folderWords(e ledger.Entry, loc *time.Location) string {
	text := fmt.Sprintf("%q (%s), ", sanitize.Text(e.Folder), sanitize.Text(e.Drop))
	if e.State == ledger.Archived && !e.ArchivedAt.IsZero() {
		return text + "archived " + e.ArchivedAt.In(loc).Format(dayWords)
	}
	return text + "taken " + e.SeenAt.In(loc).Format(dayWords) + ", " + e.State.String()
}

// remark books what the audit tells of a selected entry beside its state.
func (t *tally) remark(e ledger.Entry) error {
	if e.SameContent.IsZero() && !e.NeedsReview() {
		return nil
	}
	all, err := Remarks(t.c.Ledger, e, t.c.Location)
	for _, one := range all {
		bookIn(t.remarks, one.What, e.Folder+" ("+e.Drop+"), "+e.State.String()+": "+one.Text)
	}
	return err
}

// remarkElsewhere books a document that counts in another year, because its date can hardly be right, and was taken in
// the selected one.
func (t *tally) remarkElsewhere(e ledger.Entry) error {
	if !e.StrangeDate || e.SeenAt.In(t.c.Location).Year() != t.c.Select.Year {
		return nil
	}
	all, err := Remarks(t.c.Ledger, e, t.c.Location)
	for _, one := range all {
		if one.What == "strange-date" {
			bookIn(t.remarks, "strange-date-elsewhere", e.Folder+" ("+e.Drop+"), "+e.State.String()+": "+one.Text)
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
	{"strange-date", "document has a date that can hardly be right", "documents have a date that can hardly be right",
		"look into the invoice; if the date is wrong, ask who dropped it"},
	{"strange-date-elsewhere", "document was taken in this year and counts in another one, by a date that can hardly be right; it is in no count and no sum of this report",
		"documents were taken in this year and count in another one, by a date that can hardly be right; they are in no count and no sum of this report",
		"look into the invoice; if the date is wrong, ask who dropped it"},
}

func (t *tally) remarkLines() []need {
	lines := []need{}
	for _, w := range remarkWords {
		if n := t.remarks[w.what]; n != nil {
			n.Text, n.Do = many(n.Count, w.one, w.more), w.do
			lines = append(lines, *n)
		}
	}
	return lines
}
