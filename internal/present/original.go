package present

import (
	"fmt"
	"strings"
	"time"

	"vaultd/internal/ledger"
	"vaultd/internal/sanitize"
)

// Original is the entry that a duplicate repeats, as far as people ask for it. Only Key is set when the ledger does not
// know that entry any more.
type Original struct {
	Key        string     `json:"key"`
	Drop       string     `json:"drop"`
	Folder     string     `json:"folder"`
	DocumentID *string    `json:"documentId"`
	BumID      *string    `json:"bumId"`
	ArchivedAt *time.Time `json:"archivedAt"`
	Source     string     `json:"source"`
	Dest       *string    `json:"dest"` // where the folder is, relative to its drop folder; absolute after it was moved out

	DeliveredAt *time.Time `json:"deliveredAt,omitempty"` // absent: it is not delivered

	isMissing bool // its kept folder was not there when it was looked at last
}

// FindOriginal returns the entry that e repeats; nil when e is no duplicate. The error is the ledger's.
func FindOriginal(s Entries, e ledger.Entry) (*Original, error) {
	if e.State != ledger.Duplicate {
		return nil, nil
	}
	first, ok, err := s.Entry(e.DuplicateOf)
	if err != nil || !ok {
		return &Original{Key: e.DuplicateOf.String()}, err
	}
	m, _, err := ReadMetadata(s, first)
	o := &Original{
		Key: first.Key.String(), Drop: first.Drop, Folder: first.Folder, DocumentID: TextOrNil(m.Number), BumID: TextOrNil(string(RemoteNumber(first))),
		ArchivedAt: TimeOrNil(first.ArchivedAt), Source: first.Source.String(), Dest: TextOrNil(first.Dest), isMissing: first.IsSourceMissing(),
	}
	if first.State == ledger.Delivered {
		o.DeliveredAt = TimeOrNil(first.CompletedAt())
	}
	return o, err
}

// Describe names the original on one line that is safe for a terminal. loc is the zone of its day.
func (f Original) Describe(loc *time.Location) string {
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
	if f.DeliveredAt != nil {
		add("delivered %s", f.DeliveredAt.In(loc).Format("2 Jan 2006"))
	}
	add("invoice %s", textOf(f.DocumentID))
	add("bumId %s", textOf(f.BumID))
	add("folder %s", f.Place())
	return strings.Join(parts, ", ")
}

// Place says where the folder of the original was put. It is not sanitized.
func (f Original) Place() string {
	switch dest := textOf(f.Dest); {
	case f.Source == ledger.Gone.String():
		return "was deleted after its grace"
	case f.Source == ledger.Moved.String():
		return "was moved to " + dest
	case f.isMissing:
		return fmt.Sprintf("was %s (drop %s), and is not there any more", dest, f.Drop)
	case dest != "":
		return fmt.Sprintf("%s (drop %s)", dest, f.Drop)
	}
	return ""
}

func textOf(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}
