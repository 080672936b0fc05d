package ledger

// Route is the kind of way that a document takes: to which interface of the service it goes, and what its last word is. It is stored and
// never changes.
type Route string

// The routes.
const (
	Vault Route = "vault" // to the archive, which says at the end that it is archived
	PDF   Route = "pdf"   // to the PDF flow of the accounts-payable system, which says nothing more after it has the file
)

// IsAsked reports whether the service tells what became of a document of this route. Where it does not, the store's 2xx to the recorded
// bytes is the last word, and an upload without an answer stays unknown for ever: only a person can decide what to do then.
func (r Route) IsAsked() bool { return r != PDF }

// CauseDeliveryUnknown is the code of the cause of an entry whose document may have been delivered, where nobody can be asked.
const CauseDeliveryUnknown = "delivery-unknown"

// DeliveryUnknown returns the cause of an entry whose document may have been delivered; why says in words what is known.
func DeliveryUnknown(why string) Cause {
	return Cause{Code: CauseDeliveryUnknown, Text: why + ", and the service cannot be asked. Look for the document in the accounts-payable system. " +
		"It is there: vaultd close. It is not: vaultd release sends it again"}
}

// ServiceQueueOf names the queue of an entry's calls to its service: a vault, or all of a service that has no vaults. What a call over one
// queue costs, or how it fails, delays no other.
func ServiceQueueOf(e Entry) string { return ServiceQueue(e.Route, string(e.Vault)) }

// ServiceQueue is ServiceQueueOf for what goes by a route to a vault.
func ServiceQueue(r Route, vault string) string {
	queue := string(r)
	if r != PDF {
		queue = "vault " + vault
	}
	// Two long names with the same beginning share a queue: one can then delay the other, and nothing else follows.
	return queue[:min(len(queue), longestQueue)]
}

// longestQueue is the longest name of a queue: its length is one byte in the due index.
const longestQueue = 255
