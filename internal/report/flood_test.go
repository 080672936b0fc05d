package report

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/fill"
	"vaultd/internal/test/kit"
)

// flood is a ledger of so many archived folders that it makes up whenever it is read:
// it holds nothing, so what memory grows by is the report's.
type flood struct{ count int }

// life is how each folder came to its end; the line numbers are those of the journal.
func (f flood) life(i int, line func(ledger.Line)) ledger.Entry {
	at := noon.Add(-time.Duration(f.count-i) * time.Second)
	it := f.item(i)
	evs := slices.Concat(it.Life(at, at.Add(time.Hour))[:6]...) // until it is archived
	e := ledger.Entry{Key: fill.Key(at, i)}
	for n, ev := range evs {
		var err error
		if e, err = ledger.Transition(e, ev, archive.Instant{Wall: at}); err != nil {
			panic(err)
		}
		if line != nil {
			line(ledger.NewLine(uint64(2+i*len(evs)+n), e, ev, archive.Instant{Wall: at}))
		}
	}
	return e
}

func (f flood) item(i int) fill.Item {
	return fill.Item{Name: fmt.Sprintf("Folder %d", i), Route: ledger.Vault, Vault: "DE", Document: f.meta(i), Size: 1_000_000, Remote: archive.RemoteID(fmt.Sprintf("bum-%d", i))}
}

func (f flood) meta(i int) archive.Document {
	return archive.Document{Type: "Invoice", Number: fmt.Sprint(i), Date: "2026-10-31T00:00:00Z", SenderName: "Müller GmbH & Söhne", Amount: "0.10", Currency: "EUR"}
}

func (f flood) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	for i := range f.count {
		if err := fn(f.life(i, nil)); err != nil {
			return err
		}
	}
	return nil
}

func (f flood) EntriesNewestFirst(fn func(ledger.Entry) error) error {
	for i := range f.count {
		if err := fn(f.life(f.count-1-i, nil)); err != nil {
			return err
		}
	}
	return nil
}

func (f flood) Entry(archive.Key) (ledger.Entry, bool, error) { return ledger.Entry{}, false, nil }

func (f flood) Document(k archive.Key) (ledger.Document, bool, error) {
	return ledger.Document{Metadata: f.meta(int(k[14])<<8 | int(k[15])).Metadata()}, true, nil
}

func (f flood) Lines(from uint64, fn func(uint64, []byte) error) (err error) {
	tell := func(l ledger.Line) {
		if err == nil && l.N >= from {
			err = fn(l.N, l.Encode())
		}
	}
	tell(ledger.FirstLine("L-1", "production", noon))
	for i := 0; i < f.count && err == nil; i++ {
		f.life(i, tell)
	}
	return err
}

func (f flood) config(t *testing.T) Config {
	t.Helper()
	c := Config{Ledger: f, Info: ledger.Info{ID: "L-1", Environment: "production"}, Made: noon}
	b := ledger.Balance{Seen: uint64(f.count)}
	b.States[ledger.Archived] = uint64(f.count)
	kit.Must(t, f.Lines(1, func(_ uint64, line []byte) error { c.Head = c.Head.Next(line); return nil }))
	c.Examined = examined(t, f, c.Head, b)
	return c
}

// heap is what is in use once the rubbish is gone.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// gauge counts what is written and looks at the heap now and then.
type gauge struct {
	written, next, peak int64
}

func (g *gauge) Write(b []byte) (int, error) {
	if g.written += int64(len(b)); g.written >= g.next {
		g.next += 2 << 20
		g.peak = max(g.peak, heap())
	}
	return len(b), nil
}

