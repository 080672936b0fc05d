package present

import (
	"cmp"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"vaultd/internal/watch"
)

// transientPause is how long a pause may last before it needs a person: most end by themselves.
const transientPause = 30 * time.Second

// transientFault is how long what comes in may fail, or packages may wait for
// room, before that needs attention: services are down for minutes.
const transientFault = 10 * time.Minute

func (f IncomingFault) isNeed(now time.Time) bool {
	return f.Since.IsZero() || now.Sub(f.Since) >= transientFault
}

// ClockTolerance is by how much a clock may be wrong before somebody should set it.
const ClockTolerance = time.Minute

// add adds a need, unless its count is zero.
func (s *StatusSummary) add(n Need) {
	if n.Count > 0 {
		s.Needs = append(s.Needs, n)
	}
}

// AddNeeds adds what needs attention. All needs get what the table says of
// their kinds, and its order: the most urgent first.
func (s *StatusSummary) AddNeeds(c Clock) {
	s.addSafetyNeeds(c)
	for _, k := range needKinds {
		if n := s.Attention[k.What]; n != nil {
			s.add(Need{What: k.What, Count: n.Count, Text: k.Describe(n.Count, s.Open.alertAfter()), Do: k.Do, Names: n.names(), Entries: n.Entries})
		}
	}
	for _, p := range s.Pauses {
		if s.isNeed(p) {
			s.add(Need{What: "paused", Count: 1, Text: fmt.Sprintf("%s paused since %s: %s; %d wait, none lost", p.Route, c.Brief(p.Since), p.Text, p.Wait),
				Do: p.Do + DescribeNextTry(c, p.Next), Brief: fmt.Sprintf("%s paused since %s (%s)", p.Route, c.Brief(p.Since), p.Code)})
		}
	}
	s.addDropNeeds()
	for _, f := range s.Incoming {
		if f.isNeed(c.Now) {
			s.add(Need{What: f.What, Count: 1, Text: f.Text, Do: f.Do, Brief: incomingWords[f.What] + " do not come in"})
		}
	}
	if s.ClockAhead != nil && math.Abs(*s.ClockAhead) > ClockTolerance.Seconds() {
		way, off := "ahead of", time.Duration(*s.ClockAhead*float64(time.Second))
		if off < 0 {
			way, off = "behind", -off
		}
		s.add(Need{What: "clock", Count: 1, Text: "the clock of this machine was " + FormatAge(off) + " " + way + " the archive service's at the last registration",
			Do: "set the time (timedatectl; chronyc makestep); uploads are reckoned by the service's clock meanwhile, but the times in reports are wrong"})
	}
	s.addNotTakenNeeds(s.addDiskNeed())
	for _, w := range s.SpoolWaits {
		if c.Now.Sub(w.Since) >= transientFault {
			s.add(Need{What: "spool-full", Count: 1, Text: fmt.Sprintf("nothing is packed for %s since %s: its packages take %s of their %s in the spool, and the next one takes up to %s",
				w.Queue, c.Brief(w.Since), FormatSize(w.Used), FormatSize(w.Share), FormatSize(w.Next)),
				Do: "it goes on by itself as they are archived, and none is lost; raise spool.max, or see vaultd list --state open for what they wait for"})
		}
	}
	index := KindOf("index-differs")
	s.add(Need{What: index.What, Count: len(s.IndexNeeds), Text: index.Describe(len(s.IndexNeeds), 0), Do: index.Do, Names: firstFew(s.IndexNeeds)})
	s.add(Need{What: "extracts", Count: len(s.ExtractNeeds), Text: FormatCount(len(s.ExtractNeeds), "extract needs you", "extracts need you"),
		Do: "see vaultd extracts", Names: firstFew(s.ExtractNeeds)})
	s.add(Need{What: "received", Count: s.Received.Count, Text: FormatCount(s.Received.Count, "received document needs you", "received documents need you"),
		Do: "see vaultd arrivals; when it is put right: vaultd arrivals retry ID", Names: s.Received.Names})
	s.add(Need{What: "notices-ask", Count: s.Asked.Count, Text: FormatCount(s.Asked.Count, "notification has", "notifications have") +
		" word about early payment or a discount upon which a person must act", Do: "act upon it, then vaultd notices close ID", Names: s.Asked.Names})
	for i := range s.Needs {
		n, k := &s.Needs[i], KindOf(s.Needs[i].What)
		n.When, n.Turn = cmp.Or(n.When, k.When), k.Turn
	}
	slices.SortStableFunc(s.Needs, func(a, b Need) int { return rankOf(a.What) - rankOf(b.What) })
}

