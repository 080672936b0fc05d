package statusfile

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"vaultd/internal/drop"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/watch"
)

// page is one _STATUS.txt before it is written.
type page struct {
	Drop, Sidecar string
	Now           time.Time // in the zone that people read
	Until         time.Time // after that the page may be wrong although no change was reported
	Test          bool
	Route         ledger.Route // of the drop
	Delayed       time.Time    // since when; zero: it is not
	Stopped       bool         // nothing is taken or sent at all until IT has acted

	Rejected   section     // what came back
	seen       ledger.Scan // which of the returned folders are not in their places any more
	Refused    section     // what was not taken, and needs a hand
	Crowded    section     // what waits for room on a disk
	Held       section     // what waits for IT's check with the archive
	Unusual    section     // what was archived of late, and a person should look at
	Copying    section     // what is being written, or is known to be not whole yet
	Waiting    section     // what is not taken yet for another reason, and needs no hand so far
	Taken      section
	Today      dayCounts
	Duplicates []item // the last of Today.repeats
}

// section is one part of the page: how many there are, and some of them.
type section struct {
	count int
	items []item
}

func (h *section) addItem(name, text string) {
	h.count++
	if len(h.items) < mostShown {
		h.items = append(h.items, item{name, text})
	}
}

type item struct{ name, text string }

// addLedger takes in what the open entries tell, newest first.
func (p *page) addLedger(part *dropOverview) {
	for _, e := range slices.Backward(part.rejects) {
		p.Rejected.addItem(p.describeRejected(e))
	}
	for _, e := range slices.Backward(part.newest) {
		text := "taken " + p.formatTime(e.SeenAt) + ", " + describeProgress(e)
		if !e.Hold && (e.NeedsReview() || e.CutOff == ledger.CutOffFound) {
			text += describeUnusual(e)
		}
		p.Taken.addItem(e.Folder, text)
	}
	p.Rejected.count, p.Taken.count = part.fix, part.taken
}

