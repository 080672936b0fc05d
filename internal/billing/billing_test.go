package billing

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

// TestBills_ExampleByHand follows the rule of the specification with pencil and
// paper. In 2026 the German vault archived 1,000 documents of 1,234,567,890 bytes:
// 1,000 MB are included, 234,567,890 bytes are beyond, that is 234.56789
// transactions, 235 when only whole ones are invoiced. At 0.185 each: 43.39505965
// or 43.475. The French vault is small, and for the customer as a whole
// 1,334,567,890 - 1,500,000,000 leaves room: per vault and per customer differ.
func TestBills_ExampleByHand(t *testing.T) {
	totals := []ledger.Total{
		{Vault: "DE", Year: 2026, Documents: 600, Bytes: 1_000_000_000},
		{Vault: "FR", Year: 2026, Documents: 500, Bytes: 100_000_000},
		{Vault: "DE", Year: 2026, Documents: 400, Bytes: 234_567_890},
		{Vault: "DE", Year: 2025, Documents: 3, Bytes: 3_000_000},
	}
	got := kit.Value(Bills(totals, Rule{Price: "0.185", Currency: "EUR"}, time.Time{}))(t)
	want := []Bill{
		{Year: 2025, Documents: 3, Bytes: 3_000_000, Included: 3_000_000, Average: "1", Percent: "100", Level: LimitReached,
			Transactions: "0", Money: "0.00", MoneyWhole: "0.00", Currency: "EUR"},
		{Year: 2025, Vault: "DE", Documents: 3, Bytes: 3_000_000, Included: 3_000_000, Average: "1", Percent: "100", Level: LimitReached,
			Transactions: "0", Money: "0.00", MoneyWhole: "0.00", Currency: "EUR"},
		{Year: 2026, Documents: 1500, Bytes: 1_334_567_890, Included: 1_500_000_000, Average: "0.889712", Percent: "88.9", Level: Level80,
			Headroom: 165_432_110, Transactions: "0", Money: "0.00", MoneyWhole: "0.00", Currency: "EUR"},
		{Year: 2026, Vault: "DE", Documents: 1000, Bytes: 1_234_567_890, Included: 1_000_000_000, Average: "1.234568", Percent: "123.4", Level: LimitReached,
			Excess: 234_567_890, Transactions: "234.56789", Whole: 235, Money: "43.39505965", MoneyWhole: "43.475", Currency: "EUR"},
		{Year: 2026, Vault: "FR", Documents: 500, Bytes: 100_000_000, Included: 500_000_000, Average: "0.2", Percent: "20",
			Headroom: 400_000_000, Transactions: "0", Money: "0.00", MoneyWhole: "0.00", Currency: "EUR"},
	}
	kit.Want(t, "got", got, want)
	page := kit.Value(os.ReadFile("../../docs/archive.md"))(t)
	_, example, _ := strings.Cut(string(page), "## What it costs\n")
	example, _, _ = strings.Cut(example, "\n## ")
	both, de, fr := got[2], got[3], got[4]
	for row, cells := range map[string][]any{
		"average":      {de.Average + " MB", fr.Average + " MB", both.Average + " MB"},
		"transactions": {fmt.Sprintf("%s; %d where whole ones are invoiced", de.Transactions, de.Whole), fr.Transactions, both.Transactions},
		"price":        {fmt.Sprintf("EUR %s; %s", de.Money, de.MoneyWhole), "EUR " + fr.Money, "EUR " + both.Money},
	} {
		kit.Holds(t, "the example in docs/archive.md", example, fmt.Sprintf("| %s | %v | %v | %v |", row, cells[0], cells[1], cells[2]))
	}
}

