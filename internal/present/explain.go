package present

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ingest"
	"vaultd/internal/ledger"
)

// Situation is what explanations need beside the entry.
type Situation struct {
	Clock
	AlertAfter   time.Duration // an entry that is open for longer needs a person; zero: never
	UnclearGrace time.Duration // before it no answer proves that nothing is at the archive
	FolderPath   string        // where a returned folder is on this machine; empty: unknown

	Running bool // the rest is known of a running daemon only
	Pauses  []ingest.Pause
	Drops   []DropStatus
}

// Explain says why an entry is where it is, what happens next, and what a person can do.
func (s Situation) Explain(d Dossier) Explanation {
	e := d.Entry
	w := Explanation{
		Key: e.Key.String(), Folder: e.Folder, Drop: e.Drop, Route: string(e.Route), State: e.State.String(), word: StateText(e), Since: d.stateSince(), Certain: explainState(e),
		Notes: ExplainFlags(e), First: d.Details.Original, Attempts: e.Attempt, Waits: []Obstacle{}, Evidence: s.collectEvidence(e), Reasons: d.decisions(), Can: s.Options(d),
	}
	if since := d.MissingSince(); !since.IsZero() {
		w.Notes = append(w.Notes, "its folder is "+DescribeMissing(e, s.Zoned(since))+": it was removed, renamed or moved")
	}
	if k := NeedOf(e, OnWhy, s.Now, s.AlertAfter); k.What != "" {
		w.Needs = &Need{When: k.When, What: k.What, Count: 1, Text: strings.TrimPrefix(k.Describe(1, s.AlertAfter), "1 "), Do: k.Do, Names: []string{}, Turn: k.Turn}
	}
	for _, one := range d.Details.Remarks {
		w.Notes = append(w.Notes, one.Text)
	}
	if others := DescribeFileOwners(d.Document.FileOwners); others != "" {
		w.Notes = append(w.Notes, fmt.Sprintf("a folder of %s, with files of %s", UserName(e.Owner), others))
	}
	if age := s.Now.Sub(e.SeenAt); e.State.IsOpen() && s.AlertAfter > 0 && age > s.AlertAfter {
		w.Notes = append(w.Notes, fmt.Sprintf(WordsOf(e.Route).options.longWithoutWord, FormatAge(age), FormatAge(s.AlertAfter)))
	}
	if e.Cause != (ledger.Cause{}) {
		w.Because = &Cause{Code: e.Cause.Code, Text: CauseText(e)}
	}
	if step, at, due := ledger.Due(e); due {
		w.Next = TextOrNil(ExplainStep(e, step))
		w.NotBefore = TimeOrNil(at)
		w.Waits = s.collectObstacles(e, step)
	}
	return w
}

// collectObstacles gives the other entries and targets that the next step waits for.
func (s Situation) collectObstacles(e ledger.Entry, step ledger.Step) []Obstacle {
	all := []Obstacle{}
	if !e.WaitsFor.IsZero() {
		all = append(all, Obstacle{What: "entry " + e.WaitsFor.String(), Text: "the same invoice, dropped before, must end first"})
	}
	if !s.Running {
		return append(all, Obstacle{What: "vaultd", Text: "it is not running; it goes on with the next run"})
	}
	for _, target := range ingest.TargetsOf(e, step) {
		for _, p := range s.Pauses {
			if p.Target == target {
				all = append(all, Obstacle{What: target.String(), Since: TimeOrNil(p.Since), Next: TimeOrNil(p.Next), Text: "paused: " + DescribePause(s.Clock, p), Do: AdviseOnPause(p)})
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

// collectEvidence gives what the archive said about the registrations whose end is open.
func (s Situation) collectEvidence(e ledger.Entry) []Evidence {
	all := []Evidence{}
	for _, r := range e.Listed() {
		if r.Fate != ledger.MaybeStored && r.Fate != ledger.Stored && !(r.IsGivenUp() && !e.State.IsFinal()) {
			continue
		}
		t := Evidence{BumID: string(r.Ticket.Remote), Fate: WordsOf(e.Route).explainFate(r.Fate)}
		if r.EqualAnswers > 0 {
			t.Said, t.At, t.Means = TextOrNil(r.LastStatus.String()), TimeOrNil(r.LastAnswer), s.explainEvidence(e, r)
			have, need, from := r.Evidence(s.UnclearGrace)
			if t.Have, t.Need = have, need; need > 0 {
				t.Proven = TimeOrNil(from)
			}
		}
		all = append(all, t)
	}
	return all
}

func (s Situation) explainEvidence(e ledger.Entry, r ledger.Registration) string {
	grace := s.UnclearGrace
	have, need, from := r.Evidence(grace)
	switch {
	case r.LastStatus == archive.InProgress:
		return ""
	case r.IsGivenUp():
		return "It was given up on that; the archive is asked about it later on, in case it takes that back."
	case e.State == ledger.Uploaded && (need > 0 || r.LastStatus == archive.Absent):
		return fmt.Sprintf("It was sent completely. Should the archive still say so after %s, it counts as unclear.", s.Exact(e.UploadedAt.Add(grace)))
	case need > 0:
		return fmt.Sprintf("%d of %d equal answers that prove that nothing is there; not believed before %s, for until then something may be under way.",
			min(have, need), need, s.Exact(from))
	}
	return "That proves nothing about where the content is, and nothing is sent again on it."
}
