package present

import (
	"cmp"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// triedAgain is what a person can do about an entry that goes on by itself once something is put right.
var triedAgain = map[ledger.Attention]string{
	ledger.RecipientNotListed: "check the number with the recipient. The directory is asked again by itself; if the number is wrong, close this one, correct sentTo in its document and drop it again",
	ledger.CopyNotMade:        "put right what is in the way of its copy; it is tried again by itself, and its folder waits for that",
}

// Options says what a person can do about e, the best first.
func (s Situation) Options(d Dossier) []Option {
	e, w := d.Entry, WordsOf(d.Entry.Route).options
	x := e.Key.String()
	all := []Option{}
	add := func(what, command string) { all = append(all, Option{what, command}) }
	offer := func(what string, one Action) { // only what the ledger allows now
		if one.Check(e) == nil {
			add(what, one.Command(e))
		}
	}
	offer("let it go on", Unhold)
	addOptionsUnusual(e, add)
	switch {
	case e.Contradicted && !e.Resolved:
		add(contradictedOf(e, w.rejectedLate, w.contradicted), "vaultd show "+x)
		if r := PossibleRemote(e); r != "" {
			add("see what the archive has under its number (may be charged)", FetchCommand(e.Vault, r))
		}
	case e.IsArchivedTwice() && !e.Resolved:
		add("ask the provider to remove all but one of "+sanitize.Text(strings.Join(archivedAs(e), ", "))+"; "+sanitize.Text(string(e.ArchivedRemote))+" is the one that is booked", "vaultd receipt "+x)
	case e.State == ledger.Rejected && !e.Resolved:
		s.addOptionsRejected(d, add, offer)
	case e.State == ledger.Quarantined || e.State == ledger.Unclear:
		s.addOptionsStuck(e, add)
	case triedAgain[e.Attention()] != "":
		add(triedAgain[e.Attention()], "")
	case e.State == ledger.Uploaded && w.wait != "":
		add(w.wait, "")
	case e.State == ledger.Archived || e.State == ledger.Delivered:
		if e.Recipient == ledger.RecipientRejected && !e.Resolved && w.rejectedByPeople != "" {
			add(w.rejectedByPeople, "vaultd show "+x)
		}
		if e.Attention() == ledger.AskedByService {
			add(AdviseOnAsked(e.Asks), "")
		}
		if e.Attention() == ledger.ContentDiffers {
			add("show the provider what is downloaded; it is compared anew with that (may be charged)", "vaultd fetch "+x)
		}
		add("see the evidence", "vaultd receipt "+x)
		if e.Attention() == ledger.SourceChanged {
			add(w.compare, "")
		}
		if e.State == ledger.Archived && e.Attention() != ledger.ContentDiffers {
			add("download it and compare (may be charged)", "vaultd fetch "+x)
		}
	case e.State == ledger.Duplicate:
		add(w.seeFirst, "vaultd show "+e.DuplicateOf.String())
	}
	if !e.WaitsFor.IsZero() {
		add("see the one that it waits for", "vaultd why "+e.WaitsFor.String())
	}
	if e.NeedsReconcile {
		add(w.lost, "vaultd reconcile")
	}
	offer(releaseMeans(e), Release)
	offer(closeMeans(e), Close)
	if e.State.IsOpen() {
		offer("stop it: no further step until unhold", Hold)
	}
	return all
}

// addOptionsUnusual adds what a person should look at first.
func addOptionsUnusual(e ledger.Entry, add func(what, command string)) {
	if !e.SameContent.IsZero() && e.Hold && e.SameContent != e.SameNumber {
		add("look at the other one with the same files first", "vaultd show "+e.SameContent.String())
	}
	if !e.SameNumber.IsZero() && !e.Reviewed {
		add("compare it with the other one that has this invoice number", "vaultd show "+e.SameNumber.String())
	}
	if e.CutOff == ledger.CutOffFound {
		add("look whether its files are whole; if not, give it back, and have it dropped again", "vaultd show "+e.Key.String())
	}
	if e.StrangeDate && !e.Reviewed {
		add("compare its document date with the invoice itself; if it is wrong, ask who dropped it", "vaultd show "+e.Key.String())
	}
}

// addOptionsStuck adds what can be done about an entry that cannot go on before something is clear.
func (s Situation) addOptionsStuck(e ledger.Entry, add func(what, command string)) {
	if e.Cause.Code == ingest.CauseMounted {
		add("unmount what lies in its folder first: before that it goes nowhere, whatever you decide", "")
	}
	if WordsOf(e.Route).options.lookFor != "" {
		addOptionsUndelivered(e, add)
		return
	}
	if e.State == ledger.Unclear {
		add("wait: the archive is asked again by itself, and nothing is sent before it is clear", "")
	}
	for _, t := range s.collectEvidence(e) {
		add("ask the provider whether anything arrived under bumId "+sanitize.Text(t.BumID), "")
	}
	if r := PossibleRemote(e); r != "" && e.State == ledger.Quarantined {
		add("see what the archive has under its number (may be charged)", FetchCommand(e.Vault, r))
	}
	if r := lastFailed(e); r != "" {
		add("ask the provider why it could not be archived; the number to name is bumId "+sanitize.Text(r), "")
	}
}

// archivedAs lists the archive's numbers under which it says that the document is archived.
func archivedAs(e ledger.Entry) (all []string) {
	for _, r := range e.Listed() {
		if n := string(r.Ticket.Remote); r.Fate == ledger.Succeeded && !slices.Contains(all, n) {
			all = append(all, n)
		}
	}
	return all
}

// addOptionsUndelivered adds what can be done about one that cannot go on before a person has looked whether it was delivered.
func addOptionsUndelivered(e ledger.Entry, add func(what, command string)) {
	w := WordsOf(e.Route).options
	if number := RemoteNumber(e); e.Cause.Code == ledger.CauseNumberTaken && w.numberTaken != "" {
		add(w.numberTaken+sanitize.Text(string(number)), "")
		return
	}
	addLookFor(e, add)
}

// addLookFor adds where to look for one that may have been delivered, and under which number.
func addLookFor(e ledger.Entry, add func(what, command string)) {
	w := WordsOf(e.Route).options
	for _, r := range e.Registrations {
		if r.Fate == ledger.MaybeStored || r.Fate == ledger.Stored {
			add(w.lookFor+w.lookForNumber+sanitize.Text(string(r.Ticket.Remote)), "")
			return
		}
	}
	add(w.lookFor, "")
}

// releaseMeans says what "release" does to e.
func releaseMeans(e ledger.Entry) string {
	if len(archivedAs(e)) > 0 {
		return "it is archived, by the archive's own word: book that; nothing is sent"
	}
	w := WordsOf(e.Route).options
	if e.Cause.Code == ledger.CauseNumberTaken {
		return cmp.Or(w.releaseTaken, w.release)
	}
	return w.release
}

// closeMeans says what "close" does to e.
func closeMeans(e ledger.Entry) string {
	switch e.State {
	case ledger.Discovered, ledger.Packaged:
		return "give it back to people: nothing of it was sent"
	case ledger.Quarantined, ledger.Unclear:
		return WordsOf(e.Route).options.close
	case ledger.Archived, ledger.Delivered:
		switch e.Attention() {
		case ledger.SourceChanged:
			return "it is seen to: no alarm any more; the folder stays"
		case ledger.ContentDiffers:
			return "it is cleared up with the provider: no alarm any more; the kept folder is not removed before a download is what was sent"
		case ledger.NotCompared:
			return "no alarm any more, without a comparison; the kept folder is never removed"
		case ledger.RepeatedNumber, ledger.StrangeDate, ledger.LooksCutOff:
			return "it is right as it is: status does not name it any more; the audit does"
		}
		if e.Recipient == ledger.RecipientRejected && !e.Contradicted {
			return "it is cleared up with the recipient: no alarm any more; what the recipient said stays"
		}
		return "it is cleared up with the provider: no alarm any more; the flag and what is left of the folder stay"
	}
	return "it is seen to otherwise: no alarm any more"
}

// lastFailed is the archive's number of the newest registration that it said was not archived; empty: there is none.
func lastFailed(e ledger.Entry) string {
	for _, r := range slices.Backward(e.Registrations) {
		if r.Fate == ledger.Lapsed && r.LastStatus == archive.Failed {
			return string(r.Ticket.Remote)
		}
	}
	return ""
}

// addOptionsRejected adds what can be done about a rejected entry.
func (s Situation) addOptionsRejected(d Dossier, add func(what, command string), offer func(what string, one Action)) {
	e, w := d.Entry, WordsOf(d.Entry.Route).options
	if !d.MissingSince().IsZero() {
		add("look for it, correct it and drop it again: the same number and sender, or the same files, resolve this rejection", "")
		return
	}
	if !w.validatesFirst {
		offer(w.retry, Retry)
		return
	}
	if e.IsSentAgainInDoubt() {
		addLookFor(e, add)
	}
	if where := s.FolderPath; Retry.Check(e) == nil && where != "" {
		add("correct it as _REASON.txt in the folder says, and see whether it is good now", "vaultd validate "+sanitize.ShellWord(where))
		offer(w.retry, Retry)
	}
}

// PossibleRemote is the newest number of an entry under which the archive may have content; empty: there is none.
func PossibleRemote(e ledger.Entry) archive.RemoteID {
	if e.ArchivedRemote != "" {
		return e.ArchivedRemote
	}
	for _, r := range slices.Backward(e.Listed()) {
		if r.Fate == ledger.MaybeStored || r.Fate == ledger.Stored || r.Fate == ledger.Succeeded {
			return r.Ticket.Remote
		}
	}
	return ""
}

// FetchCommand is the command that downloads what the archive has under a number.
func FetchCommand(v archive.VaultID, r archive.RemoteID) string {
	return "vaultd fetch --vault " + sanitize.ShellWord(string(v)) + " --bumid " + sanitize.ShellWord(string(r))
}

// AdviseOnAsked says what to do about a word of a service that pays early.
func AdviseOnAsked(pair string) string {
	switch pair {
	case "BusinessAccept/RequestForEarlyPayment":
		return "the supplier asks for early payment: whoever pays decides"
	case "BusinessReject/RepaymentFailed":
		return "a repayment failed: ask whoever pays, and the provider"
	}
	return "a credit note about a discount waits at the business network, and is not received under a number of its own: ask the provider for it, or drop it where it is archived"
}
