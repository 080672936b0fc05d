package emulator

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// ReceivedDocument is a document that a test makes wait for the client.
type ReceivedDocument struct {
	Kind   string          // Invoice (the default) or CreditNote
	BumID  string          // empty: drawn
	Data   json.RawMessage // the business content, as it is sent
	Origin json.RawMessage // empty: that of a structured electronic document
	Files  []ReceivedFile

	IsUnannounced bool // no notification tells of it; PublishNotice may
}

// ReceivedFile is one file of it.
type ReceivedFile struct {
	FileType string // imageFile (the default), attachmentFile or dataFile
	Name     string
	Content  []byte
}

// PublishReceived makes a document wait, with a notification that announces it. It is remembered after a restart.
func (s *Server) PublishReceived(p ReceivedDocument) (bumID string, err error) {
	setDefault(&p.Kind, invoiceKind)
	if len(p.Origin) == 0 {
		p.Origin = json.RawMessage(`{"source":"SendingCustomer","sourceContentCategory":"StructuredData","sourceChannelCategory":"Electronic"}`)
	}
	if p.Kind != invoiceKind && p.Kind != creditNoteKind || !json.Valid(p.Data) || !json.Valid(p.Origin) {
		return "", fmt.Errorf("publish received document: kind %q is unknown, or data or origin are no JSON", p.Kind)
	}
	// A kill before the line leaves objects that no document has.
	if err := s.keepObject(digest(p.Data), p.Data); err != nil {
		return "", fmt.Errorf("publish received document: %w", err)
	}
	var files []NetworkFile
	for _, f := range p.Files {
		setDefault(&f.FileType, "imageFile")
		sum := digest(f.Content)
		if err := s.keepObject(sum, f.Content); err != nil {
			return "", fmt.Errorf("publish received file %s: %w", f.Name, err)
		}
		files = append(files, NetworkFile{FileType: f.FileType, Name: path.Base(f.Name), SHA256: sum, Size: int64(len(f.Content))})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.BumID == "" {
		p.BumID = s.newUUID()
	}
	if !bumIDPattern.MatchString(p.BumID) || s.state.network.isInUse(p.BumID) {
		return "", fmt.Errorf("publish received document: bumId %q is in use, or none", p.BumID)
	}
	for i := range files {
		files[i].ID, files[i].BumID = s.drawHex(12), p.BumID
	}
	now := s.cfg.Clock()
	l := networkLine{DocumentKind: p.Kind, Origin: p.Origin, Files: files}
	if !p.IsUnannounced {
		l.Notices = []NetworkNotice{{AcknowledgementID: s.newUUID(), BumID: p.BumID, DocumentType: p.Kind, At: now, Announces: true}}
	}
	return p.BumID, s.commitLines(journalLine{Time: now, Kind: kindNetworkReceived, BumID: p.BumID, SHA256: digest(p.Data), Network: &l})
}

// PublishNotice makes a notification wait: about a document that is known, or about one that is nobody's here. An empty
// AcknowledgementID is drawn, an empty At is now, and an empty DocumentType is Invoice.
func (s *Server) PublishNotice(n NetworkNotice) (acknowledgementID string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n.AcknowledgementID == "" {
		n.AcknowledgementID = s.newUUID()
	}
	if n.At.IsZero() {
		n.At = s.cfg.Clock()
	}
	setDefault(&n.DocumentType, invoiceKind)
	if s.state.network.byAck[n.AcknowledgementID] != nil {
		return "", errors.New("publish notification: its acknowledgementId is in use")
	}
	n.IsAcknowledged = false
	return n.AcknowledgementID, s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindNetworkNotices, Network: &networkLine{Notices: []NetworkNotice{n}}})
}

// OccupyBumID says that another client of the network has a document of this number. It is remembered after a restart.
func (s *Server) OccupyBumID(bumID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindNetworkOccupied, BumID: strings.ToLower(bumID)})
}

// NetworkDocument is what the service knows of one document, sent or received. A test that ran the emulator as its own process opens its Dir
// with New after that process has ended, to ask for it.
type NetworkDocument struct {
	BumID, Kind string // Invoice or CreditNote
	SHA256      string // of the body of a sent document, of the data of a received one, in hex
	DataSHA256  string // of its data alone
	Files       []NetworkFile
	At          time.Time // when it was accepted or published

	TimesPosted   int      // how often it reached the service, whatever became of the calls
	TimesAccepted int      // more than once is a fault of the emulator itself
	Outcomes      []string // what becomes of a sent document; none: it is delivered

	WasSent  bool            // a received document: to the client, to its last byte; its files say the same of themselves
	Notified []NetworkNotice // that the client posted about it
}

// SentDocuments returns the documents that the client sent, in the order in which they were accepted.
func (s *Server) SentDocuments() []NetworkDocument { return s.describeDocuments(false) }

// ReceivedDocuments returns the documents that were published, in their order.
func (s *Server) ReceivedDocuments() []NetworkDocument { return s.describeDocuments(true) }

func (s *Server) describeDocuments(received bool) (all []NetworkDocument) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.state.network.all {
		if d.isReceived != received {
			continue
		}
		v := NetworkDocument{BumID: d.bumID, Kind: d.kind, SHA256: d.sha256, DataSHA256: d.dataSHA256, At: d.acceptedAt, TimesAccepted: d.accepted,
			Outcomes: slices.Clone(d.outcomes), WasSent: d.wasSent, Notified: slices.Clone(d.notified)}
		if p := s.state.network.posted[d.bumID]; p != nil {
			v.TimesPosted = p.times
		}
		for _, f := range d.files {
			v.Files = append(v.Files, *f)
		}
		all = append(all, v)
	}
	return all
}

// Notices returns every notification, also the acknowledged ones and those whose time has not come, in the order in which they were made.
func (s *Server) Notices() (all []NetworkNotice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, n := range s.state.network.notices {
		all = append(all, *n)
	}
	return all
}
