package books

import (
	"database/sql"
	"math/big"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/ledger/boltledger"
	"vaultd/internal/test/kit"
)

// watched is a ledger that counts how often it was read from its beginning.
type watched struct {
	*boltledger.Ledger
	walks int
}

func (w *watched) EntriesOldestFirst(fn func(ledger.Entry) error) error {
	w.walks++
	return w.Ledger.EntriesOldestFirst(fn)
}

// answered is what an answer says.
type answered struct {
	Counts   map[Verdict]uint64
	Sums     []Sum
	Rows     []Row
	Missing  []Row
	Unbooked []Unbooked
}

// askWatched folds what is held and asks. It returns the answer, and whether the ledger was read for it.
func (w *world) askWatched(q Question) (got answered, isRead bool) {
	w.t.Helper()
	led := &watched{Ledger: w.led.Ledger}
	b := w.open(testSettings())
	problems := kit.Value(b.Update(w.t.Context(), w.sums))(w.t)
	a := kit.Value(b.Answer(w.t.Context(), q, led, problems))(w.t)
	got = answered{Counts: a.Counts, Sums: a.Sums}
	for i := range got.Sums { // two texts are compared, not how they were summed up
		for _, amount := range []*Amount{&got.Sums[i].Booked, &got.Sums[i].Archived, &got.Sums[i].Missing} {
			*amount = Amount{Count: amount.Count, Total: amount.Total}
		}
	}
	kit.Must(w.t, a.EachBooked(w.t.Context(), func(r Row) error { got.Rows = append(got.Rows, r); return nil }))
	kit.Must(w.t, a.EachMissing(w.t.Context(), func(r Row) error { got.Missing = append(got.Missing, r); return nil }))
	kit.Must(w.t, a.EachUnbooked(w.t.Context(), func(u Unbooked) error { got.Unbooked = append(got.Unbooked, u); return nil }))
	kit.Must(w.t, a.Close())
	kit.Must(w.t, b.Close())
	return got, led.walks > 0
}

// forget removes the matches that are kept.
func (w *world) forget() { w.change("DELETE FROM matching") }

func (w *world) change(statement string) {
	w.t.Helper()
	db := kit.Value(sql.Open("sqlite", filepath.Join(w.dir, FileName)))(w.t)
	kit.Value(db.ExecContext(w.t.Context(), statement))(w.t)
	kit.Must(w.t, db.Close())
}

func newMatchedWorld(t *testing.T) *world {
	w := newWorld(t)
	w.hold(delta("1", "2026-01-01", "2026-11-19"), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1"), invoice("2", "2", "GROSS_SUM", "5"),
		invoice("3", "0003"), invoice("4", "4"), invoice("5", "5", "ORG", "Beta"), invoice("6", "6", "INVOICE_DATE", "2026-09-05"), invoice("7", "7")))
	for _, number := range []string{"1", "2", "3", "8", "9"} {
		d := documentOf(number)
		if number == "9" {
			d.RecipientName = "Beta"
		}
		w.drop("Folder "+number, d, ledger.Archived)
	}
	w.drop("On the way", documentOf("4"), ledger.Uploaded)
	september := documentOf("10")
	september.Date = "2026-09-30T00:00:00Z"
	w.drop("September", september, ledger.Archived)
	return w
}

// I31: while neither the ledger nor the extracts change, the ledger is read for the first question alone, and every question has the answer that
// reading it again gives.
func TestMatching_I31_SameAnswers(t *testing.T) {
	w := newMatchedWorld(t)
	october := Question{From: "2026-10-01", To: "2026-10-31", Now: day("2026-11-20")}
	september, beta := october, october
	september.From, september.To, beta.Company = "2026-09-01", "2026-09-30", "beta"
	_, isRead := w.askWatched(october)
	kit.Check(t, isRead, "the first answer did not read the ledger")
	for name, q := range map[string]Question{"TheSame": october, "OtherDays": september, "OtherCompany": beta} {
		kept, isRead := w.askWatched(q)
		kit.Check(t, !isRead, "%s: the ledger was read, although nothing had changed", name)
		w.forget()
		fresh, isRead := w.askWatched(q)
		kit.Check(t, isRead && reflect.DeepEqual(kept, fresh),
			"%s: %+v, and %+v where the ledger was read (%v)", name, kept, fresh, isRead)
		kit.Check(t, name != "TheSame" || len(fresh.Rows) == 6 && len(fresh.Unbooked) == 3 && fresh.Counts[Archived] == 1, "%+v", fresh)
	}
}

