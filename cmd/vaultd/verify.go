package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"vaultd/internal/archive"
	"vaultd/internal/catalog"
	"vaultd/internal/daemon"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/sanitize"
	"vaultd/internal/selfcheck"
)

func (a *app) verifyCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "verify",
		Short: "hold the ledger to its promises",
		Long: `Checks every record's checksum, the chain of the journal from its first line on, and
all that is derived from them; then replays the journal and holds every entry
against it. It changes nothing in the ledger and asks nobody. Exit code 4 means
differences.

Where nothing differs it leaves a checkpoint, as the daemon's daily check does. The next
verify goes on from there: it reads the lines that came since, and every entry that is on
its way or that one of those lines is about. Under RESTS ON it says from which line, time
and hash it goes on, and what it did not read again: what became of older records since
then it cannot tell. --whole reads everything. So does every verify where the checkpoint
is missing or cannot be used, and where everything was read last more than 7 days ago.

With --head it reads everything, and says whether the journal still contains a head
that somebody kept: the log has one of each start and each day, and so have each
receipt and each report. Where the journal does not, its past was written anew, lines
are missing, or it is another ledger.

With --receipt it does something else: it says whether the signature of a _RECEIPT.json or
_DELIVERED.json holds with a key of this ledger, or with --key with one that a drop.json
or a report names; then it needs no ledger.

With --archive it does something else: it downloads archived documents and compares
them with what was sent, so many (60) or such a part of all of them (5%). Those that
nobody ever downloaded come first, the oldest first; a document that was compared is
downloaded again only once all others were. The provider may charge for downloads: it
stops where the month has none left (billing.downloads_per_month). The bytes are not
kept; what came of each is journaled, and every audit counts them.`,
		Example: `  vaultd verify
  vaultd verify --whole
  vaultd verify --json
  vaultd verify --head 2026-10.html
  vaultd verify --receipt _RECEIPT.json
  vaultd verify --receipt _RECEIPT.json --key 2026-10.html
  vaultd verify --archive 60
  vaultd verify --archive 0.5%`,
		Args: expectArgs(),
	}
	part := c.Flags().String("archive", "", "download and compare archived documents: a `number`, or a part of all such as 5%")
	head := c.Flags().String("head", "", "find out whether the journal still contains a head that was kept: `LINE:HASH`, or a receipt, report or log that has one")
	receipt := c.Flags().String("receipt", "", "find out whether the signature of a receipt or a delivery note holds: its `file`")
	key := c.Flags().String("key", "", "the public key to check --receipt with: the key, or a drop.json or report that names it")
	whole := c.Flags().Bool("whole", false, "read the whole ledger, whatever was verified before")
	c.MarkFlagsMutuallyExclusive("archive", "whole")
	c.RunE = func(c *cobra.Command, args []string) error {
		switch {
		case *receipt != "" && (*head != "" || *part != "" || *whole):
			return usageError{errors.New("--receipt checks a signature alone; give it without --head, --archive and --whole")}
		case *receipt != "":
			return a.verifyReceipt(c, args, *receipt, *key)
		case *key != "":
			return usageError{errors.New("--key is for --receipt")}
		}
		return a.verifyAsAsked(c, args, *head, *part, *whole)
	}
	return c
}

// verifyAsAsked checks the ledger, or with a part the archive.
func (a *app) verifyAsAsked(c *cobra.Command, args []string, head, part string, whole bool) error {
	if head != "" && part != "" {
		return usageError{errors.New("--archive compares documents and --head the journal; give one of them")}
	}
	kept, err := a.readKeptHeads(head)
	if err != nil {
		return err
	}
	if head != "" { // the daemon gets the heads, not the file's name
		if err := c.Flags().Set("head", joinHeads(kept)); err != nil {
			return err
		}
	}
	if !c.Flags().Changed("archive") {
		return a.withLedger(c, args, func(ctx context.Context, v view) error {
			return a.runVerify(ctx, v, extent(whole || len(kept) > 0), kept)
		})
	}
	many, err := parsePortion(part)
	if err != nil {
		return err
	}
	return a.withLedger(c, args, func(ctx context.Context, v view) error { return a.verifyArchive(ctx, v, many) })
}

// extent is how much of the ledger is read.
type extent bool

