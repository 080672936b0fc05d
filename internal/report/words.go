package report

import (
	"fmt"
	"strconv"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/present"
	"vaultd/internal/sanitize"
)

// TestMark stands over everything that a test environment reports.
const TestMark = "TEST, NO EVIDENCE"

// summarizeReason says in one line why e is where it is. The text of our own refusals is a
// page for the person who dropped the folder; their code says it in brief.
func summarizeReason(e ledger.Entry) string {
	text := present.CauseText(e)
	if text == "" || present.IsOwnRefusal(text) && e.Cause.Code != "" {
		text = present.BriefCause(e.Cause)
	}
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	return sanitize.Truncate(strings.TrimSpace(text), 160)
}

// flagNames lists what is special about e.
func flagNames(e ledger.Entry) []string {
	words, route, contradicted := []string{}, present.WordsOf(e.Route), "CONTRADICTED"
	if e.State == ledger.Delivered {
		contradicted += route.LateMark
	}
	for _, f := range []struct {
		on   bool
		word string
	}{
		{e.Contradicted, contradicted}, {e.ContentDiffers(), "DOWNLOAD DIFFERS"}, {e.IsArchivedTwice(), "ARCHIVED TWICE"}, {e.PossibleDouble && !e.IsArchivedTwice(), route.DoubleMark},
		{e.Recipient == ledger.RecipientRejected, "REJECTED BY THE RECIPIENT"}, {e.InDoubt, "closed in doubt"},
		{e.Hold, "on hold"}, {e.Resolved, "resolved"}, {!e.SameNumber.IsZero(), "same invoice number as another"},
		{!e.SameContent.IsZero(), "same files as another"}, {e.StrangeDate, "date can hardly be right"}, {e.CutOff != ledger.NotCutOff, "a file looks cut off"}, {e.Reviewed, "looked at by a person"},
	} {
		if f.on {
			words = append(words, f.word)
		}
	}
	return words
}

// formatNumber writes a count with commas.
func formatNumber(n uint64) string { return groupThousands(strconv.FormatUint(n, 10)) }

// groupThousands puts commas between the thousands of a plain decimal; anything else it leaves alone.
func groupThousands(s string) string {
	if _, err := archive.ParseDecimal(s); err != nil {
		return s
	}
	sign, digits := "", s
	if strings.HasPrefix(s, "-") {
		sign, digits = "-", s[1:]
	}
	whole, rest, point := strings.Cut(digits, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		rest = "." + rest
	}
	return sign + whole + rest
}

// formatCount counts a thing in words: "1 folder", "2,000 folders".
func formatCount(n uint64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return formatNumber(n) + " " + more
}

// formatThousandths writes a count of thousandths as a decimal.
func formatThousandths(n uint64) string { return fmt.Sprintf("%d.%03d", n/1000, n%1000) }
