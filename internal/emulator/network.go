package emulator

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Network describes the business network. Its zero value is a service that the main account may use, that knows every receiver, and
// that delivers at once.
//
// What becomes of a document can be chosen by words in its data.note, as in "emulate:delayed emulate:undelivered". A document without
// such a word has the outcome that Outcomes draw, and is delivered where they draw none. The words are those of [OutcomeRate].
type Network struct {
	Account     Account // that alone may use it, with HTTP Basic; zero: the main one
	CreditNotes string  // path of credit notes, default /v2/creditNotes
	MaxFile     int64   // bytes of one file, default 200,000,000
	MaxDocument int64   // bytes of the body of one document, default 6,000,000

	ValidationAfter        time.Duration // from the notification that names a validation file until that can be fetched
	DeliverMin, DeliverMax time.Duration // time from the POST to Delivered, Undelivered or InvalidContent, drawn evenly between the two
	DecideAfter            time.Duration // from Delivered to the word of the recipient, default 0
	RejectAfter            time.Duration // from Delivered to a late rejection, default 72h

	UnknownReceivers []string // ids of endpoints that nobody has; every other one is known
	Outcomes         []OutcomeRate
	Directory        []DirectoryLine // until SetDirectory gives another one
	// RequiresListed: a document to a company in France (FR:ORGNR) is a violation where no answer of the directory named a valid line of it in the
	// 24 hours before anything of the document came.
	RequiresListed bool
}

// OutcomeRate makes a part of the documents have an outcome. It is drawn in order, and the first that is drawn is taken.
//
// The outcomes are: delivered, undelivered, invalid (InvalidContent, with a validation file), checked (Delivered, with one),
// late-reject (Undelivered days after Delivered), accepted-by-recipient, rejected-by-recipient, delayed (DeliveryDelayed comes before the end), unknown-pair (a pair of codes that
// no document names, then Delivered), services (all notifications of value added services), email and mail (the DeliveryMeansCode),
// and silent (no notification at all).
type OutcomeRate struct {
	Outcome string
	Rate    float64 // 0 to 1
}

// The kinds of documents that the network carries.
const (
	invoiceKind    = "Invoice"
	creditNoteKind = "CreditNote"
)

const invoicesPath = "/v2/invoices"

// bumIDPattern is that of the specification: small letters, versions 1 to 5.
var bumIDPattern = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func (n *Network) setDefaults() {
	setDefault(&n.CreditNotes, "/v2/creditNotes")
	setDefault(&n.MaxFile, 200_000_000)
	setDefault(&n.MaxDocument, 6_000_000)
	setDefault(&n.RejectAfter, 72*time.Hour)
	n.DeliverMax = max(n.DeliverMin, n.DeliverMax)
}

func (n *Network) check() error {
	if p := n.CreditNotes; p != path.Clean(p) || len(p) < 2 || p[0] != '/' || strings.ContainsAny(p, "{} \t") ||
		!strings.HasPrefix(p, "/v2/") || slices.Contains([]string{invoicesPath, "/v2/files", "/v2/dataExtracts"}, p) {
		return fmt.Errorf("path of credit notes %q is not a plain path of its own below /v2/", p)
	}
	for _, o := range n.Outcomes {
		if !slices.Contains(networkOutcomes, o.Outcome) {
			return fmt.Errorf("outcome %q of the network is none of %q", o.Outcome, networkOutcomes)
		}
		if !(o.Rate >= 0 && o.Rate <= 1) {
			return fmt.Errorf("outcome %s of the network: rate %v is not between 0 and 1", o.Outcome, o.Rate)
		}
	}
	return nil
}

// networkService is the business network. It knows HTTP Basic alone, and a client must not begin with many calls at once.
func (c *Config) networkService() *service {
	return &service{accounts: []Account{c.Network.Account}, scopes: nil, startsSlowly: true, isBasicOnly: true,
		errorForm: func(r Readings) string { return r.ErrorBody }}
}

// networkOperations are the rows of the business network.
func (c *Config) networkOperations() []operation {
	n := c.networkService()
	const notices = "/v1.1/notifications"
	rows := []operation{
		{op: "network-file", of: n, method: "POST", path: "/v2/files", isUpload: true, serve: requireRequestID((*Server).storeNetworkFile)},
		{op: "network-fetch-file", of: n, method: "GET", path: "/v1/files/{fileId}", serve: requireRequestID(fetchNetworkFile(firstVersion))},
		{op: "network-fetch-file", of: n, method: "GET", path: "/v2/files/{fileId}", serve: requireRequestID(fetchNetworkFile(secondVersion))},
		{op: "network-validation-file", of: n, method: "GET", path: "/files/{fileReference}", serve: requireRequestID((*Server).fetchValidationFile)},
		{op: "network-notices", of: n, method: "GET", path: notices, serve: allowRequestID((*Server).listNotices)},
		{op: "network-notify", of: n, method: "POST", path: notices, observe: observeWord, serve: allowRequestID((*Server).takeNotice)},
		{op: "network-acknowledge", of: n, method: "DELETE", path: notices + "/{id}", serve: allowRequestID((*Server).acknowledgeNotice)},
		{op: "network-directory", of: n, method: "GET", path: "/v1/directory/fr", serve: requireRequestID((*Server).lookUpDirectory)},
	}
	for _, kind := range []string{invoiceKind, creditNoteKind} {
		at := c.documentPath(kind)
		v1 := strings.Replace(at, "/v2/", "/v1/", 1)
		rows = append(rows,
			operation{op: "network-send", of: n, method: "POST", path: at + "/{bumId}", observe: observePost(kind), serve: requireRequestID(sendDocument(kind))},
			operation{op: "network-fetch", of: n, method: "GET", path: at + "/{bumId}", serve: requireRequestID(fetchDocument(kind, secondVersion))},
			operation{op: "network-fetch", of: n, method: "GET", path: v1 + "/{bumId}", serve: requireRequestID(fetchDocument(kind, firstVersion))})
	}
	return rows
}

