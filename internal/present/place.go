package present

import (
	"fmt"
	"strings"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// DescribePlace says what was done with the folder that was dropped. Whether a
// kept one is still there says [Dossier.CheckedAt].
func DescribePlace(e ledger.Entry) string {
	dest := "drop " + sanitize.Text(e.Drop) + ", " + sanitize.Text(e.Dest)
	switch e.Source {
	case ledger.Claimed:
		return "taken, to be worked on: drop " + sanitize.Text(e.Drop) + ", .vaultd/claimed/" + e.Key.String() + "/" + sanitize.Text(e.Folder)
	case ledger.Returning:
		return "on its way back to people: " + dest
	case ledger.Returned:
		return "was given back to people: " + dest
	case ledger.Keeping:
		return "on its way to the kept ones: " + dest
	case ledger.Kept:
		if e.IsSourceMissing() {
			return "not there any more; it was " + WordsOf(e.Route).KeptPlace + ": " + dest
		}
		return WordsOf(e.Route).KeptPlace + ": " + dest
	case ledger.Disposing:
		return "being removed after its grace: " + dest
	case ledger.Moved:
		return "was moved out after its grace: " + sanitize.Text(e.Dest)
	case ledger.Gone:
		return "deleted after its grace"
	}
	return "unknown"
}

// DescribeMissing says that the returned folder of a rejection is not where it was
// put.
func DescribeMissing(e ledger.Entry, since string) string {
	place, _, _ := strings.Cut(e.Dest, "/")
	return "no longer in " + sanitize.Text(place) + " since " + since
}

// MissingSince says since when the returned folder of an unresolved rejection is
// not in its place any more; zero: it is, as far as is known.
func (d Dossier) MissingSince() time.Time {
	if d.Entry.Attention() != ledger.RejectedUnresolved || d.Entry.Dest == "" {
		return time.Time{}
	}
	return d.Scan.MissingSince(d.Entry.Key)
}

// CheckedAt says when the daily check last looked at the kept folder where it is;
// zero: not since vaultd put it there, as far as is known.
func (d Dossier) CheckedAt() time.Time {
	put := d.keptSince()
	if d.Entry.Source != ledger.Kept || put == nil || !d.Scan.KeptScan.After(*put) {
		return time.Time{}
	}
	return d.Scan.KeptScan
}

// keptSince says when the folder was put where it is kept, as the journal tells.
func (d Dossier) keptSince() *time.Time {
	var began *time.Time
	source := ""
	for _, l := range d.History {
		if l.Source == source {
			continue
		}
		source, began = l.Source, nil
		if t, err := time.Parse(time.RFC3339, l.At); err == nil && source == ledger.Kept.String() {
			began = TimeOrNil(t)
		}
	}
	return began
}

// describePlace is DescribePlace with what was seen since.
func (d Dossier) describePlace(c Clock) string {
	if since := d.MissingSince(); !since.IsZero() {
		return DescribeMissing(d.Entry, c.Exact(since)) + ": it was removed, renamed or moved"
	}
	return DescribePlace(d.Entry)
}

// describeLook says when a kept folder was last looked at; empty: it is not kept.
func (d Dossier) describeLook(c Clock) string {
	at := d.CheckedAt()
	switch {
	case d.Entry.Source != ledger.Kept:
		return ""
	case at.IsZero():
		return "not since vaultd put it there"
	case d.Scan.KeptUnread > 0:
		return fmt.Sprintf("%s; %s of this drop could not be read then", c.Exact(at), FormatCount(int(d.Scan.KeptUnread), "folder", "folders"))
	}
	return c.Exact(at)
}
