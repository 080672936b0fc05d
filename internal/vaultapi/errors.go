package vaultapi

import (
	"bytes"
	"errors"
	"net/http"
	"time"

	"vaultd/internal/apicall"
)

// Outcome says what a failed call may have done.
type Outcome uint8

const (
	// Unanswered: it may have been done.
	Unanswered Outcome = iota
	// NotSent: provably nothing of it left this machine.
	NotSent
	// TurnedAway: answered and certainly not done, but the request itself is not at fault: credentials, rights, a path.
	TurnedAway
	// Refused: answered and certainly not done, because of the request itself.
	Refused
)

func (o Outcome) String() string {
	return [...]string{"unanswered", "not sent", "turned away", "refused"}[min(o, Refused)]
}

// Error is how every call of a Client fails.
type Error struct {
	Outcome     Outcome
	Code        string        // stable, for machines: "http-403", "timeout", "dns"; see apicall.CallError.Kind
	Text        string        // for a person, with the request's id; no secret
	RetryAfter  time.Duration // asked for by the other side, for every call on the way to it; 0: nothing. See apicall.CallError
	Overload    bool          // 429 or 503: slow down
	Missing     bool          // 404
	MayBeAbsent bool          // 400, 404, 422, 502: the service may not know the bumId that was asked about, or the path is wrong
	Denied      bool          // the API refused credentials or rights
	Expired     bool          // the store refused an upload because its ticket is over
	Damaged     bool          // the package is not what was sealed, or cannot be read: its end was not sent
	Err         error         // the *apicall.CallError, or what was wrong with the answer
}

func (e *Error) Error() string { return e.Text }
func (e *Error) Unwrap() error { return e.Err }

var (
	errShape = errors.New("the answer is not of a form that is known")
	errPage  = errors.New("answered with a web page, as a proxy does that wants a sign-in, and not by the archive; look at the proxy and at base_url")
)

// fault translates a failed call; decide says what an answer with a refusal's status means.
func fault(err error, decide func(*apicall.CallError) Outcome) *Error {
	var ce *apicall.CallError
	if !errors.As(err, &ce) {
		return &Error{Outcome: Unanswered, Code: "unforeseen", Text: err.Error(), Err: err}
	}
	e := &Error{Code: ce.Kind(), Text: ce.Error(), RetryAfter: ce.RetryAfter, Err: ce,
		Overload:    ce.Status == http.StatusTooManyRequests || ce.Status == http.StatusServiceUnavailable,
		Missing:     ce.Status == http.StatusNotFound,
		MayBeAbsent: mayBeAbsent(ce.Status),
		Denied:      ce.Credentials()}
	switch ce.Outcome() {
	case apicall.NotSent:
		e.Outcome = NotSent
	case apicall.Refused:
		e.Outcome = decide(ce)
	}
	return e
}

// mayBeAbsent knows the answers with which services say that they do not know one bumId. Each of them may also be about
// the path of every call, so alone it tells nothing.
func mayBeAbsent(status int) bool {
	switch status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusUnprocessableEntity, http.StatusBadGateway:
		return true
	}
	return false
}

// unreadable is a 2xx answer whose content makes no sense. Whatever was asked for may have been done.
func unreadable(op string, a *apicall.Answer, err error) *Error {
	if webPage(a.Body) {
		err = errPage
	}
	return &Error{Outcome: Unanswered, Code: "unreadable", Err: err,
		Text: op + ": " + err.Error() + " (request id " + a.RequestID + ")"}
}

// webPage reports whether an answer's body is HTML, whatever its header says.
func webPage(body []byte) bool {
	head := bytes.ToLower(body[:min(len(body), 512)])
	return bytes.Contains(head, []byte("<!doctype html")) || bytes.Contains(head, []byte("<html"))
}

// byRegistration: 400 and its kin are about the documents; everything else is about us.
func byRegistration(ce *apicall.CallError) Outcome {
	switch ce.Status {
	case http.StatusBadRequest, http.StatusConflict, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return Refused
	}
	return TurnedAway
}

// byStore: a 4xx of the object store speaks of this upload; a redirect that was not followed does not.
func byStore(ce *apicall.CallError) Outcome {
	if ce.Status/100 == 4 {
		return Refused
	}
	return TurnedAway
}

// byQuestion: asking changes nothing, so a refused question is the environment's fault.
func byQuestion(*apicall.CallError) Outcome { return TurnedAway }
