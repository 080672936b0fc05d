package networkapi

import (
	"net/http"
	"strings"

	"vaultd/internal/apicall"
)

// subject is what a call that sends brought to the network.
type subject uint8

const (
	aboutDocument subject = iota
	aboutFile             // one of its files
)

// ruling is what a code of the network means for people: a row of the table of codes.
type ruling struct {
	brief string // stable code of the cause; its words are what a list shows
	// What was refused, and what whoever made it does about it, as
	// [apicall.Plain] has them. Both empty: no document is at fault, so none
	// comes back, and the route waits for IT, whose advice is that on brief.
	says, do string
}

// Rulings on a document and on one of its files. A code that is in neither, and
// means a refusal, is judged by [ruleWithoutCode]; the codes of technical
// faults are in none, because the call is repeated.
var (
	ruleNotEnabled = ruling{brief: "service-not-enabled"}
	ruleOurRequest = ruling{brief: "request-not-accepted"} // this program wrote the request: no person who drops folders can mend it
	ruleOurType    = ruling{brief: "file-type-not-known"}  // comes from the configuration

	documentRulings = map[string]ruling{
		codeNoReceiver: {"recipient-not-in-the-network", "The business network does not have this recipient, or cannot look for it now",
			"Compare the recipient in document.json with what the recipient publishes. If it is right, nothing in this folder is at fault: IT asks the provider, and tells you when to move this whole folder back."},
		codeNotEnabled:      ruleNotEnabled,
		codeSecurity:        {"security-violation", "document.json did not pass the business network's check for viruses", "Tell IT. Export the document again"},
		codeUnknownDocument: ruleOurRequest,
		codeFileType:        ruleOurType,
		codeAlreadyExists:   {brief: "number-taken", says: "The business network has a document under this number already", do: "Ask IT."},
		codeField:           {"field-not-accepted", "The business network does not take a field of document.json", "Put that field right"},
		codeNumberForm:      ruleOurRequest,
		codeNotJSON:         ruleOurRequest,
		codeEnding:          {"file-type-not-taken", "The business network does not take the type of one of the files; it takes " + endingWords, "Save the file as one of these types, or take it out of the folder"},
		codeTooLarge:        {"too-large", "document.json is too large for the business network", "Make it smaller"},
		codeParty:           {"party-not-accepted", "The business network does not take the scheme or the number of a party in document.json", "Put it right"},
		codeIBAN:            {"iban-not-accepted", "The business network does not take an IBAN in document.json", "Put it right"},
	}
	fileRulings = map[string]ruling{
		codeNoReceiver:      documentRulings[codeNoReceiver],
		codeNotEnabled:      ruleNotEnabled,
		codeSecurity:        {"virus-found", "did not pass the business network's check for viruses", "Tell IT. Take the file out of the folder, or put a clean one in its place"},
		codeUnknownDocument: ruleOurRequest,
		codeFileType:        ruleOurType,
		codeAlreadyExists:   ruleOurRequest,
		codeField:           ruleOurRequest,
		codeNumberForm:      ruleOurRequest,
		codeNotJSON:         ruleOurRequest,
		codeEnding:          {"file-type-not-taken", "is of a type that the business network does not take; it takes " + endingWords, "Save it as one of these types, or take it out of the folder"},
		codeTooLarge:        {"file-too-large", "is too large for the business network", "Make it smaller, or take it out of the folder"},
		codeParty:           ruleOurRequest,
		codeIBAN:            ruleOurRequest,
	}
)

var endingWords = strings.Join(Endings, ", ")

// The rulings on refusals without a code that is known.
var (
	ruleFileLostThere = ruling{"files-lost-there", "The business network does not know files of this document any more, which it took before",
		"Nothing in this folder is at fault: move this whole folder back, and its files are sent again."}
	ruleSaysWhere = ruling{"not-accepted", "The business network does not take document.json", "Put right what it names"}
	ruleUnknown   = ruling{"not-accepted", "The business network does not take this document, and its words name nothing in it",
		"Nothing in this folder is known to be at fault: IT asks the provider, and tells you when to move this whole folder back."}
	ruleFileUnknown = ruling{"file-not-accepted", "is not taken by the business network, whose words name no reason that is known",
		"The file is not known to be at fault: IT asks the provider, and tells you when to move this whole folder back."}
)

// judgeSending judges a failed call that sends, as judgeRefusal does, and puts
// a refusal into words. What this program, the configuration or the account is
// to blame for refuses no document.
func judgeSending(err error, about subject) error {
	if err == nil {
		return nil
	}
	e := apicall.AsError(judgeRefusal(err))
	if e.Outcome != apicall.Refused && e.Outcome != apicall.NotProcessed || e.Status/100 != 4 || e.Status == http.StatusUnauthorized || e.IsWebPage() {
		return e
	}
	r, known := ruleOn(e, about)
	switch {
	case known && r.says == "":
		e.Outcome, e.Code = apicall.NotProcessed, r.brief
	case e.Outcome == apicall.Refused:
		e.Code, e.Plain = r.brief, &apicall.Plain{Head: "NOT SENT", Says: r.says, Do: r.do}
	}
	return e
}

// ruleOn returns the ruling on a refusal; known is false where its code is in no table.
func ruleOn(e *apicall.Error, about subject) (r ruling, known bool) {
	table := documentRulings
	if about == aboutFile {
		table = fileRulings
	}
	code := codeOf(e)
	r, known = table[code]
	switch inFiles := strings.Contains(e.Field+e.Message, "fileRefs"); {
	case about == aboutDocument && inFiles && (code == codeField || !known):
		return ruleFileLostThere, true
	case known:
		return r, true
	case e.Status == http.StatusRequestEntityTooLarge:
		return table[codeTooLarge], false
	case about == aboutFile:
		return ruleFileUnknown, false
	case e.Field != "":
		return ruleSaysWhere, false
	}
	return ruleUnknown, false
}
