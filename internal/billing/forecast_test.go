package billing

import (
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// sheet is what a vault archived in 2026, worked out with pencil and paper below: so many documents of so many bytes each.
var sheet = []struct {
	vault     archive.VaultID
	day       string
	documents int
	size      int64 // 0: not known
}{
	{"DE", "2026-01-15", 80, 962_500},            // 77,000,000 bytes
	{"DE", "2026-02-10", 50, 0},                  // taken in from the archive's index: nobody knows their sizes
	{"DE", "2026-07-01", 155, 700_000},           // 108,500,000
	{"DE", "2026-07-31", 155, 900_000},           // 139,500,000: July 310 documents, 248,000,000 bytes; a day 10 and 8 MB
	{"DE", "2026-08-15", 310, 500_000},           // August 310 documents, 155,000,000 bytes; a day 10 and 5 MB
	{"DE", "2026-09-30", 300, 1_200_000},         // September 300 documents, 360,000,000 bytes; a day 10 and 12 MB
	{"FR", "2026-09-01", 60, 100_000},            // September 60 documents, 6,000,000 bytes; a day 2 and 0.2 MB
	{"DE", "2025-12-31", 1000, 5_000_000},        // another year
	{"IT", "2026-10-01", 10, 2_000_000},          // 20,000,000 bytes, in the first hours of the day of the forecast
	{"ES", "2026-03-03", 7, 0},                   // nothing but unknown sizes
	{"DE2", "2026-02-28", 28, 1_500_000},         // 42,000,000 bytes; nothing since
	{"DE2", "2026-06-30", 0, 1},                  // nothing
	{"FR2", "2026-08-31", 31, 1_000_000},         // 31,000,000 bytes
	{"FR2", "2026-09-15", 30, 1_000_000},         // 30,000,000 bytes: each day one of 1 MB
	{"FR2", "2026-07-31", 31, 1_000_000},         // 31,000,000 bytes
	{"FR2", "2026-01-01", 1, 92_000_000 - 1_000}, // a large one in January
}

func sheetTotals(t *testing.T) (all []ledger.Total) {
	t.Helper()
	for _, row := range sheet {
		day := kit.Value(time.Parse(time.DateOnly, row.day))(t)
		for range row.documents {
			all = append(all, ledger.Transaction{At: day, Size: row.size}.Total(row.vault, time.UTC))
		}
	}
	return all
}

// TestBills_SheetByHand is the price rule on the sheet, on 1 October 2026 at midnight: 92 days of the year are left, and
// October has not gone on long enough to tell a rate.
//
// DE: 80 + 310 + 310 + 300 = 1,000 documents of known size and 77 + 248 + 155 + 360 = 840 MB, so 0.84 MB on average;
// 50 more whose size is not known. The rest as July to September together, 920 documents and 763 MB in 92 days: 1,920
// documents and 1,603 MB, 0.834896. As July alone: 840 + 92 × 8 = 1,576 MB, 0.820833. As August alone: 840 + 92 × 5 = 1,300
// MB, 0.677083. As September alone: 840 + 92 × 12 = 1,944 MB, 1.0125: 24 MB beyond, 24 transactions of 0.185, that is 4.44.
//
// FR: one month, 60 documents and 6 MB in 30 days: 184 and 18.4 MB more. Always 0.1 MB.
//
// FR2: 93 documents and 183.999 MB, 1.978484 MB. The three months have one document of 1 MB a day each: 185 documents and
// 275.999 MB, 1.491886; 90.999 MB beyond, 91 transactions of 0.185, that is 16.835.
//
// IT: its first document came today, so that there is no rate. DE2: nothing came in the last three months, so that it stays
// as it is: 28 documents, 42 MB, 1.5 MB, 14 beyond, 2.59. ES: nobody knows any size.
func TestBills_SheetByHand(t *testing.T) {
	bills := kit.Value(Bills(sheetTotals(t), Rule{Price: "0.185", Currency: "EUR"}, time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)))(t)
	none := Forecast{}
	for _, want := range []struct {
		vault              archive.VaultID
		documents, unsized uint64
		average, percent   archive.Decimal
		forecast           Forecast
	}{
		{"DE", 1050, 50, "0.84", "84", Forecast{"0.834896", "0.677083", "1.0125", 0, 0, 24, "0.00", "0.00", "4.44"}},
		{"FR", 60, 0, "0.1", "10", Forecast{"0.1", "0.1", "0.1", 0, 0, 0, "0.00", "0.00", "0.00"}},
		{"FR2", 93, 0, "1.978484", "197.8", Forecast{"1.491886", "1.491886", "1.491886", 91, 91, 91, "16.835", "16.835", "16.835"}},
		{"IT", 10, 0, "2", "200", none},
		{"DE2", 28, 0, "1.5", "150", Forecast{"1.5", "1.5", "1.5", 14, 14, 14, "2.59", "2.59", "2.59"}},
		{"ES", 7, 7, "", "", none},
	} {
		for _, b := range bills {
			if b.Vault != want.vault || b.Year != 2026 {
				continue
			}
			if b.Documents != want.documents || b.Unsized != want.unsized || b.Average != want.average || b.Percent != want.percent ||
				b.Forecast != want.forecast || b.HasForecast != (want.forecast != none) {
				t.Errorf("%s: got\n%+v\nwant\n%+v", want.vault, b, want)
			}
		}
	}
	// All vaults: 1,000 + 60 + 93 + 10 + 28 = 1,191 documents of known size, 840 + 6 + 183.999 + 20 + 42 = 1,091.999 MB,
	// 0.916876; and 57 of unknown size. What is included is 1,191 MB, so 99,001,000 bytes are left.
	for _, b := range bills {
		if b.Vault == "" && b.Year == 2026 && (b.Documents != 1248 || b.Unsized != 57 || b.Average != "0.916876" || b.Headroom != 99_001_000 || b.Excess != 0 || !b.HasForecast) {
			t.Errorf("all vaults: %+v", b)
		}
		kit.Check(t, b.Year != 2025 || !b.HasForecast, "a forecast of a year that is over: %+v", b)
	}
}

