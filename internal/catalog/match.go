package catalog

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
)

const (
	mostParties = 300    // that contain a word; where more do, the index does not help to find it
	mostPlaces  = 300    // in whose path a word occurs; the same
	mostMarks   = 10_000 // keys and numbers that begin with a word; the same
)

// question asks for every document that the query may find.
func (q Query) question(ctx context.Context, db *sql.DB) (question, error) {
	match, err := q.matchOf(ctx, db)
	if err == nil && match == "" {
		err = &cannotHelp{"the catalog does not help to find such frequent words"}
	}
	return matching(match), err
}

// matching asks for the documents whose tokens meet an expression.
func matching(match string) question {
	return func(below int64) (string, []any) {
		return `SELECT d.id, d.key, d.late FROM tokens t JOIN document d ON d.id = t.rowid
			WHERE t.tokens MATCH ? AND t.rowid < ? ORDER BY t.rowid DESC LIMIT ?`, []any{match, below, pageRows}
	}
}

// matchOf returns the expression of the index that every document meets which the query may find; empty: the index does not
// help, because all words are frequent.
func (q Query) matchOf(ctx context.Context, db *sql.DB) (string, error) {
	var all []string
	for _, w := range q {
		any, err := w.matchOf(ctx, db)
		if err != nil {
			return "", err
		}
		if any != "" {
			all = append(all, "("+any+")")
		}
	}
	return strings.Join(all, " AND "), nil
}

// matchOf returns the expression of one word: it stands in the folder's name or the invoice number, or in the path of the folder in which
// the source lies, or a party of the document contains it, or a key or number begins with it. It is empty where the index cannot exclude
// enough.
func (w word) matchOf(ctx context.Context, db *sql.DB) (string, error) {
	var any []string
	for _, form := range w {
		// A word with a slash may reach from the folder in which a source lies into its name. What is behind the last slash is in the name.
		grams := coveringGrams(form[strings.LastIndexByte(form, '/')+1:])
		if len(grams) == 0 {
			return "", nil
		}
		any = append(any, "("+conjunction(grams)+")")
	}
	places, err := w.placesWith(ctx, db)
	if err != nil || len(places) > mostPlaces {
		return "", err
	}
	for _, id := range places {
		any = append(any, quoted(placeToken(id)))
	}
	parties, few, err := w.partiesWith(ctx, db)
	if err != nil || !few {
		return "", err
	}
	for _, id := range parties {
		any = append(any, quoted(partyToken(id)))
	}
	mark, few, err := w.markMatch(ctx, db)
	if err != nil || !few {
		return "", err
	}
	return strings.Join(append(any, mark), " OR "), nil
}

func quoted(token string) string { return `"` + token + `"` } // no token has a quotation mark

func conjunction(tokens []string) string {
	quotedTokens := make([]string, len(tokens))
	for i, t := range tokens {
		quotedTokens[i] = quoted(t)
	}
	return strings.Join(quotedTokens, " AND ")
}

// placesWith returns the numbers of the folders with sources in whose path the word occurs. There are few folders, with many sources in
// each.
func (w word) placesWith(ctx context.Context, db *sql.DB) (ids []int64, err error) {
	rows, err := db.QueryContext(ctx, "SELECT id, folder FROM place")
	if err != nil {
		return nil, err
	}
	defer rows.Close() // read only
	for rows.Next() {
		var id int64
		var folder string
		if err := rows.Scan(&id, &folder); err != nil {
			return nil, err
		}
		if w.occursInAny(spellingsOf(folder)) {
			ids = append(ids, id)
		}
	}
	return ids, rows.Err()
}

// partiesWith returns the numbers of the parties whose text contains the word; few is false where there are too many.
func (w word) partiesWith(ctx context.Context, db *sql.DB) (ids []int64, few bool, err error) {
	var any []string
	for _, form := range w {
		any = append(any, "("+conjunction(coveringGrams(form))+")")
	}
	rows, err := db.QueryContext(ctx, "SELECT p.id, p.text FROM party_tokens t JOIN party p ON p.id = t.rowid WHERE t.party_tokens MATCH ? LIMIT ?",
		strings.Join(any, " OR "), 3*mostParties)
	if err != nil {
		return nil, false, fmt.Errorf("search parties: %w", err)
	}
	defer rows.Close() // read only
	n := 0
	for ; rows.Next(); n++ {
		var id int64
		var text string
		if err := rows.Scan(&id, &text); err != nil {
			return nil, false, err
		}
		if w.occursInAny(spellingsOf(text)) {
			ids = append(ids, id)
		}
	}
	return ids, n < 3*mostParties && len(ids) <= mostParties, rows.Err()
}

// textMatch returns the expression that the tokens of a text meet in which all words occur; empty: the index cannot tell.
func (q Query) textMatch() string {
	var all []string
	for _, w := range q {
		var any []string
		for _, form := range w {
			if grams := coveringGrams(form); len(grams) > 0 {
				any = append(any, "("+conjunction(grams)+")")
			}
		}
		if len(any) == len(w) {
			all = append(all, "("+strings.Join(any, " OR ")+")")
		}
	}
	return strings.Join(all, " AND ")
}

// partiesIn returns the numbers of all parties in whose text every word occurs.
func (q Query) partiesIn(ctx context.Context, db *sql.DB) (ids []int64, err error) {
	statement, args := "SELECT id, text FROM party", []any(nil)
	if match := q.textMatch(); match != "" {
		statement, args = "SELECT p.id, p.text FROM party_tokens t JOIN party p ON p.id = t.rowid WHERE t.party_tokens MATCH ?", []any{match}
	}
	ids = []int64{}
	err = visitRows(ctx, db, func(rows *sql.Rows) error {
		var id int64
		var text string
		err := rows.Scan(&id, &text)
		if err == nil && q.OccursIn(text) {
			ids = append(ids, id)
		}
		return err
	}, statement, args...)
	return ids, err
}

// markMatch returns the expression for keys and numbers that begin with the word; few is false where there are too many.
func (w word) markMatch(ctx context.Context, db *sql.DB) (match string, few bool, err error) {
	token := markToken(w[0])
	if len(w[0]) < leastMark || len([]rune(token)) > markSize { // a number that is shorter has to be equal
		return quoted(token), true, nil
	}
	var n int
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM vocabulary WHERE term >= ? AND term < ? LIMIT ?)", token, token+"\U0010ffff", mostMarks+1).Scan(&n)
	return quoted(token) + " *", n <= mostMarks, err
}
