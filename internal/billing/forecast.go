package billing

import (
	"cmp"
	"math/big"
	"slices"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Forecast is what a bill will be on 31 December, if the rest of the year goes on at the run rate: as the last months did
// together. The band is what it would be if the rest went on as the lightest, or the heaviest, of those months did alone.
// That the months before tell what comes is an assumption. Documents whose size is not known are left out.
type Forecast struct {
	Average archive.Decimal `json:"averageMB"` // MB per document, rounded half up to six digits
	Lowest  archive.Decimal `json:"lowestMB"`
	Highest archive.Decimal `json:"highestMB"`

	Whole uint64 `json:"wholeTransactions"` // beyond what is included, rounded up
	Least uint64 `json:"leastTransactions"`
	Most  uint64 `json:"mostTransactions"`

	Money      archive.Decimal `json:"money"` // price of those; empty: no price
	LeastMoney archive.Decimal `json:"leastMoney"`
	MostMoney  archive.Decimal `json:"mostMoney"`
}

// The months that the run rate is taken from.
const (
	rateMonths = 3                  // at most
	shortest   = 7 * 24 * time.Hour // of the current month must have passed: one day's batch is no rate
)

// month is what came in a part of the time.
type month struct {
	documents, bytes uint64 // of known size
	lasted           time.Duration
}

// forecast reckons the rest of the year of now, whose bill so far is b. totals are those that the bill is of, of any year;
// ok is false where no month is long enough to tell a rate.
func (r Rule) forecast(b Bill, totals []ledger.Total, price *big.Rat, now time.Time) (f Forecast, ok bool) {
	months := lastMonths(totals, now)
	if len(months) == 0 || b.Documents == b.Unsized {
		return f, false
	}
	rest := time.Date(now.Year()+1, 1, 1, 0, 0, 0, 0, now.Location()).Sub(now)
	together := month{}
	var averages []*big.Rat
	for i, m := range months {
		together = month{together.documents + m.documents, together.bytes + m.bytes, together.lasted + m.lasted}
		average, beyond := r.atYearsEnd(b, m, rest)
		averages = append(averages, average)
		if i == 0 {
			f.Least, f.Most = beyond, beyond
		}
		f.Least, f.Most = min(f.Least, beyond), max(f.Most, beyond)
	}
	average, beyond := r.atYearsEnd(b, together, rest)
	f.Average, f.Whole = trimZeros(average.FloatString(6)), beyond
	slices.SortFunc(averages, (*big.Rat).Cmp)
	f.Lowest, f.Highest = trimZeros(averages[0].FloatString(6)), trimZeros(averages[len(averages)-1].FloatString(6))
	if price != nil {
		f.Money, f.LeastMoney, f.MostMoney = priceOf(f.Whole, price), priceOf(f.Least, price), priceOf(f.Most, price)
	}
	return f, true
}

// atYearsEnd gives the average in MB, and the whole transactions beyond what is included, if the rest of the year goes on
// as m did.
func (r Rule) atYearsEnd(b Bill, m month, rest time.Duration) (average *big.Rat, beyond uint64) {
	scale := big.NewRat(int64(rest), int64(m.lasted))
	goOn := func(soFar, rate uint64) *big.Rat {
		more := new(big.Rat).Mul(ratOf(rate), scale)
		return more.Add(more, ratOf(soFar))
	}
	documents, bytes := goOn(b.Documents-b.Unsized, m.documents), goOn(b.Bytes, m.bytes)
	mb := big.NewRat(archive.MB, 1)
	average = new(big.Rat).Quo(bytes, documents)
	excess := new(big.Rat).Sub(bytes, new(big.Rat).Mul(documents, big.NewRat(r.Included, 1)))
	if excess.Sign() <= 0 {
		return average.Quo(average, mb), 0
	}
	excess.Quo(excess, mb)
	up := new(big.Int).Add(excess.Num(), new(big.Int).Sub(excess.Denom(), big.NewInt(1)))
	return average.Quo(average, mb), capUint64(up.Div(up, excess.Denom()))
}

// lastMonths gives the last three months, from the first one on in which anything of known size came. The current one is
// among them once a week of it has passed.
func lastMonths(totals []ledger.Total, now time.Time) (months []month) {
	begin := func(back int) time.Time {
		return time.Date(now.Year(), now.Month()-time.Month(back), 1, 0, 0, 0, 0, now.Location())
	}
	number := func(t time.Time) int { return t.Year()*12 + int(t.Month()) }
	type sum struct{ documents, bytes uint64 }
	sums, first := map[int]sum{}, 0
	for _, t := range totals {
		if t.Documents == t.Unsized {
			continue
		}
		n := t.Year*12 + t.Month
		had := sums[n]
		sums[n] = sum{had.documents + t.Documents - t.Unsized, had.bytes + t.Bytes}
		if first == 0 || n < first {
			first = n
		}
	}
	back := 0
	if now.Sub(begin(0)) < shortest {
		back = 1
	}
	for end := back + rateMonths; back < end; back++ {
		from, to := begin(back), begin(back-1)
		if to.After(now) {
			to = now
		}
		if n := number(from); first > 0 && n >= first {
			months = append(months, month{sums[n].documents, sums[n].bytes, to.Sub(from)})
		}
	}
	return months
}

func ratOf(n uint64) *big.Rat { return new(big.Rat).SetInt(new(big.Int).SetUint64(n)) }

func priceOf(transactions uint64, price *big.Rat) archive.Decimal {
	return exactDecimal(new(big.Rat).Mul(ratOf(transactions), price), 2)
}

// byYearAndVault orders bills: by year, and in each year the customer first.
func byYearAndVault(a, b Bill) int {
	return cmp.Or(cmp.Compare(a.Year, b.Year), cmp.Compare(a.Vault, b.Vault))
}
