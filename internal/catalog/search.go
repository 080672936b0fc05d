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

// IncompleteError says why an answer may lack documents.
type IncompleteError struct{ Why string }

func (e *IncompleteError) Error() string {
	return "the answer is not complete: " + e.Why
}

// Search calls fn with each entry of the ledger that the query finds, the
// newest first, from behind an entry on, or with a zero key all of them. It
// returns what fn returns first. The catalog only proposes
// candidates: each is compared with the ledger. It enters what the ledger has
// committed before it answers; where it cannot, the error is an [*IncompleteError],
// after what was found. tell is called with the reason when the whole ledger has to be
// read before, which takes long.
func (c *Catalog) Search(ctx context.Context, q Query, after archive.Key, tell func(why string), fn func(Hit) error) error {
	return c.visit(ctx, byWords(q, after), tell, func(e ledger.Entry) error {
		doc, _, err := c.cfg.Ledger.Document(e.Key)
		if err != nil {
			return err
		}
		hit, err := q.Match(e, doc)
		if err != nil || hit == nil {
			return err
		}
		return fn(*hit)
	})
}

// FindCandidates calls fn with each entry that the query finds, and with others that it may find by their words, the newest first. tell
// is that of Search.
func (c *Catalog) FindCandidates(ctx context.Context, q Query, tell func(why string), fn func(ledger.Entry) error) error {
	return c.visit(ctx, byWords(q, archive.Key{}), tell, fn)
}

// FindNamed calls fn with each entry whose folder has the name, in any case of letters, or had it when it was dropped; the newest
// comes first. The name may be a path. fn may be called with other entries too. tell is that of Search.
func (c *Catalog) FindNamed(ctx context.Context, name string, tell func(why string), fn func(ledger.Entry) error) error {
	return c.visit(ctx, question{part: pageRows, narrow: func(_ context.Context, _ *sql.DB, s *selection) error {
		if name = strings.TrimRight(name, "/"); name != "" {
			s.addName(name)
		}
		return nil
	}}, tell, fn)
}

// List calls fn with each entry that the filter selects, in an order, and
// returns what fn returns first. It reads the list in parts of at most so many
// rows, some 100 bytes each. An entry that changes meanwhile is given as it is
// then; between two parts it may be given twice or not at all. tell is that of
// Search.
func (c *Catalog) List(ctx context.Context, f Filter, s Sorting, part int, tell func(why string), fn func(ledger.Entry) error) error {
	if !s.After.IsZero() {
		if _, ok, err := c.cfg.Ledger.Entry(s.After); err != nil || !ok {
			return errors.Join(err, fmt.Errorf("begin the list: no entry has the key %s", s.After))
		}
	}
	if s.By == BySeen && f.selectsAll() {
		return c.listAll(ctx, s, fn)
	}
	return c.visit(ctx, question{states: f.States, sorting: s, part: part, narrow: func(_ context.Context, _ *sql.DB, s *selection) error {
		s.addFilter(f)
		return nil
	}}, tell, func(e ledger.Entry) error {
		isSelected, err := c.selects(f, e)
		if err != nil || !isSelected {
			return err
		}
		return fn(e)
	})
}

// listAll calls fn with all entries in the order of their keys, which is that
// of the ledger: it needs no catalog.
func (c *Catalog) listAll(ctx context.Context, s Sorting, fn func(ledger.Entry) error) error {
	walk, behind := c.cfg.Ledger.EntriesNewestFirst, -1
	if s.Reverse {
		walk, behind = c.cfg.Ledger.EntriesOldestFirst, 1
	}
	return walk(func(e ledger.Entry) error {
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !s.After.IsZero() && compareKeys(e.Key, s.After) != behind:
			return nil
		}
		return fn(e)
	})
}

// question asks for rows.
type question struct {
	narrow  func(context.Context, *sql.DB, *selection) error
	states  []ledger.State // empty: all
	sorting Sorting
	part    int // rows that are read at once: a reader that takes its time between two parts holds nothing
}

// pageRows is how many rows of a search are read at once.
const pageRows = 100

