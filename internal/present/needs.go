package present

import (
	"fmt"
	"io/fs"
	"math"
	"strings"
	"time"

	"vaultd/internal/watch"
)

// transientPause is how long a pause may last before it needs a person: most end by themselves.
const transientPause = time.Minute

// transientFault is how long what comes in may fail before it needs a person: services are down for minutes.
const transientFault = 10 * time.Minute

func (f IncomingFault) isNeed(now time.Time) bool {
	return f.Since.IsZero() || now.Sub(f.Since) >= transientFault
}

// ClockTolerance is by how much a clock may be wrong before somebody should set it.
const ClockTolerance = time.Minute

// needAdder adds a need when n is not zero.
type needAdder func(when, what string, n int, text, do string, names []string)

// AddNeeds adds what a person must see to, the most urgent first.
func (s *StatusSummary) AddNeeds(c Clock) {
	add := func(when, what string, n int, text, do string, names []string) {
		if n > 0 {
			s.Needs = append(s.Needs, Need{When: when, What: what, Count: n, Text: text, Do: do, Names: names})
		}
	}
	addEntries := func(when, what string, c NamedCount, text, do string) {
		if c.Count > 0 {
			s.Needs = append(s.Needs, Need{when, what, c.Count, text, do, c.names(), c.Entries})
		}
	}
	a := s.Attention
	s.addSafetyNeeds(c, add)
	addEntries("now", "contradicted", a.Contradicted, FormatCount(a.Contradicted.Count, "document", "documents")+" contradicted by the archive",
		"see vaultd why X; ask the provider")
	addEntries("now", "rejected-late", a.RejectedLate, FormatCount(a.RejectedLate.Count, "document", "documents")+" rejected by the business network after delivery",
		"see vaultd why X; ask the provider, put it right and drop it again, then vaultd close X")
	addEntries("now", "archived-twice", a.ArchivedTwice, FormatCount(a.ArchivedTwice.Count, "document", "documents")+" archived more than once",
		"see vaultd why X; ask the provider to remove what is too many, then vaultd close X")
	for _, p := range s.Pauses {
		if s.isNeed(p) {
			add("now", "paused", 1, fmt.Sprintf("%s paused since %s: %s; %d wait, none lost", p.Route, c.Brief(p.Since), p.Text, p.Wait),
				p.Do+DescribeNextTry(c, p.Next), nil)
		}
	}
	s.addDropNeeds(add)
	s.addIncomingNeeds(c, add)
	if s.ClockAhead != nil && math.Abs(*s.ClockAhead) > ClockTolerance.Seconds() {
		way, off := "ahead of", time.Duration(*s.ClockAhead*float64(time.Second))
		if off < 0 {
			way, off = "behind", -off
		}
		add("soon", "clock", 1, "the clock of this machine was "+FormatAge(off)+" "+way+" the archive service's at the last registration",
			"set the time (timedatectl; chronyc makestep); uploads are reckoned by the service's clock meanwhile, but the times in reports are wrong", nil)
	}
	full := s.addDiskNeed(add)
	s.addNotTakenNeeds(full, add)
	addEntries("now", "unreadable", a.Unreadable, FormatCount(a.Unreadable.Count, "taken folder", "taken folders")+" cannot be read",
		"give the share's group the right to read what is named (docs/samba.md); it is tried again by itself")
	addEntries("now", "overdue", a.Overdue, FormatCount(a.Overdue.Count, "document", "documents")+" open for longer than "+FormatAge(s.Open.alertAfter()),
		"see vaultd why X; ask the provider about them, with the request ids that vaultd show X names")
	addEntries("soon", "kept-differs", a.KeptDiffers, FormatCount(a.KeptDiffers.Count, "kept folder is", "kept folders are")+" not what was archived",
		"see vaultd why X; compare it with vaultd fetch X; drop a corrected invoice or tidy it away, then vaultd close X")
	addEntries("soon", "not-compared", a.NotCompared, FormatCount(a.NotCompared.Count, "document is", "documents are")+" archived after an upload without an answer to a store that does not check Content-MD5",
		"compare what is archived with what was sent: vaultd fetch X; until then the kept folder is not removed")
	a.addDeliveryNeeds(addEntries)
	addEntries("soon", "rejected", a.Rejected, fmt.Sprintf("%d rejected", a.Rejected.Count),
		"put them right as _REASON.txt says and drop them again")
	s.Needs = append(s.Needs, s.LongNotTaken...)
	addEntries("soon", "quarantined", a.Quarantined, fmt.Sprintf("%d quarantined", a.Quarantined.Count),
		"see vaultd why X, then decide")
	addEntries("soon", "undecided", a.Undecided, fmt.Sprintf("%d held: same files or same number as another, a date that can hardly be right, or a file that looks cut off", a.Undecided.Count),
		"see vaultd why X, then decide")
	addEntries("soon", "same-number", a.SameNumber, FormatCount(a.SameNumber.Count, "document has", "documents have")+" the invoice number of another one",
		"see vaultd why X and compare the two; if both are right: vaultd close X")
	addEntries("soon", "looks-cut-off", a.CutOff, FormatCount(a.CutOff.Count, "document has", "documents have")+" a file that looks cut off",
		"see vaultd why X and look into the file; if it is whole: vaultd close X, else have it dropped again")
	addEntries("soon", "strange-date", a.StrangeDate, FormatCount(a.StrangeDate.Count, "document has", "documents have")+" a date that can hardly be right",
		"see vaultd why X and look into the invoice; if it is to stay: vaultd close X")
}

