package catalog

import (
	"context"
	"fmt"
	"time"

	"vaultd/internal/ledger"
)

// countEvery is how often the rows are counted. A row that is missing would be missing from answers.
const countEvery = 24 * time.Hour

// checkCounts compares the number of rows in each state with the ledger's balance, where the file tells of all lines now; done is
// false where it does not. The error is a [*rebuildError] where they differ.
func (c *Catalog) checkCounts(ctx context.Context, w *writer) (done bool, err error) {
	before, balance := c.cfg.Ledger.Head(), c.cfg.Ledger.Balance()
	if before != w.at.head || before != c.cfg.Ledger.Head() {
		return false, nil // something was committed since, and the balance may be a later one
	}
	rows, err := w.conn.QueryContext(context.WithoutCancel(ctx), "SELECT state, count(*) FROM document GROUP BY state")
	if err != nil {
		return false, err
	}
	defer rows.Close() // read only
	counted := ledger.Balance{}
	for rows.Next() {
		var state int
		var n uint64
		if err := rows.Scan(&state, &n); err != nil {
			return false, err
		}
		if state < 0 || state >= len(counted.States) {
			return false, &rebuildError{fmt.Sprintf("it has %d documents in a state %d that does not exist", n, state)}
		}
		counted.States[state] = n
		counted.Seen += n
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	if counted != balance {
		return false, &rebuildError{fmt.Sprintf("its rows (%v) are not those of the ledger (%v)", counted, balance)}
	}
	return true, nil
}
