package report

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/billing"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
)

// Format names the shape of an audit's JSON; it changes only with the shape.
const Format = "vaultd-audit-1"

// Summary is the first page of an audit, and the head of its JSON. Counts are of the
// selection where they do not say that they are of the whole ledger.
type Summary struct {
	Format string  `json:"format"`
	Notice string  `json:"notice"` // TestMark in a test environment, else empty
	Result verdict `json:"result"`
	About  about   `json:"about"`
	Check  check   `json:"check"`

	Whole    balance `json:"wholeLedger"`
	Selected balance `json:"selected"`
	Undated  uint64  `json:"withoutDocumentDate"` // with a year only: they count by the day they were taken

	Delivered *delivered `json:"delivered,omitempty"` // of PDFs; absent: none of the selection is delivered

	Since    *sinceLast `json:"since"`    // null: the report does not go on from another one
	Expected *listed    `json:"expected"` // null: nobody said what was expected

	Booked *BookedPart `json:"booked,omitempty"` // absent: it is not known what was booked, or a list says what was expected

	NotTaken      notTaken   `json:"notTaken"`
	Needs         []need     `json:"needs"`
	Remarks       []need     `json:"remarks"` // what a person should look at, for good: that somebody did so is told with the folder
	Unchanged     unchanged  `json:"unchanged"`
	Compared      []compared `json:"compared"` // the last comparison with the archive's index of each vault
	Bills         []billLine `json:"billing"`
	shares        []vaultShares
	OnTime        onTime       `json:"onTime"`
	Spread        []spreadLine `json:"spread"` // of those that are measured: how many took how long
	Sums          []sumLine    `json:"sums"`
	Months        []monthLine  `json:"months"`            // the newest first; without a document date by the month in which the folder was taken
	MonthsCut     bool         `json:"monthsWithoutSums"` // there are too many types and currencies: the months have no sums
	Senders       []senderLine `json:"senders"`           // the twenty with most archived documents
	Unranked      bool         `json:"sendersNotRanked"`  // there are too many different senders to rank them
	NoAmount      uint64       `json:"archivedWithoutAmount"`
	Ended         uint64       `json:"retentionEnded"` // archived: the archive need not have them any more
	ManualActions uint64       `json:"manualActions"`  // of the whole ledger
	Acts          []act        `json:"acts"`           // the latest thousand, the newest first
	NotProven     []doubt      `json:"notProven"`
	Promises      []promised   `json:"promises"`

	Unclear []string `json:"unclear"` // keys, of the whole ledger, like the three below
	Unused  []unused `json:"unusedRegistrations"`
	Double  []string `json:"possiblyDouble"`
	InDoubt []string `json:"closedInDoubt"`

	Network   *networkDelivered `json:"deliveredByNetwork,omitempty"` // of documents of the business network; absent: none of the selection is delivered
	SentTwice []string          `json:"possiblySentTwice,omitempty"`  // as Twice, of documents of the business network

	Twice []string `json:"possiblyProcessedTwice,omitempty"` // as Unclear; none of them is possibly double in the archive
}

// verdict is the result in plain words.
type verdict struct {
	Code  string `json:"code"` // contradiction, safe-mode, nothing, part, not-complete, complete-as-dropped, complete-as-listed or complete
	Title string `json:"title"`
	Text  string `json:"text"`
}

// about says what was examined, and who says so.
type about struct {
	Environment string    `json:"environment"`
	Service     string    `json:"service"` // base address
	Ledger      string    `json:"ledgerId"`
	Created     time.Time `json:"ledgerCreated"`
	Selection   string    `json:"selection"`
	Made        time.Time `json:"madeAt"`
	Zone        string    `json:"timeZone"` // of days and years; times are in UTC
	Program     string    `json:"program"`
	Host        string    `json:"host"`
	By          string    `json:"madeBy"`
	HeadLine    uint64    `json:"headLine"`
	HeadHash    string    `json:"headHash"`
	ReceiptKeys []string  `json:"receiptKeys"` // public keys, see proof.CheckSignature
}