// UnfitReasons says for the health pages and the service manager what keeps
// vaultd from being ready. Reasons leave out the folder's name.
func (s *StatusSummary) UnfitReasons() (reasons []string) {
	for _, n := range s.Needs {
		if KindOf(n.What).IsOn(OnHealth) && n.When == "now" {
			reasons = append(reasons, cmp.Or(n.Brief, n.Text))
		}
	}
	return reasons
}

// CountNeeds counts what needs attention by the stable words of the table.
func (s *StatusSummary) CountNeeds() map[string]int {
	counts := map[string]int{}
	for _, k := range needKinds {
		if k.IsOn(OnStatus) {
			counts[k.What] = 0
		}
	}
	for _, n := range s.Needs {
		counts[n.What] += n.Count
	}
	return counts
}

// addNotTakenNeeds adds items of the drop folders that need a fix before they
// are taken, or have waited too long. A full disk has its own need.
func (s *StatusSummary) addNotTakenNeeds(full bool) {
	for _, n := range s.NotTaken {
		if s.Safe == nil && needsMending[n.Reason] && !(full && n.Reason == string(watch.NoRoom)) {
			s.add(Need{What: "not-taken", Count: n.Count, Text: fmt.Sprintf("drop %s: %d not taken: %s", n.Drop, n.Count, n.Reason),
				Do: adviseOnReason(n.Reason), Names: n.Names, Brief: fmt.Sprintf("drop %s: %d not taken (%s)", n.Drop, n.Count, n.Reason)})
		}
	}
	for _, n := range s.LongNotTaken {
		s.add(n)
	}
}

// addSafetyNeeds adds what comes before anything else: what makes the ledger or the configuration unsafe.
func (s *StatusSummary) addSafetyNeeds(c Clock) {
	if s.LostLedger != "" {
		s.add(Need{What: "ledger-lost", Count: 1, Text: "SAFE MODE: " + untilNewline(s.LostLedger) + "; nothing is taken, sent, moved or removed", Do: AdviseOnLostLedger,
			Brief: s.LostLedger + ": nothing is taken, sent or removed"})
	}
	if s.TakenOverEpoch > 0 {
		s.add(Need{What: "taken-over", Count: 1, Text: "nothing is taken, sent, moved or removed here any more", Do: AdviseOnTakeover(s.TakenOverEpoch), Brief: AdviseOnTakeover(s.TakenOverEpoch)})
	}
	if m := s.Safe; m != nil {
		do := "vaultd reconcile asks the archive and ends it (docs/recovery.md)"
		if !s.Running {
			do = "start vaultd, then vaultd reconcile (docs/recovery.md)"
		}
		s.add(Need{What: "safe-mode", Count: 1, Text: fmt.Sprintf("SAFE MODE since %s: %s", c.Brief(m.Since), m.Text), Do: do,
			Brief: fmt.Sprintf("safe mode (%s): nothing is taken, sent or removed before vaultd reconcile", m.Word)})
	}
	s.addCheckNeeds(c)
	if s.Damage != "" && (s.Check == nil || len(s.Check.Ledger) == 0) {
		s.add(Need{What: "damaged", Count: 1, Text: "DAMAGED: " + untilNewline(s.Damage) + "; what is shown is not all",
			Do: "keep the file; restore the newest backup, or rebuild the ledger (docs/recovery.md)", Brief: "the ledger cannot be read: " + s.Damage})
	}
	if !s.Balance.Agrees {
		s.add(Need{What: "balance", Count: 1, Text: "the balance does not agree", Do: "run vaultd verify; nothing should be sent before this is clear"})
	}
	if s.ReloadFault != "" {
		s.add(Need{What: "configuration", Count: 1, Text: "the new configuration is not in use, the one before goes on: " + untilNewline(s.ReloadFault),
			Do: "vaultd check names every mistake; then systemctl reload vaultd"})
	}
}

