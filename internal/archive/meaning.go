package archive

import (
	"net/url"
	"path"
	"strings"
)

// Meaning says what a notification of the network means for its document.
type Meaning uint8

// The meanings.
const (
	MeansUnfamiliar         Meaning = iota // a pair of codes that is not known: nothing is concluded from it
	MeansProcessing                        // the network has the document and works on it
	MeansDelivered                         // delivered, with the reservation that a later word may deny it
	MeansUndelivered                       // it does not reach its recipient
	MeansInvalid                           // its content is not valid for the way to its recipient
	MeansAccepted                          // its recipient accepted it
	MeansRefusedByRecipient                // its recipient rejected it
	MeansNoted                             // known, and without any effect on the document
	MeansReceived                          // a document came in for this account
	MeansAsks                              // a service that pays early asks for something: a person must act
	MeansCreditNote                        // a credit note about a discount waits, see [Notification.CreditNote]
)

// meanings are the pairs of response code and action code that the network is known to use.
var meanings = map[string]Meaning{
	"TechnicalAccept/ReceivedForProcessing":           MeansProcessing,
	"TechnicalInformation/DeliveryDelayed":            MeansProcessing,
	"TechnicalAccept/Delivered":                       MeansDelivered,
	"TechnicalReject/Undelivered":                     MeansUndelivered,
	"TechnicalReject/InvalidContent":                  MeansInvalid,
	"BusinessAccept/DocumentAccepted":                 MeansAccepted,
	"BusinessReject/DocumentRejected":                 MeansRefusedByRecipient,
	"TechnicalInformation/Received":                   MeansReceived,
	"TechnicalAccept/DeliveryConfirmed":               MeansNoted,
	"BusinessInformation/EligibleForEarlyPayment":     MeansNoted,
	"BusinessInformation/NotEligibleForEarlyPayment":  MeansNoted,
	"BusinessAccept/RequestForEarlyPayment":           MeansAsks,
	"BusinessInformation/DiscountCreditNoteAvailable": MeansCreditNote,
	"BusinessReject/RepaymentFailed":                  MeansAsks,
}

// Meaning returns what n means. Codes are compared letter by letter: one that is written otherwise is not known.
func (n Notification) Meaning() Meaning { return MeaningOfPair(n.Response + "/" + n.Action) }

// MeaningOfPair returns what a pair of codes means, as [Notification.JournalPair] writes it.
func MeaningOfPair(pair string) Meaning { return meanings[pair] }

// longestCode bounds a code in a pair, in characters.
const longestCode = 40

// Pair returns both codes as one word for people, such as TechnicalAccept/Delivered. It has letters, digits and signs of names alone,
// whatever the network wrote.
func (n Notification) Pair() string { return plainCode(n.Response) + "/" + plainCode(n.Action) }

// JournalPair returns the pair for a journal that never forgets: [Notification.Pair] where it is known, else "unfamiliar". What the
// network wrote there may name somebody, so it stands in the kept notification alone.
func (n Notification) JournalPair() string {
	if n.Meaning() == MeansUnfamiliar {
		return "unfamiliar"
	}
	return n.Pair()
}

func plainCode(code string) string {
	plain := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '?'
	}, code)
	return plain[:min(len(plain), longestCode)]
}

// AsksPerson reports whether the codes say something upon which a person must act.
func (n Notification) AsksPerson() bool {
	return n.Meaning() == MeansAsks || n.Meaning() == MeansCreditNote
}

// Announces reports whether the codes alone say that a document came in, which may be fetched.
func (n Notification) Announces() bool {
	return n.Meaning() == MeansReceived || n.Meaning() == MeansCreditNote
}

// IsAboutSent reports whether only the sender of a document is told so.
func (n Notification) IsAboutSent() bool {
	return n.Meaning() == MeansProcessing || n.Meaning() == MeansInvalid
}

// businessDocument is the relation of a link to the document that a notification is about.
const businessDocument = "businessDocument"

// CreditNote returns the number of the credit note that a notification says is
// available; empty: it says so of none. The note is named by a link, of which
// the number alone is taken, or else by the number of the notification.
func (n Notification) CreditNote() RemoteID {
	if n.Meaning() != MeansCreditNote {
		return ""
	}
	for _, l := range n.Links {
		if to, err := url.Parse(string(l.Address)); l.Relation == businessDocument && err == nil {
			if id := RemoteID(path.Base(to.Path)); id.IsBumID() {
				return id
			}
		}
	}
	return n.Document
}

// deliveryMeans is the property that tells how a document was delivered, with the words that it may have.
const deliveryMeans = "DeliveryMeansCode"

// DeliveryMeans returns how the document was delivered, in the network's word; empty: it was not told, or not in a word that is known.
func (n Notification) DeliveryMeans() string {
	switch word := n.Property(deliveryMeans); word {
	case "ElectronicDelivery", "EmailDelivery", "MailDelivery":
		return word
	}
	return ""
}

// Where a notification names the file that a check of the document made.
const (
	validationFileProperty = "ValidationFileReference"
	validationFileRelation = "validationFile"
	validationFilesFolder  = "files"
)

// MaxValidationFile is how many bytes of such a file are taken. The specification shows no limit.
const MaxValidationFile = 1 << 20

// ValidationFile returns the network's number of the file that tells what its check of the document found; empty: none is named. The file is named
// by a property, or by a link: of that the number alone is taken, and what host it leads to does not matter.
func (n Notification) ValidationFile() FileID {
	if id, err := ParseFileID(n.Property(validationFileProperty)); err == nil {
		return id
	}
	for _, l := range n.Links {
		to, err := url.Parse(string(l.Address))
		if l.Relation != validationFileRelation || err != nil || path.Base(path.Dir(to.Path)) != validationFilesFolder {
			continue
		}
		if id, err := ParseFileID(path.Base(to.Path)); err == nil {
			return id
		}
	}
	return ""
}
