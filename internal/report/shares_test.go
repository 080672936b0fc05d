package report

import (
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/test/kit"
)

// The drawing of a vault's share stands beside a table with the same figures, and these are those of its bill.
func TestHTML_SharesAreThoseOfTheBills(t *testing.T) {
	a := examine(t, filled(t, "test").config())
	page, _ := written(t, a, "html")
	shown := 0
	for _, b := range a.Summary.Bills {
		if b.Year != a.Summary.About.Made.Year() {
			continue
		}
		of := "all vaults"
		if b.Vault != "" {
			of = "vault " + b.Vault
		}
		_, part, found := strings.Cut(page, fmt.Sprintf("<h3>Share of the included volume, %s, %d</h3>", of, b.Year))
		part, _, _ = strings.Cut(part, "</table>")
		percent := b.Percent
		if !strings.Contains(percent, ".") {
			percent += ".0"
		}
		if !found || strings.Count(part, "<svg") != 1 || !strings.Contains(part, `<tr><th scope="row">November</th><td>`+percent+" %</td></tr>") {
			t.Errorf("%s: %s %% is not in %s", of, percent, part)
		}
		if shown++; b.Forecast != nil && !strings.Contains(part, "December, forecast") {
			t.Errorf("%s: no forecast in %s", of, part)
		}
	}
	kit.Check(t, shown >= 3, "%d shares", shown)
	for share, want := range map[float64]string{0: "0.0 %", 0.29: "29.0 %", 1.1666667: "116.6 %", 0.9999: "99.9 %", 1: "100.0 %"} {
		kit.Want(t, fmt.Sprint(share), formatShare(share), want)
	}
}
