package billing

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

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
			if got := shares[len(shares)-1]; err != nil || got.Month != 12 || math.Abs(got.Share*100-0.05-percent) > 0.0501 {
				t.Errorf("%v of the bill %+v", got, b)
			}
			if average := rule.ShareOf(b.Average); math.Abs(average-shares[len(shares)-1].Share) > 1e-6*float64(archive.MB)/float64(rule.Included) {
				t.Errorf("an average of %s MB is %v, the shares are %v", b.Average, average, shares)
			}
		}
	}
}
