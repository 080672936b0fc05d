package present

import (
	"cmp"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// stateMeans says in one sentence what is certain in each state.
var stateMeans = map[ledger.State]string{
	ledger.Discovered:  "Taken from the drop folder; it is packed as soon as it has not changed for a while.",
	ledger.Packaged:    "Packed; it waits to be registered with the archive.",
	ledger.Registering: "Being registered with the archive; the answer is not known yet.",
	ledger.Registered:  "Registered with the archive; nothing of it has been sent yet.",
	ledger.Sending:     "Being sent; the archive may have parts of it, or all.",
	ledger.Uploaded:    "Sent completely; the archive has not yet said that it is archived.",
	ledger.Unclear:     "Sent, but nobody knows whether it arrived; the archive is being asked, nothing is sent again until it is clear.",
	ledger.Archived:    "The archive itself said that it is archived.",
	ledger.Delivered:   "Delivered; no later word comes on this way.",
	ledger.Duplicate:   "The same invoice is archived already; nothing was sent and there is nothing to do.",
	ledger.Rejected:    "Not archived; certainly nothing of it is in the archive.",
	ledger.Quarantined: "Stopped: it cannot go on by itself, and something of it may be in the archive. A person must decide.",
}

// explainState says what is certain about e.
func explainState(e ledger.Entry) string {
	if !e.Route.IsAsked() {
		if e.State == ledger.Rejected && e.InDoubt {
			return deliveryInDoubt
		}
		return cmp.Or(deliveryMeans[e.State], unknownState)
	}
	if e.State == ledger.Rejected && e.InDoubt {
		return "Closed in doubt by a person: something of it may be in the archive all the same."
	}
	if text, ok := stateMeans[e.State]; ok {
		return text
	}
	return unknownState
}

const unknownState = "A state that this version does not know."

// DescribePlace says what became of the folder that was dropped.
func DescribePlace(e ledger.Entry) string {
	dest := "drop " + sanitize.Text(e.Drop) + ", " + sanitize.Text(e.Dest)
	switch e.Source {
	case ledger.Claimed:
		return "held back while it is worked on: drop " + sanitize.Text(e.Drop) + ", .vaultd/claimed/" + e.Key.String() + "/" + sanitize.Text(e.Folder)
	case ledger.Returning:
		return "on its way back to people: " + dest
	case ledger.Returned:
		return "given back to people: " + dest
	case ledger.Keeping:
		return "on its way to the kept ones: " + dest
	case ledger.Kept:
		if e.State == ledger.Delivered {
			return "kept with its delivery note: " + dest
		}
		return "kept with its receipt: " + dest
	case ledger.Disposing:
		return "being removed after its grace: " + dest
	case ledger.Moved:
		return "moved out after its grace: " + sanitize.Text(e.Dest)
	case ledger.Gone:
		return "deleted after its grace"
	}
	return "unknown"
}

// explainFate says what is known about the content of one registration.
func explainFate(r ledger.Route, f ledger.Fate) string {
	if !r.IsAsked() {
		return explainDeliveryFate(f)
	}
	return fateText(f)
}

// fateText is explainFate for the archive.
func fateText(f ledger.Fate) string {
	words := [...]string{
		"unused: no byte was ever sent to it", "bytes may have arrived", "the content arrived",
		"archived", "failed at the archive, or never got anything", "refused by the store, which may have kept it",
	}
	if int(f) < len(words) {
		return words[f]
	}
	return "unknown"
}

// reasonOf gives the cause of e in its own words; empty: there is none.
func reasonOf(e ledger.Entry) string {
	switch {
	case e.Cause.Text != "":
		return e.Cause.Text
	case e.Cause.Code != "":
		return e.Cause.Code
	case e.State == ledger.Duplicate && !e.Route.IsAsked():
		return "delivered before"
	case e.State == ledger.Duplicate: // details name the first one
		return "archived before"
	}
	return ""
}

// SummarizeCause gives a cause in a few words, fit for a terminal. The text of our own
// refusals is a page for the person who dropped the folder; their code says it in brief.
func SummarizeCause(c ledger.Cause) string {
	if c.Text == "" || (strings.HasPrefix(c.Text, "NOT ARCHIVED") || strings.HasPrefix(c.Text, "NOT SENT")) && c.Code != "" {
		return sanitize.FirstLine(strings.ReplaceAll(c.Code, "-", " "), 100)
	}
	return sanitize.FirstLine(c.Text, 100)
}

// SummarizeReason is Reason in a few words, safe for a terminal.
func SummarizeReason(e ledger.Entry) string {
	if e.Cause != (ledger.Cause{}) {
		return SummarizeCause(e.Cause)
	}
	return sanitize.FirstLine(reasonOf(e), 100)
}

// ExplainFlags lists what is special about e, in words for a person.
func ExplainFlags(e ledger.Entry) []string {
	all := []string{}
	for _, f := range []struct {
		on   bool
		text string
	}{
		{e.Hold, "on hold: no further step until somebody lets it go on"},
		{e.InDoubt && e.Route.IsAsked(), "closed in doubt, though content at the archive is possible"},
		{e.InDoubt && !e.Route.IsAsked(), "closed in doubt, though it may have been delivered"},
		{e.IsArchivedTwice(), "ARCHIVED TWICE: the archive says so of more than one registration"},
		{e.PossibleDouble && !e.IsArchivedTwice() && e.Route.IsAsked(), "possibly double: more than one registration may hold its content"},
		{e.PossibleDouble && !e.Route.IsAsked(), "possibly processed twice: it was sent more than once, or may have been"},
		{e.Contradicted, "CONTRADICTED: the archive says something else than this final state"},
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
		s += " CONTRADICTED"
	case e.IsArchivedTwice():
		s += " TWICE"
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
	if !e.Route.IsAsked() {
		return deliverySteps[step]
	}
	return stepTexts[step]
}

var stepTexts = map[ledger.Step]string{
	ledger.Seal: "pack it", ledger.Register: "register it with the archive", ledger.Upload: "send it",
	ledger.Ask: "ask the archive", ledger.Place: "move the folder to its place", ledger.Dispose: "remove the kept folder",
}