// addDeliveryNeeds adds what a person must see to of what was delivered, or is to be.
func (a AttentionCounts) addDeliveryNeeds(addEntries func(when, what string, c NamedCount, text, do string)) {
	addEntries("soon", "delivered-differs", a.DeliveredDiffers, FormatCount(a.DeliveredDiffers.Count, "kept PDF is", "kept PDFs are")+" not what was delivered",
		"see vaultd why X; drop the changed PDF or tidy it away, then vaultd close X")
	addEntries("soon", "sent-differs", a.SentDiffers, FormatCount(a.SentDiffers.Count, "kept folder is", "kept folders are")+" not what was sent to the business network",
		"see vaultd why X; send the recipient a corrected document or tidy it away, then vaultd close X")
	addEntries("soon", "rejected-by-recipient", a.RejectedByRecipient, FormatCount(a.RejectedByRecipient.Count, "document was", "documents were")+" rejected by the recipient",
		"see vaultd why X; ask the recipient, then vaultd close X")
	addEntries("soon", "asked-by-service", a.AskedByService, FormatCount(a.AskedByService.Count, "document has", "documents have")+" word about early payment or a discount upon which a person must act",
		"see vaultd show X for the word; act upon it, then vaultd close X")
	addEntries("soon", "recipient-not-listed", a.RecipientNotListed, FormatCount(a.RecipientNotListed.Count, "document is", "documents are")+" not sent yet: the directory has no valid line of the recipient",
		"see vaultd why X; check the number with the recipient. The directory is asked again by itself; if the number is wrong, vaultd close X gives the folder back")
	addEntries("soon", "copy-waits", a.CopyWaits, FormatCount(a.CopyWaits.Count, "sent document is", "sent documents are")+" not archived yet: the copy cannot be put into its drop folder",
		"see vaultd why X for what is in the way; it is tried again by itself")
}

// addNotTakenNeeds adds what lies in the drop folders and needs mending before it is taken. A full disk has a need of its own.
func (s *StatusSummary) addNotTakenNeeds(full bool, add needAdder) {
	for _, n := range s.NotTaken {
		if s.Safe == nil && needsMending[n.Reason] && !(full && n.Reason == string(watch.NoRoom)) {
			add("now", "not-taken", n.Count, fmt.Sprintf("drop %s: %d not taken: %s", n.Drop, n.Count, n.Reason),
				adviseOnReason(n.Reason), n.Names)
		}
	}
}

// addIncomingNeeds adds what does not come in for too long.
func (s *StatusSummary) addIncomingNeeds(c Clock, add needAdder) {
	for _, f := range s.Incoming {
		if f.isNeed(c.Now) {
			add("now", f.What, 1, f.Text, f.Do, nil)
		}
	}
}

// addSafetyNeeds adds what comes before anything else: what makes the ledger or the configuration unsafe.
func (s *StatusSummary) addSafetyNeeds(c Clock, add needAdder) {
	if s.LostLedger != "" {
		add("now", "ledger-lost", 1, "SAFE MODE: "+untilNewline(s.LostLedger)+"; nothing is taken, sent, moved or removed", AdviseOnLostLedger, nil)
	}
	if s.TakenOverEpoch > 0 {
		add("now", "taken-over", 1, "nothing is taken, sent, moved or removed here any more", AdviseOnTakeover(s.TakenOverEpoch), nil)
	}
	if m := s.Safe; m != nil {
		do := "vaultd reconcile asks the archive and ends it (docs/recovery.md)"
		if !s.Running {
			do = "start vaultd, then vaultd reconcile (docs/recovery.md)"
		}
		add("now", "safe-mode", 1, fmt.Sprintf("SAFE MODE since %s: %s", c.Brief(m.Since), m.Text), do, nil)
	}
	s.addCheckNeeds(c, add)
	if s.Damage != "" && (s.Check == nil || len(s.Check.Ledger) == 0) {
		add("now", "damaged", 1, "DAMAGED: "+untilNewline(s.Damage)+"; what is shown is not all", "keep the file; restore the newest backup, or rebuild the ledger (docs/recovery.md)", nil)
	}
	if !s.Balance.Agrees {
		add("now", "balance", 1, "the balance does not agree", "run vaultd verify; nothing should be sent before this is clear", nil)
	}
	if s.ReloadFault != "" {
		add("now", "configuration", 1, "the new configuration is not in use, the one before goes on: "+untilNewline(s.ReloadFault),
			"vaultd check names every mistake; then systemctl reload vaultd", nil)
	}
}