func TestBills_Edges(t *testing.T) {
	for _, row := range []struct {
		name         string
		documents    uint64
		bytes        uint64
		rule         Rule
		level        Level
		percent      archive.Decimal
		transactions archive.Decimal
		whole        uint64
		money        archive.Decimal
	}{
		{"NothingArchived", 0, 0, Rule{}, BelowLimit, "0", "0", 0, ""},
		{"JustBelowNear", 10, 7_999_999, Rule{}, BelowLimit, "79.9", "0", 0, ""},
		{"Near", 10, 8_000_000, Rule{}, Level80, "80", "0", 0, ""},
		{"Nearer", 10, 9_000_000, Rule{}, Level90, "90", "0", 0, ""},
		{"OneByteBelowTheLimit", 10, 9_999_999, Rule{}, Level90, "99.9", "0", 0, ""},
		{"AtTheLimit", 10, 10_000_000, Rule{}, LimitReached, "100", "0", 0, ""},
		{"OneByteBeyond", 10, 10_000_001, Rule{Price: "1"}, LimitReached, "100", "0.000001", 1, "0.000001"},
		{"LargerIncludedSize", 10, 25_000_000, Rule{Included: 2 * archive.MB}, LimitReached, "125", "5", 5, ""},
		{"PriceBeyondFloats", 1, 1_000_003, Rule{Price: "9007199254740993.10"}, LimitReached, "100", "0.000003", 1, "27021597764.2229793"},
		{"PriceZeroIsNone", 1, 2_000_000, Rule{Price: "0.00"}, LimitReached, "200", "1", 1, ""},
		{"FifteenYearsOfAnything", 1 << 40, 1 << 62, Rule{}, LimitReached, "419.4", "3512174390651.387904", 3_512_174_390_652, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			bs := kit.Value(Bills([]ledger.Total{{Vault: "V", Year: 2026, Documents: row.documents, Bytes: row.bytes}}, row.rule, time.Time{}))(t)
			b := bs[1]
			if b.Level != row.level || b.Percent != row.percent || b.Transactions != row.transactions || b.Whole != row.whole || b.Money != row.money {
				t.Errorf("level %d percent %s transactions %s whole %d money %q", b.Level, b.Percent, b.Transactions, b.Whole, b.Money)
			}
			kit.Check(t, b.Excess <= 0 || b.Headroom <= 0, "both %d bytes beyond and %d left", b.Excess, b.Headroom)
		})
	}
}

func TestBills_WrongRule(t *testing.T) {
	for _, r := range []Rule{{Included: -1}, {Price: "-1"}, {Price: "1,50"}, {Price: "1e3"}} {
		kit.Fails(t, fmt.Sprintf("%+v: error", r), kit.Err(Bills(nil, r, time.Time{})), ErrRule)
	}
}

// What is beyond, less what is left, adds up: the vaults' to the customer's. So the customer as a whole never pays more
// than the vaults one by one, and less where one has room that another lacks.
func TestBills_VaultsAddUpToTheCustomer(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 5))
	for range 500 {
		var totals []ledger.Total
		for v := range 1 + r.IntN(5) {
			n := r.Uint64N(2000)
			totals = append(totals, ledger.Total{Vault: archive.VaultID(rune('A' + v)), Year: 2026, Documents: n, Bytes: n * r.Uint64N(2_000_000)})
		}
		bs, err := Bills(totals, Rule{Price: "0.185"}, time.Time{})
		kit.Need(t, err == nil && len(bs) == len(totals)+1 && bs[0].Vault == "",
			`err = %v, bs = %v, want no error, len(bs) = %v, bs[0].Vault = ""`, err, bs, len(totals)+1)
		var sum Bill
		beyond, one := int64(0), bs[0]
		for _, b := range bs[1:] {
			sum.Documents, sum.Bytes, sum.Included, sum.Excess = sum.Documents+b.Documents, sum.Bytes+b.Bytes, sum.Included+b.Included, sum.Excess+b.Excess
			beyond += int64(b.Excess) - int64(b.Headroom)
		}
		if sum.Documents != one.Documents || sum.Bytes != one.Bytes || sum.Included != one.Included ||
			beyond != int64(one.Excess)-int64(one.Headroom) || one.Excess > sum.Excess {
			t.Errorf("vaults %+v, %d beyond, are not the customer's %+v", sum, beyond, one)
		}
	}
}

