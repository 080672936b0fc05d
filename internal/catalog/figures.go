package catalog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Figures are sums over the rows: how many documents were archived or delivered
// on a day, and what the service counts as successes. Triggers keep them with
// each row. Nothing decides by them, and they say so where they lack something.

// successes is what a row of figure counts that counts successes of the
// service, and no documents in a state.
const successes = int(ledger.None)

// figureTriggers keep the figures when a row of a document comes, changes or goes.
func figureTriggers() []string {
	const (
		counted = "state, %[1]s.completed, %[1]s.origin, %[1]s.successes"
		count   = " INSERT INTO figure SELECT * FROM (" +
			"SELECT %[1]s.state, %[1]s.completed, %[1]s.origin, %[2]s1, 0, 0 WHERE %[1]s.completed IS NOT NULL" +
			" UNION ALL SELECT %[3]d, value ->> 0, %[1]s.origin, %[2]s1, %[2]s(value ->> 1 = 0), %[2]s(value ->> 1) FROM json_each(%[1]s.successes)" +
			") WHERE true ON CONFLICT DO UPDATE SET n = n + excluded.n, unsized = unsized + excluded.unsized, bytes = bytes + excluded.bytes;"
	)
	more, less := fmt.Sprintf(count, "new", "+", successes), fmt.Sprintf(count, "old", "-", successes)
	old, now := fmt.Sprintf("(old."+counted+")", "old"), fmt.Sprintf("(new."+counted+")", "new")
	return []string{
		"CREATE TRIGGER figure_insert AFTER INSERT ON document BEGIN" + more + " END",
		"CREATE TRIGGER figure_delete AFTER DELETE ON document BEGIN" + less + " END",
		"CREATE TRIGGER figure_update AFTER UPDATE ON document WHEN " + old + " IS NOT " + now + " BEGIN" + less + more + " END",
	}
}

// figuresOf returns the columns of a row that the figures count: the day on
// which the entry was archived, or delivered, in a time zone; and of each
// success of the service its day and the bytes that were sent, 0 where they are
// not known.
func figuresOf(e ledger.Entry, zone *time.Location) (completed, counted any) {
	if at := e.CompletedAt(); (e.State == ledger.Archived || e.State == ledger.Delivered) && !at.IsZero() {
		completed = dayIn(zone, at)
	}
	var all []string
	for _, t := range e.Transactions() {
		all = append(all, fmt.Sprintf("[%d,%d]", dayIn(zone, t.At), max(t.Size, 0)))
	}
	if len(all) > 0 {
		counted = "[" + strings.Join(all, ",") + "]"
	}
	return completed, counted
}

// dayIn numbers the calendar days of a time zone: 0 is the first of 1970.
func dayIn(zone *time.Location, t time.Time) int64 {
	y, m, d := t.In(zone).Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60) // at midnight: nothing is left over
}

// describeZone lists when the clocks of a time zone change, and to what: the
// days of the figures depend on it, and on no name.
func describeZone(zone *time.Location) string {
	var b strings.Builder
	for at := time.Unix(0, 0).In(zone); at.Year() < 2100; {
		_, offset := at.Zone()
		fmt.Fprintln(&b, at.Unix(), offset)
		_, end := at.ZoneBounds()
		if end.IsZero() {
			break
		}
		if at = at.AddDate(0, 0, 1); at.Before(end) { // package time may give an end that is no later, at the end of a leap year
			at = end
		}
	}
	return b.String()
}

// CompletedOn counts, by drop folder, the documents that were archived on the
// day of a time, by the service's clock, or with the state Delivered those that
// were delivered, by this machine's clock.
func (c *Catalog) CompletedOn(ctx context.Context, state ledger.State, day time.Time) (byDrop map[string]int, err error) {
	byDrop = map[string]int{}
	err = c.readFigures(ctx, func(rows *sql.Rows) error {
		var drop string
		var n int
		err := rows.Scan(&drop, &n)
		byDrop[drop] = n
		return err
	}, "SELECT drop_name, sum(n) AS all_n FROM figure JOIN origin ON id = origin WHERE what = ? AND day = ? GROUP BY drop_name HAVING all_n > 0",
		int(state), dayIn(c.cfg.Location, day))
	return byDrop, err
}