const (
	sinceCheckpoint extent = false
	wholeLedger     extent = true
)

// verdict is what a check of the ledger found; it is the object of "verify --json".
type verdict struct {
	OK       bool             `json:"ok"`
	Ledger   string           `json:"ledgerId"`
	Test     bool             `json:"test"`     // of a test environment: no evidence
	SafeMode string           `json:"safeMode"` // why, and what is not known; empty: it is not in safe mode
	Replayed bool             `json:"folded"`   // false: damage kept the promises from being checked
	Lines    uint64           `json:"lines"`
	Entries  uint64           `json:"entries"`
	HeadLine uint64           `json:"headLine"`
	HeadHash string           `json:"headHash"`
	Keys     []string         `json:"receiptKeys"` // public keys of the receipts of this ledger, its own first
	Balance  string           `json:"balance"`
	Kept     []keptHead       `json:"keptHeads,omitempty"` // those of --head
	Moved    int              `json:"movedMeanwhile"`      // entries that changed while they were checked
	Problems []verdictProblem `json:"problems"`

	RestsOn     *verdictBasis    `json:"restsOn"`            // null: the whole ledger was read
	LinesRead   uint64           `json:"linesRead"`          // of the journal, now
	EntriesRead uint64           `json:"entriesRead"`        // now
	NotUsed     string           `json:"checkpointNotUsed"`  // why the whole ledger was read; may be empty
	NotSaved    string           `json:"checkpointNotSaved"` // why the next verify will read the whole ledger; empty: it need not
	Findings    []verdictFinding `json:"findings"`
	Omitted     uint64           `json:"omitted"` // findings beyond a thousand

	CatalogDiffers     string `json:"catalogDiffers"`     // how the catalog's counts differ from the balance; no finding: the catalog proves nothing
	CatalogNotCompared string `json:"catalogNotCompared"` // why its counts were not compared; both empty: they are those of the balance, or no catalog is kept
	catalog            string // both, as people read them

	LostPosts     uint64   `json:"lostPosts"`
	Unused        []string `json:"unusedRegistrations"` // bumIds
	PutBack       uint64   `json:"putBack"`             // times that it was put back
	Accepted      uint64   `json:"acceptedIndexes"`     // incomplete indexes that a person let count as complete
	Indexes       []string `json:"latestAcceptedIndexes"`
	Compared      uint64   `json:"comparedDocuments"`  // archived ones that were downloaded and compared
	Differ        uint64   `json:"differentDocuments"` // of them, by the last download of each
	Archived      uint64   `json:"archivedDocuments"`
	NeedReconcile []string `json:"needReconcile"` // keys: what happened since then is not known
	Unclear       []string `json:"unclear"`       // keys
	Double        []string `json:"possiblyDouble"`
	InDoubt       []string `json:"closedInDoubt"`
	Twice         []string `json:"possiblyProcessedTwice,omitempty"` // PDFs; none of them is possibly double at the archive
	SentTwice     []string `json:"possiblySentTwice,omitempty"`      // network documents; none of them is possibly double at the archive
}

// verdictBasis is the earlier verification that one rests on. What lies before its line, and was not changed since, was not
// read again.
type verdictBasis struct {
	Line      uint64 `json:"line"`
	Hash      string `json:"hash"`
	At        string `json:"at"`        // when that was verified
	WholeAt   string `json:"wholeAt"`   // when the whole ledger was read last
	WholeLine uint64 `json:"wholeLine"` // up to which line
	Resting   uint64 `json:"entriesNotRead"`

	at, whole string // as people read them
}

type verdictProblem struct {
	Where string `json:"where"`
	What  string `json:"what"`
}

type verdictFinding struct {
	Promise string `json:"promise"`
	Key     string `json:"key,omitempty"`
	Text    string `json:"text"`
}