func byWords(q Query, after archive.Key) question {
	return question{part: pageRows, sorting: Sorting{After: after}, narrow: func(ctx context.Context, db *sql.DB, s *selection) error { return s.addWords(ctx, db, q) }}
}

// patience is how long a question waits for a file that is being made.
const patience = 3 * time.Second

// visit calls fn with the entries of the rows that a question is about, in order.
func (c *Catalog) visit(ctx context.Context, q question, tell func(string), fn func(ledger.Entry) error) error {
	var last *spot
	until := time.Now().Add(patience)
	for {
		f, lacks, err := c.ready(ctx, until, tell)
		if err != nil {
			return err
		}
		spots, err := c.readPart(ctx, f, q, last)
		if err != nil {
			if err := c.noteUnread(ctx, err); err != nil {
				return err
			}
			continue // the file is made anew, and ready waits for it
		}
		for i := range spots {
			last = &spots[i]
			e, ok, err := c.cfg.Ledger.Entry(last.key)
			if err == nil && ok {
				err = fn(e)
			}
			if err != nil {
				return err
			}
		}
		switch {
		case len(spots) == q.part:
		case lacks != "":
			return &IncompleteError{lacks}
		default:
			return nil
		}
	}
}

// ready returns a file that has all that the ledger had when it was called;
// lacks says why it may not have it. The error is an [*IncompleteError] where
// no file is ready until then.
func (c *Catalog) ready(ctx context.Context, until time.Time, tell func(string)) (f *file, lacks string, err error) {
	for ctx.Err() == nil {
		c.mu.Lock()
		f, s, damage := c.file, c.status(), c.damage
		isNear := f != nil && damage == nil && f.at.N+mostBehind >= c.cfg.Ledger.Head().N
		c.mu.Unlock()
		if isNear || !c.isKept {
			f, err := c.enterNow(ctx, tell)
			again := reasonToRebuild(err)
			switch {
			case err == nil:
				return f, "", nil
			case again == nil && f != nil && ctx.Err() == nil:
				return f, err.Error(), nil
			case again == nil:
				return nil, "", err
			case again != errClosed:
				c.noteDamaged(again)
			}
		} else if s.Fault != "" || !time.Now().Before(until) {
			switch {
			case damage != nil:
				return nil, "", &IncompleteError{"the catalog is made anew: " + damage.why}
			case f == nil:
				return nil, "", &IncompleteError{s.Describe()}
			}
			return f, s.Describe(), nil // far behind, as after a day on a full disk
		}
		c.waitFor(ctx, 10*time.Millisecond)
	}
	return nil, "", context.Cause(ctx)
}

// startsMake says who completes a file that a command leaves as it is.
const startsMake = "; vaultd makes it when it starts"

// longWalk is from how many entries on people are told why they wait.
const longWalk = 10_000

// enterNow enters what the ledger committed, and returns the open file; nil where
// it was closed meanwhile. Without a daemon it opens the file, and makes it anew:
// that of a large ledger if tell is there to say that it takes long.
func (c *Catalog) enterNow(ctx context.Context, tell func(string)) (*file, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.isKept && c.file == nil {
		return nil, errClosed
	}
	err := c.follow(ctx)
	again := reasonToRebuild(err)
	if again == nil || c.isKept {
		return c.file, err
	}
	why, isLong := "the catalog is not complete: "+again.why, c.cfg.Ledger.Balance().Seen >= longWalk
	if !c.made.IsZero() || isLong && tell == nil {
		return nil, &IncompleteError{why + startsMake}
	}
	if isLong {
		tell(why)
	}
	c.made = time.Now()
	_ = c.closeFile() // it will be removed
	if err := c.makeFile(ctx); err != nil {
		if _, damaged := errors.AsType[*ledger.DamageError](err); damaged || ctx.Err() != nil {
			return nil, err
		}
		return nil, &IncompleteError{err.Error()}
	}
	return c.file, c.follow(ctx)
}

// spot is where a row stands in a list.
type spot struct {
	key   archive.Key
	value any // by which the list is sorted
}