// CompletedByDay is [Catalog.CompletedOn] for each of the days up to that of a
// time, the oldest first, whatever the drop folder.
func (c *Catalog) CompletedByDay(ctx context.Context, state ledger.State, newest time.Time, days int) ([]int, error) {
	last, counts := dayIn(c.cfg.Location, newest), make([]int, days)
	first := last - int64(days) + 1
	err := c.readFigures(ctx, func(rows *sql.Rows) error {
		var day int64
		var n int
		err := rows.Scan(&day, &n)
		if err == nil {
			counts[day-first] = n
		}
		return err
	}, "SELECT day, sum(n) FROM figure WHERE what = ? AND day BETWEEN ? AND ? GROUP BY day", int(state), first, last)
	return counts, err
}

// LastDelivered returns when a document was delivered last, by this machine's
// clock; zero: none was.
func (c *Catalog) LastDelivered(ctx context.Context) (at time.Time, err error) {
	err = c.readFigures(ctx, func(rows *sql.Rows) error {
		var ms sql.NullInt64
		err := rows.Scan(&ms)
		if ms.Valid {
			at = time.UnixMilli(ms.Int64)
		}
		return err
	}, "SELECT max(delivered) FROM document WHERE delivered IS NOT NULL")
	return at, err
}

// Totals returns what each vault archived in each month of the time zone from
// that of a time on, by vault and month, and the first month before it in which
// the vault archived something of known size. That is what the bills of a year
// and their forecast need.
func (c *Catalog) Totals(ctx context.Context, since time.Time) (all []ledger.Total, err error) {
	y, m, _ := since.In(c.cfg.Location).Date()
	from := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC).Unix() / (24 * 60 * 60)
	err = c.readFigures(ctx, func(rows *sql.Rows) error {
		var vault string
		var year, month int
		var n, unsized, bytes int64
		err := rows.Scan(&vault, &year, &month, &n, &unsized, &bytes)
		all = append(all, ledger.Total{Vault: archive.VaultID(vault), Year: year, Month: month, Documents: uint64(n), Unsized: uint64(unsized), Bytes: uint64(bytes)})
		return err
	}, `WITH success AS (SELECT vault, day, date(day * 86400, 'unixepoch', 'start of month') AS month, n, unsized, bytes FROM figure JOIN origin ON id = origin WHERE what = ?1),
		sized AS (SELECT vault, (SELECT s.month FROM success s WHERE s.vault = v.vault AND s.n > s.unsized ORDER BY s.day LIMIT 1) AS month FROM (SELECT DISTINCT vault FROM origin) v)
		SELECT vault, CAST(substr(month, 1, 4) AS INTEGER), CAST(substr(month, 6, 2) AS INTEGER), sum(n), sum(unsized), sum(bytes) FROM (
			SELECT * FROM success WHERE day >= ?2
			UNION ALL SELECT s.* FROM sized JOIN success s USING (vault, month) WHERE day < ?2)
		GROUP BY vault, month HAVING sum(n) > 0 ORDER BY vault, month`, successes, from)
	return all, err
}

// CatchUp enters what the ledger has committed, so that figures are as new as
// the balance. It does not wait for a file that is being made, nor make a
// private one of a large ledger. lacks says why figures may lack something;
// empty: they do not.
func (c *Catalog) CatchUp(ctx context.Context) (lacks string, err error) {
	c.mu.Lock()
	f, why := c.file, c.status().Describe()
	c.mu.Unlock()
	if f == nil && !c.isKept && why != "" && c.cfg.Ledger.Balance().Seen >= longWalk {
		return why, nil
	}
	_, lacks, err = c.ready(ctx, time.Time{}, func(string) {})
	if incomplete, is := errors.AsType[*IncompleteError](err); is {
		return incomplete.Why, nil
	}
	return lacks, err
}

// readFigures calls fn with each row that a statement gives, of the file as it
// is. The error is an [*IncompleteError] where there is none.
func (c *Catalog) readFigures(ctx context.Context, fn func(*sql.Rows) error, statement string, args ...any) error {
	c.mu.Lock()
	f, why := c.file, c.status().Describe()
	c.mu.Unlock()
	if f == nil {
		return &IncompleteError{cmp.Or(why, "no catalog is open")}
	}
	err := c.readFile(ctx, f, func(ctx context.Context) error { return visitRows(ctx, f.db, fn, statement, args...) })
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return cmp.Or(c.noteUnread(f, err), error(&IncompleteError{"the catalog cannot be read: " + err.Error()}))
	}
	return nil
}
