package catalog

import (
	"context"
	"database/sql"
	"fmt"
	"path"
	"slices"
	"strings"
	"unicode/utf8"
)

// selection collects what every row meets that a question may be about. Each
// hit is compared with the ledger afterwards.
type selection struct {
	where   []string
	args    []any
	matches []string // expressions of the index, which hold for all these rows
}

func (s *selection) add(condition string, args ...any) {
	s.where = append(s.where, condition)
	s.args = append(s.args, args...)
}

// mostParties bounds the parties that contain a word and are looked up in the
// index. If there are more, the rows are read.
const mostParties = 300

// addWords adds that every word occurs in the text of a document or in its party.
func (s *selection) addWords(ctx context.Context, db *sql.DB, q Query) error {
	for _, w := range q {
		forms, ok := w.storable()
		if !ok {
			continue
		}
		contains, args := containsAny("text", forms)
		var tokens []string
		err := visitRows(ctx, db, func(rows *sql.Rows) error {
			var id int64
			err := rows.Scan(&id)
			tokens = append(tokens, partyToken(id))
			return err
		}, "SELECT id FROM party WHERE "+contains+" LIMIT ?", append(args, mostParties+1)...)
		if err != nil {
			return fmt.Errorf("search parties: %w", err)
		}
		mark := markBeginning(w[0])
		contains, all := containsAny("d.names", forms)
		if len(w[0]) < leastMark { // it must be all of it; to look for that in every row would take long
			mark += markStart
			contains, all = contains+" OR d.id IN (SELECT rowid FROM words WHERE words MATCH ?)", append(all, allPieces([]rune(mark)))
		} else {
			contains, all = contains+" OR instr(d.marks, ?) > 0", append(all, mark)
		}
		if len(tokens) > 0 {
			of, more := containsAny("text", forms)
			contains, all = contains+" OR d.party IN (SELECT id FROM party WHERE "+of+")", append(all, more...)
		}
		s.add("("+contains+")", all...)
		if len(tokens) <= mostParties {
			s.addMatch(slices.Concat(forms, []string{mark}, tokens))
		}
	}
	return nil
}

// addName adds that a line of the text is a name, or ends with it as the last part of a path.
func (s *selection) addName(name string) {
	line := storable(spellingsOf(path.Base(name))[0]) + "\n"
	pieces := []string{"\n" + line, "/" + line}
	contains, args := containsAny("d.names", pieces)
	s.add("("+contains+")", args...)
	s.addMatch(pieces)
}

// storable returns the forms as SQLite compares them; ok is false where one has
// no character, or is no text: any document may have it.
func (w word) storable() (forms []string, ok bool) {
	for _, f := range w {
		if f == "" || !utf8.ValidString(f) {
			return nil, false
		}
		forms = append(forms, storable(f))
	}
	return forms, true
}

func containsAny(column string, pieces []string) (condition string, args []any) {
	var any []string
	for _, p := range pieces {
		any = append(any, "instr("+column+", ?) > 0")
		args = append(args, p)
	}
	return strings.Join(any, " OR "), args
}

// addMatch adds that the text has one of the pieces, where the index can tell:
// it holds pieces of three characters.
func (s *selection) addMatch(pieces []string) {
	var any []string
	for _, p := range pieces {
		r := []rune(p)
		if len(r) < 3 {
			return
		}
		any = append(any, "("+allPieces(r)+")")
	}
	s.matches = append(s.matches, "("+strings.Join(any, " OR ")+")")
}

// allPieces returns the expression of the index for a text of at least three characters.
func allPieces(text []rune) string {
	var all []string
	for i := 0; i < len(text); i += 3 { // those that overlap exclude hardly anything
		from := min(i, len(text)-3)
		all = append(all, `"`+strings.ReplaceAll(string(text[from:from+3]), `"`, `""`)+`"`)
	}
	return strings.Join(all, " AND ")
}
