package emulator

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The journal's kinds of the PDF upload.
const (
	kindSlot          = "pdf-slot"
	kindSlotStored    = "pdf-stored"
	kindSlotSpoiled   = "pdf-spoiled"   // the credentials behind the addresses of a slot died
	kindSlotAmbiguous = "pdf-ambiguous" // a faulty answer gave the slot the bumId of another one; nobody may use it
	kindSlotReleased  = "pdf-released"  // one more slot may hold a content
)

// PDFSlot is what the service knows of one slot of the PDF upload. A test that ran the emulator as its own process opens its Dir
// with New after that process has ended, to ask for it.
type PDFSlot struct {
	BumID                   string // also where the answer did not tell it
	Receiving, Notification string // the addresses of the registration, as they were sent
	RegisteredAt, Deadline  time.Time

	PUTs  []StoredPDF // every stored PUT, in order
	Flows int         // how many PDF flows began with them
}

// StoredPDF is one PUT that the store kept.
type StoredPDF struct {
	SHA256      string // in hex
	Size        int64  // in bytes
	At          time.Time
	IsTruncated bool // its body ended early, and the store kept it all the same
	IsRefused   bool // the store kept it, and answered that it does not take it
	BeginsFlow  bool
}

// slot is a PDFSlot as the server keeps it.
type slot struct {
	PDFSlot
	addressesRevokedAt time.Time // addresses made until then no longer work
	isAmbiguous        bool
}

// pdfState is the memory of the PDF upload: the sum of its lines in the journal.
type pdfState struct {
	all      []*slot // in the order they were made
	byID     map[string]*slot
	released map[pdfContent]int // how many slots may hold a content beside the first
}

// pdfContent is one document for one addressee.
type pdfContent struct{ receiving, sha256 string }

func newPDFContent(receiving, sha256 string) pdfContent {
	return pdfContent{strings.ToLower(receiving), strings.ToLower(sha256)}
}

func newPDFState() pdfState {
	return pdfState{byID: map[string]*slot{}, released: map[pdfContent]int{}}
}

// applyLine changes the memory by a line of the journal, live and at replay.
func (b *pdfState) applyLine(l journalLine) {
	switch l.Kind {
	case kindSlot:
		g := &slot{PDFSlot: PDFSlot{BumID: l.BumID, Receiving: l.PDF.Receiving, Notification: l.PDF.Notification,
			RegisteredAt: l.Time, Deadline: l.Time.Add(l.Window)}}
		b.all, b.byID[l.BumID] = append(b.all, g), g
	case kindSlotStored:
		g := b.byID[l.BumID]
		g.PUTs = append(g.PUTs, StoredPDF{l.SHA256, l.Size, l.Time, l.Torn, l.Refused, l.Flow})
		if l.Flow {
			g.Flows++
		}
	case kindSlotSpoiled:
		b.byID[l.BumID].addressesRevokedAt = l.Time
	case kindSlotAmbiguous:
		b.byID[l.BumID].isAmbiguous = true
	case kindSlotReleased:
		b.released[newPDFContent(l.PDF.Receiving, l.SHA256)]++
	}
}

// PDFSlots returns every slot, in the order in which they were made.
func (s *Server) PDFSlots() []PDFSlot {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []PDFSlot
	for _, g := range s.state.pdf.all {
		p := g.PDFSlot
		p.PUTs = slices.Clone(p.PUTs)
		all = append(all, p)
	}
	return all
}

// ReleasePDF says that a person released a document: one more slot may hold these bytes for this addressee. It may be said
// before or after the upload, and is remembered after a restart.
func (s *Server) ReleasePDF(receiving, sha256 string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commitLines(journalLine{Time: s.cfg.Clock(), Kind: kindSlotReleased, SHA256: sha256, PDF: &slotAddressees{Receiving: receiving}})
}

// describeDoubles returns one violation for each document that more slots hold than a person released. A slot whose content the
// store answered to refuse does not count: a client cannot know of it. Nor does a body that ended early: its digest is that of no document,
// and what is left of two documents may be the same.
func (b *pdfState) describeDoubles() (doubles []string) {
	holders := map[pdfContent][]string{}
	for _, g := range b.all {
		var held []pdfContent
		for _, p := range g.PUTs {
			if content := newPDFContent(g.Receiving, p.SHA256); !p.IsRefused && !p.IsTruncated && !slices.Contains(held, content) {
				held = append(held, content)
				holders[content] = append(holders[content], g.BumID)
			}
		}
	}
	for content, slots := range holders {
		if len(slots) > 1+b.released[content] {
			doubles = append(doubles, fmt.Sprintf("double PDF: SHA-256 %s for %s, slots %v", content.sha256, content.receiving, slots))
		}
	}
	slices.Sort(doubles)
	return doubles
}