// The current month tells a rate once a week of it has passed, and as long as it has lasted. In January the months of the
// year before tell it.
func TestForecast_WhichMonthsTellTheRate(t *testing.T) {
	total := func(year, month int, documents, mb uint64) ledger.Total {
		return ledger.Total{Vault: "V", Year: year, Month: month, Documents: documents, Bytes: mb * archive.MB}
	}
	at := func(month time.Month, day int) time.Time { return time.Date(2026, month, day, 0, 0, 0, 0, time.UTC) }
	type row struct {
		totals []ledger.Total
		now    time.Time
		want   string // average, lowest, highest
	}
	kit.Rows(t, map[string]row{
		// 6 days of December tell no rate. November does: 1 document and 1 MB a day, and 25 days are left: (70 + 25) / (34 + 25).
		"SixDays": {[]ledger.Total{total(2026, 11, 30, 30), total(2026, 12, 4, 40)}, at(12, 7), "1.610169 1.610169 1.610169"},
		// 7 days do: 1 document and 2 MB a day.
		"SevenDays": {[]ledger.Total{total(2026, 12, 7, 14)}, at(12, 8), "2 2 2"},
		// 24 days are left. As November: (44 + 24) / (37 + 24). As December: (44 + 48) / (37 + 24). Together: 44 / 37, as so far.
		"SevenDays_AndAMonth": {[]ledger.Total{total(2026, 11, 30, 30), total(2026, 12, 7, 14)}, at(12, 8), "1.189189 1.114754 1.508197"},
		// 360 days are left, as December of the year before: (3 + 2 × 360) / (3 + 360).
		"FirstWeekOfTheYear": {[]ledger.Total{total(2025, 12, 31, 62), total(2026, 1, 3, 3)}, at(1, 6), "1.991736 1.991736 1.991736"},
		"NothingBefore":      {[]ledger.Total{total(2026, 1, 3, 3)}, at(1, 6), "none"},
		// 31 days are left. As September: (90 + 62) / (60 + 31). As October, which had nothing: 90 / 60. As November: (90 + 31) / (60 + 31).
		"MonthWithoutAny": {[]ledger.Total{total(2026, 9, 30, 60), total(2026, 11, 30, 30)}, at(12, 1), "1.5 1.32967 1.67033"},
		// July counts as so far alone. As November: (340 + 31) / (61 + 31). As the months without any: 340 / 61. Together 30 in 91 days.
		"FourMonthsAgo": {[]ledger.Total{total(2026, 7, 31, 310), total(2026, 11, 30, 30)}, at(12, 1), "4.917451 4.032609 5.57377"},
	}, func(t *testing.T, row row) {
		bs := kit.Value(Bills(row.totals, Rule{}, row.now))(t)
		b := bs[len(bs)-1]
		got := "none"
		if f := b.Forecast; b.HasForecast {
			got = string(f.Average + " " + f.Lowest + " " + f.Highest)
		}
		kit.Check(t, got == row.want, "%s, want %s: %+v", got, row.want, b)
	})
}

// The forecast lies within its band, whatever came.
func TestForecast_LiesWithinItsBand(t *testing.T) {
	for seed := range uint64(300) {
		var totals []ledger.Total
		next := seed*2654435761 + 1
		draw := func(n uint64) uint64 {
			next = next*6364136223846793005 + 1442695040888963407
			return next >> 33 % n
		}
		for m := range 12 {
			n := draw(500)
			totals = append(totals, ledger.Total{Vault: "V", Year: 2026, Month: m + 1, Documents: n, Bytes: n * draw(2_000_000)})
		}
		bs, err := Bills(totals, Rule{Price: "0.5"}, time.Date(2026, time.Month(1+draw(12)), 1+int(draw(28)), int(draw(24)), 0, 0, 0, time.UTC))
		kit.Must(t, err)
		for _, b := range bs {
			f := b.Forecast
			if b.HasForecast && (f.Average.Rat().Cmp(f.Lowest.Rat()) < 0 || f.Average.Rat().Cmp(f.Highest.Rat()) > 0 || f.Whole < f.Least || f.Whole > f.Most) {
				t.Errorf("seed %d: %+v", seed, f)
			}
		}
	}
}
