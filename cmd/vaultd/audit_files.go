package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"vaultd/internal/report"
	"vaultd/internal/sanitize"
)

// A page of a long table has the complete table beside it, as CSV and XLSX. The daemon writes no files for others, and a command
// has one output: there the three files come in pieces. A piece is the number of its file, its length in four bytes, the most
// significant first, and so many bytes.
var reportParts = [partCount]struct {
	suffix string // of the file's name
	what   string // in messages, and in the name of the part file
}{{"", "report"}, {".csv", "table-csv"}, {".xlsx", "table-xlsx"}, {"", ""}}

const (
	pagePart = iota
	csvPart
	xlsxPart
	headPart // no file: the number of the journal's line up to which the report goes, as text
	partCount

	pieceHead = 5 // bytes before those of a piece
)

// pieceWriter writes one of the files into the stream.
type pieceWriter struct {
	to   io.Writer
	part byte
}

// Write writes b as one piece.
func (w pieceWriter) Write(b []byte) (int, error) {
	n := uint32(len(b))
	if _, err := w.to.Write([]byte{w.part, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}); err != nil {
		return 0, err
	}
	return w.to.Write(b)
}

// writeHTML writes the page. If files are to lie next to it, it comes in
// pieces, and where its table is long the tables do, too.
func (f auditFlags) writeHTML(ctx context.Context, r *report.Audit, w io.Writer) (report.Closing, error) {
	switch {
	case f.Stem == "":
		return r.Page(ctx, w)
	case !r.HasLongTable():
		return r.Page(ctx, pieceWriter{w, pagePart})
	}
	return r.Page(ctx, pieceWriter{w, pagePart},
		report.TableFile{Name: f.Stem + reportParts[csvPart].suffix, Table: r.NewCSV(pieceWriter{w, csvPart}, rune(f.separator[0]))},
		report.TableFile{Name: f.Stem + reportParts[xlsxPart].suffix, Table: r.NewXLSX(pieceWriter{w, xlsxPart})})
}

// tablePath is the path of the files beside the page, without their end.
func (f auditFlags) tablePath() string {
	if ext := filepath.Ext(f.output); ext != filepath.Base(f.output) { // ".html" is all of a name
		return strings.TrimSuffix(f.output, ext)
	}
	return f.output
}

// reportFiles takes the stream apart. It begins a file with its first piece.
type reportFiles struct {
	begin func(part int) (io.Writer, error)
	open  [partCount]io.Writer

	head []byte    // of the next piece, as far as it came
	left uint32    // bytes of this piece that are still to come
	to   io.Writer // they go there
}

// Write takes what came next, wherever it was cut.
func (s *reportFiles) Write(b []byte) (int, error) {
	taken := 0
	for len(b) > 0 {
		if s.left == 0 {
			n := min(pieceHead-len(s.head), len(b))
			s.head = append(s.head, b[:n]...)
			b, taken = b[n:], taken+n
			if len(s.head) == pieceHead {
				if err := s.beginPiece(); err != nil {
					return taken, err
				}
			}
			continue
		}
		n, err := s.to.Write(b[:min(uint64(s.left), uint64(len(b)))])
		s.left -= uint32(n)
		b, taken = b[n:], taken+n
		if err != nil {
			return taken, err
		}
	}
	return taken, nil
}

func (s *reportFiles) beginPiece() error {
	part := int(s.head[0])
	s.left = uint32(s.head[1])<<24 | uint32(s.head[2])<<16 | uint32(s.head[3])<<8 | uint32(s.head[4])
	s.head = s.head[:0]
	if part >= len(s.open) {
		return fail(exitInternal, fmt.Errorf("the running vaultd sent part %d of a report", part), "are both of the same version?")
	}
	if s.open[part] == nil {
		var err error
		if s.open[part], err = s.begin(part); err != nil {
			return err
		}
	}
	s.to = s.open[part]
	return nil
}

// isWhole reports whether the stream ended behind a piece, and has a page.
func (s *reportFiles) isWhole() bool {
	return s.left == 0 && len(s.head) == 0 && s.open[pagePart] != nil
}

// auditPage lets write fill the page and the files beside it, and head with the line up to which the report goes. The files get their names when all of them are complete, the page the
// last: it links to the others. A crash in between leaves tables without a new page; the next report with --force replaces them.
func (a *app) auditPage(f auditFlags, head io.Writer, write func(io.Writer) error) error {
	var files [partCount]*partFile
	begin := func(part int) (io.Writer, error) {
		n := f.newReport()
		if part != pagePart {
			n.path, n.what = f.tablePath()+reportParts[part].suffix, reportParts[part].what
		}
		p, err := n.begin()
		files[part] = p
		return p, err
	}
	defer func() {
		for _, p := range files {
			if p != nil {
				p.discard()
			}
		}
	}()
	if _, err := begin(pagePart); err != nil { // a name that is taken is told before the work, not after it
		return err
	}
	s := &reportFiles{begin: begin}
	s.open[pagePart], s.open[headPart] = files[pagePart], head
	wrong := write(s)
	if wrong == nil && !s.isWhole() {
		wrong = fail(exitTemporary, errors.New("the report broke off"), "try again")
	}
	for part := len(files) - 1; part >= 0; part-- {
		if files[part] == nil {
			continue
		}
		path, err := files[part].keep(wrong)
		if path == "" {
			return err
		}
		fmt.Fprintf(a.stderr, "written to %s\n", sanitize.Text(path))
	}
	if files[csvPart] == nil && files[xlsxPart] == nil {
		a.tellOldTables(f)
	}
	return wrong
}

// tellOldTables names tables that lie beside a page which has its whole table itself. They are of an earlier report or of somebody else,
// so they are not removed: a person may have worked on them.
func (a *app) tellOldTables(f auditFlags) {
	for _, part := range []int{csvPart, xlsxPart} {
		path := f.tablePath() + reportParts[part].suffix
		if _, err := os.Lstat(path); err == nil {
			fmt.Fprintf(a.stderr, "%s is not of this report, whose page has every folder; remove it or move it away, for it tells something else\n", sanitize.Text(path))
		}
	}
}