// addCheckNeeds adds what the check of the whole ledger found.
func (s *StatusSummary) addCheckNeeds(c Clock, add needAdder) {
	k := s.Check
	if k == nil {
		return
	}
	add("now", "damaged", len(k.Ledger), FormatCount(len(k.Ledger), "difference", "differences")+" in the ledger itself, found "+c.Brief(k.At),
		"keep the file; restore the newest backup, or rebuild the ledger (docs/recovery.md)", firstFew(k.Ledger))
	add("now", "files", len(k.Files), FormatCount(len(k.Files), "file is", "files are")+" not what the ledger says, found "+c.Brief(k.At),
		"look at the disk; a package is made anew from its folder, a receipt with vaultd receipt", firstFew(k.Files))
	add("soon", "check", len(k.Unread), FormatCount(len(k.Unread), "receipt", "receipts")+" in kept folders could not be read, so nothing is known of them, found "+c.Brief(k.At),
		"give the user vaultd runs as the right to read the drop folder (docs/samba.md), or mend the share; it is looked at again by itself", firstFew(k.Unread))
	if k.Failed != "" {
		add("soon", "check", 1, "the ledger could not be checked: "+untilNewline(k.Failed), "it is tried again in an hour; see the log", nil)
	}
}

func firstFew(texts []string) []string { return texts[:min(len(texts), NamedAtMost)] }

// addDiskNeed adds that the disk of state_dir is full, and reports whether it is.
func (s *StatusSummary) addDiskNeed(add needAdder) (full bool) {
	d := s.Disk
	full = d.StandsStill || d.NothingNew || d.LedgerFree >= 0 && d.LedgerFree < d.MinFree
	if full {
		what := "nothing new is taken, uploads go on"
		switch {
		case d.StandsStill:
			what = "not even the ledger has room, so that nothing is taken, sent or asked"
		case d.Reserve < d.Wanted:
			what += fmt.Sprintf("; for their outcomes %s of %s are set aside", FormatSize(d.Reserve), FormatSize(d.Wanted))
		}
		add("now", "disk", 1, fmt.Sprintf("the disk of state_dir has %s left, below spool.min_free (%s): %s",
			FormatSize(d.LedgerFree), FormatSize(d.MinFree), what), "free space there; it goes on by itself", nil)
	}
	return full
}

// addDropNeeds adds the drop folders in which vaultd cannot work, or cannot give things back.
func (s *StatusSummary) addDropNeeds(add needAdder) {
	for _, d := range s.Drops {
		for _, p := range d.Foreign {
			add("now", "drop-place", 1, "drop "+d.Name+": "+p.Text, p.Do, nil)
		}
		if s.isDropFull(d) {
			add("now", "drop-full", 1, fmt.Sprintf("the disk of drop %s has %s left: people get no results there, and _STATUS.txt is old", d.Name, FormatSize(d.Free)),
				"free space there; it goes on by itself", nil)
		}
		if d.Paused != "" {
			do := "its documents are safe; it goes on by itself once this is mended"
			switch {
			case s.TakenOverEpoch > 0:
				do = AdviseOnTakeover(s.TakenOverEpoch)
			case d.Do != "":
				do = d.Do
			case strings.HasSuffix(d.Paused, fs.ErrPermission.Error()):
				do = "give the drop folder to the user vaultd runs as (docs/samba.md); " + do
			}
			add("now", "drop-paused", 1, "drop "+d.Name+" paused: "+d.Paused, do, nil)
		}
	}
}

// isNeed reports whether a pause needs a person: because it lasts, or because waiting does not end it.
func (s *StatusSummary) isNeed(p PausedTarget) bool {
	return p.NeedsPerson || s.At.Sub(p.Since) >= transientPause
}

func untilNewline(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
