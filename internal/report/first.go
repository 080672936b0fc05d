package report

import (
	"fmt"
	"strings"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// First is what people ask about the entry that a duplicate repeats. Where the ledger does not know that entry any more,
// only Key is set.
type First struct {
	Key        string     `json:"key"`
	Drop       string     `json:"drop"`
	Folder     string     `json:"folder"`
	DocumentID *string    `json:"documentId"`
	BumID      *string    `json:"bumId"`
	ArchivedAt *time.Time `json:"archivedAt"`
	Source     string     `json:"source"`
	Dest       *string    `json:"dest"` // where the folder lies, relative to its drop folder; absolute once it was moved out
}

// FirstOf returns the entry that e repeats; nil where e is no duplicate. The error is the ledger's.
func FirstOf(s Source, e ledger.Entry) (*First, error) {
	if e.State != ledger.Duplicate {
		return nil, nil
	}
	first, ok, err := s.Entry(e.DuplicateOf)
	if err != nil || !ok {
		return &First{Key: e.DuplicateOf.String()}, err
	}
	m, _, err := document(s, first)
	return &First{
		Key: first.Key.String(), Drop: first.Drop, Folder: first.Folder, DocumentID: known(m.Number), BumID: known(string(first.ArchivedRemote)),
		ArchivedAt: utc(first.ArchivedAt), Source: first.Source.String(), Dest: known(first.Dest),
	}, err
}

// Words names the first entry on one line that is fit for a terminal. Its day is one in loc.
func (f First) Words(loc *time.Location) string {
	if f.Folder == "" {
		return "the same as entry " + f.Key + ", which this ledger does not know"
	}
	parts := []string{fmt.Sprintf(`the same as "%s"`, sanitize.Text(f.Folder))}
	add := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, sanitize.Text(value)))
		}
	}
	if f.ArchivedAt != nil {
		add("archived %s", f.ArchivedAt.In(loc).Format("2 Jan 2006"))
	}
	add("invoice %s", or(f.DocumentID))
	add("bumId %s", or(f.BumID))
	add("folder %s", f.Place())
	return strings.Join(parts, ", ")
}

// Place says where the folder of the first entry is now. It is not yet fit for a terminal.
func (f First) Place() string {
	switch dest := or(f.Dest); {
	case f.Source == ledger.Gone.String():
		return "was deleted after its grace"
	case f.Source == ledger.Moved.String():
		return "was moved to " + dest
	case dest != "":
		return fmt.Sprintf("%s (drop %s)", dest, f.Drop)
	}
	return ""
}
