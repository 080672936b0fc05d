package page

import (
	"vaultd/internal/present"
)

// needTitles names the kinds of things that need a person.
var needTitles = map[string]string{
	"ledger-lost": "The ledger is not in its place", "taken-over": "Another vaultd has taken over", "safe-mode": "Safe mode", "damaged": "The ledger is damaged", "balance": "The balance does not agree",
	"configuration": "The new configuration is not in use", "files": "Files are not what the ledger says", "check": "The check of the ledger is not complete",
	"disk": "The disk is full", "drop-paused": "A drop folder is paused", "drop-place": "Results do not reach people", "drop-full": "The disk of a drop folder is full", "contradicted": "The archive contradicts itself",
	"archived-twice": "Archived more than once", "paused": "Paused", "clock": "The clock is wrong", "not-taken": "Not taken",
	"unreadable": "Cannot be read", "overdue": "Open for too long", "kept-differs": "Kept folders are not what was archived", "rejected": "Rejected",
	"not-compared":      "Archived, and not compared",
	"delivered-differs": "Kept PDFs are not what was delivered", "sent-differs": "Kept folders are not what was sent",
	"rejected-late": "Rejected after delivery", "rejected-by-recipient": "Rejected by the recipient",
	"asked-by-service":     "Word about early payment or a discount",
	"recipient-not-listed": "Not sent: the recipient is not in the directory",
	"copy-waits":           "Sent, and not archived yet",
	"quarantined":          "Quarantined", "undecided": "A decision is needed", "same-number": "Same invoice number as another one",
	"strange-date": "A date that can hardly be right", "looks-cut-off": "A file that looks cut off", "binding": "The ledger belongs to other accounts",
	"extracts": "Extracts of the accounts-payable system", "extracts-paused": "Extracts do not come in", "notices": "Notifications of the business network do not come in",
	"received": "Documents that came in over the business network",
}

// needAdvice says what to do about the folders that need a person, to readers of the page: each name leads to the page of its document. The
// command "status" says it to those who have a terminal.
var needAdvice = map[string]string{
	"contradicted":          "Open each one to read what happened. Then ask the provider.",
	"archived-twice":        "Open each one for its numbers (bumId). Ask the provider to remove what is too many; IT closes it then (vaultd close).",
	"unreadable":            "IT gives the group of the share the right to read it (docs/samba.md). It is tried again by itself.",
	"overdue":               "Open each one to see how far it came. Then ask the provider.",
	"kept-differs":          "Open each one to see what differs. Drop a corrected invoice, or have the folder tidied away; IT closes it then (vaultd close).",
	"not-compared":          "The store did not answer its upload, and it does not check Content-MD5. IT compares what is archived with what was sent (vaultd fetch).",
	"delivered-differs":     "Open each one to see what differs. Drop the changed PDF, or have it tidied away; IT closes it then (vaultd close).",
	"sent-differs":          "Open each one to see what differs. Send the recipient a corrected document, or have the folder tidied away; IT closes it then (vaultd close).",
	"rejected-late":         "The business network rejected it after it had delivered it. Ask the provider why. Put it right and drop it again; IT closes this one then (vaultd close).",
	"rejected-by-recipient": "Ask the recipient why. Send a corrected document, or a credit note; IT closes it then (vaultd close).",
	"asked-by-service":      "Open each one for the word, and act upon it; IT closes it then (vaultd close).",
	"recipient-not-listed":  "Check the number with the recipient. The directory is asked again by itself. If the number is wrong, IT gives the folder back (vaultd close).",
	"copy-waits":            "Open each one to see what is in the way of its copy for the archive. It is tried again by itself.",
	"rejected":              "Open each one to see why. Put it right, and drop it again.",
	"quarantined":           "Open each one to see why it stopped. Then IT decides: the command “vaultd why” has the choices.",
	"undecided":             "It has the same files or the same number as another one, a date that can hardly be right, or a file that looks cut off. Open each one and compare. Then IT decides: the command “vaultd why” has the choices.",
	"same-number":           "Open each one and compare it with the other one. If both are right, IT closes it (vaultd close).",
	"looks-cut-off":         "Open each one and look into its files. If they are whole, IT closes it (vaultd close); if not, drop it again.",
	"strange-date":          "Open each one and compare its date with the invoice. If it is right, IT closes it (vaultd close).",
}

// NeedTitle names what a need is about.
func (f *frame) NeedTitle(n present.Need) string {
	if title, ok := needTitles[n.What]; ok {
		return f.T(title)
	}
	return f.Sanitize(n.What)
}

// NeedAdvice says what to do about a need, in the language of the page; empty: only the need itself says it, in English. Where the page has advice, the
// title and the number tell all that the need's text tells.
func (f *frame) NeedAdvice(n present.Need) string {
	if advice, ok := needAdvice[n.What]; ok && f.Visitor.Rights.Read { // others have no page of a document that they could open
		return f.T(advice)
	}
	return ""
}

// needName is one name under a need.
type needName struct {
	Path string // of the document's page; empty: it has none
	Name string
	Drop string
	Why  string // in English
}

// NeedNames returns the names under a need, fit to be shown.
func (f *frame) NeedNames(n present.Need) (all []needName) {
	for _, e := range n.Entries {
		all = append(all, needName{"/document/" + e.Key.String(), f.Sanitize(e.Folder), f.Sanitize(e.Drop), f.Sanitize(e.Why)})
	}
	if len(all) > 0 {
		return all
	}
	for _, name := range n.Names {
		all = append(all, needName{Name: f.Sanitize(name)})
	}
	return all
}

// CountMore returns how many of a need are not named.
func (f *frame) CountMore(n present.Need) int { return n.Count - max(len(n.Entries), len(n.Names)) }

// countNeeds counts what needs a person, as the command "status" does. A folder that waits for rights, and does so for too long, counts twice.
func (b statusBody) countNeeds() (urgent, later int, isFoldersAlone bool) {
	isFoldersAlone = true
	for _, n := range b.Needs {
		if n.When == "now" {
			urgent += n.Count
		} else {
			later += n.Count
		}
		_, isOfFolders := needAdvice[n.What]
		isFoldersAlone = isFoldersAlone && (isOfFolders || n.What == "not-taken")
	}
	return urgent, later, isFoldersAlone
}

// Urgency is the class of the verdict: bad, calm or good.
func (b statusBody) Urgency() string {
	switch urgent, later, _ := b.countNeeds(); {
	case urgent > 0:
		return "bad"
	case later > 0 || !b.Running:
		return "calm"
	}
	return "good"
}

// Verdict says in one line how it stands.
func (f *frame) Verdict(b statusBody) string {
	urgent, later, isFoldersAlone := b.countNeeds()
	switch all := urgent + later; {
	case all == 0 && !b.Running:
		return f.T("vaultd does not run")
	case all == 0:
		return f.T("All is well: nobody is needed")
	case !isFoldersAlone && urgent > 0:
		return f.T("%d now, %d soon: a person is needed", urgent, later)
	case !isFoldersAlone:
		return f.T("%d soon: a person is needed", later)
	case all == 1 && urgent == 1:
		return f.T("1 folder needs a person now")
	case all == 1:
		return f.T("1 folder needs a person")
	case urgent > 0:
		return f.T("%d folders need a person, %d of them now", all, urgent)
	default:
		return f.T("%d folders need a person", all)
	}
}
