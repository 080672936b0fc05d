package present

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
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
	Addresses   []Field // whom it is sent to; none of a document for the archive
	Details     Details
	History     []ledger.Line
	SentCopy    *SentCopy              // of a document that was sent; may be nil
	Scan        ledger.Scan            // what vaultd last saw in its drop folder
	ReceivedAs  archive.RemoteID       // its number at the business network, over which it came in; empty: it did not
	Notes       map[uint32]ledger.Note // the reasons that people gave, by the revision of the entry
}

// Ledger is what a dossier is read from.
type Ledger interface {
	Entries
	Document(key archive.Key) (ledger.Document, bool, error)
	Scans() ([]ledger.Scan, error)
	Notes(key archive.Key) (map[uint32]ledger.Note, error)
	FindByID(id archive.ID) (archive.Key, bool, error)
	FindReceived(id archive.ID) (archive.RemoteID, bool, error)
	Lines(from uint64, fn func(n uint64, line []byte) error) error
	LineAt(n uint64) (ledger.Line, error)
	Head() ledger.Head
}

// ReadDossier reads everything about one entry, its history last.
func ReadDossier(ctx context.Context, l Ledger, e ledger.Entry, loc *time.Location) (d Dossier, err error) {
	d.Entry = e
	if d.Document, d.HasDocument, err = l.Document(e.Key); err != nil {
		return d, err
	}
	if d.Metadata, err = ParseMetadata(e, d.Document); err != nil {
		return d, err
	}
	if d.Addresses, err = deliveryFields(d.Document); err != nil {
		return d, err
	}
	if d.Details, err = CompleteDetails(l, e, d.Metadata, d.Document, loc); err != nil {
		return d, err
	}
	if d.SentCopy, err = findSentCopy(l, e); err != nil {
		return d, err
	}
	if d.ReceivedAs, _, err = l.FindReceived(e.ID); err != nil {
		return d, err
	}
	if d.Notes, err = l.Notes(e.Key); err != nil {
		return d, err
	}
	scans, err := l.Scans()
	if err != nil {
		return d, err
	}
	for _, s := range scans {
		if s.Drop == e.Drop {
			d.Scan = s
		}
	}
	d.History, err = readHistory(ctx, l, e)
	return d, err
}

// readHistory collects the journal lines of one entry: one for each of its revisions. It looks first where the times of the entry say
// that they are: between the archiving and the removal of a folder may stand the lines of millions of others. When some are not
// there, it reads the journal from the entry's claim on, and then all of it. What was found stands before an error.
func readHistory(ctx context.Context, l Ledger, e ledger.Entry) ([]ledger.Line, error) {
	h := &historyReader{ledger: l, entry: e, text: []byte(e.Key.String()), found: map[uint32]ledger.Line{}}
	var starts []uint64
	for _, at := range []time.Time{e.SeenAt, e.RegisteredAt, e.UploadedAt, e.ArchivedAt, e.DisposeAt} {
		if at.IsZero() || h.isWhole() {
			continue
		}
		begin := formatLineTime(at.Add(-clockMargin))
		from, err := findLineAt(l, begin)
		if err == nil && from >= h.next {
			starts = append(starts, from)
			err = h.readLines(ctx, from, begin, quietLines)
		}
		if err != nil {
			return h.lines(), err
		}
	}
	for _, from := range append(starts[:min(len(starts), 1)], 1) { // from the first line on where the clock was set back: lines stand before their time then
		if h.isWhole() {
			break
		}
		if err := h.readLines(ctx, from, "", math.MaxUint64); err != nil {
			return h.lines(), err
		}
	}
	return h.lines(), nil
}

// clockMargin is how much a clock may be set back before the whole journal is read.
const clockMargin = time.Minute

// formatLineTime writes a time as journal lines do, so that the two compare as texts.
func formatLineTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

// isBefore reports whether a line is of an earlier time; one without a time is not.
func isBefore(stored []byte, at string) bool {
	_, rest, ok := bytes.Cut(stored, []byte(`"at":"`)) // it stands before any text of people
	return ok && len(rest) >= len(at) && string(rest[:len(at)]) < at
}

// findLineAt returns the last line of the journal that is of an earlier time,
// or else the first one. If times only grow, no line before it has a later one.
func findLineAt(l Ledger, at string) (uint64, error) {
	found := uint64(1)
	for from, to := uint64(1), l.Head().N+1; from < to; {
		middle := from + (to-from)/2
		line, err := l.LineAt(middle)
		switch {
		case err != nil:
			return 0, err
		case line.At >= at:
			to = middle
		default:
			found, from = middle, middle+1
		}
	}
	return found, nil
}

var errEnough = errors.New("enough")

// quietLines is after how many lines of other entries the next line of this one is looked for elsewhere.
const quietLines = 5_000

// historyReader collects the journal lines of one entry.
type historyReader struct {
	ledger Ledger
	entry  ledger.Entry
	text   []byte                 // of its key
	found  map[uint32]ledger.Line // by revision
	next   uint64                 // the line after the last one that was read
}

func (h *historyReader) isWhole() bool { return len(h.found) >= int(h.entry.Rev) }

// lines returns what was found, in the order of the revisions.
func (h *historyReader) lines() (all []ledger.Line) {
	for _, rev := range slices.Sorted(maps.Keys(h.found)) {
		all = append(all, h.found[rev])
	}
	return all
}

// readLines reads the journal from a line on, until every revision was found or so many lines in a row, of that time or later, are of
// other entries.
func (h *historyReader) readLines(ctx context.Context, from uint64, at string, quiet uint64) error {
	last, begun := from, false
	err := h.ledger.Lines(from, func(n uint64, stored []byte) error {
		h.next = n + 1
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case !bytes.Contains(stored, h.text): // parsing every line of a long journal takes much longer
			if begun = begun || !isBefore(stored, at); !begun {
				last = n
			}
			if n-last >= quiet {
				return errEnough
			}
			return nil
		}
		line, err := ledger.ParseLine(stored)
		if err != nil || line.Key != h.entry.Key.String() || line.Rev > h.entry.Rev { // other entries' lines may name this key; it may have moved on
			return err
		}
		last = n
		if h.found[line.Rev] = line; h.isWhole() {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return err
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
