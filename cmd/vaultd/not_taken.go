package main

import (
	"fmt"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/dropwork"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

// missingFolders gives since when the returned folders of unresolved rejections are not
// in their places.
func missingFolders(scans []present.DropScan) map[archive.Key]time.Time {
	all := map[archive.Key]time.Time{}
	for _, d := range scans {
		for _, m := range d.Scan.Missing {
			all[m.Key] = m.Since
		}
	}
	return all
}

// readScans gives for each drop folder what was not taken: as a running daemon sees it, else as the ledger has it from the
// last one. Drops that are not configured any more come last.
func (v view) readScans() ([]present.DropScan, error) {
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
			// The ledger learns of a renamed drop a little later: its old name must not count twice.
			stored = slices.DeleteFunc(stored, func(s ledger.Scan) bool { return s.Drop != d.Name && s.Path != "" && s.Path == d.Scan.Path })
		}
	}
	var drops []present.DropScan
	for _, d := range v.cfg.Drops {
		if s := scans[d.Name]; v.state == nil && s.Fault == "" && !s.LastScan.IsZero() {
			// Scans that found nothing new are noted beside the ledger.
			if looked := dropwork.LastScanTime(v.cfg.StateDir, d.Path); looked.After(s.LastScan) && !looked.After(v.Now) {
				s.LastScan = looked.UTC()
				scans[d.Name] = s
			}
		}
		drops = append(drops, present.DropScan{Name: d.Name, Path: d.Path, Vault: archive.VaultID(d.Vault), Configured: true, RemindAfter: d.RemindAfter, Rescan: d.Rescan, Scan: scans[d.Name]})
		delete(scans, d.Name)
	}
	for _, s := range stored {
		if _, left := scans[s.Drop]; left {
			drops = append(drops, present.DropScan{Name: s.Drop, Vault: s.Vault, RemindAfter: s.RemindAfter, Scan: s})
		}
	}
	return drops, nil
}

// findNotTaken finds what was not taken: as a running daemon sees it, else as it was seen last.
func (v view) findNotTaken(isWanted func(name string) bool) ([]present.NotTakenItem, error) {
	drops, err := v.readScans()
	return present.FindNotTaken(drops, isWanted), err
}

// describePausedDrops names the drops that are paused, so that nobody knows what is in them; empty: none is.
func (v view) describePausedDrops() (text string) {
	if v.state == nil {
		return ""
	}
	for _, d := range v.state().Drops {
		if d.Paused != "" {
			text += fmt.Sprintf("; what lies in drop %s is not known, for it is paused: %s", sanitize.Text(d.Name), sanitize.Text(d.Paused))
		}
		if d.Do != "" {
			text += ". " + sanitize.Text(d.Do)
		}
	}
	return text
}

func (a *app) printNotTaken(v view, found []present.NotTakenItem) error {
	for _, l := range found {
		if a.json {
			if err := writeJSON(a.stdout, l); err != nil {
				return err
			}
			continue
		}
		if _, err := a.stdout.Write(l.Text(v.Clock, v.state != nil)); err != nil {
			return fail(exitIO, fmt.Errorf("write: %w", err), "")
		}
	}
	return nil
}