// Twenty thousand folders or two: counting and writing them holds the same.
func TestReport_I21_BoundedMemory(t *testing.T) {
	const slack = 3 << 20 // buffers that do not grow; 20,000 rows are 4 MB and more
	flooded := 20_000
	if kit.Sampled(t, "20,000 folders") {
		flooded = 5_000
	}
	c := flood{flooded}.config(t)
	before := heap()
	a := examine(t, c)
	after := heap() - before
	kit.Check(t, after <= slack, "the examined ledger holds %d bytes", after)
	s := a.Summary
	if !s.Check.Agrees || s.Result.Code != "complete-as-dropped" || s.Sums[0].Total != fmt.Sprintf("%d.00", flooded/10) || s.Bills[0].Documents != uint64(flooded) || s.OnTime.Median != 3600 {
		t.Errorf(`%+v %+v %+v, want s.Check.Agrees, s.Result.Code = "complete-as-dropped", s.Sums[0].Total = %q, s.Bills[0].Documents = %v, s.OnTime.Median = 3600`, s.Check, s.Result, s.Sums, fmt.Sprintf("%d.00", flooded/10), uint64(flooded))
	}
	least := map[string]int64{"HTML": 10_000, "XLSX": 20 * int64(flooded), "CSV": 200 * int64(flooded), "JSON": 200 * int64(flooded)} // bytes
	for name, write := range map[string]func(context.Context, io.Writer) (Closing, error){
		"HTML": a.HTML, "JSON": a.JSON, "XLSX": a.XLSX, "CSV": func(ctx context.Context, w io.Writer) (Closing, error) { return a.CSV(ctx, w, ',') },
	} {
		g := &gauge{}
		end, err := write(t.Context(), g)
		kit.Check(t, err == nil && end.Rows == uint64(flooded) && end.Agrees,
			"%s: %+v, %v, want no error, end.Rows = %v, end.Agrees", name, end, err, uint64(flooded))
		most := int64(slack)
		switch name {
		case "HTML":
			most += pageLimit // it holds the rows that it shows, at most those of one page
		case "XLSX":
			most += 1 << 20 // it holds some 2 MiB with 5,000 rows as with 50,000
		}
		if tooShort := g.written < least[name]; tooShort || name == "HTML" && g.written > pageLimit || g.peak-before > most {
			t.Errorf("%s: %d bytes written, the heap grew by %d", name, g.written, g.peak-before)
		}
	}
}

// Nobody waits for a report that nobody wants any more.
func TestReport_StopsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := examine(t, flood{100}.config(t))
	cancel()
	if _, err := a.CSV(ctx, io.Discard, ','); err == nil || !strings.Contains(err.Error(), context.Canceled.Error()) {
		t.Errorf("err = %v, want an error, err with %q", err, context.Canceled.Error())
	}
	kit.Fails(t, "examined all the same", kit.Err(Examine(ctx, flood{100}.config(t))))
}

// Programs read these keys; the whole is one object, whatever is in it.
func TestJSON_OneObject(t *testing.T) {
	text, _ := written(t, examine(t, filled(t, "production").config()), "json")
	var all struct {
		Format    string
		Result    struct{ Code string }
		Documents []map[string]any
		Table     struct {
			Rows   int
			Agrees bool `json:"agreesWithSummary"`
		}
	}
	kit.Must(t, json.Unmarshal([]byte(text), &all))
	kit.Check(t, all.Format == Format && all.Result.Code == "not-complete" && len(all.Documents) == 7 && all.Table.Rows == 7 && all.Table.Agrees,
		`%+v, want all.Format = %v, all.Result.Code = "not-complete", len(all.Documents) = 7, all.Table.Rows = 7, all.Table.Agrees`, all, Format)
	for _, d := range all.Documents {
		for _, key := range strings.Fields("key clientUUID bumId vault drop folder documentId documentType documentDate senderName amount currencyCode state flags source sha256 size seenAt archivedAt reason recipientName recipientIds asRead first receipt") {
			if _, is := d[key]; !is {
				t.Errorf("%v has no %s", d["folder"], key)
			}
		}
		kit.Check(t, d["folder"] != nasty || d["amount"] == "9007199254740993.10" && d["state"] == "unclear", "%v", d)
	}
	empty, _ := written(t, examine(t, newShelf(t, "test").config()), "json")
	kit.Want(t, "the error of Unmarshal", json.Unmarshal([]byte(empty), &all), nil)
}

