package present

import (
	"cmp"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// explainState says what is certain about e.
func explainState(e ledger.Entry) string {
	w := WordsOf(e.Route)
	if e.State == ledger.Rejected && e.InDoubt {
		return w.inDoubt
	}
	return cmp.Or(w.means[e.State], unknownState)
}

const unknownState = "A state that this version does not know."

// reasonOf gives the cause of e in its own words; empty: there is none.
func reasonOf(e ledger.Entry) string {
	text := CauseText(e)
	switch {
	case text != "":
		return text
	case e.Cause.Code != "":
		return e.Cause.Code
	case e.State == ledger.Duplicate: // details name the first one
		return WordsOf(e.Route).duplicate
	}
	return ""
}

// BriefCause is the code of a cause as words, with the file that it is about.
func BriefCause(c ledger.Cause) string {
	words := strings.ReplaceAll(c.Code, "-", " ")
	if c.File != "" {
		words += ": " + sanitize.Name(c.File, 60)
	}
	return words
}

// SummarizeReason says in a few words why e is where it is, safe for a
// terminal. The text of our own refusals is a page for the person who dropped
// the folder; their code says it in brief.
func SummarizeReason(e ledger.Entry) string {
	text := reasonOf(e)
	if e.Cause.Code != "" && (CauseText(e) == "" || IsOwnRefusal(text)) {
		text = BriefCause(e.Cause)
	}
	return sanitize.FirstLine(text, 100)
}

// ExplainFlags lists what is special about e, in words for a person.
func ExplainFlags(e ledger.Entry) []string {
	all, w := []string{}, WordsOf(e.Route).flags
	for _, f := range []struct {
		on   bool
		text string
	}{
		{e.Hold, "on hold: no further step until somebody lets it go on"},
		{e.InDoubt, w.inDoubt},
		{e.IsArchivedTwice(), "ARCHIVED TWICE: the archive says so of more than one registration"},
		{e.PossibleDouble && !e.IsArchivedTwice(), w.double},
		{e.Contradicted, contradictedOf(e, w.rejectedLate, w.contradicted)},
		{e.ContentDiffers(), "DOWNLOAD DIFFERS: the archive has something else than was sent, by the last download"},
		{e.NeedsComparison(), "NOT COMPARED: an upload without Content-MD5 had no answer, and the archive's status alone says that it has all of it"},
		{e.Recipient == ledger.RecipientRejected, "REJECTED BY THE RECIPIENT, who has it"},
		{e.Resolved, "resolved: nobody needs to look at it any more"},
		{e.Reviewed, "looked at: a person let its number or date stand"},
	} {
		if f.on {
			all = append(all, f.text)
		}
	}
	return all
}

// StateText is the state with a mark for what a person must see.
func StateText(e ledger.Entry) string {
	s := e.State.String()
	switch {
	case e.Contradicted:
		w := WordsOf(e.Route).flags
		s += " " + contradictedOf(e, w.lateMark, w.mark)
	case e.ContentDiffers():
		s += " DIFFERS"
	case e.IsArchivedTwice():
		s += " TWICE"
	case e.Recipient == ledger.RecipientRejected && !e.Resolved:
		s += " REJECTED BY RECIPIENT"
	case e.Hold:
		s += " on hold"
	case e.InDoubt:
		s += " in doubt"
	case e.State == ledger.Rejected && e.Resolved:
		s += " resolved"
	}
	return s
}

// LastProgress is the time that the table shows: of the end when it is known, else of the last progress.
func LastProgress(e ledger.Entry) time.Time {
	for _, t := range []time.Time{e.ArchivedAt, e.UploadedAt, e.RegisteredAt} {
		if !t.IsZero() {
			return t
		}
	}
	return e.SeenAt
}

// RemoteNumber is the service's number that matters: of the success, else of the current registration.
func RemoteNumber(e ledger.Entry) archive.RemoteID {
	if e.ArchivedRemote != "" {
		return e.ArchivedRemote
	}
	if r := e.Current(); r != nil {
		return r.Ticket.Remote
	}
	return ""
}

const folderWidth = 40 // characters of a folder's name in a table

// FolderCell is a folder's name for a table: not too long, and in quotes where it begins or ends with a blank, which
// nobody would see.
func FolderCell(name string) string {
	text := sanitize.Text(name)
	if r := []rune(text); len(r) > folderWidth {
		text = string(r[:folderWidth-1]) + "…"
	}
	if strings.TrimSpace(name) != name {
		return `"` + text + `"`
	}
	return text
}

// ExplainStep says in a few words what a step does to an entry.
func ExplainStep(e ledger.Entry, step ledger.Step) string {
	if step == ledger.Place && !e.State.IsFinal() {
		return "put a copy of what was sent into the drop folder of the archive"
	}
	return WordsOf(e.Route).steps[step]
}
