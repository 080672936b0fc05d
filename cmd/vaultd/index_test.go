package main

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/emulator"
	"vaultd/internal/vaultapi"
)

// shelfIndex is an index of n documents, two a day, which says that there are found. Its pages have 1000 documents, and the last
// one names a next page or not.
type shelfIndex struct {
	n, found int
	names    bool   // the last page names a next one, which is empty
	last     func() // before the last page
}

func (x shelfIndex) Index(_ context.Context, _ archive.VaultID, cursor string, size int, _ string) (vaultapi.Page, error) {
	from := 0
	if cursor != vaultapi.FirstPage {
		fmt.Sscan(cursor, &from) //nolint:errcheck // our own
	}
	p := vaultapi.Page{Found: x.found, Request: "7c1f"}
	for i := from; i < min(from+size, x.n); i++ {
		kind := "Invoice"
		if i%4 == 3 {
			kind = "CreditNote"
		}
		rec := archive.IndexRecord{Remote: archive.RemoteID(fmt.Sprintf("bum-%d", i)), ArchiveID: fmt.Sprint(i), ArchivedAt: indexBegins.Add(time.Duration(i) * 12 * time.Hour),
			Document: archive.Document{Type: kind, Number: "=cmd()", SenderIDs: []string{"DE1", "@x"}, Amount: "-1.50"}}
		if i == 5 {
			rec.ArchivedAt = time.Time{}
		}
		p.Records = append(p.Records, rec)
	}
	if end := from + size; end < x.n || x.names && from < x.n {
		p.Cursor = fmt.Sprint(end)
	}
	if x.last != nil && from+size >= x.n {
		x.last()
	}
	return p, nil
}

func (s shelfIndex) ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (archive.IndexResult, archive.RemoteSet, error) {
	return vaultapi.WalkIndex(ctx, s, v, each)
}

// indexBegins is the last hour of October in Berlin, and of UTC's day before.
var indexBegins = time.Date(2026, 10, 31, 22, 30, 0, 0, time.UTC)

func readIndex(t *testing.T, x shelfIndex, f indexFlags, asJSON bool) (stdout, stderr string, code int) {
	t.Helper()
	var out strings.Builder
	errsOut, errs, code := say(t, asJSON, func(a *app) error {
		f.separator = ","
		if err := f.checkFlags(a); err != nil {
			return err
		}
		return a.readIndexes(t.Context(), x, mustLoad(t, smallConfig), f, &out)
	})
	return out.String() + errsOut, errs, code
}

// I32: what an index did not give is never taken for all: both numbers are said, and it ends with 3.
func TestIndex_I32_CompleteOrSaysSo(t *testing.T) {
	for name, row := range map[string]struct {
		x    shelfIndex
		code int
		says string
	}{
		"Whole":             {shelfIndex{n: 7, found: 7}, exitDone, "the index gave 7 of 7 documents"},
		"ManyPages":         {shelfIndex{n: 2500, found: 2500}, exitDone, "the index gave 2500 of 2500 documents"},
		"EmptyPage":         {shelfIndex{n: 7, found: -1, names: true}, exitDone, "the index gave 7 documents, and does not say how many there are"},
		"Nothing":           {shelfIndex{}, exitDone, "the index gave 0 of 0 documents"},
		"CursorEndsEarly":   {shelfIndex{n: 1, found: 900}, exitPerson, "the index gave 1 of 900 documents\nINCOMPLETE its last page names no next page; the provider's request is 7c1f"},
		"CursorEndsUntold":  {shelfIndex{n: 7, found: -1}, exitPerson, "INCOMPLETE"},
		"EmptyPageTooEarly": {shelfIndex{n: 7, found: 8, names: true}, exitPerson, "the index gave 7 of 8 documents"},
	} {
		for _, form := range []string{"counts", "csv", "json"} {
			out, errs, code := readIndex(t, row.x, indexFlags{csv: form == "csv"}, form == "json")
			if code != row.code || !strings.Contains(out+errs, row.says) {
				t.Errorf("%s as %s: exit %d\n%s%s", name, form, code, out, errs)
			}
			if records := strings.Count(out, "bum-"); form != "counts" && records != row.x.n {
				t.Errorf("%s as %s: %d records", name, form, records)
			}
		}
	}
}

