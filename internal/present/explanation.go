package present

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// Explanation is what "why" says, and the object of "why --json".
type Explanation struct {
	Key       string     `json:"key"`
	Folder    string     `json:"folder"`
	Drop      string     `json:"drop"`
	Route     string     `json:"route"` // vault, pdf or network
	State     string     `json:"state"`
	Since     *time.Time `json:"since"` // in this state; not known where the journal does not tell
	Certain   string     `json:"certain"`
	Notes     []string   `json:"notes"`
	Needs     *Need      `json:"needs"` // what needs attention; may be null
	First     *Original  `json:"first"` // that a duplicate repeats
	Because   *Cause     `json:"because"`
	Next      *string    `json:"next"` // in words; null: nothing without a person
	NotBefore *time.Time `json:"notBefore"`
	Attempts  uint16     `json:"attempts"` // times that the next step was postponed, or the archive was asked
	Waits     []Obstacle `json:"waitsFor"`
	Evidence  []Evidence `json:"evidence"`
	Reasons   []Decision `json:"reasons"`
	Can       []Option   `json:"can"`

	word string // the state with its marks
}

// Obstacle is something beside time that the next step waits for.
type Obstacle struct {
	What  string     `json:"what"`
	Since *time.Time `json:"since"`
	Next  *time.Time `json:"nextTry"`
	Text  string     `json:"text"`
	Do    string     `json:"do,omitempty"`
}

// Evidence is what the archive said about one registration that content may have reached.
type Evidence struct {
	BumID  string     `json:"bumId"`
	Fate   string     `json:"fate"`
	Said   *string    `json:"archiveSays"`
	At     *time.Time `json:"saidAt"`
	Have   int        `json:"equalAnswers"`
	Need   int        `json:"needed"` // equal answers that prove that nothing is there; 0: this one proves nothing
	Proven *time.Time `json:"believedFrom"`
	Means  string     `json:"means"` // in words; may be empty
}

// Option is something that a person can do.
type Option struct {
	What    string `json:"what"`
	Command string `json:"command,omitempty"`
}

// Text writes an explanation for a person.
func (w Explanation) Text(c Clock) []byte {
	p := &Page{}
	fmt.Fprintf(p, "%s (%s)\n", sanitize.Text(w.Folder), sanitize.Text(w.Drop))
	state := w.word
	if w.Since != nil {
		state += ", since " + c.Zoned(*w.Since)
	}
	p.AddLine("State", "%s", state)
	p.AddText(w.Certain)
	if n := w.Needs; n != nil {
		p.AddLine("Needs", "%s, %s: %s", n.Turn, n.When, n.Text)
	}
	for _, n := range w.Notes {
		p.AddLine("Note", "%s", n)
	}
	if w.First != nil {
		p.addOriginal(c, *w.First)
	}
	if w.Because != nil {
		p.AddLine("Because", "%s", sanitize.Text(strings.ReplaceAll(w.Because.Code, "-", " ")))
		p.AddText(w.Because.Text)
	}
	p.AddLine("Next", "%s", w.describeNext(c))
	for _, o := range w.Waits {
		p.AddLine("Waits for", "%s", o.describe(c))
		if o.Do != "" {
			p.AddText(o.Do)
		}
	}
	for _, t := range w.Evidence {
		t.addTo(p, c)
	}
	for _, r := range w.Reasons {
		p.AddLine("Decided", "%s by %s, %s: %s", sanitize.Text(r.Act), personOf(r.UID), timeOf(c, r.At), sanitize.JoinLines(r.Text))
	}
	p.AddHeading("YOU CAN")
	if len(w.Can) == 0 {
		p.WriteString("  do nothing, and need not\n")
	}
	for _, o := range w.Can {
		fmt.Fprintf(p, "  %s\n", o.What)
		if o.Command != "" {
			fmt.Fprintf(p, "      %s\n", o.Command)
		}
	}
	return p.Bytes()
}

// describeNext says what vaultd does by itself, and when.
func (w Explanation) describeNext(c Clock) string {
	if w.Next == nil {
		return "nothing by itself"
	}
	words := *w.Next
	if w.NotBefore != nil && w.NotBefore.Sub(c.Now) >= time.Second {
		words += fmt.Sprintf(", not before %s (in %s)", c.Zoned(*w.NotBefore), FormatAge(w.NotBefore.Sub(c.Now)))
	} else if len(w.Waits) == 0 {
		words += ", at once"
	}
	if w.Attempts > 0 {
		verb := "postponed"
		if *w.Next == vaultWords.steps[ledger.Ask] {
			verb = "asked"
		}
		words += fmt.Sprintf("; %s %s so far", verb, FormatCount(int(w.Attempts), "time", "times"))
	}
	return words
}

func (o Obstacle) describe(c Clock) string {
	s := sanitize.Text(o.What)
	if o.Since != nil {
		s += " (since " + c.Zoned(*o.Since) + ")"
	}
	s += ": " + sanitize.FirstLine(o.Text, longestText)
	if o.Next != nil {
		s += "; next try " + c.Zoned(*o.Next)
	}
	return s
}

// addTo adds what the archive's answers prove so far.
func (t Evidence) addTo(p *Page, c Clock) {
	p.AddLine("Evidence", "bumId %s: %s", sanitize.Text(t.BumID), t.Fate)
	if t.Said == nil {
		p.AddText("The archive has not answered about it yet.")
		return
	}
	said := map[string]string{
		archive.WaitingForPackage.String(): "that it still waits for the content",
		archive.InProgress.String():        "that it is working on it",
		archive.Failed.String():            "that it failed",
		archive.Absent.String():            "that it does not know this number",
	}[*t.Said]
	p.AddText(fmt.Sprintf("The archive said last, at %s, %s.", c.Exact(*t.At), cmp.Or(said, "something that vaultd does not know")))
	p.AddText(t.Means)
}

func personOf(uid *int64) string {
	if uid == nil {
		return "somebody"
	}
	return UserName(uint32(*uid))
}

func timeOf(c Clock, t *time.Time) string {
	if t == nil {
		return "-"
	}
	return c.Exact(*t)
}