// readPart reads the rows behind a spot; nil: from where the question begins.
func (c *Catalog) readPart(ctx context.Context, f *file, q question, last *spot) (spots []spot, err error) {
	err = c.readFile(ctx, f, func(ctx context.Context) error {
		spots = nil
		var s selection
		if err := q.narrow(ctx, f.read, &s); err != nil {
			return err
		}
		if last == nil && !q.sorting.After.IsZero() {
			last = &spot{key: q.sorting.After}
			statement := "SELECT " + orders[q.sorting.By].value + " FROM document d WHERE key = ?"
			if err := f.read.QueryRowContext(ctx, statement, last.key[:]).Scan(&last.value); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		statement, args := q.statement(s, last)
		return visitRows(ctx, f.read, func(rows *sql.Rows) error {
			var key []byte
			var one spot
			var id int64
			err := rows.Scan(&id, &key, &one.value)
			one.key = keyIn(key)
			spots = append(spots, one)
			return err
		}, statement, args...)
	})
	return spots, err
}

// statement returns the statement for the rows of a selection behind a spot.
// Those of several states are asked for one after the other, so that the index
// of states helps.
func (q question) statement(s selection, last *spot) (statement string, args []any) {
	from, id := "document d", "d.id"
	if len(s.matches) > 0 {
		match := strings.Join(s.matches, " AND ")
		if q.sorting.By == BySeen && len(q.states) == 0 { // the index gives the rows in their order
			from, id = "words CROSS JOIN document d ON d.id = words.rowid", "words.rowid"
			s.add("words MATCH ?", match)
		} else {
			s.add("d.id IN (SELECT rowid FROM words WHERE words MATCH ?)", match)
		}
	}
	if last != nil {
		q.sorting.addBehind(&s, id, *last)
	}
	one := "SELECT " + id + " AS i, d.key, " + orders[q.sorting.By].value + " AS v FROM " + from + " WHERE " + strings.Join(append(s.where, "true"), " AND ")
	all, args := []string{one}, s.args
	if len(q.states) > 0 {
		all, args = nil, nil
	}
	for _, state := range q.states {
		all, args = append(all, fmt.Sprintf("%s AND d.state = %d", one, state)), append(args, s.args...)
	}
	return strings.Join(all, " UNION ALL ") + " ORDER BY " + q.sorting.terms() + " LIMIT ?", append(args, q.part)
}

// errEnding says that a question was ended because vaultd stops.
var errEnding = fmt.Errorf("vaultd is stopping: %w", context.Canceled)

// readFile calls fn for one question to an open file. It ends when ctx does, and
// when the file is to be closed, which waits for no question.
func (c *Catalog) readFile(ctx context.Context, f *file, fn func(context.Context) error) error {
	c.reading.RLock()
	defer c.reading.RUnlock()
	// A connection opens what lies under the name now. Another file there would
	// share the log of the open one.
	if err := c.checkFile(f); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(f.ending, cancel)()
	err := fn(ctx)
	switch {
	case err == nil || f.ending.Err() == nil:
		return err
	case errors.Is(context.Cause(f.ending), errClosed):
		return errClosed
	}
	return errEnding
}

// noteUnread notes damage that a question met. It returns nil where the file
// will be another one.
func (c *Catalog) noteUnread(ctx context.Context, err error) error {
	again := reasonToRebuild(err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errEnding):
		return err
	case again == nil:
		c.cfg.Log.Error("the catalog cannot be read", "err", err)
		return &IncompleteError{"the catalog cannot be read: " + err.Error()}
	case again != errClosed:
		c.noteDamaged(again)
	}
	return nil
}

// queryer is a database, or a transaction of it.
type queryer interface {
	QueryContext(context.Context, string, ...any) (*sql.Rows, error)
}

// visitRows calls scan with each row. A value of another kind is damage:
// without that row an answer would be silently incomplete.
func visitRows(ctx context.Context, db queryer, scan func(*sql.Rows) error, statement string, args ...any) error {
	rows, err := db.QueryContext(ctx, statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close() // read only
	for rows.Next() {
		if err := scan(rows); err != nil && ctx.Err() == nil {
			return cmp.Or(reasonToRebuild(err), &rebuildError{"it has a row that cannot be read: " + err.Error()})
		}
	}
	return rows.Err()
}
