package present

import (
	"bytes"
	"context"
	"errors"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// Dossier is everything that is known about one entry.
type Dossier struct {
	Entry       ledger.Entry
	Document    ledger.Document
	HasDocument bool // there is a document
	Metadata    archive.Document
	Details     Details
	History     []ledger.Line
	Notes       map[uint32]ledger.Note // the reasons that people gave, by the revision of the entry
}

// Ledger is what a dossier is read from.
type Ledger interface {
	Entries
	Notes(key archive.Key) (map[uint32]ledger.Note, error)
	Lines(from uint64, fn func(n uint64, line []byte) error) error
	Line(n uint64) ([]byte, error)
	Head() ledger.Head
}

// ReadDossier reads everything about one entry. It goes through the journal from its claim to its last change.
func ReadDossier(ctx context.Context, l Ledger, e ledger.Entry, loc *time.Location) (d Dossier, err error) {
	d.Entry = e
	if d.Document, d.HasDocument, err = l.Document(e.Key); err != nil {
		return d, err
	}
	if d.Metadata, err = ParseMetadata(e, d.Document); err != nil {
		return d, err
	}
	if d.Details, err = CompleteDetails(l, e, d.Metadata, d.Document.AsRead, loc); err != nil {
		return d, err
	}
	if d.Notes, err = l.Notes(e.Key); err != nil {
		return d, err
	}
	d.History, err = readHistory(ctx, l, e)
	return d, err
}

// readHistory collects the journal lines of one entry: one for each of its revisions.
func readHistory(ctx context.Context, l Ledger, e ledger.Entry) ([]ledger.Line, error) {
	from, err := findLineAt(l, e.SeenAt.Add(-clockMargin))
	if err != nil {
		return nil, err
	}
	lines, err := readLinesOf(ctx, l, e, from)
	if err == nil && len(lines) < int(e.Rev) && from > 1 { // the clock was set back, so that its lines stand before their time
		lines, err = readLinesOf(ctx, l, e, 1)
	}
	return lines, err
}

// clockMargin is how much a clock may be set back before the whole journal is read.
const clockMargin = time.Minute

// nearLines is how near the search for a line comes: to read that many more is quicker than to search on, because each line that the
// search looks at unpacks a block of the journal.
const nearLines = 1000

// findLineAt returns a line number at most nearLines before the one at which the journal passes a time: where times only grow, no line
// before it has a later one.
func findLineAt(l Ledger, at time.Time) (uint64, error) {
	text := at.UTC().Format("2006-01-02T15:04:05.000Z")
	from, to := uint64(1), l.Head().N+1
	for to-from > nearLines {
		middle := from + (to-from)/2
		stored, err := l.Line(middle)
		if err != nil {
			return 0, err
		}
		line, err := ledger.ParseLine(stored)
		switch {
		case err != nil:
			return 0, err
		case line.At >= text:
			to = middle
		default:
			from = middle
		}
	}
	return from, nil
}

var errEnough = errors.New("enough")

// readLinesOf collects the lines of one entry from a line on.
func readLinesOf(ctx context.Context, l Ledger, e ledger.Entry, from uint64) ([]ledger.Line, error) {
	var lines []ledger.Line
	text := []byte(e.Key.String())
	err := l.Lines(from, func(_ uint64, stored []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !bytes.Contains(stored, text) { // parsing every line of a long journal takes much longer
			return nil
		}
		line, err := ledger.ParseLine(stored)
		if err == nil && line.Key == e.Key.String() { // other entries' lines may name this key
			lines = append(lines, line)
		}
		if err == nil && line.Key == e.Key.String() && line.Rev == e.Rev {
			return errEnough
		}
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return lines, err
}

// stateSince says when the present state began, as the journal tells.
func (d Dossier) stateSince() *time.Time {
	var began *time.Time
	state := ""
	for _, l := range d.History {
		if l.State == state {
			continue
		}
		state, began = l.State, nil
		if t, err := time.Parse(time.RFC3339, l.At); err == nil {
			began = TimeOrNil(t)
		}
	}
	return began
}

// decisions are the acts for which people gave a reason, oldest first.
func (d Dossier) decisions() []Decision {
	all := []Decision{}
	for _, l := range d.History {
		if n, ok := d.Notes[l.Rev]; ok {
			one := Decision{Rev: l.Rev, Act: l.Event, UID: l.UID, Text: n.Text}
			if t, err := time.Parse(time.RFC3339, l.At); err == nil {
				one.At = TimeOrNil(t)
			}
			all = append(all, one)
		}
	}
	return all
}

// Decision is an act of a person, with the reason given for it.
type Decision struct {
	Rev  uint32     `json:"rev"` // as in history
	At   *time.Time `json:"at"`
	Act  string     `json:"act"`
	UID  *int64     `json:"uid"`
	Text string     `json:"text"`
}
