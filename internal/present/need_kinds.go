package present

import (
	"slices"
	"time"

	"vaultd/internal/ledger"
)

// Surface is where people or machines see a need.
type Surface uint8

// The surfaces.
const (
	OnStatus     Surface = 1 << iota // "status" with its exit code; while vaultd runs also the page and the metrics
	OnHealth                         // the health pages and the service manager
	OnWhy                            // "why" about the entry
	OnAudit                          // the report's needs
	OnRemarks                        // the report's remarks
	OnStatusFile                     // _STATUS.txt, for those who drop
)

// Whose turn it is.
const (
	turnIT      = "IT"
	turnDropper = "who dropped it"
)

// NeedKind is a kind of thing that needs attention, on any surface. A kind of
// entries has the words that follow their count; the others have words made of
// what is known, see [StatusSummary.AddNeeds].
type NeedKind struct {
	What  string // a stable word
	When  string // now or soon
	Turn  string // whose turn it is
	On    Surface
	Title string // on the page

	// Of entries.
	Classes   []ledger.Attention
	Route     ledger.Route // empty: any
	late      bool         // only those that are on their way for too long
	recent    bool         // only those that were taken lately, see [ledger.ReviewPeriod]
	held      bool         // only those on hold, of any class
	One, More string
	Do        string
	Advice    string // on the page, where each name leads to the page of its document
}

const (
	onEntry   = OnStatus | OnWhy | OnAudit
	onDropper = onEntry | OnStatusFile
	onReview  = OnStatus | OnWhy | OnRemarks | OnStatusFile
	onMachine = OnStatus | OnHealth
)

func class(all ...ledger.Attention) []ledger.Attention { return all }

