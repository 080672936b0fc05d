package report

import (
	"bytes"
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
)

const (
	named  = 10   // folders that the summary names of each kind
	recent = 1000 // acts of people that are listed, the latest ones
)

// tally counts while the ledger passes by.
type tally struct {
	c        Config
	whole    ledger.Balance // of all entries
	selected ledger.Balance

	packed     uint64 // of all: sealed at least once
	registered uint64 // of all: registered more than once
	totals     map[billed]ledger.Total

	needs              map[string]*need
	remarks            map[string]*need
	resolved           uint64 // of the selection: rejected without doubt, and nobody needs to look any more
	doubtful           uint64 // of the selection: archived or rejected, and that is in question
	suspect            uint64 // of the selection: what happened since the ledger was put back is not known
	undated            uint64 // of the selection of a year: without a document date
	spans              spans
	longest            string // folder
	skewed, unmeasured uint64 // of archived ones: by how the two clocks of their spans stood
	sums               map[group]*sum
	bare               uint64 // archived, of the selection: without an amount
	ended              uint64 // archived, of the selection: their retention is over
	acts               uint64
	latest             []act
	fetches            proof.Downloads
	sample             proof.Sample                   // of the selection
	compared           map[archive.VaultID]comparison // the last one of each vault; empty: the one that ended safe mode, for all of them
}

type billed struct {
	vault       archive.VaultID
	year, month int
}

type group struct{ kind, currency string }

type sum struct {
	count uint64
	total big.Rat
}

func newTally(c Config) *tally {
	return &tally{
		c: c, totals: map[billed]ledger.Total{}, needs: map[string]*need{}, remarks: map[string]*need{}, sums: map[group]*sum{},
		spans: spans{counts: map[time.Duration]uint64{}}, compared: map[archive.VaultID]comparison{},
	}
}

// line notes what people did: the lines that name one, but for those that name the
// owner of a folder. The others need not be parsed.
func (t *tally) line(stored []byte) {
	if !bytes.Contains(stored, []byte(`"uid":`)) || bytes.Contains(stored, []byte(`"event":"`+ledger.ClaimedFolder{}.JournalName()+`"`)) {
		return
	}
	l, err := ledger.ParseLine(stored)
	if err != nil || l.UID == nil {
		return // the proof speaks of broken lines
	}
	t.fetches.AddLine(l) // the proof speaks of wrong ones
	if l.Event == ledger.MarkFetched {
		return // what came of an act that was told
	}
	t.acts++
	at, _ := time.Parse(time.RFC3339, l.At) // a broken time is shown as none
	if l.Key == "" && (l.Event == ledger.MarkReconciled || l.Event == ledger.MarkCompared) {
		t.compare(l, at)
	}
	t.latest = append(t.latest, act{Line: l.N, At: at, Event: l.Event, Key: l.Key, Rev: l.Rev, BumID: l.Remote, UID: uint32(*l.UID), Digest: l.Reason})
	if len(t.latest) >= 2*recent {
		t.latest = append(t.latest[:0], t.latest[len(t.latest)-recent:]...)
	}
}

// entry counts one entry, and its document where it is selected.
func (t *tally) entry(e ledger.Entry) error {
	t.whole.CountChange(ledger.None, e.State)
	if !e.Package.IsZero() {
		t.packed++
	}
	if len(e.Registrations) > 1 {
		t.registered++
	}
	for _, one := range e.Transactions() {
		more := one.Total(e.Vault, t.c.Location)
		k := billed{e.Vault, more.Year, more.Month}
		t.totals[k] = more.Plus(t.totals[k])
	}
	if !t.c.Select.wants(e) {
		return nil
	}
	var m archive.Document
	if t.c.Select.Year != 0 || e.State == ledger.Archived { // else nothing of it is counted
		var err error
		if m, _, err = present.ReadMetadata(t.c.Ledger, e); err != nil {
			return err
		}
		if !t.c.Select.inYear(e, m, t.c.Location) {
			return t.remarkElsewhere(e)
		}
	}
	if t.c.Select.Year != 0 && m.Date == "" {
		t.undated++
	}
	t.pick(e, m)
	return t.remark(e)
}

