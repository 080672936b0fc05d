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
	"vaultd/internal/proof"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// countedSource counts how often the journal is read from its first line on, and has one more entry where there is one.
type countedSource struct {
	Source
	more  []ledger.Entry
	reads int
}

func (s *countedSource) Lines(from uint64, fn func(n uint64, line []byte) error) error {
	if from == 1 {
		s.reads++
	}
	return s.Source.Lines(from, fn)
}

func (s *countedSource) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	err := s.Source.EntriesOldestFirst(fn)
	for _, e := range s.more {
		if err == nil {
			err = fn(e)
		}
	}
	return err
}

// A ledger in which nothing differs is read once, by a check whose memory does not grow with it. Where something differs the second
// check names it: an entry without a line, and a registration that two entries list.
func TestExamine_I1_I8_OnceOrThoroughly(t *testing.T) {
	c := filled(t, "test").config()
	sound := &countedSource{Source: c.Ledger}
	c.Ledger = sound
	a := examine(t, c)
	kit.Check(t, sound.reads == 1 && len(a.Summary.Check.Findings) <= 0,
		"%d reads, %+v", sound.reads, a.Summary.Check.Findings)
	var twin ledger.Entry
	kit.Must(t, sound.EntriesOldestFirst(func(e ledger.Entry) error { twin = e; return nil }))
	twin.Key = archive.NewKey(noon)
	wrong := &countedSource{Source: sound.Source, more: []ledger.Entry{twin}}
	c.Ledger = wrong
	a = examine(t, c)
	named := func(f finding) bool {
		return f.Key == twin.Key.String() && strings.Contains(f.Text, "there is an entry, but no line of the journal")
	}
	kit.Check(t, wrong.reads == 2 && slices.ContainsFunc(a.Summary.Check.Findings, named),
		"%d reads, %+v", wrong.reads, a.Summary.Check.Findings)
}

// Of a ledger with more entries than the second check may remember, the report tells that something differs, and who names it.
func TestExamine_I21_TooManyToName(t *testing.T) {
	c := filled(t, "test").config()
	var twin ledger.Entry
	kit.Must(t, c.Ledger.EntriesOldestFirst(func(e ledger.Entry) error {
		if len(e.Registrations) > 0 {
			twin = e
		}
		return nil
	}))
	twin.Key = archive.NewKey(noon)
	source := &countedSource{Source: c.Ledger, more: []ledger.Entry{twin}}
	c.Ledger = source
	a := kit.Value(examineNaming(t.Context(), c, 3))(t)
	for _, want := range []string{"the entries add up to another balance", "two entries list the same registration; vaultd verify --whole names them"} {
		kit.Check(t, slices.ContainsFunc(a.Summary.Check.Findings, func(f finding) bool { return strings.Contains(f.Text, want) }),
			"%q is not among %+v", want, a.Summary.Check.Findings)
	}
	kit.Check(t, source.reads == 1 && !a.Summary.Check.Agrees,
		"%d reads, agrees %v", source.reads, a.Summary.Check.Agrees)
}

// I12: an examination that was made before is not believed where the entries tell otherwise: everything is examined, and the report rests on
// nothing. Problems that were found with records stand in the report too.
func TestExamine_I12_I14_EarlierOneIsNotBelieved(t *testing.T) {
	c := filled(t, "test").config()
	proven := examine(t, c).proof
	rests := &RestsOn{Line: 5, At: noon.Add(-time.Hour), Whole: noon.Add(-2 * time.Hour), ToLine: 3, Entries: 2}
	for name, row := range map[string]struct {
		spoil func(c *Config)
		rests bool
		found string // empty: nothing
	}{
		"Right":    {func(*Config) {}, true, ""},
		"Balance":  {func(c *Config) { c.Examined.Proof.Balance.Seen++ }, false, ""},
		"Finding":  {func(c *Config) { c.Examined.Proof.Findings = []proof.Finding{{Promise: "I1", Text: "x"}} }, false, ""},
		"Problems": {func(c *Config) { c.Problems = []ledger.Problem{{Where: "pages", What: "page 7 is wrong"}} }, false, "pages: page 7 is wrong"},
		"Entries": {func(c *Config) {
			twin := ledger.Entry{Key: archive.NewKey(noon), State: ledger.Archived, Rev: 1}
			c.Ledger = &countedSource{Source: c.Ledger, more: []ledger.Entry{twin}}
		}, false, "there is an entry, but no line of the journal"},
	} {
		c := c
		c.Examined = &Examined{Proof: proven, RestsOn: rests}
		row.spoil(&c)
		s := examine(t, c).Summary
		isFound := slices.ContainsFunc(s.Check.Findings, func(f finding) bool { return row.found != "" && strings.Contains(f.Text, row.found) })
		if (s.Check.RestsOn != nil) != row.rests || isFound != (row.found != "") || s.Check.Agrees != (row.found == "") {
			t.Errorf("%s: %+v, want (s.Check.RestsOn != nil) = %v, isFound = %v, s.Check.Agrees = %v", name, s.Check, row.rests, (row.found != ""), (row.found == ""))
		}
		says := strings.Contains(s.Result.Text, "rests on the examination of")
		kit.Check(t, says == row.rests, "%s: %s, want says = %v", name, s.Result.Text, row.rests)
	}
}

// Numbers count as equal where two entries have them, and only there: an entry may list one twice, and some have none.
func TestNumberSet_Equal(t *testing.T) {
	c := newCounts(Config{})
	add := func(numbers ...archive.RemoteID) bool {
		var e ledger.Entry
		for _, n := range numbers {
			e.Registrations = append(e.Registrations, ledger.Registration{Ticket: archive.Ticket{Remote: n}})
		}
		c.registrations.addOf(e)
		return c.registrations.hasEqual()
	}
	kit.Check(t, !add("bum-1", "bum-2", "bum-1") && !add("") && !add("", "bum-11") && !add(),
		"different numbers are equal")
	kit.Check(t, add("bum-2"), "equal numbers differ")
}

// acted is a flood with a line in front about what a person did.
type acted struct{ flood }

func (f acted) Lines(from uint64, fn func(uint64, []byte) error) error {
	n := uint64(0)
	tell := func(_ uint64, line []byte) error {
		if n++; n == 2 {
			m := ledger.MarkLine(2, 1, ledger.Mark{Name: ledger.MarkDisposal, By: ledger.Operator{UID: 1001}, At: noon})
			if err := fn(n, m.Encode()); err != nil {
				return err
			}
			n++
		}
		if n < from {
			return nil
		}
		l, err := ledger.ParseLine(line)
		if l.N = n; err != nil {
			return err
		}
		return fn(n, l.Encode())
	}
	return f.flood.Lines(1, tell)
}

// A journal with more folders on their way than the check remembers is replayed several times, and each of its lines counts once.
func TestExamine_I32_LinesCountOnce(t *testing.T) {
	kit.Long(t, "26,000 folders, replayed several times")
	if kit.Race {
		t.Skip("takes a minute with the race detector")
	}
	f := acted{flood{26_000}} // which finds no entry again, so that none is forgotten
	c := f.flood.config(t)
	c.Head = ledger.Head{}
	kit.Must(t, f.Lines(1, func(_ uint64, line []byte) error { c.Head = c.Head.Next(line); return nil }))
	source := &countedSource{Source: f}
	c.Ledger = source
	a := examine(t, c)
	kit.Check(t, a.Summary.ManualActions == 1 && len(a.Summary.Check.Findings) <= 0 && source.reads >= 3,
		"%d acts in %d reads, %+v", a.Summary.ManualActions, source.reads, a.Summary.Check.Findings)
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
