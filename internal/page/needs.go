package page

import (
	"vaultd/internal/present"
)

// NeedTitle names what a need is about.
func (f *frame) NeedTitle(n present.Need) string {
	return f.T(present.KindOf(n.What).Title)
}

// NeedAdvice says what to do about a need, in the language of the page; empty:
// only the need itself says it, in English. If the page has advice, the title
// and the number tell all that the need's text tells.
func (f *frame) NeedAdvice(n present.Need) string {
	if advice := present.KindOf(n.What).Advice; advice != "" && f.Visitor.Rights.Read { // others lack access to the page of a document
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
		isFoldersAlone = isFoldersAlone && (present.KindOf(n.What).Advice != "" || n.What == "not-taken")
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
