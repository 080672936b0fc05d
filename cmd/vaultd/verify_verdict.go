package main

import (
	"fmt"
	"io"

	"vaultd/internal/present"
	"vaultd/internal/proof"
	"vaultd/internal/sanitize"
)

// verdict is what a check of the ledger found; it is the object of "verify --json".
type verdict struct {
	OK       bool             `json:"ok"`
	Ledger   string           `json:"ledgerId"`
	Test     bool             `json:"test"`     // of a test environment: no evidence
	SafeMode string           `json:"safeMode"` // why, and what is not known; empty: it is not in safe mode
	Replayed bool             `json:"replayed"` // false: damage kept the promises from being checked
	Lines    uint64           `json:"lines"`
	Entries  uint64           `json:"entries"`
	HeadLine uint64           `json:"headLine"`
	HeadHash string           `json:"headHash"`
	Keys     []string         `json:"receiptKeys"` // public keys of the receipts of this ledger, its own first
	Balance  string           `json:"balance"`
	Kept     []keptHead       `json:"keptHeads,omitempty"` // those of --head
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

// verdictBasis is the earlier verification that one rests on. Entries before its
// line that did not change since were not read again.
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
	fmt.Fprintf(w, "BALANCE   %s\n", d.Balance)
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
