package present

import (
	"cmp"
	"maps"
	"strings"

	"vaultd/internal/ledger"
)

// Words are how people are told of the documents of one route. Each route has a row of them: code that is about words reads the row, and
// asks no predicate of the route. A new route is a new row.
//
// Texts are whole sentences or phrases, and are shown as they are: nothing in them comes from outside.
type Words struct {
	Package       string // what is sent, as a title
	Files         string // the title over its files
	Registrations string // the title over its numbers at the service
	SameAs        string // before the name of the one that a duplicate repeats
	Evidence      string // the record that proves its end, as the name of a link
	Record        string // the same in a sentence
	Says          string // before a word of the service, with a place for it
	AnswersTitle  string // the column of what the service last said; empty: it cannot be asked
	Group         string // what its drops take, and where it goes; empty: the vault says it
	End           string // the state in which all is well
	NotEnded      string // what did not happen to what comes back
	NoEvidence    string // why there is no evidence of one that has not ended well
	Lookup        string // where a person who closed it in doubt must look before it is dropped again
	ReleasedAgain string // what a release leads to that may be double
	DoubleMark    string // a few words for one that may be double
	LateMark      string // what stands behind CONTRADICTED where it was delivered; may be empty
	SentAgain     string // what a release leads to
	Contradictor  string // who may contradict its end
	NoDownload    string // why nothing can be downloaded; empty: the archive has it
	NotEndedYet   string // that it has not ended well yet
	Repeats       string // of a duplicate: what became of the first one
	Taken         string // who took it at its delivery, and how
	LaterWord     string // what came after its delivery where that was contradicted
	KeptPlace     string // where the kept one lies, as words before its place

	Progress Progress
	Notes    NoteWords

	means        map[ledger.State]string
	inDoubt      string // what is certain of one that was closed in doubt
	steps        map[ledger.Step]string
	fates        map[ledger.Fate]string
	causes       map[string]string // by the code of a cause, its text for people, with a place for its facts
	duplicate    string            // why it is a duplicate
	Identity     string            // the title of its identity
	identitySeed string            // what its identity is derived from
	posts        string            // the title over its POSTs, with places for how many there were and how many were answered
	drop         string            // the title of its drop and where that leads
	metadata     string            // the title over what it says, where nothing is known of that
	leftOut      string            // of a file that lies in its folder and is not sent
	flags        flagWords
	options      optionWords
	refusals     refusalWords
}

// Progress says in a few words where a taken document is, to who dropped it.
type Progress struct {
	Title     string // over _STATUS.txt
	Thing     string // what people call a thing that is dropped
	UnderWay  string // the same one is being worked on
	At        map[ledger.State]string
	Else      string // in every other state
	Against   string // that the service says something else than its end
	Late      string // that it was rejected after it had been delivered; empty: nobody hears of that
	Refused   string // that the recipient rejected it; empty: no recipient is heard of
	Checking  string // what IT does before it goes on, in capitals
	Stopped   string // until when nothing is taken, with a place for the thing
	Reserved  string // that its name cannot be used
	DiskFull  string // why it waits
	NoSidecar string // what a person does about a folder without a sidecar, behind since when; may be empty
}

// NoteWords stand in the notes beside what came back, or is kept.
type NoteWords struct {
	Refused     string // how a refusal begins
	Undone      string // how a rejection begins of one that the service had; empty: as Refused
	InDoubt     string // what is said of one that was closed in doubt
	Remedy      string // what is said behind a refusal that does not say it itself; may be empty
	Delivered   string // the head of a delivery note; empty: it is never delivered
	Twice       string // that it may have been processed twice
	When        string // the title of when it was delivered
	Number      string // the title of its number at the service
	NumberTitle string // the same on a terminal
	Double      string // the same as Twice, on a terminal
	Kept        string // in capitals, what is kept
	Sent        string // the title of what was sent
	Done        string // what was done with it, as in "it was not archived"
	Differs     string // how the kept folder differs
	Page        string // what a delivery note says first on a terminal
}

// flagWords say what is special about one.
type flagWords struct {
	inDoubt, double, contradicted string
	rejectedLate                  string // of a delivered one that is contradicted; empty: contradicted
	mark, lateMark                string // the same as a mark behind the state
}

