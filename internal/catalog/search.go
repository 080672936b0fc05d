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
// newest first, and returns what fn returns first. The catalog only proposes
// candidates: each is compared with the ledger. It enters what the ledger has
// committed before it answers; where it cannot, the error is an [*IncompleteError],
// after what was found. tell is called with the reason when the whole ledger has to be
// read before, which takes long.
func (c *Catalog) Search(ctx context.Context, q Query, tell func(why string), fn func(Hit) error) error {
	return c.SearchAfter(ctx, q, archive.Key{}, tell, fn)
}

// SearchAfter is Search for what stands behind an entry in the same order; a zero key: for everything.
func (c *Catalog) SearchAfter(ctx context.Context, q Query, after archive.Key, tell func(why string), fn func(Hit) error) error {
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
	return c.visit(ctx, question{part: pageRows, narrow: func(_ context.Context, _ queryer, s *selection) error {
		if name = strings.TrimRight(name, "/"); name != "" {
			s.addName(name)
		}
		return nil
	}}, tell, fn)
}

// List calls fn with each entry that the filter selects, the newest first. tell is that of Search.
func (c *Catalog) List(ctx context.Context, f Filter, tell func(why string), fn func(ledger.Entry) error) error {
	return c.ListSorted(ctx, f, Sorting{}, pageRows, tell, fn)
}

