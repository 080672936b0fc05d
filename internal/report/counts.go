package report

import (
	"math/big"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
)

const namedAtMost = 500 // folders that the summary names of each kind

// counts counts while the entries are read.
type counts struct {
	c        Config
	whole    ledger.Balance // of all entries
	selected ledger.Balance

	sealed     uint64 // of all: sealed at least once
	registered uint64 // of all: registered more than once

	totals map[billed]ledger.Total

	needs              map[string]*need
	remarks            map[string]*need
	resolved           uint64 // of the selection: rejected without doubt, and nobody needs to look any more
	inQuestion         uint64 // of the selection: archived or rejected, and that is in question
	deliveries         deliveries
	receiptAlone       uint64 // of the selection: an unsigned receipt alone calls it archived
	needReconcile      uint64 // of the selection: what happened since the ledger was put back is not known
	undated            uint64 // of the selection of a year: without a document date
	spans              durations
	longest            string // folder
	skewed, unmeasured uint64 // of archived ones: by how the two clocks of their spans stood
	sums               map[group]*sum
	months             months
	senders            senders
	match              *matcher
	since              *since
	withoutAmount      uint64 // archived, of the selection: without an amount
	retentionEnded     uint64 // archived, of the selection: their retention is over
	fetches            proof.Downloads
	acts               proof.Acts
	sample             proof.Sample // of the selection
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

func newCounts(c Config) *counts {
	return &counts{
		c: c, totals: map[billed]ledger.Total{}, needs: map[string]*need{}, remarks: map[string]*need{}, sums: map[group]*sum{},
		months: newMonths(), senders: newSenders(), match: newMatcher(c.Expected), since: newSince(c.Select.SinceLast),
		spans: durations{counts: map[time.Duration]uint64{}},
	}
}

// readEntry is an entry with its metadata, where it is selected or compared with a list.
type readEntry struct {
	ledger.Entry
	selected bool // by its vault, drop and state
	meta     archive.Document
	asRead   archive.AsRead
}

// readEntry reads what countEntry counts. Many may read at the same time.
func (t *counts) readEntry(e ledger.Entry) (one readEntry, err error) {
	one = readEntry{Entry: e, selected: t.c.Select.selectsEntry(e)}
	if t.c.Expected != nil || one.selected && (t.since.selects(e.Key) || isUnsettled(e)) {
		one.meta, one.asRead, err = present.ReadMetadata(t.c.Ledger, e)
	}
	return one, err
}

// countEntry counts one entry, and its document where it is selected.
func (t *counts) countEntry(one readEntry) error {
	e, m := one.Entry, one.meta
	t.whole.CountChange(ledger.None, e.State)
	if !e.Package.IsZero() {
		t.sealed++
	}
	if len(e.Listed()) > 1 {
		t.registered++
	}
	t.deliveries.countEntry(e)
	for _, one := range e.Transactions() {
		more := one.Total(e.Vault, t.c.Location)
		k := billed{e.Vault, more.Year, more.Month}
		t.totals[k] = more.Plus(t.totals[k])
	}
	if !one.selected || !t.since.selects(e.Key) || !t.c.Select.selectsDayOf(e, m, t.c.Location) {
		t.matchElsewhere(e, m, one.asRead)
		if !one.selected {
			return nil
		}
		t.countElsewhere(e, m, one.asRead)
		return t.countRemarksElsewhere(e)
	}
	if err := t.matchEntry(e, m, one.asRead); err != nil {
		return err
	}
	t.since.countEntry(e, m, t.c.Location)
	if t.c.Select.Year != 0 && m.Date == "" {
		t.undated++
	}
	t.countSelected(e, m)
	return t.countRemarks(e)
}

// countSelected counts a selected entry.
func (t *counts) countSelected(e ledger.Entry, m archive.Document) {
	t.selected.CountChange(ledger.None, e.State)
	month := t.c.monthOf(e, m)
	t.months.countState(month, e.State)
	t.deliveries.countSelected(e)
	t.countNeed(e)
	t.sample.Add(e, &t.fetches)
	if e.NeedsReconcile {
		t.needReconcile++
	}
	if e.RestsOnReceipt() {
		t.receiptAlone++
	}
	switch {
	case (e.Contradicted || e.ContentDiffers()) && !e.Resolved, e.State == ledger.Rejected && e.InDoubt:
		t.inQuestion++
	case e.State == ledger.Rejected && e.Resolved:
		t.resolved++
	}
	if e.State != ledger.Archived {
		return
	}
	t.countDuration(e)
	if t.c.Ended != nil && t.c.Ended(e) {
		t.retentionEnded++
	}
	amount := m.Amount.Rat()
	t.senders.countDocument(m.SenderName, m.Currency, amount)
	if amount == nil {
		t.withoutAmount++
		return
	}
	k := group{m.Type, m.Currency}
	addAmount(t.sums, k, amount)
	t.months.addAmount(month, k, amount)
}

// addAmount adds one document to the sum of its key.
func addAmount[K comparable](sums map[K]*sum, k K, amount *big.Rat) {
	s := sums[k]
	if s == nil {
		s = &sum{}
		sums[k] = s
	}
	s.count++
	s.total.Add(&s.total, amount)
}

// countDuration counts how long an archived entry took. Its two times are of two clocks.
func (t *counts) countDuration(e ledger.Entry) {
	if e.ArchivedAt.IsZero() || e.SeenAt.IsZero() {
		return
	}
	took, known := e.ArchivingTime()
	if !known {
		t.unmeasured++
		return
	}
	if ahead, _ := e.ServiceAhead(); ahead.Abs() > time.Minute {
		t.skewed++
	}
	if t.spans.add(took) {
		t.longest = e.Folder
	}
}

// addTo counts one more of a kind, and names it where it is one of the first few.
func addTo(kinds map[string]*need, what, name string) {
	n := kinds[what]
	if n == nil {
		n = &need{What: what}
		kinds[what] = n
	}
	if n.Count++; len(n.Names) < namedAtMost {
		n.Names = append(n.Names, name)
	}
}

// countNeed books what a person must see to.
func (t *counts) countNeed(e ledger.Entry) {
	what := t.c.findEntryNeed(e)
	if what == "" {
		return
	}
	name := e.Folder + " (" + e.Drop + ")"
	if r := summarizeReason(e); r != "" {
		name += ": " + r
	}
	addTo(t.needs, what, name)
}

// findEntryNeed returns the stable word of why a person must see to an entry; empty: nobody must.
func (c Config) findEntryNeed(e ledger.Entry) string {
	return present.NeedOf(e, present.OnAudit, c.Made, c.AlertAfter).What
}

// monthlyTotals gives what each vault archived in each month.
func (t *counts) monthlyTotals() []ledger.Total {
	var all []ledger.Total
	for _, one := range t.totals {
		all = append(all, one)
	}
	return all
}

// formatDecimal writes a sum of decimals, which always is one, with two digits or as many as it needs.
func formatDecimal(r *big.Rat) string {
	n, _ := r.FloatPrec()
	return r.FloatString(max(n, 2))
}

// durations counts times to three digits, so that a median of millions needs little memory.
type durations struct {
	counts  map[time.Duration]uint64
	spread  [len(present.DelayLimits) + 1]uint64 // how many were shorter than each limit and not than the one before; the last: all others
	total   uint64
	longest time.Duration
}

// listSpread gives how many took how long, and beside them how many deliveries did.
func (s *durations) listSpread(delivered [len(present.DelayLimits) + 1]uint64) []spreadLine {
	var lines []spreadLine
	for i, n := range s.spread {
		l := spreadLine{Documents: n, Delivered: delivered[i]}
		if i > 0 {
			l.From = present.DelayLimits[i-1].Seconds()
		}
		if i < len(present.DelayLimits) {
			below := present.DelayLimits[i].Seconds()
			l.Below = &below
		}
		lines = append(lines, l)
	}
	return lines
}

// add counts one and reports whether it is the longest so far.
func (s *durations) add(d time.Duration) (longest bool) {
	d = d.Truncate(time.Second)
	s.spread[present.DelayPart(d)]++
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
func (s *durations) median() time.Duration {
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