// check is what the proof of the journal found.
type check struct {
	Agrees   bool      `json:"agrees"`
	Lines    uint64    `json:"lines"`
	Entries  uint64    `json:"entries"`
	Findings []finding `json:"findings"` // at most a thousand
	Omitted  uint64    `json:"omitted"`  // findings beyond those
	RestsOn  *restsOn  `json:"restsOn"`  // null: all of it was examined for this report
}

type finding struct {
	Promise string `json:"promise"`
	Key     string `json:"key,omitempty"`
	Text    string `json:"text"`
}

type balance struct {
	Seen   uint64            `json:"seen"`
	States map[string]uint64 `json:"states"`
	Open   uint64            `json:"open"`
	Agrees bool              `json:"agrees"`
}

func newBalance(b ledger.Balance) balance {
	all := balance{Seen: b.Seen, States: map[string]uint64{}, Open: b.OpenEntries(), Agrees: b.IsBalanced()}
	for _, s := range ledger.States() {
		all.States[s.String()] = b.States[s]
	}
	return all
}

// need is one kind of thing that a person must see to.
type need struct {
	What  string   `json:"what"` // a stable word
	Count uint64   `json:"count"`
	Text  string   `json:"text"`
	Do    string   `json:"do"`
	Names []string `json:"names"` // the first five hundred
}

// billLine is one bill in words and figures.
type billLine struct {
	Year         int    `json:"year"`  // of the archive's success
	Vault        string `json:"vault"` // empty: all vaults of the customer
	Documents    uint64 `json:"documents"`
	Unsized      uint64 `json:"unsized"` // of them: their size is not known, and they are left out of what follows
	Bytes        uint64 `json:"bytes"`
	AverageMB    string `json:"averageMB"`
	Percent      string `json:"percent"` // of what is included
	Level        int    `json:"level"`   // 0, 80, 90 or 100
	LevelText    string `json:"levelText"`
	Headroom     uint64 `json:"headroomBytes"`
	Transactions string `json:"transactions"`      // beyond what is included, exact
	Money        string `json:"money"`             // of them; empty: no price is known
	Whole        uint64 `json:"wholeTransactions"` // rounded up
	MoneyWhole   string `json:"moneyWhole"`        // of those
	Currency     string `json:"currency"`

	Forecast *billing.Forecast `json:"forecast"` // to 31 December; null: of another year, or too early to say
}

// unchanged tells what was downloaded again and compared with what was sent, ever.
type unchanged struct {
	Text      string `json:"text"`
	Archived  uint64 `json:"archived"` // of the selection, like the two below
	Compared  uint64 `json:"compared"`
	Differ    uint64 `json:"differ"`    // by the last download of each
	Downloads uint64 `json:"downloads"` // of the whole ledger, whatever came of them
	Money     string `json:"money"`     // of all of those; empty: no price is configured
	Currency  string `json:"currency"`
}

func (t *counts) summarizeDownloads() unchanged {
	u := unchanged{
		Text:     fmt.Sprintf("%s of %s downloaded and compared, %s differ", formatNumber(t.sample.Compared), formatNumber(t.sample.Archived), formatNumber(t.sample.Differ)),
		Archived: t.sample.Archived, Compared: t.sample.Compared, Differ: t.sample.Differ, Downloads: t.fetches.Announced, Currency: t.c.Rule.Currency,
	}
	if price := t.c.Price.Rat(); price != nil && price.Sign() > 0 {
		u.Money = formatDecimal(price.Mul(price, new(big.Rat).SetUint64(u.Downloads)))
	}
	return u
}

// onTime tells how long folders took from being taken, by this machine's clock, to the archive's own success, by the archive's
// clock less what that one was ahead when the document was registered.
type onTime struct {
	Count   uint64  `json:"count"`
	Median  float64 `json:"medianSeconds"` // to three digits
	Longest float64 `json:"longestSeconds"`
	Folder  string  `json:"longestFolder"`
	Unknown uint64  `json:"notMeasured"` // archived, and left out: the archive's clock is not known, and says less than nothing
	Skewed  uint64  `json:"corrected"`   // of count: the archive's clock was off by more than a minute, which is taken out
}

// spreadLine is how many documents took at least From and less than Below, in seconds.
type spreadLine struct {
	From      float64  `json:"fromSeconds"`
	Below     *float64 `json:"belowSeconds"`        // null: without an end
	Documents uint64   `json:"documents"`           // archived
	Delivered uint64   `json:"delivered,omitempty"` // absent: none
}