// pick counts a selected entry.
func (t *tally) pick(e ledger.Entry, m archive.Document) {
	t.selected.CountChange(ledger.None, e.State)
	t.want(e)
	t.sample.Add(e, &t.fetches)
	if e.NeedsReconcile {
		t.suspect++
	}
	switch {
	case e.Contradicted && !e.Resolved, e.State == ledger.Rejected && e.InDoubt:
		t.doubtful++
	case e.State == ledger.Rejected && e.Resolved:
		t.resolved++
	}
	if e.State != ledger.Archived {
		return
	}
	t.span(e)
	if t.c.Ended != nil && t.c.Ended(e) {
		t.ended++
	}
	amount := m.Amount.Rat()
	if amount == nil {
		t.bare++
		return
	}
	k := group{m.Type, m.Currency}
	s := t.sums[k]
	if s == nil {
		s = &sum{}
		t.sums[k] = s
	}
	s.count++
	s.total.Add(&s.total, amount)
}

// span counts how long an archived entry took. Its two times are of two clocks.
func (t *tally) span(e ledger.Entry) {
	if e.ArchivedAt.IsZero() || e.SeenAt.IsZero() {
		return
	}
	took := e.ArchivedAt.Sub(e.SeenAt)
	ahead, known := e.ServiceAhead()
	took -= ahead
	switch {
	case took < -time.Minute && !known:
		t.unmeasured++
		return
	case ahead.Abs() > time.Minute:
		t.skewed++
	}
	if t.spans.add(took) {
		t.longest = e.Folder
	}
}

// bookIn counts one more of a kind, and names it where it is one of the first few.
func bookIn(kinds map[string]*need, what, name string) {
	n := kinds[what]
	if n == nil {
		n = &need{What: what}
		kinds[what] = n
	}
	if n.Count++; len(n.Names) < named {
		n.Names = append(n.Names, name)
	}
}

// want books what a person must see to.
func (t *tally) want(e ledger.Entry) {
	book := func(what string) {
		name := e.Folder + " (" + e.Drop + ")"
		if r := briefReason(e); r != "" {
			name += ": " + r
		}
		bookIn(t.needs, what, name)
	}
	switch {
	case e.Contradicted && !e.Resolved:
		book("contradicted")
	case e.State == ledger.Archived && t.fetches.LastComparison(e.Vault, e.ArchivedRemote) == ledger.FetchDiffers:
		book("download-differs")
	case e.IsArchivedTwice() && !e.Resolved:
		book("archived-twice")
	case e.State == ledger.Quarantined:
		book("quarantined")
	case e.State == ledger.Rejected && !e.Resolved:
		book("rejected")
	case e.Hold:
		book("held")
	case e.Attention() == ledger.SourceChanged:
		book("kept-differs")
	case e.State.IsOpen() && t.c.AlertAfter > 0 && t.c.Made.Sub(e.SeenAt) > t.c.AlertAfter:
		book("overdue")
	}
}

// monthly gives what each vault archived in each month.
func (t *tally) monthly() []ledger.Total {
	var all []ledger.Total
	for _, one := range t.totals {
		all = append(all, one)
	}
	return all
}

// sumLines gives the sums in a fixed order.
func (t *tally) sumLines() []sumLine {
	lines := []sumLine{}
	for k, s := range t.sums {
		lines = append(lines, sumLine{Type: k.kind, Currency: k.currency, Documents: s.count, Total: decimal(&s.total)})
	}
	slices.SortFunc(lines, func(a, b sumLine) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Currency, b.Currency))
	})
	return lines
}

// decimal writes a sum of decimals, which always is one, with two digits or as many as it needs.
func decimal(r *big.Rat) string {
	n, _ := r.FloatPrec()
	return r.FloatString(max(n, 2))
}

// spans counts times to three digits, so that a median of millions needs little memory.
type spans struct {
	counts  map[time.Duration]uint64
	total   uint64
	longest time.Duration
}

// add counts one and reports whether it is the longest so far. The archive tells its clock in whole seconds: less than
// nothing is nothing.
func (s *spans) add(d time.Duration) (longest bool) {
	d = max(d.Truncate(time.Second), 0)
	unit := time.Second
	for d >= 1000*unit {
		unit *= 10
	}
	s.counts[d.Truncate(unit)]++
	s.total++
	if longest = s.total == 1 || d > s.longest; longest {
		s.longest = d
	}
	return longest
}

// median returns the least time that at least half of them did not exceed.
func (s *spans) median() time.Duration {
	all := make([]time.Duration, 0, len(s.counts))
	for d := range s.counts {
		all = append(all, d)
	}
	slices.Sort(all)
	var seen uint64
	for _, d := range all {
		if seen += s.counts[d]; 2*seen >= s.total {
			return d
		}
	}
	return 0
}
