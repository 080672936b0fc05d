package present

import (
	"bytes"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"

	"vaultd/internal/sanitize"
)

// Page writes what "show" tells: titled lines and indented ones below them.
type Page struct{ bytes.Buffer }

// AddLine writes a titled line.
func (p *Page) AddLine(title, format string, a ...any) {
	fmt.Fprintf(p, "%-13s %s\n", title, fmt.Sprintf(format, a...))
}

func (p *Page) addOptional(title, text string) {
	if text != "" {
		p.AddLine(title, "%s", text)
	}
}

// AddText writes a text of any origin, indented.
func (p *Page) AddText(text string) {
	for _, line := range sanitize.Lines(text) {
		fmt.Fprintf(p, "  %s\n", line)
	}
}

// AddHeading writes the heading of a section after an empty line.
func (p *Page) AddHeading(title string) { fmt.Fprintf(p, "\n%s\n", title) }

// NewTable returns a table without lines, that looks the same in a terminal, a pipe and a mail.
func NewTable(out io.Writer, header ...string) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(out)
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	t.SuppressTrailingSpaces()
	if len(header) > 0 {
		t.AppendHeader(TableRow(header...))
	}
	return t
}

// TableRow is a row of cells, which are fit for a terminal already.
func TableRow(cells ...string) table.Row {
	r := make(table.Row, len(cells))
	for i, c := range cells {
		r[i] = c
	}
	return r
}
