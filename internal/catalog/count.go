package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"vaultd/internal/ledger"
)

// countEvery is how often the rows are counted. A row that is missing would be missing from answers.
const countEvery = 24 * time.Hour

// Comparison tells how the rows of a catalog compare with the ledger's balance. It says nothing about the ledger: where they differ, the
// catalog is wrong, and the running daemon makes it anew.
type Comparison struct {
	NotDone string // why nothing was compared; empty: it was
	Differs string // how rows and balance differ; empty: they do not
}

// Compare counts the rows in each state and compares them with the ledger's
// balance, where the rows tell of the ledger's last line. If they differ, the
// catalog that runs counts again at once, and is rebuilt. It must not be called
// where no catalog is kept.
func (c *Catalog) Compare(ctx context.Context) Comparison {
	before, balance := c.cfg.Ledger.Head(), c.cfg.Ledger.Balance()
	head, counted, err := c.countRead(ctx)
	again := reasonToRebuild(err)
	switch {
	case again != nil:
		return c.recount(again.why)
	case err != nil:
		return Comparison{NotDone: err.Error()}
	case head.N < before.N:
		return Comparison{NotDone: fmt.Sprintf("it has the ledger up to line %d, of %d", head.N, before.N)}
	case head != before || c.cfg.Ledger.Head() != before: // the balance may be a later one than the head
		return Comparison{NotDone: "the ledger changed meanwhile"}
	case counted != balance:
		return c.recount(describeDifference(counted, balance))
	}
	return Comparison{}
}

// recount lets the writer count at once: it decides whether the file is made anew.
func (c *Catalog) recount(differs string) Comparison {
	c.mu.Lock()
	c.uncounted = true
	c.mu.Unlock()
	c.Wake()
	return Comparison{Differs: differs}
}

// countRead counts the rows of the file that searches read.
func (c *Catalog) countRead(ctx context.Context) (ledger.Head, ledger.Balance, error) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	c.mu.Lock()
	f, why := c.file, c.status().Describe()
	c.mu.Unlock()
	if f == nil {
		return ledger.Head{}, ledger.Balance{}, errors.New(cmp.Or(why, "it is closed"))
	}
	// A connection opens what lies under the name now.
	if err := c.checkFile(f.of); err != nil {
		return ledger.Head{}, ledger.Balance{}, err
	}
	ctx, done := f.untilEnd(ctx)
	head, counted, err := countRows(ctx, f.db)
	return head, counted, done(err)
}

// countRows returns the number of rows in each state, and the line up to which they tell, of one moment. The error is a
// [*rebuildError] where a state does not exist.
func countRows(ctx context.Context, q queryer) (head ledger.Head, counted ledger.Balance, err error) {
	rows, err := q.QueryContext(ctx, "SELECT line, hash, state, n FROM position LEFT JOIN (SELECT state, count(*) AS n FROM document GROUP BY state) ON true")
	if err != nil {
		return head, counted, err
	}
	defer rows.Close() // read only
	for rows.Next() {
		var line int64
		var hash []byte
		var state, n sql.NullInt64 // null: there is no row
		if err := rows.Scan(&line, &hash, &state, &n); err != nil {
			return head, counted, err
		}
		if state.Int64 < 0 || state.Int64 >= int64(len(counted.States)) {
			return head, counted, &rebuildError{fmt.Sprintf("it has %d documents in a state %d that does not exist", n.Int64, state.Int64)}
		}
		head.N = uint64(line)
		copy(head.Hash[:], hash)
		counted.States[state.Int64] = uint64(n.Int64)
		counted.Seen += uint64(n.Int64)
	}
	return head, counted, errors.Join(rows.Err(), rows.Close())
}

func describeDifference(counted, balance ledger.Balance) string {
	return fmt.Sprintf("its rows (%v) are not those of the ledger (%v)", counted, balance)
}

// checkCounts compares the number of rows in each state with the ledger's balance, where the file tells of all lines now; done is
// false where it does not. The error is a [*rebuildError] where they differ.
func (c *Catalog) checkCounts(ctx context.Context, w *writer) (done bool, err error) {
	before, balance := c.cfg.Ledger.Head(), c.cfg.Ledger.Balance()
	if before != w.at || before != c.cfg.Ledger.Head() {
		return false, nil // something was committed since, and the balance may be a later one
	}
	_, counted, err := countRows(context.WithoutCancel(ctx), w.conn)
	if err == nil && counted != balance {
		err = &rebuildError{describeDifference(counted, balance)}
	}
	return err == nil, err
}

// isUncounted reports whether somebody found rows that differ from the balance.
func (c *Catalog) isUncounted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.uncounted
}

func (c *Catalog) noteCounted() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.uncounted = false
}