func (a *app) runVerify(ctx context.Context, v view, what extent, kept []ledger.Head) error {
	found, err := v.verifyLedger(ctx, selfcheck.Verification{StateDir: v.cfg.StateDir, Program: buildVersion(), Whole: bool(what), Now: time.Now})
	if err != nil {
		return err
	}
	if err := found.compareHeads(v.ledger, kept); err != nil {
		return err
	}
	if !found.OK && a.inside != nil {
		a.inside.CheckNow()
	}
	counts, err := v.compareCatalog(ctx)
	if err != nil {
		return err
	}
	found.CatalogDiffers, found.CatalogNotCompared = counts.Differs, counts.NotDone
	if a.json {
		err = writeJSON(a.stdout, found)
	} else {
		found.catalog = v.describeCatalog(counts)
		found.writeText(a.stdout)
	}
	switch n := len(found.Problems) + len(found.Findings) + int(found.Omitted); {
	case err != nil:
		return err
	case n > 0:
		return fail(exitDifferences, fmt.Errorf("%s found", present.FormatCount(n, "difference", "differences")),
			whenDamaged)
	}
	return nil
}

// compareCatalog compares the catalog's counts with the ledger's balance.
func (v view) compareCatalog(ctx context.Context) (catalog.Comparison, error) {
	c, release := v.openCatalog(ctx)
	var counts catalog.Comparison
	if !c.Status().IsOff {
		counts = c.Compare(ctx)
	}
	return counts, release()
}

// describeCatalog says what is wrong with the catalog's counts, and that nothing rests on them; empty: nothing is.
func (v view) describeCatalog(counts catalog.Comparison) string {
	switch {
	case counts.Differs != "" && v.state != nil:
		return "does not count as the ledger does: " + counts.Differs + "; the running vaultd makes it anew. Audit and verify do not rest on it"
	case counts.Differs != "":
		return "does not count as the ledger does: " + counts.Differs + "; vaultd makes it anew when it starts. Audit and verify do not rest on it"
	case counts.NotDone != "":
		return "its counts were not compared: " + counts.NotDone
	}
	return ""
}

func (v view) verifyLedger(ctx context.Context, how selfcheck.Verification) (verdict, error) {
	info := v.ledger.Info()
	d := verdict{Ledger: info.ID, Keys: info.ReceiptKeys, Test: info.Environment != "production", Problems: []verdictProblem{}, Findings: []verdictFinding{}}
	if s, is := v.ledger.SafeMode(); is {
		d.SafeMode = v.unknownSince(s)
	}
	found, err := how.Verify(ctx, v.ledger)
	if err != nil {
		return d, err
	}
	for _, p := range found.Problems {
		d.Problems = append(d.Problems, verdictProblem{p.Where, p.What})
	}
	if found.OtherPast != "" {
		d.Problems = append(d.Problems, verdictProblem{"journal", found.OtherPast})
	}
	d.NotUsed = found.NotUsed
	if b := found.Basis; b != nil {
		d.RestsOn = &verdictBasis{Line: b.Line, Hash: b.Hash.String(), At: isoTime(b.At), WholeAt: isoTime(b.Whole), WholeLine: b.ToLine,
			Resting: found.Resting, at: v.Exact(b.At), whole: v.Exact(b.Whole)}
	}
	if found.NotSaved != nil {
		d.NotSaved = found.NotSaved.Error()
	}
	if !found.Proven {
		return d, nil
	}
	d.setReport(found)
	d.Double, d.Twice, d.SentTwice = v.separateByRoute(found.Report.Double)
	d.OK = found.OK()
	return d, nil
}

func isoTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// readHeadAndBalance returns head and balance of the same moment.
func (v view) readHeadAndBalance() (ledger.Head, ledger.Balance) {
	for {
		head := v.ledger.Head()
		balance := v.ledger.Balance()
		if v.ledger.Head() == head {
			return head, balance
		}
	}
}

func (d *verdict) setReport(v selfcheck.Verified) {
	r := v.Report
	d.LinesRead, d.EntriesRead = v.Lines, r.Entries
	d.Lines, d.Entries, d.HeadLine, d.HeadHash, d.Balance = r.Lines, r.Entries+v.Resting, r.Head.N, r.Head.Hash.String(), r.Balance.String()
	d.Moved, d.Omitted, d.LostPosts, d.PutBack, d.Replayed = len(v.Moved), r.Omitted, r.LostPosts, r.PutBack, true
	d.Archived, d.Compared, d.Differ = r.Sample.Archived, r.Sample.Compared, r.Sample.Differ
	d.Accepted, d.Indexes = r.Accepted, []string{}
	for _, i := range r.Indexes {
		d.Indexes = append(d.Indexes, fmt.Sprintf("vault %s gave %s; accepted by uid %d at %s", i.Vault, i.Gave, i.UID, i.At))
	}
	for _, f := range v.Findings() {
		one := verdictFinding{Promise: f.Promise, Text: f.Text}
		if !f.Key.IsZero() {
			one.Key = f.Key.String()
		}
		d.Findings = append(d.Findings, one)
	}
	d.Unused = []string{}
	for _, o := range r.Orphans {
		d.Unused = append(d.Unused, string(o.Remote))
	}
	d.NeedReconcile, d.Unclear, d.InDoubt = keyTexts(r.NeedReconcile), keyTexts(r.Unclear), keyTexts(r.InDoubt)
}

