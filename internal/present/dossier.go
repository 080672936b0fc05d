package present

import (
	"bytes"
	"context"
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
}

// ReadDossier reads everything about one entry. It goes through the whole journal.
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
	d.History, err = readHistory(ctx, l, e.Key)
	return d, err
}

// readHistory collects the journal lines of one entry.
func readHistory(ctx context.Context, l Ledger, key archive.Key) ([]ledger.Line, error) {
	var lines []ledger.Line
	text := []byte(key.String())
	err := l.Lines(1, func(_ uint64, stored []byte) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !bytes.Contains(stored, text) { // parsing every line of a long journal takes much longer
			return nil
		}
		line, err := ledger.ParseLine(stored)
		if err == nil && line.Key == key.String() { // other entries' lines may name this key
			lines = append(lines, line)
		}
		return err
	})
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
