package present

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// Remark is one thing about a document that a person should look at. It keeps nothing from being archived.
type Remark struct {
	What  string  `json:"what"` // same-number, same-content, other-owner, clientuuid-chosen, looks-cut-off or strange-date
	Text  string  `json:"text"`
	Entry *string `json:"entry"` // key of the other document; may be null
}

// FindRemarks says what is unusual about e, the other document named with its folder and when it was archived. Days are told
// in loc. The error is the ledger's.
func FindRemarks(s Entries, e ledger.Entry, loc *time.Location) ([]Remark, error) {
	all := []Remark{}
	number, content := "same invoice number, sender and date as ", e.SameContent
	if content == e.SameNumber && !content.IsZero() { // it is named once, and first of all for its number
		number, content = "same invoice number, sender, date and files, with other metadata, as ", archive.Key{}
	}
	for _, pair := range []struct {
		what, words string
		key         archive.Key
	}{
		{"same-number", number, e.SameNumber},
		{"same-content", "same files, with other metadata, as ", content},
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
			text = describeFolder(other, loc)
		}
		all = append(all, Remark{pair.what, pair.words + text, TextOrNil(pair.key.String())})
	}
	if !e.Supersedes.IsZero() {
		old, ok, err := s.Entry(e.Supersedes)
		if err != nil {
			return nil, err
		}
		if ok && old.Owner != e.Owner {
			all = append(all, Remark{"other-owner", fmt.Sprintf("resolves the rejection of %s, the folder of %s; this is a folder of %s",
				describeFolder(old, loc), UserName(old.Owner), UserName(e.Owner)), TextOrNil(old.Key.String())})
		}
	}
	if id, is := e.ChosenElsewhere(); is {
		all = append(all, Remark{What: "clientuuid-chosen", Text: fmt.Sprintf("the clientUUID %s, which is derived from it, is named by the sidecar of another document (vaultd show %s); it has the next one", id, id)})
	}
	if e.CutOff != ledger.NotCutOff {
		text, err := describeCutOff(s, e)
		if err != nil {
			return nil, err
		}
		all = append(all, Remark{What: "looks-cut-off", Text: text})
	}
	if !e.StrangeDate {
		return all, nil
	}
	m, _, err := ReadMetadata(s, e)
	if err != nil {
		return nil, err
	}
	text := "its document date"
	if m.Date != "" {
		text = "document date " + FormatDay(m.Date)
	}
	if day := archive.OtherDay(m.Date, loc); day != "" {
		return append(all, Remark{What: "strange-date", Text: text + " is " + day + " in " + loc.String() + ", and counts as the day in UTC"}), nil
	}
	return append(all, Remark{What: "strange-date", Text: text + " can hardly be right: it was taken on " + e.SeenAt.In(loc).Format(dayLayout)}), nil
}

// describeCutOff says which file of e looks cut off, and whether an operator takes it as it is.
func describeCutOff(s Entries, e ledger.Entry) (string, error) {
	text := "a file looked cut off"
	if e.State == ledger.Discovered {
		text = cmp.Or(e.Cause.Text, text)
	} else if d, ok, err := s.Document(e.Key); err != nil {
		return "", err
	} else if ok && len(d.Remarks) > 0 {
		text = strings.Join(d.Remarks, "; ")
	}
	if e.CutOff == ledger.CutOffTaken {
		text += "; it was taken as it is, by decision"
	}
	return sanitize.Text(text), nil
}

const dayLayout = "2 Jan 2006"

// describeFolder names a folder and says what became of it, and when.
func describeFolder(e ledger.Entry, loc *time.Location) string {
	text := fmt.Sprintf("%q (%s), ", sanitize.Text(e.Folder), sanitize.Text(e.Drop))
	if e.State == ledger.Archived && !e.ArchivedAt.IsZero() {
		return text + "archived " + e.ArchivedAt.In(loc).Format(dayLayout)
	}
	if e.State == ledger.Delivered {
		return text + "delivered " + e.CompletedAt().In(loc).Format(dayLayout)
	}
	return text + "taken " + e.SeenAt.In(loc).Format(dayLayout) + ", " + e.State.String()
}
