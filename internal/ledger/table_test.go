package ledger

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"vaultd/internal/archive"
	"vaultd/internal/test/kit"
)

// codes are the columns of the tables, in the order of the states.
var codes = strings.Fields("no di pa ri rd se up uc ar de du re qu")

// row is one event in every state: "-" is illegal, "=" stays, else the next state.
type row struct {
	name string // the event, and what is special about the entry or the answer
	ev   Event
	next string
	with func(*Entry) // changes the usual entry of each state; may be nil
}

// answer is the service's, by whose clock the grace is over; ours decides.
func answer(w archive.ServiceStatus, r archive.RemoteID) StatusSeen {
	return StatusSeen{Receipt: archive.Receipt{Remote: r, Status: w, Updated: epoch.Add(time.Minute), Date: epoch.Add(100 * grace)}, Grace: grace}
}

// proven makes the next equal answer the last one that is needed.
func proven(w archive.ServiceStatus) func(*Entry) {
	return func(e *Entry) {
		if r := e.Current(); r != nil {
			r.LastStatus, r.EqualAnswers, r.LastAnswer = w, neededAnswers-1, epoch.Add(-time.Hour)
			r.Ticket.Sent.Wall, e.UploadedAt = epoch.Add(-grace), epoch.Add(-grace)
			if !r.ClosedAt.IsZero() {
				r.ClosedAt = epoch.Add(-grace)
			}
		}
	}
}

// often is proven, for an entry whose packages were failed or lost as often as it may be.
func often(w archive.ServiceStatus) func(*Entry) {
	return func(e *Entry) {
		proven(w)(e)
		e.Failures = maxFailures
	}
}

func unproven(e *Entry) {
	if r := e.Current(); r != nil {
		r.Unproven = true
	}
}

func orphan(f Fate) func(*Entry) {
	return func(e *Entry) {
		if slices.Contains([]State{None, Discovered, Delivered, Duplicate}, e.State) {
			return // never registered with the archive
		}
		old := Registration{Ticket: archive.Ticket{Remote: "old", Date: epoch}, Fate: f, ClosedAt: epoch}
		e.Registrations = append([]Registration{old}, e.Registrations...)
	}
}

// beside is proven, where an earlier registration may hold content.
func beside(f Fate, w archive.ServiceStatus) func(*Entry) {
	return func(e *Entry) {
		proven(w)(e)
		orphan(f)(e)
	}
}

// twice makes an archived entry one that the service archived under two numbers.
func twice(e *Entry) {
	if e.State == Archived {
		orphan(Succeeded)(e)
		e.PossibleDouble = true
	}
}

// unused is an older registration that may hold content, and one after it that was never used.
func unused(e *Entry) {
	if orphan(MaybeStored)(e); e.State == Packaged {
		e.Registrations = append(e.Registrations, Registration{Ticket: bare("unused"), ClosedAt: epoch})
	}
}

// byPDF makes an entry one that goes by the route whose service cannot be asked.
func byPDF(e *Entry) {
	if e.State != None {
		e.Route = PDF
	}
}

// neverPacked makes a quarantined entry one that was quarantined before it was packed.
func neverPacked(e *Entry) {
	if e.State == Quarantined {
		e.ID, e.FirstID, e.Content, e.Metadata, e.Package, e.Registrations = archive.ID{}, archive.ID{}, archive.Digest{}, archive.Digest{}, archive.Package{}, nil
	}
}

// overNetwork makes an entry one that goes over the business network. It has a file there, and another file is under way.
func overNetwork(e *Entry) {
	byNetwork(e)
	if e.State == Sending {
		e.Registrations = nil
	}
	e.StoredFiles, e.FilesUnderWay, e.LostFiles = []archive.FileID{"f"}, 1, 1
}

func noFileUnderWay(e *Entry) { e.FilesUnderWay = 0 }

// byNetwork makes an entry one that goes over the business network, with its document announced where it was sent.
func byNetwork(e *Entry) {
	if e.State == None {
		return
	}
	e.Route = Network
	if slices.Contains([]State{Packaged, Delivered}, e.State) {
		e.Body = archive.Digest{7}
	}
	if e.State == Delivered {
		e.Registrations = []Registration{{UploadIntents: 1, Fate: Succeeded, ClosedAt: epoch}}
	}
	if r := e.Current(); r != nil {
		e.Body, r.Ticket = archive.Digest{7}, archive.Ticket{Remote: e.OwnNumber(), Sent: at(0)}
	}
}

func copied(e *Entry) { e.Copied = true }

// told is a notification about the document of the usual entry.
func told(response, action string) NotificationSeen {
	return NotificationSeen{archive.Notification{AcknowledgementID: "a", Document: archive.NewBumID(usual(Packaged).ID.String()), Kind: archive.NetworkInvoice, Response: response, Action: action,
		Description: "why", Properties: []archive.NamedValue{{Name: "DeliveryMeansCode", Value: "MailDelivery"}}}}
}

// all runs changes one after the other.
func all(changes ...func(*Entry)) func(*Entry) {
	return func(e *Entry) {
		for _, change := range changes {
			change(e)
		}
	}
}

func unreconciled(e *Entry) { e.NeedsReconcile = e.State != None }

