package main

import (
	"fmt"
	"path"
	"time"

	"vaultd/internal/present"
	"vaultd/internal/sanitize"
	"vaultd/internal/watch"
)

// NotTakenItem is something that lies in a drop folder and was not taken.
type NotTakenItem struct {
	Folder string     `json:"folder"`
	Drop   string     `json:"drop"`
	State  string     `json:"state"` // always "not-taken"
	Reason string     `json:"reason"`
	Detail *string    `json:"detail"`
	Since  time.Time  `json:"since"`
	Looked *time.Time `json:"lookedAt"` // when vaultd last looked

	path string
}

// findNotTaken finds what was not taken, as far as its names are kept: as a running daemon sees it, else as it was seen last.
func (v view) findNotTaken(wanted func(name string) bool) ([]NotTakenItem, error) {
	drops, err := v.readScans()
	var all []NotTakenItem
	for i, d := range drops {
		for _, p := range d.Scan.Pending {
			if !d.Configured || !wanted(p.Name) && !wanted(path.Join(d.Name, p.Name)) {
				continue
			}
			l := NotTakenItem{p.Name, d.Name, "not-taken", p.Reason, present.TextOrNil(p.Detail), p.Since.UTC(), present.TimeOrNil(d.Scan.LastScan), path.Join(v.cfg.Drops[i].Path, p.Name)}
			all = append(all, l)
		}
	}
	return all, err
}

// describePausedDrops names the drops in which a thing may lie that is not known because nobody can look there; "" when there is none.
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

func (a *app) printNotTaken(v view, found []NotTakenItem) error {
	for _, l := range found {
		if a.json {
			if err := writeJSON(a.stdout, l); err != nil {
				return err
			}
			continue
		}
		p := &present.Page{}
		fmt.Fprintf(p, "%s (%s)\n", sanitize.Text(l.Folder), sanitize.Text(l.Drop))
		p.AddLine("State", "not taken, seen since %s", v.Zoned(l.Since))
		if v.state == nil && l.Looked != nil {
			p.AddText("vaultd does not run. It saw this when it last looked, " + v.Zoned(*l.Looked) + ".")
		}
		p.AddText("It is in the drop folder as it was dropped; nothing of it was sent.")
		p.AddLine("Because", "%s", sanitize.Text(l.Reason))
		if l.Detail != nil {
			p.AddText(*l.Detail)
		}
		p.AddHeading("YOU CAN")
		fmt.Fprintf(p, "  %s. To see whether it would be taken as it is:\n", l.adviseOnItem())
		fmt.Fprintf(p, "      vaultd validate %s\n", sanitize.ShellWord(l.path))
		if _, err := a.stdout.Write(p.Bytes()); err != nil {
			return fail(exitIO, fmt.Errorf("write: %w", err), "")
		}
	}
	return nil
}

// adviseOnItem is adviseOnReason, with what more is known of the thing.
func (l NotTakenItem) adviseOnItem() string {
	if l.Detail != nil && *l.Detail == watch.LinkDetail {
		return "copy the folder itself into the drop folder and delete the link; a link is never followed"
	}
	return adviseOnReason(l.Reason)
}

// adviseOnReason says what to do about something that is not taken for that reason.
func adviseOnReason(reason string) string {
	switch watch.Reason(reason) {
	case watch.LooseFile:
		return "put it into a folder of its own, together with the file that describes the invoice; it is taken by itself then"
	case watch.NoSidecar:
		return "add the file that describes the invoice (metadata.json, unless the drop names another); it is taken by itself then"
	case watch.Copying:
		return "wait: it is taken by itself once nothing in it changes any more"
	case watch.Temporary:
		return "let the copying end, or close the program that has a file of it open; it is taken by itself then"
	case watch.Incomplete:
		return "add what is named; it is taken by itself then"
	case watch.NoRight:
		return "set the rights of the share and of this folder (docs/samba.md); it stays there until then"
	case watch.Busy, watch.Queued:
		return "wait: it is taken by itself when its turn comes"
	case watch.OtherDevice:
		return "it lies on another device than the drop folder, or something in it is a mount; copy it into the drop folder itself"
	case watch.NoRoom:
		return "free space on the disk that is named; it is taken by itself then"
	case watch.Held:
		return "see vaultd status: nothing is taken before a person acts (in safe mode: vaultd reconcile); then it is taken by itself"
	case watch.ReadOnly:
		return "make the drop's file system writable: under systemd by ReadWritePaths= in the unit (docs/troubleshooting.md#a-drop-is-paused); it is taken by itself then"
	}
	return "mend what is named; it is tried again by itself"
}
