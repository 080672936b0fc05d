package report

import (
	"encoding/json"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// moreSource has one more entry.
type moreSource struct {
	Source
	more ledger.Entry
}

func (s moreSource) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	if err := s.Source.EntriesOldestFirst(fn); err != nil {
		return err
	}
	return fn(s.more)
}

// I12: an examination that rests on an earlier one is not believed where the entries tell otherwise, and where everything was
// examined the report tells that they do. Problems that were found with records are in the report too.
func TestExamine_I12_I14_EntriesThatTellOtherwise(t *testing.T) {
	twin := ledger.Entry{Key: archive.NewKey(noon), State: ledger.Archived, Rev: 1}
	for name, row := range map[string]struct {
		spoil func(c *Config)
		found string // empty: nothing
	}{
		"Right":    {func(*Config) {}, ""},
		"Balance":  {func(c *Config) { c.Examined.Proof.Balance.Seen++ }, "the entries add up to another balance"},
		"Entries":  {func(c *Config) { c.Ledger = moreSource{c.Ledger, twin} }, "the entries add up to another balance"},
		"Problems": {func(c *Config) { c.Problems = []ledger.Problem{{Where: "pages", What: "page 7 is wrong"}} }, "pages: page 7 is wrong"},
	} {
		for _, rests := range []*RestsOn{nil, {Line: 5, At: noon.Add(-time.Hour), Whole: noon.Add(-2 * time.Hour), ToLine: 3, Entries: 2}} {
			c := filled(t, "test").config()
			c.Examined.RestsOn = rests
			row.spoil(&c)
			a, err := Examine(t.Context(), c)
			if rests != nil && strings.Contains(row.found, "balance") {
				kit.Fails(t, name+": a report that rests on an earlier examination", err, ErrExaminedBefore)
				continue
			}
			kit.Must(t, err)
			s := a.Summary
			isFound := slices.ContainsFunc(s.Check.Findings, func(f finding) bool { return row.found != "" && strings.Contains(f.Text, row.found) })
			kit.Check(t, isFound == (row.found != "") && s.Check.Agrees == !isFound && (s.Check.RestsOn != nil) == (rests != nil),
				"%s: %+v, want the finding %q, resting on %+v", name, s.Check, row.found, rests)
			says := strings.Contains(s.Result.Text, "rests on the examination of")
			kit.Check(t, says == (rests != nil), "%s: %s, want says = %v", name, s.Result.Text, rests != nil)
		}
	}
}

// refused adds to a shelf what is not checked: a folder that was refused, whose sidecar tries whatever a text can try, and
// a duplicate of an archived one.
func (s *shelf) refused() {
	s.t.Helper()
	s.Add(fill.Item{Name: "Huber 99", AsRead: archive.AsRead{Type: "Invoice", Number: "=1+1", Date: "31.10.2026", SenderName: nasty, RecipientName: "<b>Acme</b>",
		Amount: "1000.00", Currency: "EUR"}}).Refuse(noon.Add(-2*time.Hour), ledger.Cause{Code: "documentDate-not-understood"})
	s.Add(fill.Item{Name: "Müller again", AsRead: archive.AsRead{Type: "Invoice", Number: "NR Müller 4711", Amount: "119.00", Currency: "EUR"}}).
		Apply(noon.Add(-time.Hour), ledger.FoundDuplicate{First: s.Item("Müller 4711").Key})
}

// What nobody checked is shown and marked in every form, and changes nothing that is counted.
func TestReport_I12_AsReadIsShownAndNotCounted(t *testing.T) {
	plain := examine(t, filled(t, "production").config()).Summary
	s := filled(t, "production")
	s.refused()
	a := examine(t, s.config())
	sums := func(all []sumLine) string { b, err := json.Marshal(all); return string(b) + errText(err) }
	kit.Check(t, sums(a.Summary.Sums) == sums(plain.Sums) && a.Summary.NoAmount == plain.NoAmount && len(a.Summary.Bills) == len(plain.Bills),
		"sums %+v, want %+v", a.Summary.Sums, plain.Sums)
	for form, want := range map[string][]string{
		"html": {`<bdi>=1+1</bdi> <small>as read, refused</small></td><td>Invoice</td><td>31.10.2026</td>`, `<bdi>&lt;b&gt;Acme&lt;/b&gt;</bdi></td><td>1000.00 EUR</td>`,
			`<bdi>NR Müller 4711</bdi> <small>as read</small>`, `the same as &#34;Müller 4711&#34;, archived 19 Nov 2026, invoice NR Müller 4711, bumId bum-1, folder _archived/2026-11/Müller 4711 (drop acme-in)`},
		"csv": {`"Huber 99","'=1+1","Invoice","31.10.2026",`, `,"as read: 1000.00","EUR","rejected",`, `"as read, refused",""`, `bumId bum-1, folder _archived/2026-11/Müller 4711 (drop acme-in)"`},
		"json": {`"documentId":"=1+1","documentType":null,"documentDate":null,"senderName":null,"amount":null,`, `"asRead":{"documentType":"Invoice","documentId":"=1+1","documentDate":"31.10.2026"`,
			`"first":{"key":"` + s.Item("Müller 4711").Key.String() + `","drop":"acme-in","folder":"Müller 4711","documentId":"NR Müller 4711","bumId":"bum-1"`},
	} {
		text, end := written(t, a, form)
		kit.Holds(t, form, text, want...)
		kit.Check(t, end.Agrees && (!strings.Contains(text, "<script>alert") || form != "html"), "%s: %+v", form, end)
	}
}

func errText(err error) string {
	if err != nil {
		return err.Error()
	}
	return ""
}

// A year is that of checked metadata: what a refused sidecar says moves no folder into another year.
func TestReport_AsReadHasNoYear(t *testing.T) {
	s := newShelf(t, "production")
	s.Add(fill.Item{Name: "Alt", AsRead: archive.AsRead{Number: "A1", Date: "1999-10-31"}}).Refuse(noon, ledger.Cause{})
	c := s.config()
	c.Select.Year = 2026
	a := examine(t, c)
	kit.Check(t, a.Summary.Selected.Seen == 1 && a.Summary.Undated == 1, "%+v, %d without a date", a.Summary.Selected, a.Summary.Undated)
}

// Evidence stands in full, and rows of kept folders lead to their receipts where the link works; nothing else is a link.
func TestHTML_ReceiptsAndFullDigests(t *testing.T) {
	s := filled(t, "production")
	c := s.config()
	bare, _ := written(t, examine(t, c), "html")
	e := s.Item("Müller 4711").Entry()
	kit.Holds(t, "the page", bare, "<code>"+e.Package.SHA256.String()+"</code>", "<code>"+e.Key.String()+"</code>", "<bdi>_archived/2026-11/Müller 4711/_RECEIPT.txt</bdi>")
	for link, want := range map[string]int{"./acme-in/x%20y/_RECEIPT.txt": 3, "../x": 3, "": 0, "javascript:alert(1)": 0, "//evil.example/x": 0, `./"><script>`: 3} {
		c.ReceiptLink = func(drop, receipt string) string {
			if folder := path.Base(path.Dir(receipt)); drop != "acme-in" || receipt != "_archived/2026-11/"+folder+"/_RECEIPT.txt" || s.Item(folder).Entry().State != ledger.Archived {
				t.Errorf("asked for %s in %s, want receipts of archived folders in acme-in", receipt, drop)
			}
			return link
		}
		page, _ := written(t, examine(t, c), "html")
		n := strings.Count(page, "<a href=")
		kit.Check(t, n == want && !strings.Contains(page, "<script>"), "%q gives %d links", link, n)
	}
}