var (
	found         = RegistrationFound{Remote: "found", ID: archive.ID{1}, Date: epoch}
	foundStranger = RegistrationFound{Remote: "found", ID: archive.ID{9}}
	foundListed   = RegistrationFound{Remote: "now", ID: archive.ID{1}}

	recoveredKept = Recovered{State: Archived, Source: Kept, Dest: "_archived/x", ID: archive.ID{1}, Content: archive.Digest{1}, Metadata: archive.Digest{2},
		Package: zip(3), Remote: "b", SuccessRecord: []byte("{}"), ArchivedAt: epoch}
	recoveredGone      = Recovered{State: Archived, Source: Gone, Remote: "b", SuccessRecord: []byte("{}"), ArchivedAt: epoch}
	recoveredDelivered = Recovered{Route: PDF, State: Delivered, Source: Kept, Dest: "_delivered/x", ID: archive.ID{1}, Content: archive.Digest{1}, Metadata: archive.Digest{2},
		Package: zip(3), Remote: "b", UploadedAt: epoch}
	recoveredAlone = Recovered{State: Packaged, Source: Kept, Dest: "_archived/x", ID: archive.ID{1}, Content: archive.Digest{1}, Metadata: archive.Digest{2},
		Package: zip(3), Cause: Cause{Code: CauseByReceiptAlone}}
	recoveredDeliveredAlone = Recovered{Route: PDF, State: Quarantined, Source: Kept, Dest: "_delivered/x", ID: archive.ID{1}, Content: archive.Digest{1}, Metadata: archive.Digest{2},
		Package: zip(3), Cause: Cause{Code: CauseDeliveryUnknown}}
	recoveredSent     = Recovered{State: Uploaded, Source: Gone, Remote: "b", ID: archive.ID{1}}
	recoveredReturned = Recovered{State: Rejected, Source: Returned, Dest: "_rejected/x"}
)

var byPerson = Operator{UID: 7, Reason: archive.Digest{9}}