// version is one of the two versions of the calls that fetch.
type version bool

const (
	firstVersion  version = false
	secondVersion version = true
)

func (v version) word() string {
	if v == secondVersion {
		return "v2"
	}
	return "v1"
}

// documentPath returns the path of the documents of a kind.
func (c *Config) documentPath(kind string) string {
	if kind == creditNoteKind {
		return c.Network.CreditNotes
	}
	return invoicesPath
}

// requireRequestID lets a call through only with a UUID in its request identifier.
func requireRequestID(h handler) handler {
	return func(s *Server, c *call) reply {
		if !isUUID(c.Header.Get(s.cfg.RequestIDHeader)) {
			return c.networkRefusal("Error.004.0004", "the header "+s.cfg.RequestIDHeader+" is missing or no UUID")
		}
		return h(s, c)
	}
}

// allowRequestID lets a call through without a request identifier, and with one that is a UUID.
func allowRequestID(h handler) handler {
	return func(s *Server, c *call) reply {
		if id := c.Header.Get(s.cfg.RequestIDHeader); id != "" && !isUUID(id) {
			return c.networkRefusal("Error.004.0004", "the header "+s.cfg.RequestIDHeader+" is no UUID")
		}
		return h(s, c)
	}
}

// isUUID reports whether a text is a UUID in its usual form. The parser alone would take other forms as well.
func isUUID(text string) bool {
	_, err := uuid.Parse(text)
	return err == nil && len(text) == 36
}

// NetworkReadings choose between the plausible meanings of what the specification of the business network leaves open.
type NetworkReadings struct {
	ErrorWrapper   string // the object of an error answer is in the field: error | errors (with a version, and the faults by field)
	SendAnswer     string // the answer to a document: empty (200) | json (201)
	Files          string // a file is sent as: binary | base64
	CreditNoteWord string // the documentType of credit notes in notifications: CreditNode | CreditNote
	Received       string // received documents are announced by: code (TechnicalInformation/Received in every list; type is ignored) | type (TechnicalAccept/Delivered, listed only with type=DocumentsReceived) | filter (as type, and the list without type has them too) | code-only (as code; a query with type is refused)
	Times          string // notificationCreated is in: seconds | milliseconds
	RepeatedDelete string // a notification that is acknowledged already: 404 | 200
	FileHeaders    string // a file is sent with: type (a Content-Type, of PDF and XML alone) | all (with its name and its encoding) | fileref (the document names it, no header does)
	ReceivedAt     string // received documents and their files are known in: both versions of the GETs | v1 alone
	FetchSent      string // GET of a document that the client sent itself: served | refused (403, also where it is of another client) | unknown (404)
	Directory      string // the directory lists the lines that are: valid | all (those whose time is over, too)
	Validation     string // a validation file is named by: both (a property and a link) | property | link
	ValidationAt   string // a validation file is known below: files (as the specification writes it) | v2 | v1 (as all other files)
	LinksTo        string // the base address in links; empty: the host that was asked
}

func (r *NetworkReadings) check() error {
	return errors.Join(
		checkWord("Network.ErrorWrapper", &r.ErrorWrapper, "error", "errors"),
		checkWord("Network.SendAnswer", &r.SendAnswer, "empty", "json"),
		checkWord("Network.Files", &r.Files, "binary", "base64"),
		checkWord("Network.CreditNoteWord", &r.CreditNoteWord, creditNodeWord, creditNoteKind),
		checkWord("Network.Received", &r.Received, "code", "type", "filter", "code-only"),
		checkWord("Network.Times", &r.Times, "seconds", "milliseconds"),
		checkWord("Network.RepeatedDelete", &r.RepeatedDelete, "404", "200"),
		checkWord("Network.FileHeaders", &r.FileHeaders, "type", "all", "fileref"),
		checkWord("Network.ReceivedAt", &r.ReceivedAt, "both", "v1"),
		checkWord("Network.FetchSent", &r.FetchSent, "served", "refused", "unknown"),
		checkWord("Network.Validation", &r.Validation, "both", "property", "link"),
		checkWord("Network.ValidationAt", &r.ValidationAt, validationAtFiles, "v2", "v1"),
		checkWord("Network.Directory", &r.Directory, "valid", "all"),
	)
}

// knowsReceived reports whether received documents are known in that version of the GETs.
func (r NetworkReadings) knowsReceived(v version) bool {
	return v == firstVersion || r.ReceivedAt != "v1"
}

// linkBase returns the base address that links begin with.
func (c *call) linkBase() string {
	if to := c.reading.Network.LinksTo; to != "" {
		return strings.TrimSuffix(to, "/")
	}
	return baseURL(c.Request)
}
