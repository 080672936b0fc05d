package books

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
	"unicode"

	"vaultd/internal/custody"
)

// longestHead is how much of an entry shows which columns it has.
const longestHead = 64 << 10

// entries are the parts of one file, by what they look like.
type entries struct {
	own    int      // records of the table
	empty  int      // without any content
	others []string // files that the service adds, as a note about the export
}

// foldFile enters the records of one file. The service may add files to a ZIP at
// any time, so parts that are no records of the table are passed over; they stay
// in custody as they came. A file of one part is records.
func (f *folding) foldFile(ctx context.Context, c *custody.Custody) error {
	var ours error // an error that is not the file's
	fold := func(in io.Reader) error {
		return reader{f.settings, f.table.names}.readRecords(in, func(r record) error {
			ours = f.enter(ctx, r)
			return ours
		})
	}
	found, err := f.eachPart(c, f.file, fold)
	if err == nil && found.own == 0 && found.empty == 0 && len(found.others) == 1 {
		err = c.EachEntry(f.of, f.file, func(name string, content io.Reader) error {
			if isHidden(name) {
				return drain(content)
			}
			return fold(content)
		})
	} else if err == nil && found.own == 0 && found.empty == 0 && len(found.others) > 1 {
		err = fmt.Errorf("none of its parts (%s) has the columns %s and %s", shorten(strings.Join(found.others, ", ")),
			strings.Join(f.table.names[keyField], " or "), strings.Join(f.table.names[numberField], " or "))
	}
	switch {
	case ours != nil:
		return ours
	case err != nil && ctx.Err() == nil:
		return &unreadableError{fmt.Errorf("%s cannot be read: %w", f.file.Name, err)}
	}
	return err
}

// eachPart calls fold with each part of a file that has records of the table, and
// reads the others to their end.
func (f *folding) eachPart(c *custody.Custody, file custody.HeldFile, fold func(io.Reader) error) (found entries, err error) {
	err = c.EachEntry(f.of, file, func(name string, content io.Reader) error {
		in := bufio.NewReaderSize(content, longestHead)
		head, err := in.Peek(longestHead)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		switch text := plainHead(head); {
		case isHidden(name):
		case f.isOwn(name, text):
			found.own++
			return fold(in)
		case strings.Trim(text, "[] \t\r\n") == "" && len(head) < longestHead:
			found.empty++
		default:
			found.others = append(found.others, name)
		}
		return drain(in)
	})
	return found, err
}

// drain reads a part to its end.
func drain(in io.Reader) error {
	_, err := io.Copy(io.Discard, in)
	return err
}

// isOwn reports whether a part is records of the table: by its columns, or by its
// name, so that one with other columns is not passed over.
func (f *folding) isOwn(name, head string) bool {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	end := strings.ToLower(path.Ext(base))
	stem := strings.TrimRight(strings.TrimSuffix(base, path.Ext(base)), "0123456789._-() ")
	isNamed := strings.EqualFold(stem, f.settings.Table) && slices.Contains([]string{"", ".csv", ".json", ".txt", ".tsv", ".jsonl", ".ndjson"}, end)
	isOther := !isNamed && slices.ContainsFunc(dataSets, func(d dataSet) bool {
		return slices.ContainsFunc(d.tables, func(table string) bool { return strings.EqualFold(stem, table) })
	})
	isData := slices.Contains([]string{"", ".csv", ".json", ".tsv", ".jsonl", ".ndjson"}, end)
	return isNamed || !isOther && f.hasColumns(head, isData)
}

// hasColumns reports whether a part begins with the names of the key and of the
// number: as names of JSON, or in the first line. In a file that its name calls
// data, they may be in any line. JSON leaves out a number that is null.
func (f *folding) hasColumns(head string, isData bool) bool {
	has := func(text string, at field) bool {
		return slices.ContainsFunc(f.table.names[at], func(name string) bool { return hasWord(text, name) })
	}
	if strings.HasPrefix(head, "[") || strings.HasPrefix(head, "{") {
		return slices.ContainsFunc(f.table.names[keyField], func(name string) bool { return strings.Contains(head, `"`+name+`"`) })
	}
	if !isData {
		head, _, _ = strings.Cut(head, "\n")
	}
	return has(head, keyField) && has(head, numberField)
}

// hasWord reports whether a text has a name that is no part of a longer one.
func hasWord(text, name string) bool {
	isPart := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }
	for {
		before, behind, found := strings.Cut(text, name)
		if !found {
			return false
		}
		last := strings.LastIndexFunc(before, isPart)
		if (last < 0 || last < len(before)-1) && strings.IndexFunc(behind, isPart) != 0 {
			return true
		}
		text = behind
	}
}

// plainHead is the beginning of a part without its byte order mark. Of UTF-16 the
// letters of names are left.
func plainHead(head []byte) string {
	text := strings.ReplaceAll(string(head), "\x00", "")
	for _, mark := range []string{"\ufeff", "\xff\xfe", "\xfe\xff"} {
		text = strings.TrimPrefix(text, mark)
	}
	return strings.TrimLeft(text, " \t\r\n")
}

// isHidden reports whether a part is what systems add to a ZIP.
func isHidden(name string) bool {
	name = strings.ReplaceAll(name, `\`, "/")
	return name != "" && strings.HasPrefix(path.Base(name), ".") || slices.Contains(strings.Split(name, "/"), "__MACOSX")
}

func shorten(s string) string {
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "…"
	}
	return s
}
