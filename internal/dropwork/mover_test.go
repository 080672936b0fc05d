package dropwork

import (
	"fmt"
	"strings"
	"testing"

	"vaultd/internal/drop"
	"vaultd/internal/ledger"
)

func TestDifferencesCause_NamesAFew(t *testing.T) {
	var many []drop.Difference
	for i := range 7 {
		many = append(many, drop.Difference{Path: fmt.Sprint(i, ".pdf"), What: "was not archived"})
	}
	if text := differencesCause(ledger.Vault, many).Text; !strings.Contains(text, `"4.pdf" was not archived; and 2 more;`) || strings.Contains(text, "5.pdf") {
		t.Error(text)
	}
}