// optionWords say what a person can do, and what it means.
type optionWords struct {
	release, close   string
	releaseTaken     string // where the number is taken
	contradicted     string
	rejectedLate     string // of a delivered one that is contradicted; empty: contradicted
	compare          string // the kept one with what was sent
	seeFirst         string // of a duplicate
	retry            string
	validatesFirst   bool // the command validate helps with its folder
	lookFor          string
	lookForNumber    string // before the bumId; empty: the service tells itself about each registration
	numberTaken      string // before the bumId
	wait             string // while the service has it; may be empty
	rejectedByPeople string // by the recipient; empty: no recipient is heard of
	lost             string // that a part of its life is not known
	longWithoutWord  string // with places for how long and the limit
}

// refusalWords say why an act is not allowed.
type refusalWords struct{ knownAlready, reconcile string }

// rows has the words of each route.
var rows = map[ledger.Route]Words{ledger.Vault: vaultWords, ledger.PDF: pdfWords, ledger.Network: networkWords}

// WordsOf returns the words of a route. Of an old entry no route is recorded: it goes to the archive.
func WordsOf(r ledger.Route) Words {
	if w, ok := rows[r]; ok {
		return w
	}
	return vaultWords
}

// CauseText is the cause of e in words. The ledger keeps of it what happened, or
// only which file or entry it is about; what to do is said here.
func CauseText(e ledger.Entry) string {
	if form := cmp.Or(WordsOf(e.Route).causes[e.Cause.Code], causes[e.Cause.Code]); form != "" {
		return strings.ReplaceAll(form, "%s", e.Cause.Text)
	}
	return e.Cause.Text
}

// causes are the texts of causes that are the same for each route.
var causes = map[string]string{
	ledger.CauseGivenBack: "It was given back before anything was sent. Ask IT why, and drop it again where it belongs.",
}

// StateTexts returns what is certain in each state, for a test that each text has a translation.
func (w Words) StateTexts() map[ledger.State]string { return maps.Clone(w.means) }

// explainFate says what is known about the content of one registration.
func (w Words) explainFate(f ledger.Fate) string {
	if text, ok := w.fates[f]; ok {
		return text
	}
	return "unknown"
}

// contradictedOf picks the words for one that the service contradicts: the first ones where it was delivered, and they are set.
func contradictedOf(e ledger.Entry, rejectedLate, contradicted string) string {
	if e.State == ledger.Delivered && rejectedLate != "" {
		return rejectedLate
	}
	return contradicted
}

// refusalBeginnings is how the texts of our own refusals begin. Each is a page for the person who dropped the folder.
var refusalBeginnings = func() (all []string) {
	for _, w := range rows {
		for _, begin := range []string{w.Notes.Refused, w.Notes.Undone} {
			if begin != "" {
				all = append(all, begin)
			}
		}
	}
	return all
}()

// IsOwnRefusal reports whether a text is one of our own refusals: whoever dropped the folder reads it whole, and its code says it in brief.
func IsOwnRefusal(text string) bool {
	for _, begin := range refusalBeginnings {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}
	return false
}

// DescribeMeans says how the business network says that it delivered a document; empty: it does not.
func DescribeMeans(e ledger.Entry) string {
	return map[string]string{ledger.ElectronicDelivery: "electronically", ledger.EmailDelivery: "by e-mail", ledger.MailDelivery: "by letter"}[e.Means]
}

// DescribeRecipient says what the recipient said about a document; empty: nothing.
func DescribeRecipient(e ledger.Entry) string {
	switch e.Recipient {
	case ledger.RecipientAccepted:
		return "the recipient accepted it"
	case ledger.RecipientRejected:
		return "the recipient rejected it"
	}
	return ""
}

// DescribeValidation says how to get the file with what the business network's
// check of a document found; empty: the network named none.
func DescribeValidation(e ledger.Entry) string {
	if e.ValidationFile == "" {
		return ""
	}
	return "The business network has checked it, and has a file with what the check found. IT can fetch that: vaultd show X --check-file, with the folder's name in the place of X."
}