// ListSorted calls fn with each entry that the filter selects, in an order, and
// returns what fn returns first. It reads the list in parts of at most so many
// rows, some 100 bytes each. An entry that changes meanwhile is given as it is
// then; between two parts it may be given twice or not at all. tell is that of
// Search.
func (c *Catalog) ListSorted(ctx context.Context, f Filter, s Sorting, part int, tell func(why string), fn func(ledger.Entry) error) error {
	if !s.After.IsZero() {
		if _, ok, err := c.cfg.Ledger.Entry(s.After); err != nil || !ok {
			return errors.Join(err, fmt.Errorf("begin the list: no entry has the key %s", s.After))
		}
	}
	if s.By == BySeen && f.selectsAll() {
		return c.listAll(ctx, s, fn)
	}
	return c.visit(ctx, question{states: f.States, sorting: s, part: part, narrow: func(_ context.Context, _ queryer, s *selection) error {
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
	narrow  func(context.Context, queryer, *selection) error
	states  []ledger.State // empty: all
	sorting Sorting
	part    int // rows that are read at once: a reader that takes its time between two parts holds nothing
}

// pageRows is how many rows of a search are read at once.
const pageRows = 100

func byWords(q Query, after archive.Key) question {
	return question{part: pageRows, sorting: Sorting{After: after}, narrow: func(ctx context.Context, db queryer, s *selection) error { return s.addWords(ctx, db, q) }}
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
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			if err := c.noteUnread(f, err); err != nil {
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
func (c *Catalog) ready(ctx context.Context, until time.Time, tell func(string)) (f *readable, lacks string, err error) {
	for {
		c.mu.Lock()
		f, s := c.file, c.status()
		isNear := f != nil && s.Damaged == "" && f.at.N+mostBehind >= c.cfg.Ledger.Head().N
		c.mu.Unlock()
		switch {
		case ctx.Err() != nil:
			return nil, "", context.Cause(ctx)
		case isNear || !c.isKept:
			f, err := c.catchUpNow(ctx, f, s, tell)
			switch again := reasonToRebuild(err); {
			case again != nil && c.isKept:
				c.noteDamaged(again)
			case f == nil && err != nil:
				return nil, "", err
			case err != nil:
				return f, err.Error(), nil
			case f != nil:
				return f, "", nil
			}
		case s.Fault != "" || !time.Now().Before(until):
			why := cmp.Or(s.Describe(), "the catalog is made anew")
			if f != nil && s.Damaged == "" { // far behind, as after a day on a full disk
				return f, why, nil
			}
			return nil, "", &IncompleteError{why}
		}
		c.waitFor(ctx, 10*time.Millisecond)
	}
}

// catchUpNow enters what the ledger committed. f is nil where the file was closed meanwhile.
func (c *Catalog) catchUpNow(ctx context.Context, read *readable, s Status, tell func(string)) (f *readable, err error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if c.w == nil && !c.isKept && (read == nil || read.at.N != c.cfg.Ledger.Head().N) {
		if c.cfg.Ledger.Balance().Seen >= longWalk && s.Describe() != "" {
			tell(s.Describe())
		}
		return c.openPrivate(ctx)
	}
	if c.w != nil && c.w.at.N < c.cfg.Ledger.Head().N {
		err = c.catchUp(ctx, c.w)
		if !c.isKept && reasonToRebuild(err) != nil {
			return c.openPrivate(ctx)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.file, err
}

// longWalk is from how many entries on people are told why they wait.
const longWalk = 10_000

// spot is where a row stands in a list.
type spot struct {
	key   archive.Key
	value any // by which the list is sorted
}

// readPart reads the rows behind a spot; nil: from where the question begins.
func (c *Catalog) readPart(ctx context.Context, f *readable, q question, last *spot) (spots []spot, err error) {
	err = c.readFile(ctx, f, func(ctx context.Context) error {
		spots = nil
		var s selection
		if err := q.narrow(ctx, f.db, &s); err != nil {
			return err
		}
		if last == nil && !q.sorting.After.IsZero() {
			last = &spot{key: q.sorting.After}
			statement := "SELECT " + q.sorting.By.value() + " FROM document d WHERE key = ?"
			if err := f.db.QueryRowContext(ctx, statement, last.key[:]).Scan(&last.value); err != nil && !errors.Is(err, sql.ErrNoRows) {
				return err
			}
		}
		statement, args := q.statement(s, last)
		return visitRows(ctx, f.db, func(rows *sql.Rows) error {
			var key []byte
			var one spot
			var id int64
			err := rows.Scan(&id, &key, &one.value)
			copy(one.key[:], key)
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
	from := "document d"
	if len(s.matches) > 0 {
		match := strings.Join(s.matches, " AND ")
		if q.sorting.By == BySeen && len(q.states) == 0 { // the index gives the rows in their order
			from = "words CROSS JOIN document d ON d.id = words.rowid"
			s.add("words MATCH ?", match)
		} else {
			s.add("d.id IN (SELECT rowid FROM words WHERE words MATCH ?)", match)
		}
	}
	if last != nil {
		q.sorting.addBehind(&s, from, *last)
	}
	id := "d.id"
	if from != "document d" {
		id = "words.rowid"
	}
	one := "SELECT " + id + " AS i, d.key, " + q.sorting.By.value() + " AS v FROM " + from + " WHERE " + strings.Join(append(s.where, "true"), " AND ")
	statement, args = one, s.args
	for i, state := range q.states {
		if i == 0 {
			statement, args = one+" AND d.state = ?", append(args[:len(args):len(args)], int(state))
			continue
		}
		statement, args = statement+" UNION ALL "+one+" AND d.state = ?", append(append(args, s.args...), int(state))
	}
	return statement + " ORDER BY " + q.sorting.order() + " LIMIT ?", append(args, q.part)
}

// readFile calls fn while the file is open that searches read.
func (c *Catalog) readFile(ctx context.Context, f *readable, fn func(context.Context) error) (err error) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	if !f.isPrivate {
		c.mu.Lock()
		isOpen := c.file == f
		c.mu.Unlock()
		if !isOpen {
			return errClosed
		}
		// A connection opens what lies under the name now. Another file there
		// would share the log of the open one.
		if err := c.checkFile(f.of); err != nil {
			return err
		}
	}
	question, done := f.untilEnd(ctx)
	return done(fn(question))
}

var errClosed = &rebuildError{"it was closed"}

// noteUnread tells the writer of damage that a question met. It returns nil
// where the file will be another one.
func (c *Catalog) noteUnread(f *readable, err error) error {
	again := reasonToRebuild(err)
	switch {
	case errors.Is(err, errEnding):
		return err
	case again == nil || f.isPrivate:
		c.cfg.Log.Error("the catalog cannot be read", "err", err)
		return &IncompleteError{"the catalog cannot be read: " + err.Error()}
	case !c.isKept:
		c.mu.Lock()
		c.told.Fault = again.why
		c.mu.Unlock()
		return c.Close()
	case again != errClosed:
		c.noteDamaged(again)
	}
	return nil
}

// noteDamaged lets the writer make the file anew.
func (c *Catalog) noteDamaged(why *rebuildError) {
	c.mu.Lock()
	c.told.Damaged, c.damage = why.why, why
	c.mu.Unlock()
	c.Wake()
}