// needKinds is the table of needs, the most urgent first. Every surface reads it.
var needKinds = []NeedKind{
	{What: "ledger-lost", When: "now", Turn: turnIT, On: onMachine, Title: "The ledger is not in its place"},
	{What: "taken-over", When: "now", Turn: turnIT, On: onMachine, Title: "Another vaultd has taken over"},
	{What: "safe-mode", When: "now", Turn: turnIT, On: onMachine, Title: "Safe mode"},
	{What: "damaged", When: "now", Turn: turnIT, On: onMachine, Title: "The ledger is damaged"},
	{What: "files", When: "now", Turn: turnIT, On: onMachine, Title: "Files are not what the ledger says"},
	{What: "balance", When: "now", Turn: turnIT, On: onMachine, Title: "The balance does not agree"},
	{What: "configuration", When: "now", Turn: turnIT, On: OnStatus, Title: "The new configuration is not in use"},
	{What: "binding", When: "now", Turn: turnIT, On: OnStatus, Title: "The ledger belongs to other accounts"},
	{What: "not-running", When: "now", Turn: turnIT, On: OnStatus, Title: "vaultd does not run"},
	{What: "contradicted", When: "now", Turn: turnIT, On: onEntry | OnHealth, Title: "The archive contradicts itself", Classes: class(ledger.ContradictedByService),
		One: "document is contradicted by the service", More: "documents are contradicted by the service", Do: "see vaultd why X; ask the provider",
		Advice: "Open each one to read what happened. Then ask the provider."},
	{What: "download-differs", When: "now", Turn: turnIT, On: onEntry | OnHealth, Title: "The archive has something else than was sent", Classes: class(ledger.ContentDiffers),
		One: "archived document is not what was sent, by its last download", More: "archived documents are not what was sent, by their last download",
		Do:     "keep what vaultd fetch X gives, and show it to the provider; then vaultd close X. The kept folder is not removed",
		Advice: "Open each one for its numbers (bumId), and show the provider what was downloaded; IT closes it then (vaultd close)."},
	{What: "index-differs", When: "now", Turn: turnIT, On: OnStatus | OnAudit, Title: "The index of the archive differs from the ledger",
		One: "vault differs from the archive's own index, by the last comparison", More: "vaults differ from the archive's own index, by the last comparison",
		Do: "run vaultd reconcile, which names each difference, and ask the provider; it ends with a comparison that agrees"},
	{What: "rejected-late", When: "now", Turn: turnIT, On: onDropper | OnHealth, Title: "Rejected after delivery", Classes: class(ledger.RejectedLate),
		One: "document was rejected by the business network after delivery", More: "documents were rejected by the business network after delivery",
		Do:     "see vaultd why X; ask the provider, put it right and drop it again, then vaultd close X",
		Advice: "The business network rejected it after it had delivered it. Ask the provider why. Put it right and drop it again; IT closes this one then (vaultd close)."},
	{What: "archived-twice", When: "now", Turn: turnIT, On: onEntry | OnHealth, Title: "Archived more than once", Classes: class(ledger.ArchivedTwice),
		One: "document is archived more than once", More: "documents are archived more than once", Do: "see vaultd why X; ask the provider to remove what is too many, then vaultd close X",
		Advice: "Open each one for its numbers (bumId). Ask the provider to remove what is too many; IT closes it then (vaultd close)."},
	{What: "paused", When: "now", Turn: turnIT, On: onMachine, Title: "Paused"},
	{What: "drop-place", When: "now", Turn: turnIT, On: onMachine, Title: "Results do not reach people"},
	{What: "drop-full", When: "now", Turn: turnIT, On: onMachine, Title: "The disk of a drop folder is full"},
	{What: "drop-paused", When: "now", Turn: turnIT, On: onMachine, Title: "A drop folder is paused"},
	{What: "drop-stalled", When: "now", Turn: turnIT, On: onMachine, Title: "A drop folder is not looked through"},
	{What: "notices", When: "now", Turn: turnIT, On: onMachine, Title: "Notifications of the business network do not come in"},
	{What: "extracts-paused", When: "now", Turn: turnIT, On: onMachine, Title: "Extracts do not come in"},
	{What: "disk", When: "now", Turn: turnIT, On: onMachine, Title: "The disk is full"},
	{What: "not-taken", When: "now", Turn: turnDropper, On: onMachine | OnAudit | OnStatusFile, Title: "Not taken"},
	{What: "unreadable", When: "now", Turn: turnIT, On: onDropper | OnHealth, Title: "Cannot be read", Classes: class(ledger.WaitingForRights),
		One: "taken folder cannot be read", More: "taken folders cannot be read", Do: "give the share's group the right to read what is named (docs/samba.md); it is tried again by itself",
		Advice: "IT gives the group of the share the right to read it (docs/samba.md). It is tried again by itself."},
	{What: "overdue", When: "now", Turn: turnIT, On: onEntry | OnHealth, Title: "Open for too long", late: true,
		Classes: class(ledger.Waiting, ledger.WaitingForRights, ledger.RecipientNotListed, ledger.CopyNotMade),
		One:     "document is open", More: "documents are open", Do: "see vaultd why X; ask the provider about them, with the request ids that vaultd show X names",
		Advice: "Open each one to see how far it came. Then ask the provider."},
	{What: "clock", When: "soon", Turn: turnIT, On: OnStatus, Title: "The clock is wrong"},
	{What: "check", When: "soon", Turn: turnIT, On: OnStatus, Title: "The check of the ledger is not complete"},
	{What: "spool-full", When: "soon", Turn: turnIT, On: OnStatus, Title: "Packages wait for room in the spool"},
	{What: "kept-differs", When: "soon", Turn: turnIT, On: onEntry, Title: "Kept folders are changed or missing", Classes: class(ledger.SourceChanged), Route: ledger.Vault,
		One: "kept folder is not what was archived, or not there any more", More: "kept folders are not what was archived, or not there any more",
		Do:     "see vaultd why X; compare it with vaultd fetch X; put it back, drop a corrected invoice or tidy it away, then vaultd close X",
		Advice: "Open each one to see what differs. Drop a corrected invoice, or have the folder tidied away; IT closes it then (vaultd close)."},
	{What: "receipt-alone", When: "soon", Turn: turnIT, On: onEntry, Title: "Archived by a receipt alone", Classes: class(ledger.ByReceiptAlone),
		One:    "folder is called archived by a receipt alone, which has no signature of this ledger",
		More:   "folders are called archived by receipts alone, which have no signature of this ledger",
		Do:     "see vaultd why X; vaultd reconcile asks the archive. If the archive does not have it, find out who wrote the receipt, then vaultd close X",
		Advice: "Its receipt has no signature of this ledger, and the archive has not confirmed it. IT compares the ledger with the archive (vaultd reconcile), then decides."},
	{What: "not-compared", When: "soon", Turn: turnIT, On: onEntry, Title: "Archived, and not compared", Classes: class(ledger.NotCompared),
		One:    "document is archived after an upload without an answer to a store that does not check Content-MD5",
		More:   "documents are archived after an upload without an answer to a store that does not check Content-MD5",
		Do:     "compare what is archived with what was sent: vaultd fetch X; until then the kept folder is not removed",
		Advice: "The store did not answer its upload, and it does not check Content-MD5. IT compares what is archived with what was sent (vaultd fetch)."},
	{What: "delivered-differs", When: "soon", Turn: turnIT, On: onEntry, Title: "Kept PDFs are changed or missing", Classes: class(ledger.SourceChanged), Route: ledger.PDF,
		One: "kept PDF is not what was delivered, or not there any more", More: "kept PDFs are not what was delivered, or not there any more", Do: "see vaultd why X; drop the changed PDF or tidy it away, then vaultd close X",
		Advice: "Open each one to see what differs. Drop the changed PDF, or have it tidied away; IT closes it then (vaultd close)."},
	{What: "sent-differs", When: "soon", Turn: turnIT, On: onEntry, Title: "Kept folders of sent documents are changed or missing", Classes: class(ledger.SourceChanged), Route: ledger.Network,
		One: "kept folder is not what was sent to the business network, or not there any more", More: "kept folders are not what was sent to the business network, or not there any more",
		Do:     "see vaultd why X; send the recipient a corrected document or tidy it away, then vaultd close X",
		Advice: "Open each one to see what differs. Send the recipient a corrected document, or have the folder tidied away; IT closes it then (vaultd close)."},
	{What: "rejected-by-recipient", When: "soon", Turn: turnDropper, On: onDropper, Title: "Rejected by the recipient", Classes: class(ledger.RefusedByRecipient),
		One: "document was rejected by the recipient", More: "documents were rejected by the recipient", Do: "see vaultd why X; ask the recipient, then vaultd close X",
		Advice: "Ask the recipient why. Send a corrected document, or a credit note; IT closes it then (vaultd close)."},
	{What: "asked-by-service", When: "soon", Turn: turnIT, On: onEntry, Title: "Word about early payment or a discount", Classes: class(ledger.AskedByService),
		One: "document has word about early payment or a discount upon which a person must act", More: "documents have word about early payment or a discount upon which a person must act",
		Do:     "see vaultd show X for the word; act upon it, then vaultd close X",
		Advice: "Open each one for the word, and act upon it; IT closes it then (vaultd close)."},
	{What: "notices-ask", When: "soon", Turn: turnIT, On: OnStatus, Title: "Word about early payment or a discount, of a document that was not sent"},
	{What: "recipient-not-listed", When: "soon", Turn: turnDropper, On: onDropper, Title: "Not sent: the recipient is not in the directory", Classes: class(ledger.RecipientNotListed),
		One: "document is not sent yet: the directory has no valid line of the recipient", More: "documents are not sent yet: the directory has no valid line of the recipient",
		Do:     "see vaultd why X; check the number with the recipient. The directory is asked again by itself; if the number is wrong, vaultd close X gives the folder back",
		Advice: "Check the number with the recipient. The directory is asked again by itself. If the number is wrong, IT gives the folder back (vaultd close)."},
	{What: "copy-waits", When: "soon", Turn: turnIT, On: onDropper, Title: "Sent, and not archived yet", Classes: class(ledger.CopyNotMade),
		One: "sent document is not archived yet: the copy cannot be put into its drop folder", More: "sent documents are not archived yet: the copy cannot be put into its drop folder",
		Do:     "see vaultd why X for what is in the way; it is tried again by itself",
		Advice: "Open each one to see what is in the way of its copy for the archive. It is tried again by itself."},
	{What: "rejected", When: "soon", Turn: turnDropper, On: onDropper, Title: "Rejected", Classes: class(ledger.RejectedUnresolved),
		One: "document was rejected: it did not come to its destination", More: "documents were rejected: they did not come to their destination",
		Do:     "put them right as _REASON.txt says and drop them again",
		Advice: "Open each one to see why. Put it right, and drop it again."},
	{What: "quarantined", When: "soon", Turn: turnIT, On: onDropper, Title: "Quarantined", Classes: class(ledger.InQuarantine),
		One: "document is quarantined: it cannot go on, and something of it may have arrived", More: "documents are quarantined: they cannot go on, and something of them may have arrived",
		Do:     "see vaultd why X, then decide",
		Advice: "Open each one to see why it stopped. Then IT decides: the command “vaultd why” has the choices."},
	{What: "undecided", When: "soon", Turn: turnIT, On: onDropper, Title: "A decision is needed", Classes: class(ledger.AwaitingDecision),
		One:    "document is held: same files or same number as another, a date that can hardly be right, or a file that looks cut off",
		More:   "documents are held: same files or same number as another, a date that can hardly be right, or a file that looks cut off",
		Do:     "see vaultd why X, then decide",
		Advice: "It has the same files or the same number as another one, a date that can hardly be right, or a file that looks cut off. Open each one and compare. Then IT decides: the command “vaultd why” has the choices."},
	{What: "held", When: "soon", Turn: turnIT, On: OnWhy | OnAudit, held: true,
		One: "document is on hold", More: "documents are on hold", Do: "see vaultd why X; vaultd unhold X lets it go on"},
	{What: "same-number", When: "soon", Turn: turnIT, On: onReview, Title: "Same invoice number as another one", Classes: class(ledger.RepeatedNumber), recent: true,
		One: "document has the invoice number of another one", More: "documents have the invoice number of another one",
		Do:     "see vaultd why X and compare the two; if both are right: vaultd close X",
		Advice: "Open each one and compare it with the other one. If both are right, IT closes it (vaultd close)."},
	{What: "looks-cut-off", When: "soon", Turn: turnIT, On: onReview, Title: "A file that looks cut off", Classes: class(ledger.LooksCutOff), recent: true,
		One: "document has a file that looks cut off", More: "documents have a file that looks cut off",
		Do:     "see vaultd why X and look into the file; if it is whole: vaultd close X, else have it dropped again",
		Advice: "Open each one and look into its files. If they are whole, IT closes it (vaultd close); if not, drop it again."},
	{What: "strange-date", When: "soon", Turn: turnIT, On: onReview, Title: "A date that can hardly be right", Classes: class(ledger.StrangeDate), recent: true,
		One: "document has a date that can hardly be right", More: "documents have a date that can hardly be right",
		Do:     "see vaultd why X and look into the invoice; if it is to stay: vaultd close X",
		Advice: "Open each one and compare its date with the invoice. If it is right, IT closes it (vaultd close)."},
	{What: "elsewhere", When: "soon", Turn: turnIT, On: OnAudit,
		One: "folder that this report does not count may belong to it, and is not archived", More: "folders that this report does not count may belong to it, and are not archived",
		Do: "see vaultd why X for each; once it is archived or closed, make the report again"},
	{What: "extracts", When: "soon", Turn: turnIT, On: OnStatus, Title: "Extracts of the accounts-payable system"},
	{What: "received", When: "soon", Turn: turnIT, On: OnStatus, Title: "Documents that came in over the business network"},
}