type sumLine struct {
	Type      string `json:"documentType"`
	Currency  string `json:"currencyCode"`
	Documents uint64 `json:"documents"`
	Total     string `json:"total"` // exact decimal
}

// act is what a person did to one folder.
type act struct {
	Line   uint64    `json:"line"` // of the journal
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	Key    string    `json:"key"`
	Rev    uint32    `json:"rev"`   // of the entry since
	BumID  string    `json:"bumId"` // of a download: what was downloaded
	UID    uint32    `json:"uid"`
	Digest string    `json:"reasonSHA256"` // as the journal keeps it; may be empty
	Reason string    `json:"reason"`       // empty: none was given, or it is erased
}

// doubt is one thing that nobody can prove, with today's number.
type doubt struct {
	What  string `json:"what"` // a stable word
	Count uint64 `json:"count"`
	Text  string `json:"text"` // with the number
}

// unused is a registration that never got content.
type unused struct {
	BumID string `json:"bumId"`
	Key   string `json:"key"`
}

func (a *Audit) newSummary(t *counts) (Summary, error) {
	totals := t.monthlyTotals()
	bills, err := billing.Bills(totals, a.c.Rule, a.c.Made.In(a.c.Location))
	if err != nil {
		return Summary{}, err
	}
	acts, err := t.readLatestActs()
	if err != nil {
		return Summary{}, err
	}
	s := Summary{
		Format: Format, About: a.newAbout(), Check: a.newCheck(),
		Whole: newBalance(a.proof.Balance), Selected: newBalance(t.selected), Undated: t.undated,
		NotTaken: a.collectNotTaken(), Needs: t.listNeeds(), Remarks: t.listRemarks(), Bills: a.billLines(bills), Sums: listSums(t.sums), NoAmount: t.withoutAmount, Ended: t.retentionEnded,
		OnTime: onTime{t.spans.total, t.spans.median().Seconds(), t.spans.longest.Seconds(), t.longest, t.unmeasured, t.skewed}, Spread: t.spans.listSpread(t.deliveries.spread),
		Unchanged: t.summarizeDownloads(), Compared: t.listComparisons(), ManualActions: t.acts.Count, Acts: acts, Unused: []unused{},
		Unclear: stringsOf(a.proof.Unclear), Double: stringsOf(t.deliveries.without(a.proof.Double)), InDoubt: stringsOf(a.proof.InDoubt),
		Booked: a.c.Booked, Delivered: t.deliveries.summarizePDFs(), Twice: stringsOf(t.deliveries.pdf.among(a.proof.Double)),
		Network: t.deliveries.summarizeNetwork(), SentTwice: stringsOf(t.deliveries.network.among(a.proof.Double)),
	}
	s.Months, s.MonthsCut = t.months.list()
	s.shares = a.listShares(bills, totals)
	if s.Since = t.since.summarize(); s.Since != nil {
		s.About.Selection = t.since.describe(a.c.Location)
	}
	s.Senders, s.Unranked = t.senders.listTop()
	if s.Expected, err = t.match.summarize(a.c.Ledger); err != nil {
		return Summary{}, fmt.Errorf("compare with the list: %w", err)
	}
	if a.isTest() {
		s.Notice = TestMark
	}
	for _, n := range []need{s.NotTaken.findNeed(), t.findIndexNeeds()} {
		if n.Count > 0 {
			s.Needs = append(s.Needs, n)
		}
	}
	for _, o := range a.proof.Orphans {
		s.Unused = append(s.Unused, unused{string(o.Remote), o.Key.String()})
	}
	s.NotProven = slices.Concat(a.listSafeModeDoubts(), a.listBasisDoubts(), a.listDropDoubts(s.NotTaken), t.listDoubts(a.proof))
	s.Promises = a.listPromises()
	s.Result = a.decideVerdict(t, s)
	return s, nil
}

func (a *Audit) isTest() bool { return a.c.Info.Environment != "production" }