func TestIndex_CountsByMonthOfTheTimeZone(t *testing.T) {
	out, _, code := readIndex(t, shelfIndex{n: 8, found: 8}, indexFlags{}, false)
	want := []string{"2026-10 Invoice 1", "2026-11 CreditNote 2", "2026-11 Invoice 4", "no date Invoice 1"}
	var have []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "Invoice") || strings.Contains(line, "CreditNote") {
			have = append(have, strings.Join(strings.Fields(line), " "))
		}
	}
	if code != exitDone || strings.Join(have, "\n") != strings.Join(want, "\n") || !strings.Contains(out, "TEST, NO EVIDENCE") {
		t.Errorf("exit %d, %q\n%s", code, have, out)
	}
	for _, row := range []struct {
		from, to string
		n        int
	}{{"2026-10-31", "2026-10-31", 1}, {"2026-11-01", "2026-11-01", 2}, {"", "2026-11-01", 3}, {"2026-11-02", "", 4}, {"2027-01-01", "", 0}} {
		out, _, code := readIndex(t, shelfIndex{n: 8, found: 8}, indexFlags{from: row.from, to: row.to, csv: true}, false)
		rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(out, "\ufeff"))).ReadAll()
		if err != nil || code != exitDone || len(rows) != row.n+1 {
			t.Errorf("%s to %s: exit %d, %d rows, %v", row.from, row.to, code, len(rows), err)
		}
	}
	_, errs, _ := readIndex(t, shelfIndex{n: 8, found: 8}, indexFlags{to: "2026-11-01", csv: true}, false)
	if !strings.Contains(errs, "SELECTED   3 of them, by the day on which the archive took them; of 1 more the index does not tell that day") {
		t.Error(errs)
	}
}

