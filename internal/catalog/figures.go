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
// on a day, and what the service counts as successes. Each transaction that
// changes rows takes away what they counted before, and adds what they count now.
// Nothing decides by them, and they say so where they lack something.

// successes is what a row of figure counts that counts successes of the
// service, and no documents in a state.
const successes = int(ledger.None)

// countChanged adds what the rows that are changing count to the figures, or with
// -1 takes it away.
var countChanged = fmt.Sprintf(`INSERT INTO figure SELECT * FROM (
	SELECT state, completed, origin, ?1 * count(*), 0, 0 FROM changed WHERE completed IS NOT NULL GROUP BY 1, 2, 3
	UNION ALL SELECT %d, value ->> 0, origin, ?1 * count(*), ?1 * sum(value ->> 1 = 0), ?1 * sum(value ->> 1) FROM changed, json_each(successes) GROUP BY 1, 2, 3
	) WHERE true ON CONFLICT DO UPDATE SET n = n + excluded.n, unsized = unsized + excluded.unsized, bytes = bytes + excluded.bytes`, successes)

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
	err = c.readRows(ctx, func(rows *sql.Rows) error {
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
	err := c.readRows(ctx, func(rows *sql.Rows) error {
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
	err = c.readRows(ctx, func(rows *sql.Rows) error {
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
	err = c.readRows(ctx, func(rows *sql.Rows) error {
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

// RejectedSince returns the times at which the folders were taken that are
// rejected now, the newest first and most of them at most, as far as they were
// taken at a time or after it. Times are whole milliseconds.
func (c *Catalog) RejectedSince(ctx context.Context, since time.Time, most int) (taken []time.Time, err error) {
	// SQLite by itself takes the index by state and reads each row, which takes
	// seventeen times as long. The state is no parameter: with one, SQLite
	// could not know that the index has all such rows.
	newest := fmt.Sprintf("SELECT seen FROM document INDEXED BY document_rejected WHERE state = %d AND seen >= ? ORDER BY seen DESC LIMIT ?", ledger.Rejected)
	err = c.readRows(ctx, func(rows *sql.Rows) error {
		var at int64
		err := rows.Scan(&at)
		taken = append(taken, time.UnixMilli(at))
		return err
	}, newest, millis(since), most)
	return taken, err
}

// NewestIn returns the keys of the newest documents in a state, most of them at most. The newest
// comes first.
func (c *Catalog) NewestIn(ctx context.Context, state ledger.State, most int) (keys []archive.Key, err error) {
	err = c.readRows(ctx, func(rows *sql.Rows) error {
		var b sql.RawBytes
		err := rows.Scan(&b)
		keys = append(keys, keyIn(b))
		return err
	}, "SELECT key FROM document WHERE state = ? ORDER BY id DESC LIMIT ?", int(state), most)
	return keys, err
}

// CatchUp enters what the ledger has committed, so that figures are as new as
// the balance. It does not wait for a file that is being made, nor make that of
// a large ledger. lacks says why figures may lack something; empty: they do not.
func (c *Catalog) CatchUp(ctx context.Context) (lacks string, err error) {
	_, lacks, err = c.ready(ctx, time.Time{}, nil)
	if incomplete, is := errors.AsType[*IncompleteError](err); is {
		return incomplete.Why, nil
	}
	return lacks, err
}

// readRows calls fn with each row that a statement gives, of the file as it is.
// The error is an [*IncompleteError] where there is none, or it cannot be read.
func (c *Catalog) readRows(ctx context.Context, fn func(*sql.Rows) error, statement string, args ...any) error {
	c.mu.Lock()
	f, why := c.file, c.status().Describe()
	c.mu.Unlock()
	if f == nil {
		return &IncompleteError{cmp.Or(why, "no catalog is open")}
	}
	err := c.readFile(ctx, f, func(ctx context.Context) error { return visitRows(ctx, f.read, fn, statement, args...) })
	if err == nil {
		return nil
	}
	return cmp.Or(c.noteUnread(ctx, err), error(&IncompleteError{"the catalog cannot be read: " + err.Error()}))
}

// countEvery is how often the rows are counted. A row that is missing would be
// missing from answers.
const countEvery = 24 * time.Hour

// Comparison tells how the rows of a catalog compare with the ledger's balance.
// It says nothing about the ledger: where they differ, the catalog is wrong,
// and the running daemon makes it anew.
type Comparison struct {
	NotDone string // why nothing was compared; empty: it was
	Differs string // how rows and balance differ; empty: they do not
}

// Compare enters what the ledger has committed, counts the rows in each state and
// compares them with the ledger's balance. If they differ, the catalog that runs
// is made anew. It must not be called where no catalog is kept.
func (c *Catalog) Compare(ctx context.Context) (of Comparison) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.isKept && c.file == nil {
		return Comparison{NotDone: cmp.Or(c.Status().Describe(), "it is closed")}
	}
	err := c.follow(ctx)
	if err != nil && c.file == nil {
		return Comparison{NotDone: "the catalog is not complete: " + err.Error() + startsMake}
	}
	if err == nil {
		of.NotDone, err = c.countRows(ctx)
	}
	again := reasonToRebuild(err)
	switch {
	case again != nil:
		c.noteDamaged(again)
		return Comparison{Differs: again.why}
	case err != nil:
		return Comparison{NotDone: err.Error()}
	}
	return of
}

// countDaily counts the rows once a day. Those of a new file that differ show
// that the balance is wrong, which the check of the ledger tells. The caller
// holds writing.
func (c *Catalog) countDaily(ctx context.Context) error {
	if time.Since(c.counted) < countEvery {
		return nil
	}
	notDone, err := c.countRows(ctx)
	if again := reasonToRebuild(err); again != nil && c.made.After(c.counted) {
		c.cfg.Log.Error("the catalog was made anew and differs", "why", again.why)
		err = nil
	}
	if err == nil && notDone == "" {
		c.counted = time.Now()
	}
	return err
}

// countRows compares the number of rows in each state with the ledger's balance;
// notDone says why it did not. The error is a [*rebuildError] where they differ.
// The caller holds writing.
func (c *Catalog) countRows(ctx context.Context) (notDone string, err error) {
	before, balance := c.cfg.Ledger.Head(), c.cfg.Ledger.Balance()
	if before != c.file.at || before != c.cfg.Ledger.Head() { // the balance may be a later one than the head
		return "the ledger changed meanwhile", nil
	}
	var counted ledger.Balance
	err = visitRows(context.WithoutCancel(ctx), c.file.db, func(rows *sql.Rows) error {
		var state, n uint64
		if err := rows.Scan(&state, &n); err != nil {
			return err
		}
		if state >= uint64(len(counted.States)) {
			return &rebuildError{fmt.Sprintf("it has %d documents in a state %d that does not exist", n, state)}
		}
		counted.States[state] = n
		counted.Seen += n
		return nil
	}, "SELECT state, count(*) FROM document GROUP BY state")
	if err == nil && counted != balance {
		err = &rebuildError{fmt.Sprintf("its rows (%v) are not those of the ledger (%v)", counted, balance)}
	}
	return "", err
}