// describeRejected says in a few words what to put right, and where it lies.
func (p *page) describeRejected(e ledger.Entry) (name, text string) {
	switch {
	case e.Cause.Code == ingest.Unreadable, e.Attention() == ledger.RecipientNotListed:
		return e.Folder, present.CauseText(e)
	case e.Contradicted && e.State == ledger.Delivered:
		return e.Folder, present.WordsOf(e.Route).Progress.Late
	case e.Contradicted:
		return e.Folder, present.WordsOf(e.Route).Progress.Against
	case e.Attention() == ledger.RefusedByRecipient:
		return e.Folder, present.WordsOf(e.Route).Progress.Refused
	}
	words := present.BriefCause(e.Cause)
	if since := p.seen.MissingSince(e.Key); !since.IsZero() {
		return e.Folder, "PLEASE CHECK: " + present.DescribeMissing(e, p.formatTime(since)) + "; drop it again, or tell IT to close it"
	}
	if e.Dest == "" {
		return e.Folder, cmp.Or(words, present.WordsOf(e.Route).NotEnded) + "; on its way back to you"
	}
	return strings.ReplaceAll(e.Dest, "/", `\`), cmp.Or(words, "see _REASON.txt")
}

// describeUnusual says in a few words, behind others, what is unusual about a folder that is not archived yet.
func describeUnusual(e ledger.Entry) string {
	text := ""
	if !e.SameNumber.IsZero() {
		text += "; same invoice number as another folder"
	}
	switch {
	case e.CutOff == ledger.CutOffFound && e.Cause.Code == ledger.CauseLooksCutOff:
		text += "; " + e.Cause.Text
	case e.CutOff == ledger.CutOffFound:
		text += "; a file looks cut off"
	}
	if !e.SameContent.IsZero() {
		text += "; same files as another folder"
	}
	if e.StrangeDate {
		text += "; document date is before 1990, in the future, or another day here than in UTC"
	}
	return text
}

// describeProgress says in a few words where a taken folder is.
func describeProgress(e ledger.Entry) string {
	switch {
	case e.Attention() == ledger.AwaitingDecision && e.CutOff == ledger.CutOffFound:
		return "stopped" + describeUnusual(e) + "; IT can let it go as it is, or give it back to you"
	case e.Attention() == ledger.AwaitingDecision:
		return "stopped" + describeUnusual(e) + "; IT must decide"
	case e.Hold:
		return "stopped by IT"
	case e.State == ledger.Quarantined:
		return "stopped: IT must decide. Do not drop it again"
	}
	words := present.WordsOf(e.Route).Progress
	switch {
	case e.State == ledger.Discovered && !e.WaitsFor.IsZero():
		return words.UnderWay
	case e.State == ledger.Discovered && e.Cause.Code == "still-changing":
		return "still changing"
	case e.State == ledger.Discovered && e.Cause.Code == ingest.CauseStillOpen:
		return e.Cause.Text
	}
	return cmp.Or(words.At[e.State], words.Else)
}

// addNotTaken takes in what the watcher tells; full: nothing is taken for want of disk.
func (p *page) addNotTaken(s watch.Snapshot, remind time.Duration, full bool) {
	for _, w := range s.NotTaken {
		to := p.sectionOf(w.Reason)
		for _, n := range w.Items {
			late := n.FirstSeen.Add(remind)
			if late.After(p.Now) {
				p.Until = earlierOf(p.Until, late)
			}
			text, act := p.describeWaiting(w.Reason, n, !late.After(p.Now))
			switch to = p.sectionOf(w.Reason); {
			case w.Reason == watch.Held:
				to = &p.Held
			case w.Reason == watch.NoRoom:
				if to = &p.Crowded; full {
					text = p.words().Progress.DiskFull
				}
			case act:
				to = &p.Refused
			}
			to.addItem(n.Name, text)
		}
		to.count += w.Count - len(w.Items) // those without a name go where the last one went
	}
}

// sectionOf is the section of what needs no hand so far.
func (p *page) sectionOf(r watch.Reason) *section {
	switch r {
	case watch.Copying, watch.StillOpen, watch.Temporary, watch.Placeholder, watch.Incomplete:
		return &p.Copying
	}
	return &p.Waiting
}

// describeWaiting says why something is not taken, and whether somebody must act.
func (p *page) describeWaiting(r watch.Reason, n watch.NotTakenItem, late bool) (text string, act bool) {
	since := " since " + p.formatTime(n.FirstSeen)
	switch r {
	case watch.LooseFile:
		if n.Detail == watch.LinkDetail {
			return "a link: copy the folder itself here, delete the link", true
		}
		return "loose file" + since + ": put it in a folder", true
	case watch.NotFile:
		return describeNotFile(n.Detail), true
	case watch.NoSidecar:
		if n.Detail != "" {
			return n.Detail, true
		}
		return "no " + p.Sidecar + since + present.WordsOf(p.Route).Progress.NoSidecar, late
	case watch.Copying:
		return "changed " + p.formatAgo(cmp.Or(n.LastChanged, n.FirstSeen)), false
	case watch.StillOpen:
		return n.Detail + since + ": close it there", late
	case watch.Temporary:
		return "still has " + n.Detail + since + ". Finish copying; close the program, or delete that file", late
	case watch.Placeholder:
		return n.Detail + since + " is only a placeholder of your cloud folder. Download the file, delete the placeholder", late
	case watch.Incomplete:
		return n.Detail + since, late
	case watch.Busy:
		return "in use" + since, late
	case watch.NoRight:
		return "no right to take it" + describeOwner(n.Detail) + since + ": IT must set the share's masks", true
	case watch.Queued:
		return "waits for its turn", false
	case watch.Held:
		return "waits" + since, false
	case watch.NoRoom:
		return "waits" + since + ": this share's disk is full", false
	case watch.OtherDevice:
		return describeInside(n.Detail) + "lies on another disk or is a mount: IT must move it into the drop folder itself", true
	case watch.ReadOnly:
		return "cannot be taken" + since + ": this share is read-only; ask IT", true
	}
	if strings.Contains(n.Detail, drop.ErrReservedName.Error()) {
		return p.words().Progress.Reserved + ": rename the " + p.words().Progress.Thing, true
	}
	return "cannot be taken" + since + ": ask IT", true
}

// words are those of the drop's route.
func (p *page) words() present.Words { return present.WordsOf(p.Route) }

// describeNotFile says what to do about something that is no file, in a drop of single PDFs.
func describeNotFile(detail string) string {
	switch detail {
	case watch.FolderDetail:
		return "is a folder; this drop takes single PDFs: move the PDFs out of it"
	case watch.LinkDetail:
		return "a link: copy the PDF itself here, delete the link"
	}
	return "is no file; this drop takes single PDFs: ask IT"
}

// describeInside names what in a folder a look stumbled over.
func describeInside(detail string) string {
	rest, found := strings.CutPrefix(detail, "look at ")
	name, err := strconv.QuotedPrefix(rest)
	if name, _ = strconv.Unquote(name); !found || err != nil || name == "." {
		return ""
	}
	return "what is in " + name + " "
}

// describeOwner finds "(owner alice, 0755)" in the words of a refused claim.
func describeOwner(detail string) string {
	_, rest, found := strings.Cut(detail, "(owner ")
	who, _, closed := strings.Cut(rest, ")")
	if !found || !closed {
		return ""
	}
	return " (owner " + who + ")"
}

// formatTime gives the hour for today, else the day as well.
func (p *page) formatTime(t time.Time) string {
	return present.Clock{Now: p.Now, Location: p.Now.Location()}.Brief(t)
}

func (p *page) formatAgo(t time.Time) string {
	switch d := p.Now.Sub(t); {
	case d < time.Minute:
		return fmt.Sprintf("%d s ago", max(0, int(d.Seconds())/5*5))
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	}
	return "at " + p.formatTime(t)
}

// renderHead is the only part that changes by itself.
func (p *page) renderHead() string {
	words := p.words()
	text := fmt.Sprintf("%-36s %s\n", words.Progress.Title+shortenName(p.Drop), p.Now.Format("Mon 2 Jan 2006 15:04 MST"))
	if p.Test {
		text += "TEST, NO EVIDENCE: nothing dropped here counts as " + words.End + ".\n"
	}
	return text + "Time over 10 minutes old? Call IT.\n"
}

// renderBody is what the page says beside the time.
func (p *page) renderBody() string {
	var b strings.Builder
	width, words := narrowest, p.words()
	for _, h := range []section{p.Rejected, p.Refused, p.Crowded, p.Held, p.Copying, p.Waiting, p.Taken, p.Unusual, {items: p.Duplicates}} {
		for _, l := range h.items {
			width = min(max(width, utf8.RuneCountInString(shortenName(l.name))), widest)
		}
	}
	if !p.Delayed.IsZero() {
		fmt.Fprintf(&b, "DELAYED since %s.\nYour %ss are safe and will be sent. Do not drop them again.\n", p.formatTime(p.Delayed), words.Progress.Thing)
		if p.Stopped {
			fmt.Fprintf(&b, words.Progress.Stopped+"\n", words.Progress.Thing)
		}
	}
	b.WriteByte('\n')
	if p.Rejected.count+p.Refused.count+p.Crowded.count+p.Held.count+p.Copying.count+p.Waiting.count+p.Taken.count+p.Unusual.count == 0 {
		b.WriteString("Nothing to put right, nothing waiting.\n")
	}
	if n := p.Rejected.count + p.Refused.count; n > 0 {
		fmt.Fprintf(&b, "PLEASE FIX (%d)\n", n)
		p.Rejected.writeTo(&b, width)
		if slices.ContainsFunc(p.Rejected.items, func(l item) bool { return strings.Contains(l.name, `\`) }) {
			b.WriteString("  (read _REASON.txt there)\n")
		}
		p.Refused.writeTo(&b, width)
	}
	p.Crowded.writeTitled(&b, "WAITING FOR ROOM (%d)\n", width)
	p.Held.writeTitled(&b, words.Progress.Checking+" (%d)\n", width)
	p.Copying.writeTitled(&b, "STILL COPYING (%d)\n", width)
	p.Waiting.writeTitled(&b, "NOT TAKEN YET (%d)\n", width)
	p.Taken.writeTitled(&b, "TAKEN, NOT YET "+strings.ToUpper(words.End)+" (%d, newest first)\n", width)
	p.Unusual.writeTitled(&b, "PLEASE CHECK (%d)\n", width)
	if p.Unusual.count > 0 {
		b.WriteString("  (tell IT whether they are right)\n")
	}
	p.writeEnded(&b, width)
	return b.String()
}

// writeEnded is what is done with.
func (p *page) writeEnded(b *strings.Builder, width int) {
	// A drop that changed its route today may have both. They are never added up.
	for _, end := range []struct {
		name string
		of   endCount
	}{{"archived", p.Today.archived}, {"delivered", p.Today.delivered}} {
		if end.of.count > 0 || end.name == present.WordsOf(p.Route).End {
			p.writeEnd(b, strings.ToUpper(end.name)+" TODAY", end.of)
		}
	}
	if p.Today.duplicateCount == 0 {
		return
	}
	fmt.Fprintf(b, "DUPLICATE TODAY (%d)\n", p.Today.duplicateCount)
	section{p.Today.duplicateCount, p.Duplicates}.writeTo(b, width)
}

// writeEnd writes how many came to one end today, and which was the last.
func (p *page) writeEnd(b *strings.Builder, title string, c endCount) {
	fmt.Fprintf(b, "%s (%d)", title, c.count)
	if c.count > 0 {
		fmt.Fprintf(b, "     last: %s, %s", shortenName(c.last), p.formatTime(c.lastAt))
	}
	b.WriteByte('\n')
}

// writeTitled writes a part with its title, which holds its count; nothing where it is empty.
func (h section) writeTitled(b *strings.Builder, title string, width int) {
	if h.count > 0 {
		fmt.Fprintf(b, title, h.count)
		h.writeTo(b, width)
	}
}

func (h section) writeTo(b *strings.Builder, width int) {
	for _, l := range h.items {
		fmt.Fprintf(b, "  %-*s %s\n", width, shortenName(l.name), replaceUnprintable(l.text))
	}
	if more := h.count - len(h.items); more > 0 {
		fmt.Fprintf(b, "  ... and %d more\n", more)
	}
}

// Characters of a name: those shown at most, and those that the column of names has.
const (
	longestShown = 60
	narrowest    = 21
	widest       = 36
)

// shortenName makes a name of unknown origin fit for a line.
func shortenName(name string) string {
	return sanitize.Truncate(replaceUnprintable(name), longestShown)
}

func replaceUnprintable(text string) string { return sanitize.Replace(text, unicode.ReplacementChar) }
