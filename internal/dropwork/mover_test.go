package dropwork

import (
	"fmt"
	"testing"

	"vaultd/internal/drop"
	"vaultd/internal/ledger"
	"vaultd/internal/test/kit"
)

func TestDifferencesCause_NamesAFew(t *testing.T) {
	var many []drop.Difference
	for i := range 7 {
		many = append(many, drop.Difference{Path: fmt.Sprint(i, ".pdf"), What: "was not archived"})
	}
	text := differencesCause(ledger.Vault, many).Text
	kit.Holds(t, "cause", text, `"4.pdf" was not archived; and 2 more;`)
	kit.Lacks(t, "cause", text, "5.pdf")
}
