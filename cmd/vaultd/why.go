package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

func (a *app) whyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "why X",
		Short: "why one folder is where it is, what happens next, and what you can do",
		Long: `Says in words what is certain about one folder, why it is where it is, what happens
next and when, and what a person can do, with the command lines for it.

For a folder whose fate at the archive is unclear it shows the evidence so far: what
the archive answered, how many equal answers of how many are counted, and before
when they are not believed.

While vaultd runs, it also knows folders that were not taken yet, and which route to
the archive rests and why.`,
		Example: `  vaultd why "Huber 88"
  vaultd why 06gzgbs2d2n43zeqyj2594nkn0 --json | jq .next`,
		Args: takes(xMeans),
		RunE: func(c *cobra.Command, args []string) error {
			return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.why(ctx, v, args[0]) })
		},
	}
}

func (a *app) why(ctx context.Context, v view, x string) error {
	w, ok, err := a.explain(ctx, v, x)
	if err != nil || !ok {
		return err
	}
	if a.json {
		return writeJSON(a.stdout, w)
	}
	_, err = a.stdout.Write(w.text(v.Clock))
	return err
}

// explain explains what x names: an entry, or else what still lies in a drop folder, which is told at once.
func (a *app) explain(ctx context.Context, v view, x string) (w Explanation, ok bool, err error) {
	if es, err := v.named(ctx, x); err == nil && len(es) == 0 {
		found, err := v.findNotTaken(func(name string) bool { return name == x })
		if err != nil || len(found) > 0 {
			return w, false, errors.Join(err, a.printNotTaken(v, found))
		}
	}
	e, err := a.one(ctx, v, x)
	if err != nil {
		return w, false, err
	}
	d, err := present.ReadDossier(ctx, v.ledger, e, v.Location)
	if err != nil {
		return w, false, err
	}
	return v.explain(d), true, nil
}