// addCheckNeeds adds what the check of the whole ledger found.
func (s *StatusSummary) addCheckNeeds(c Clock) {
	k := s.Check
	if k == nil {
		return
	}
	at := ", found " + c.Brief(k.At)
	s.add(Need{What: "damaged", Count: len(k.Ledger), Text: FormatCount(len(k.Ledger), "difference", "differences") + " in the ledger itself" + at,
		Do: "keep the file; restore the newest backup, or rebuild the ledger (docs/recovery.md)", Names: firstFew(k.Ledger)})
	s.add(Need{What: "files", Count: len(k.Files), Text: FormatCount(len(k.Files), "file is", "files are") + " not what the ledger says" + at,
		Do: "look at the disk; a package is made again from its folder; a claimed folder can only be put back where it was", Names: firstFew(k.Files)})
	s.add(Need{What: "check", Count: len(k.Unread), Text: FormatCount(len(k.Unread), "folder or package", "folders and packages") + " could not be read, so nothing is known of them" + at,
		Do: "give the user vaultd runs as the right to read the drop folder (docs/samba.md), or mend the share or the disk; it is looked at again by itself", Names: firstFew(k.Unread)})
	if k.Failed != "" {
		s.add(Need{What: "check", Count: 1, Text: "the ledger could not be checked: " + untilNewline(k.Failed), Do: "it is tried again in an hour; see the log"})
	}
}

func firstFew(texts []string) []string { return texts[:min(len(texts), NamedAtMost)] }

// addDiskNeed adds that the disk of state_dir is full, and reports whether it is.
func (s *StatusSummary) addDiskNeed() (full bool) {
	d := s.Disk
	full = d.StandsStill || d.NothingNew || d.LedgerFree >= 0 && d.LedgerFree < d.MinFree
	if !full {
		return false
	}
	what, brief := "nothing new is taken, uploads go on", "the disk of state_dir has less than min_free: nothing new is taken"
	switch {
	case d.StandsStill:
		what, brief = "not even the ledger has room, so that nothing is taken, sent or asked", "the disk of state_dir is full: nothing is taken, sent or asked"
	case d.Reserve < d.Wanted:
		what += fmt.Sprintf("; for their outcomes %s of %s are set aside", FormatSize(d.Reserve), FormatSize(d.Wanted))
	}
	s.add(Need{What: "disk", Count: 1, Text: fmt.Sprintf("the disk of state_dir has %s left, below spool.min_free (%s): %s",
		FormatSize(d.LedgerFree), FormatSize(d.MinFree), what), Do: "free space there; it goes on by itself", Brief: brief})
	return true
}

// addDropNeeds adds the drop folders in which vaultd cannot work, or cannot give things back.
func (s *StatusSummary) addDropNeeds() {
	for _, stall := range s.StalledDrops {
		s.add(Need{What: "drop-stalled", Count: 1, Text: stall, Do: "look at its file server, or restart vaultd (docs/troubleshooting.md)"})
	}
	for _, d := range s.Drops {
		for _, p := range d.Foreign {
			s.add(Need{What: "drop-place", Count: 1, Text: "drop " + d.Name + ": " + p.Text, Do: p.Do,
				Brief: "drop " + d.Name + ": somebody else's folder lies where results are put"})
		}
		if s.isDropFull(d) {
			s.add(Need{What: "drop-full", Count: 1, Text: fmt.Sprintf("the disk of drop %s has %s left: people get no results there, and _STATUS.txt is old", d.Name, FormatSize(d.Free)),
				Do: "free space there; it goes on by itself", Brief: "drop " + d.Name + ": its disk is full"})
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
			s.add(Need{What: "drop-paused", Count: 1, Text: "drop " + d.Name + " paused: " + d.Paused, Do: do, Brief: "drop " + d.Name + " paused"})
		}
	}
}

// isNeed reports whether a pause needs a person: because it lasts, or because waiting does not end it.
func (s *StatusSummary) isNeed(p PausedTarget) bool {
	return p.NeedsPerson || s.At.Sub(p.Since) >= transientPause
}

// incomingWords names what fails to come in, for the health pages.
var incomingWords = map[string]string{"notices": "notifications of the business network", "extracts-paused": "extracts of the accounts-payable system"}

func untilNewline(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
