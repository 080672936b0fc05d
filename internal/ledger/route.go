package ledger

// Route is the kind of way that a document takes: to which interface of the service it goes, and what its last word is. It is stored and
// never changes.
type Route string

// The routes.
const (
	Vault   Route = "vault"   // to the archive, which says at the end that it is archived
	PDF     Route = "pdf"     // to the PDF flow of the accounts-payable system, which says nothing more after it has the file
	Network Route = "network" // to the business network, which tells by notifications what became of the document
)

// Form is what is dropped for a route.
type Form uint8

const (
	Folders   Form = iota // folders with a sidecar of the archive
	Files                 // single PDFs, without a folder around them
	Documents             // folders with a document of the business network
)

// routeRow is what depends on the route of a document, and not on the document:
// a new route is a new row.
type routeRow struct {
	route    Route
	evidence evidence
	form     Form
	vaults   bool   // see [Route.HasVaults]
	ending   string // see [Route.PackageEnding]
	noted    string // see [Route.Noted]
}

var routeRows = []routeRow{
	{route: Vault, evidence: list{}, form: Folders, vaults: true, ending: ".zip"},
	{route: PDF, evidence: none{}, form: Files, ending: ".pdf", noted: string(PDF)},
	{route: Network, evidence: repeatable{}, form: Documents, ending: ".zip", noted: string(Network)},
}

// Routes lists the routes.
func Routes() (all []Route) {
	for _, row := range routeRows {
		all = append(all, row.route)
	}
	return all
}

// row returns the row of a route. Of an old entry no route is recorded: it goes
// to the archive.
func (r Route) row() *routeRow {
	for i := range routeRows {
		if routeRows[i].route == r {
			return &routeRows[i]
		}
	}
	return &routeRows[0]
}

// IsAsked reports whether the service tells, when it is asked, what became of a
// document of this route. If it does not, and does not notify either, the
// store's 2xx to the recorded bytes is the last word, and an upload without an
// answer stays unknown permanently: only a person can decide what to do then.
func (r Route) IsAsked() bool { return r.row().evidence == list{} }

// IsNotified reports whether the service tells by notifications what became of a document of this route. It cannot be asked about one.
func (r Route) IsNotified() bool { return r.row().evidence == repeatable{} }

// HasVaults reports whether the service keeps the documents of this route in
// vaults. Each vault has a queue, a target and an account of its own. If there
// are none, all documents of the route share one queue, and each drop registers
// for itself.
func (r Route) HasVaults() bool { return r.row().vaults }

// Form is what is dropped for the route.
func (r Route) Form() Form { return r.row().form }

// Reaches reports whether a document of the route can be in a state.
func (r Route) Reaches(s State) bool { return r.row().evidence.reaches(s) }

// Noted is the route as records name it; empty for the one that was the only one
// when they began.
func (r Route) Noted() string { return r.row().noted }

// PackageEnding is the ending of the names of this route's packages.
func (r Route) PackageEnding() string { return r.row().ending }

// CauseDeliveryUnknown is the code of the cause of an entry whose document may have been delivered, where nobody can be asked.
const CauseDeliveryUnknown = "delivery-unknown"

// CauseGivenBack is the code of the cause of a rejection: an operator closed
// the entry before anything was sent.
const CauseGivenBack = "given-back"

// CauseClosedInDoubt is the code of the cause of a rejection: an entry of the same content was closed in doubt.
const CauseClosedInDoubt = "closed-in-doubt"

// IsSentAgainInDoubt reports whether a retry of a rejection may bring its document to the service a second time, and nobody can be asked: it was
// closed in doubt, or refused because another entry of the same content was.
func (e Entry) IsSentAgainInDoubt() bool {
	return e.State == Rejected && e.evidence().doubtStays() && (e.InDoubt || e.Cause.Code == CauseClosedInDoubt)
}

// DeliveryUnknown returns the cause of an entry whose document may have been
// delivered; why says in words what is known.
func DeliveryUnknown(why string) Cause { return Cause{Code: CauseDeliveryUnknown, Text: why} }

// ServiceQueueOf names the queue of an entry's calls to its service: a vault, or all of a service that has no vaults. What a call over one
// queue costs, or how it fails, delays no other.
func ServiceQueueOf(e Entry) string { return ServiceQueue(e.Route, string(e.Vault)) }

// ServiceQueue is ServiceQueueOf for what goes by a route to a vault.
func ServiceQueue(r Route, vault string) string {
	queue := string(r)
	if vault != "" {
		queue = "vault " + vault
	}
	// Two long names with the same beginning share a queue: one can then delay the other, and nothing else follows.
	return queue[:min(len(queue), longestQueue)]
}

// longestQueue is the longest name of a queue: its length is one byte in the due index.
const longestQueue = 255
