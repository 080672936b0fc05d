package main

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

// stateMeans says in one sentence what is certain in each state.
var stateMeans = map[ledger.State]string{
	ledger.Discovered:  "Taken from the drop folder; it is packed as soon as it has not changed for a while.",
	ledger.Packaged:    "Packed; it waits to be registered with the archive.",
	ledger.Registering: "Being registered with the archive; the answer is not known yet.",
	ledger.Registered:  "Registered with the archive; nothing of it has been sent yet.",
	ledger.Sending:     "Being sent; the archive may have parts of it, or all.",
	ledger.Uploaded:    "Sent completely; the archive has not yet said that it is archived.",
	ledger.Unclear:     "Sent, but nobody knows whether it arrived; the archive is being asked, nothing is sent again until it is clear.",
	ledger.Archived:    "The archive itself said that it is archived.",
	ledger.Delivered:   "Delivered; no later word comes on this way.",
	ledger.Duplicate:   "The same invoice is archived already; nothing was sent and there is nothing to do.",
	ledger.Rejected:    "Not archived; certainly nothing of it is in the archive.",
	ledger.Quarantined: "Stopped: it cannot go on by itself, and something of it may be in the archive. A person must decide.",
}

// meaning says what is certain about e.
func meaning(e ledger.Entry) string {
	if e.State == ledger.Rejected && e.InDoubt {
		return "Closed in doubt by a person: something of it may be in the archive all the same."
	}
	if text, ok := stateMeans[e.State]; ok {
		return text
	}
	return "A state that this version does not know."
}

// whereabouts says what became of the folder that was dropped.
func whereabouts(e ledger.Entry) string {
	dest := "drop " + sanitize.Text(e.Drop) + ", " + sanitize.Text(e.Dest)
	switch e.Source {
	case ledger.Claimed:
		return "held back while it is worked on: drop " + sanitize.Text(e.Drop) + ", .vaultd/claimed/" + e.Key.String() + "/" + sanitize.Text(e.Folder)
	case ledger.Returning:
		return "on its way back to people: " + dest
	case ledger.Returned:
		return "given back to people: " + dest
	case ledger.Keeping:
		return "on its way to the kept ones: " + dest
	case ledger.Kept:
		return "kept with its receipt: " + dest
	case ledger.Disposing:
		return "being removed after its grace: " + dest
	case ledger.Moved:
		return "moved out after its grace: " + sanitize.Text(e.Dest)
	case ledger.Gone:
		return "deleted after its grace"
	}
	return "unknown"
}

// fateMeans says what is known about the content of one registration.
func fateMeans(f ledger.Fate) string {
	words := [...]string{
		"unused: no byte was ever sent to it", "bytes may have arrived", "the content arrived",
		"archived", "failed at the archive, or never got anything", "refused by the store, which may have kept it",
	}
	if int(f) < len(words) {
		return words[f]
	}
	return "unknown"
}

// reason says in the words of its cause why e is where it is; empty: nothing to say.
func reason(e ledger.Entry) string {
	switch {
	case e.Cause.Text != "":
		return e.Cause.Text
	case e.Cause.Code != "":
		return e.Cause.Code
	case e.State == ledger.Duplicate: // details name the first one
		return "archived before"
	}
	return ""
}

// briefCause gives a cause in a few words, fit for a terminal. The text of our own
// refusals is a page for the person who dropped the folder; their code says it in brief.
func briefCause(c ledger.Cause) string {
	if c.Text == "" || strings.HasPrefix(c.Text, "NOT ARCHIVED") && c.Code != "" {
		return sanitize.FirstLine(strings.ReplaceAll(c.Code, "-", " "), 100)
	}
	return sanitize.FirstLine(c.Text, 100)
}

// briefReason is reason in a few words, fit for a terminal.
func briefReason(e ledger.Entry) string {
	if e.Cause != (ledger.Cause{}) {
		return briefCause(e.Cause)
	}
	return sanitize.FirstLine(reason(e), 100)
}

// whyInBrief says in a few words why e is where it is; where there is nothing to say, what a person should look at.
func whyInBrief(s report.Source, e ledger.Entry, loc *time.Location) (string, error) {
	if text := briefReason(e); text != "" {
		return text, nil
	}
	warnings, err := report.Remarks(s, e, loc)
	if err != nil || len(warnings) == 0 {
		return "", err
	}
	return sanitize.FirstLine(warnings[0].Text, 100), nil
}

// flagWords lists what is special about e, in words for a person.
func flagWords(e ledger.Entry) []string {
	all := []string{}
	for _, f := range []struct {
		on   bool
		text string
	}{
		{e.Hold, "on hold: no further step until somebody lets it go on"},
		{e.InDoubt, "closed in doubt, though content at the archive is possible"},
		{e.IsArchivedTwice(), "ARCHIVED TWICE: the archive says so of more than one registration"},
		{e.PossibleDouble && !e.IsArchivedTwice(), "possibly double: more than one registration may hold its content"},
		{e.Contradicted, "CONTRADICTED: the archive says something else than this final state"},
		{e.Resolved, "resolved: nobody needs to look at it any more"},
		{e.Reviewed, "looked at: a person let its number or date stand"},
	} {
		if f.on {
			all = append(all, f.text)
		}
	}
	return all
}

// userName names who acted, as this machine knows him.
func userName(uid uint32) string {
	if uid == ledger.VaultdUID {
		return "vaultd itself, by its configuration"
	}
	id := strconv.FormatUint(uint64(uid), 10)
	u, err := user.LookupId(id)
	if err != nil || u.Username == "" {
		return "uid " + id
	}
	return sanitize.Text(u.Username) + " (uid " + id + ")"
}

// sizeText gives bytes in decimal units, as the price list counts them.
func sizeText(n int64) string {
	const unit = 1000
	if n < 0 {
		return "unknown"
	}
	if n < unit {
		return bytesText(n)
	}
	value, units := float64(n), []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	for _, u := range units {
		value /= unit
		if value < 999.5 || u == units[len(units)-1] {
			return strconv.FormatFloat(value, 'f', digitsOf(value), 64) + " " + u
		}
	}
	return ""
}

func digitsOf(value float64) int {
	if value < 99.95 {
		return 1
	}
	return 0
}

// ageText gives a span of time in its largest units: "20 s", "41 min", "5 h 28 min", "3 days".
func ageText(d time.Duration) string {
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 10*time.Hour && d%time.Hour >= time.Minute:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	case d < 72*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// clock tells times to people.
type clock struct {
	now time.Time
	loc *time.Location
}

// brief gives the hour for today and the day besides for other days; "-" for none.
func (c clock) brief(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	t, now := t.In(c.loc), c.now.In(c.loc)
	switch {
	case sameDay(t, now):
		return t.Format("15:04")
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006 15:04")
}

// zoned is brief with the zone, for where no other time beside it tells that.
func (c clock) zoned(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return c.brief(t) + t.In(c.loc).Format(" MST")
}

// exact gives day and second with the zone.
func (c clock) exact(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.In(c.loc).Format("2006-01-02 15:04:05 MST")
}

// ago gives the time that has passed since t.
func (c clock) ago(t time.Time) string { return ageText(c.now.Sub(t)) }

// today reports whether t is on this calendar day.
func (c clock) today(t time.Time) bool {
	return !t.IsZero() && sameDay(t.In(c.loc), c.now.In(c.loc))
}

func sameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }

// bytesText gives bytes to the last one.
func bytesText(n int64) string { return many(n, "byte", "bytes") }

// many counts a thing in words: "1 drop", "2 drops".
func many[N ~int | ~int64 | ~uint64](n N, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
