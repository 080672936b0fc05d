package present

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
	"vaultd/internal/watch"
)

// What to do about things that are not taken for longer than remind_after, and about those in a drop folder that is not
// configured any more.
const (
	AdviceLongNotTaken = "put them right as _STATUS.txt in the drop folder says, or take them away; see vaultd why X"
	AdviceRemovedDrop  = "is not configured any more: put it back into the configuration until vaultd has seen that it is empty"
)

// adviseOnReason says what to do about something that is not taken for that reason.
func adviseOnReason(reason string) string {
	switch watch.Reason(reason) {
	case watch.LooseFile:
		return "put it into a folder of its own, together with the file that describes the invoice; it is taken by itself then"
	case watch.NotFile:
		return "this drop takes single PDFs: move them out of a folder, or put the PDF itself in the place of a link; they are taken by themselves then"
	case watch.NoSidecar:
		return "add the file that describes the invoice (metadata.json, unless the drop names another); it is taken by itself then"
	case watch.Copying:
		return "wait: it is taken by itself once nothing in it changes any more"
	case watch.StillOpen:
		return "close the file in the program that has it open; it is taken by itself then, and never before"
	case watch.Temporary:
		return "let the copying end, or close the program that has a file of it open; it is taken by itself then"
	case watch.Placeholder:
		return "let the program of the cloud folder download the file (open it there), and take the placeholder away; it is taken by itself then"
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

// NotTakenItem is a thing in a drop folder that was not taken.
type NotTakenItem struct {
	Folder  string     `json:"folder"`
	Drop    string     `json:"drop"`
	State   string     `json:"state"` // always "not-taken"
	Reason  string     `json:"reason"`
	Detail  *string    `json:"detail"`
	Since   time.Time  `json:"since"`
	Scanned *time.Time `json:"scannedAt"` // when vaultd last looked

	Path string `json:"-"`
}

// Advice is adviseOnReason, with what more is known of the thing.
func (l NotTakenItem) Advice() string {
	if l.Detail != nil && *l.Detail == watch.LinkDetail && l.Reason == string(watch.LooseFile) {
		return "copy the folder itself into the drop folder and delete the link; a link is never followed"
	}
	return adviseOnReason(l.Reason)
}

// needsMending holds the reasons for not taking something that no waiting mends.
var needsMending = map[string]bool{
	string(watch.NoRight): true, string(watch.ReadOnly): true, string(watch.OtherDevice): true, string(watch.NoRoom): true, string(watch.Failed): true,
}

// DropScan is one drop folder, and what the last scan found in it that was not taken.
type DropScan struct {
	Name        string
	Path        string // on this machine; empty: unknown
	Vault       archive.VaultID
	Configured  bool          // false: only the ledger knows of it; what was seen there counts until it is seen to be gone
	RemindAfter time.Duration // a thing that is not taken for longer needs a person
	Rescan      time.Duration // how often vaultd looks
	Scan        ledger.Scan   // the zero one: vaultd never looked
}

// AddScans adds what the last scans of the drop folders found that was not taken.
func (s *StatusSummary) AddScans(drops []DropScan, c Clock) {
	for _, d := range drops {
		if !s.Running || !d.Configured { // the watchers of a running daemon know more
			s.addNotTaken(d)
		}
		if i := slices.IndexFunc(s.Drops, func(l DropStatus) bool { return l.Name == d.Name }); i >= 0 {
			s.Drops[i].Scanned = TimeOrNil(d.Scan.LastScan)
			s.Drops[i].IgnoredByRule, s.Drops[i].IgnoredBySystem = newIgnoredNames(d.Scan.IgnoredByRule), newIgnoredNames(d.Scan.IgnoredBySystem)
		}
		if d.Configured && !d.Scan.LastScan.IsZero() && (s.LastScan.IsZero() || d.Scan.LastScan.Before(s.LastScan)) {
			s.LastScan = d.Scan.LastScan
		}
		s.addLateLook(d, c)
		named, more := d.Scan.ItemsForPerson(c.Now, d.RemindAfter)
		named = slices.DeleteFunc(named, func(p ledger.PendingItem) bool { return needsMending[p.Reason] }) // these are needs at once
		if len(named) == 0 {
			continue
		}
		n, do := len(named)+int(more), AdviceLongNotTaken
		if !d.Configured {
			do = "the drop " + AdviceRemovedDrop
		}
		s.LongNotTaken = append(s.LongNotTaken, Need{When: "soon", What: "not-taken", Count: n, Names: describeLongPending(named, c),
			Text: fmt.Sprintf("drop %s: %s not taken for longer than %s", d.Name, FormatCount(n, "thing", "things"), FormatAge(d.RemindAfter)),
			Do:   do})
	}
}

// lateLook is how old the last look that compared all kept folders may be: it is
// made daily.
const lateLook = 3 * 24 * time.Hour

// addLateLook adds that the looks at the kept folders of a drop do not come to
// their end. In safe mode and while vaultd is off there are none.
func (s *StatusSummary) addLateLook(d DropScan, c Clock) {
	if since := d.Scan.KeptSince; s.Running && s.Safe == nil && d.Configured && s.Balance.States[ledger.Archived.String()]+s.Balance.States[ledger.Delivered.String()] > 0 && !since.IsZero() && c.Now.Sub(since) > lateLook {
		s.add(Need{What: "check", Count: 1, Text: fmt.Sprintf("drop %s: its kept folders were not all compared since %s", d.Name, c.Brief(since)),
			Do: "let vaultd run until its check ends: each start and reload begins it again; folders that cannot be read, or that wait for vaultd reconcile, keep it from its end"})
	}
}

// addNotTaken adds by reason what is not taken in one drop folder.
func (s *StatusSummary) addNotTaken(d DropScan) {
	at := map[string]int{} // of the lines of this drop, by reason
	for _, p := range d.Scan.Pending {
		i, ok := at[p.Reason]
		if !ok {
			i = len(s.NotTaken)
			at[p.Reason] = i
			s.NotTaken = append(s.NotTaken, NotTaken{Drop: d.Name, Reason: p.Reason})
		}
		l := &s.NotTaken[i]
		if l.Count++; len(l.Names) < NamedAtMost {
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

// describeLongPending names the items that wait longest, and since when each is there.
func describeLongPending(all []ledger.PendingItem, c Clock) []string {
	var names []string
	for _, p := range all[:min(len(all), NamedAtMost)] {
		names = append(names, fmt.Sprintf("%s: %s, since %s", p.Name, cmp.Or(p.Detail, p.Reason), c.Brief(p.Since)))
	}
	return names
}

// FindNotTaken finds what was not taken, as far as its names are kept.
func FindNotTaken(drops []DropScan, isWanted func(name string) bool) (all []NotTakenItem) {
	for _, d := range drops {
		for _, p := range d.Scan.Pending {
			if !d.Configured || !isWanted(p.Name) && !isWanted(path.Join(d.Name, p.Name)) {
				continue
			}
			all = append(all, NotTakenItem{
				Folder: p.Name, Drop: d.Name, State: "not-taken", Reason: p.Reason, Detail: TextOrNil(p.Detail), Since: p.Since.UTC(),
				Scanned: TimeOrNil(d.Scan.LastScan), Path: path.Join(d.Path, p.Name),
			})
		}
	}
	return all
}

// Text tells everything that is known about an item. running says whether vaultd runs: it saw the item just now then.
func (l NotTakenItem) Text(c Clock, running bool) []byte {
	p := &Page{}
	fmt.Fprintf(p, "%s (%s)\n", sanitize.Text(l.Folder), sanitize.Text(l.Drop))
	p.AddLine("State", "not taken, seen since %s", c.Zoned(l.Since))
	if !running && l.Scanned != nil {
		p.AddText("vaultd does not run. It saw this when it last looked, " + c.Zoned(*l.Scanned) + ".")
	}
	p.AddText("It is in the drop folder as it was dropped; nothing of it was sent.")
	p.AddLine("Because", "%s", sanitize.Text(l.Reason))
	if l.Detail != nil {
		p.AddText(*l.Detail)
	}
	p.AddHeading("YOU CAN")
	fmt.Fprintf(p, "  %s. To see whether it would be taken as it is:\n", l.Advice())
	fmt.Fprintf(p, "      vaultd validate %s\n", sanitize.ShellWord(l.Path))
	return p.Bytes()
}
