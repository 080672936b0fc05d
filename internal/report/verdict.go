package report

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/proof"
)

// describeDownloads says how much of the whole ledger was downloaded again and compared.
func describeDownloads(s proof.Sample) string {
	if s.Archived == 0 {
		return "Nothing is archived, so nothing was downloaded and compared."
	}
	text := fmt.Sprintf("Of %s, %s downloaded and compared with what was sent; %s.",
		formatCount(s.Archived, "archived document", "archived documents"), formatCount(s.Compared, "was", "were"), formatCount(s.Differ, "differs", "differ"))
	if s.Compared < s.Archived {
		text += " That the others are unchanged rests on the checksums of the uploads and on the archive's own word."
	}
	return text
}

// listSafeModeDoubts says what a ledger that was put back does not know.
func (a *Audit) listSafeModeDoubts() []doubt {
	var list []doubt
	if a.isSafeMode() {
		list = append(list, doubt{"safe-mode", 1, a.describeSafeMode()})
	}
	if n := a.proof.PutBack; n > 0 {
		list = append(list, doubt{"put-back", n, "The ledger was put back " + formatCount(n, "time", "times") +
			". What it had forgotten is known from the archive and the folders alone."})
	}
	for _, i := range a.proof.Indexes {
		at, _ := time.Parse(time.RFC3339, i.At) // a broken time is shown as none
		list = append(list, doubt{"index-accepted", 1, fmt.Sprintf("On %s the archive's index of vault %s gave %s. A person (uid %d) let it count as complete: what it left out was not compared.",
			at.In(a.c.Location).Format("2 Jan 2006 15:04 MST"), i.Vault, i.Gave, i.UID)})
	}
	if n := a.proof.Accepted - uint64(len(a.proof.Indexes)); n > 0 {
		list = append(list, doubt{"index-accepted", n, formatCount(n, "earlier index", "earlier indexes") + " that did not give every document counted as complete by a person's decision."})
	}
	if n := uint64(len(a.proof.NeedReconcile)); n > 0 {
		list = append(list, doubt{"needs-reconcile", n, formatCount(n, "folder is", "folders are") + " in doubt: what happened since the ledger was put back is not known."})
	}
	return list
}

// isSafeMode reports whether the ledger may not know everything that was done.
func (a *Audit) isSafeMode() bool { return a.proof.Safe || a.c.Safe != "" }

func (a *Audit) describeSafeMode() string {
	why := cmp.Or(a.c.Safe, "what was done since the ledger was put back is not known")
	return "SAFE MODE: " + why + ". It lasts until vaultd reconcile has asked the archive."
}

// IsIncomplete reports whether the result says that something is missing, or
// that it is not known whether anything is.
func (s Summary) IsIncomplete() bool {
	switch s.Result.Code {
	case "contradiction", "safe-mode", "not-complete":
		return true
	}
	return false
}

// asDropped ends every result without a list: what it cannot say.
const asDropped = "Without a list of what was expected nobody can say whether everything was dropped."

// decideVerdict says the result, the worst first. In safe mode it is what is known at best.
func (a *Audit) decideVerdict(t *counts, s Summary) verdict {
	v := a.decideByCounts(t, s)
	v.Text += s.NotTaken.describeIgnored() + a.describeBasis()
	if s.Check.Agrees && a.isSafeMode() {
		return verdict{"safe-mode", "SAFE MODE, NOT EVERYTHING IS KNOWN", a.describeSafeMode() + " As far as is known: " + v.Text}
	}
	return v
}