// NeedKinds returns the table of needs, the most urgent first.
func NeedKinds() []NeedKind { return slices.Clone(needKinds) }

// KindOf returns the kind with a stable word, or the zero kind.
func KindOf(what string) NeedKind {
	if i := rankOf(what); i < len(needKinds) {
		return needKinds[i]
	}
	return NeedKind{}
}

// rankOf returns the place of a kind in the table.
func rankOf(what string) int {
	if i := slices.IndexFunc(needKinds, func(k NeedKind) bool { return k.What == what }); i >= 0 {
		return i
	}
	return len(needKinds)
}

// IsOn reports whether a surface shows it.
func (k NeedKind) IsOn(s Surface) bool { return k.On&s != 0 }

// Describe says how many entries of the kind there are. Those that are on their
// way for too long are so for longer than alertAfter.
func (k NeedKind) Describe(n int, alertAfter time.Duration) string {
	text := FormatCount(n, k.One, k.More)
	if k.late {
		text += " for longer than " + FormatAge(alertAfter)
	}
	return text
}

// Bounds returns between which times of being taken an entry is of the kind; a
// zero bound is open.
func (k NeedKind) Bounds(now time.Time, alertAfter time.Duration) (since, before time.Time) {
	switch {
	case k.recent:
		since = now.Add(-ledger.ReviewPeriod)
	case k.late:
		before = now.Add(-alertAfter)
	}
	return since, before
}

// IsOf reports whether what goes by a route can be of the kind.
func (k NeedKind) IsOf(r ledger.Route) bool { return k.Route == "" || k.Route == r }

// has reports whether an entry is of the kind.
func (k NeedKind) has(e ledger.Entry, now time.Time, alertAfter time.Duration) bool {
	since, before := k.Bounds(now, alertAfter)
	switch {
	case k.held:
		return e.Hold
	case !slices.Contains(k.Classes, e.Attention()), !k.IsOf(e.Route), k.late && alertAfter == 0:
		return false
	}
	return !e.SeenAt.Before(since) && (before.IsZero() || e.SeenAt.Before(before))
}

// NeedOf returns the most urgent kind of which an entry is, of those that a
// surface shows, or the zero kind.
func NeedOf(e ledger.Entry, on Surface, now time.Time, alertAfter time.Duration) NeedKind {
	for _, k := range needKinds {
		if k.IsOn(on) && k.has(e, now, alertAfter) {
			return k
		}
	}
	return NeedKind{}
}