// Explanation is what "why" says, and the object of "why --json".
type Explanation struct {
	Key       string             `json:"key"`
	Folder    string             `json:"folder"`
	Drop      string             `json:"drop"`
	State     string             `json:"state"`
	Since     *time.Time         `json:"since"` // in this state; not known where the journal does not tell
	Certain   string             `json:"certain"`
	Notes     []string           `json:"notes"`
	First     *present.Original  `json:"first"` // that a duplicate repeats
	Because   *present.Cause     `json:"because"`
	Next      *string            `json:"next"` // in words; null: nothing without a person
	NotBefore *time.Time         `json:"notBefore"`
	Attempts  uint16             `json:"attempts"` // times that the next step was postponed, or the archive was asked
	Waits     []Obstacle         `json:"waitsFor"`
	Evidence  []Evidence         `json:"evidence"`
	Reasons   []present.Decision `json:"reasons"`
	Can       []Option           `json:"can"`

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

func (v view) explain(d present.Dossier) Explanation {
	e := d.Entry
	w := Explanation{
		Key: e.Key.String(), Folder: e.Folder, Drop: e.Drop, State: e.State.String(), word: present.StateText(e), Since: d.StateSince(), Certain: present.ExplainState(e),
		Notes: present.ExplainFlags(e), First: d.Details.Original, Attempts: e.Attempt, Waits: []Obstacle{}, Evidence: v.evidence(e), Reasons: d.Decisions(), Can: v.options(d),
	}
	for _, one := range d.Details.Remarks {
		w.Notes = append(w.Notes, one.Text)
	}
	if age := v.Now.Sub(e.SeenAt); e.State.IsOpen() && v.cfg.Status.AlertAfter > 0 && age > v.cfg.Status.AlertAfter {
		w.Notes = append(w.Notes, "open for "+present.FormatAge(age)+", longer than "+present.FormatAge(v.cfg.Status.AlertAfter)+": ask the provider about it")
	}
	if e.Cause != (ledger.Cause{}) {
		w.Because = &present.Cause{Code: e.Cause.Code, Text: e.Cause.Text}
	}
	if step, at, due := ledger.Due(e); due {
		w.Next = present.TextOrNil(present.ExplainStep[step])
		w.NotBefore = present.TimeOrNil(at)
		w.Waits = v.obstacles(e, step)
	}
	return w
}

// obstacles are other entries and targets that the next step waits for.
func (v view) obstacles(e ledger.Entry, step ledger.Step) []Obstacle {
	all := []Obstacle{}
	if !e.WaitsFor.IsZero() {
		all = append(all, Obstacle{What: "entry " + e.WaitsFor.String(), Text: "the same invoice, dropped before, must end first"})
	}
	if v.state == nil {
		return append(all, Obstacle{What: "vaultd", Text: "it is not running; it goes on with the next run"})
	}
	s := v.state()
	for _, target := range ingest.TargetsOf(e, step) {
		for _, p := range s.Pauses {
			if p.Target == target {
				all = append(all, Obstacle{What: target.String(), Since: present.TimeOrNil(p.Since), Next: present.TimeOrNil(p.Next), Text: "paused: " + present.DescribePause(v.Clock, p),
					Do: present.AdviseOnPause(p, s.Advice)})
			}
		}
		for _, d := range s.Drops {
			known := slices.ContainsFunc(all, func(o Obstacle) bool { return o.What == target.String() })
			if target == ingest.DropTarget(d.Name) && d.Paused != "" && !known {
				all = append(all, Obstacle{What: target.String(), Text: "paused: " + d.Paused, Do: d.Do})
			}
		}
	}
	return all
}

// evidence is what the archive said about the registrations whose end is open.
func (v view) evidence(e ledger.Entry) []Evidence {
	all := []Evidence{}
	for _, r := range e.Registrations {
		if r.Fate != ledger.MaybeStored && r.Fate != ledger.Stored && !(r.IsGivenUp() && !e.State.IsFinal()) {
			continue
		}
		t := Evidence{BumID: string(r.Ticket.Remote), Fate: present.ExplainFate(r.Fate)}
		if r.EqualAnswers > 0 {
			t.Said, t.At, t.Means = present.TextOrNil(r.LastStatus.String()), present.TimeOrNil(r.LastAnswer), v.proves(e, r)
			have, need, from := r.Evidence(v.cfg.Status.UnclearGrace)
			if t.Have, t.Need = have, need; need > 0 {
				t.Proven = present.TimeOrNil(from)
			}
		}
		all = append(all, t)
	}
	return all
}

// proves says what the archive's last word about r proves, and what it does not.
func (v view) proves(e ledger.Entry, r ledger.Registration) string {
	grace := v.cfg.Status.UnclearGrace
	have, need, from := r.Evidence(grace)
	switch {
	case r.LastStatus == archive.InProgress:
		return ""
	case r.IsGivenUp():
		return "It was given up on that; the archive is asked about it later on, in case it takes that back."
	case e.State == ledger.Uploaded && (need > 0 || r.LastStatus == archive.Absent):
		return fmt.Sprintf("It was sent completely. Should the archive still say so after %s, it counts as unclear.", v.Exact(e.UploadedAt.Add(grace)))
	case need > 0:
		return fmt.Sprintf("%d of %d equal answers that prove that nothing is there; not believed before %s, for until then something may be under way.",
			min(have, need), need, v.Exact(from))
	}
	return "That proves nothing about where the content is, and nothing is sent again on it."
}

// text tells it to a person.
func (w Explanation) text(c present.Clock) []byte {
	p := &present.Page{}
	fmt.Fprintf(p, "%s (%s)\n", sanitize.Text(w.Folder), sanitize.Text(w.Drop))
	state := w.word
	if w.Since != nil {
		state += ", since " + c.Zoned(*w.Since)
	}
	p.AddLine("State", "%s", state)
	p.AddText(w.Certain)
	for _, n := range w.Notes {
		p.AddLine("Note", "%s", n)
	}
	if w.First != nil {
		p.AddOriginal(c, *w.First)
	}
	if w.Because != nil {
		p.AddLine("Because", "%s", sanitize.Text(strings.ReplaceAll(w.Because.Code, "-", " ")))
		p.AddText(w.Because.Text)
	}
	p.AddLine("Next", "%s", w.next(c))
	for _, o := range w.Waits {
		p.AddLine("Waits for", "%s", o.text(c))
		if o.Do != "" {
			p.AddText(o.Do)
		}
	}
	for _, t := range w.Evidence {
		t.write(p, c)
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

// next says what vaultd does by itself, and when.
func (w Explanation) next(c present.Clock) string {
	if w.Next == nil {
		return "nothing by itself"
	}
	words := *w.Next
	if w.NotBefore != nil && w.NotBefore.Sub(c.Now) >= time.Second {
		words += fmt.Sprintf(", not before %s (in %s)", c.Zoned(*w.NotBefore), present.FormatAge(w.NotBefore.Sub(c.Now)))
	} else if len(w.Waits) == 0 {
		words += ", at once"
	}
	if w.Attempts > 0 {
		verb := "postponed"
		if *w.Next == present.ExplainStep[ledger.Ask] {
			verb = "asked"
		}
		words += fmt.Sprintf("; %s %s so far", verb, present.FormatCount(int(w.Attempts), "time", "times"))
	}
	return words
}

func (o Obstacle) text(c present.Clock) string {
	s := sanitize.Text(o.What)
	if o.Since != nil {
		s += " (since " + c.Zoned(*o.Since) + ")"
	}
	s += ": " + sanitize.FirstLine(o.Text, present.LongestText)
	if o.Next != nil {
		s += "; next try " + c.Zoned(*o.Next)
	}
	return s
}

// write says what the archive's answers prove so far.
func (t Evidence) write(p *present.Page, c present.Clock) {
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
	if said == "" {
		said = "something that vaultd does not know"
	}
	p.AddText(fmt.Sprintf("The archive said last, at %s, %s.", c.Exact(*t.At), said))
	p.AddText(t.Means)
}

func personOf(uid *int64) string {
	if uid == nil {
		return "somebody"
	}
	return present.UserName(uint32(*uid))
}

func timeOf(c present.Clock, t *time.Time) string {
	if t == nil {
		return "-"
	}
	return c.Exact(*t)
}