// decideByCounts is the result by what the ledger knows.
func (a *Audit) decideByCounts(t *counts, s Summary) verdict {
	b, p, end := t.selected, s.NotTaken, s.describeExpected()
	finished := b.States[ledger.Archived] + b.States[ledger.Delivered]
	shortfall := strings.TrimSpace(s.Expected.describeShortfall() + s.Booked.describeShortfall() + p.describeShortfall() + " " + t.describeElsewhere())
	if vaults := t.vaultsWithMissing(); len(vaults) > 0 {
		shortfall = strings.TrimSpace(shortfall + " When vault " + strings.Join(vaults, ", ") + " was last compared, archived documents were missing in the archive's own index.")
	}
	switch missing := b.Seen - finished - b.States[ledger.Duplicate] - t.resolved; {
	case !s.Check.Agrees:
		return verdict{"contradiction", "THE LEDGER CONTRADICTS ITSELF", "The counts below cannot be relied on. Stop vaultd, keep a copy of state_dir, then see docs/recovery.md, \"The ledger file is damaged\"."}
	case b.Seen == 0 && shortfall == "" && s.Expected == nil && s.Booked == nil:
		return verdict{"nothing", "NOTHING FOUND", "No folder belongs to this selection. " + end}
	case len(a.c.Select.States) > 0:
		return verdict{"part", "A PART ONLY", fmt.Sprintf("%s in the chosen states; this says nothing about the others.", formatCount(b.Seen, "folder is", "folders are"))}
	case missing > 0 || t.inQuestion > 0 || t.needReconcile > 0 || a.isSafeMode() || shortfall != "":
		return verdict{"not-complete", "NOT COMPLETE", strings.TrimSpace(shortfall + " " + a.describeShortfall(t, missing) + " " + end)}
	}
	text := "Nothing that was dropped is missing. " + describeFinished(b)
	code, title, text := "complete-as-dropped", "COMPLETE AS DROPPED", text+describeOthers(t)+". "
	switch { // what has documents that are not listed or booked is no list of all: what else it lacks nobody knows
	case s.Expected != nil && s.Expected.Unlisted > 0:
		code, title = "complete-as-listed", "COMPLETE AS LISTED"
	case s.Expected == nil && s.Booked != nil && s.Booked.NotBooked > 0:
		code, title = "complete-as-listed", "COMPLETE AS BOOKED"
	case s.Expected != nil || s.Booked != nil:
		code, title = "complete", "COMPLETE"
	}
	if !p.asOf.IsZero() {
		title += ", AS OF " + a.formatTime(p.asOf)
		text += "What was dropped since then is not in this report. "
	}
	return verdict{code, title, text + end}
}

// describeExpected says what the documents were compared with, or that nobody said what was expected.
func (s Summary) describeExpected() string {
	if s.Expected == nil && s.Booked != nil {
		return s.Booked.describe()
	}
	return s.Expected.describe()
}

// describeFinished says how much is archived, and how much is delivered: two words that nobody adds up.
func describeFinished(b ledger.Balance) string {
	text := fmt.Sprintf("Of %s, %s archived", formatCount(b.Seen, "folder", "folders"), formatCount(b.States[ledger.Archived], "is", "are"))
	if n := b.States[ledger.Delivered]; n > 0 {
		text += ", " + formatCount(n, "is", "are") + " delivered"
	}
	return text
}

// describeOthers names what is neither archived, delivered nor missing.
func describeOthers(t *counts) string {
	text := ""
	if n := t.selected.States[ledger.Duplicate] - t.deliveries.duplicates; n > 0 {
		text += "; " + formatCount(n, "is", "are") + " the same as an archived one"
	}
	if n := t.deliveries.duplicates; n > 0 {
		text += "; " + formatCount(n, "is", "are") + " the same as a delivered one"
	}
	if t.resolved > 0 {
		text += "; " + formatCount(t.resolved, "was", "were") + " rejected and resolved since (dropped again, or closed by a person)"
	}
	return text
}

// describeShortfall says what is neither archived nor delivered, or is in question.
func (a *Audit) describeShortfall(t *counts, missing uint64) string {
	b := t.selected
	var parts []string
	add := func(n uint64, words string) {
		if n > 0 {
			parts = append(parts, formatNumber(n)+" "+words)
		}
	}
	add(b.OpenEntries(), "on the way")
	add(b.States[ledger.Rejected]-t.resolved, "rejected")
	add(b.States[ledger.Quarantined], "quarantined")
	text := describeFinished(b)
	if missing > 0 {
		not := "not"
		if b.States[ledger.Delivered] > 0 {
			not = "neither"
		}
		text += fmt.Sprintf(" and %s %s: %s", formatNumber(missing), not, strings.Join(parts, ", "))
	}
	text += describeOthers(t) + "."
	if t.inQuestion > 0 {
		text += " " + formatCount(t.inQuestion, "is", "are") + " in question: contradicted, downloaded with other content, or closed in doubt."
	}
	if t.receiptAlone > 0 {
		text += " " + formatCount(t.receiptAlone, "is", "are") + " called archived by a receipt alone, which has no signature of this ledger; the archive has not confirmed it."
	}
	if t.needReconcile > 0 {
		text += " " + formatCount(t.needReconcile, "is", "are") + " in doubt since the ledger was put back."
	}
	return text
}
