package present

import (
	"fmt"
	"strings"
	"time"
)

// unfitPause is how long a pause may last before it makes vaultd unfit: most end by themselves.
const unfitPause = 30 * time.Second

// UnfitReasons says what keeps folders from being archived, for the health pages and the service manager. No reason names
// a folder. What waits for a person's decision is no reason here; it is a need.
func (s *StatusSummary) UnfitReasons(c Clock) (reasons []string) {
	add := func(format string, a ...any) { reasons = append(reasons, fmt.Sprintf(format, a...)) }
	if s.LostLedger != "" {
		reasons = append(reasons, s.LostLedger+": nothing is taken, sent or removed")
	}
	if s.Safe != nil {
		add("safe mode (%s): nothing is taken, sent or removed before vaultd reconcile", s.Safe.Word)
	}
	if k := s.Check; k != nil && len(k.Ledger) > 0 {
		add("the check found %s in the ledger", FormatCount(len(k.Ledger), "difference", "differences"))
	}
	if k := s.Check; k != nil && len(k.Files) > 0 {
		add("the check found %s not what the ledger says", FormatCount(len(k.Files), "file that is", "files that are"))
	}
	if s.TakenOverEpoch > 0 {
		reasons = append(reasons, AdviseOnTakeover(s.TakenOverEpoch))
	}
	switch {
	case s.Disk.StandsStill:
		add("the disk of state_dir is full: nothing is taken, sent or asked")
	case s.Disk.NothingNew:
		add("the disk of state_dir has less than min_free: nothing new is taken")
	}
	reasons = append(reasons, s.StalledDrops...)
	if s.Damage != "" {
		add("the ledger cannot be read: %s", s.Damage)
	}
	if !s.Balance.Agrees {
		add("the balance does not agree")
	}
	for _, p := range s.Pauses {
		if p.NeedsPerson || c.Now.Sub(p.Since) >= unfitPause {
			add("%s paused since %s (%s)", p.Route, c.Brief(p.Since), p.Code)
		}
	}
	for _, f := range s.Incoming {
		if f.isNeed(c.Now) {
			add("%s do not come in", incomingWords[f.What])
		}
	}
	for _, d := range s.Drops {
		if len(d.Foreign) > 0 {
			add("drop %s: somebody else's folder lies where results are put", d.Name)
		}
		if s.isDropFull(d) {
			add("drop %s: its disk is full", d.Name)
		}
		if d.IsPaused {
			add("drop %s paused", d.Name)
		}
	}
	for _, n := range s.NotTaken {
		if needsMending[n.Reason] {
			add("drop %s: %d not taken (%s)", n.Drop, n.Count, n.Reason)
		}
	}
	return append(reasons, s.unfitEntries()...)
}

// unfitEntries says how many entries keep vaultd from being fit.
func (s *StatusSummary) unfitEntries() (reasons []string) {
	add := func(format string, a ...any) { reasons = append(reasons, fmt.Sprintf(format, a...)) }
	if n := s.Attention.Overdue.Count; n > 0 {
		add("%s open for longer than %s", FormatCount(n, "folder", "folders"), FormatAge(s.Open.alertAfter()))
	}
	if n := s.Attention.Contradicted.Count; n > 0 {
		add("%s contradicted by the archive", FormatCount(n, "folder", "folders"))
	}
	if n := s.Attention.RejectedLate.Count; n > 0 {
		add("%s rejected by the business network after delivery", FormatCount(n, "document", "documents"))
	}
	return reasons
}

// incomingWords names what does not come in, for the health pages.
var incomingWords = map[string]string{"notices": "notifications of the business network", "extracts-paused": "extracts of the accounts-payable system"}

// DescribeOpen says in a few words how many entries are on their way.
func (b Balance) DescribeOpen() string {
	var parts []string
	for _, k := range openKinds {
		if n := b.sum(k.states); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, strings.Replace(k.words, "being sent", "uploading", 1)))
		}
	}
	if len(parts) == 0 {
		return "nothing on its way"
	}
	return strings.Join(parts, ", ")
}

// AdviseOnLostLedger says what to do about a ledger that was lost while vaultd
// runs.
const AdviseOnLostLedger = "do not stop vaultd: what it has open is in no file of state_dir. Save it now: vaultd backup FILE. " +
	"Move away what is in the place of ledger.db or ledger.head; vaultd then puts its own copy there, ends and starts again (docs/recovery.md)"
