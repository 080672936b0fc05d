package arrival

import (
	"fmt"
	"slices"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// world is one state of the model: the arrival as it is stored, and a tiny service.
type world struct {
	a        Arrival
	had      [3]bool   // custody holds the file durably
	counted  [3]uint16 // downloads that the service counted
	more     bool      // the third file was added
	hidden   bool      // the list leaves the extract out
	acked    bool      // the service took an acknowledgement
	gone     bool      // the service removed it
	manifest bool      // custody has the manifest
	dropped  [3]bool   // the file is in the drop folder, or was taken from there
	lost     bool      // custody lost the whole extract once, after it was held
}

var modelFiles = []archive.ExtractFile{{Name: "a"}, {Name: "b"}, {Name: "c"}}

func (w world) list() []archive.ExtractFile {
	if w.more {
		return modelFiles
	}
	return modelFiles[:2]
}

const modelDownloads = 1

// must applies an event that the machine has to allow.
func must(t *testing.T, w world, ev Event) world {
	t.Helper()
	next, err := Transition(w.a, ev, at)
	kit.Need(t, err == nil, "%v\nin %v", err, w)
	w.a = next
	return w
}

// steps returns every world that may follow: the due step with each outcome, a crash in the middle of it, and what the service or a
// person may do meanwhile.
func (w world) steps(t *testing.T, rules Rules) (all []world) {
	add := func(w world) { all = append(all, w) }
	step, file, _ := Due(w.a, rules)
	switch step {
	case ListFiles:
		if !w.gone {
			add(must(t, w, FilesListed{w.list()}))
		} else if w.a.Gone {
			add(must(t, w, Abandoned{Cause: ledger.Cause{Code: "gone"}}))
		}
	case Download:
		w.downloads(t, file, add)
	case Conclude:
		w.concludes(t, add)
	case HandOn:
		for i := range w.a.Files {
			w.dropped[i] = true
			add(w) // it died before the other files, or before the line
		}
		add(must(t, w, HandedOn{}))
	case Acknowledge:
		w = must(t, w, AcknowledgeIntended{OnlyHandedOn: rules.HandOn})
		add(w) // it died, or the call never left
		took := w
		took.acked, took.hidden = true, true
		add(took) // taken, and the answer lost
		add(must(t, took, AcknowledgementTaken{}))
	case Person:
		add(must(t, w, Allowed{}))
		add(must(t, w, Abandoned{By: &ledger.Operator{}}))
	}
	w.elsewhere(t, add)
	return all
}

func (w world) downloads(t *testing.T, file string, add func(world)) {
	i := int(file[0] - 'a')
	w = must(t, w, DownloadIntended{file})
	add(w) // it died before the call
	w.counted[i]++
	add(w) // cut, or it died before the bytes were durable
	if w.gone {
		if w.a.Gone { // the list, and now its number
			add(must(t, w, Abandoned{Cause: ledger.Cause{Code: "gone"}}))
		}
		return
	}
	w.had[i] = true
	add(w) // it died before the line of the file
	add(must(t, w, heldFile(file)))
}

func (w world) concludes(t *testing.T, add func(world)) {
	known := 0
	for _, f := range w.list() {
		if w.a.findFile(f.Name) != nil {
			known++
		}
	}
	switch {
	case w.gone: // the list cannot be asked for any more, so it proves nothing
		if w.a.Gone {
			add(must(t, w, Abandoned{Cause: ledger.Cause{Code: "gone"}}))
		}
	case known < len(w.list()):
		add(must(t, w, FilesListed{w.list()}))
	default:
		w.manifest = true
		add(w) // it died before the line
		add(must(t, w, HeldWhole{Again: w.list(), Manifest: sum}))
	}
}

// elsewhere is what others do: a file is added, another program acknowledges, the year ends, the list is asked for,
// custody loses what it held.
func (w world) elsewhere(t *testing.T, add func(world)) {
	if !w.more && !w.manifest && !w.gone {
		other := w
		other.more, other.acked = true, false // what was acknowledged before was less
		add(other)
	}
	if !w.hidden {
		other := w
		other.hidden = true
		add(other)
	}
	if w.hidden && !w.gone && (!w.acked || w.lost) {
		other := w
		other.gone = true
		add(other)
	}
	if w.a.State.IsOpen() && w.hidden && !w.a.Gone {
		add(must(t, w, LeftOut{}))
	}
	if (w.a.State == Held || w.a.State == Acknowledged) && !w.lost {
		other := w
		other.had, other.manifest, other.lost = [3]bool{}, false, true
		add(must(t, other, CustodyLost{}))
	}
}

// I30, I13, I9: over every order of events, crashes and lost answers: what the service was told is held, counts are never too small, an
// end stays an end, and from everywhere an end can be reached.
func TestModel_I30_EveryOrder(t *testing.T) {
	if kit.Race {
		t.Skip("the model of arrivals runs without the race detector, in make test")
	}
	for _, rules := range []Rules{{}, {Acknowledge: true}, {Acknowledge: true, HandOn: true}} {
		rules.MaxDownloads = modelDownloads
		start := must(t, world{a: Arrival{Key: archive.Key{1}}}, Listed{Kind: Extract, Extract: archive.Extract{ID: "4711", Files: 2}})
		seen := map[string]bool{start.key(): true}
		after := map[string][]string{} // from a world to those before it
		ended := map[string]bool{}
		queue := []world{start}
		for len(queue) > 0 {
			w := queue[0]
			queue = queue[1:]
			w.check(t, rules)
			from := w.key()
			if step, _, _ := Due(w.a, rules); step == NoStep {
				ended[from] = true
			}
			for _, next := range w.steps(t, rules) {
				next.checkChange(t, w)
				to := next.key()
				after[to] = append(after[to], from)
				if next.a.State.IsOpen() && next.a.MostDownloads() > 2 || next.a.State == Held && next.a.AcknowledgeIntents > 3 || seen[to] {
					continue
				}
				seen[to] = true
				queue = append(queue, next)
			}
			if t.Failed() {
				return
			}
		}
		t.Logf("%+v: %d worlds, %d ends", rules, len(seen), len(ended))
		kit.Check(t, len(seen) >= 500 && len(ended) >= 5, "only %d worlds and %d ends", len(seen), len(ended))
		checkEndsAreReachable(t, seen, after, ended)
	}
}

// key leaves out what does not matter for what follows.
func (w world) key() string {
	w.a.Rev = 0
	return fmt.Sprintf("%+v", w)
}

func (w world) check(t *testing.T, rules Rules) {
	t.Helper()
	checkStage(t, w.a, rules)
	for i := range w.a.Files {
		kit.Check(t, w.a.HandedOnAt.IsZero() && (!w.acked || !rules.HandOn) || w.dropped[i],
			"handed on or acknowledged, and not in the drop folder: %v", w)
	}
	kit.Check(t, !w.acked || w.a.hasAllFiles() || !w.a.LostAt.IsZero(), "acknowledged, and not all is held: %v", w)
	for i, f := range w.a.Files {
		kit.Check(t, f.Downloads >= w.counted[i], "the service counted more downloads of %s: %v", f.Name, w)
		kit.Check(t, !f.IsHeld() || w.had[i], "%s is called held: %v", f.Name, w)
	}
	kit.Check(t, w.a.State != Held && w.a.State != Acknowledged || w.manifest && w.a.hasAllFiles(),
		"called held: %v", w)
}

// checkStage demands that an index by stages leads to whatever is due, and not before its time.
func checkStage(t *testing.T, a Arrival, rules Rules) {
	t.Helper()
	step, _, when := Due(a, rules)
	if step == NoStep || step == Person {
		return
	}
	kit.Check(t, slices.Contains(rules.Stages(a.Kind), a.Stage()) && when.Equal(a.NotBefore), "to %s is due at %v, and it waits at stage %d until %v: %+v", step, when, a.Stage(), a.NotBefore, a)
}

func (w world) checkChange(t *testing.T, before world) {
	t.Helper()
	isLoss := w.lost && !before.lost
	kit.Check(t, (before.a.State < Held || w.a.State >= before.a.State || isLoss) && (before.a.State != GivenUp || w.a.State == GivenUp),
		"from %v back to %v", before.a.State, w.a.State)
	for i, f := range before.a.Files {
		kit.Check(t, w.a.Files[i].Downloads >= f.Downloads, "fewer downloads than before: %v", w)
	}
}

// checkEndsAreReachable demands a way from every world to one in which nothing is due.
func checkEndsAreReachable(t *testing.T, seen map[string]bool, before map[string][]string, ended map[string]bool) {
	t.Helper()
	reach := map[string]bool{}
	var queue []string
	for key := range ended {
		reach[key] = true
		queue = append(queue, key)
	}
	for len(queue) > 0 {
		key := queue[0]
		queue = queue[1:]
		for _, from := range before[key] {
			if !reach[from] {
				reach[from] = true
				queue = append(queue, from)
			}
		}
	}
	stuck := 0
	for key := range seen {
		if !reach[key] {
			if stuck++; stuck == 1 {
				t.Errorf("no end can be reached from %s", key)
			}
		}
	}
}
