// Package networkapi is the client of the business-network interface of the service, with its whole wire format. It stores files,
// sends invoices and credit notes, fetches what was received, lists and acknowledges notifications, posts notifications, and asks
// the directory of France. It also checks a document before it is sent, and composes the bytes that are sent.
//
// It reads leniently: unknown fields, numbers for texts, empty objects, both wrappers of an error, times in several forms. It never
// puts a word in the place of one that the network did not tell, and a list that may have ended early is never called whole. It
// sends strictly: the bytes of a document go out as they were given, and a file goes with its length, and never whole with another
// digest than the recorded one.
//
// It keeps no state, and it repeats nothing that changes something at the network. So a crash leaves nothing here. What may have
// been done by a call that died follows from what its caller committed before it. The network knows each document by a number of
// ours, so the same bytes under the same number may be sent again after an unknown outcome. What is certain after a failed call is
// the Outcome of its [apicall.Error].
package networkapi

import (
	"cmp"
	"errors"
	"net/http"
	"strings"

	"vaultd/internal/apicall"
	"vaultd/internal/archive"
)

// The versions of calls that have two, as their paths begin.
const (
	firstVersion  = "v1"
	secondVersion = "v2"
)

// The paths below the base address.
const (
	invoicesPath = "v2/invoices"
	// DefaultCreditNotes is the path of credit notes. Assumption: the specification only says that it mirrors that of invoices, so
	// it can be configured.
	DefaultCreditNotes = "/v2/creditNotes"

	filesPath           = "v2/files"
	validationFilesPath = "files" // as the specification writes it, without a version
	notificationsPath   = "v1.1/notifications"
	directoryPath       = "v1/directory/fr"
)

// Limits of a page of notifications, in items.
const (
	smallestPage = 1
	largestPage  = 5000
	defaultPage  = 500
)

// Limits of answers, in bytes.
const (
	smallAnswer        = 256 << 10
	documentAnswer     = 16 << 20
	notificationAnswer = 16 << 20
	directoryAnswer    = 8 << 20
)

// Config is what a Client works with. API has the account of this interface.
type Config struct {
	API         *apicall.API
	CreditNotes string // path of credit notes below the base address; empty: DefaultCreditNotes
	PageSize    int    // notifications in one answer, 1 to 5000; 0: 500
}

// Client speaks the business-network interface. It is safe for concurrent use.
type Client struct {
	api         *apicall.API
	creditNotes []string // read only
	pageSize    int
}

// New returns a client for cfg. API is needed.
func New(cfg Config) *Client {
	size := min(max(cmp.Or(cfg.PageSize, defaultPage), smallestPage), largestPage)
	return &Client{api: cfg.API, creditNotes: splitPath(cmp.Or(cfg.CreditNotes, DefaultCreditNotes)), pageSize: size}
}

// splitPath returns the segments of a path.
func splitPath(path string) []string { return strings.Split(strings.Trim(path, "/"), "/") }

// documentPath returns the path of one document.
func (c *Client) documentPath(kind archive.NetworkKind, id archive.RemoteID) ([]string, error) {
	switch kind {
	case archive.NetworkInvoice:
		return append(splitPath(invoicesPath), string(id)), nil
	case archive.NetworkCreditNote:
		return append(append([]string(nil), c.creditNotes...), string(id)), nil
	}
	return nil, errors.New("the document is neither an invoice nor a credit note")
}

// acceptJSON and sendJSON are headers of calls; they are never changed.
var (
	acceptJSON = http.Header{"Accept": {"application/json"}}
	sendJSON   = http.Header{"Accept": {"application/json"}, "Content-Type": {"application/json"}}
)

// requestError is a call that was not made, because what was asked for cannot be sent.
func requestError(op, why string) *apicall.Error {
	err := errors.New(why)
	return &apicall.Error{Outcome: apicall.NotSent, Code: "request", Op: op, Text: op + ": " + why, Err: err}
}