// separateByRoute separates what is possibly double at the archive from the PDFs that were possibly processed twice, and from the network documents
// that were possibly sent twice. An entry that cannot be read
// counts as one of the archive: the findings tell of it.
func (v view) separateByRoute(keys []archive.Key) (double, processed, sent []string) {
	double = []string{}
	for _, k := range keys {
		to := &double
		if e, ok, err := v.ledger.Entry(k); err == nil && ok {
			to = cmp.Or(map[ledger.Route]*[]string{ledger.PDF: &processed, ledger.Network: &sent}[e.Route], to)
		}
		*to = append(*to, k.String())
	}
	return double, processed, sent
}

func keyTexts(keys []archive.Key) []string {
	texts := []string{}
	for _, k := range keys {
		texts = append(texts, k.String())
	}
	return texts
}

func (d *verdict) writeText(w io.Writer) {
	fmt.Fprintf(w, "LEDGER    %s%s\n", d.Ledger, testMark(d.Test))
	if d.SafeMode != "" {
		fmt.Fprintf(w, "SAFE MODE %s\n", sanitize.Text(d.SafeMode))
	}
	d.printBasis(w)
	fmt.Fprintf(w, "RECORDS   checksums, chain and indexes: %s\n", verdictWord(len(d.Problems)))
	d.printReplayed(w)
	for _, k := range d.Kept {
		if k.Contained {
			fmt.Fprintf(w, "KEPT HEAD line %d: the journal contains it, and all lines before it are those of that time\n", k.Line)
		}
	}
	if d.catalog != "" {
		fmt.Fprintf(w, "CATALOG   %s\n", sanitize.Text(d.catalog))
	}
	for _, p := range d.Problems {
		fmt.Fprintf(w, "DIFFERS   %s: %s\n", sanitize.Text(p.Where), sanitize.Text(p.What))
	}
	for _, f := range d.Findings {
		fmt.Fprintf(w, "DIFFERS   %s\n", sanitize.Text(f.Promise+" "+f.Key+": "+f.Text))
	}
	if d.Omitted > 0 {
		fmt.Fprintf(w, "DIFFERS   and %d more\n", d.Omitted)
	}
	d.printDoubts(w)
	switch {
	case d.OK && d.SafeMode != "":
		fmt.Fprintln(w, "RESULT    nothing differs within the ledger; it does not know everything")
	case d.OK && d.RestsOn != nil:
		fmt.Fprintf(w, "RESULT    nothing differs in what came behind line %d; what came before rests on %s\n", d.RestsOn.Line, d.RestsOn.at)
	case d.OK:
		fmt.Fprintln(w, "RESULT    nothing differs")
	}
}

// printBasis tells what the verdict rests on, so that nobody takes it for more than it is.
func (d *verdict) printBasis(w io.Writer) {
	if b := d.RestsOn; b != nil {
		fmt.Fprintf(w, "RESTS ON  line %d with hash %s, verified at %s\n", b.Line, b.Hash, b.at)
		fmt.Fprintf(w, "          the whole ledger was read at %s, up to line %d\n", b.whole, b.WholeLine)
		fmt.Fprintf(w, "          not read again: what came before that line, and %s at rest with documents and names\n", present.FormatCount(b.Resting, "entry", "entries"))
		fmt.Fprintln(w, "          vaultd verify --whole reads everything")
	}
	if d.NotUsed != "" {
		fmt.Fprintf(w, "WHOLE     everything was read: the checkpoint was not used: %s\n", sanitize.Text(d.NotUsed))
	}
	if d.NotSaved != "" {
		fmt.Fprintf(w, "NEXT      verify will read everything again: no checkpoint is left: %s\n", sanitize.Text(d.NotSaved))
	}
}

