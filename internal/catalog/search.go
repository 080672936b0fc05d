package catalog

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"math"
	"path"
	"slices"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Search calls fn with each entry of the ledger that the query finds, the
// newest first, and returns what fn returns first. The catalog only proposes
// candidates: each is compared with the ledger, and what the catalog does not
// have yet is looked up there. If the catalog cannot help, the ledger is read
// instead; tell is called with the reason when that takes long.
func (c *Catalog) Search(ctx context.Context, q Query, tell func(why string), fn func(Hit) error) error {
	return c.SearchAfter(ctx, q, archive.Key{}, tell, fn)
}

// SearchAfter is Search for what stands behind an entry in the same order; a zero key: for everything.
func (c *Catalog) SearchAfter(ctx context.Context, q Query, after archive.Key, tell func(why string), fn func(Hit) error) error {
	return c.findEntries(ctx, q.question, after, tell, func(e ledger.Entry) error {
		doc, _, err := c.cfg.Ledger.DocumentTexts(e.Key)
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
	return c.findEntries(ctx, q.question, archive.Key{}, tell, fn)
}

// FindNamed calls fn with each entry whose folder has the name, in any case of letters, or had it when it was dropped; the newest
// comes first. The name may be a path. fn may be called with other entries too. tell is that of Search.
func (c *Catalog) FindNamed(ctx context.Context, name string, tell func(why string), fn func(ledger.Entry) error) error {
	name = strings.TrimRight(name, "/")
	return c.findEntries(ctx, func(context.Context, *sql.DB) (question, error) {
		if name == "" {
			return nil, &cannotHelp{}
		}
		return matching(quoted(nameToken(path.Base(name)))), nil
	}, archive.Key{}, tell, fn)
}

// List calls fn with each entry that the filter selects, the newest first. tell is that of Search.
func (c *Catalog) List(ctx context.Context, f Filter, tell func(why string), fn func(ledger.Entry) error) error {
	return c.findEntries(ctx, f.question, archive.Key{}, tell, func(e ledger.Entry) error {
		isSelected, err := c.selects(f, e)
		if err != nil || !isSelected {
			return err
		}
		return fn(e)
	})
}

// question returns the statement for the rows with ids below one, the largest first, at most [pageRows].
type question func(below int64) (statement string, args []any)

// findEntries calls fn with the entries behind a key that may answer a question, the newest first, each once.
func (c *Catalog) findEntries(ctx context.Context, ask func(context.Context, *sql.DB) (question, error), after archive.Key, tell func(why string), fn func(ledger.Entry) error) error {
	s := &candidates{c: c, ask: ask, last: after}
	err := s.visit(ctx, func(k archive.Key) error {
		e, ok, err := c.cfg.Ledger.Entry(k)
		if err != nil || !ok {
			return err
		}
		return fn(e)
	})
	cannot, is := errors.AsType[*cannotHelp](err)
	if !is {
		return err
	}
	n := 0
	return c.cfg.Ledger.EntriesNewestFirst(func(e ledger.Entry) error {
		if n++; n == longWalk && cannot.why != "" {
			tell(cannot.why)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case s.isGiven(e.Key):
			return nil
		}
		return fn(e)
	})
}

// longWalk is after how many entries people are told why they wait.
const longWalk = 10_000

// cannotHelp says why the whole ledger has to be read; why is empty where every such question reads it, and where no catalog is kept.
type cannotHelp struct{ why string }

func (e *cannotHelp) Error() string { return e.why }

// candidates gives the keys that may answer a question, the newest first.
//
// Rows are read in the order of their ids, the largest first. That is the order of keys but for rows that are late: an earlier row
// has a later key. A late row is held until the rows with later keys were given.
type candidates struct {
	c   *Catalog
	ask func(context.Context, *sql.DB) (question, error)

	made  uint64        // the file that is read
	rows  question      // nil: nothing was read yet
	below int64         // the next rows have smaller ids
	held  []archive.Key // not given yet
	last  archive.Key   // given last; zero if missing
}

// pageRows is how many rows are read at once. A reader that takes its time between two pages holds nothing.
const pageRows = 100

func (s *candidates) visit(ctx context.Context, fn func(archive.Key) error) error {
	for {
		rows, err := s.readPage(ctx)
		switch _, told := errors.AsType[*cannotHelp](err); {
		case errors.Is(err, errOtherFile):
			if err := s.begin(); err != nil {
				return err
			}
			continue
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case told:
			return err
		case err != nil:
			return s.c.noteUnread(err)
		}
		end := len(rows) < pageRows
		var floor archive.Key // every row that was not read yet has an earlier key
		for _, r := range rows {
			s.held = append(s.held, r.key)
			s.below = r.id
			if !r.late {
				floor = r.key
			}
		}
		if floor.IsZero() && !end {
			continue
		}
		slices.SortFunc(s.held, func(a, b archive.Key) int { return bytes.Compare(b[:], a[:]) })
		n := 0
		for n < len(s.held) && (end || !isEarlier(s.held[n], floor)) {
			k := s.held[n]
			n++
			if s.isGiven(k) {
				continue
			}
			s.last = k
			if err := fn(k); err != nil {
				return err
			}
		}
		s.held = slices.Delete(s.held, 0, n)
		if end {
			return nil
		}
	}
}

// isGiven reports whether a key was given, or would have been.
func (s *candidates) isGiven(k archive.Key) bool { return !s.last.IsZero() && !isEarlier(k, s.last) }

type candidate struct {
	id   int64
	key  archive.Key
	late bool
}

var errOtherFile = errors.New("another file was opened")

// readPage reads the next rows; the error is errOtherFile before begin and where another file was opened since.
func (s *candidates) readPage(ctx context.Context) (rows []candidate, err error) {
	s.c.reading.RLock()
	defer s.c.reading.RUnlock()
	s.c.mu.Lock()
	f, made, why := s.c.file, s.c.made, s.c.status().Describe()
	s.c.mu.Unlock()
	switch {
	case f == nil:
		return nil, &cannotHelp{why}
	case s.made != made:
		return nil, errOtherFile
	}
	// A connection opens what lies under the name now. Another file there would share the log of the open one.
	if err := s.c.checkFile(f.of); err != nil {
		return nil, err
	}
	ctx, done := f.untilEnd(ctx)
	defer func() { err = done(err) }()
	if s.rows == nil {
		if s.rows, err = s.ask(ctx, f.db); err != nil {
			return nil, err
		}
	}
	statement, args := s.rows(s.below)
	found, err := f.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close() // read only
	for found.Next() {
		var r candidate
		var key []byte
		if err := found.Scan(&r.id, &key, &r.late); err != nil {
			return nil, err
		}
		copy(r.key[:], key)
		rows = append(rows, r)
	}
	return rows, found.Err()
}

// begin prepares to read the file that is open now. What the file does not tell of yet is looked up in the journal.
func (s *candidates) begin() error {
	s.c.mu.Lock()
	f, made, why := s.c.file, s.c.made, s.c.status().Describe()
	var from uint64
	if f != nil {
		from = f.at.head.N + 1
	}
	s.c.mu.Unlock()
	if f == nil {
		return &cannotHelp{why}
	}
	changed, err := s.c.changedSince(from, why)
	s.made, s.rows, s.below, s.held = made, nil, math.MaxInt64, sortedKeys(changed)
	return err
}

// changedSince returns the keys of the entries that the journal's lines tell of from one on; a [*cannotHelp] where these are too many to
// look them up.
func (c *Catalog) changedSince(from uint64, why string) (map[archive.Key]bool, error) {
	changed := map[archive.Key]bool{}
	n := 0
	err := c.cfg.Ledger.Lines(from, func(_ uint64, line []byte) error {
		if n++; n > mostBehind {
			return &cannotHelp{why}
		}
		k, is, err := keyOf(line)
		if is {
			changed[k] = true
		}
		return err
	})
	return changed, err
}

// noteUnread tells the writer of damage that a search met. The ledger answers instead of the file.
func (c *Catalog) noteUnread(err error) error {
	if errors.Is(err, errEnding) {
		return err
	}
	if again := reasonToRebuild(err); again != nil {
		c.mu.Lock()
		c.told.Damaged = again.why
		c.mu.Unlock()
		c.Wake()
	} else {
		c.cfg.Log.Error("the catalog cannot be read", "err", err)
	}
	return &cannotHelp{"the catalog cannot be read: " + err.Error()}
}
