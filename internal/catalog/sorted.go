package catalog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// ListSorted calls fn with each entry that the filter selects, in an order, and returns what fn returns first. It reads the list in
// parts of at most so many ranks, some 200 bytes each: each part reads all rows of the catalog once, or all entries of the ledger where
// the catalog cannot be asked. An entry that changes meanwhile is given as it is then; between two parts it may be given twice or not at
// all. tell is that of Search.
func (c *Catalog) ListSorted(ctx context.Context, f Filter, s Sorting, part int, tell func(why string), fn func(ledger.Entry) error) error {
	behind, err := c.beginAfter(s) // where the part before ended
	if err != nil {
		return err
	}
	if s.By == BySeen && s.Reverse && f.selectsAll() {
		return c.listBySeen(ctx, f, s, behind, func() {}, fn)
	}
	for isFirst := true; ; isFirst = false {
		ranks, end, err := c.readRanks(ctx, f, s, behind, part)
		if cannot, is := errors.AsType[*cannotHelp](err); is {
			tellOnce := func() {
				if cannot.why != "" && isFirst {
					tell(cannot.why)
				}
			}
			if s.By == BySeen {
				return c.listBySeen(ctx, f, s, behind, tellOnce, fn)
			}
			ranks, end, err = c.walkRanks(ctx, f, s, behind, part, tellOnce)
		}
		if err != nil {
			return err
		}
		for _, r := range ranks {
			e, ok, err := c.cfg.Ledger.Entry(r.key)
			if err == nil && ok {
				ok, err = c.selects(f, e)
			}
			if err == nil && ok {
				err = fn(e)
			}
			if err != nil {
				return err
			}
		}
		if end == nil {
			return nil
		}
		behind = end
	}
}

// beginAfter returns the rank behind which a list begins; nil: it begins at its beginning.
func (c *Catalog) beginAfter(s Sorting) (*rank, error) {
	if s.After.IsZero() {
		return nil, nil
	}
	e, ok, err := c.cfg.Ledger.Entry(s.After)
	if err == nil && !ok {
		err = fmt.Errorf("begin the list: no entry has the key %s", s.After)
	}
	if err != nil {
		return nil, err
	}
	r, _, err := c.rank(Filter{}, s, e)
	return &r, err
}

// rank returns the position of an entry in a list, and whether the filter selects it. It reads the document where filter or order ask
// for that.
func (c *Catalog) rank(f Filter, s Sorting, e ledger.Entry) (r rank, isSelected bool, err error) {
	if !f.selectsEntry(e) {
		return r, false, nil
	}
	of := row{Entry: e}
	if f.readsDocument() || s.By.readsDocument() {
		if of, err = c.readRow(e); err != nil {
			return r, false, err
		}
	}
	return s.By.rank(of), f.selectsTexts(of), nil
}

// listBySeen calls fn with each entry behind a rank that the filter selects, by reading the ledger in its own order: nothing is held.
func (c *Catalog) listBySeen(ctx context.Context, f Filter, s Sorting, behind *rank, tell func(), fn func(ledger.Entry) error) error {
	walk := c.cfg.Ledger.EntriesNewestFirst
	if s.Reverse {
		walk = c.cfg.Ledger.EntriesOldestFirst
	}
	n := 0
	return walk(func(e ledger.Entry) error {
		if n++; n == longWalk {
			tell()
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case behind != nil && s.compare(rank{key: e.Key}, *behind) <= 0:
			return nil
		}
		isSelected, err := c.selects(f, e)
		if err != nil || !isSelected {
			return err
		}
		return fn(e)
	})
}

