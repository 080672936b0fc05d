package emulator

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"
)

// The journal's kinds of the extracts.
const (
	kindExtractPublished    = "extract-published" // or files were added to it
	kindExtractDownload     = "extract-download"  // it counts from here on, however it ends
	kindExtractSent         = "extract-sent"      // to its last byte, which leaves right after this line
	kindExtractAcknowledged = "extract-acknowledged"
	kindExtractDefinition   = "extract-definition"
)

// PublishedExtract is an extract that a test makes the service offer.
type PublishedExtract struct {
	ID, Type, Name   string
	Start, End, Made time.Time
	ToldFiles        int // that the list tells; 0: as many as there are
	Files            []PublishedFile
}

// PublishedFile is one file of it, as it is downloaded.
type PublishedFile struct {
	Table, Name string
	Content     []byte
}

// Extract is what the service knows of one extract.
type Extract struct {
	ID             string
	IsAcknowledged bool
	Files          []ExtractFile
}

// ExtractFile is what the service knows of one of its files.
type ExtractFile struct {
	Table, Name, SHA256 string
	Size                int64
	Downloads           int  // that counted
	WasSent             bool // to its last byte
}

// extractLine is what a line of the journal says of an extract.
type extractLine struct {
	ID         string          `json:"id,omitempty"`
	Type       string          `json:"type,omitempty"`
	Name       string          `json:"name,omitempty"`
	Start      time.Time       `json:"start,omitzero"`
	End        time.Time       `json:"end,omitzero"`
	Made       time.Time       `json:"made,omitzero"`
	Told       int             `json:"told,omitempty"`
	Number     int             `json:"number,omitempty"`
	Files      []ExtractFile   `json:"files,omitempty"`
	Definition json.RawMessage `json:"definition,omitempty"`
}

// extract is an Extract as the server keeps it.
type extract struct {
	Extract
	Type, Name       string
	Start, End, Made time.Time
	told             int
}

// isOver reports whether the year is over for which an extract is kept.
func (e *extract) isOver(now time.Time) bool {
	return !e.Made.IsZero() && !now.Before(e.Made.AddDate(1, 0, 0))
}

func (e *extract) toldFiles() int {
	if e.told > 0 {
		return e.told
	}
	return len(e.Files)
}

// status is the word of the list for an extract.
func (e *extract) status(c *call) string {
	isLoaded := func(f ExtractFile) bool { return f.Downloads > 0 }
	if e.IsAcknowledged || c.reading.Extracts.Exported == "download" && slices.ContainsFunc(e.Files, isLoaded) {
		return "Exported"
	}
	return "WaitingForExport"
}

// extractState is the memory of the extracts: the sum of their lines in the journal.
type extractState struct {
	all        []*extract // in the order they were published
	byID       map[string]*extract
	definition []byte
}

func newExtractState() extractState {
	return extractState{byID: map[string]*extract{}, definition: []byte("[]")}
}

// listed returns what the list has at a time.
func (x *extractState) listed(now time.Time, acknowledged bool) (all []*extract) {
	for _, e := range x.all {
		if e.IsAcknowledged == acknowledged && !e.isOver(now) {
			all = append(all, e)
		}
	}
	return all
}

// applyLine changes the memory by a line of the journal, live and at replay.
func (x *extractState) applyLine(l journalLine) {
	if l.Extract == nil {
		return
	}
	switch e := x.byID[l.Extract.ID]; l.Kind {
	case kindExtractPublished:
		if e == nil {
			e = &extract{Extract: Extract{ID: l.Extract.ID}, Type: l.Extract.Type, Name: l.Extract.Name, Start: l.Extract.Start, End: l.Extract.End, Made: l.Extract.Made}
			x.all, x.byID[e.ID] = append(x.all, e), e
		}
		e.told = l.Extract.Told
		e.Files = append(e.Files, l.Extract.Files...)
	case kindExtractDownload:
		e.Files[l.Extract.Number].Downloads++
	case kindExtractSent:
		e.Files[l.Extract.Number].WasSent = true
	case kindExtractAcknowledged:
		e.IsAcknowledged = true
	case kindExtractDefinition:
		x.definition = l.Extract.Definition
	}
}

// PublishExtract makes an extract, or adds files to one that is there. It is remembered after a restart.
func (s *Server) PublishExtract(p PublishedExtract) error {
	l := extractLine{ID: p.ID, Type: p.Type, Name: p.Name, Start: p.Start, End: p.End, Made: p.Made, Told: p.ToldFiles}
	for _, f := range p.Files {
		sum := sha256.Sum256(f.Content)
		digest := hex.EncodeToString(sum[:])
		// A kill before the line leaves an object that no extract has.
		if err := s.keepObject(digest, f.Content); err != nil {
			return fmt.Errorf("publish extract %s: %w", p.ID, err)
		}
		l.Files = append(l.Files, ExtractFile{Table: f.Table, Name: f.Name, SHA256: digest, Size: int64(len(f.Content))})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindExtractPublished, Extract: &l})
}

// keepObject writes bytes into the store, where they are not yet.
func (s *Server) keepObject(digest string, content []byte) error {
	if _, err := os.Stat(s.objectPath(digest)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	incoming := s.objectPath("incoming-" + digest)
	if err := os.WriteFile(incoming, content, 0o600); err != nil {
		return err
	}
	return os.Rename(incoming, s.objectPath(digest))
}

// SetTableDefinition makes the service answer with a table definition, which must be JSON.
func (s *Server) SetTableDefinition(raw []byte) error {
	if !json.Valid(raw) {
		return errors.New("the table definition is no JSON")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindExtractDefinition, Extract: &extractLine{Definition: slices.Clone(raw)}})
}

// PublishedExtracts returns what the service knows of each extract, in the order in which they were published.
func (s *Server) PublishedExtracts() (all []Extract) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.state.extracts.all {
		known := e.Extract
		known.Files = slices.Clone(known.Files)
		all = append(all, known)
	}
	return all
}
