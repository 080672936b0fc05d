package main

import (
	"fmt"

	"vaultd/internal/daemon"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/present"
)

// addSafetyNeeds says what a person must see to before anything else: what makes the ledger or the configuration unsafe.
func (s *StatusSummary) addSafetyNeeds(t *entryCounts, add func(when, what string, n int, text, do string, names []string)) {
	if s.TakenOverEpoch > 0 {
		add("now", "taken-over", 1, "nothing is taken, sent, moved or removed here any more", takenOverWords(s.TakenOverEpoch), nil)
	}
	if m := s.Safe; m != nil {
		do := "vaultd reconcile asks the archive and ends it (docs/recovery.md)"
		if !s.Running {
			do = "start vaultd, then vaultd reconcile (docs/recovery.md)"
		}
		add("now", "safe-mode", 1, fmt.Sprintf("SAFE MODE since %s: %s", t.Brief(m.Since), m.Text), do, nil)
	}
	s.addCheckNeeds(t, add)
	if s.Damage != "" && (s.Check == nil || len(s.Check.Ledger) == 0) {
		add("now", "damaged", 1, "DAMAGED: "+firstLine(s.Damage)+"; what is shown is not all", "keep the file; restore the newest backup, or rebuild the ledger (docs/recovery.md)", nil)
	}
	if !s.Balance.Agrees {
		add("now", "balance", 1, "the balance does not agree", "run vaultd verify; nothing should be sent before this is clear", nil)
	}
	if s.ReloadFault != "" {
		add("now", "configuration", 1, "the new configuration is not in use, the one before goes on: "+firstLine(s.ReloadFault),
			"vaultd check names every mistake; then systemctl reload vaultd", nil)
	}
}

// addCheckNeeds says what the check of the whole ledger found.
func (s *StatusSummary) addCheckNeeds(t *entryCounts, add func(when, what string, n int, text, do string, names []string)) {
	k := s.Check
	if k == nil {
		return
	}
	add("now", "damaged", len(k.Ledger), present.FormatCount(len(k.Ledger), "difference", "differences")+" in the ledger itself, found "+t.Brief(k.At),
		"keep the file; restore the newest backup, or rebuild the ledger (docs/recovery.md)", firstFew(k.Ledger))
	add("now", "files", len(k.Files), present.FormatCount(len(k.Files), "file is", "files are")+" not what the ledger says, found "+t.Brief(k.At),
		"look at the disk; a package is made anew from its folder, a receipt with vaultd receipt", firstFew(k.Files))
	add("soon", "check", len(k.Unread), present.FormatCount(len(k.Unread), "receipt", "receipts")+" in kept folders could not be read, so nothing is known of them, found "+t.Brief(k.At),
		"give the user vaultd runs as the right to read the drop folder (docs/samba.md), or mend the share; it is looked at again by itself", firstFew(k.Unread))
	if k.Failed != "" {
		add("soon", "check", 1, "the ledger could not be checked: "+firstLine(k.Failed), "it is tried again in an hour; see the log", nil)
	}
}

func firstFew(texts []string) []string { return texts[:min(len(texts), namedAtMost)] }

// addSafety adds what makes vaultd unfit before anything else.
func (g *healthFacts) addSafety(l *boltledger.Ledger, s daemon.Checked) {
	safe, is := l.SafeMode()
	g.SafeMode = is
	if is {
		g.Unfit = append(g.Unfit, "safe mode ("+safe.Mark+"): nothing is taken, sent or removed before vaultd reconcile")
	}
	g.Checked, g.CheckFindings = s.At, len(s.Ledger)+len(s.Files)
	if n := len(s.Ledger); n > 0 {
		g.Unfit = append(g.Unfit, "the check found "+present.FormatCount(n, "difference", "differences")+" in the ledger")
	}
	if n := len(s.Files); n > 0 {
		g.Unfit = append(g.Unfit, "the check found "+present.FormatCount(n, "file that is", "files that are")+" not what the ledger says")
	}
}
