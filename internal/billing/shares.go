package billing

import (
	"cmp"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// MonthShare is the share of what is included that the documents of a year used from its beginning to the end of one of its months, for
// drawings: a bill is exact. Documents whose size is not known are left out.
type MonthShare struct {
	Month int     // from 1
	Share float64 // 1 is all of it
}

// MonthShares returns the shares of a vault in a year (empty: of all vaults), from the first month in which anything of known size was
// archived up to another month.
func (r Rule) MonthShares(totals []ledger.Total, vault archive.VaultID, year, until int) (shares []MonthShare) {
	var soFar ledger.Total
	for m := 1; m <= until; m++ {
		for _, t := range totals {
			if t.Year == year && t.Month == m && (vault == "" || t.Vault == vault) {
				soFar = soFar.Plus(t)
			}
		}
		if sized := soFar.Documents - soFar.Unsized; sized > 0 {
			shares = append(shares, MonthShare{m, r.shareOf(float64(soFar.Bytes) / float64(sized))})
		}
	}
	return shares
}

// ShareOf returns the share of what is included that an average in MB is, as a bill or its forecast has it.
func (r Rule) ShareOf(average archive.Decimal) float64 {
	mb, _ := average.Rat().Float64()
	return r.shareOf(mb * archive.MB)
}

// shareOf takes an average in bytes.
func (r Rule) shareOf(average float64) float64 {
	return average / float64(cmp.Or(r.Included, archive.MB))
}
