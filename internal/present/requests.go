package present

import (
	"strings"

	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// DescribeRequests returns the ids of calls in one line, for the support of the
// service; it may be empty.
func DescribeRequests(all []ledger.Request) string {
	var parts []string
	for _, r := range all {
		parts = append(parts, r.Call+" "+sanitize.Text(string(r.ID)))
	}
	return strings.Join(parts, ", ")
}