// The three thresholds for a vault and for the customer are each their own: ten documents of 9.5 MB in all and ten of 8.2 MB are
// 95 and 82 percent, together 17.7 of 20 MB, which is 88.5.
func TestBills_LevelsPerVaultAndCustomer(t *testing.T) {
	bs, err := Bills([]ledger.Total{{Vault: "DE", Year: 2026, Documents: 10, Bytes: 9_500_000}, {Vault: "FR", Year: 2026, Documents: 10, Bytes: 8_200_000}}, Rule{}, time.Time{})
	kit.Must(t, err)
	for i, want := range []Bill{{Percent: "88.5", Level: Level80}, {Vault: "DE", Percent: "95", Level: Level90}, {Vault: "FR", Percent: "82", Level: Level80}} {
		b := bs[i]
		kit.Check(t, b.Vault == want.Vault && b.Percent == want.Percent && b.Level == want.Level, "%+v, want %+v", b, want)
	}
}

// TestMonthShares_ByHand: nothing of known size came in January; in February 2 MB for two documents, in March nothing, in April 4 MB for
// two more. Of an included size of 2 MB that is a half, a half, and three quarters. Other years, vaults and later months are left out.
func TestMonthShares_ByHand(t *testing.T) {
	totals := []ledger.Total{
		{Vault: "DE", Year: 2026, Month: 4, Documents: 2, Bytes: 4_000_000},
		{Vault: "DE", Year: 2026, Month: 1, Documents: 3, Unsized: 3},
		{Vault: "DE", Year: 2026, Month: 2, Documents: 3, Unsized: 1, Bytes: 2_000_000},
		{Vault: "DE", Year: 2026, Month: 5, Documents: 1, Bytes: 90_000_000},
		{Vault: "DE", Year: 2025, Month: 2, Documents: 1, Bytes: 90_000_000},
		{Vault: "FR", Year: 2026, Month: 2, Documents: 2, Bytes: 10_000_000},
	}
	r := Rule{Included: 2 * archive.MB}
	if got, want := r.MonthShares(totals, "DE", 2026, 4), []MonthShare{{2, 0.5}, {3, 0.5}, {4, 0.75}}; !slices.Equal(got, want) {
		t.Errorf("DE: %v, want %v", got, want)
	}
	if got, want := r.MonthShares(totals, "", 2026, 2), []MonthShare{{2, 1.5}}; !slices.Equal(got, want) {
		t.Errorf("all: %v, want %v", got, want)
	}
	got := r.MonthShares(totals, "DE", 2026, 1)
	kit.Check(t, got == nil, "of unknown size: %v", got)
	kit.Want(t, "1.5 MB of 2 MB", r.ShareOf("1.5"), 0.75)
	kit.Want(t, "1.5 MB of 1 MB", (Rule{}).ShareOf("1.5"), 1.5)
}

// The share at the end of a year is the percentage of its bill, which is rounded down to one digit.
func TestMonthShares_AgreeWithTheBill(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 9))
	for range 500 {
		var totals []ledger.Total
		for range r.IntN(20) {
			n := 1 + r.Uint64N(2000)
			totals = append(totals, ledger.Total{Vault: archive.VaultID(rune('A' + r.IntN(3))), Year: 2025 + r.IntN(2), Month: 1 + r.IntN(12), Documents: n, Unsized: r.Uint64N(n + 1), Bytes: n * r.Uint64N(2_000_000)})
		}
		rule := Rule{Included: 1 + r.Int64N(3_000_000)}
		bills := kit.Value(Bills(totals, rule, time.Time{}))(t)
		for _, b := range bills {
			shares := rule.MonthShares(totals, b.Vault, b.Year, 12)
			if b.Percent == "" || b.Included == 0 {
				kit.Check(t, len(shares) <= 0, "%v of the bill %+v", shares, b)
				continue
			}
			percent, err := strconv.ParseFloat(string(b.Percent), 64)
			got := shares[len(shares)-1]
			kit.Check(t, err == nil && got.Month == 12 && math.Abs(got.Share*100-0.05-percent) <= 0.0501, "%v of the bill %+v", got, b)
			if average := rule.ShareOf(b.Average); math.Abs(average-shares[len(shares)-1].Share) > 1e-6*float64(archive.MB)/float64(rule.Included) {
				t.Errorf("an average of %s MB is %v, the shares are %v", b.Average, average, shares)
			}
		}
	}
}

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
