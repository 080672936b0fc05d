package report

import (
	"bufio"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"
	"strings"

	"vaultd/internal/sanitize"
)

//go:embed books.html
var booksHTML string

// booksPage is one document without scripts and without anything from elsewhere.
var booksPage = template.Must(template.New("books").Funcs(template.FuncMap{
	"safe": sanitize.Text, "number": formatNumber, "money": formatMoney, "upper": strings.ToUpper,
}).Parse(booksHTML))

// Limits of the page: with them it has less than three megabytes.
const (
	bookedOnPage = 2000    // rows of each kind
	bookedBudget = 900_000 // bytes of the texts of all rows of a kind
)

// booksView is what the template sees.
type booksView struct {
	BookedPart
	Style template.CSS
	By    string
	Host  string

	MadeWords string

	Missing, Unbooked         []bookedRow
	MoreMissing, MoreUnbooked uint64
}

type verdictLine struct {
	Words string
	Count uint64
}

// VerdictWords says the verdict for people.
func (r bookedRow) VerdictWords() string { return strings.ReplaceAll(r.Verdict, "-", " ") }

// ContentPolicy allows the page its own style and nothing else.
func (v *booksView) ContentPolicy() string {
	sum := sha256.Sum256([]byte(v.Style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'"
}

// HTML writes the report as one self-contained page of at most three megabytes. It names the first invoices that are not archived, and the
// first archived documents that are not booked; the tables have every one.
func (b *Books) HTML(ctx context.Context, w io.Writer) error {
	v := &booksView{BookedPart: BookedPart{booksSummary: b.summarize(), known: b.Known()}, Style: template.CSS(auditCSS), By: b.By, Host: b.Host,
		MadeWords: b.Made.In(b.Location).Format("2 Jan 2006 15:04 MST")}
	if b.isTest() {
		v.Style += testCSS
	}
	room := map[bool]int{true: bookedBudget, false: bookedBudget}
	err := b.eachDiffering(ctx, func(r bookedRow) bool {
		isUnbooked := r.Verdict == notBooked
		list := &v.Missing
		if isUnbooked {
			list = &v.Unbooked
		}
		const least = 200
		if size := least + 2*len(r.Number+r.Supplier+r.Company+r.Amount+r.Found+r.Folder+r.Drop); room[isUnbooked] >= size {
			room[isUnbooked] -= size
			*list = append(*list, r)
		}
		return len(*list) < bookedOnPage && room[isUnbooked] >= least
	})
	if err != nil {
		return err
	}
	v.MoreMissing, v.MoreUnbooked = b.Answer.Missing()-uint64(len(v.Missing)), b.Answer.Unbooked-uint64(len(v.Unbooked))
	out := bufio.NewWriterSize(w, buffered)
	if err := booksPage.Execute(out, v); err != nil {
		return err
	}
	return flush(out)
}
