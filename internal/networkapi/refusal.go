package networkapi

import (
	"net/http"
	"strings"

	"vaultd/internal/apicall"
)

// codePrefix stands before the number of each code of the network, as in Error.003.0038.
const codePrefix = "Error."

// The network's codes, without their prefix.
const (
	codeNoReceiver      = "001.0001" // the receiver does not exist in the network
	codeSystemError     = "001.0006"
	codeTechnical       = "001.0010"
	codeNotEnabled      = "001.0012" // a service of the network is not enabled for the account
	codeSecurity        = "002.0004" // a virus
	codeUnknownDocument = "003.0001"
	codeFileType        = "003.0020" // what a file is to its document is no word that the network knows
	codeFileTransfer    = "003.0032" // the file was lost on the network's side
	codeAlreadyExists   = "003.0038"
	codeField           = "004.0002" // a field is missing, or has another form
	codeNumberForm      = "004.0003" // the number of the document has another form
	codeNotJSON         = "004.0004" // the request is not JSON, or the header with its id is wrong
	codeEnding          = "004.0005" // the network takes no files of that type
	codeTooLarge        = "004.0012"
	codeParty           = "004.0013" // the scheme or the number of a party
	codeIBAN            = "004.0014"
)

// codeOf returns the network's code of a failed call, without its prefix.
func codeOf(e *apicall.Error) string {
	code := strings.TrimSpace(e.ServiceCode)
	if len(code) >= len(codePrefix) && strings.EqualFold(code[:len(codePrefix)], codePrefix) {
		return code[len(codePrefix):]
	}
	return code
}

// AlreadyExists reports whether the network refused a document because it knows its number already. This is the success of a
// repetition only where an earlier call with the same bytes got no answer. Only the caller knows that.
func AlreadyExists(err error) bool {
	e := apicall.AsError(err)
	return err != nil && e.Outcome == apicall.Refused && codeOf(e) == codeAlreadyExists
}

// IsNotEnabled reports whether the network said that a service of it, such as notifications, is not enabled for the account.
func IsNotEnabled(err error) bool {
	e := apicall.AsError(err)
	return err != nil && e.Status/100 == 4 && codeOf(e) == codeNotEnabled
}

// judgeRefusal sets what a failed call means for the document, by the network's code, its class, and the status. ServiceCode,
// ServiceClass and ErrorID of the error stay as the network told them. It returns err.
//
//   - Refused: the network does not take the document, and says why.
//   - NotProcessed: credentials, rights, the path, a service that is not enabled, a request that this program wrote wrongly. No
//     document is to blame.
//   - OutcomeUnknown: the network may have done it. A status of 500 or more stays unknown whatever the code.
func judgeRefusal(err error) error {
	if err == nil {
		return nil
	}
	e := apicall.AsError(err)
	if e.Outcome != apicall.NotProcessed || e.Status/100 != 4 {
		return e
	}
	e.Outcome = outcomeOf(e)
	if e.Outcome == apicall.Refused {
		e.Denied = false // a virus may come with 403, and is no lack of rights
	}
	return e
}

// outcomeOf judges an answer of status 4xx, of which apicall only knows that nothing was done.
func outcomeOf(e *apicall.Error) apicall.Outcome {
	if e.Status == http.StatusUnauthorized {
		return apicall.NotProcessed // whoever is not let in is told nothing about a document
	}
	switch codeOf(e) {
	case codeSystemError, codeTechnical, codeFileTransfer:
		return apicall.OutcomeUnknown // whatever the status: the network itself does not know what it did
	case codeNotEnabled, codeNotJSON:
		return apicall.NotProcessed
	case codeNoReceiver, codeSecurity:
		return apicall.Refused
	}
	switch {
	case e.Status == http.StatusForbidden, e.IsWebPage():
		return apicall.NotProcessed
	case strings.EqualFold(e.ServiceClass, "TECHNICAL"):
		return apicall.OutcomeUnknown
	case strings.EqualFold(e.ServiceClass, "VALIDATION"):
		return apicall.Refused
	case strings.EqualFold(e.ServiceClass, "BUSINESS"), strings.EqualFold(e.ServiceClass, "SECURITY"):
		// Assumption: a code of these classes that is not known may as well be about the account. Then no document is rejected for
		// it, and the route pauses.
		return apicall.NotProcessed
	}
	switch e.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return apicall.Refused // as other interfaces of the service say it, without a class
	}
	return apicall.NotProcessed
}