func (a *Audit) newAbout() about {
	c := a.c
	return about{
		Environment: c.Info.Environment, Service: c.Info.BaseURL, Ledger: c.Info.ID, Created: c.Info.Created.UTC(),
		Selection: c.Select.String(), Made: c.Made.UTC().Truncate(time.Second), Zone: c.Location.String(),
		Program: c.Program, Host: c.Host, By: c.By, HeadLine: c.Head.N, HeadHash: c.Head.Hash.String(), ReceiptKeys: c.Info.ReceiptKeys,
	}
}

func (a *Audit) newCheck() check {
	r := a.proof
	c := check{Agrees: r.OK(), Lines: r.Lines, Entries: r.Entries, Findings: []finding{}, Omitted: r.Omitted, RestsOn: a.summarizeRestsOn()}
	if c.RestsOn != nil {
		c.Entries += c.RestsOn.Entries
	}
	for _, f := range r.Findings {
		one := finding{Promise: f.Promise, Text: f.Text}
		if !f.Key.IsZero() {
			one.Key = f.Key.String()
		}
		c.Findings = append(c.Findings, one)
	}
	return c
}

// stringsOf writes keys or the like as text; never nil.
func stringsOf[T fmt.Stringer](all []T) []string {
	out := make([]string, 0, len(all))
	for _, x := range all {
		out = append(out, x.String())
	}
	return out
}

// listNeeds lists what needs attention, with the words of the table of needs
// and in its order.
func (t *counts) listNeeds() []need {
	lines := []need{}
	for _, k := range present.NeedKinds() {
		if n := t.needs[k.What]; n != nil {
			n.Text, n.Do = k.Describe(int(n.Count), t.c.AlertAfter), k.Do
			lines = append(lines, *n)
		}
	}
	return lines
}

var levelWords = map[billing.Level]string{
	billing.BelowLimit: "within what is included", billing.Level80: "NEAR THE LIMIT", billing.Level90: "VERY NEAR THE LIMIT", billing.LimitReached: "LIMIT REACHED",
}

// billLines leaves out years and vaults that were not asked for; the customer as a
// whole always stands beside a vault, because the average may be meant either way.
func (a *Audit) billLines(bills []billing.Bill) []billLine {
	lines := []billLine{}
	for _, b := range bills {
		if s := a.c.Select; s.Year != 0 && b.Year != s.Year || s.Vault != "" && b.Vault != "" && b.Vault != s.Vault {
			continue
		}
		var forecast *billing.Forecast
		if b.HasForecast {
			forecast = &b.Forecast
		}
		lines = append(lines, billLine{
			Year: b.Year, Vault: string(b.Vault), Documents: b.Documents, Unsized: b.Unsized, Forecast: forecast, Bytes: b.Bytes, AverageMB: string(b.Average),
			Percent: string(b.Percent), Level: int(b.Level), LevelText: levelWords[b.Level], Headroom: b.Headroom,
			Transactions: string(b.Transactions), Money: string(b.Money), Whole: b.Whole, MoneyWhole: string(b.MoneyWhole), Currency: b.Currency,
		})
	}
	slices.SortStableFunc(lines, func(x, y billLine) int { return cmp.Compare(y.Year, x.Year) })
	return lines
}

// readLatestActs gives the latest first, with the reasons that were given.
func (t *counts) readLatestActs() ([]act, error) {
	all := []act{}
	for _, one := range slices.Backward(t.acts.Latest()) {
		all = append(all, act{Line: one.Line, At: one.At, Event: one.Event, Key: one.Key, Rev: one.Rev, BumID: one.Remote, UID: one.UID, Digest: one.Digest})
	}
	for i, one := range all {
		var k archive.Key // zero: of a mark, which is about the ledger as a whole
		var err error
		if one.Key != "" {
			k, err = archive.ParseKey(one.Key)
		}
		if t.c.Reason == nil || one.Digest == "" || err != nil {
			continue
		}
		if all[i].Reason, err = t.c.Reason(k, one.Rev); err != nil {
			return nil, fmt.Errorf("read the reason of an act: %w", err)
		}
	}
	return all, nil
}