// I31: what was kept counts only for the ledger, the extracts and the settings that it was made of, and only with each of its bytes.
func TestMatching_I31_OnlyOfTheSame(t *testing.T) {
	q := Question{From: "2026-10-01", To: "2026-10-31", Now: day("2026-11-20")}
	type row struct {
		change func(*world)
		want   uint64 // archived
	}
	kit.Rows(t, map[string]row{
		"LedgerWentOn": {func(w *world) { w.drop("Again", documentOf("1"), ledger.Archived) }, 0}, // now two fit
		"NewExtract": {func(w *world) {
			w.hold(delta("2", "2026-11-19", "2026-11-20"), definitionOf("IA_INVOICE", columnNames...), jsonOf(invoice("1", "1", "GROSS_SUM", "7"), invoice("8", "8")))
		}, 1},
		"ChangedByte": {func(w *world) {
			w.change("UPDATE matching_part SET content = CAST(substr(content, 1, length(content) - 1) || x'01' AS BLOB) WHERE kind = 1")
		}, 1},
		"LostPart": {func(w *world) { w.change("DELETE FROM matching_part WHERE kind = 0") }, 1},
	}, func(t *testing.T, row row) {
		w := newMatchedWorld(t)
		w.askWatched(q)
		row.change(w)
		got, isRead := w.askWatched(q)
		kit.Check(t, isRead && got.Counts[Archived] == row.want, "read %v, %+v", isRead, got.Counts)
	})
}

// I31: an answer that reads the archive's index neither uses matches that were made without it, nor leaves its own to others.
func TestMatching_I31_TheIndexIsReadAgain(t *testing.T) {
	w := newMatchedWorld(t)
	q := Question{From: "2026-10-01", To: "2026-10-31", Now: day("2026-11-20")}
	before, _ := w.askWatched(q)
	indexed := q
	indexed.Index = func(func(archive.IndexRecord) error) ([]IndexRead, error) {
		return []IndexRead{{Vault: "V-1", Complete: true}}, nil // the archive lost everything
	}
	got, isRead := w.askWatched(indexed)
	kit.Check(t, isRead && got.Counts[Archived] == 0, "read %v, %+v", isRead, got.Counts)
	after, _ := w.askWatched(q)
	kit.Check(t, reflect.DeepEqual(after, before), "%+v, before it was %+v", after, before)
}

// What was kept in several parts is read as it was, and never as that of another ledger or of other rows.
func TestMatching_I31_ManyParts(t *testing.T) {
	w := newWorld(t)
	b := w.open(testSettings())
	want := &matches{}
	for i := range int32(keptTogether + 2) {
		want.docs = append(want.docs, document{key: archive.Key{byte(i), byte(i >> 8), byte(i >> 16)}, state: ledger.Archived, doubts: i%2 == 1})
		want.edges = append(want.edges, edge{row: uint32(i) << 8, doc: i, kind: alike, diff: OtherAmount})
		want.unbooked = append(want.unbooked, unbooked{doc: i, day: dayBytes{'2', '0'}})
	}
	b.keepMatches(t.Context(), want, archive.Digest{1}, 0)
	got, err := loadMatches(t.Context(), b.db, archive.Digest{1}, 0)
	kit.Check(t, err == nil && reflect.DeepEqual(got, want),
		"%v: the matches that were read are not those that were kept", err)
	for of, changes := range map[archive.Digest]int64{{2}: 0, {1}: 1} {
		got, err := loadMatches(t.Context(), b.db, of, changes)
		kit.Check(t, err == nil && got == nil, "matches of something else were read: %v", err)
	}
}

// I31: sums are exact, however large or small their amounts are.
func TestAmount_I31_SumsAreExact(t *testing.T) {
	all := []archive.Decimal{"0.1", "0.2", "-0.3", "99999999999.999999", "-99999999999.999999", "123456789012345678901234567890.12", "0.0000001", "", "-5", "9007199254740993.01", "1119.5"}
	var one Amount
	want := new(big.Rat)
	for range 200 { // more than the whole millionths hold
		for _, amount := range append(all, slices.Repeat([]archive.Decimal{"99999999999.999999"}, 3)...) {
			one.add(amount)
			if r := amount.Rat(); r != nil {
				want.Add(want, r)
			}
		}
	}
	one.write()
	if got, ok := new(big.Rat).SetString(one.Total); !ok || got.Cmp(want) != 0 || one.Count != 200*14 {
		t.Errorf("%d amounts are %s, want %s", one.Count, one.Total, want.FloatString(9))
	}
}
