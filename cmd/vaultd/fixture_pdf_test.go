package main_test

import (
	"vaultd/internal/test/kit"

	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/ledger"
)

// sendPDF takes a single file of the PDF route as far as the upload, whose answer does not come.
func (s *shelf) sendPDF(file string, at time.Time) {
	s.t.Helper()
	s.claimPDF(file, at)
	doc := &ledger.Document{Metadata: []byte(`{"receivingEmailAddress":"ap@in.example","notificationEmailAddress":"clerk@acme.example"}`),
		Files: []archive.File{{Path: file, Size: 2_000_000, SHA256: archive.Sum([]byte(file))}}}
	p := archive.Package{Path: "x.pdf", Size: 2_000_000, SHA256: archive.Sum([]byte(file))}
	s.tell(file, at, doc, ledger.Sealed{ID: archive.DeriveID("pdf", p.SHA256, archive.Digest{}), Content: p.SHA256, Metadata: archive.Sum([]byte("ap@in.example")), Package: p, Seal: doc.Seal(p)})
	s.tell(file, at.Add(time.Second), nil, ledger.RegisterIntended{}, slotOf(file, at, "slot-"), ledger.UploadIntended{})
}

// claimPDF takes a single file.
func (s *shelf) claimPDF(file string, at time.Time) {
	s.t.Helper()
	key := archive.NewKey(at)
	s.keys[file] = key
	rs, err := s.ledger.Apply(s.t.Context(), ledger.Change{Key: key, At: archive.Instant{Wall: at},
		Events: []ledger.Event{ledger.ClaimedFolder{Route: ledger.PDF, Drop: "ap-scans", Folder: file}}})
	if err != nil || rs[0].Err != nil {
		s.t.Fatalf("err = %v, rs = %v, want no error, rs[0].Err = nil", err, rs)
	}
}

// slotOf is an upload slot for a file.
func slotOf(file string, at time.Time, number archive.RemoteID) ledger.TicketReceived {
	number += archive.RemoteID(file)
	return ledger.TicketReceived{Ticket: archive.Ticket{Remote: number, URL: urlCanary + "&key=" + archive.PresignedURL(number), Sent: archive.Instant{Wall: at}, Validity: time.Hour}}
}

// deliverPDF takes a single file to its end.
func (s *shelf) deliverPDF(file string, at time.Time) {
	s.t.Helper()
	s.sendPDF(file, at)
	s.confirmPDF(file, at.Add(2*time.Second))
}

func (s *shelf) confirmPDF(file string, at time.Time) {
	s.t.Helper()
	e, _, err := s.ledger.Entry(s.keys[file])
	kit.Must(s.t, err)
	doc, _, err := s.ledger.Document(e.Key)
	kit.Must(s.t, err)
	s.tell(file, at, nil, ledger.DeliveryConfirmed{Sent: e.Package.SHA256, Seal: doc.Seal(e.Package)})
	s.tell(file, at, nil, ledger.PlaceIntended{Dest: "_delivered/2026-11/" + file}, ledger.Placed{})
}

// loseAnswer leaves the upload of a single file without an answer until its slot is over.
func (s *shelf) loseAnswer(file string, at time.Time) {
	s.t.Helper()
	s.tell(file, at, nil, ledger.UploadUnanswered{Cause: ledger.Cause{Code: "timeout", Text: "no answer"}})
	s.tell(file, at.Add(time.Minute), nil, ledger.SentToQuarantine{Cause: ledger.DeliveryUnknown(ledger.PDF, "the upload was never answered")})
}

// filledWithPDFs has what filled has, two delivered PDFs, a duplicate of one, and one of which nobody knows whether it was delivered.
func filledWithPDFs(t *testing.T) *shelf {
	s := filled(t)
	s.deliverPDF("scan1.pdf", noon.Add(-4*time.Hour))
	s.deliverPDF("scan2.pdf", noon.Add(-3*time.Hour))
	s.claimPDF("copy.pdf", noon.Add(-2*time.Hour))
	s.tell("copy.pdf", noon.Add(-2*time.Hour), nil, ledger.FoundDuplicate{First: s.keys["scan1.pdf"]})
	s.tell("copy.pdf", noon.Add(-2*time.Hour), nil, ledger.PlaceIntended{Dest: "_duplicates/copy.pdf"}, ledger.Placed{})
	s.sendPDF("scan3.pdf", noon.Add(-time.Hour))
	s.loseAnswer("scan3.pdf", noon.Add(-50*time.Minute))
	return s
}
