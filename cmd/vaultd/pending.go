package main

import (
	"cmp"
	"fmt"
	"slices"

	"vaultd/internal/archive"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/report"
)

// readScans tells of each drop folder what lies in it and was not taken: as a running daemon sees it, else as the ledger
// has it from the last one. Drops that are not configured any more come last.
func (v view) readScans() ([]report.Drop, error) {
	scans := map[string]ledger.Scan{}
	stored, err := v.ledger.Scans()
	if err != nil {
		return nil, err
	}
	for _, s := range stored {
		scans[s.Drop] = s
	}
	if v.state != nil {
		for _, d := range v.state().Drops {
			scans[d.Name] = d.Scan
			// The ledger hears of another name of the drop a little later.
			stored = slices.DeleteFunc(stored, func(s ledger.Scan) bool { return s.Drop != d.Name && s.Path != "" && s.Path == d.Scan.Path })
		}
	}
	var drops []report.Drop
	for _, d := range v.cfg.Drops {
		if s := scans[d.Name]; v.state == nil && s.Fault == "" && !s.LastScan.IsZero() {
			// Looks that found nothing new are noted beside the ledger.
			if looked := daemon.LastLook(v.cfg.StateDir, d.Path); looked.After(s.LastScan) && !looked.After(v.Now) {
				s.LastScan = looked.UTC()
				scans[d.Name] = s
			}
		}
		drops = append(drops, report.Drop{Name: d.Name, Vault: archive.VaultID(d.Vault), Configured: true, RemindAfter: d.RemindAfter, Rescan: d.Rescan, Scan: scans[d.Name]})
		delete(scans, d.Name)
	}
	for _, s := range stored {
		if _, left := scans[s.Drop]; left {
			drops = append(drops, report.Drop{Name: s.Drop, Vault: s.Vault, RemindAfter: s.RemindAfter, Scan: s})
		}
	}
	return drops, nil
}

// addPending counts what was not taken, for status.
func (s *StatusSummary) addPending(drops []report.Drop, c present.Clock) {
	for _, d := range drops {
		if !s.Running || !d.Configured { // a running daemon's watchers know more
			s.addNotTaken(d)
		}
		if i := slices.IndexFunc(s.Drops, func(l DropStatus) bool { return l.Name == d.Name }); i >= 0 {
			s.Drops[i].Looked = present.TimeOrNil(d.Scan.LastScan)
		}
		if d.Configured && !d.Scan.LastScan.IsZero() && (s.LastScan.IsZero() || d.Scan.LastScan.Before(s.LastScan)) {
			s.LastScan = d.Scan.LastScan
		}
		named, more := d.Scan.ItemsForPerson(c.Now, d.RemindAfter)
		named = slices.DeleteFunc(named, func(p ledger.PendingItem) bool { return needsMending[p.Reason] }) // told at once, not only when it lasts
		if len(named) == 0 {
			continue
		}
		n, do := len(named)+int(more), "put them right as _STATUS.txt in the drop folder says, or take them away; see vaultd why X"
		if !d.Configured {
			do = "the drop is not configured any more: put it back into the configuration until vaultd has seen that it is empty"
		}
		s.longNotTaken = append(s.longNotTaken, Need{When: "soon", What: "not-taken", Count: n, Names: describeLongPending(named, c),
			Text: fmt.Sprintf("drop %s: %s not taken for longer than %s", d.Name, present.FormatCount(n, "thing", "things"), present.FormatAge(d.RemindAfter)),
			Do:   do})
	}
}

// addNotTaken lists by reason what lies in one drop folder.
func (s *StatusSummary) addNotTaken(d report.Drop) {
	at := map[string]int{} // of the lines of this drop, by reason
	for _, p := range d.Scan.Pending {
		i, ok := at[p.Reason]
		if !ok {
			i = len(s.NotTaken)
			at[p.Reason] = i
			s.NotTaken = append(s.NotTaken, NotTaken{Drop: d.Name, Reason: p.Reason})
		}
		l := &s.NotTaken[i]
		if l.Count++; len(l.Names) < namedAtMost {
			l.Names = append(l.Names, describePending(p))
		}
	}
	if d.Scan.Unnamed > 0 {
		s.NotTaken = append(s.NotTaken, NotTaken{Drop: d.Name, Reason: "not named", Count: int(d.Scan.Unnamed), Names: []string{}})
	}
}

func describePending(p ledger.PendingItem) string {
	if p.Detail == "" {
		return p.Name
	}
	return p.Name + ": " + p.Detail
}

// describeLongPending names the longest waiting, and since when each lies there.
func describeLongPending(all []ledger.PendingItem, c present.Clock) []string {
	var names []string
	for _, p := range all[:min(len(all), namedAtMost)] {
		names = append(names, fmt.Sprintf("%s: %s, since %s", p.Name, cmp.Or(p.Detail, p.Reason), c.Brief(p.Since)))
	}
	return names
}