// No cell becomes a formula, an amount stays a number, and each line of JSON is whole.
func TestIndex_RecordsAreFitForOthers(t *testing.T) {
	out, _, _ := readIndex(t, shelfIndex{n: 2, found: 2}, indexFlags{csv: true}, false)
	for _, want := range []string{`"'=cmd()"`, `"DE1 | '@x"`, `"-1.50"`, `"TEST, NO EVIDENCE"`, `"2026-10-31T22:30:00Z"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
	out, _, _ = readIndex(t, shelfIndex{n: 2, found: 3}, indexFlags{}, true)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		End struct {
			Vault       string
			Read, Found int
			Complete    bool
			RequestID   string
		}
	}
	for _, line := range lines {
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatal(err, line)
		}
	}
	if e := last.End; len(lines) != 3 || e.Read != 2 || e.Found != 3 || e.Complete || e.RequestID != "7c1f" || !strings.Contains(lines[0], `"documentId":"=cmd()"`) {
		t.Errorf("%+v\n%s", e, out)
	}
}

func TestIndex_WrongFlags(t *testing.T) {
	for name, f := range map[string]indexFlags{
		"NoDay": {from: "2026-13-01"}, "Backwards": {from: "2026-02-01", to: "2026-01-31"}, "NoForm": {output: "x.txt"}, "NoSeparator": {separator: "x"}, "NoVault": {vault: "A/B"},
	} {
		if f.separator == "" {
			f.separator = ","
		}
		if err := f.checkFlags(&app{}); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	f := indexFlags{csv: true, separator: ","}
	if err := f.checkFlags(&app{json: true}); err == nil {
		t.Error("two forms were taken")
	}
}

// The records of an index pass through: what stays of each is what tells it from others, some thirty bytes.
func TestIndex_MemoryStaysSmall(t *testing.T) {
	const documents = 200_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := shelfIndex{n: documents, found: documents, last: func() {
		runtime.GC()
		runtime.ReadMemStats(&after)
	}}
	a := &app{stdout: io.Discard, stderr: io.Discard, env: noEnv}
	if err := a.readIndexes(t.Context(), x, mustLoad(t, smallConfig), indexFlags{csv: true, separator: ","}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > documents*60 {
		t.Errorf("%d bytes for each document stay in memory", grown/documents)
	}
}

// Inside the daemon and beside none, and without a ledger; a file has its name only when the index was read to its end.
func TestIndex_InsideAndBeside(t *testing.T) {
	t.Parallel()
	s, emu, url := archivedSite(t, 3, "")
	bare := newSite(t, url, fast)
	bare.move("state", "gone") // no ledger
	whole := filepath.Join(bare.dir, "index.csv")
	if out := bare.must(0, "index", "--vault", "ACME", "-o", whole); !strings.Contains(out, "ACME: the index gave 3 of 3 documents") {
		t.Errorf("without a ledger:\n%s", out)
	}
	if b, err := os.ReadFile(whole); err != nil || strings.Count(string(b), "\r\n") != 4 || !strings.Contains(string(b), `"inv 02"`) {
		t.Errorf("%v\n%s", err, b)
	}
	bare.must(exitCreate, "index", "-o", whole)
	s.start("run")
	s.listens()
	if out := s.must(0, "index"); !strings.Contains(out, "ACME: the index gave 3 of 3 documents") || !strings.Contains(out, "BETA: the index gave 0 of 0 documents") {
		t.Errorf("inside:\n%s", out)
	}
	if err := emu.SetReadings(emulator.Readings{IndexFound: "more"}); err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(s.dir, "part.json")
	if out := s.must(exitPerson, "index", "--vault", "ACME", "-o", part); !strings.Contains(out, "ACME: the index gave 3 of 1003 documents") {
		t.Errorf("an index that never tells the right number:\n%s", out)
	}
	if _, err := os.Lstat(part); err == nil {
		t.Error("a part has the name of the whole")
	}
	if b, err := os.ReadFile(part + ".incomplete"); err != nil || strings.Count(string(b), "\n") != 4 {
		t.Errorf("%v\n%s", err, b)
	}
}

// hostileIndex has one document for each hostile text, which stands in every field of it.
type hostileIndex struct{}

func (hostileIndex) Index(context.Context, archive.VaultID, string, int, string) (vaultapi.Page, error) {
	p := vaultapi.Page{Found: len(hostileTexts) + 1, Request: "x"}
	for name, text := range hostileTexts {
		p.Records = append(p.Records, archive.IndexRecord{Remote: archive.RemoteID(name), ArchiveID: text, Document: archive.Document{Type: text, Number: text, Date: text,
			SenderName: text, SenderIDs: []string{text, text}, RecipientName: text, RecipientIDs: []string{text}, Currency: text, Amount: archive.Decimal(text), BuyerReferenceID: text,
			BuyerReferenceType: text, TradingPartner: text, FlowDirection: text, Parameters: []archive.Parameter{{Key: text, Value: text}}}})
	}
	return p, nil
}

func (s hostileIndex) ReadIndex(ctx context.Context, v archive.VaultID, each func([]archive.IndexRecord) error) (archive.IndexResult, archive.RemoteSet, error) {
	return vaultapi.WalkIndex(ctx, s, v, each)
}

// No text of an index steers a terminal, forges a line, or becomes a formula.
func TestInjection_I7_IndexOfAHostileArchive(t *testing.T) {
	s := newShelf(t)
	for _, form := range []string{"counts", "csv", "json"} {
		var out strings.Builder
		_, errs, code := say(t, form == "json", func(a *app) error {
			return a.readIndexes(t.Context(), hostileIndex{}, s.cfg, indexFlags{csv: form == "csv", separator: ";"}, &out)
		})
		if code != exitPerson {
			t.Errorf("%s: exit %d, %s", form, code, errs)
		}
		s.clean("a text", form+" (stderr)", errs)
		if form == "csv" {
			s.tableIsClean(out.String())
			continue
		}
		s.clean("a text", form, out.String())
	}
}
