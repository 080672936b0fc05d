// Package billing applies the price rule of the archive: in each calendar year the
// average archived document must not exceed the included size; the storage beyond
// it is summed, divided by one megabyte and invoiced as transactions. It gives one
// [Bill] per vault and year, and one for the customer, because the average may be
// meant either way. A document whose size is not known counts as one, and is left out
// of everything that is about sizes. The bills of the current year have a [Forecast].
//
// It is pure and exact: sizes are whole bytes, everything else is a decimal without
// a binary fraction in between, and what is rounded says so. It never reads a clock
// or a ledger, and it never decides which year a document belongs to: the totals
// come counted by the service's own time of success.
//
// A crash means nothing here: the same totals give the same bills.
package billing

import (
	"cmp"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// ErrRule says that a rule cannot be applied.
var ErrRule = errors.New("billing rule is wrong")

// Rule is what was agreed with the provider.
type Rule struct {
	Included int64           // bytes an average document may have; zero: 1 MB
	Price    archive.Decimal // of one transaction; empty or zero: not known
	Currency string          // ISO 4217, of the price
}

// Level says how near an average is to its limit.
type Level uint8

// The levels, in percent of the limit.
const (
	BelowLimit   Level = 0
	Level80      Level = 80
	Level90      Level = 90
	LimitReached Level = 100 // the limit itself counts: one byte more is invoiced
)

// Bill is what one calendar year costs beyond the documents themselves.
type Bill struct {
	Year      int
	Vault     archive.VaultID // empty: all vaults of the customer
	Documents uint64          // transactions: each success of the service is one
	Unsized   uint64          // of them, those whose size is not known; all that follows is about the others
	Bytes     uint64          // of the ZIPs as sent
	Included  uint64          // bytes that the documents may have together

	Average archive.Decimal // MB per document, rounded half up to six digits; "0" without documents, empty where no size is known
	Percent archive.Decimal // of the limit, rounded down to one digit, so that 100 is reached and not approached; empty like Average
	Level   Level

	Headroom     uint64          // bytes left before anything is invoiced
	Excess       uint64          // bytes beyond what is included
	Transactions archive.Decimal // the excess in MB, exact
	Whole        uint64          // transactions, rounded up

	Money      archive.Decimal // price of Transactions, exact; empty: no price
	MoneyWhole archive.Decimal // price of Whole, exact; empty: no price
	Currency   string          // of both; empty: no price

	Forecast    Forecast // of the current year; zero if missing
	HasForecast bool
}

// Bills applies the rule: by year, and in each year the customer first, then the
// vaults by name. Totals of the same vault and year are summed. The bills of the year of
// now, in whose zone the totals were counted, have a forecast; a zero now makes none. The
// error wraps ErrRule.
func Bills(totals []ledger.Total, r Rule, now time.Time) ([]Bill, error) {
	price, err := r.checkPrice()
	if err != nil {
		return nil, err
	}
	type of struct {
		year     int
		customer bool
		vault    archive.VaultID
	}
	sums := map[of]ledger.Total{}
	for _, t := range totals {
		for _, k := range []of{{t.Year, true, ""}, {t.Year, false, t.Vault}} {
			s := sums[k]
			s.Vault, s.Year = k.vault, k.year
			sums[k] = s.Plus(t)
		}
	}
	bills := make([]Bill, 0, len(sums))
	for k, s := range sums {
		b := r.newBill(s, price)
		if !now.IsZero() && b.Year == now.Year() {
			mine := slices.DeleteFunc(slices.Clone(totals), func(t ledger.Total) bool { return !k.customer && t.Vault != k.vault })
			b.Forecast, b.HasForecast = r.forecast(b, mine, price, now)
		}
		bills = append(bills, b)
	}
	slices.SortFunc(bills, byYearAndVault)
	return bills, nil
}

// checkPrice returns the price, nil where none is known.
func (r *Rule) checkPrice() (*big.Rat, error) {
	r.Included = cmp.Or(r.Included, archive.MB)
	if r.Included < 0 {
		return nil, fmt.Errorf("%w: included size %d is negative", ErrRule, r.Included)
	}
	if r.Price == "" {
		return nil, nil
	}
	d, err := archive.ParseDecimal(string(r.Price))
	if err != nil {
		return nil, fmt.Errorf("%w: price: %w", ErrRule, err)
	}
	switch d.Rat().Sign() {
	case -1:
		return nil, fmt.Errorf("%w: price %s is negative", ErrRule, r.Price)
	case 0:
		return nil, nil
	}
	return d.Rat(), nil
}

func (r Rule) newBill(t ledger.Total, price *big.Rat) Bill {
	mb := big.NewInt(archive.MB)
	bytes := new(big.Int).SetUint64(t.Bytes)
	included := new(big.Int).Mul(new(big.Int).SetUint64(t.Documents-t.Unsized), big.NewInt(r.Included))
	b := Bill{Year: t.Year, Vault: t.Vault, Documents: t.Documents, Unsized: t.Unsized, Bytes: t.Bytes, Included: capUint64(included)}
	b.Average, b.Percent, b.Level = averageOf(t, included)
	excess := new(big.Int).Sub(bytes, included)
	if excess.Sign() < 0 {
		b.Headroom = capUint64(excess.Neg(excess))
		excess.SetInt64(0)
	}
	transactions := new(big.Rat).SetFrac(excess, mb)
	up := new(big.Int).Div(new(big.Int).Add(excess, big.NewInt(archive.MB-1)), mb)
	b.Excess, b.Transactions, b.Whole = capUint64(excess), exactDecimal(transactions, 0), capUint64(up)
	if price != nil {
		b.Money = exactDecimal(new(big.Rat).Mul(transactions, price), 2)
		b.MoneyWhole = exactDecimal(new(big.Rat).Mul(new(big.Rat).SetInt(up), price), 2)
		b.Currency = r.Currency
	}
	return b
}

// averageOf returns MB per document, percent of the limit, and the level.
func averageOf(t ledger.Total, included *big.Int) (mb, percent archive.Decimal, l Level) {
	bytes := new(big.Int).SetUint64(t.Bytes)
	if included.Sign() == 0 {
		if t.Bytes > 0 {
			l = LimitReached // storage without a document: no average, and all of it too much
		}
		if t.Unsized > 0 {
			return "", "", l
		}
		return "0", "0", l
	}
	avg := new(big.Rat).SetFrac(bytes, new(big.Int).SetUint64(t.Documents-t.Unsized))
	avg.Quo(avg, new(big.Rat).SetInt64(archive.MB))
	tenths := new(big.Int).Div(new(big.Int).Mul(bytes, big.NewInt(1000)), included)
	for _, at := range []Level{Level80, Level90, LimitReached} {
		if tenths.Cmp(big.NewInt(int64(at)*10)) >= 0 {
			l = at
		}
	}
	return trimZeros(avg.FloatString(6)), exactDecimal(new(big.Rat).SetFrac(tenths, big.NewInt(10)), 0), l
}

// exactDecimal writes a number whose denominator divides a power of ten, with at least the
// given digits after the point.
func exactDecimal(r *big.Rat, digits int) archive.Decimal {
	n, finite := r.FloatPrec()
	if !finite {
		panic(fmt.Sprintf("billing: %s has no finite decimal", r)) // bytes, tenths and decimal prices always have
	}
	return archive.Decimal(r.FloatString(max(n, digits)))
}

// trimZeros drops zeros at the end of a number that has a point.
func trimZeros(s string) archive.Decimal {
	return archive.Decimal(strings.TrimSuffix(strings.TrimRight(s, "0"), "."))
}

// capUint64 caps at the largest number: beyond 18 exabytes nobody is billed rightly anyway.
func capUint64(n *big.Int) uint64 {
	if !n.IsUint64() {
		return ^uint64(0)
	}
	return n.Uint64()
}