// walkRanks returns the first ranks behind one, at most so many, by reading the ledger. end is the last of them where there may be
// others, else nil.
func (c *Catalog) walkRanks(ctx context.Context, f Filter, s Sorting, behind *rank, most int, tell func()) (ranks []rank, end *rank, err error) {
	h := &firstRanks{sorting: s}
	n := 0
	err = c.cfg.Ledger.EntriesNewestFirst(func(e ledger.Entry) error {
		if n++; n == longWalk {
			tell()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r, isSelected, err := c.rank(f, s, e)
		if isSelected && (behind == nil || s.compare(r, *behind) > 0) {
			h.add(r, most)
		}
		return err
	})
	if ranks = h.sorted(); len(ranks) == most {
		end = &ranks[most-1]
	}
	return ranks, end, err
}

// readRanks is walkRanks by the catalog. The ranks of what changed since its position come from the ledger. end is the rank of a row: it
// need not be among the ranks, because that entry may have another one now.
func (c *Catalog) readRanks(ctx context.Context, f Filter, s Sorting, behind *rank, most int) (ranks []rank, end *rank, err error) {
	changed, rows, err := c.readRankRows(ctx, f, s, behind, most)
	switch _, told := errors.AsType[*cannotHelp](err); {
	case ctx.Err() != nil:
		return nil, nil, context.Cause(ctx)
	case told:
		return nil, nil, err
	case err != nil:
		return nil, nil, c.noteUnread(err)
	}
	if len(rows) == most {
		end = &rows[most-1]
	}
	h := &firstRanks{sorting: s}
	for _, r := range rows {
		if !changed[r.key] {
			h.all = append(h.all, r)
		}
	}
	for k := range changed {
		e, ok, err := c.cfg.Ledger.Entry(k)
		if err != nil {
			return nil, nil, err
		}
		if !ok {
			continue
		}
		r, isSelected, err := c.rank(f, s, e)
		if err != nil {
			return nil, nil, err
		}
		if isSelected && (behind == nil || s.compare(r, *behind) > 0) && (end == nil || s.compare(r, *end) <= 0) {
			h.all = append(h.all, r)
		}
	}
	return h.sorted(), end, nil
}

// readRankRows reads the ranks of rows from the file that is open now, and which keys changed since.
func (c *Catalog) readRankRows(ctx context.Context, f Filter, s Sorting, behind *rank, most int) (changed map[archive.Key]bool, ranks []rank, err error) {
	c.reading.RLock()
	defer c.reading.RUnlock()
	c.mu.Lock()
	file, why := c.file, c.status().Describe()
	var from uint64
	if file != nil {
		from = file.at.head.N + 1
	}
	c.mu.Unlock()
	if file == nil {
		return nil, nil, &cannotHelp{why}
	}
	// A connection opens what lies under the name now.
	if err := c.checkFile(file.of); err != nil {
		return nil, nil, err
	}
	ctx, done := file.untilEnd(ctx)
	defer func() { err = done(err) }()
	statement, args, err := f.rankStatement(ctx, file.db, s, behind, most)
	if err != nil {
		return nil, nil, err
	}
	rows, err := file.db.QueryContext(ctx, statement, args...)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close() // read only
	for rows.Next() {
		var r rank
		var key []byte
		if err := rows.Scan(&key, &r.none, &r.number, &r.text); err != nil {
			return nil, nil, err
		}
		copy(r.key[:], key)
		ranks = append(ranks, r)
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	// The rows may tell of more than the position that was read first; then a few entries are looked up that need not be.
	changed, err = c.changedSince(from, why)
	return changed, ranks, err
}

// rankStatement asks for the ranks of rows behind one.
func (f Filter) rankStatement(ctx context.Context, db *sql.DB, s Sorting, behind *rank, most int) (statement string, args []any, err error) {
	none, number, text := s.By.columns()
	value, key, after, afterKey := "", "DESC", ">", "<"
	if s.Reverse {
		value, key, after, afterKey = "DESC", "", "<", ">"
	}
	conditions, args, err := f.conditions(ctx, db)
	if err != nil {
		return "", nil, err
	}
	switch {
	case behind != nil && s.By == BySeen: // so that the index of keys helps
		conditions, args = append(conditions, "key "+afterKey+" ?"), append(args, behind.key[:])
	case behind != nil:
		of := strings.NewReplacer("none", none, "number", number, "text", text, "after", after, "nearer", afterKey)
		conditions = append(conditions, of.Replace("((none) > ? OR (none) = ? AND ((number, text) after (?, ?) OR (number, text) = (?, ?) AND key nearer ?))"))
		args = append(args, behind.none, behind.none, behind.number, behind.text, behind.number, behind.text, behind.key[:])
	}
	for _, state := range f.States {
		args = append(args, int(state))
	}
	if len(f.States) > 0 {
		conditions = append(conditions, "state IN (?"+strings.Repeat(", ?", len(f.States)-1)+")")
	}
	where := ""
	if len(conditions) > 0 {
		where = " WHERE " + strings.Join(conditions, " AND ")
	}
	order := fmt.Sprintf("r1, r2 %s, r3 %s, key %s", value, value, key)
	if s.By == BySeen {
		order = "key " + key
	}
	return fmt.Sprintf("SELECT key, %s AS r1, %s AS r2, %s AS r3 FROM document%s ORDER BY %s LIMIT ?", none, number, text, where, order), append(args, most), nil
}