// printReplayed tells what the replay of the journal found.
func (d *verdict) printReplayed(w io.Writer) {
	if !d.Replayed {
		fmt.Fprintln(w, "PROMISES  could not be checked")
		return
	}
	fmt.Fprintf(w, "JOURNAL   %s replayed, up to %s\n", present.FormatCount(d.LinesRead, "line", "lines"), d.HeadHash)
	fmt.Fprintf(w, "PROMISES  %s held against the journal: %s\n", present.FormatCount(d.EntriesRead, "entry", "entries"), verdictWord(len(d.Findings)+int(d.Omitted)))
	if d.Moved > 0 {
		fmt.Fprintf(w, "          %s changed meanwhile and stood aside; run it again for them\n", present.FormatCount(d.Moved, "entry", "entries"))
	}
	fmt.Fprintf(w, "BALANCE   %s\n", d.Balance)
}

// unknownSince says why a ledger is in safe mode, and what it does not know.
func (v view) unknownSince(s ledger.SafeMode) string {
	if s.KnownUntil.IsZero() {
		return daemon.DescribeSafeMode(s) + "; what it says is not known to be all"
	}
	return daemon.DescribeSafeMode(s) + "; what was done after " + v.Exact(s.KnownUntil) + " is not known"
}

// printDoubts says what cannot be guaranteed, so that nobody takes silence for a proof.
func (d *verdict) printDoubts(w io.Writer) {
	fmt.Fprintln(w, "NOT PROVEN")
	fmt.Fprintf(w, "  %s (see vaultd verify --archive); that the others are unchanged rests on their uploads and on the archive's word\n",
		sampleWords(proof.Sample{Archived: d.Archived, Compared: d.Compared, Differ: d.Differ}))
	for _, x := range []struct {
		n         uint64
		one, more string
		who       []string
	}{
		{d.LostPosts, "answer to a registration was lost: at most one unused registration is unknown", "answers to registrations were lost: at most so many unused registrations are unknown", nil},
		{uint64(len(d.Unused)), "registration was never used", "registrations were never used", d.Unused},
		{d.PutBack, "time the ledger was put back: what it had forgotten it learnt from the archive and the folders",
			"times the ledger was put back: what it had forgotten it learnt from the archive and the folders", nil},
		{d.Accepted, "time an index that did not give every document counted as complete by a person's decision: what it left out was not compared",
			"times an index that did not give every document counted as complete by a person's decision: what it left out was not compared", d.Indexes},
		{uint64(len(d.NeedReconcile)), "is in doubt: what happened to it since the ledger was put back is not known", "are in doubt: what happened to them since the ledger was put back is not known", d.NeedReconcile},
		{uint64(len(d.Unclear)), "is unclear: nobody knows whether it arrived", "are unclear: nobody knows whether they arrived", d.Unclear},
		{uint64(len(d.Double)), "is possibly double at the archive", "are possibly double at the archive", d.Double},
		{uint64(len(d.Twice)), "PDF was possibly processed twice", "PDFs were possibly processed twice", d.Twice},
		{uint64(len(d.SentTwice)), "network document was possibly sent twice", "network documents were possibly sent twice", d.SentTwice},
		{uint64(len(d.InDoubt)), "was closed in doubt by a person", "were closed in doubt by a person", d.InDoubt},
	} {
		if x.n == 0 {
			continue
		}
		fmt.Fprintf(w, "  %s\n", present.FormatCount(x.n, x.one, x.more))
		for _, who := range x.who[:min(len(x.who), 20)] {
			fmt.Fprintf(w, "    %s\n", sanitize.Text(who))
		}
		if len(x.who) > 20 {
			fmt.Fprintf(w, "    and %d more; see --json\n", len(x.who)-20)
		}
	}
}

func verdictWord(n int) string {
	if n == 0 {
		return "nothing differs"
	}
	return present.FormatCount(n, "DIFFERENCE", "DIFFERENCES")
}

func testMark(test bool) string {
	if test {
		return "  TEST, NO EVIDENCE"
	}
	return ""
}