// unusual has two invoices with one number, one with the same files as another, and one of 2062.
func unusual(t *testing.T) *shelf {
	s := newShelf(t, "production")
	meta := archive.Document{Type: "Invoice", Number: "RE 1", Date: "2026-10-31T00:00:00Z", SenderName: "Huber KG", Amount: "10.00", Currency: "EUR"}
	other := meta
	other.Amount = "11.00"
	far := archive.Document{Type: "Invoice", Number: "RE 9", Date: "2062-10-31T00:00:00Z", SenderName: "Huber KG", Amount: "7.00", Currency: "EUR"}
	number := meta.NumberDigest("DE")
	first := s.Add(fill.Item{Name: "Huber 1", Document: meta, Change: func(ev *ledger.Sealed) { ev.Number = number }})
	s.Add(fill.Item{Name: "Huber 1 neu", Document: other, Change: func(ev *ledger.Sealed) { ev.Number, ev.SameNumber = number, first.Key }})
	s.Add(fill.Item{Name: "Huber 9", Document: far, Change: func(ev *ledger.Sealed) { ev.Number, ev.StrangeDate = far.NumberDigest("DE"), true }})
	s.Add(fill.Item{Name: "Otto 2", Change: func(ev *ledger.Sealed) { ev.SameContent = first.Key }})
	for i, folder := range []string{"Huber 1", "Huber 1 neu", "Huber 9", "Otto 2"} {
		s.Item(folder).Archive(noon.Add(time.Duration(i-20)*time.Hour), time.Hour)
	}
	return s
}

func remarks(s Summary) map[string]need {
	by := map[string]need{}
	for _, n := range s.Remarks {
		by[n.What] = n
	}
	return by
}

// I12: the audit names both of two invoices with one number, whoever looked at them, and each document whose date can
// hardly be right. They keep counting: the sums are those of all that is archived.
func TestExamine_I12_UnusualDocumentsAreRemarked(t *testing.T) {
	s := unusual(t)
	for _, looked := range []bool{false, true} {
		if looked {
			s.Item("Huber 1 neu").Apply(noon, ledger.Closed{})
		}
		a := examine(t, s.config())
		by := remarks(a.Summary)
		if n := by["same-number"]; n.Count != 1 || n.Names[0] != `Huber 1 neu (acme-in), archived: same invoice number, sender and date as "Huber 1" (acme-in), archived 19 Nov 2026` {
			t.Errorf("%+v", n)
		}
		n := by["same-content"]
		kit.Check(t, n.Count == 1 && strings.Contains(n.Names[0], `"Huber 1" (acme-in)`), "%+v, want n.Count = 1, n.Names[0] with `\"Huber 1\" (acme-in)`", n)
		if n := by["strange-date"]; n.Count != 1 || n.Names[0] != "Huber 9 (acme-in), archived: document date 2062-10-31 can hardly be right: it was taken on 19 Nov 2026" {
			t.Errorf("%+v", n)
		}
		kit.Check(t, a.Summary.Result.Code == "complete-as-dropped" && len(a.Summary.Needs) <= 0 && len(by) == 3,
			"%+v, needs %+v", a.Summary.Result, a.Summary.Needs)
		if len(a.Summary.Sums) != 1 || a.Summary.Sums[0].Total != "147.00" { // 10 + 11 + 7 + 119
			t.Errorf(`%+v, want len(a.Summary.Sums) = 1, a.Summary.Sums[0].Total = "147.00"`, a.Summary.Sums)
		}
		page, _ := written(t, a, "html")
		kit.Holds(t, "the page", page, "<h2>Remarks</h2>", "Huber 1 neu (acme-in)", "date can hardly be right", "same invoice number as another")
		table, _ := written(t, a, "csv")
		kit.Check(t, strings.Contains(table, "looked at by a person") == looked, "looked at: %t, and the table says otherwise", looked)
	}
}

// I12: an invoice of 2062 that was taken in 2026 is named by the audit of 2026, and is in none of its sums; the audit of
// 2062 has it as well.
func TestExamine_I12_AStrangeDateIsInNoYearsBlindSpot(t *testing.T) {
	s := unusual(t)
	for year, row := range map[int]struct {
		what, sum string
		seen      uint64
	}{2026: {"strange-date-elsewhere", "140.00", 3}, 2062: {"strange-date", "7.00", 1}, 2027: {"", "", 0}} {
		c := s.config()
		c.Select.Year = year
		got := examine(t, c).Summary
		by := remarks(got)
		n, ok := by[row.what]
		kit.Check(t, row.what == "" || ok && n.Count == 1 && strings.HasPrefix(n.Names[0], "Huber 9 (acme-in)"), "%d: %+v", year, got.Remarks)
		kit.Check(t, row.what != "" || len(by) <= 0, "%d: %+v", year, got.Remarks)
		sums := slices.DeleteFunc(got.Sums, func(l sumLine) bool { return l.Total == row.sum })
		kit.Check(t, got.Selected.Seen == row.seen && len(sums) <= 0,
			"%d: %d folders, sums %+v", year, got.Selected.Seen, got.Sums)
	}
}