// listDoubts lists what cannot be guaranteed, so that nobody takes silence for a proof.
// What is always so stands there even with a zero.
func (t *counts) listDoubts(r proof.Report) []doubt {
	list := []doubt{{"not-dropped", 0, "Invoices that nobody dropped: there is no list of what was expected to compare with."}}
	switch {
	case t.c.Expected != nil:
		list[0].Text = "Invoices that are neither dropped nor on the list: the list is taken as it was given."
	case t.c.Booked != nil && t.c.Booked.Fault == "":
		list[0].Text = "Invoices that are neither dropped nor booked: the extracts are taken as the service gave them."
	}
	add := func(what string, n uint64, none, one, more string) {
		words := none
		switch {
		case n == 1:
			words = one
		case n > 1:
			words = fmt.Sprintf(more, formatNumber(n))
		}
		if words != "" {
			list = append(list, doubt{what, n, words})
		}
	}
	add("quiet-time", t.sealed, "No folder was packed yet.",
		"The only packed folder counts as judged complete by quiet time alone: the ledger does not record whether a list or marker named its files.",
		"%s packed folders, which is all of them, count as judged complete by quiet time alone: the ledger does not record whether a list or marker named their files.")
	if n := len(r.GivenUp); n > 0 {
		const named = 10
		list = append(list, doubt{"extracts-given-up", uint64(n), formatCount(uint64(n), "extract was", "extracts were") + " given up (" + strings.Join(r.GivenUp[:min(n, named)], ", ") +
			"): what was booked in their time is known only as far as other extracts tell it."})
	}
	list = append(list, doubt{"not-downloaded", r.Sample.Archived - r.Sample.Compared, describeDownloads(r.Sample)})
	add("retention-ended", t.retentionEnded, "", "The retention of 1 archived document is over: the archive may have removed it. It was archived; that it still is cannot be shown.",
		"The retention of %s archived documents is over: the archive may have removed them. They were archived; that they still are cannot be shown.")
	add("lost-answers", r.LostPosts, "No answer to a registration was lost: the ledger knows every registration.",
		"1 answer to a registration was lost: at most 1 unused registration exists that the ledger does not know.",
		"%s answers to registrations were lost: at most so many unused registrations exist that the ledger does not know.")
	add("unused", uint64(len(r.Orphans)), "Every known registration got content, or is about to.",
		"1 known registration never got content; it is named at the end.", "%s known registrations never got content; they are named at the end.")
	add("unclear", uint64(len(r.Unclear)), "No upload is unclear.",
		"1 upload is unclear: nobody knows whether it arrived; it is named at the end.", "%s uploads are unclear: nobody knows whether they arrived; they are named at the end.")
	add("deduplication", t.registered, "Whether the archive itself notices a document that comes twice is not known; none was registered more than once.",
		"Whether the archive itself notices a document that comes twice is not known; 1 was registered more than once.",
		"Whether the archive itself notices a document that comes twice is not known; %s were registered more than once.")
	add("double", uint64(len(t.deliveries.without(r.Double))), "", "1 document is possibly double in the archive; it is named at the end.", "%s documents are possibly double in the archive; they are named at the end.")
	add("processed-twice", uint64(len(t.deliveries.pdf.among(r.Double))), "", "1 PDF was possibly processed twice; it is named at the end.", "%s PDFs were possibly processed twice; they are named at the end.")
	add("in-doubt", uint64(len(t.deliveries.without(r.InDoubt))), "", "1 folder was closed in doubt by a person: something of it may be in the archive; it is named at the end.",
		"%s folders were closed in doubt by a person: something of them may be in the archive; they are named at the end.")
	add("in-doubt-pdf", uint64(len(t.deliveries.pdf.among(r.InDoubt))), "", "1 PDF was closed in doubt by a person: it may have been delivered; it is named at the end.",
		"%s PDFs were closed in doubt by a person: they may have been delivered; they are named at the end.")
	add("delivered", t.deliveries.pdf.all, "", "1 PDF was delivered, which is no archiving: the store of the accounts-payable system took it. What became of it there cannot be shown, and no list is compared with it.",
		"%s PDFs were delivered, which is no archiving: the store of the accounts-payable system took them. What became of them there cannot be shown, and no list is compared with them.")
	t.addNetworkDoubts(r, add)
	add("delivered-by-note", t.deliveries.byNote, "", "1 delivery is known by its note alone: the ledger was made anew, and its record of that upload is lost.",
		"%s deliveries are known by their notes alone: the ledger was made anew, and its record of those uploads is lost.")
	return append(list, t.listIndexDoubts()...)
}