// stateTable holds every event against every state. The source is not touched by
// any of them.
var stateTable = []row{
	//                                                       no di pa ri rd se up uc ar de du re qu
	{"claimed", ClaimedFolder{Vault: "V"}, "                 di -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"claimed without a key", ClaimedFolder{}, "             -  -  -  -  -  -  -  -  -  -  -  -  - ", func(e *Entry) { e.Key = archive.Key{} }},
	{"still-changing", StillChanging{}, "                    -  =  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"postponed", Postponed{}, "                             -  =  =  =  =  =  =  =  =  =  =  =  = ", nil},
	{"postponed while held", Postponed{}, "                  -  -  -  -  -  -  -  -  -  -  -  -  - ", func(e *Entry) { e.Hold = true }},
	{"sealed", sealed, "                                     -  pa -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"sealed without identity", Sealed{Package: zip(3)}, "   -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"sealed, unidentified", sealed, "                       -  pa -  -  -  -  -  -  -  -  -  -  = ", all(byPDF, neverPacked, unreconciled)},
	{"sealed, unidentified, by network", sealed, "           -  pa -  -  -  -  -  -  -  -  -  -  = ", all(byNetwork, neverPacked, unreconciled)},
	{"sealed, unidentified, for the vault", sealed, "        -  pa -  -  -  -  -  -  -  -  -  -  - ", all(neverPacked, unreconciled)},
	{"sealed, unidentified, reconciled", sealed, "           -  pa -  -  -  -  -  -  -  -  -  -  - ", all(byPDF, neverPacked)},
	{"sealed, unidentified, gone", sealed, "                 -  pa -  -  -  -  -  -  -  -  -  -  - ", all(byPDF, neverPacked, unreconciled, func(e *Entry) { e.Source = Gone })},
	{"sealed twice, in doubt", sealed, "                     -  pa -  -  -  -  -  -  -  -  -  -  - ", all(byPDF, unreconciled)},
	{"resealed, same bytes", Resealed{Package: zip(3)}, "    -  -  =  =  =  =  -  -  -  -  -  -  - ", nil},
	{"resealed, other bytes", Resealed{Package: zip(4)}, "   -  -  =  =  =  -  -  -  -  -  -  -  - ", nil},
	{"resealed, sent before", Resealed{Package: zip(4)}, "   -  -  -  -  -  -  -  -  -  -  -  -  - ", orphan(Lapsed)},
	{"refused", Refused{}, "                                 -  re re -  -  -  -  -  -  -  -  -  - ", nil},
	{"refused after a ticket", Refused{}, "                  -  re -  -  -  -  -  -  -  -  -  -  - ", orphan(Unsent)},
	{"duplicate", FoundDuplicate{archive.Key{2}}, "          -  du -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"duplicate of nothing", FoundDuplicate{}, "             -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"quarantined", SentToQuarantine{}, "                                  -  qu qu qu qu qu qu qu -  -  -  -  - ", nil},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"register-intended", RegisterIntended{}, "              -  -  ri =  -  -  -  -  -  -  -  -  - ", nil},
	{"register-unanswered", RegisterUnanswered{}, "          -  -  -  pa -  -  -  -  -  -  -  -  - ", nil},
	{"register-not-taken", RegisterNotTaken{}, "             -  -  -  pa -  -  -  -  -  -  -  -  - ", nil},
	{"batch-refused", BatchRefused{Part: 1}, "               -  -  -  pa -  -  -  -  -  -  -  -  - ", nil},
	{"batch-refused into nothing", BatchRefused{}, "         -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"register-refused, first", RegisterRefused{}, "         -  -  -  re -  -  -  -  -  -  -  -  - ", nil},
	{"register-refused, taken", RegisterRefused{}, "         -  -  -  pa -  -  -  -  -  -  -  -  - ", orphan(Unsent)},
	{"register-refused, unanswered", RegisterRefused{}, "    -  -  -  pa -  -  -  -  -  -  -  -  - ", func(e *Entry) { e.Posts++ }},
	{"register-refused, in doubt", RegisterRefused{}, "      -  -  -  qu -  -  -  -  -  -  -  -  - ", func(e *Entry) { orphan(MaybeStored)(e); e.Generation = 1 }},
	{"registered", TicketReceived{ticket("new")}, "               -  -  -  rd -  -  -  -  -  -  -  -  - ", nil},
	{"registered without a URL", TicketReceived{bare("new")}, "   -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"registered without a number", TicketReceived{ticket("")}, " -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"cross-wired", AnswerMixedUp{}, "                          -  -  -  qu -  -  -  -  -  -  -  -  - ", nil},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"upload-intended", UploadIntended{}, "                  -  -  -  -  se =  -  -  -  -  -  -  - ", nil},
	{"upload-intended, URL wiped", UploadIntended{}, "       -  -  -  -  -  -  -  -  -  -  -  -  - ", wiped},
	{"upload-not-sent, only attempt", UploadNotSent{}, "     -  -  -  -  -  rd -  -  -  -  -  -  - ", nil},
	{"upload-not-sent, one before", UploadNotSent{}, "       -  -  -  -  -  =  -  -  -  -  -  -  - ", sentTwice},
	{"upload-not-sent, no MD5", UploadNotSent{WithoutMD5: true}, " - -  -  -  -  rd -  -  -  -  -  -  - ", nil},
	{"upload-unanswered", UploadUnanswered{}, "              -  -  -  -  -  =  -  -  -  -  -  -  - ", nil},
	{"upload-unanswered, not to be repeated", UploadUnanswered{NoRepeat: true}, " - - -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"upload-refused, only attempt", UploadRefused{}, "      -  -  -  -  -  pa -  -  -  -  -  -  - ", nil},
	{"upload-refused, one before", UploadRefused{}, "        -  -  -  -  -  =  -  -  -  -  -  -  - ", sentTwice},
	{"uploaded, other bytes", UploadAccepted{Sent: zip(4).SHA256}, "   -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"uploaded", accepted, "                         -  -  -  -  -  up -  -  -  -  -  -  - ", nil},
	{"content-compared", ContentCompared{"now"}, "                -  -  -  -  -  -  -  -  =  -  -  -  - ", unproven},
	{"content-differs", ContentDiffered{"now"}, "                 -  -  -  -  -  -  -  -  =  -  -  -  - ", nil},
	{"content-compared, proven", ContentCompared{"now"}, "        -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"window-closed", WindowClosed{}, "                      -  -  -  -  pa uc -  -  -  -  -  -  - ", nil},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"delivered", delivered, "                               -  -  -  -  -  de -  -  -  -  -  -  - ", byPDF},
	{"delivered to the vault", delivered, "                  -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"delivered, other bytes", DeliveryConfirmed{Sent: zip(4).SHA256}, "- - - -  -  -  -  -  -  -  -  -  - ", byPDF},
	{"upload-unanswered by pdf", UploadUnanswered{NoRepeat: true}, " -  -  -  -  -  qu -  -  -  -  -  -  - ", byPDF},
	{"uploaded by pdf", accepted, "                          -  -  -  -  -  -  -  -  -  -  -  -  - ", byPDF},
	{"window-closed by pdf", WindowClosed{}, "               -  -  -  -  pa qu -  -  -  -  -  -  - ", byPDF},
	{"upload-intended by pdf", UploadIntended{}, "           -  -  -  -  se =  -  -  -  -  -  -  - ", byPDF},
	{"seen by pdf", answer(3, "now"), "                      -  -  -  -  -  -  -  -  -  -  -  -  - ", byPDF},
	{"unsealed", Unsealed{}, "                               -  -  di -  -  -  -  -  -  -  -  -  - ", byPDF},
	{"unsealed for the vault", Unsealed{}, "                 -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"unsealed, sent before", Unsealed{}, "                  -  -  -  -  -  -  -  -  -  -  -  -  - ", func(e *Entry) { orphan(MaybeStored)(e); byPDF(e) }},
	{"doubted by pdf", ReconcileRequired{}, "                -  qu qu qu qu qu qu qu =  =  =  =  = ", byPDF},
	{"released by pdf", Released{byPerson}, "                -  -  -  -  -  -  -  pa -  -  -  -  pa", byPDF},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"ticket-shared", TicketShared{"now"}, "                 -  =  =  =  =  =  =  =  =  =  =  =  = ", nil},
	{"upload-intended, ticket shared", UploadIntended{}, "   -  -  -  -  -  =  -  -  -  -  -  -  - ", shared},
	{"outcome-late, accepted", OutcomeLate{Act{Remote: "now"}, accepted}, " -  =  =  =  up up =  up =  =  =  =  = ", nil},
	{"outcome-late, old accepted", OutcomeLate{Act{Remote: "old"}, accepted}, "-  =  up =  up =  =  =  =  =  =  =  = ", orphan(Lapsed)},
	{"outcome-late, refused", OutcomeLate{Act{Remote: "now"}, UploadRefused{}}, " -  =  =  =  =  =  =  =  =  =  =  =  = ", nil},
	{"outcome-late, delivered", OutcomeLate{Act{Remote: "now"}, delivered}, "-  =  =  =  =  de de =  =  =  =  =  de", byPDF},
	{"outcome-late, document taken", OutcomeLate{Act{Remote: archive.NewBumID(usual(Packaged).ID.String())}, DocumentTaken{}}, "-  =  =  =  =  up =  =  =  =  =  =  up", byNetwork},
	{"outcome-late, document refused", OutcomeLate{Act{Remote: archive.NewBumID(usual(Packaged).ID.String())}, DocumentRefused{}}, "-  =  =  =  =  =  =  =  =  =  =  =  = ", byNetwork},
	{"outcome-late, of a stranger", OutcomeLate{Act{Remote: "stranger"}, UploadRefused{}}, "- =  =  =  =  =  =  =  =  =  =  =  = ", nil},
	{"outcome-late, a ticket", OutcomeLate{Act{}, TicketReceived{ticket("new")}}, "        -  =  =  =  =  =  =  =  =  =  =  =  = ", nil},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"files-intended", FilesIntended{Count: 2}, "            -  -  se -  -  =  -  -  -  -  -  -  - ", overNetwork},
	{"files-intended, none", FilesIntended{}, "              -  -  -  -  -  -  -  -  -  -  -  -  - ", overNetwork},
	{"files-intended, document announced", FilesIntended{Count: 1}, "-  -  se -  -  -  -  -  -  -  -  -  - ", byNetwork},
	{"files-intended to the vault", FilesIntended{Count: 1}, "-  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"files-intended, unreconciled", FilesIntended{Count: 1}, "-  -  -  -  -  -  -  -  -  -  -  -  - ", all(overNetwork, unreconciled)},
	{"files-stored", filesStored("g"), "                     -  -  -  -  -  =  -  -  -  -  -  -  - ", overNetwork},
	{"files-stored, more than announced", filesStored("g", "h"), "-  -  -  -  -  -  -  -  -  -  -  -  - ", overNetwork},
	{"files-stored, none", FilesStored{}, "                  -  -  -  -  -  -  -  -  -  -  -  -  - ", overNetwork},
	{"files-stored without a number", filesStored(""), "     -  -  -  -  -  -  -  -  -  -  -  -  - ", overNetwork},
	{"files-stored, not announced", filesStored("g"), "      -  -  -  -  -  -  -  -  -  -  -  -  - ", byNetwork},
	{"upload-unanswered, of a file", UploadUnanswered{}, "   -  -  -  -  -  =  -  -  -  -  -  -  - ", overNetwork},
	{"upload-not-sent, of a file", UploadNotSent{}, "        -  -  -  -  -  =  -  -  -  -  -  -  - ", overNetwork},
	{"upload-not-sent, no file announced", UploadNotSent{}, "-  -  -  -  -  -  -  -  -  -  -  -  - ", all(overNetwork, noFileUnderWay)},
	{"document-refused, for a file", DocumentRefused{}, "    -  -  -  -  -  re -  -  -  -  -  -  - ", overNetwork},
	{"document-refused, nothing announced", DocumentRefused{}, "-  -  -  -  -  -  -  -  -  -  -  -  - ", all(overNetwork, noFileUnderWay)},
	{"document-intended, a file under way", DocumentIntended{archive.Digest{7}}, "- -  -  -  -  -  -  -  -  -  -  -  - ", overNetwork},
	{"document-intended", DocumentIntended{archive.Digest{7}}, " - -  se -  -  =  -  -  -  -  -  -  - ", byNetwork},
	{"document-intended, after its files", DocumentIntended{archive.Digest{7}}, "-  -  se -  -  =  -  -  -  -  -  -  - ", all(overNetwork, noFileUnderWay)},
	{"document-intended, other body", DocumentIntended{archive.Digest{8}}, "-  -  se -  -  -  -  -  -  -  -  -  - ", byNetwork},
	{"document-intended, no body", DocumentIntended{}, "     -  -  -  -  -  -  -  -  -  -  -  -  - ", byNetwork},
	{"document-intended by pdf", DocumentIntended{archive.Digest{7}}, "- - -  -  -  -  -  -  -  -  -  -  - ", byPDF},
	{"document-taken", DocumentTaken{}, "                    -  -  -  -  -  up -  -  -  -  -  -  - ", byNetwork},
	{"document-taken, not announced", DocumentTaken{}, "     -  -  -  -  -  -  -  -  -  -  -  -  - ", overNetwork},
	{"document-taken, known after one try", DocumentTaken{WasKnown: true}, "- - -  -  -  -  -  -  -  -  -  -  - ", byNetwork},
	{"document-taken, known after two", DocumentTaken{WasKnown: true}, "-  -  -  -  -  up -  -  -  -  -  -  - ", all(byNetwork, sentTwice)},
	{"document-refused", DocumentRefused{}, "                -  -  -  -  -  re -  -  -  -  -  -  - ", byNetwork},
	{"document-refused, number taken", DocumentRefused{Cause{Code: CauseNumberTaken}}, "- - -  -  -  qu -  -  -  -  -  -  - ", byNetwork},
	{"document-refused, one before", DocumentRefused{}, "    -  -  -  -  -  qu -  -  -  -  -  -  - ", all(byNetwork, sentTwice)},
	{"copy-put", CopyPut{}, "                                -  -  -  -  -  -  -  -  -  =  -  -  - ", byNetwork},
	{"copy-put twice", CopyPut{}, "                          -  -  -  -  -  -  -  -  -  -  -  -  - ", all(byNetwork, copied)},
	{"copy-put, placed", CopyPut{}, "                        -  -  -  -  -  -  -  -  -  -  -  -  - ", all(byNetwork, func(e *Entry) { e.Source = Kept })},
	{"copy-put, unreconciled", CopyPut{}, "                  -  -  -  -  -  -  -  -  -  -  -  -  - ", all(byNetwork, unreconciled)},
	{"copy-put to the vault", CopyPut{}, "                   -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"upload-unanswered by network", UploadUnanswered{}, "   -  -  -  -  -  =  -  -  -  -  -  -  - ", byNetwork},
	{"upload-not-sent by network", UploadNotSent{}, "        -  -  -  -  -  =  -  -  -  -  -  -  - ", byNetwork},
	{"upload-intended by network", UploadIntended{}, "       -  -  -  -  -  -  -  -  -  -  -  -  - ", byNetwork},
	{"register-intended by network", RegisterIntended{}, "   -  -  -  -  -  -  -  -  -  -  -  -  - ", byNetwork},
	{"doubted by network", ReconcileRequired{}, "            -  qu qu qu qu qu qu qu =  =  =  =  = ", byNetwork},
	{"released by network", Released{byPerson}, "            -  -  -  -  -  -  -  pa -  -  -  -  pa", byNetwork},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"told of a stranger", NotificationSeen{archive.Notification{AcknowledgementID: "a", Document: "stranger", Response: "TechnicalAccept", Action: "Delivered"}}, "- - - - - - - - - - - - - ", byNetwork},
	{"told without a number", NotificationSeen{archive.Notification{Document: archive.NewBumID(usual(Packaged).ID.String())}}, "- - - - - - - - - - - - - ", byNetwork},
	{"told of a PDF", told("TechnicalAccept", "Delivered"), "-  -  -  -  -  -  -  -  -  -  -  -  - ", byPDF},
	{"told processing", told("TechnicalAccept", "ReceivedForProcessing"), "-  -  -  -  =  up =  =  =  =  -  =  up", byNetwork},
	{"told delayed", told("TechnicalInformation", "DeliveryDelayed"), "-  -  -  -  =  up =  =  =  =  -  =  up", byNetwork},
	{"told delivered", told("TechnicalAccept", "Delivered"), "-  -  -  -  =  de de =  =  =  -  =  de", byNetwork},
	{"told undelivered", told("TechnicalReject", "Undelivered"), "-  -  -  -  =  re re =  =  =  -  =  re", byNetwork},
	{"told invalid", told("TechnicalReject", "InvalidContent"), "-  -  -  -  =  re re =  =  =  -  =  re", byNetwork},
	{"told accepted", told("BusinessAccept", "DocumentAccepted"), "-  -  -  -  =  =  =  =  =  =  -  =  = ", byNetwork},
	{"told rejected", told("BusinessReject", "DocumentRejected"), "-  -  -  -  =  =  =  =  =  =  -  =  = ", byNetwork},
	{"told unfamiliar", told("TechnicalAccept", "delivered"), "-  -  -  -  =  =  =  =  =  =  -  =  = ", byNetwork},
	{"told delivered, number of another", told("TechnicalAccept", "Delivered"), "-  -  -  -  =  de de =  =  =  -  =  - ", all(byNetwork, func(e *Entry) { e.Cause.Code = CauseNumberTaken })},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"seen of a stranger", answer(3, "stranger"), "          -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"seen successful", answer(3, "now"), "                  -  -  -  -  ar ar ar ar =  -  -  =  = ", nil},
	{"seen successful, old", answer(3, "old"), "             -  -  ar ar ar ar ar ar =  -  -  =  = ", orphan(Lapsed)},
	{"seen in-progress", answer(2, "now"), "                 -  -  -  -  up up =  up =  -  -  =  = ", nil},
	{"seen in-progress, old", answer(2, "old"), "            -  -  up =  =  =  =  =  =  -  -  =  = ", orphan(MaybeStored)},
	{"seen in-progress, released before", answer(2, "old"), "-  -  =  =  =  =  =  =  =  -  -  =  = ", unused},
	{"seen in-progress, given up", answer(2, "old"), "       -  -  up =  up =  =  =  =  -  -  =  = ", orphan(Lapsed)},
	{"seen in-progress, refused", answer(2, "old"), "        -  -  up =  up =  =  =  =  -  -  =  = ", orphan(Declined)},
	{"seen failed once", answer(4, "now"), "                 -  -  -  -  =  =  pa =  =  -  -  =  = ", nil},
	{"seen failed the third time", answer(4, "now"), "       -  -  -  -  =  =  qu =  =  -  -  =  = ", func(e *Entry) { e.Failures = 2 }},
	{"seen failed, proven", answer(4, "now"), "              -  -  -  -  =  =  pa pa =  -  -  =  = ", proven(archive.Failed)},
	{"seen failed, before this one", failedBefore, "         -  -  -  -  =  =  uc =  =  -  -  =  = ", proven(archive.Failed)},
	{"seen failed, proven, the third time", answer(4, "now"), " -  -  -  -  =  =  qu qu =  -  -  =  = ", often(archive.Failed)},
	{"seen waiting, proven, the third time", answer(1, "now"), "-  -  -  -  =  =  uc qu =  -  -  =  = ", often(archive.WaitingForPackage)},
	{"seen waiting once", answer(1, "now"), "                -  -  -  -  =  =  =  =  =  -  -  =  = ", nil},
	{"seen waiting, proven", answer(1, "now"), "             -  -  -  -  =  =  uc pa =  -  -  =  = ", proven(archive.WaitingForPackage)},
	{"seen absent, ever so often", answer(5, "now"), "       -  -  -  -  =  =  uc =  =  -  -  =  = ", proven(archive.Absent)},
	{"seen unfamiliar, ever so often", answer(0, "now"), "   -  -  -  -  =  =  =  =  =  -  -  =  = ", proven(archive.Unfamiliar)},

	{"seen waiting, proven, another stored", answer(1, "now"), "-  -  -  -  =  =  uc up =  -  -  =  = ", beside(Stored, archive.WaitingForPackage)},
	{"seen waiting, proven, another maybe", answer(1, "now"), "-  -  -  -  =  =  uc =  =  -  -  =  = ", beside(MaybeStored, archive.WaitingForPackage)},
	{"seen failed, proven, another stored", answer(4, "now"), "-  -  -  -  =  =  =  up =  -  -  =  = ", beside(Stored, archive.Failed)},
	{"seen failed, proven, another maybe", answer(4, "now"), " -  -  -  -  =  =  uc =  =  -  -  =  = ", beside(MaybeStored, archive.Failed)},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"reconcile-required", ReconcileRequired{}, "                                 -  =  =  pa uc uc =  =  =  =  =  =  = ", nil},
	{"doubted again", ReconcileRequired{}, "                           -  -  -  -  -  -  -  -  -  -  -  -  - ", unreconciled},
	{"registration-found", found, "                          -  -  =  =  =  =  =  =  =  -  -  =  = ", nil},
	{"registration-found, unreconciled", found, "            -  -  uc -  -  -  uc =  =  -  -  =  = ", unreconciled},
	{"registration-found of a stranger", foundStranger, "    -  -  -  -  -  -  -  -  -  -  -  -  - ", unreconciled},
	{"registration-found, listed", foundListed, "            -  -  uc -  =  =  =  =  =  -  -  =  = ", unreconciled},
	{"reconciled", Reconciled{}, "                           -  =  =  =  =  =  =  =  =  =  =  =  = ", unreconciled},
	{"reconciled already", Reconciled{}, "                   -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"recovered from a receipt", recoveredKept, "            ar -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"recovered from the index", recoveredGone, "            ar -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"recovered from a folder", recoveredReturned, "         re -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"recovered as delivered", recoveredDelivered, "         de -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"recovered as delivered to the vault", Recovered{State: Delivered, Source: Kept, Dest: "_delivered/x", ID: archive.ID{1}, Content: archive.Digest{1}, Package: zip(3),
		Remote: "b", UploadedAt: epoch}, "- - - - - - - - - - - - -", nil},
	{"recovered from an unsigned receipt", recoveredAlone, "     pa -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"recovered from an unsigned note", recoveredDeliveredAlone, "qu -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"recovered from an unsigned receipt, with its number", Recovered{State: Packaged, Source: Kept, Dest: "_archived/x", ID: archive.ID{1}, Content: archive.Digest{1}, Package: zip(3),
		Remote: "b", Cause: Cause{Code: CauseByReceiptAlone}}, "- - - - - - - - - - - - -", nil},
	{"reconciled, by a receipt alone", Reconciled{}, "                       -  -  -  -  -  -  -  -  =  =  =  =  = ", func(e *Entry) { unreconciled(e); e.Cause.Code = CauseByReceiptAlone }},
	{"recovered without a word", Recovered{State: Archived, Source: Gone, Remote: "b", ArchivedAt: epoch}, "- - - - - - - - - - - - -", nil},
	{"recovered on its way", recoveredSent, "            up -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"recovered on its way, of nobody", Recovered{State: Uploaded, Source: Gone, Remote: "b"}, "- - - - - - - - - - - - -", nil},
	{"recovered on its way, with a folder", Recovered{State: Uploaded, Source: Claimed, Remote: "b", ID: archive.ID{1}}, "- - - - - - - - - - - - -", nil},
	{"register-intended, unreconciled", RegisterIntended{}, "     -  -  -  -  -  -  -  -  -  -  -  -  - ", unreconciled},
	{"upload-intended, unreconciled", UploadIntended{}, "    -  -  -  -  -  -  -  -  -  -  -  -  - ", unreconciled},
	{"refused, unreconciled", Refused{}, "                   -  qu -  -  -  -  -  -  -  -  -  -  - ", unreconciled},
	{"closed, unreconciled", Closed{byPerson}, "             -  -  -  -  -  -  -  -  -  -  -  =  - ", unreconciled},
	{"released, unreconciled", Released{byPerson}, "         -  -  -  -  -  -  -  -  -  -  -  -  - ", unreconciled},
	{"closed, contradicted", Closed{byPerson}, "             -  re re -  -  -  -  re =  -  -  =  re", func(e *Entry) { e.Contradicted = e.State == Archived }},

	//                                                       no di pa ri rd se up uc ar de du re qu
	{"held", Held{By: byPerson}, "                               -  =  =  =  =  =  =  =  =  =  =  =  = ", nil},
	{"held again", Held{By: byPerson}, "                         -  -  -  -  -  -  -  -  -  -  -  -  - ", func(e *Entry) { e.Hold = true }},
	{"held, cut off", Held{By: byPerson, CutOff: Cause{Code: CauseLooksCutOff}}, " -  =  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"held, taken as it is", Held{By: byPerson, CutOff: Cause{Code: CauseLooksCutOff}}, " - - - - - - - - - - - - - ", func(e *Entry) { e.CutOff = CutOffTaken }},
	{"unheld", Unheld{byPerson}, "                           -  =  =  =  =  =  =  =  =  =  =  =  = ", func(e *Entry) { e.Hold = e.State != None }},
	{"unheld, not held", Unheld{byPerson}, "                 -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
	{"closed, archived twice", Closed{byPerson}, "           -  re re -  -  -  -  re =  -  -  =  re", twice},
	{"closed", Closed{byPerson}, "                           -  re re -  -  -  -  re -  -  -  =  re", nil},
	{"released", Released{byPerson}, "                       -  -  -  -  -  -  -  pa -  -  -  -  pa", nil},
	{"released before it was sealed", Released{byPerson}, "  -  -  -  -  -  -  -  di -  -  -  -  di", func(e *Entry) { e.Package = archive.Package{} }},
	{"released, archived meanwhile", Released{byPerson}, "   -  -  -  -  -  -  -  ar -  -  -  -  ar", orphan(Succeeded)},
	{"released, being archived meanwhile", Released{byPerson}, " - - -  -  -  -  -  up -  -  -  -  up", func(e *Entry) {
		orphan(Stored)(e)
		if len(e.Registrations) > 0 {
			e.Registrations[0].LastStatus = archive.InProgress
		}
	}},
	{"closed, refused by its recipient", Closed{byPerson}, " -  re re -  -  -  -  re -  =  -  =  re", func(e *Entry) {
		if e.State == Delivered {
			e.Recipient = RecipientRejected
		}
	}},
	{"closed, missing source", Closed{byPerson}, "           -  re re -  -  -  -  re =  =  -  =  re", func(e *Entry) {
		if e.State == Archived || e.State == Delivered {
			e.Source, e.Cause.Code = Kept, CauseSourceMissing
		}
	}},
	{"closed again", Closed{byPerson}, "                     -  re re -  -  -  -  re -  -  -  -  re", func(e *Entry) { e.Resolved = e.State.IsFinal() }},
	{"superseded", Superseded{archive.Key{2}}, "             -  -  -  -  -  -  -  -  -  -  -  =  - ", nil},
	{"retaken before it was given back", Retried{byPerson, archive.Key{2}}, " -  -  -  -  -  -  -  -  -  -  -  -  - ", nil},
}

var (
	sealed       = Sealed{ID: archive.ID{1}, Package: zip(3)}
	failedBefore = StatusSeen{Receipt: archive.Receipt{Remote: "now", Status: archive.Failed, Updated: epoch.Add(-time.Minute), Date: epoch.Add(100 * grace)}, Grace: grace}
)

// accepted says that the store took the package zip(3).
var accepted = UploadAccepted{Sent: zip(3).SHA256}

// delivered is accepted where the service has no later word.
var delivered = DeliveryConfirmed{Sent: zip(3).SHA256}

func zip(n byte) archive.Package { return archive.Package{Size: 1, SHA256: archive.Digest{n}} }

func ticket(r archive.RemoteID) archive.Ticket {
	return archive.Ticket{Remote: r, URL: "u", Sent: at(0), Date: epoch}
}

func bare(r archive.RemoteID) archive.Ticket {
	t := ticket(r)
	t.URL = ""
	return t
}

func wiped(e *Entry) {
	if r := e.Current(); r != nil {
		r.Ticket.URL = ""
	}
}

func shared(e *Entry) {
	if r := e.Current(); r != nil {
		r.Shared = true
	}
}

func sentTwice(e *Entry) {
	if r := e.Current(); r != nil {
		r.UploadIntents = 2
	}
}

// usual returns the entry as it usually stands in a state.
func usual(s State) Entry {
	e := Entry{Key: archive.Key{1}, Rev: 9, State: s, Source: Claimed}
	if s == None {
		return Entry{Key: archive.Key{1}}
	}
	if s != Discovered {
		e.ID, e.FirstID, e.Package = archive.ID{1}, archive.ID{1}, zip(3)
	}
	if s >= Registering {
		e.Posts, e.Acts = 1, 1
	}
	fates := map[State]Fate{Registered: Unsent, Sending: MaybeStored, Uploaded: Stored, Unclear: MaybeStored, Archived: Succeeded, Rejected: MaybeStored, Quarantined: MaybeStored}
	if f, ok := fates[s]; ok {
		e.Answers = 1
		e.Registrations = []Registration{{Ticket: ticket("now"), UploadIntents: 1, Fate: f, ClosedAt: epoch}}
	}
	r := e.Current()
	switch s {
	case Registered:
		r.UploadIntents, r.ClosedAt = 0, time.Time{}
	case Sending:
		r.ClosedAt = time.Time{}
	case Archived:
		e.ArchivedRemote = "now"
	}
	if r != nil && s != Registered && s != Sending {
		r.Ticket.URL = ""
	}
	if s == Uploaded {
		e.UploadedAt = epoch
	}
	return e
}

func TestTransition_EveryEventInEveryState(t *testing.T) {
	for _, r := range stateTable {
		t.Run(r.name, func(t *testing.T) {
			cells := strings.Fields(r.next)
			if len(cells) != len(codes) {
				t.Fatalf("%d cells for %d states", len(cells), len(codes))
			}
			for s := None; s <= Quarantined; s++ {
				e := usual(s)
				if r.with != nil {
					r.with(&e)
				}
				next, err := Transition(e, r.ev, at(0))
				got := "-"
				switch {
				case err != nil && !errors.Is(err, ErrIllegal):
					t.Errorf("in %s: error %v is no ErrIllegal", s, err)
				case err == nil && next.State == e.State:
					got = "="
				case err == nil:
					got = codes[next.State]
				}
				if got != cells[s] {
					t.Errorf("in %s: got %s, want %s (%v)", s, got, cells[s], err)
				}
				if want := e.Source; err == nil && next.Source != want && s != None {
					t.Errorf("in %s: the source went from %s to %s", s, want, next.Source)
				}
			}
		})
	}
}

// sources are the columns of the second table, in the order of the sources.
var sources = strings.Fields("no cl rg rt kg kp dg mv gn")

// sourceTable holds the events of the source against every source, in the states
// that the row is for.
var sourceTable = []struct {
	name   string
	ev     Event
	states []State
	next   string
	with   func(*Entry)
}{
	//                                                                                  no cl rg rt kg kp dg mv gn
	{"place-intended back", PlaceIntended{"there"}, []State{Duplicate, Rejected}, "     -  rg =  -  -  -  -  -  - ", nil},
	{"place-intended", PlaceIntended{"there"}, []State{Archived, Delivered}, "          -  kg -  -  =  -  -  -  - ", nil},
	{"place-intended, not final", PlaceIntended{"there"}, except(finals...), "           -  -  -  -  -  -  -  -  - ", nil},
	{"place-intended nowhere", PlaceIntended{}, allStates, "                            -  -  -  -  -  -  -  -  - ", nil},
	{"placed", Placed{epoch}, allStates, "                                              -  -  rt -  kp -  -  -  - ", nil},
	{"dispose-intended, ripe", DisposeIntended{}, []State{Archived, Delivered}, "       -  -  -  -  -  dg =  -  - ", ripe},
	{"dispose-intended, not archived", DisposeIntended{}, except(Archived, Delivered), " -  -  -  -  -  -  -  -  - ", ripe},
	{"dispose-intended, to be kept", DisposeIntended{}, allStates, "                    -  -  -  -  -  -  -  -  - ", nil},
	{"dispose-intended, too early", DisposeIntended{}, allStates, "                     -  -  -  -  -  -  -  -  - ", but(func(e *Entry) { e.DisposeAt = epoch.Add(1) })},
	{"dispose-intended, held", DisposeIntended{}, allStates, "                          -  -  -  -  -  -  -  -  - ", but(func(e *Entry) { e.Hold = true })},
	{"dispose-intended, double", DisposeIntended{}, allStates, "                        -  -  -  -  -  -  -  -  - ", but(func(e *Entry) { e.PossibleDouble = true })},
	{"dispose-intended, contradicted", DisposeIntended{}, allStates, "                  -  -  -  -  -  -  -  -  - ", but(func(e *Entry) { e.Contradicted = true })},
	{"dispose-intended, refused by its recipient", DisposeIntended{}, allStates, "      -  -  -  -  -  -  -  -  - ", but(func(e *Entry) { e.Recipient = RecipientRejected })},
	{"dispose-intended, resolved refusal", DisposeIntended{}, []State{Delivered}, "     -  -  -  -  -  dg =  -  - ", but(func(e *Entry) { e.Recipient, e.Resolved = RecipientRejected, true })},
	{"dispose-intended, no number", DisposeIntended{}, except(Delivered), "              -  -  -  -  -  -  -  -  - ", but(func(e *Entry) { e.ArchivedRemote = "" })},
	{"dispose-intended, unreconciled", DisposeIntended{}, allStates, "                  -  -  -  -  -  -  -  -  - ", but(unreconciled)},
	{"place-intended, unreconciled", PlaceIntended{"there"}, finals, "                  -  -  -  -  -  -  -  -  - ", unreconciled},
	{"closed, contradicted", Closed{byPerson}, []State{Archived}, "                     =  =  =  =  =  =  kp =  = ", but(func(e *Entry) { e.Contradicted = true })},
	{"closed, double halfway", Closed{byPerson}, []State{Archived}, "                   -  -  -  -  -  -  kp -  - ", but(func(e *Entry) { e.PossibleDouble = true })},
	{"retaken", Retried{byPerson, archive.Key{2}}, []State{Rejected}, "                 -  -  -  =  -  -  -  -  - ", nil},
	{"retaken again", Retried{byPerson, archive.Key{2}}, []State{Rejected}, "           -  -  -  -  -  -  -  -  - ", func(e *Entry) { e.Resolved = true }},
	{"retaken, not rejected", Retried{byPerson, archive.Key{2}}, except(Rejected), "    -  -  -  -  -  -  -  -  - ", nil},
	{"source-found kept", SourceFound{Kept, "there"}, []State{Archived}, "              kp kp kp -  kp -  kp -  - ", unreconciled},
	{"source-found moved", SourceFound{Moved, "/there"}, []State{Archived}, "           mv mv mv -  mv mv mv -  - ", unreconciled},
	{"source-found gone", SourceFound{Gone, ""}, []State{Archived}, "                   gn gn gn -  gn gn gn -  - ", unreconciled},
	{"source-found back", SourceFound{Returned, "there"}, []State{Rejected, Duplicate}, " rt rt rt -  rt rt rt -  - ", unreconciled},
	{"source-found gone, given back", SourceFound{Gone, ""}, []State{Rejected, Duplicate}, " gn gn gn -  gn gn gn -  - ", unreconciled},
	{"source-found gone, stuck", SourceFound{Gone, ""}, []State{Quarantined}, "         gn gn gn -  gn gn gn -  - ", unreconciled},
	{"source-found back, stuck", SourceFound{Returned, "there"}, []State{Quarantined}, " rt rt rt -  rt rt rt -  - ", unreconciled},
	{"source-found kept, stuck", SourceFound{Kept, "there"}, []State{Quarantined}, "    kp kp kp -  kp -  kp -  - ", unreconciled},
	{"source-found gone, not ended", SourceFound{Gone, ""}, except(Archived, Delivered, Rejected, Duplicate, Quarantined), "- - - - - - - - - ", unreconciled},
	{"source-found, reconciled", SourceFound{Kept, "there"}, allStates, "         -  -  -  -  -  -  -  -  - ", nil},
	{"source-found nowhere", SourceFound{Kept, ""}, allStates, "                        -  -  -  -  -  -  -  -  - ", unreconciled},
	{"disposed", Disposed{}, allStates, "                                               -  -  -  -  -  -  gn -  - ", nil},
	{"disposed elsewhere", Disposed{"/there"}, allStates, "                             -  -  -  -  -  -  mv -  - ", nil},
	{"source-checked, missing", SourceChecked{Cause: Cause{Code: CauseSourceMissing}}, []State{Archived, Delivered}, " -  -  -  -  -  =  -  -  - ", nil},
	{"source-checked, not at its end", SourceChecked{Cause: Cause{Code: CauseSourceMissing}}, except(Archived, Delivered), " -  -  -  -  -  -  -  -  - ", nil},
	{"source-checked, another cause", SourceChecked{Cause: Cause{Code: "other"}}, allStates, "     -  -  -  -  -  -  -  -  - ", nil},
	{"source-checked, there as it says", SourceChecked{}, allStates, "                  -  -  -  -  -  -  -  -  - ", nil},
	{"source-checked, there again", SourceChecked{}, []State{Archived, Delivered}, "  -  -  -  -  -  =  -  -  - ", func(e *Entry) { e.Cause.Code = CauseSourceMissing }},
	{"source-checked, unreconciled", SourceChecked{Cause: Cause{Code: CauseSourceMissing}}, allStates, " -  -  -  -  -  -  -  -  - ", unreconciled},
	{"source-untouchable", DisposalStopped{}, []State{Archived, Delivered}, "         -  -  -  -  -  =  kp -  - ", nil},
	{"source-untouchable, not at its end", DisposalStopped{}, except(Archived, Delivered), " -  -  -  -  -  -  -  -  - ", nil},
}

var allStates, finals = States(), except(except(Archived, Delivered, Duplicate, Rejected)...)

func except(some ...State) []State {
	return slices.DeleteFunc(States(), func(s State) bool { return slices.Contains(some, s) })
}

func ripe(e *Entry) { e.DisposeAt, e.ArchivedRemote = epoch, "now" }

func but(f func(*Entry)) func(*Entry) { return func(e *Entry) { ripe(e); f(e) } }

func TestTransition_EveryEventOfTheSource_I3(t *testing.T) {
	for _, r := range sourceTable {
		t.Run(r.name, func(t *testing.T) {
			cells := strings.Fields(r.next)
			if len(cells) != len(sources) {
				t.Fatalf("%d cells for %d sources", len(cells), len(sources))
			}
			for _, s := range r.states {
				for src := NoSource; src <= Gone; src++ {
					e := usual(s)
					e.Source = src
					if r.with != nil {
						r.with(&e)
					}
					next, err := Transition(e, r.ev, at(0))
					got := "-"
					switch {
					case err == nil && next.Source == src:
						got = "="
					case err == nil:
						got = sources[next.Source]
					}
					if got != cells[src] || err == nil && next.State != s {
						t.Errorf("in %s/%s: got %s %s, want %s", s, src, next.State, got, cells[src])
					}
				}
			}
		})
	}
}

// samples are the events of both tables.
func samples() []Event {
	var evs []Event
	for _, r := range stateTable {
		evs = append(evs, r.ev)
	}
	for _, r := range sourceTable {
		evs = append(evs, r.ev)
	}
	return evs
}

// TestTables_NoEventIsMissing reads the package itself: every type with an apply
// method must stand in a table, or somebody added an event and no row.
func TestTables_NoEventIsMissing(t *testing.T) {
	have := map[string]bool{}
	for _, ev := range samples() {
		have[reflect.TypeOf(ev).Name()] = true
	}
	n := 0
	for _, name := range eventTypes(t) {
		n++
		if !have[name] {
			t.Errorf("event %s stands in no table", name)
		}
	}
	if n < 25 {
		t.Errorf("only %d events found in the source", n)
	}
}

func eventTypes(t *testing.T) []string {
	t.Helper()
	paths, err := filepath.Glob("*.go")
	kit.Must(t, err)
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		kit.Must(t, err)
		files = append(files, f)
	}
	var names []string
	for _, f := range files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil && fn.Name.Name == "apply" {
				names = append(names, fn.Recv.List[0].Type.(*ast.Ident).Name)
			}
		}
	}
	return names
}
