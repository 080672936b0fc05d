package books

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/expected"
)

// shown is how the amounts and dates of some records are written.
type shown struct{ decimal, order expected.Shown }

func (s *shown) add(one shown) {
	s.decimal.Add(one.decimal)
	s.order.Add(one.order)
}

// settledTogether is how many rows are settled before they are written.
const settledTogether = 10_000

// settle reads amounts like 1.234 and dates like 3/4/2026 as the other values of
// the column show: those of the same extract, else those of all extracts. What
// they do not show stays unclear. It does nothing while no row changed.
func (b *Books) settle(ctx context.Context) error {
	isSettled, err := isSettled(ctx, b.db)
	if err != nil || isSettled {
		return err
	}
	tx, err := b.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	// One transaction: after a crash the rows are as they were, and the next answer settles them.
	if err := b.settleRows(ctx, tx); err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

func isSettled(ctx context.Context, q querier) (is bool, err error) {
	err = q.QueryRowContext(ctx, "SELECT settled = changes FROM made").Scan(&is)
	return is, err
}

func (b *Books) settleRows(ctx context.Context, tx *sql.Tx) error {
	if isSettled, err := isSettled(ctx, tx); err != nil || isSettled { // by another answer
		return err
	}
	all, byExtract, err := listShown(ctx, tx)
	if err != nil {
		return err
	}
	for last, more := int64(0), true; more; {
		rows, err := listUnsettled(ctx, tx, last)
		if err != nil {
			return err
		}
		for _, r := range rows {
			of, _, err := readRank(r.rank)
			if err != nil {
				return err
			}
			s := byExtract[of.extract]
			if s.decimal == 0 {
				s.decimal = all.decimal
			}
			if s.order == 0 {
				s.order = all.order
			}
			v := b.settings.readUnsettled(r.rawAmount, r.rawDate, s)
			_, err = tx.ExecContext(ctx, `UPDATE booked SET amount = CASE raw_amount WHEN '' THEN amount ELSE ? END, date = CASE raw_date WHEN '' THEN date ELSE ? END,
				unclear = ? WHERE id = ?`, string(v.amount), string(v.date), v.unclear, r.id)
			if err != nil {
				return err
			}
			last = r.id
		}
		more = len(rows) == settledTogether
	}
	_, err = tx.ExecContext(ctx, "UPDATE made SET changes = changes + 1, settled = changes + 1")
	return err
}

// listShown returns how each extract writes its values, and how all of them do.
func listShown(ctx context.Context, q querier) (all shown, byExtract map[string]shown, err error) {
	rows, err := q.QueryContext(ctx, "SELECT id, decimal, day_order FROM extract")
	if err != nil {
		return all, nil, err
	}
	defer rows.Close() // it is only read
	byExtract = map[string]shown{}
	for rows.Next() {
		var id string
		var s shown
		if err := rows.Scan(&id, &s.decimal, &s.order); err != nil {
			return all, nil, err
		}
		byExtract[id] = s
		all.add(s)
	}
	return all, byExtract, rows.Err()
}

// unsettled is a row with a value that can be read in two ways.
type unsettled struct {
	id                 int64
	rawAmount, rawDate string
	rank               []byte
}

func listUnsettled(ctx context.Context, q querier, after int64) (all []unsettled, err error) {
	rows, err := q.QueryContext(ctx, "SELECT id, raw_amount, raw_date, rank FROM booked WHERE id > ? AND (raw_amount <> '' OR raw_date <> '') ORDER BY id LIMIT ?", after, settledTogether)
	if err != nil {
		return nil, err
	}
	defer rows.Close() // it is only read
	for rows.Next() {
		var r unsettled
		if err := rows.Scan(&r.id, &r.rawAmount, &r.rawDate, &r.rank); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, rows.Err()
}

// value is what was read of an amount and a date.
type value struct {
	amount  archive.Decimal
	date    Day
	unclear string // what can be read in two ways
}

// readUnsettled reads values of which one alone can be read in two ways.
func (s Settings) readUnsettled(rawAmount, rawDate string, how shown) (v value) {
	var unclear []string
	if rawAmount != "" {
		amount, _, err := expected.ParseAmount(rawAmount, how.decimal)
		if v.amount = trimZeros(amount); err != nil {
			unclear = append(unclear, fmt.Sprintf("amount %v, and the other amounts do not show which: set extracts.csv.decimal", err))
		}
	}
	if rawDate != "" {
		day, err := expected.ParseDay(rawDate, how.order, s.Location)
		if v.date = Day(day); err != nil {
			unclear = append(unclear, fmt.Sprintf("date %v, and the other dates do not show which: ask the provider for dates like 2026-10-31", err))
		}
	}
	v.unclear = strings.Join(unclear, ", ")
	return v
}
